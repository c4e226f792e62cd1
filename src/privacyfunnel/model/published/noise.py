r"""Discrete Laplace noise, drawn exactly, and the distribution of its sums, bounded rigorously.

.. math:: \Pr[Z = k] = \frac{1 - t}{1 + t}\, t^{|k|}, \qquad t = e^{-r},

for a rational rate r. Counts with this noise are 2r-differentially private under substitution of a row, which changes
two of them by one. No float takes part in a draw: chances are compared as integers from the operating system.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

from privacyfunnel.errors import ParameterError

RandBelow = Callable[[int], int]  # a uniform integer from 0 to its argument less one
BeforeNoise = Callable[[], None]  # called before each draw: who keeps account of noise may refuse it

DIGITS = Context(prec=80)
NEGLIGIBLE = Decimal("1e-25")  # chances beyond which noise is bounded as a whole
EXACT = Decimal("1e-60")  # relative: above the rounding of every sum of positive numbers below


def noise_variance(rate: Fraction) -> float:
    """The variance of discrete Laplace noise, 2t / (1 − t)² with t = e^{−r}.

    >>> round(noise_variance(Fraction(1, 100)))
    20000
    """
    return 0.5 / math.sinh(float(rate) / 2) ** 2


class NoiseSource(Protocol):
    """A source of discrete Laplace noise."""

    @property
    def rate(self) -> Fraction:
        """r, exactly as it is drawn."""

    def draw(self, count: int) -> list[int]:
        """That many independent draws."""


def skip() -> None:
    """Nobody keeps account."""


@dataclass(frozen=True, slots=True)
class LoggedNoise:
    """Noise of a source; whoever keeps account of it hears of every draw beforehand, and may refuse."""

    source: NoiseSource
    before_draw: BeforeNoise

    @property
    def rate(self) -> Fraction:
        return self.source.rate

    def draw(self, count: int) -> list[int]:
        self.before_draw()
        return self.source.draw(count)


@dataclass(frozen=True, slots=True)
class OwnNoise:
    """The sampler of Canonne, Kamath and Steinke (2020), in integers from the operating system."""

    rate: Fraction
    randbelow: RandBelow = secrets.randbelow

    def draw(self, count: int) -> list[int]:
        return [_draw_discrete_laplace(self.rate, self.randbelow) for _ in range(count)]


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Nothing is added to counts that are differentially private already; they are smoothed as if there were little."""

    rate: Fraction = Fraction(1)

    def draw(self, count: int) -> list[int]:
        return [0] * count


@dataclass(frozen=True, slots=True)
class OpenDPNoise:
    """OpenDP's sampler, whose scale is a float: the rate is that of the float, and never larger than was asked."""

    requested_rate: Fraction

    @property
    def scale(self) -> float:
        scale = float(1 / self.requested_rate)
        return scale if Fraction(scale) >= 1 / self.requested_rate else math.nextafter(scale, math.inf)

    @property
    def rate(self) -> Fraction:
        return 1 / Fraction(self.scale)

    def draw(self, count: int) -> list[int]:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise ParameterError(
                "noise from OpenDP needs the package opendp; it is not installed. Run pip install "
                "'privacyfunnel[opendp]', or leave the noise to privacyfunnel."
            ) from None
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        return list(dp.m.make_laplace(*space, scale=self.scale)([0] * count))


NOISES: Mapping[str, Callable[[Fraction], NoiseSource]] = {"own": OwnNoise, "opendp": OpenDPNoise}


def _draw_discrete_laplace(rate: Fraction, below: RandBelow) -> int:
    """A draw: a geometric number of steps of size 1/denominator, in whole numerators, with a fair sign.

    For r = u/v, X = U + vV has Pr[X = x] ∝ e^{−x/v} where U < v is accepted with chance e^{−U/v} and V counts
    successes of chance 1/e; then ⌊X/u⌋ has Pr ∝ e^{−kr}. Zero has one sign only.
    """
    u, v = rate.numerator, rate.denominator
    while True:
        part = below(v)
        if not _bernoulli_exp(part, v, below):
            continue
        whole = 0
        while _bernoulli_exp(1, 1, below):
            whole += 1
        size = (part + v * whole) // u
        negative = below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def _bernoulli_exp(numerator: int, denominator: int, below: RandBelow) -> bool:
    """True with chance e^{−γ} exactly, γ = numerator / denominator ≤ 1.

    The first K at which a coin of chance γ/K fails is odd with chance 1 − γ + γ²/2! − … = e^{−γ}.
    """
    k = 1
    while below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


@dataclass(frozen=True, eq=False)
class NoiseSum:
    r"""The sum of m independent draws: for k ≥ 0

    .. math:: \Pr[Z = k] = \Pr[Z = -k] = \Big(\frac{1-t}{1+t}\Big)^m t^k \binom{m+k-1}{k}
       \sum_{j<m} \binom{m-1}{j} \frac{m (m+1) \cdots (m+j-1)}{(k+1) \cdots (k+j)} \Big(\frac{t^2}{1-t^2}\Big)^j

    (the difference of two negative binomials, by Euler's and Pfaff's transformations of its hypergeometric series). All
    terms are positive, so 80 digits keep a relative error below 1e-60; the ratio of one chance to the one before falls
    with k and is below t (m + k)/(k + 1), which bounds what lies beyond.
    """

    rate: Fraction
    terms: int

    @cached_property
    def chances(self) -> tuple[Decimal, ...]:
        """Pr[Z = k] for k = 0 … reach."""
        return self._table[0]

    @property
    def reach(self) -> int:
        """The last k whose chance is listed."""
        return len(self.chances) - 1

    @property
    def remainder(self) -> Decimal:
        """At least Pr[Z > reach]."""
        return self._table[1]

    @cached_property
    def _table(self) -> tuple[tuple[Decimal, ...], Decimal]:
        m = self.terms
        if m == 0:
            return (Decimal(1),), Decimal(0)
        with localcontext(DIGITS):
            t = (-Decimal(self.rate.numerator) / Decimal(self.rate.denominator)).exp()
            odds = t * t / (1 - t * t)
            front = ((1 - t) / (1 + t)) ** m
            found: list[Decimal] = []
            while True:
                k = len(found)
                term = total = Decimal(1)
                for j in range(m - 1):
                    term *= odds * ((m - 1 - j) * (m + j)) / ((j + 1) * (k + j + 1))
                    total += term
                found.append(front * total)
                front *= t * (m + k) / (k + 1)
                ratio = t * (m + k) / (k + 1)
                if ratio < 1 and found[-1] * ratio <= NEGLIGIBLE * (1 - ratio):
                    return tuple(found), found[-1] * ratio / (1 - ratio) * (1 + EXACT)

    @cached_property
    def tail_bounds(self) -> tuple[Decimal, ...]:
        """At least Pr[Z > k] for k = −1 … reach (the first is Pr[Z ≥ 0])."""
        with localcontext(DIGITS):
            found = [self.remainder]
            for chance in reversed(self.chances):
                found.append(found[-1] + chance * (1 + EXACT))
            return tuple(reversed(found))

    @cached_property
    def cdf_bounds(self) -> tuple[Decimal, ...]:
        """At least Pr[Z ≤ k] for k = −reach … reach."""
        with localcontext(DIGITS):
            falling = [self.tail_bounds[k] for k in range(self.reach, 0, -1)]  # Pr[Z ≤ −k] = Pr[Z > k − 1]
            rising = [1 - self.tail_bounds[k + 1] * (1 - 2 * EXACT) + self.remainder for k in range(self.reach + 1)]
            return tuple(min(Decimal(1), chance * (1 + EXACT)) for chance in (*falling, *rising))

    def width(self, level: Fraction) -> int:
        """The smallest b for which Pr[Z > b] ≤ level is proved."""
        with localcontext(DIGITS):
            allowed = Decimal(level.numerator) / Decimal(level.denominator) * (1 - EXACT)
            for b, chance in enumerate(self.tail_bounds[1:]):
                if chance <= allowed:
                    return b
        raise ParameterError("a level must be above 1e-24 for a bound on noise; it is not.")


@lru_cache(maxsize=256)
def noise_sum(rate: Fraction, terms: int) -> NoiseSum:
    """The sum of so many draws at a rate, made once."""
    return NoiseSum(rate, terms)
