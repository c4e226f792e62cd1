r"""Maximum likelihood: the distribution under which what was seen is most likely, with a proved gap.

With n rows, shares :math:`c_y` of the distinct outputs and :math:`f = L^T p` their chances, the problem is

.. math:: \max_p\ n \sum_y c_y \ln f_y \quad\text{s.t. } p \ge 0,\ \sum_x p_x = 1.

It is concave, and :math:`D_x = \sum_y L_{xy} c_y / f_y` is its gradient over n. So for every p

.. math:: \ell(p^*) - \ell(p) \le n\,(\max_x D_x - 1),

a bound in nats that anyone can recompute. Both methods here stop when it is below `GAP`: then p is as good as the best
up to a likelihood ratio of :math:`e^{GAP}`, far below anything that data of this size can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True, slots=True, eq=False)
class MaximumLikelihoods:
    """The same for k problems: distributions (k × a), and a gap each; infinite where none was found."""

    p: FloatArray
    gap: FloatArray


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
        solved = tilted_likelihood(likelihood, np.ones((1, a)), counts)
        if solved.gap[0] <= GAP:
            return MaximumLikelihood(solved.p[0], float(solved.gap[0]))
        start = solved.p[0]
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


def tilted_likelihood(likelihood: FloatArray, factors: FloatArray, counts: FloatArray) -> MaximumLikelihoods:
    r"""The most likely p for each of k problems whose rows are `likelihood` times `factors` (k × a): all at once.

    Newton's method on the optimality conditions, from the inside (Mehrotra's predictor and corrector). With the sum
    constraint absorbed (:math:`\min -\sum c \ln f + \sum p`), optimal are p, z ≥ 0 with

    .. math:: 1 - D(p) = z, \qquad p_x z_x = 0.

    Each step solves :math:`(P H P + P Z)\,u = p (D - 1) + \sigma\mu` for the relative change u of p, where
    :math:`H = L\,\mathrm{diag}(c / f^2) L^T`. About ten steps suffice whatever the size; EM may need thousands.
    """
    rows = float(counts.sum())
    c = counts / rows
    k, a = factors.shape
    p, z = np.full((k, a), 1 / a), np.ones((k, a))
    best = MaximumLikelihoods(np.full((k, a), 1 / a), np.full(k, np.inf))
    left = np.arange(k)  # the problems that are not solved yet
    for _ in range(NEWTON_STEPS):
        with np.errstate(all="ignore"):  # a step that went wrong shows as a gap that is no number
            q = p / p.sum(axis=1, keepdims=True)
            gap = rows * (_gradient(likelihood, factors[left], c, q).max(axis=1) - 1)
        better = gap < best.gap[left]
        best.p[left[better]], best.gap[left[better]] = q[better], gap[better]
        on = (gap > GAP) & np.isfinite(gap)
        left, p, z = left[on], p[on], z[on]
        if not len(left):
            break
        try:
            p, z = _newton_step(likelihood, factors[left], c, p, z)
        except np.linalg.LinAlgError:
            break
    return best


def _gradient(likelihood: FloatArray, factors: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    """D of each problem."""
    return np.asarray(factors * ((c / ((p * factors) @ likelihood)) @ likelihood.T))


def _newton_step(
    likelihood: FloatArray, factors: FloatArray, c: FloatArray, p: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    f = (p * factors) @ likelihood
    downhill = p * (_gradient(likelihood, factors, c, p) - 1)
    scaled = (p * factors)[:, :, None] * likelihood * (np.sqrt(c) / f)[:, None, :]
    system = scaled @ scaled.transpose(0, 2, 1)
    diagonal = np.arange(p.shape[1])
    system[:, diagonal, diagonal] += p * z
    # Scaled to a unit diagonal: its entries span many orders of magnitude.
    scale = 1 / np.sqrt(system[:, diagonal, diagonal])
    system *= scale[:, :, None] * scale[:, None, :]
    system[:, diagonal, diagonal] += 1e-15
    inverse = np.linalg.inv(system)

    def solve(right: FloatArray) -> FloatArray:
        return np.asarray(scale * (inverse @ (scale * right)[:, :, None])[:, :, 0])

    mu = (p * z).mean(axis=1, keepdims=True)
    u = solve(downhill)
    dz = -z - z * u
    reach = (p * (1 + _step(u) * u) * (z + _step(dz / z) * dz)).mean(axis=1, keepdims=True)
    target = (reach / mu) ** 3 * mu - p * u * dz
    u = solve(downhill + target)
    dz = target / p - z - z * u
    return p * (1 + np.minimum(1.0, 0.995 * _step(u)) * u), z + np.minimum(1.0, 0.995 * _step(dz / z)) * dz


def _step(relative: FloatArray) -> FloatArray:
    """The longest step of at most 1 that keeps 1 + step · relative at or above 0, for each problem."""
    lowest = relative.min(axis=1, keepdims=True)
    return np.asarray(np.minimum(1.0, np.divide(-1.0, lowest, out=np.ones_like(lowest), where=lowest < 0)))
