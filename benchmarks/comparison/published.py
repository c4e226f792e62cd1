"""What an arm gave away of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.comparison.tables import Codes
from privacyfunnel.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Published:
    """Records with weights, which may be below 0, and what a linked one tells."""

    records: Codes  # n × columns, for counting with the weights
    weights: FloatArray
    rows: Codes  # what a user trains a classifier on
    seconds: float
    memory: float | None = None
    secrets: Codes | None = None  # of the rows, where the release shows the secret
    guesses: Codes | None = None  # the likeliest secret of every row of the table, by its linked record
    leak: float | None = None  # the largest |ln p(s|y)/p(s)| of a linked record; none where no record is linked
    known_model: Callable[[Codes], Codes] | None = None  # the likeliest secret of a record, by a published model
    linked_law: tuple[FloatArray, FloatArray] | None = (
        None  # of every row: chance to be real; n × secrets: if it is not
    )
    real: float | None = None  # the share of rows that show what they had
    tables: dict[tuple[int, ...], FloatArray] | None = None  # shares by the arm's own estimator, where it has one
    covariance: FloatArray | None = None  # of the weights, where records are cells and not rows
    joint: FloatArray | None = None  # p(s, y), where outputs are few
