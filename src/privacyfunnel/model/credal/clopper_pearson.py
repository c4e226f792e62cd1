r"""Exact one-sided Clopper–Pearson bounds of a share, as multiples of 2⁻⁴⁰.

k of n independent people have a property whose share is p. The lower bound at level α is the largest L with

.. math:: \Pr[\mathrm{Bin}(n, L) \ge k] \le \alpha,

so that p < L happens with probability at most α, whatever p is; the upper bound is its mirror, 1 − L(n − k). Both are
numerators over 2⁴⁰, rounded to the safe side, and each is *proved*: the tail at that very multiple is

.. math:: \Pr[\mathrm{Bin}(n, p) \ge k] = \frac{n!}{(k-1)!\,(n-k)!}\, p^k (1-p)^{n-k+1}
   \cdot \cfrac{1}{\beta_0 + \cfrac{\alpha_1}{\beta_1 + \cfrac{\alpha_2}{\beta_2 + \cdots}}}

(the even part of the continued fraction of the incomplete beta function; DiDonato and Morris, 1992). For integers with
k + 1 > (n + 1) p all α and β are positive and the fraction ends, so its convergents lie on alternating sides of the
tail. They are built from positive numbers by adding, multiplying and dividing in 80 digits: no cancellation, so a
relative error below 1e-60, which is added on the unsafe side. The factorials follow Stirling's series, whose error is
below its first omitted term. Floats give the first guess; the proof decides.

Clopper–Pearson bounds of shares in floats.

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

Clopper–Pearson bounds of shares in floats, rounded outwards: for statements, and never for a certificate.

Floats give the bounds to some 12 digits. Every bound is moved outwards by 2⁻³⁰ of itself, and to a multiple of 2⁻⁴⁰
beyond, so that it lies outside the exact one as long as nine digits are right. Nothing proves that they are;
the exact bounds are proved, at a millisecond or two for every bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray

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


BITS = 40
SCALE: int = 1 << BITS  # bounds are numerators over this

DIGITS = Context(prec=80)
SLACK = Decimal("1e-60")  # above every rounding error of a logarithm below: some hundred operations of 1e-68 each
CONVERGED = Decimal("1e-20")  # convergents this close (relatively) decide all but ties
MOST_CONVERGENTS = 1_000_000  # convergents asked for before a bound counts as not proved
EXACT_FACTORIALS = 64  # from here Stirling's series reaches 80 digits


def exact_lower_bound(k: int, n: int, level: Fraction) -> int:
    """The largest multiple L of 2⁻⁴⁰ for which Pr[Bin(n, L) ≥ k] ≤ level is proved; its numerator.

    A level that equals a tail at a multiple gives the multiple below it, the safe one.

    >>> exact_lower_bound(1, 1, Fraction(1, 20)) == SCALE // 20, exact_lower_bound(0, 10, Fraction(1, 20))
    (True, 0)
    """
    return int(exact_lower_bounds(np.array([k]), np.array([n]), level)[0])


def exact_upper_bound(k: int, n: int, level: Fraction) -> int:
    """The smallest multiple U of 2⁻⁴⁰ for which Pr[Bin(n, U) ≤ k] ≤ level is proved; its numerator."""
    return int(exact_upper_bounds(np.array([k]), np.array([n]), level)[0])


def exact_upper_bounds(k: IntArray, n: IntArray, level: Fraction | Iterable[Fraction]) -> IntArray:
    """`upper` of many cells: k people have the property exactly when n − k do not."""
    k, n = np.broadcast_arrays(np.asarray(k, dtype=np.int64), np.asarray(n, dtype=np.int64))
    return np.asarray(SCALE - exact_lower_bounds(n - k, n, level), dtype=np.int64)


def exact_lower_bounds(k: IntArray, n: IntArray, level: Fraction | Iterable[Fraction]) -> IntArray:
    """`lower` of many cells, in their shape; `level` is one for all, or one for each in reading order."""
    k, n = np.broadcast_arrays(np.asarray(k, dtype=np.int64), np.asarray(n, dtype=np.int64))
    levels = [level] * k.size if isinstance(level, Fraction) else list(level)
    cells = list(zip(k.ravel().tolist(), n.ravel().tolist(), levels, strict=True))
    if not all(0 <= seen <= total and 0 < part <= Fraction(1, 2) for seen, total, part in cells):
        raise ValueError("a bound needs 0 ≤ k ≤ n and a level in (0, 1/2].")
    distinct = sorted(set(cells))
    found = dict(zip(distinct, _prove_bounds(distinct), strict=True))
    return np.array([found[cell] for cell in cells], dtype=np.int64).reshape(k.shape)


def _prove_bounds(cells: list[tuple[int, int, Fraction]]) -> Iterator[int]:
    """The bounds one after another, each searched from the guess of floats."""
    seen = np.array([max(k, 1) for k, _, _ in cells], dtype=np.float64)
    total = np.array([max(n, 1) for _, n, _ in cells], dtype=np.float64)
    level = np.array([float(part) for _, _, part in cells])
    guesses = lower_bounds(seen, total, level) * SCALE
    for (k, n, part), guess in zip(cells, guesses.tolist(), strict=True):
        if k == 0:
            yield 0
            continue
        with localcontext(DIGITS):
            tail = BinomialTail(k, n, part)
            yield _largest_fit(tail.fits, min(max(int(guess), 0), SCALE - 1))


def _largest_fit(fits: Callable[[int], bool], guess: int) -> int:
    """The last m in 0 … SCALE − 1 that fits, where 0 does and whatever is below one that does; by doubling steps."""
    step = 1
    if guess == 0 or fits(guess):
        good, bad = guess, min(guess + step, SCALE)
        while bad < SCALE and fits(bad):
            step *= 2
            good, bad = bad, min(bad + step, SCALE)
    else:
        good, bad = max(guess - step, 0), guess
        while good > 0 and not fits(good):
            step *= 2
            good, bad = max(good - step, 0), good
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


class BinomialTail:
    """Pr[Bin(n, m / 2⁴⁰) ≥ k] against a level, for k ≥ 1; call under `DIGITS`."""

    def __init__(self, k: int, n: int, level: Fraction) -> None:
        self.k, self.n = k, n
        ways = log_factorial(n) - log_factorial(k - 1) - log_factorial(n - k)
        self._log_limit = Decimal(level.numerator).ln() - Decimal(level.denominator).ln() - ways

    def fits(self, m: int) -> bool:
        """Whether the tail is proved to be at most the level."""
        k, n = self.k, self.n
        if m * (n + 1) >= (k + 1) * SCALE:
            return False  # the tail is above a half there, and the convergents no longer bracket it
        p, q = Decimal(m) / SCALE, Decimal(SCALE - m) / SCALE  # both exact: 40 digits
        room = self._log_limit - k * p.ln() - (n - k + 1) * q.ln()  # of the fraction's logarithm
        above = below = Decimal(0)
        for above, below in brackets(k, n, m):
            if above - below <= CONVERGED * below:
                break
        return bool(above > 0 and above.ln() + SLACK <= room)


def brackets(k: int, n: int, m: int) -> Iterator[tuple[Decimal, Decimal]]:
    """Ever closer numbers above and below the fraction at p = m / 2⁴⁰ < (k + 1) / (n + 1), to a relative 1e-60.

    Numerators A and denominators B of the convergents obey one recurrence A_j = β_j A_{j−1} + α_j A_{j−2}, all of it
    positive. Even convergents (β₀ alone is the first) lie above, odd ones below; the last is the value itself.
    """
    b = n - k + 1
    p = Decimal(m) / SCALE
    reach = 2 - p  # 1 + (1 − p)
    excess = Decimal(k * SCALE - (n + 1) * m) / SCALE + 1  # exact, as every integer here is below 2⁸⁰
    squared = p * p
    one_before, before = (Decimal(0), Decimal(1)), (Decimal(1), k * excess / (k + 1))
    above = before[0] / before[1]
    for j in range(1, min(b, MOST_CONVERGENTS)):
        odd = k + 2 * j - 1
        left = j * (b - j)
        alpha = ((k + j - 1) * (n + j) * left) * squared / (odd * odd)
        beta = j + left * p / odd + (k + j) * (excess + j * reach) / (odd + 2)
        latest = (beta * before[0] + alpha * one_before[0], beta * before[1] + alpha * one_before[1])
        one_before, before = before, latest
        value = latest[0] / latest[1]
        if j % 2:
            below = value
        else:
            above = value
        yield above, below
    if b <= MOST_CONVERGENTS:
        value = before[0] / before[1]
        yield value, value


def log_factorial(n: int) -> Decimal:
    """ln n!, to an absolute 1e-65; call under `DIGITS`."""
    if n < EXACT_FACTORIALS:
        return Decimal(math.factorial(n)).ln()
    x = Decimal(n)
    total = (x + Decimal("0.5")) * x.ln() - x + _half_log_of_two_pi()
    power = x
    for coefficient in _stirling_coefficients():
        term = coefficient / power
        total += term
        if abs(term) < Decimal("1e-75"):
            return total
        power *= x * x
    raise AssertionError("Stirling's series reaches 75 digits from 64 on")


@lru_cache(maxsize=1)
def _stirling_coefficients() -> tuple[Decimal, ...]:
    """B_2j / (2j (2j − 1)), j = 1 … 40, from the exact Bernoulli numbers."""
    bernoulli: list[Fraction] = []
    for i in range(81):
        partial = sum((math.comb(i + 1, j) * b for j, b in enumerate(bernoulli)), Fraction(0))
        bernoulli.append(Fraction(1) if i == 0 else -partial / (i + 1))
    parts = [bernoulli[2 * j] / (2 * j * (2 * j - 1)) for j in range(1, 41)]
    with localcontext(DIGITS):
        return tuple(Decimal(part.numerator) / Decimal(part.denominator) for part in parts)


@lru_cache(maxsize=1)
def _half_log_of_two_pi() -> Decimal:
    """½ ln 2π, with π by Machin's formula 16 arctan 1/5 − 4 arctan 1/239 in integers."""

    def arctan(inverse: int) -> int:
        power = unit // inverse
        total, j = power, 1
        while power:
            power //= inverse * inverse
            total += (-1) ** j * (power // (2 * j + 1))
            j += 1
        return total

    unit = 10**90
    with localcontext(DIGITS):
        return (Decimal(2 * (16 * arctan(5) - 4 * arctan(239))) / unit).ln() / 2


OUTWARD_MARGIN = 2.0**-30  # of a bound


@dataclass(frozen=True, slots=True)
class OutwardBounds:
    """Bounds from the rows themselves in floats, rounded outwards: for statements, and never for a certificate.

    Floats give the bounds to some 12 digits. Every bound is moved outwards by 2⁻³⁰ of itself, and to a multiple of
    2⁻⁴⁰ beyond, so that it lies outside the exact one as long as nine digits are right. Nothing proves that they are.
    """

    def box(self, counts: IntArray, level: Fraction) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds on the share of each cell of an event; each bound fails with chance `level`."""
        total = int(counts.sum())
        low, others = np.split(_outward_lower_bounds(np.concatenate([counts, total - counts]), total, level), 2)
        return low, SCALE - others

    def least_share(self, some: int, others: int, level: Fraction) -> int:
        """A lower bound on the share of an event with `some` rows among it and one of `others`."""
        return int(_outward_lower_bounds(np.array([some]), some + others, level)[0])


def _outward_lower_bounds(k: IntArray, n: int, level: Fraction) -> IntArray:
    seen = np.maximum(k, 1).astype(np.float64)
    share = lower_bounds(seen, np.full(seen.shape, max(n, 1.0)), float(level))
    outside = np.floor(share * (1 - OUTWARD_MARGIN) * SCALE) - 1
    return np.where(k > 0, np.clip(outside, 0, SCALE - 1), 0).astype(np.int64)
