r"""Intervals that cover: for the estimate of a share that is known to lie between 0 and 1.

An estimate :math:`\hat\theta` has variance :math:`V(\theta)`, which itself depends on the share: to first order

.. math:: V(\theta) = \hat V + (\theta - \hat\theta)\, \kappa_3 / \kappa_2,

with the second and third cumulant of one row (for a plain frequency this is Wilson's interval). A share θ is kept if
:math:`\hat\theta` is not surprising under it, where surprise is measured by the likelihood ratio against the best share
*between 0 and 1* (Feldman and Cousins 1998). Such an interval never is empty and never leaves [0, 1], needs no special
case near the boundary, and covers at its level on both sides of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacyfunnel.arrays import BoolArray, FloatArray, special
from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation.observation import ChannelModel, Moments

HALVINGS = 40  # of an interval for the end of an interval: a float has no more digits
EXACT = 1e-12  # shares closer than this are the same
WHOLE = 1e-3  # of a row: what is nearer to a whole number of rows is one
FEW_ROWS = 50  # below this the normal law is not trusted, and intervals hold at any number of rows


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The variance of each of r unbiased estimates, and how it grows with the share."""

    variance: FloatArray
    slope: FloatArray


def spread(model: ChannelModel, g: FloatArray, p: FloatArray, rows: int, *, fixed: bool) -> Spread:
    """Variance and κ₃/κ₂ over `rows` rows of the functions g, for originals with shares p (`fixed`) or drawn from p."""
    p = (rows * p + 1 / len(p)) / (rows + 1)  # one more row, from anywhere: what was not seen is not impossible
    return spread_from_moments(model.moments(g), lambda each: p @ each, rows, fixed=fixed)


def spread_from_moments(given: Moments, mean: Callable[[FloatArray], FloatArray], rows: int, *, fixed: bool) -> Spread:
    """The same from the moments given each original, and what is a mean over the originals."""
    second, third = mean(given.variance), mean(given.third)
    if not fixed:
        centred = given.mean - mean(given.mean)
        third = third + 3 * mean(centred * given.variance) + mean(centred**3)
        second = second + mean(centred**2)
    slope = np.divide(third, second, out=np.zeros_like(third), where=second > 0)
    return Spread(second / rows, slope / rows)


def interval(
    estimate: FloatArray, spread: Spread, level: float, most: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """The shares between 0 and 1, or the most there can be, under which each estimate is not surprising."""
    if most is not None:  # in units of that
        unit = np.maximum(most, EXACT)
        lower, upper = interval(estimate / unit, Spread(spread.variance / unit**2, spread.slope / unit), level)
        return lower * unit, upper * unit
    r = len(estimate)
    both = Spread(np.tile(spread.variance, 2), np.tile(spread.slope, 2))  # the lower ends, then the upper ones
    estimates = np.tile(estimate, 2)
    end = np.repeat([0.0, 1.0], r)
    at_end = _is_covered(end, estimates, both, level)
    kept, left_out = np.clip(estimates, 0.0, 1.0), end
    for _ in range(HALVINGS):
        middle = (kept + left_out) / 2
        good = _is_covered(middle, estimates, both, level)
        kept, left_out = np.where(good, middle, kept), np.where(good, left_out, middle)
    ends = np.where(at_end, end, left_out)
    return ends[:r], ends[r:]


def _is_covered(share: FloatArray, estimate: FloatArray, spread: Spread, level: float) -> BoolArray:
    """Whether the estimate is among the least surprising outcomes of total chance `level` under each share."""
    variance = np.maximum(spread.variance + (share - estimate) * spread.slope, 0.05 * spread.variance)
    known = variance <= 0  # no noise at all: the estimate is the share
    sd = np.sqrt(np.where(known, 1.0, variance))
    below, above, off = share / sd, (1 - share) / sd, (estimate - share) / sd
    nearest = np.clip(off, -below, above)  # the best mean between 0 and 1 for what was seen
    surprise = off * nearest - nearest**2 / 2  # log likelihood ratio of that mean against the supposed one
    less_surprising = special.ndtr(_reach(surprise, above)) - special.ndtr(-_reach(surprise, below))
    return np.where(known, np.abs(share - estimate) <= EXACT, less_surprising <= level)


def _reach(surprise: FloatArray, room: FloatArray) -> FloatArray:
    """How far a deviation may go on a side with this much room before it surprises as much."""
    free = np.sqrt(2 * surprise)
    beyond = np.divide(surprise, room, out=np.full_like(room, np.inf), where=room > 0) + room / 2
    return np.where(free <= room, free, beyond)


def settle_interval(
    lower: FloatArray, upper: FloatArray, estimate: FloatArray, ranges: FloatArray, rows: int, settings: Any
) -> tuple[FloatArray, FloatArray]:
    r"""The interval made to hold where rows are few, and rounded outwards to the whole rows that a table holds.

    Hoeffding's :math:`\hat\theta \pm R \sqrt{\ln(2 / (1 - level)) / 2n}` holds for any number of rows.
    """
    if rows < FEW_ROWS:
        half = ranges * np.sqrt(np.log(2 / (1 - settings.level)) / (2 * rows))
        lower = np.minimum(lower, np.clip(estimate - half, 0.0, 1.0))
        upper = np.maximum(upper, np.clip(estimate + half, 0.0, 1.0))
    if settings.fixed:
        lower, upper = np.floor(rows * lower + WHOLE) / rows, np.ceil(rows * upper - WHOLE) / rows
    return lower, upper


@dataclass(frozen=True, slots=True)
class Combined:
    """A number estimated on each of m completed tables, combined by Rubin's rules."""

    estimate: float
    standard_error: float
    lower: float
    upper: float
    degrees: float  # of Student's t


def combine(estimates: ArrayLike, variances: ArrayLike = 0.0, *, level: float = 0.95) -> Combined:
    r"""Rubin's rules: :math:`\bar Q = \frac1m \sum Q_i`, variance :math:`T = \bar U + (1 + \frac1m) B`.

    `estimates` are :math:`Q_i`, `variances` what each completed table's own software says of :math:`Q_i`;
    B is the variance between the estimates. For shares of the table itself, not of a population, leave `variances` at
    0. The interval is Student's with :math:`\nu = (m - 1) (T / ((1 + \frac1m) B))^2` degrees of freedom.

    >>> combine([1.0, 2.0, 3.0], 0.5).estimate
    2.0
    """
    q = np.atleast_1d(np.asarray(estimates, dtype=np.float64))
    m = len(q)
    if m < 2:
        raise ParameterError(f"Rubin's rules need at least 2 completed tables; there is {m}.")
    within = float(np.mean(np.broadcast_to(np.asarray(variances, dtype=np.float64), q.shape)))
    between = float(q.var(ddof=1))
    total = within + (1 + 1 / m) * between
    degrees = math.inf if between == 0 else (m - 1) * (total / ((1 + 1 / m) * between)) ** 2
    half = float(special.stdtrit(degrees, (1 + level) / 2)) * math.sqrt(total)
    centre = float(q.mean())
    return Combined(centre, math.sqrt(total), centre - half, centre + half, degrees)
