"""Environments in which rivals run: made once, made again when their packages change, and never half made."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
from benchmarks.comparison import environments
from benchmarks.comparison.environments import RivalError, python_of, run_script

SCRIPT = """
import json, sys
from pathlib import Path
from tiny_rival import ANSWER

for seed, path in json.loads(sys.argv[2])["outputs"].items():
    Path(path).write_text(f"{ANSWER},{seed},{Path(sys.argv[1]).read_text()}")
    Path(path).with_suffix(".json").write_text(json.dumps({"seconds": 0.5, "prefix": sys.prefix}))
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environments, "BUILD", tmp_path / "build")
    monkeypatch.setattr(environments, "SCRIPTS", tmp_path)
    (tmp_path / "ask.py").write_text(SCRIPT)
    (tmp_path / "table.csv").write_text("rows")
    return tmp_path / "build"


def write_wheel(folder: Path) -> str:
    """A package as a registry would give it."""
    path, about = folder / "tiny_rival-1.0-py3-none-any.whl", "tiny_rival-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny_rival.py", "ANSWER = 42\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-rival\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return str(path)


def test_a_rival_runs_in_an_environment_of_its_own(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(environments.PACKAGES, "tiny", (write_wheel(tmp_path),))
    first, second = run_script("tiny", "ask", tmp_path / "table.csv", {}, [3, 4], 60)
    assert (first.path.read_text(), second.path.read_text()) == ("42,3,rows", "42,4,rows")
    assert first.facts == {"seconds": 0.5, "prefix": str(build / "environments" / "tiny")}
    first.path.write_text("kept")
    assert run_script("tiny", "ask", tmp_path / "table.csv", {}, [3], 60)[0].path.read_text() == "kept"
    assert run_script("tiny", "ask", tmp_path / "table.csv", {"other": 1}, [3], 60)[0].path.read_text() == "42,3,rows"


def test_an_environment_is_made_again_when_its_packages_change(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def pretend(command: list[str], limit: float) -> None:
        commands.append(command)
        (build / "environments" / "some").mkdir(exist_ok=True)

    monkeypatch.setattr(environments, "_run", pretend)
    monkeypatch.setitem(environments.PACKAGES, "some", ("rival==1",))
    python = python_of("some")
    assert [command[-1] for command in commands] == [str(build / "environments" / "some"), "rival==1"]
    assert python_of("some") == python
    assert len(commands) == 2
    monkeypatch.setitem(environments.PACKAGES, "some", ("rival==2",))
    python_of("some")
    assert "--clear" in commands[2]
    assert commands[3][-1] == "rival==2"
    assert json.loads((build / "environments" / "some" / "ready.json").read_text()) == ["rival==2"]


def test_an_environment_that_could_not_be_made_is_not_taken_for_made(
    build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = environments._run

    def fail(command: list[str], limit: float) -> None:
        (build / "environments" / "some").mkdir(exist_ok=True)
        if "install" in command:
            run([sys.executable, "-c", "import sys; sys.exit('no such package')"], limit)

    monkeypatch.setattr(environments, "_run", fail)
    monkeypatch.setitem(environments.PACKAGES, "some", ("rival==1",))
    for _ in range(2):
        with pytest.raises(RivalError, match="no such package"):
            python_of("some")
