"""Documents that promise something name theorems and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIMITS = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
THEORY = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
STATEMENT = r"(?:Theorem|Lemma|Corollary|Definition|Counterexample)s?"
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
}


@pytest.mark.parametrize("name", ["docs/limits.md", "SECURITY.md"])
def test_every_test_that_a_document_names_is_there(name: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / name).read_text(encoding="utf-8")))
    assert named <= TESTS
    assert named or name != "docs/limits.md"


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
