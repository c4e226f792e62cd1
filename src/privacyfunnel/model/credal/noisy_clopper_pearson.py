r"""Bounds of a share from a count with noise: Clopper and Pearson's, through the noise.

The count seen is Bin(n, p) + Z, Z a sum of discrete Laplace draws. The upper bound at level α is a U with

.. math:: \Pr[\mathrm{Bin}(n, U) + Z \le \text{seen}] \le \alpha,

so that p > U happens with probability at most α whatever p is; the lower bound is its mirror, for Z is symmetric. With
b the binomial chances and B the reach of the noise,

.. math:: \Pr[\mathrm{Bin} + Z \le k] \le \Pr[\mathrm{Bin} < k - B] + \sum_{|j - k| \le B} b(j) \Pr[Z \le k - j]
   + \Pr[Z < -B],

every part of it positive, so that 80 digits keep a relative error below 1e-60, which is added. Floats give the guess, a
billionth is given away, and what is returned has been proved. If n is only known to lie between two numbers, the bound
is taken at the worse end: fewer trials make the tail larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.credal.clopper_pearson import CONVERGED, DIGITS, SCALE, brackets, log_factorial
from privacyfunnel.model.credal.clopper_pearson import exact_upper_bound as upper_without_noise
from privacyfunnel.model.published.noise import EXACT, NoiseSum

FLOAT_MARGIN = 1e-9  # relative to the share: what floats may be wrong by without a second look


@dataclass(frozen=True, eq=False)
class NoisyClopperPearson:
    """Bounds at one level through one kind of noise, as numerators over 2⁴⁰."""

    noise: NoiseSum
    level: Fraction

    def lower(self, seen: int, trials: int) -> int:
        """A multiple L with Pr[Bin(trials, L) + Z ≥ seen] ≤ level; take the largest that `trials` may be."""
        return SCALE - self.upper(trials - seen, trials)

    def upper(self, seen: int, trials: int) -> int:
        """A multiple U with Pr[Bin(trials, U) + Z ≤ seen] ≤ level; take the smallest that `trials` may be."""
        seen = max(seen, 0)  # a larger count has a larger bound, and no count is negative
        if seen >= trials:
            return SCALE
        if self.noise.terms == 0:
            return upper_without_noise(seen, trials, self.level)
        guess = self._guess(seen, trials)
        with localcontext(DIGITS):
            spare = max(guess * FLOAT_MARGIN, 1.0)
            while guess < SCALE:
                m = int(guess + spare) + 1
                if m >= SCALE:
                    break
                if self._fits(seen, trials, m):
                    return m
                spare *= 4
        return SCALE

    def _guess(self, k: int, n: int) -> float:
        """Where the tail is the level, in floats, as a numerator over 2⁴⁰."""
        from scipy import optimize, special

        reach = self.noise.reach
        j = np.arange(max(0, k - reach), min(n, k + reach) + 1, dtype=np.float64)
        ways = special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(n - j + 1)
        noise = self._log_cdf[(k + reach - j).astype(np.int64)]
        wanted = np.log(float(self.level))

        def log_excess(p: float) -> float:
            inside = special.logsumexp(ways + special.xlogy(j, p) + special.xlog1py(n - j, -p) + noise)
            far = special.bdtr(k - reach - 1, n, p) if k > reach else 0.0
            return float(np.logaddexp(inside, np.log(far) if far > 0 else -np.inf) - wanted)

        low, high = 0.0, 1.0 - 1e-15
        if log_excess(high) > 0:
            return float(SCALE)
        return float(optimize.brentq(log_excess, low, high, xtol=1e-13, rtol=1e-11)) * SCALE

    @cached_property
    def _log_cdf(self) -> FloatArray:
        return np.asarray(np.log(np.array([float(chance) for chance in self.noise.cdf_bounds])))

    def _fits(self, k: int, n: int, m: int) -> bool:
        """Whether the tail at m is proved to be at most the level; call under `DIGITS`."""
        noise, p, q = self.noise, Decimal(m) / SCALE, Decimal(SCALE - m) / SCALE
        first, last = max(0, k - noise.reach), min(n, k + noise.reach)
        ways = log_factorial(n) - log_factorial(first) - log_factorial(n - first)
        chance = (ways + first * p.ln() + (n - first) * q.ln()).exp()
        odds = p / q
        total = noise.remainder
        if first > 0:
            far = _binomial_cdf_bound(first - 1, n, m)
            if far is None:
                return False
            total += far
        place = noise.reach + k
        for j in range(first, last + 1):
            total += chance * noise.cdf_bounds[place - j]
            chance = chance * ((n - j) * odds) / (j + 1)
        allowed = Decimal(self.level.numerator) / Decimal(self.level.denominator)
        return bool(total * (1 + EXACT) <= allowed * (1 - EXACT))


def _binomial_cdf_bound(k: int, n: int, m: int) -> Decimal | None:
    """At least Pr[Bin(n, m / 2⁴⁰) ≤ k], k < n, to a relative 1e-20; None where the mean is not above k."""
    misses, rest = n - k, SCALE - m  # as many misses or more
    if rest * (n + 1) >= (misses + 1) * SCALE:
        return None
    ways = log_factorial(n) - log_factorial(misses - 1) - log_factorial(k)
    front = ways + misses * (Decimal(rest) / SCALE).ln() + (k + 1) * (Decimal(m) / SCALE).ln()
    above = below = Decimal(0)
    for above, below in brackets(misses, n, rest):
        if above - below <= CONVERGED * below:
            break
    return front.exp() * above * (1 + EXACT)
