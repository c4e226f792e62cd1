r"""Counts with noise: all that a private design knows of a table.

For a table of n rows and a budget ε_c there are published, n and the domain being public,

.. math:: R_s = n_s + W_s, \quad \Pr[W = k] \propto e^{-|k| t \varepsilon_c / 2}, \qquad
   M_{s,x} = n_{s,x} + Z_{s,x}, \quad \Pr[Z = k] \propto e^{-|k| (1 - t) \varepsilon_c / 2}.

Another row in the place of one changes two of each by one: by e^{tε_c} and e^{(1 − t)ε_c} at most, so both together are
ε_c-differentially private, and so is whatever is computed from them. The R have noise of their own so that they may say
which secrets are rare, and how sure to be of which, without saying anything of the noise in the M. Of two secrets none
is grouped, and where values are few the M say more of n_s than the R: t is 1/40 there, else 1/10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import DistributionError, ParameterError
from privacyfunnel.model.published.noise import NoiseSource

FOR_TOTALS, FOR_TOTALS_OF_TWO = Fraction(1, 10), Fraction(1, 40)  # of ε_c
FEW_VALUES = 32  # cells of one secret whose noise together is less than that of a total


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """What a private design knows of a table: how many rows it has, and counts with noise."""

    cells: IntArray  # c × a
    totals: IntArray  # c
    rows: int
    epsilon: Fraction  # ε_c
    cell_rate: Fraction
    total_rate: Fraction

    @classmethod
    def draw(cls, counts: IntArray, epsilon: Fraction, source: Callable[[Fraction], NoiseSource]) -> NoisyCounts:
        """The counts of a table, with noise from this source."""
        c, a = counts.shape
        share = FOR_TOTALS_OF_TWO if c == 2 and a <= FEW_VALUES else FOR_TOTALS
        for_cells, for_totals = source((1 - share) * epsilon / 2), source(share * epsilon / 2)
        return cls(
            cells=counts + np.array(for_cells.draw(c * a), dtype=np.int64).reshape(c, a),
            totals=counts.sum(axis=1) + np.array(for_totals.draw(c), dtype=np.int64),
            rows=int(counts.sum()),
            epsilon=epsilon,
            cell_rate=for_cells.rate,
            total_rate=for_totals.rate,
        )

    @property
    def weights(self) -> IntArray:
        """A table to design for: negative counts are none, and every secret and value has a row at least."""
        weights = np.maximum(self.cells, 0)
        for s in np.flatnonzero(weights.sum(axis=1) == 0):
            weights[s, self.cells[s].argmax()] = 1
        for x in np.flatnonzero(weights.sum(axis=0) == 0):
            weights[self.totals.argmax(), x] = 1
        return weights

    def to_json(self) -> dict[str, Any]:
        """As it stands in a protocol file."""
        return {
            "epsilon": str(self.epsilon),
            "cells": self.cells.tolist(),
            "totals": self.totals.tolist(),
            "cell_rate": str(self.cell_rate),
            "total_rate": str(self.total_rate),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], rows: int) -> NoisyCounts:
        """The counts that a protocol file states."""
        return cls(
            cells=np.array(content["cells"], dtype=np.int64),
            totals=np.array(content["totals"], dtype=np.int64),
            rows=rows,
            epsilon=Fraction(content["epsilon"]),
            cell_rate=Fraction(content["cell_rate"]),
            total_rate=Fraction(content["total_rate"]),
        )

    def __post_init__(self) -> None:
        shaped = self.cells.ndim == 2 and self.totals.shape == (len(self.cells),) and self.cells.size > 0
        if not shaped or self.rows < 1 or not 0 < self.cell_rate + self.total_rate <= self.epsilon / 2:
            raise DistributionError("Noisy counts must fill a table, with the noise of their ε; these do not.")


def check_design_epsilon(epsilon: float | str | Fraction) -> Fraction:
    """ε_c as the decimal fraction it is written as, or one sentence that says why it is none.

    >>> check_design_epsilon(0.5)
    Fraction(1, 2)
    """
    try:
        exact = Fraction(str(epsilon))
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if isinstance(epsilon, bool) or not Fraction(1, 1000) <= exact <= 100:
        raise ParameterError(
            f"The ε of a private design must lie between 0.001 and 100; it is {epsilon}. Use 0.1 to 1 as a rule."
        )
    return exact
