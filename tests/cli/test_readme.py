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
    facts_agree(text.split("```text\n")[1].split("```")[0], demo.stdout)
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


def facts_agree(shown: str, printed: str) -> None:
    """Two demos, whose noise differs: the same files and promise, and an accuracy of the same size."""
    one, other = shown.splitlines(), printed.splitlines()
    assert one[:4] == other[:4]
    assert [line.split("  ")[0] for line in one[4:8]] == [line.split("  ")[0] for line in other[4:8]]
    assert re.findall(r"×[\d.]+", one[5] + one[6])[:1] == re.findall(r"×[\d.]+", other[5] + other[6])[:1]
    points = [float(found) for text in (shown, printed) for found in re.findall(r"within ±([\d.]+) points", text)]
    assert len(points) == 2
    assert points[0] / 2 < points[1] < 2 * points[0]


def estimates_agree(shown: str, printed: str) -> None:
    """Two draws of the same table: shares differ by no more than both intervals allow, which is 5 standard errors."""
    line = re.compile(r"^(\S+) +([\d.]+) % +([\d.]+) % +([\d.]+) %", re.MULTILINE)
    one, other = (
        {label: [*map(float, numbers)] for label, *numbers in line.findall(text)} for text in (shown, printed)
    )
    assert shown.splitlines()[:3] == printed.splitlines()[:3]
    both = set(one) & set(other) - {"other"}  # which labels are named, and what is left, differs with the noise
    assert len(both) > 3
    for (a, low_a, high_a), (b, low_b, high_b) in ((one[label], other[label]) for label in both):
        assert abs(a - b) <= (high_a - low_a) + (high_b - low_b)


def test_the_pages_the_readme_links_to_exist() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (README.parent / link).exists(), link
