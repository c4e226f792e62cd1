"""`python -m privacyfunnel.spark`: design, apply and sanitise with the words of the command line, on a cluster."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import HELP, Json, answer
from privacyfunnel.cli.apply_command import content as applied_content
from privacyfunnel.cli.apply_command import format_summary as applied_told
from privacyfunnel.cli.apply_command import row_facts
from privacyfunnel.cli.design_command import content as designed_content
from privacyfunnel.cli.design_command import format_summary as designed_told
from privacyfunnel.cli.design_command import lines as designed_lines
from privacyfunnel.cli.option_groups import expand_groups
from privacyfunnel.cli.options import Delimiter, Force
from privacyfunnel.cli.release_options import UnknownOption, UnknownPolicy
from privacyfunnel.cli.request_options import DesignRequest, OutputRequest
from privacyfunnel.cli.table_options import CoarseningOptions

PROGRAM_NAME = "python -m privacyfunnel.spark"
commands = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": sorted(HELP), "max_content_width": 110},
)


class SparkFormat(StrEnum):
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
FormatOption = Annotated[SparkFormat, typer.Option("--format", help="The output's format.")]


@commands.callback(epilog="It runs where spark-submit says, or on this machine. Everything else: privacyfunnel --help.")
def _spark() -> None:
    """Publish a table of Spark without giving away its secret column."""


@commands.command()
@expand_groups
def design(
    table: Name = None,
    *,
    into: Annotated[Path, typer.Option("--into", help="The protocol file, such as protocol.json.")],
    asked: DesignRequest,
    coarsening: CoarseningOptions,
    query: SelectOption = None,
    delimiter: Delimiter = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make and certify the protocol from counts that the cluster makes, and draw nothing."""
    from privacyfunnel.release.design import design_file
    from privacyfunnel.spark import folders, spark_session

    order = asked.to_spec(coarsening)
    with spark_session.open_session() as session:
        df = spark_session.read_table(session, table, query, delimiter)
        source = folders.ClusterCounts(df, (*order.secret, *order.publish))
        found = design_file(source, into, order, counts=source.counts, force=force)
    answer(as_json, designed_content(found), designed_told(found, PROGRAM_NAME))


@commands.command()
@expand_groups
def apply(
    protocol: Annotated[Path, typer.Argument(readable=False, help="The protocol.json that design or sanitise wrote.")],
    table: Name = None,
    *,
    into: Annotated[str, typer.Option("--into", help="The folder of sanitised rows that Spark is to write.")],
    unknown: UnknownOption = UnknownPolicy.ERROR,
    sent: OutputRequest,
    query: SelectOption = None,
    delimiter: Delimiter = None,
    format_: FormatOption = SparkFormat.PARQUET,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw the rows of a table from a protocol that was designed before, where they lie."""
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.spark import folders, spark_session
    from privacyfunnel.spark.output_folder import OutputFiles

    sealed = SealedProtocol.load(protocol)
    sending = sent.to_output_spec(unknown.value)
    with spark_session.open_session() as session:
        df = spark_session.read_table(session, table, query, delimiter)
        found = folders.apply_to_folder(sealed, df, sending, OutputFiles(into, format_.value, force))
    found = replace(found, protocol_file=protocol)
    answer(as_json, applied_content(found), applied_told(found))


@commands.command()
@expand_groups
def sanitise(
    table: Name = None,
    *,
    into: Annotated[str, typer.Option("--into", help="The folder for the rows, protocol.json and codebook.csv.")],
    asked: DesignRequest,
    coarsening: CoarseningOptions,
    sent: OutputRequest,
    query: SelectOption = None,
    delimiter: Delimiter = None,
    format_: FormatOption = SparkFormat.PARQUET,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Publish columns of a table so that nobody's belief about the secret moves by more than a factor of e^ε."""
    from privacyfunnel.spark import folders, spark_session
    from privacyfunnel.spark.output_folder import OutputFiles

    order = asked.to_spec(coarsening, sent.to_output_spec())
    with spark_session.open_session() as session:
        df = spark_session.read_table(session, table, query, delimiter)
        found, done = folders.sanitise_to_folder(df, order, OutputFiles(into, format_.value, force, described=True))
    lines = [("rows", f"{done.rows:,}, published as {done.table}"), *designed_lines(found), *row_facts(done)]
    not_promised = dict.fromkeys((*found.not_promised, *done.not_promised))
    content = {**applied_content(done), **designed_content(found), "not_promised": [*not_promised]}
    answer(
        as_json,
        content,
        "\n".join([text_format.format_facts(lines), "not promised", *(f"  - {said}" for said in not_promised)]),
    )
