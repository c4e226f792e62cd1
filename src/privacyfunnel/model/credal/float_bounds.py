r"""Clopper–Pearson bounds of shares in floats.

With k of n seen, the lower bound at level α solves :math:`T(p) = \Pr[\mathrm{Bin}(n, p) \ge k] = \alpha`. As an
incomplete beta function, with :math:`t = p e^{-u}`,

.. math:: T(p) = k\, b(k; n, p)\, G(p), \qquad
   G(p) = \int_0^\infty e^{-k u} \Bigl(\frac{1 - p e^{-u}}{1 - p}\Bigr)^{n-k} \mathrm d u, \qquad
   \frac{\mathrm d \ln T}{\mathrm d \ln p} = \frac1{G(p)},

where b is the chance of exactly k. ln T is concave in ln p, so that Newton's steps climb to the root from below after
the first. The logarithm of the integrand is concave as well, falls by :math:`\lambda = (k - n p) / (1 - p)` and bends
by :math:`c = (n - k) p / (1 - p)^2` at 0: on the scale that these two give, one rule with nodes that are doubly
exponential (Takahasi and Mori, 1974) serves for all. b comes from Stirling's errors and deviances (Loader, 2000),
which are small where its factorials are huge. Nothing cancels: some twelve digits are right, however many rows.

Nothing here is proved. It serves for first guesses, and for statements that are rounded outwards.
"""

from __future__ import annotations

import math

import numpy as np

from privacyfunnel.arrays import FloatArray

SERIES_FROM = 16  # rows from which five terms of Stirling's series have all digits
CLOSE = 1e-7  # of a share: after a step of Newton's that is smaller, the square of it is left
MOST_STEPS = 60


def lower_bounds(k: FloatArray, n: FloatArray, level: FloatArray | float) -> FloatArray:
    """The lower bound of each share, for 1 ≤ k ≤ n and levels of at most a half.

    >>> lower_bounds(np.array([1.0, 5.0]), np.array([1.0, 5.0]), 0.5**5).round(12).tolist()
    [0.03125, 0.5]
    """
    z2 = -2 * np.log(level)
    # Wilson's bound to begin with, for at least as many standard deviations.
    p = np.minimum(k * k / (k + z2 / 2 + np.sqrt(z2 * (k * (n - k) / n + z2 / 4))) / n, k / (n + 1))
    for _ in range(MOST_STEPS):
        G = _integral(k, n, p)
        step = G * (np.log(level) - _log_chance(k, n, p) - np.log(k * G))
        p = p * np.exp(step)
        if (np.abs(step) <= CLOSE).all():
            break
    return p


def _integral(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """G(p) for p < k / n."""
    q = 1 - p
    falls, bends = (k - n * p) / q, (n - k) * p / (q * q)
    scale = 2 / (falls + np.sqrt(falls * falls + 4 * bends))
    u = scale[:, None] * _NODES
    fallen = k[:, None] * u - (n - k)[:, None] * np.log1p((p / q)[:, None] * -np.expm1(-u))
    return np.asarray(scale * (np.exp(-fallen) @ _WEIGHTS))


def _log_chance(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """ln Pr[Bin(n, p) = k] for 0 < k ≤ n and 0 < p < 1."""
    others = n - k
    errors = _stirling_error(n) - _stirling_error(k) - _stirling_error(others)
    spread = 2 * np.pi * k * np.maximum(others, 1 / (2 * np.pi)) / n  # 1 where all have it
    return np.asarray(errors - _deviance(k, n * p) - _deviance(others, n * (1 - p)) - np.log(spread) / 2)


def _stirling_error(n: FloatArray) -> FloatArray:
    """ln n! − (n + ½) ln n + n − ½ ln 2π, and 0 for nobody."""
    x = np.maximum(n, SERIES_FROM)
    s = 1 / (x * x)
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / x
    return np.where(n < SERIES_FROM, _FEW[np.minimum(n, SERIES_FROM - 1).astype(np.int64)], series)


def _deviance(seen: FloatArray, mean: FloatArray) -> FloatArray:
    """seen · ln(seen / mean) + mean − seen."""
    off = np.where(seen > 0, (seen - mean) / mean, 0.0)
    return mean * np.where(seen > 0, (1 + off) * np.log1p(off) - off, 1.0)


def _exact_stirling_error(n: int) -> float:
    return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2


_FEW = np.array([0.0, *map(_exact_stirling_error, range(1, SERIES_FROM))])
_x = np.arange(-3.6, 3.9, 0.1)
_NODES = np.exp(_x - np.exp(-_x))
_WEIGHTS = 0.1 * _NODES * (1 + np.exp(-_x))
