"""`completion`: what a shell needs to complete commands, options and their choices."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from privacyfunnel.cli.application import Json, answer, app
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


class Shell(StrEnum):
    """Shells that are spoken."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")],
    *,
    as_json: Json = False,
) -> None:
    """Print what completes the words of this program in a shell, such as: source <(privacyfunnel completion bash)."""
    text = SCRIPTS[shell](tuple(commands()))
    answer(as_json, {"shell": shell.value, "script": text}, text)


def _bash(found: Sequence[Command]) -> str:
    """Commands first; then options, choices behind one that has any, and files otherwise."""
    lines = [
        "_privacyfunnel() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        "  COMPREPLY=()",
        '  if [[ $COMP_CWORD -gt 1 ]]; then case "${COMP_WORDS[1]} $before" in',
    ]
    for command in found:
        for word in command.parameters:
            if word.names and word.choices:
                patterns = "|".join(shlex.quote(f"{command.name} {name}") for name in word.names)
                lines.append(f"    {patterns}) words={shlex.quote(' '.join(word.choices))};;")
    lines += [
        "  esac; fi",
        '  if [[ -z $words && ( $COMP_CWORD -eq 1 || $word == -* ) ]]; then case "${COMP_WORDS[1]}" in',
        *(f"    {command.name}) words={shlex.quote(' '.join(command.options))};;" for command in found),
        "  esac; fi",
        f"  if [[ $COMP_CWORD -eq 1 ]]; then words={shlex.quote(' '.join(command.name for command in found))}; fi",
        '  if [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "  else local IFS=$'\\n'; COMPREPLY=($(compgen -f -- \"$word\")); fi",
        "}",
        "complete -o filenames -F _privacyfunnel privacyfunnel",
    ]
    return "\n".join(lines)


def _zsh(found: Sequence[Command]) -> str:
    """The same: zsh speaks bash's completion."""
    return f"autoload -U +X compinit && compinit -u; autoload -U +X bashcompinit && bashcompinit\n{_bash(found)}"


def _fish(found: Sequence[Command]) -> str:
    """One line per command and option."""
    lines = []
    for command in found:
        about = shlex.quote(command.help)
        lines.append(f"complete -c privacyfunnel -f -n __fish_use_subcommand -a {command.name} -d {about}")
        for word in command.parameters:
            if word.names:
                names = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in word.names]
                needs = f" -x -a {shlex.quote(' '.join(word.choices))}" if word.choices else " -r" if word.value else ""
                where = shlex.quote(f"__fish_seen_subcommand_from {command.name}")
                lines.append(
                    f"complete -c privacyfunnel -n {where} {' '.join(names)}{needs} -d {shlex.quote(word.help)}"
                )
    return "\n".join(lines)


SCRIPTS: dict[Shell, Callable[[Sequence[Command]], str]] = {Shell.BASH: _bash, Shell.ZSH: _zsh, Shell.FISH: _fish}
