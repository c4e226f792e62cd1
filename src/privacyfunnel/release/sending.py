"""How the rows of a table go out, whichever protocol draws them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.mechanisms.sampling import RowKey

if TYPE_CHECKING:
    from privacyfunnel.release.findings.kept_columns import KeptColumn

ERROR, BLUR, DROP = "error", "blur", "drop"
UNKNOWN = (ERROR, BLUR, DROP)  # what becomes of rows that hold what the protocol does not know
ProgressCallback = Callable[[str, int], None]  # told what is being done, and with how many rows


@dataclass(frozen=True, slots=True)
class Sending:
    """What is asked of the rows on their way out."""

    keep: tuple[str, ...] = ()  # columns that pass through, unprotected
    sets: str = "column"
    keep_order: bool = False  # publish the rows in the order of the table, which may give the secret away
    seed: int | None = None  # for tests only
    row_id: str | None = None  # the column that tells rows apart; else they are addressed by their position
    key: RowKey | None = None  # the owner's, for releases that draw unchanged people alike; else a fresh one
    unknown: str = ERROR

    def __post_init__(self) -> None:
        if self.unknown not in UNKNOWN:
            raise ParameterError(
                f"Rows that a protocol does not know are one of {', '.join(UNKNOWN)}; not '{self.unknown}'."
            )
        if self.key is not None and self.row_id is None:
            raise ParameterError(
                "A key that is kept needs --row-id: rows that are addressed by their position would share their words "
                "with whoever stands there next time. Name the column that tells rows apart."
            )
        if self.key is not None and self.seed is not None:
            raise ParameterError("Rows are drawn from a key file or from a seed, not from both. Leave one out.")

    def refuse_used(self, columns: Collection[str]) -> None:
        """Refuse a row id, or a column to keep, that is one of these, which are secret or published."""
        if self.row_id in columns:
            raise ColumnError(
                f"column '{self.row_id}' cannot tell rows apart and be secret or published too. Name a column of its "
                "own."
            )
        for name in self.keep:
            if name in columns:
                raise ColumnError(
                    f"column '{name}' cannot be kept as it is and be secret or published too. Name it once."
                )

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read besides what is secret and published."""
        also = () if self.row_id is None or self.row_id in self.keep else (self.row_id,)
        return (*self.keep, *also)


def column_tuple(columns: str | Sequence[str]) -> tuple[str, ...]:
    """One column or several, as they are named in Python.

    >>> column_tuple("age"), column_tuple(["age", "sex"])
    (('age',), ('age', 'sex'))
    """
    return (columns,) if isinstance(columns, str) else tuple(columns)


def kept_column_statements(
    keep: Sequence[str], columns: Sequence[KeptColumn], secret: str, *, order: bool
) -> list[str]:
    """What nobody should read into kept columns, nor into a kept order: a sentence each."""
    said = [f"Kept as they are, unprotected: {', '.join(keep)}."] if keep else []
    said += [f"The kept column {column.order_statement}." for column in columns if column.order_statement]
    if order:
        said.append(
            "The rows are in the order of the table. Whoever knows how it is ordered, or whose row is which, may "
            f"learn {secret} from that; the promise does not cover them."
        )
    return said
