r"""Calibration: estimates of a table whose margins are known exactly.

Where the owner publishes the shares t of labels (:math:`A^T p = t`, functions A of the original value), what outputs
say about them is known to be off by :math:`t - \hat t`, and what errs with them is mended by as much. For groups g with
a part :math:`\pi_g` of the rows each, unbiased estimates :math:`\hat\theta_g` of w · p_g and
:math:`\hat t = \sum_g \pi_g \hat t_g`, of all unbiased ones that are linear in what was seen

.. math:: \tilde\theta_g = \hat\theta_g + \beta^T (t - \hat t), \qquad
   \beta = C^+ \operatorname{Cov}(\hat t, \hat\theta_g), \quad C = \operatorname{Cov}(\hat t),

has the least variance, :math:`\operatorname{Var}(\hat\theta_g) - \beta^T C \beta` (docs/theory.md). Only the protocol
is random: the margins are the table's, so that this serves the table's own shares and not a population's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, special
from privacyfunnel.estimation.identification import ORTHOGONAL, RowSpace
from privacyfunnel.estimation.intervals import Spread, spread
from privacyfunnel.estimation.inversion import covariance, unbiased_weights
from privacyfunnel.estimation.observation import ChannelModel, Observations
from privacyfunnel.estimation.output_reader import Group, OutputReader

FALSE_ALARM = 1e-6  # the chance that rows of the very table are taken for others
NONE = 1e-12  # relative: variances below this are none
RANK = 1e-9  # relative: what varies less than this does not vary
SPANNED = 1e-9  # a function that margins explain but for this is known
RAKED, MOST_RAKED = 1e-10, 300  # how near margins come to what they are to be; rounds for that
FLOOR = 0.01  # of a row: what a share has at least before it is raked, so that it can grow


@dataclass(frozen=True, slots=True, eq=False)
class KnownMargins:
    """Labels whose shares are known: functions of the inputs, and the share that each has among all rows."""

    functions: FloatArray  # a × k, 0 or 1
    shares: FloatArray  # k

    @classmethod
    def from_reader(cls, reading: OutputReader) -> KnownMargins | None:
        """Those that the protocol file states about the columns of a reading."""
        known = reading.sealed.shares
        if known is None:
            return None
        functions, shares = [], []
        for place, j in enumerate(reading.attributes):
            codes = reading.combos[:, place]
            functions.append(np.tile(codes[:, None] == np.arange(len(known.counts[j])), (reading.repeats, 1)))
            shares.append(known.share(j))
        return cls(np.concatenate(functions, axis=1).astype(np.float64), np.concatenate(shares))

    def select_identified(self, space: RowSpace) -> KnownMargins:
        """Those that outputs tell about."""
        shown = np.abs(space.hidden.T @ self.functions).max(axis=0, initial=0.0) <= ORTHOGONAL
        return KnownMargins(self.functions[:, shown], self.shares[shown])

    def implied_shares(self, functions: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Which functions (a × r) follow from the margins of a whole table, and their shares."""
        weights = np.linalg.lstsq(self.functions, functions, rcond=None)[0]
        known = np.abs(self.functions @ weights - functions).max(axis=0, initial=0.0) <= SPANNED
        return np.asarray(known), np.asarray(np.clip(self.shares @ weights, 0.0, 1.0))

    def largest_shares(self, functions: FloatArray, part: float) -> FloatArray:
        """The largest share that each function can have among `part` of the rows: no more than a label it implies."""
        implies = (1 - self.functions).T @ functions <= 0
        return np.asarray(np.where(implies, np.minimum(self.shares / part, 1.0)[:, None], 1.0).min(axis=0, initial=1.0))

    def extend_to_groups(self, parts: FloatArray) -> KnownMargins:
        """The same for groups that are so large a part of the rows each, as margins of one distribution over both."""
        member = np.repeat(np.eye(parts.size), len(self.functions), axis=0)
        functions = np.concatenate([np.tile(self.functions, (parts.size, 1)), member], axis=1)
        return KnownMargins(functions, np.append(self.shares, parts))

    def rake(self, p: FloatArray, rows: int) -> FloatArray:
        """The distribution nearest to p, in relative entropy, that has these margins (iterative scaling)."""
        p = np.maximum(p, FLOOR / rows)
        for _ in range(MOST_RAKED):
            off = 0.0
            for j, share in enumerate(self.shares):
                mine = self.functions[:, j]
                here = float(mine @ p / p.sum())
                off = max(off, abs(here - share))
                if 0 < here < 1 and 0 <= share < 1:
                    p = p * np.where(mine > 0, share / here, (1 - share) / (1 - here))
            if off <= RAKED:
                break
        return np.asarray(p / p.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """What is known of one group from the margins of all rows together."""

    margins: KnownMargins  # those that outputs tell about
    all_margins: KnownMargins  # and all of them
    weights: FloatArray  # with which outputs of this group tell of the margins: statistics × k
    part: float  # of the rows that are in this group
    residual: FloatArray  # t − t̂
    inverse: FloatArray  # C⁺
    others: FloatArray  # what other groups add to C
    whole: bool  # whether the group is all there is

    def regression(self, model: ChannelModel, g: FloatArray, p: FloatArray, rows: int) -> tuple[FloatArray, FloatArray]:
        """β of each of the estimates g · h̄ (k × r) and βᵀCβ, what it takes off the variance.

        C is that of the shares p at which the estimates vary: with another one more might be taken off than there is.
        """
        both = covariance(model, np.concatenate([self.weights, g], axis=1), p, rows, fixed=True)
        k = self.weights.shape[1]
        C = self.others + self.part**2 * both[:k, :k]
        beta = self.part * _inverse(C, rows / self.part)[0] @ both[:k, k:]
        return beta, np.einsum("kr,kl,lr->r", beta, C, beta)

    def estimate(
        self, model: ChannelModel, g: FloatArray, observed: Observations, p: FloatArray
    ) -> tuple[FloatArray, Spread]:
        """The best linear estimates and their variance; of its slope, what this group's own rows make of it."""
        beta, gained = self.regression(model, g, p, observed.rows)
        own = g - self.part * self.weights @ beta
        apart = spread(model, g, p, observed.rows, fixed=True).variance
        variance = np.where(gained < (1 - NONE) * apart, apart - gained, 0.0)
        slope = spread(model, own, p, observed.rows, fixed=True).slope
        return observed.statistics @ g + self.residual @ beta, Spread(variance, slope)


def calibrate_groups(
    margins: KnownMargins,
    space: RowSpace,
    model: ChannelModel,
    seen: Mapping[Group, tuple[Observations, FloatArray]],
) -> dict[Group, Calibration] | None:
    """For each group, from what it shows and the shares fitted to it; None where the margins do not fit these rows."""
    identified, rows = margins.select_identified(space), sum(observed.rows for observed, _ in seen.values())
    weights, own, off = {}, {}, identified.shares.copy()
    for group, (observed, p) in seen.items():
        part, mixed = observed.rows / rows, (observed.rows * p + 1) / (observed.rows + p.size)
        weights[group] = unbiased_weights(model, space, identified.functions, mixed)
        off -= part * (observed.statistics @ weights[group])
        own[group] = part**2 * covariance(model, weights[group], mixed, observed.rows, fixed=True)
    C = np.sum(list(own.values()), axis=0)
    inverse, degrees, certain = _inverse(C, rows)
    surprise = float(off @ inverse @ off)
    if np.abs(off[certain]).max(initial=0.0) * rows > 0.5 or (
        degrees and surprise > special.chdtri(degrees, FALSE_ALARM)
    ):
        return None
    return {
        group: Calibration(
            identified, margins, weights[group], observed.rows / rows, off, inverse, C - own[group], len(seen) == 1
        )
        for group, (observed, _) in seen.items()
    }


def _inverse(C: FloatArray, rows: float) -> tuple[FloatArray, int, BoolArray]:
    """C⁺, its rank, and which margins do not vary at all."""
    scale = 1 / np.sqrt(np.maximum(np.diag(C), 1e-300))
    certain = np.diag(C) <= (NONE / rows) ** 2
    scale[certain] = 0.0
    scaled = C * np.outer(scale, scale)
    inverse = scale[:, None] * np.linalg.pinv(scaled, rcond=RANK, hermitian=True) * scale
    degrees = int(np.linalg.matrix_rank(scaled, tol=RANK, hermitian=True)) if C.size else 0
    return np.asarray(inverse), degrees, np.asarray(certain)
