"""What the commands understand, as data: for shells that complete words; and the manual page (`make man`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from privacyfunnel import __version__
from privacyfunnel.cli.application import app
from privacyfunnel.cli.spec_options import BY_NAME

CODES = (
    ("0", "done"),
    ("1", "a fault of the program"),
    ("2", "the user can mend it: one sentence says how, and nothing was written"),
    ("130, 143", "interrupted, terminated: nothing was published"),
)


@dataclass(frozen=True, slots=True)
class CommandParameter:
    """An argument or option of a command."""

    names: tuple[str, ...]  # of an option; of an argument none
    value: str  # what stands behind an option, or what an argument is called; nothing where an option is a switch
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command, what it does in one sentence, and what it understands."""

    name: str
    help: str
    parameters: tuple[CommandParameter, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """All names of options."""
        return tuple(name for word in self.parameters for name in word.names)


def commands() -> Iterator[Command]:
    """All commands, in the order of the help."""
    whole: Any = typer.main.get_command(app)
    for name, command in whole.commands.items():
        if not command.hidden:
            context = command.make_context(name, [], resilient_parsing=True)
            words = tuple(_describe_parameter(param, context) for param in command.get_params(context))
            yield Command(name, _sentence(command.help), words)


def _describe_parameter(param: Any, context: Any) -> CommandParameter:
    choices = tuple(str(getattr(choice, "value", choice)) for choice in getattr(param.type, "choices", None) or ())
    argument = param.param_type_name == "argument"
    if not choices and not argument and param.name in BY_NAME:
        choices = BY_NAME[param.name].choices
    switch = getattr(param, "is_flag", False)
    value = "" if switch else param.make_metavar(context).strip("[]").removesuffix("...")
    names = () if argument else (*param.opts, *param.secondary_opts)
    return CommandParameter(names, value, choices, _sentence(getattr(param, "help", "") or ""))


def _sentence(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())


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
