"""Shells complete what the commands understand, and the manual page says the same as the help."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from scripts.make_man import manual

from privacyfunnel.cli.completion_command import commands
from tests.commands import LONGEST, run, told

MANUAL = Path(__file__).parents[2] / "man" / "privacyfunnel.1"
BASH = shutil.which("bash")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "privacyfunnel.bash"
    path.write_text(run("completion", "bash").stdout, encoding="utf-8")
    return path


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers for the last of these words."""
    assert BASH, "this test needs bash"
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f'source "{script}"; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _privacyfunnel; '
    asked += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [BASH, "-c", asked], capture_output=True, text=True, cwd=script.parent, timeout=LONGEST, check=True
    )
    assert done.stderr == ""
    return set(filter(None, done.stdout.split("\n")))


def test_bash_completes_commands_options_choices_and_files(script: Path) -> None:
    names = {command.name for command in commands()}
    assert {"sanitise", "audit", "estimate", "completion"} <= names
    assert completed(script, "privacyfunnel", "") == names
    assert completed(script, "privacyfunnel", "sani") == {"sanitise"}
    assert {"--promise", "--publish", "--population"} <= completed(script, "privacyfunnel", "sanitise", "--p")
    assert completed(script, "privacyfunnel", "sanitise", "--promise", "l") == {"lip", "ldp"}
    (script.parent / "my table.csv").touch()
    assert completed(script, "privacyfunnel", "sanitise", "my") == {"my table.csv"}


def test_other_shells_get_the_same_words() -> None:
    zsh, fish = (told("completion", shell)["script"] for shell in ("zsh", "fish"))
    assert "bashcompinit" in zsh
    for command in commands():
        assert f"-a {command.name} " in fish
        for option in command.options:
            assert option in zsh
            assert f" -{'l' if option.startswith('--') else 's'} {option.lstrip('-')}" in fish


def test_the_manual_page_is_that_of_the_help() -> None:
    assert MANUAL.read_text(encoding="utf-8") == manual(), "make man"
    text = manual().replace("\\-", "-").replace("\\&", "")
    for command in commands():
        assert f".SS privacyfunnel {command.name}" in text
        assert all(f"\\fB{option}\\fR" in text for option in command.options)


def test_the_help_of_a_narrow_terminal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = manual()
    monkeypatch.setenv("COLUMNS", "40")
    assert manual() == before
    assert os.environ["COLUMNS"] == "40"
