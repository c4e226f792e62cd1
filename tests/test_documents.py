"""Documents name theorems, tests and files that exist; their examples print what they show."""

from __future__ import annotations

import doctest
import math
import re
from pathlib import Path

import pytest

from privacyfunnel.formatting import format_factor
from privacyfunnel.model.promises import LDP, LIP

ROOT = Path(__file__).parent.parent
LIMITS = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
THEORY = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
STATEMENT = r"(?:Theorem|Lemma|Corollary|Definition|Counterexample)s?"
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
}


DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb"))
)
PACKAGES = sorted(path.name for path in (ROOT / "src" / "privacyfunnel").iterdir() if path.is_dir())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_test_that_a_document_names_exists(name: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / name).read_text(encoding="utf-8")))
    assert named <= TESTS, named - TESTS
    assert named or name != "docs/limits.md"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_that_a_document_names_exists(name: str) -> None:
    """`engine/plan.py` is below the package or the root; `plan.py` `Plan` and `engine.plan.Plan` are defined there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    missing = [path for path in re.findall(r"(?<![\w./-])(?:[\w-]+/)+[\w-]+\.py\b", text) if not located(path)]
    for path, symbol in re.findall(r"`([\w/-]+/[\w-]+\.py)` `(\w+)`", text):
        if (file := located(path)) and not re.search(rf"\b{symbol}\b", file.read_text(encoding="utf-8")):
            missing.append(f"{path} {symbol}")
    folders = re.findall(rf"`((?:laws|{'|'.join(PACKAGES)}|tests)/(?:[\w-]+/)*)`", text)
    missing += [folder for folder in folders if not located(folder)]
    dotted = re.findall(r"`(?:privacyfunnel\.)?((?:model|engine|mechanisms|designs|tables|audits)(?:\.\w+)+)`", text)
    missing += [module for module in dotted if not any(map(located, candidates(module)))]
    assert missing == []


def located(path: str) -> Path | None:
    places = (ROOT / path, ROOT / "src" / "privacyfunnel" / path)
    return next((place for place in places if place.exists()), None)


def candidates(dotted: str) -> list[str]:
    """Files that a dotted name may stand for: a module, or a name in it."""
    parts = dotted.split(".")
    modules = ["/".join(parts[:n]) for n in range(max(2, len(parts) - 2), len(parts) + 1)]
    return [f"{module}{end}" for module in modules for end in (".py", "/")]


@pytest.mark.parametrize("name", ["docs/limits.md", "SECURITY.md"])
def test_every_statement_that_a_document_cites_is_in_the_theory(name: str) -> None:
    cited = set(re.findall(rf"{STATEMENT} (\d+[a-zA-Z]?)\b", (ROOT / name).read_text(encoding="utf-8")))
    proved = set(re.findall(rf"\*\*{STATEMENT} (\d+[a-zA-Z]?)\b", THEORY))
    assert cited
    assert cited <= proved


def test_every_part_of_the_limits_says_by_what_it_holds() -> None:
    """Each section cites a statement or a test, or says that it was measured."""
    sections = re.split(r"^## ", LIMITS, flags=re.M)[1:]
    assert len(sections) > 10
    for section in sections:
        assert re.search(rf"{STATEMENT} \d|`test_\w+`|99\.5 %", section), section.splitlines()[0]


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs" / "tutorials").glob("*.md")))
def test_examples_of_a_tutorial_say_what_they_print(name: str) -> None:
    assert doctest.testfile(str(ROOT / "docs" / "tutorials" / name), module_relative=False).failed == 0


def outwards(ends: tuple[float, float]) -> str:
    return f"{math.floor(100 * ends[0] + 1e-9)} to {math.ceil(100 * ends[1] - 1e-9)} %"


def test_the_table_for_choosing_says_what_a_belief_may_become() -> None:
    text = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+)(?: = ln 2)? \| ([\d.]+) \| (.*) \|$", text, flags=re.M)
    assert len(rows) == 6
    for shown, factor, cells in rows:
        epsilon = math.log(2) if shown == "0.69" else float(shown)
        assert factor == format_factor(epsilon)
        expected = [(LIP, 0.1), (LIP, 0.3), (LDP, 0.3), (LIP, 0.5)]
        assert cells.split(" | ") == [
            outwards(kind(epsilon).belief_bounds(belief, epsilon)) for kind, belief in expected
        ]


def test_the_stewards_table_says_what_a_belief_may_become() -> None:
    text = (ROOT / "docs" / "tutorials" / "steward.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) % \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$", text, flags=re.M)
    assert len(rows) == 4
    for belief, *told in rows:
        for epsilon, said in zip((0.5, 1.0, 2.0), told, strict=True):
            most = 100 * LIP(epsilon).belief_bounds(float(belief) / 100, epsilon)[1]
            assert most <= float(said) < most + (1 if float(said) >= 10 else 0.1)
