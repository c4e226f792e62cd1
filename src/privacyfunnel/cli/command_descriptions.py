"""What the commands understand, as data: for shells that complete words, and for the manual page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from privacyfunnel.cli.application import app
from privacyfunnel.cli.spec_options import BY_NAME


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
