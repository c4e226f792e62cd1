"""`python -m privacyfunnel.spark`: design, apply and sanitise with the words of the command line, on a cluster."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privacyfunnel.cli.application import HELP, Json, answer
from privacyfunnel.cli.apply_command import content as applied_content
from privacyfunnel.cli.apply_command import format_summary as applied_told
from privacyfunnel.cli.design_command import content as designed_content
from privacyfunnel.cli.design_command import format_summary as designed_told
from privacyfunnel.cli.design_command import protection_facts
from privacyfunnel.cli.release_summary import Details, format_details
from privacyfunnel.cli.spec_options import Given, SpecCommand, build_spec, fields_of, takes_spec
from privacyfunnel.spec import FIELDS

# What a cluster cannot do: read one file's format, look at the secret, draw reports or from a seed.
ELSEWHERE = (
    *("sees_secret", "with_shares", "domain", "model_table", "design_noise", "seed", "counts"),
    *(each.name for each in FIELDS if each.group == "Reading the table" and each.name != "delimiter"),
    *("excel_safe", "report", "sign", "format", "try_", "anyway", "for_whom"),
    *("into_table", "parts"),
)
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
    typer.Option("--query", help="The rows, as a query in Spark SQL: select … from …", metavar="SELECT"),
]
FormatOption = Annotated[SparkFormat, typer.Option("--format", help="The output's format.")]


@commands.callback(epilog="It runs where spark-submit says, or on this machine. Everything else: privacyfunnel --help.")
def _spark() -> None:
    """Publish a table of Spark without giving away its secret column."""


@commands.command(cls=SpecCommand)
@takes_spec(*fields_of("design", ELSEWHERE))
def design(table: Name = None, *, given: Given, query: SelectOption = None, as_json: Json = False) -> None:
    """Make and certify the protocol from counts that the cluster makes, and draw nothing."""
    from privacyfunnel.release.design import design_file
    from privacyfunnel.spark import data_frames, spark_session

    spec = build_spec(None, given).require_columns()
    with spark_session.open_session() as session:
        df = spark_session.read_table(session, table, query, spec.delimiter)
        source = data_frames.ClusterCounts(df, (*spec.secret, *spec.publish), query or table or "")
        found = design_file(source, replace(spec, counts=source.counts))
    answer(as_json, designed_content(found), designed_told(found, PROGRAM_NAME))


@commands.command(cls=SpecCommand)
@takes_spec(*fields_of("apply", (*ELSEWHERE, "bins", "merge_secrets", "into")))
def apply(
    protocol: Annotated[Path, typer.Argument(readable=False, help="The protocol.json that design or sanitise wrote.")],
    table: Name = None,
    *,
    into: Annotated[str, typer.Option("--into", help="The folder of sanitised rows that Spark is to write.")],
    given: Given,
    query: SelectOption = None,
    format_: FormatOption = SparkFormat.PARQUET,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Draw the rows of a table from a protocol that was designed before, on the cluster."""
    from privacyfunnel.release.apply import load_verified
    from privacyfunnel.spark import data_frames, spark_session
    from privacyfunnel.spark.output_folder import OutputFiles

    spec = build_spec(None, given)
    sealed, signer = load_verified(protocol, spec)
    with spark_session.open_session() as session:
        df = spark_session.read_table(session, table, query, spec.delimiter)
        files, name = OutputFiles(into, format_.value, spec.force), query or table or ""
        found = data_frames.apply_to_folder(sealed, df, spec, files, name=name, protocol=protocol)
    found = replace(found, protocol_file=protocol, signer=signer)
    answer(as_json, applied_content(found), applied_told(found, details=details))


@commands.command(cls=SpecCommand)
@takes_spec(*fields_of("sanitise", (*ELSEWHERE, "into")))
def sanitise(
    table: Name = None,
    *,
    into: Annotated[str, typer.Option("--into", help="The folder for the rows, protocol.json and codebook.csv.")],
    given: Given,
    query: SelectOption = None,
    format_: FormatOption = SparkFormat.PARQUET,
    as_json: Json = False,
) -> None:
    """Publish columns of a table so that beliefs about the secret that start from the prior move by at most e^ε."""
    from privacyfunnel.report.summary_lines import file_text
    from privacyfunnel.spark import data_frames, spark_session
    from privacyfunnel.spark.output_folder import OutputFiles

    spec = build_spec(None, given).require_columns()
    with spark_session.open_session() as session:
        df = spark_session.read_table(session, table, query, spec.delimiter)
        files = OutputFiles(into, format_.value, spec.force, described=True)
        found, done = data_frames.sanitise_to_folder(df, spec, files, name=query or table or "")
    not_promised = dict.fromkeys((*found.not_promised, *done.not_promised))
    content = {**applied_content(done), **designed_content(found), "not_promised": [*not_promised]}
    lines = [("Published", file_text(done)), *protection_facts(found)]
    answer(as_json, content, format_details(lines, list(not_promised)))
