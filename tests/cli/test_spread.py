"""Options in groups: one value to a command, single options to who types them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from privacyfunnel.cli.application import app
from privacyfunnel.cli.option_groups import expand_groups


@dataclass(frozen=True, kw_only=True)
class Size:
    width: Annotated[int, typer.Option("--width")]
    height: Annotated[int, typer.Option("--height")] = 2


@dataclass(frozen=True, kw_only=True)
class Box(Size):
    depth: Annotated[int, typer.Option("--depth")] = 3


@expand_groups
def packed(name: str, *, box: Box, often: Annotated[int, typer.Option("--often")] = 1) -> None:
    print(name, box, often)


@pytest.fixture
def boxes() -> typer.Typer:
    commands = typer.Typer()
    commands.command()(packed)
    return commands


def test_the_options_of_a_group_stand_where_the_group_stood() -> None:
    assert [*inspect.signature(packed).parameters] == ["name", "width", "height", "depth", "often"]


def test_what_is_typed_reaches_the_command_as_one_value(boxes: typer.Typer) -> None:
    told = CliRunner().invoke(boxes, ["tea", "--depth", "7", "--width", "5", "--often", "4"])
    assert told.output == f"tea {Box(width=5, height=2, depth=7)} 4\n"


def test_an_option_without_a_default_must_be_given(boxes: typer.Typer) -> None:
    told = CliRunner().invoke(boxes, ["tea"])
    assert told.exit_code == 2
    assert "--width" in told.output


def test_no_command_takes_an_option_twice() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        named = [
            name
            for parameter in inspect.signature(command.callback, eval_str=True).parameters.values()
            for option in getattr(parameter.annotation, "__metadata__", ())
            for name in getattr(option, "param_decls", None) or ()
        ]
        assert len(named) == len(set(named)), command.callback.__name__
