"""Fields of a spec as options: single options to who types them, one value to a command."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from privacyfunnel.cli.application import app
from privacyfunnel.cli.spec_options import BY_NAME, Given, build_spec, field_option, fields_of, takes_spec
from privacyfunnel.spec import FIELDS

OF_THEIR_OWN = {
    "columns",
    "matrix",
    "method",
    "domain",
}  # which a command checks by itself


@takes_spec("secret", "epsilon", "force", secret="Whom to protect.")
def protect(name: str, *, given: Given) -> None:
    print(name, given)


@pytest.fixture
def commands() -> typer.Typer:
    commands = typer.Typer()
    commands.command()(protect)
    return commands


def test_the_options_of_the_fields_stand_where_the_value_stood() -> None:
    assert [*inspect.signature(protect).parameters] == ["name", "secret", "epsilon", "force", "help_all"]


def test_what_is_typed_reaches_the_command_as_values_of_fields(commands: typer.Typer) -> None:
    result = CliRunner().invoke(commands, ["tea", "-s", "a,b", "--epsilon", "1"])
    assert result.output == "tea {'secret': ('a', 'b'), 'epsilon': '1'}\n"


def test_a_command_may_word_the_help_of_a_field_for_itself(commands: typer.Typer) -> None:
    assert "Whom to protect." in CliRunner().invoke(commands, ["--help"]).output


def test_an_option_that_a_field_has_is_described_by_the_field_in_every_command() -> None:
    flags = {each.flag: each for each in FIELDS}
    for command in app.registered_commands:
        assert command.callback is not None
        for parameter in inspect.signature(command.callback, eval_str=True).parameters.values():
            for option in getattr(parameter.annotation, "__metadata__", ()):
                for name in getattr(option, "param_decls", None) or ():
                    each = flags.get(name)
                    if each is not None and each.name not in OF_THEIR_OWN:
                        assert option.metavar == field_option(each.name).metavar, (command.callback, name)


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


def test_fields_of_a_command_are_those_that_name_it() -> None:
    assert "unknown" in fields_of("apply")
    assert "unknown" not in fields_of("sanitise")
    assert "seed" not in fields_of("sanitise", {"seed"})
    assert set(fields_of("design")) <= BY_NAME.keys()


def test_another_command_takes_the_request_of_a_release_but_not_its_output(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text('table = "t.csv"\nsecret = "s"\npublish = "x"\nfactor = 2.0\ninto = "out"\nforce = true\n')
    spec = build_spec(str(path), {}, epsilon=1.0)
    assert (spec.table, spec.secret, spec.factor, spec.epsilon) == (str(tmp_path / "t.csv"), ("s",), 2.0, None)
    assert (spec.into, spec.force) == (None, False)
    assert build_spec(str(path), {"epsilon": 3}, epsilon=1.0).epsilon == 3
    assert build_spec(str(path), {}).into == tmp_path / "out"
