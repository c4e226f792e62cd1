"""The README keeps its word: its examples run, its commands work, its numbers are what they print."""

import doctest
import re
from pathlib import Path

from tests.commands import run

README = Path(__file__).parents[2] / "README.md"


def test_the_examples_of_the_readme_are_true() -> None:
    assert doctest.testfile(str(README), module_relative=False).failed == 0


def test_the_commands_of_the_readme_work_and_print_what_it_shows(tmp_path: Path) -> None:
    text = README.read_text()
    demo = run("demo", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr
    shown = text.split("```text\n")[1].split("; 87.")[0]
    assert demo.stdout.startswith(shown)
    commands = re.findall(r"^\$ privacyfunnel (.*)$", text, re.MULTILINE)
    printed = {}
    for words in commands:
        done = run(*words.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        printed[words.split()[0]] = done.stdout
    assert list(printed) == ["scan", "sanitise", "audit", "curve", "estimate"]
    blocks = [block.split("```")[0] for block in text.split("```text\n")[1:]]
    assert printed["curve"].strip() == blocks[1].strip()
    estimates_agree(blocks[2], printed["estimate"])
    assert (tmp_path / "demo" / "estimates" / "estimates.svg").exists()


def estimates_agree(shown: str, printed: str) -> None:
    """Two draws of the same table: shares differ by no more than both intervals allow, which is 5 standard errors."""
    one, other = ([line.split() for line in text.splitlines()[5:21]] for text in (shown, printed))
    assert shown.splitlines()[:5] == printed.splitlines()[:5]
    assert [line[0] for line in one] == [line[0] for line in other]
    for mine, yours in zip(one, other, strict=True):
        (a, low_a, high_a), (b, low_b, high_b) = ([float(line[i]) for i in (1, 3, 5)] for line in (mine, yours))
        assert abs(a - b) <= (high_a - low_a) + (high_b - low_b)


def test_the_pages_the_readme_links_to_exist() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (README.parent / link).exists(), link
