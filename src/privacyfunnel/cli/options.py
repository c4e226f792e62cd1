"""Options that several commands take, each described once."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from privacyfunnel.errors import check_average, check_epsilon, check_factor, check_positive
from privacyfunnel.spec.kinds import parse_confidence


class PromiseName(StrEnum):
    """The promises by name."""

    LIP = "lip"
    LDP = "ldp"
    SRLIP = "srlip"


EPSILON = typer.Option(
    "--epsilon",
    "-e",
    help="How far a belief about the secret may move: by a factor of e^ε. At ε = 1 one of 30 % may become 74 %, at 0.5 "
    "49 %, at 0.1 33 % (docs/choosing.md).",
    parser=check_epsilon,
    metavar="ε",
)
OptionalEpsilon = Annotated[float | None, EPSILON]
Factor = Annotated[
    float | None,
    typer.Option(
        "--factor",
        help="The same as a factor: --factor 2 is ε = ln 2, so that no belief more than doubles.",
        parser=check_factor,
        metavar="F",
    ),
]
AverageOption = Annotated[
    float | None,
    typer.Option(
        "--average",
        help="At most so many nats may be told about the secret on average, I(S;Y), beside what is promised.",
        parser=check_average,
        metavar="NATS",
    ),
]
PromiseOption = Annotated[
    PromiseName,
    typer.Option(
        "--promise", help="lip: against everybody; ldp: between any two secrets; srlip: lip with known values."
    ),
]
Population = Annotated[
    float | None,
    typer.Option(
        "--population",
        help="Keep the promise, with this confidence, for the people whom the rows are a random sample of.",
        parser=parse_confidence,
        metavar="95%",
    ),
]
MethodOption = Annotated[
    str,
    typer.Option(
        "--method",
        help="optimal, randomised-response, unary-encoding, conditional-reporting, forced-response, product or chain.",
    ),
]
FOR_HELP = (
    "What the table is best for: information, values (the right value most often), distance (or distance:squared, "
    "distance:costs.csv), statistics (all shares, or statistics:COLUMN,…, statistics:queries.csv or "
    "statistics:weights.csv), balanced (statistics with 99 % of the information, or balanced:0.97)."
)
For = Annotated[str, typer.Option("--for", help=FOR_HELP, metavar="USE[:…]")]
Ordered = Annotated[
    list[str] | None,
    typer.Option(
        "--ordered",
        help="A column whose values stand on a line, size=S,M,L; numbers and bins do by themselves.",
        metavar="COLUMN=ORDER",
    ),
]
SeesSecret = Annotated[bool, typer.Option("--sees-secret", help="Let the protocol look at the secret as well.")]
Gap = Annotated[
    float,
    typer.Option(
        "--gap",
        help="Stop when the proof is within this many nats of the optimum.",
        parser=partial(check_positive, "gap"),
        metavar="NATS",
    ),
]


def _time_limit(help_text: str) -> Any:
    return typer.Option("--time-limit", help=help_text, parser=partial(check_positive, "time limit"), metavar="SECONDS")


TimeLimit = Annotated[
    float | None,
    _time_limit(
        "Stop after so many seconds with the best so far and its bound. "
        "Default: 60 seconds of counted work, alike on all machines."
    ),
]
TimeLimitOfAll = Annotated[
    float | None,
    _time_limit("Stop after so many seconds, of all points together, with the best so far; 60 each where left out."),
]
Table = Annotated[
    Path,
    typer.Argument(
        readable=False, help="A table: .csv, .tsv (also .gz), .parquet, .arrow, .xlsx, .dta, .sav, .sas7bdat or .jsonl."
    ),
]
TableOrDatabase = Annotated[
    str,
    typer.Argument(
        help="A table: .csv, .tsv (also .gz), .parquet, .arrow, .xlsx, .dta, .sav, .sas7bdat or .jsonl; or, with "
        "--query, a DuckDB or SQLite file, or postgresql://user@host/name.",
        metavar="TABLE",
    ),
]
TableOrSpec = Annotated[
    str | None,
    typer.Argument(
        help="A table: .csv, .tsv (also .gz), .parquet, .arrow, .xlsx, .dta, .sav, .sas7bdat or .jsonl; with --query a "
        "DuckDB or SQLite file, or postgresql://user@host/name; or a release.toml, which options change.",
        metavar="TABLE|RELEASE.TOML",
    ),
]
QueryOption = Annotated[
    str | None,
    typer.Option("--query", help="The rows of a database that are meant: select … from …", metavar="SELECT"),
]
Secret = Annotated[
    list[str],
    typer.Option(
        "--secret", "-s", help="The secret column; several by comma (a name with a comma in quotes) or repetition."
    ),
]
Publish = Annotated[list[str], typer.Option("--publish", "-p", help="A column to publish; several likewise.")]
BinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bin",
        help="Coarser values: numbers age=0,18,65, age=quantiles:8, price=width:1000, age=top:85 or "
        "age=bottom:18,top:85; dates visit=year (quarter, month, week, weekday; month:dmy where day and month could be "
        "swapped); codes icd=prefix:3; any icd=map:groups.csv (value;group;…; map:groups.csv:2 for a coarser level); "
        "or age=values.",
        metavar="COLUMN=HOW",
    ),
]
MergeRareOption = Annotated[
    list[str] | None,
    typer.Option(
        "--merge-rare",
        "--fewest",
        help="Publish values that fewer than so many rows hold as 'other', and merge such bins with their neighbours: "
        "10 for all published columns, zip=10 for one.",
        metavar="ROWS",
    ),
]
MergeSecretsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--merge-secrets",
        help="Read values of the secret as one: 'a,b,c=other'. Nothing is then promised that tells a, b and c apart.",
        metavar="VALUES=NAME",
    ),
]
Delimiter = Annotated[str | None, typer.Option("--delimiter", help="What separates fields, if it is not found.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="The text's encoding, if it is not found.")]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", help="The decimal mark of numbers, if it is not found: . or ,", metavar="MARK"),
]
Sheet = Annotated[str | None, typer.Option("--sheet", help="The sheet of an .xlsx file, if it is not the first.")]
Person = Annotated[
    str | None,
    typer.Option("--person", help="The column that tells persons apart: each is one row, if all of theirs are alike."),
]
PersonRow = Annotated[
    str | None, typer.Option("--person-row", help="first or last: which row of a person counts where they differ.")
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        "--na",
        help="A text that means a missing number or date, besides NA, N/A, NaN, null, None, nil, . - -- ? and nothing; "
        "several by comma or repetition.",
        metavar="TEXT",
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger", readable=False, help="The owner's memory of releases, if it is not the one beside the table."
    ),
]
SignedBy = Annotated[
    Path | None,
    typer.Option("--signed-by", readable=False, help="The owner's public key: refuse files that it did not sign."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


def parse_epsilons(text: str) -> tuple[float, ...]:
    """Several ε with commas between.

    >>> parse_epsilons("0.5,1")
    (0.5, 1.0)
    """
    read: Callable[[Any], float] = check_epsilon
    return tuple(read(part) for part in text.split(","))


def parse_averages(text: str) -> tuple[float, ...]:
    """Several amounts of information with commas between.

    >>> parse_averages("0,0.05")
    (0.0, 0.05)
    """
    read: Callable[[Any], float] = check_average
    return tuple(read(part) for part in text.split(","))
