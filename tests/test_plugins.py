"""Other packages add promises, uses and methods by entry points: a tiny one, installed into a folder of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from privacyfunnel import plugins
from privacyfunnel.designs.methods import find_method
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.promises import LIP, find_promise, stated_promise
from privacyfunnel.model.uses.use_parser import parse_use
from tests.commands import LONGEST, begun

PLUGIN = Path(__file__).parent / "plugin"
ROWS = "s,x\n" + "".join(f"{s},{x}\n" for s, x in (("u", "a"), ("v", "b"), ("u", "b"), ("w", "c"), ("v", "c")) * 40)
ASKED = ("--prior=table", "-s", "s", "-p", "x", "--promise", "everyoneelse", "-e", "1", "--no-report")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed the package, with its dist-info."""
    target = tmp_path_factory.mktemp("site")
    quietly = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "install", *quietly, "--target", str(target), str(PLUGIN)]
    subprocess.run(command, check=True, timeout=LONGEST)
    return target


@pytest.fixture
def people(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(ROWS)
    return tmp_path


def environment(*folders: Path) -> dict[str, str]:
    path = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def run(folder: Path, site: Path | None, *words: object) -> subprocess.CompletedProcess[str]:
    return begun(*words, cwd=folder, env=environment(*([] if site is None else [site])))


def test_a_promise_a_use_and_a_method_of_another_package_are_asked_for_by_name(installed: Path, people: Path) -> None:
    more = ("--for", "neighbours", "--save-spec", "release.toml", "--into", "best", "--json")
    done = run(people, installed, "sanitise", "people.csv", *ASKED, *more)
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout)
    assert (best["promise"], best["use"], best["method"]) == ("EveryoneElse", "neighbours", "optimal")
    assert 0 < best["certified"] <= 1
    assert best["value"] <= best["bound"] + 1e-6
    again = run(
        people,
        installed,
        "sanitise",
        "release.toml",
        "--method",
        "shy-response",
        "--into",
        "shy",
        "--again",
        "--details",
    )
    assert again.returncode == 0, again.stderr
    assert "shy-response" in again.stdout
    assert "for neighbours" not in again.stderr
    shy = json.loads((people / "shy" / "owner" / "protocol.json").read_text())
    assert shy["promise"]["name"] == "EveryoneElse"
    audit = run(people, installed, "audit", "best/protocol.json", "people.csv", "--sanitised", "best/sanitised.csv")
    assert audit.returncode == 0, audit.stderr


def test_its_protocol_is_read_without_it_and_what_needs_the_promise_says_so(installed: Path, people: Path) -> None:
    done = run(people, installed, "sanitise", "people.csv", *ASKED, "--into", "out")
    assert done.returncode == 0, done.stderr
    estimate = run(people, None, "estimate", "out/protocol.json", "out/sanitised.csv")
    assert estimate.returncode == 0, estimate.stderr
    (people / "new.csv").write_text("x\na\nb\nc\n")
    apply = run(people, None, "apply", "out/protocol.json", "new.csv", "--into", "new-out.csv")
    assert apply.returncode == 0, apply.stderr
    for words in (["audit", "out/protocol.json", "people.csv"],
                  ["apply", "out/protocol.json", "people.csv", "--into", "b.csv", "--again"]):  # fmt: skip
        refused = run(people, None, *words)
        assert refused.returncode == 2
        assert "The promise 'EveryoneElse' is added by a package that is not installed here." in refused.stderr
    assert not (people / "b.csv").exists()
    unknown = run(people, None, "sanitise", "people.csv", *ASKED, "--into", "c")
    assert "there is none called 'everyoneelse'." in unknown.stderr


def fake_package(folder: Path, group: str, entry: str, module: str = "") -> None:
    """What an installer leaves behind: a module and the metadata that point to it."""
    name = group.rpartition(".")[2]
    (folder / f"fake_{name}.py").write_text(module)
    info = folder / f"fake_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


@pytest.mark.parametrize(
    ("group", "entry", "module", "sentence"),
    [
        (
            plugins.USES,
            "broken = fake_uses:parse",
            "raise RuntimeError('no')",
            "added by package fake-uses, which",
        ),
        (plugins.METHODS, "odd = fake_methods:ODD", "ODD = 3", "must be a Method of that name; it is 3"),
        (plugins.PROMISES, "odd = fake_promises:Other", "class Other: pass", "must be a class of that name"),
    ],
)
def test_what_cannot_be_loaded_is_named_with_its_package(
    group: str, entry: str, module: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_package(tmp_path, group, entry, module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_loaded", {})
    find: dict[str, Callable[[str], object]] = {
        plugins.USES: parse_use,
        plugins.METHODS: find_method,
        plugins.PROMISES: lambda name: find_promise(name, 1),
    }
    with pytest.raises(ParameterError, match=sentence):
        find[group](entry.split(" ", maxsplit=1)[0])


def test_no_package_replaces_a_promise_or_a_use_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(tmp_path, plugins.PROMISES, "lip = fake_promises:LIP", "raise RuntimeError")
    fake_package(tmp_path, plugins.USES, "values = fake_uses:parse", "raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_promise("lip", 1) == LIP(1)
    assert parse_use("values").name == "values"
    with pytest.raises(ParameterError, match="There is a promise 'lip' already"):
        type("LIP", (LIP,), {"__module__": "elsewhere"})


def test_a_missing_promise_is_shown_and_promises_nothing() -> None:
    missing = stated_promise("Nobody", 0.5).with_epsilon(0.25)
    assert (missing.name, missing.epsilon) == ("Nobody", 0.25)
    assert missing.belief_bounds(0.3, 0.25) == (0.0, 1.0)
    with pytest.raises(ParameterError, match="not installed here"):
        missing.group_pairs(2, 1, False)
