r"""Maximum likelihood: the distribution under which what was seen is most likely, with a proved gap.

With n rows, shares :math:`c_y` of the distinct outputs and :math:`f = L^T p` their chances, the problem is

.. math:: \max_p\ n \sum_y c_y \ln f_y \quad\text{s.t. } p \ge 0,\ \sum_x p_x = 1.

It is concave, and :math:`D_x = \sum_y L_{xy} c_y / f_y` is its gradient over n. So for every p

.. math:: \ell(p^*) - \ell(p) \le n\,(\max_x D_x - 1),

a bound in nats that anyone can recompute. Both methods here stop when it is below `GAP`: then p is as good as the best
up to a likelihood ratio of :math:`e^{GAP}`, far below anything that data of this size can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import SolverError

GAP = 1e-4  # nats of log-likelihood: about a hundredth of a standard error
NEWTON_WORK = 5 * 10**10  # multiplications of one Newton step, a² · d; beyond it EM is faster
NEWTON_STEPS = 100  # ten do; more are a sign that EM must go on
EM_STEPS = 20_000  # slow, but it never falls; beyond this the gap is what it is


@dataclass(frozen=True, slots=True, eq=False)
class MaximumLikelihood:
    """A distribution, and a bound in nats on how much more likely any other makes the data."""

    p: FloatArray
    gap: float


def maximum_likelihood(
    likelihood: FloatArray, counts: FloatArray, *, start: FloatArray | None = None
) -> MaximumLikelihood:
    """The most likely p for `likelihood` P(y | x) (a × d) and counts of each y, by Newton's method or accelerated EM.

    Raises
    ------
    SolverError
        If the gap stays above `GAP`.
    """
    a, d = likelihood.shape
    if a * a * d <= NEWTON_WORK:
        found = _interior_point(likelihood, counts)
        if found.gap <= GAP:
            return found
        start = found.p
    found = accelerated_em(likelihood, counts, start=start)
    if found.gap > GAP:
        raise SolverError(
            f"Maximum likelihood must come within {GAP:g} nats of the best; it stopped at {found.gap:.2g}. "
            "Use the method 'projection' or 'inversion', and report this table's shape."
        )
    return found


def accelerated_em(likelihood: FloatArray, counts: FloatArray, *, start: FloatArray | None = None) -> MaximumLikelihood:
    r"""The iterative Bayesian update :math:`p_x \leftarrow p_x D_x`, with the squared extrapolation SQUAREM.

    Two updates give a direction r and its change v; :math:`p + 2 s r + s^2 v` with :math:`s = |r| / |v|` goes further
    along the same way. It is kept only where it is more likely than the plain update, so the likelihood never falls.
    """
    rows = float(counts.sum())
    c = counts / rows
    a = len(likelihood)
    p = np.full(a, 1 / a) if start is None else np.maximum(start, 1e-12 / a) / np.maximum(start, 1e-12 / a).sum()
    best = MaximumLikelihood(p, np.inf)
    for _ in range(EM_STEPS // 3):
        gradient = likelihood @ (c / (p @ likelihood))
        gap = rows * float(gradient.max() - 1)
        if gap < best.gap:
            best = MaximumLikelihood(p, gap)
        if gap <= GAP:
            break
        once = p * gradient
        once /= once.sum()
        twice = once * (likelihood @ (c / (once @ likelihood)))
        twice /= twice.sum()
        r, v = once - p, twice - 2 * once + p
        s = max(1.0, float(np.sqrt((r @ r) / max(float(v @ v), 1e-300))))
        # EM never leaves 0, so an extrapolation may come close to it but not reach it.
        further = np.maximum(p + 2 * s * r + s * s * v, 1e-3 * twice)
        further /= further.sum()
        p = further if c @ np.log(further @ likelihood) > c @ np.log(twice @ likelihood) else twice
    return best


def _interior_point(likelihood: FloatArray, counts: FloatArray) -> MaximumLikelihood:
    r"""Newton's method on the optimality conditions, from the inside (Mehrotra's predictor and corrector).

    With the sum constraint absorbed (:math:`\min -\sum c \ln f + \sum p`), optimal are p, z ≥ 0 with

    .. math:: 1 - D(p) = z, \qquad p_x z_x = 0.

    Each step solves :math:`(P H P + P Z)\,u = p (D - 1) + \sigma\mu` for the relative change u of p, where
    :math:`H = L\,\mathrm{diag}(c / f^2) L^T`. About ten steps suffice whatever the size; EM may need thousands.
    """
    rows = float(counts.sum())
    c = counts / rows
    a = len(likelihood)
    p, z = np.full(a, 1 / a), np.ones(a)
    best = MaximumLikelihood(p, np.inf)
    for _ in range(NEWTON_STEPS):
        q = p / p.sum()
        gap = rows * float((likelihood @ (c / (q @ likelihood))).max() - 1)
        if gap < best.gap:
            best = MaximumLikelihood(q, gap)
        if gap <= GAP or not np.isfinite(gap):
            break
        f = p @ likelihood
        downhill = p * (likelihood @ (c / f) - 1)
        scaled = p[:, None] * likelihood * (np.sqrt(c) / f)
        system = scaled @ scaled.T
        system[np.diag_indices(a)] += p * z
        try:
            solve = _solver(system)
        except np.linalg.LinAlgError:
            break
        mu = float((p * z).mean())
        u = solve(downhill)
        dz = -z - z * u
        reach = float((p * (1 + _step(u) * u) * (z + _step(dz / z) * dz)).mean())
        target = (reach / mu) ** 3 * mu - p * u * dz
        u = solve(downhill + target)
        dz = target / p - z - z * u
        p = p * (1 + min(1.0, 0.995 * _step(u)) * u)
        z = z + min(1.0, 0.995 * _step(dz / z)) * dz
    return best


def _solver(system: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solutions of a positive definite system, scaled to a unit diagonal: its entries span many orders of magnitude."""
    scale = 1 / np.sqrt(np.diag(system))
    scaled = system * scale[:, None] * scale[None, :]
    scaled[np.diag_indices(len(scale))] += 1e-15
    factor = scipy.linalg.cho_factor(scaled, overwrite_a=True, check_finite=False)
    return lambda right: np.asarray(scale * scipy.linalg.cho_solve(factor, scale * right, check_finite=False))


def _step(relative: FloatArray) -> float:
    """The longest step of at most 1 that keeps 1 + step · relative at or above 0."""
    lowest = float(relative.min())
    return min(1.0, -1 / lowest) if lowest < 0 else 1.0
