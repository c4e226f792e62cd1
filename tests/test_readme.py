"""The README keeps its word: its examples run, its commands work, its numbers are what they print."""

import doctest
import re
from pathlib import Path

from tests.commands import run

README = Path(__file__).parent.parent / "README.md"


def test_the_examples_of_the_readme_are_true() -> None:
    assert doctest.testfile(str(README), module_relative=False).failed == 0


def test_the_commands_of_the_readme_work_and_print_what_it_shows(tmp_path: Path) -> None:
    text = README.read_text()
    demo = run("demo", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr
    shown = text.split("```text\n")[1].split("unchanged")[0]
    assert demo.stdout.startswith(shown)
    commands = re.findall(r"^\$ privacyfunnel (.*)$", text, re.MULTILINE)
    assert [words.split()[0] for words in commands] == ["scan", "sanitise", "audit", "curve"]
    for words in commands:
        done = run(*words.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == text.split("```text\n")[2].split("```")[0].strip()


def test_the_pages_the_readme_links_to_exist() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (README.parent / link).exists(), link
