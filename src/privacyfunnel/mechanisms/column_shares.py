r"""The shares of the published columns, where their owner publishes them as well.

For every column j the number of rows with each of its labels, :math:`n_{jl}`, each column adding up to the n rows that
the protocol was made for. The numbers are exact, so that whoever has them can calibrate estimates of other tables to
them; what they give away stands in docs/limits.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.model.joint import Joint


@dataclass(frozen=True, slots=True, eq=False)
class ColumnShares:
    """How many rows have each label of each published column."""

    counts: tuple[IntArray, ...]

    @classmethod
    def from_joint(cls, joint: Joint) -> ColumnShares:
        """Those of a table.

        >>> ColumnShares.from_joint(Joint.from_counts([[1, 2], [3, 4]])).counts
        (array([4, 6]),)
        """
        rows = joint.weights.sum(axis=0)
        return cls(
            tuple(
                np.bincount(joint.combos[:, j], weights=rows, minlength=len(at.labels)).astype(np.int64)
                for j, at in enumerate(joint.attributes)
            )
        )

    @property
    def rows(self) -> int:
        """n."""
        return int(self.counts[0].sum())

    def share(self, column: int) -> FloatArray:
        """The share of each label of a column."""
        return np.asarray(self.counts[column] / self.rows)

    def equals(self, other: ColumnShares) -> bool:
        """Whether both say the same."""
        return len(self.counts) == len(other.counts) and all(map(np.array_equal, self.counts, other.counts))


def shares_to_json(shares: ColumnShares | None) -> dict[str, Any]:
    """As they stand in the protocol file: a list per column, in the order of its labels."""
    return {} if shares is None else {"shares": [counts.tolist() for counts in shares.counts]}


def shares_from_json(content: Mapping[str, Any], domain: Domain) -> ColumnShares | None:
    """Those that a protocol file states, if it does."""
    stated: Sequence[Sequence[int]] | None = content.get("shares")
    if stated is None:
        return None
    labels, totals = [len(at.labels) for at in domain.attributes], {sum(counts) for counts in stated}
    if [len(counts) for counts in stated] != labels or len(totals) != 1 or totals == {0}:
        raise ProtocolFileError(
            "shares must be a number of rows for every label of every column, each column adding up to the same; they "
            "are not."
        )
    return ColumnShares(tuple(np.array(counts, dtype=np.int64) for counts in stated))
