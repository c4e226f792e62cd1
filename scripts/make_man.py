"""Print the manual page: `make man` keeps it in man/privacyfunnel.1."""

import sys
from collections.abc import Iterator

from privacyfunnel import __version__
from privacyfunnel.cli.completion_command import Command, CommandParameter, commands

CODES = (
    ("0", "done"),
    ("1", "a fault of the program"),
    ("2", "the user can mend it: one sentence says how, and nothing was written"),
    ("130, 143", "interrupted, terminated: nothing was published"),
)


def manual() -> str:
    """The whole page, in troff."""
    found = tuple(commands())
    return "\n".join([*_head(), *(line for command in found for line in _command(command)), *_foot()]) + "\n"


def _head() -> Iterator[str]:
    yield f'.TH PRIVACYFUNNEL 1 "" "privacyfunnel {__version__}" "User Commands"'
    yield from (".SH NAME", r"privacyfunnel \- publish a table without giving away its secret column")
    yield from (".SH SYNOPSIS", ".B privacyfunnel", r"\fICOMMAND\fR [\fIARGUMENTS\fR] [\fIOPTIONS\fR]")
    yield ".SH DESCRIPTION"
    yield _text(
        "Replaces every record's published values by a randomised version, so that whoever believes the published "
        "model of secret and values changes a belief about a person's secret by a factor of at most e^ε."
    )
    yield ".SH COMMANDS"


def _command(command: Command) -> Iterator[str]:
    arguments = [rf"\fI{_text(word.value)}\fR" for word in command.parameters if not word.names]
    yield from (".SS " + " ".join([f"privacyfunnel {command.name}", *arguments]), _text(command.help))
    for word in command.parameters:
        yield from (".TP", _format_names(word), _text(word.help) or r"\&")


def _format_names(word: CommandParameter) -> str:
    if not word.names:
        return rf"\fI{_text(word.value)}\fR"
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in word.names)
    return rf"{names} \fI{_text(word.value)}\fR" if word.value else names


def _foot() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, meaning in CODES:
        yield from (".TP", code, meaning)


def _text(text: str) -> str:
    """With what troff would take for its own written so that it does not."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(manual())
