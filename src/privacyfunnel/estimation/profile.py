r"""Profile intervals: the shares under which what was seen is not surprising, whatever the other shares are.

Let c be the shares of the outputs among n rows, q(y|x) the channel, and A some of the values. How badly shares p of a
*table* fit is measured by the least relative entropy of a way in which its rows may have become what was seen,

.. math:: K(p) = \min_{N \ge 0} \sum_{xy} N_{xy} \ln \frac{N_{xy}}{p_x q_{xy}}
   \quad\text{s.t. } \textstyle\sum_x N_{xy} = c_y,\ \sum_y N_{xy} = p_x,

the rate at which a sum of independent draws, one per row, deviates from its mean; for a *population* it is
:math:`-\sum_y c_y \ln (p q)_y`, the likelihood. A share θ of A is kept if :math:`2n (\min_{p(A) = \theta} K - \min K)`
is at most the quantile of χ² with one degree of freedom.

Both minima come from maximum likelihood itself (docs/theory.md): the most likely p' for the channel whose rows in A are
multiplied by :math:`\kappa = e^{-\mu}` has

.. math:: \min_{p(A) = \theta} K = -\sum_y c_y \ln (p' \kappa q)_y + \text{const} - \mu\theta
   \quad\text{with } \theta = p'(A)

for a table, and p'κ, scaled to sum 1, is the most likely one with its share of A for a population. As κ goes from ∞ to
0, θ falls from all rows whose output allows A to those whose output allows nothing else: an interval never says more
than what outputs guarantee, nor less.

Where margins are known (:math:`B^T p = t`), both minima are among the tables that have them: rows are multiplied by
:math:`e^{-(B\eta)_x}` as well, with the η at which the most likely p' has the margins. That is the maximum of a concave
function whose slope is :math:`B^T p' - t`; any other η makes an interval wider, never narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, Matrix, nonzero_entries, sparsify
from privacyfunnel.errors import SolverError
from privacyfunnel.estimation.likelihood import GAP, maximum_likelihood, tilted_likelihood

CLOSE = 0.02  # of a standard error: how near an end comes to where it should be; the rest is added outwards
ROUNDS = 30  # solves for one end; three do
NO_ROW = 1e-6  # of a row: shares that are nearer to each other are the same
SAME_TILT = 1e-9  # relative
LARGEST_TILT = 30.0  # of ln κ: further, rows of A are as good as gone
USUAL_SOLVES, USUAL_STEPS = 5, 12  # for one end; Newton steps of a solve
MOST_WORK = 10**11  # multiplications for all ends of a table: some ten seconds
NEARLY_LIKELY = 0.2  # values whose own chance of what was seen is lower by more stay out, unless a solve wants them
ABSENT = 1e-9  # a share below it is none
NEAR_MARGIN, MARGIN_STEPS = 0.01, 12  # of its standard error: how near a margin comes to what it is; steps for that
PART_OF_ROW = 0.01  # and nearer than this it need not come
WIDEST = 60.0  # of ln κ: beyond it rows are as good as gone, and exponentials would be none
AS_LIKELY = 1e-9  # relative: what is left of a gap after rounding
MOST_NUMBERS = 4 * 10**6  # in the systems that are solved at once


@dataclass(frozen=True, slots=True, eq=False)
class CertainBounds:
    """Between which shares each of r sets of values lies for certain, by what the outputs seen allow."""

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def from_likelihood(cls, likelihood: FloatArray, counts: FloatArray, functions: Matrix) -> CertainBounds:
        """From P(y|x) (a × d) of the outputs that were seen, for the 0-1 `functions` (a × r) of the table's shares.

        >>> CertainBounds.from_likelihood(np.array([[1.0, 0.5], [0.0, 0.5]]), np.array([3.0, 1.0]), np.eye(2))
        CertainBounds(lower=array([0.75, 0.  ]), upper=array([1.  , 0.25]))
        """
        c = counts / counts.sum()
        possible = sparsify((likelihood > 0).astype(np.float64))
        allowed = np.asarray(possible.sum(axis=0)).reshape(-1)
        # How many of the values that an output allows are in a set.
        output, which, inside = nonzero_entries(possible.T @ sparsify(functions))
        every, lower, upper = inside == allowed[output], *np.zeros((2, functions.shape[1]))
        np.add.at(lower, which[every], c[output[every]])
        np.add.at(upper, which, c[output])
        return cls(lower, upper)


@dataclass(frozen=True, slots=True, eq=False)
class FixedMargins:
    """Margins that every table has which is looked at: functions B of the values, their shares, and about how they vary
    from table to table where they are not held (the inverse of their covariance, for one row)."""

    functions: FloatArray  # a × k
    shares: FloatArray
    inverse: FloatArray

    def tolerances(self, rows: float) -> FloatArray:
        """How near each share must come to what it is, among so many rows."""
        spread = np.maximum(np.diag(np.linalg.pinv(self.inverse, hermitian=True)), 0.0)
        return np.asarray(np.maximum(NEAR_MARGIN * np.sqrt(spread / rows), PART_OF_ROW / rows))

    @classmethod
    def empty(cls, values: int) -> FixedMargins:
        """No margin is known."""
        return cls(np.empty((values, 0)), np.empty(0), np.empty((0, 0)))


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What was seen, and the most likely shares, from which profiles are measured."""

    likelihood: FloatArray  # P(y|x), a × d, of the outputs that were seen
    counts: FloatArray
    p: FloatArray  # the most likely shares
    margins: FixedMargins | None = None  # of a table, where they are known

    def is_affordable(self, functions: int) -> bool:
        """Whether intervals for so many functions take seconds."""
        a, d = int(self._likely_values.sum()), self.likelihood.shape[1]
        return bool(2 * functions * USUAL_SOLVES * USUAL_STEPS * a * a * d <= MOST_WORK)

    @property
    def _likely_values(self) -> BoolArray:
        c = self.counts / self.counts.sum()
        gradient = self.likelihood @ (c / (self.p @ self.likelihood))
        return np.asarray((self.p > ABSENT) | (gradient > 1 - NEARLY_LIKELY))

    def intervals(
        self, functions: FloatArray, guesses: FloatArray, z: float, *, fixed: bool
    ) -> tuple[FloatArray, FloatArray]:
        """The shares of each of r sets of values (0-1 `functions`, a × r) that are kept at z standard errors.

        Those of a table (`fixed`) or of a population. `guesses` say about how large a standard error is: they save time
        and change nothing else.
        """
        r = functions.shape[1]
        certain = CertainBounds.from_likelihood(self.likelihood, self.counts, functions)
        last = np.concatenate([certain.lower, certain.upper]) if fixed else np.repeat([0.0, 1.0], r)
        members, sign = np.tile(functions.T > 0, (2, 1)), np.repeat([1.0, -1.0], r)
        known = np.tile(certain.lower == certain.upper, 2) if fixed else np.zeros(2 * r, dtype=np.bool_)
        ends = last.copy()
        most = max(1, MOST_NUMBERS // self.likelihood.size)
        for piece in np.split(np.flatnonzero(~known), range(most, int((~known).sum()), most)):
            if len(piece):
                guess = np.tile(guesses, 2)[piece]
                ends[piece] = self._ends(members[piece], sign[piece], guess, last[piece], z, fixed=fixed)
        return ends[:r], ends[r:]

    def _ends(
        self, members: BoolArray, sign: FloatArray, guess: FloatArray, last: FloatArray, z: float, *, fixed: bool
    ) -> FloatArray:
        """The share on one side (below for sign 1) at which surprise is z, or `last` if it is less all the way.

        Surprise grows with the tilt, in the regular case in proportion; so the right tilt is found by its bracket.
        """
        rows = float(self.counts.sum())
        start, held = self._start(members)
        tilt = np.minimum(z / (rows * np.maximum(guess, 1e-9)), LARGEST_TILT)
        low, below = np.zeros_like(tilt), np.zeros_like(tilt)  # a tilt that surprises less, and its surprise
        high, above = np.full_like(tilt, np.inf), np.full_like(tilt, np.inf)  # and one that surprises more
        end = last.copy()
        left = np.arange(len(tilt))
        for i in range(ROUNDS):
            share, surprise = self._tilt(members[left], sign[left] * tilt[left], held, fixed=fixed)
            close, more = np.abs(surprise - z) <= CLOSE, surprise > z
            end[left[close | more]] = share[close | more]
            low[left[~more]], below[left[~more]] = tilt[left[~more]], surprise[~more]
            high[left[more]], above[left[more]] = tilt[left[more]], surprise[more]
            all_the_way = ~more & ~close & ((tilt[left] >= LARGEST_TILT) | (np.abs(share - last[left]) * rows < NO_ROW))
            end[left[all_the_way]] = last[left[all_the_way]]
            jumps = low[left] >= (1 - SAME_TILT) * high[left]  # the share does, at one tilt
            tilt[left] = _next_tilt(i, tilt[left], surprise, low[left], below[left], high[left], above[left], z)
            left = left[~(close | all_the_way | jumps)]
            if not len(left):
                break
        outward = end - sign * CLOSE / z * np.abs(end - start)
        return np.where(sign > 0, np.maximum(last, outward), np.minimum(last, outward))

    def _start(self, members: BoolArray) -> tuple[FloatArray, tuple[FloatArray, float]]:
        """The most likely shares of each set of values; and η of all that is known, with how badly these fit."""
        if self.margins is None:
            seen = self.counts / self.counts.sum() @ np.log(self.p @ self.likelihood)
            return np.asarray(members @ self.p), (np.empty(0), -float(seen))
        p, eta, value = self._fit_margins(np.zeros((1, self.p.size)), np.zeros(self.margins.shares.size))
        return np.asarray(members @ p[0]), (eta[0], float(value[0]))

    def _tilt(
        self, members: BoolArray, tilt: FloatArray, held: tuple[FloatArray, float], *, fixed: bool
    ) -> tuple[FloatArray, FloatArray]:
        """The share of each set of values where their rows are multiplied by e^−tilt, and its surprise in standard
        errors.
        """
        rows = float(self.counts.sum())
        eta, best = held
        p, _, value = self._fit_margins(tilt[:, None] * members, eta)
        if fixed:
            share = (members * p).sum(axis=1)
            value = value - tilt * share
        else:
            q = p * np.exp(-(tilt[:, None] * members - np.minimum(tilt, 0.0)[:, None]))
            q /= q.sum(axis=1, keepdims=True)
            share = (members * q).sum(axis=1)
            value = -(np.log(q @ self.likelihood) @ (self.counts / rows))
        return share, np.sqrt(2 * rows * np.maximum(value - best, 0.0))

    def _fit_margins(self, tilts: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The most likely p where rows are multiplied by e^−tilts (r × a) and margins are what they are; the η of
        these; and −Σ c ln(p κ q) − η·t, which is least over p and largest over η."""
        c = self.counts / self.counts.sum()
        known = FixedMargins.empty(self.p.size) if self.margins is None else self.margins
        B, t = known.functions, known.shares
        near = known.tolerances(float(self.counts.sum()))
        eta = np.tile(eta, (len(tilts), 1))
        best_p, best_eta, best = np.zeros(tilts.shape), eta.copy(), np.full(len(tilts), -np.inf)
        left, step = np.arange(len(tilts)), np.ones(len(tilts))
        for _ in range(MARGIN_STEPS if t.size else 1):
            power = tilts[left] + eta[left] @ B.T
            least = power.min(axis=1, keepdims=True)
            factor = np.exp(-np.minimum(power - least, WIDEST))  # only ratios matter: nothing overflows
            p = self._maximise_likelihood(factor)
            value = -(np.log((p * factor) @ self.likelihood) @ c) + least[:, 0] - eta[left] @ t
            off = p @ B - t
            better = value >= best[left]
            now = left[better]
            best_p[now], best_eta[now], best[now] = p[better], eta[now], value[better]
            step[left[~better]] /= 4  # the last step was too long: a shorter one from where it began
            slope = np.where(better[:, None], off, best_p[left] @ B - t)
            eta[left] = best_eta[left] + step[left, None] * (slope @ known.inverse)
            left = left[(np.abs(slope) > near).any(axis=1)]
            if not len(left):
                break
        return best_p, best_eta, best

    def _maximise_likelihood(self, factors: FloatArray) -> FloatArray:
        """Over the values that may matter first; others join where they would be likelier than those are."""
        c = self.counts / self.counts.sum()
        inside = self._likely_values
        p = np.zeros(factors.shape)
        left = np.arange(len(factors))
        while len(left):
            solved = tilted_likelihood(self.likelihood[inside], factors[left][:, inside], self.counts)
            p[left] = 0.0
            p[np.ix_(left, np.flatnonzero(inside))] = solved.p
            for i in left[solved.gap > GAP]:
                p[i] = maximum_likelihood(factors[i][:, None] * self.likelihood, self.counts).p
            seen = (p[left] * factors[left]) @ self.likelihood
            gradient = factors[left] * ((c / seen) @ self.likelihood.T)
            wanted = ~inside & (gradient > 1 + AS_LIKELY)
            inside = inside | wanted.any(axis=0)
            left = left[wanted.any(axis=1)]
        return p


def fit_groups(profiles: Sequence[Profile], parts: FloatArray, margins: FixedMargins) -> tuple[FloatArray, FloatArray]:
    """The most likely shares of groups, so large a part of the rows each, that have the margins among them all; and the
    priors with which rows are completed to these shares (both: groups × a). One η tilts all groups."""
    B, t = margins.functions, margins.shares
    rows = sum(float(profile.counts.sum()) for profile in profiles)
    near = margins.tolerances(rows)
    eta, best_eta, best, step = np.zeros(t.size), np.zeros(t.size), -np.inf, 1.0
    slope, shares, priors = np.zeros(t.size), np.empty(0), np.empty(0)
    for _ in range(MARGIN_STEPS):
        power = B @ eta
        factor = np.exp(-np.minimum(power - power.min(), WIDEST))
        p = np.stack([profile._maximise_likelihood(factor[None, :])[0] for profile in profiles])
        chance = [np.log((each * factor) @ profile.likelihood) for each, profile in zip(p, profiles, strict=True)]
        fits = [profile.counts @ of / profile.counts.sum() for of, profile in zip(chance, profiles, strict=True)]
        value = float(power.min() - parts @ np.array(fits) - eta @ t)
        if value >= best:
            best, best_eta, slope, shares, priors = value, eta, parts @ p @ B - t, p, p * factor
        else:
            step /= 4
        if (np.abs(slope) <= near).all():
            break
        eta = best_eta + step * (slope @ margins.inverse)
    return shares, priors / priors.sum(axis=1, keepdims=True)


def _next_tilt(
    i: int,
    tilt: FloatArray,
    surprise: FloatArray,
    low: FloatArray,
    below: FloatArray,
    high: FloatArray,
    above: FloatArray,
    z: float,
) -> FloatArray:
    """The next tilt to try: inside the bracket where there is one, else further out."""
    closed = np.isfinite(high)
    part = np.clip((z - below) / np.where(closed, above - below, 1.0), 0.1, 0.9) if i % 3 < 2 else 0.5
    between = low + np.where(closed, high - low, 0.0) * part
    further = tilt * np.clip(z / np.maximum(surprise, 1e-3 * z), 1.0 if i == 0 else 2.0, 100.0)
    return np.where(closed, between, np.minimum(further, LARGEST_TILT))


def profile_intervals(
    profile: Profile, functions: FloatArray, guesses: FloatArray, z: float, *, fixed: bool
) -> tuple[FloatArray, FloatArray] | None:
    """See Profile.intervals; None where that would take long or a solve fails."""
    if not profile.is_affordable(functions.shape[1]):
        return None
    try:
        return profile.intervals(functions, guesses, z, fixed=fixed)
    except SolverError:
        return None
