"""`python -m privacyfunnel.spark`: design, apply and sanitise with the words of the command line, on a cluster."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privacyfunnel.cli import words
from privacyfunnel.cli.apply import content as applied_content
from privacyfunnel.cli.apply import of_rows
from privacyfunnel.cli.apply import told as applied_told
from privacyfunnel.cli.asked import Asked, Sent
from privacyfunnel.cli.design import content as designed_content
from privacyfunnel.cli.design import lines as designed_lines
from privacyfunnel.cli.design import told as designed_told
from privacyfunnel.cli.frame import HELP, Json, answer
from privacyfunnel.cli.options import Delimiter, Force
from privacyfunnel.cli.reading import Coarsening
from privacyfunnel.cli.release_options import Unknown, UnknownOption
from privacyfunnel.cli.spread import spread

CALLED = "python -m privacyfunnel.spark"
commands = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": sorted(HELP), "max_content_width": 110},
)


class Format(StrEnum):
    """The formats in which Spark writes rows."""

    PARQUET = "parquet"
    CSV = "csv"


Name = Annotated[
    str | None,
    typer.Argument(
        help="What Spark reads: files by the end of their name (.parquet, .csv, .tsv, .orc, .json), at any address it "
        "knows, or a table of its catalogue.",
        metavar="[TABLE]",
    ),
]
SelectOption = Annotated[
    str | None,
    typer.Option("--query", help="The rows that are meant, in Spark's SQL: select … from …", metavar="SELECT"),
]
FormatOption = Annotated[Format, typer.Option("--format", help="The output's format.")]


@commands.callback(epilog="It runs where spark-submit says, or on this machine. Everything else: privacyfunnel --help.")
def _spark() -> None:
    """Publish a table of Spark without giving away its secret column."""


@commands.command()
@spread
def design(
    table: Name = None,
    *,
    into: Annotated[Path, typer.Option("--into", help="The protocol file, such as protocol.json.")],
    asked: Asked,
    coarsening: Coarsening,
    query: SelectOption = None,
    delimiter: Delimiter = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make and certify the protocol from counts that the cluster makes, and draw nothing."""
    from privacyfunnel.release.design import design_file
    from privacyfunnel.spark import folders, sessions

    order = asked.placed(coarsening)
    with sessions.running() as session:
        df = sessions.table(session, table, query, delimiter)
        source = folders.Counts(df, (*order.secret, *order.publish))
        found = design_file(source, into, order, counts=source.counts, force=force)
    answer(as_json, designed_content(found), designed_told(found, CALLED))


@commands.command()
@spread
def apply(
    protocol: Annotated[Path, typer.Argument(readable=False, help="The protocol.json that design or sanitise wrote.")],
    table: Name = None,
    *,
    into: Annotated[str, typer.Option("--into", help="The folder of sanitised rows that Spark is to write.")],
    unknown: UnknownOption = Unknown.ERROR,
    sent: Sent,
    query: SelectOption = None,
    delimiter: Delimiter = None,
    format_: FormatOption = Format.PARQUET,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw the rows of a table from a protocol that was designed before, where they lie."""
    from privacyfunnel.laws.sealing import SealedProtocol
    from privacyfunnel.spark import folders, sessions
    from privacyfunnel.spark.places import Files

    sealed = SealedProtocol.load(protocol)
    sending = sent.sending(unknown.value)
    with sessions.running() as session:
        df = sessions.table(session, table, query, delimiter)
        found = folders.applied(sealed, df, sending, Files(into, format_.value, force))
    found = replace(found, protocol_file=protocol)
    answer(as_json, applied_content(found), applied_told(found))


@commands.command()
@spread
def sanitise(
    table: Name = None,
    *,
    into: Annotated[str, typer.Option("--into", help="The folder for the rows, protocol.json and codebook.csv.")],
    asked: Asked,
    coarsening: Coarsening,
    sent: Sent,
    query: SelectOption = None,
    delimiter: Delimiter = None,
    format_: FormatOption = Format.PARQUET,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Publish columns of a table so that nobody's belief about the secret moves by more than a factor of e^ε."""
    from privacyfunnel.spark import folders, sessions
    from privacyfunnel.spark.places import Files

    order = asked.placed(coarsening, sent.sending())
    with sessions.running() as session:
        df = sessions.table(session, table, query, delimiter)
        found, done = folders.sanitised(df, order, Files(into, format_.value, force, described=True))
    lines = [("rows", f"{done.rows:,}, published as {done.table}"), *designed_lines(found), *of_rows(done)]
    not_promised = dict.fromkeys((*found.not_promised, *done.not_promised))
    content = {**applied_content(done), **designed_content(found), "not_promised": [*not_promised]}
    answer(as_json, content, "\n".join([words.facts(lines), "not promised", *(f"  - {said}" for said in not_promised)]))
