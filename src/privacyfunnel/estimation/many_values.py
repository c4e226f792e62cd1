r"""Estimates over thousands of values, from one factorisation: singular values and profiles would take minutes.

With M the channel and E the chances of its outputs at some shares p, the unbiased estimate of least variance there has
the weights (`inversion`)

.. math:: g = E^{-1} M^\top J^{-1} w, \qquad J = M E^{-1} M^\top.

J may be singular, or too nearly so to tell. A sliver is added to it, and what comes out is put into :math:`M g = w`: a
share for which that holds is identified, and :math:`g \cdot \bar h` is an estimate without bias whatever else p is.
Of the others the outputs' own guarantee is told. All shares at once are :math:`J^{-1} M E^{-1} \bar h`; records are
completed by the distribution nearest to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, dense, lean, linalg
from privacyfunnel.estimation.intervals import EXACT, interval, spread
from privacyfunnel.estimation.inversion import on_simplex
from privacyfunnel.estimation.models import ChannelModel
from privacyfunnel.estimation.observation import ObservationModel, Observed
from privacyfunnel.estimation.profile import Guaranteed
from privacyfunnel.estimation.reading import Reading

MOST_ALGEBRA = 4 * 10**10  # a²(a + k) for a values and k statistics: half a minute of singular values and inverses
SINGULAR = 1e-12  # beside 1: the sliver
UNBIASED = 1e-7  # of a share: how far M g may be from w
STEPS = 100  # of the iterative Bayesian update: only variances depend on where it ends
AT_ONCE = 1 << 22  # weights that are worked on at a time


def are_many(reading: Reading) -> bool:
    """Whether singular values and profiles would take minutes."""
    a, k = reading.model.means.shape
    return not reading.law.members and a * a * (a + k) > MOST_ALGEBRA


@dataclass(frozen=True, slots=True, eq=False)
class ManyShares:
    """Estimates of r functions of p, their standard errors and intervals; of those not identified, bounds alone."""

    share: FloatArray
    error: FloatArray
    lower: FloatArray
    upper: FloatArray
    identified: BoolArray


def shares_of_many(
    model: ObservationModel, observed: Observed, functions: FloatArray, level: float, *, fixed: bool
) -> ManyShares:
    """The shares of each of r sets of values (0-1 `functions`, a × r), in the table (`fixed`) or in a population."""
    weights = Weights.near(model, observed)
    given, r = ChannelModel(weights.channel), functions.shape[1]
    share, error, lower, upper = np.zeros(r), np.zeros(r), np.zeros(r), np.ones(r)
    identified = np.zeros(r, dtype=np.bool_)
    for some in weights.pieces(r):
        g, told = weights.of(functions[:, some])
        mine, g = some[told], g[:, told]
        around = spread(given, g, weights.p, observed.rows, fixed=fixed)
        unbiased = observed.statistics @ g
        lower[mine], upper[mine] = interval(unbiased, around, level)
        share[mine], error[mine], identified[mine] = unbiased, np.sqrt(around.variance), True
    if fixed:
        certain = Guaranteed.of(model.likelihood(observed), observed.counts, functions)
        lower, upper = np.clip(lower, certain.lower, certain.upper), np.clip(upper, certain.lower, certain.upper)
        lower, upper = (  # a table holds whole rows
            np.floor(observed.rows * lower + EXACT) / observed.rows,
            np.ceil(observed.rows * upper - EXACT) / observed.rows,
        )
    return ManyShares(np.clip(share, lower, upper), error, lower, upper, identified)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A channel and the factor of J at some shares."""

    channel: Matrix
    p: FloatArray
    seen: FloatArray  # 1 / E, 0 for outputs that never come
    factor: FloatArray  # L of √p J √p = L Lᵀ

    @classmethod
    def near(cls, model: ObservationModel, observed: Observed) -> Weights:
        """At shares that make what was seen likely."""
        channel = lean(model.means)
        return cls.at(channel, _likely(channel, observed))

    @classmethod
    def at(cls, channel: Matrix, p: FloatArray) -> Weights:
        root, second = np.sqrt(p), p @ channel
        seen = np.divide(1.0, second, out=np.zeros_like(second), where=second > 0)
        scaled = channel * root[:, None] * np.sqrt(seen)
        J = np.asarray(dense(scaled @ scaled.T))
        J[np.diag_indices_from(J)] += SINGULAR
        return cls(channel, p, seen, linalg.cholesky(J, lower=True, overwrite_a=True))

    def of(self, functions: FloatArray) -> tuple[FloatArray, BoolArray]:
        """g (k × r), and for which functions w it is unbiased."""
        root = np.sqrt(self.p)[:, None]
        inside = root * linalg.cho_solve((self.factor, True), root * functions, overwrite_b=True)
        g = self.seen[:, None] * (self.channel.T @ inside)
        return g, np.asarray(np.abs(self.channel @ g - functions).max(axis=0) <= UNBIASED)

    def pieces(self, r: int) -> list[IntArray]:
        """The numbers of r functions, so many of them together as are worked on at a time."""
        return np.array_split(np.arange(r), 1 + r * self.channel.shape[1] // AT_ONCE)

    def hidden(self) -> int:
        """How many of all shares are not identified."""
        every = np.eye(len(self.p))
        return sum(int((~self.of(every[:, some])[1]).sum()) for some in self.pieces(len(every)))

    def nearest(self, statistics: FloatArray) -> FloatArray:
        """The distribution nearest to the unbiased estimates of all shares."""
        root, right = np.sqrt(self.p), self.channel @ (self.seen * statistics)
        return on_simplex(root * linalg.cho_solve((self.factor, True), root * right))


def _likely(channel: Matrix, observed: Observed) -> FloatArray:
    """About the most likely shares, with one more row of every value."""
    a = channel.shape[0]
    p = np.full(a, 1 / a)
    for _ in range(STEPS):
        chance = p @ channel
        p = p * (channel @ np.divide(observed.statistics, chance, out=np.zeros_like(chance), where=chance > 0))
        p /= p.sum()
    return np.asarray((observed.rows * p + 1) / (observed.rows + a))
