"""Options made from the fields of a spec, and the help that shows the common ones first.

`takes_spec("secret", "publish")` makes of `scan(*, given: Given)` a command with one option per field; `given` holds
the values that the user gave, by field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from privacyfunnel.errors import ParameterError
from privacyfunnel.spec import FIELDS, ReleaseSpec, SpecField
from privacyfunnel.spec.release_spec import known_values, parse_options

Given = dict[str, Any]  # what was given on the command line, by field
GIVEN = "given"
TOML = ".toml"
OTHER, ARGUMENTS = "Other", "Arguments"
_SHOW_ALL = "privacyfunnel.help_all"
_SIZES = {"epsilon", "factor"}  # of which one is given
_OF_A_RELEASE = {"Output", "Published rows"}  # groups that concern a release alone


def _show_all(context: typer.Context, value: bool) -> None:
    if value:
        context.meta[_SHOW_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show this message with all options.")
]
TABLES = ".csv, .tsv (also .gz), .parquet, .arrow, .xlsx, .dta, .sav, .sas7bdat or .jsonl"
DATABASES = "with --query a DuckDB or SQLite file, or postgresql://user@host/name"
TableOrDatabase = Annotated[str, typer.Argument(help=f"A table: {TABLES}; {DATABASES}.", metavar="TABLE")]
TableOrSpec = Annotated[
    str | None,
    typer.Argument(
        help=f"A table: {TABLES}; {DATABASES}; or a release.toml, which options change.", metavar="TABLE|RELEASE.TOML"
    ),
]
TableOrCounts = Annotated[
    str,
    typer.Argument(help="A table or a release.toml, with --secret and --publish; or a CSV file of counts."),
]
SaveSpec = Annotated[
    Path | None,
    typer.Option("--save-spec", help="Also write the request to this file, such as release.toml, to run it again."),
]


class SpecCommand(TyperCommand):
    """A command whose help shows its options in groups: the common ones, or all of them with --help-all."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            group, common = _place(param)
            if record is not None and (common or ctx.meta.get(_SHOW_ALL)):
                sections.setdefault(group, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _place(param: Any) -> tuple[str, bool]:
    """The group of a parameter, and whether it is common."""
    if param.param_type_name == "argument":
        return ARGUMENTS, True
    found = BY_NAME.get(param.name)
    return (OTHER, param.name != "save_spec_as") if found is None else (found.group, found.option.common)


BY_NAME: Mapping[str, SpecField] = {each.name: each for each in FIELDS}
TEXT_FILE = ("delimiter", "encoding", "decimal", "na", "sheet")  # how a file is written
READING = ("query", *TEXT_FILE, "person", "person_row")
COARSER = ("bins", "merge_rare", "merge_secrets")


def field_option(name: str, **changes: Any) -> Any:
    """The option of a field, as typer describes it; a command may change its help."""
    each = BY_NAME[name]
    option, names = each.option, [each.flag]
    if each.is_flag and each.default:
        names = [f"{each.flag}/{each.negated_flag}"]
    names += [option.short] if option.short else []
    names += [f"--{option.older}"] if option.older else []
    metavar = None if each.is_flag else option.metavar or f"[{'|'.join(each.choices)}]"
    return typer.Option(*names, **{"help": each.help, "metavar": metavar, **changes})


def with_default(name: str, default: str) -> str:
    """The help of a field, for a command that has another default."""
    return f"{BY_NAME[name].help.partition(' Default: ')[0]} Default: {default}."


def fields_of(command: str, leave_out: Collection[str] = ()) -> list[str]:
    """The names of the fields that sanitise, design or apply takes."""
    return [each.name for each in FIELDS if command in each.option.commands and each.name not in leave_out]


def takes_spec(*names: str, **helps: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that gets these fields of a spec as options, in place of its parameter `given`.

    `helps` are help texts by field where a command means something narrower than the spec does.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)

        @wraps(function)
        def run(*arguments: Any, help_all: bool = False, **options: Any) -> None:
            texts = {name: options.pop(name) for name in names}
            function(*arguments, **options, given=parse_options(texts))

        parameters: list[Parameter] = []
        for parameter in signature(function).parameters.values():
            if parameter.name == GIVEN:
                parameters += [_parameter(name, helps.get(name)) for name in names]
            else:
                parameters.append(parameter.replace(annotation=hints[parameter.name]))
        parameters.append(Parameter("help_all", Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll))
        vars(run)["__signature__"] = Signature(parameters)
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _parameter(name: str, help_text: str | None) -> Parameter:
    each = BY_NAME[name]
    kind: Any = bool if each.is_flag else list[str] if each.option.kind.repeats else str
    made = field_option(name) if help_text is None else field_option(name, help=help_text)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, made])


def build_spec(table: str | None, given: Given, **defaults: Any) -> ReleaseSpec:
    """The request: of the options, or that of a release.toml with the options in place of its own values.

    A command that makes no release has `defaults` of its own, and takes from a release.toml what describes the table,
    the promise and the use, not where a release goes.
    """
    stored: dict[str, Any] = {} if table is None else {"table": table}
    if table is not None and table.lower().endswith(TOML):
        from privacyfunnel.spec.text_forms import read_toml

        stored = known_values(read_toml(Path(table), FIELDS))
        if defaults:
            stored = {name: value for name, value in stored.items() if BY_NAME[name].group not in _OF_A_RELEASE}
    for earlier, later in ((defaults, stored | given), (stored, given)):
        if _SIZES & later.keys():
            for name in _SIZES:
                earlier.pop(name, None)
    return ReleaseSpec.from_mapping({**defaults, **stored, **given})


Force = Annotated[bool, field_option("force")]


def save_spec(spec: ReleaseSpec, path: Path | None) -> None:
    """Write the request where it was asked for; an existing file is replaced with force alone."""
    if path is None:
        return
    from privacyfunnel.atomic_files import atomic_file

    if path.suffix != TOML:
        raise ParameterError(f"--save-spec must name a file that ends in {TOML}; got '{path.name}'.")
    text = replace(spec, force=False, again=False).to_toml(path.parent)
    with atomic_file(path, force=spec.force, owner_only=True) as beside:
        beside.write_text(text, encoding="utf-8")
