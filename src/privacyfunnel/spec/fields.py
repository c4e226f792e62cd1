"""Descriptions of the fields of a spec: the one place that holds the help, the limits and the example of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any

from privacyfunnel.hints import option_name
from privacyfunnel.spec.help_texts import HELP
from privacyfunnel.spec.kinds import Kind

SANITISE, DESIGN, APPLY = "sanitise", "design", "apply"
COMMANDS = (SANITISE, DESIGN, APPLY)
DESIGNING, DRAWING = (SANITISE, DESIGN), (SANITISE, APPLY)
_OPTION = "option"  # the key in a field's metadata


@dataclass(frozen=True, slots=True)
class Option:
    """What a front end needs to know of a field."""

    kind: Kind
    group: str
    example: Any = None  # as it stands in a release.toml
    metavar: str = ""
    choices: tuple[str, ...] = ()  # to complete and to show; the kind or its package checks
    short: str = ""  # the short flag
    common: bool = False  # shown by --help; else by --help-all alone
    commands: tuple[str, ...] = COMMANDS
    aliases: tuple[str, ...] = ()  # older names of the option


@dataclass(frozen=True, slots=True)
class SpecField:
    """A field of a spec by name, with its default."""

    name: str
    default: Any
    option: Option
    help: str

    @property
    def key(self) -> str:
        """The name in a release.toml."""
        return self.name.rstrip("_")

    @property
    def is_flag(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def flag(self) -> str:
        """The long option of the command line."""
        return option_name(self.name)


def option(kind: Kind, group: str, **more: Any) -> dict[str, Option]:
    """The metadata of a dataclass field: its description."""
    return {_OPTION: Option(kind, group, **more)}


def describe_fields(spec: type) -> Iterator[SpecField]:
    """The fields of a spec that have a description, in the order of their declaration."""
    for each in fields(spec):
        default = {} if each.default is MISSING else each.default
        yield SpecField(each.name, default, each.metadata[_OPTION], HELP[each.name])
