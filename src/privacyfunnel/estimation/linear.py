r"""Linear estimates with the shortest interval that holds for every distribution, from all that is public.

Rows show mean statistics :math:`\bar h` with :math:`E \bar h = p M`; a published model shows besides noisy shares
:math:`c = p + Z` of the same table, with noise of known variances Σ. For any weights g of the one and f of the other

.. math:: g \cdot \bar h + f \cdot c = w \cdot p + d \cdot p + \text{noise}, \qquad d = M g + f - w,

and whatever p is, :math:`d \cdot p` lies between the smallest and the largest entry of d. Let V be the covariance of h
given the table at some reference shares, :math:`J = M V^+ M^\top` what a row tells, and :math:`D / \tau` a prior
variance of p. The weights

.. math:: \lambda = (n J + \Sigma^{-1} + \tau D^{-1})^{-1} w, \qquad g = n V^+ M^\top \lambda, \qquad
   f = \Sigma^{-1} \lambda, \qquad d = -\tau D^{-1} \lambda

(with E = E[h hᵀ], D = diag(p) and :math:`\sqrt D M E^{-1} M^\top \sqrt D = U s U^\top`, J has the eigenvalues
s / (1 − s)) are those of least variance without bias at τ = 0 (generalised least squares), and trade bias for variance
as τ grows. Each share gets the τ at which standard errors and bias together make its interval shortest. A share that
rows do not identify has a bias that never vanishes: its interval says what can be said.

The interval is that of `intervals` (Feldman and Cousins) moved by the bias to either side. It needs no maximum, so that
it holds where values are many per row and the most likely shares lie at the border, where they are biased.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from privacyfunnel.arrays import FloatArray, dense, special
from privacyfunnel.estimation.intervals import Spread, interval, spread
from privacyfunnel.estimation.inversion import project_on_simplex
from privacyfunnel.estimation.observation import ChannelModel, Observations
from privacyfunnel.estimation.output_reader import OutputReader
from privacyfunnel.model.credal.noisy_sample_rule import NoisySampleRule
from privacyfunnel.model.published.noise import noise_variance
from privacyfunnel.model.published.table_model import EachModel, TableModel

TAUS = (1e-9, 0.1, 1.0, 10.0, 100.0)  # of the prior variance of one row
SHORTER = 0.98  # of the interval: what a bias must be worth
STEPS = 100  # of the iterative Bayesian update: only variances depend on where it ends
FALSE_ALARM = 1e-6  # the chance that rows of the very table are taken for others
ALL = 1 - 1e-8  # of what a row can tell: more is known for certain
SURE = 2.0  # standard deviations of noise that secrets which are not listed may have besides


@dataclass(frozen=True, slots=True, eq=False)
class NoisyShares:
    """Shares of the values of a table, with noise of these variances, and shares near which they lie."""

    shares: FloatArray
    variance: FloatArray
    reference: FloatArray
    rows: int

    @classmethod
    def from_reader(cls, reading: OutputReader) -> NoisyShares | None:
        """Those that the protocol file states, of a published model or of a private design, over a reading's values."""
        model, people = reading.sealed.model, reading.sealed.promise.population
        if reading.repeats > 1:
            return None
        if isinstance(model, EachModel):  # the table of the secret with the least noise
            model = min(model.parts.values(), key=lambda part: part.noise)
        if isinstance(model, TableModel) and model.counts is not None:
            cells, variance, rows = model.counts.cells, model.counts.variance, model.rows
            near, complete = model.weights.sum(axis=0), model.rest is None
        elif model is None and people is not None and isinstance(people.rule, NoisySampleRule):
            drawn = people.rule.counts
            cells, rows, near, complete = drawn.cells, drawn.rows, drawn.weights.sum(axis=0), True
            variance = np.full(cells.shape, noise_variance(drawn.cell_rate))
        else:
            return None
        mine = reading.sealed.domain.combos[:, reading.attributes]
        _, place = np.unique(np.concatenate([reading.combos, mine]), axis=0, return_inverse=True)
        order = np.empty(int(place.max()) + 1, dtype=np.int64)
        a = len(reading.combos)
        order[place.reshape(-1)[:a]] = np.arange(a)
        number = order[place.reshape(-1)[a:]]
        each = np.zeros((3, len(number)))
        each[0], each[1], each[2] = cells.sum(axis=0), variance.sum(axis=0), near
        member = np.zeros((len(number), a))
        member[np.arange(len(number)), number] = 1.0
        added: FloatArray = each @ member
        return cls.from_counts(added[0], added[1], added[2], rows, complete=complete)

    def redraw(self, rng: Generator) -> NoisyShares:
        """The same with as much noise again."""
        return replace(self, shares=self.shares + rng.laplace(0.0, np.sqrt(self.variance / 2)))

    @classmethod
    def from_counts(
        cls, total: FloatArray, noise: FloatArray, reference: FloatArray, rows: int, *, complete: bool
    ) -> NoisyShares:
        """From counts of values and the variances of their noise, over all secrets or (not `complete`) those listed.

        Secrets that are not listed are as many as the counts leave, and go with values as everybody does, give or take
        as much again.
        """
        near = reference / reference.sum()
        if not complete:
            left = max(rows - float(total.sum()), 0.0)
            total = total + left * near
            noise = noise + ((left + SURE * np.sqrt(noise.sum())) * near) ** 2
        return cls(total / rows, noise / rows**2, near, rows)


@dataclass(frozen=True, slots=True, eq=False)
class LinearShares:
    """Estimates of r functions of p, their standard errors, how far they may be biased, and intervals."""

    share: FloatArray
    standard_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    ranges: FloatArray  # how far apart two rows can lie
    from_rows: FloatArray  # the weight that rows have in each, from 0 to 1; noisy counts have the rest


@dataclass(frozen=True, slots=True, eq=False)
class LinearEstimator:
    r"""The eigenvectors of :math:`\sqrt D (n J + \Sigma^{-1}) \sqrt D`: from them follow the weights of any share."""

    model: ChannelModel
    observed: Observations
    noisy: NoisyShares | None
    p: FloatArray  # the reference, and D
    explained: FloatArray  # s
    basis: FloatArray  # U
    values: FloatArray  # and of the sum
    vectors: FloatArray
    inverse: FloatArray  # the diagonal of E⁻¹

    @classmethod
    def from_observed(
        cls, model: ChannelModel, observed: Observations, noisy: NoisyShares | None = None
    ) -> LinearEstimator:
        """At the shares of the published model, or at likely ones."""
        if noisy is not None:
            return cls._at(model, observed, noisy, noisy.reference)
        return cls._at(model, observed, None, likely_shares(model, observed))

    @classmethod
    def _at(
        cls, model: ChannelModel, observed: Observations, noisy: NoisyShares | None, p: FloatArray
    ) -> LinearEstimator:
        rows = observed.rows
        p = (rows * p + 1) / (rows + len(p))
        second, root = model.second_moment(p), np.sqrt(p)
        inverse = np.divide(1.0, second, out=np.zeros_like(second), where=second > 0)
        scaled = dense(model.means * root[:, None] * np.sqrt(inverse))
        explained, basis = np.linalg.eigh(scaled @ scaled.T)
        explained = np.clip(explained, 0.0, ALL)
        values, vectors = rows * explained / (1 - explained), basis
        if noisy is not None:
            both = (basis * values) @ basis.T
            both[np.diag_indices_from(both)] += p / noisy.variance
            values, vectors = np.linalg.eigh(both)
        return cls(model, observed, noisy, p, explained, basis, np.maximum(values, 0.0), vectors, inverse)

    def weights(self, functions: FloatArray, tau: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """g (k × r), f and d (a × r) of functions a × r."""
        root = np.sqrt(self.p)[:, None]
        inside = (self.vectors.T @ (root * functions)) / (self.values + tau)[:, None]
        lam = root * (self.vectors @ inside)
        lifted = root * (self.basis @ ((self.basis.T @ (lam / root)) / (1 - self.explained)[:, None]))
        right = self.observed.rows * (self.model.means.T @ lifted)
        g = self.inverse[:, None] * right
        f = np.zeros_like(lam) if self.noisy is None else lam / self.noisy.variance[:, None]
        return np.asarray(g), f, -tau * lam / self.p[:, None]

    def estimate(self, functions: FloatArray, level: float, *, fixed: bool) -> LinearShares:
        """The shares of functions (0-1, a × r) in the table (`fixed`) or in a population."""
        z = float(special.ndtri((1 + level) / 2))
        best: list[FloatArray] = []
        for tau in TAUS:
            g, f, d = self.weights(functions, tau)
            around = self._spread(functions, g, f, d, fixed=fixed)
            low, high = d.min(axis=0), d.max(axis=0)
            half = z * np.sqrt(around.variance) + (high - low) / 2
            estimate = self.observed.statistics @ g + (0.0 if self.noisy is None else self.noisy.shares @ f)
            of_counts = np.clip((self.p @ (f * functions)) / np.maximum(self.p @ functions, 1e-12), 0.0, 1.0)
            ranges = self.model.ranges(g)
            found = [estimate, around.variance, low, high, half, ranges, 1 - of_counts]
            shorter = half < SHORTER * best[4] if best else np.ones(len(half), dtype=np.bool_)
            best = [np.where(shorter, new, old) for new, old in zip(found, best or found, strict=True)]
        estimate, variance, low, high, _, ranges, from_rows = best
        around = Spread(variance, np.zeros_like(variance))
        lower, upper = interval(estimate - high, around, level)[0], interval(estimate - low, around, level)[1]
        return LinearShares(estimate - (low + high) / 2, np.sqrt(variance), lower, upper, ranges, from_rows)

    def covariance(self, functions: FloatArray, *, fixed: bool) -> tuple[FloatArray, FloatArray]:
        """Estimates without bias of functions a × r, as far as there are any, and their covariance."""
        g, f, _ = self.weights(functions, TAUS[0])
        means, p = self.model.means @ g, self.p
        second = (g.T * self.model.second_moment(p)) @ g
        found = (second - (means.T * p) @ means) / self.observed.rows
        # As it is seen, where that is more, with the correlations at the reference.
        seen = (self.observed.statistics @ g**2 - p @ means**2) / self.observed.rows
        more = np.sqrt(np.maximum(seen / np.maximum(np.diag(found), 1e-300), 1.0))
        found = found * np.outer(more, more)
        estimate = self.observed.statistics @ g
        if self.noisy is not None:
            estimate = estimate + self.noisy.shares @ f
            found = found + (f.T * self.noisy.variance) @ f
        if not fixed:
            centred = functions - p @ functions
            found = found + (centred.T * p) @ centred / self.observed.rows
        return np.asarray(estimate), np.asarray(found)

    def project(self) -> FloatArray:
        """The distribution nearest to the unbiased estimates of all shares."""
        return project_on_simplex(self.covariance(np.eye(len(self.p)), fixed=True)[0])

    def fits(self) -> bool:
        """Whether rows and noisy shares may be of one table."""
        if self.noisy is None:
            return True
        rows, p = self.observed.rows, self.p
        off = self.observed.statistics - self.noisy.shares @ self.model.means
        root = np.sqrt(p)
        scores = root * (self.model.means @ (self.inverse * off))
        S = (self.basis * self.explained) @ self.basis.T
        within = (self.basis * (self.explained * (1 - self.explained))) @ self.basis.T
        around = within / rows + (S * (self.noisy.variance / p)) @ S
        values, vectors = np.linalg.eigh((around + around.T) / 2)
        kept = values > 1e-9 * values[-1]
        surprise = float(((vectors[:, kept].T @ scores) ** 2 / values[kept]).sum())
        return bool(surprise <= special.chdtri(int(kept.sum()), FALSE_ALARM))

    def _spread(self, functions: FloatArray, g: FloatArray, f: FloatArray, d: FloatArray, *, fixed: bool) -> Spread:
        """The variance at the reference, or as it is seen where that is more.

        It is that of all shares that are supposed: the reference is fitted to many values, and its share hardly follows
        an estimate whose error is larger than the share (with a slope of κ₃/κ₂ the least value covered .85).
        """
        rows, p = self.observed.rows, self.p
        seen = self.observed.statistics @ g**2 - p @ (functions + d - f) ** 2
        variance = np.maximum(spread(self.model, g, p, rows, fixed=True).variance, seen / rows)
        if self.noisy is None:  # a reference that was fitted to the same rows makes them look too much like it
            variance = variance * rows / max(rows - len(p), rows / 2)
        else:
            variance = variance + self.noisy.variance @ f**2
        if not fixed:
            theta = p @ functions
            variance = variance + (p @ functions**2 - theta**2) / rows
        return Spread(variance, np.zeros_like(variance))


def likely_shares(model: ChannelModel, observed: Observations) -> FloatArray:
    """About the most likely shares."""
    p, channel = np.full(model.inputs, 1 / model.inputs), model.means
    for _ in range(STEPS):
        chance = p @ channel
        p = p * (channel @ np.divide(observed.statistics, chance, out=np.zeros_like(chance), where=chance > 0))
        p /= p.sum()
    return np.asarray(p)
