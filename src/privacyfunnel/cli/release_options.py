"""Options of the commands that design, apply and release, each described once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

METHOD_HELP = (
    "auto, optimal, forced-response, chain, product, randomised-response, unary-encoding or conditional-reporting; "
    "auto is the optimum, or where too many combinations occur a forced response, or a chain for information."
)


AS_HELP = (
    "outcomes: the most likely value and a code, and a codebook; labels: groups of values in words; values: original "
    "categories."
)


class OutputForm(StrEnum):
    """What an output is published as."""

    OUTCOMES = "outcomes"
    LABELS = "labels"
    VALUES = "values"


class SetsFormat(StrEnum):
    """How the sets of unary encoding are written."""

    COLUMN = "column"
    INDICATORS = "indicators"


class NoiseChoice(StrEnum):
    """Where the noise of a private design comes from."""

    OWN = "own"
    OPENDP = "opendp"


class UnknownPolicy(StrEnum):
    """What becomes of rows that a protocol does not know."""

    ERROR = "error"
    BLUR = "blur"
    DROP = "drop"


AnyMethod = Annotated[str, typer.Option("--method", help=METHOD_HELP)]
ChainOrder = Annotated[
    list[str] | None, typer.Option("--order", help="For chain: the columns in the order they are published in.")
]
Budgets = Annotated[
    str | None,
    typer.Option("--budgets", help="For product: sound, paper, or an ε per column (0.2,0.3); searched if not given."),
]
AverageOnly = Annotated[
    bool, typer.Option("--average-only", help="Promise nothing but the average; the ε that results is stated.")
]
Keep = Annotated[list[str] | None, typer.Option("--keep", help="A column to pass through, unprotected.")]
AsOption = Annotated[OutputForm, typer.Option("--as", help=AS_HELP)]
SetsOption = Annotated[SetsFormat, typer.Option("--sets", help="Write sets as one column or 0/1 columns.")]
ExcelSafe = Annotated[
    bool, typer.Option("--excel-safe", help="Put an apostrophe before text that begins like a formula.")
]
WithShares = Annotated[
    bool,
    typer.Option("--with-shares", help="Publish the exact shares of each published column in protocol.json as well."),
]
Seed = Annotated[int | None, typer.Option("--seed", help="For tests only: not for publication.")]
DesignEpsilon = Annotated[
    str | None,
    typer.Option("--design-epsilon", help="Make the protocol from counts with noise of this ε.", metavar="ε"),
]
DomainOption = Annotated[
    Path | None, typer.Option("--domain", help="For a private design: the public labels and bins, as scan drafts.")
]
DesignNoise = Annotated[NoiseChoice, typer.Option("--design-noise", help="own, or opendp (an extra package).")]
RowId = Annotated[
    str | None,
    typer.Option(
        "--row-id", help="A column that tells rows apart: what a row becomes follows from it, not from its place."
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        readable=False,
        help="With --row-id: the owner's key (keygen --rows), so that unchanged people are drawn alike every time.",
    ),
]
UnknownOption = Annotated[
    UnknownPolicy,
    typer.Option(
        "--unknown",
        help="Rows that hold what the protocol does not know: error, blur (as if they held a random value) or drop.",
    ),
]
CountsColumn = Annotated[
    str | None,
    typer.Option("--counts", help="The table holds a row per combination; this column counts the rows it stands for."),
]
