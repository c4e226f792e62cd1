r"""Products and chains: the channel from some of the original columns to what their published columns show.

A product randomises each column by itself, so for columns J

.. math:: P(y^J \mid x) = \prod_{j \in J} q^j(y^j \mid x^j)

depends on :math:`x^J` only. A chain publishes step by step: what its first k steps show depends on the columns of these
steps only, and its chance is the product of the channels along the path of contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import SizeError
from privacyfunnel.laws.chain import ChainLaw
from privacyfunnel.laws.chain_step import arrivals
from privacyfunnel.laws.product import ProductLaw
from privacyfunnel.model.protocol import Labels

LARGEST_CHANNEL = 4 * 10**6  # entries: values × outputs; beyond it estimates take minutes
ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Columnwise:
    """The channel of some columns: inputs are their combinations that occur, outputs what they show together."""

    attributes: tuple[int, ...]
    combos: IntArray  # inputs × attributes
    channel: FloatArray
    unseen: int  # how many of the last outputs stand for what the protocol file does not tell: nothing shows them
    law: ProductLaw | ChainLaw
    columns: tuple[str, ...]  # the names of the attributes

    @classmethod
    def of(cls, law: ProductLaw | ChainLaw, names: Sequence[str], wanted: Sequence[int]) -> Columnwise:
        """The channel that tells about the attributes `wanted`; it may have to cover others with them.

        Raises
        ------
        SizeError
            If it is too large to estimate from.
        """
        covered = covering(law, wanted)
        combos, first = np.unique(law.combos[:, covered], axis=0, return_index=True)
        columns = tuple(names[j] for j in covered)
        outputs = (
            int(np.prod([float(len(law.columns[j])) for j in covered]))
            if isinstance(law, ProductLaw)
            else sum(len(step.context_of_output) for step in law.steps[: _steps(law, wanted)])
        )
        if len(combos) * outputs > LARGEST_CHANNEL:
            raise SizeError(
                f"Estimates of {' & '.join(names[j] for j in wanted)} need a channel of {len(combos):,} combinations × "
                f"{outputs:,} outputs; at most {LARGEST_CHANNEL:,} entries are worked with. Ask for fewer columns."
            )
        if isinstance(law, ProductLaw):
            return cls(covered, combos, _kronecker(law, covered, combos), 0, law, columns)
        told, rest = _paths(law, _steps(law, wanted), first)
        return cls(covered, combos, np.hstack([told, rest]), rest.shape[1], law, columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The published columns that are looked at."""
        return self.columns

    @property
    def rows_at_once(self) -> int:
        """How many rows are decoded together."""
        return ROWS_AT_ONCE

    def drawn(self, rows: pl.DataFrame) -> NDArray[np.int64]:
        """The output that each row shows, n × 1; −1 where it is none of the protocol's."""
        codes = np.stack(
            [_codes(rows[name], self.law.columns[j]) for name, j in zip(self.columns, self.attributes, strict=True)],
            axis=1,
        )
        if isinstance(self.law, ChainLaw):
            return _followed(self.law, self.attributes, codes)[:, None]
        shape = [len(self.law.columns[j]) for j in self.attributes]
        known = (codes >= 0).all(axis=1)
        return np.where(known, np.ravel_multi_index(tuple(np.maximum(codes, 0).T), shape), -1)[:, None]


def covering(law: ProductLaw | ChainLaw, wanted: Sequence[int]) -> tuple[int, ...]:
    """The attributes that must be looked at together to tell about those wanted."""
    if isinstance(law, ProductLaw):
        return tuple(sorted(wanted))
    return tuple(j for step in law.steps[: _steps(law, wanted)] for j in step.attributes)


def _steps(law: ChainLaw, wanted: Sequence[int]) -> int:
    """How many steps of the chain it takes to publish the attributes wanted."""
    return 1 + max(number for number, step in enumerate(law.steps) if set(step.attributes) & set(wanted))


def _kronecker(law: ProductLaw, covered: Sequence[int], combos: IntArray) -> FloatArray:
    """Row by row the products of the columns' own chances, outputs in C order."""
    rows = [law.factors[j].channel[combos[:, i]] for i, j in enumerate(covered)]
    return reduce(lambda left, right: (left[:, :, None] * right[:, None, :]).reshape(len(combos), -1), rows)


def _paths(law: ChainLaw, steps: int, inputs: IntArray) -> tuple[FloatArray, FloatArray]:
    """P(y | x) of all outputs of the last step, and of earlier ones that lead to contexts the file does not hold.

    Together they are everything that can happen, so each row sums to 1.
    """
    rest: list[FloatArray] = []
    for number, (step, chances) in enumerate(law.paths()):
        dense = np.asarray(chances[:, inputs].todense()).T
        if number + 1 == steps:
            return dense, np.hstack([np.zeros((len(inputs), 0)), *rest])
        leads_nowhere = np.setdiff1d(np.arange(len(step.context_of_output)), law.steps[number + 1].came_by)
        rest.append(dense[:, leads_nowhere])
    raise AssertionError("a chain has at least as many steps as were asked for")


def _codes(column: pl.Series, labels: Labels) -> NDArray[np.int64]:
    text = column.cast(pl.String).fill_null("")
    return text.cast(pl.Enum(labels), strict=False).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def _followed(law: ChainLaw, attributes: Sequence[int], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The output of the last step that each row's labels lead to; −1 where they lead nowhere."""
    place = {j: i for i, j in enumerate(attributes)}
    node = np.zeros(len(codes), dtype=np.int64)
    output = node
    for number, step in enumerate(law.steps[: _steps(law, attributes)]):
        if number:
            node = np.where(output >= 0, arrivals(step.came_by, output), -1)
        output = step.showing(node, codes[:, [place[j] for j in step.attributes]])
    return output
