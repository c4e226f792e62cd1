r"""One-sided Clopper–Pearson bounds of a share, as multiples of 2⁻⁴⁰: proved for certificates, floats for statements.

k of n independent people have a property whose share is p. The lower bound at level α is the largest L with

.. math:: \Pr[\mathrm{Bin}(n, L) \ge k] = I_L(k, n - k + 1) \le \alpha,

so that p < L happens with probability at most α, whatever p is; the upper bound is its mirror, 1 − L(n − k). Both are
numerators over 2⁴⁰, rounded to the safe side. Each is *proved*: Arb (python-flint) encloses the incomplete beta
function I at that very multiple in an interval that holds it. The inverse in floats (SciPy) gives the first guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray

BITS = 40
SCALE: int = 1 << BITS  # bounds are numerators over this
PRECISIONS = (53, 80, 160, 320)  # bits, until a tail is told from its level; where they are equal it never is
OUTWARD_MARGIN = 2.0**-30  # of a bound in floats


def lower_bounds(k: FloatArray, n: FloatArray, level: FloatArray | float) -> FloatArray:
    """The lower bound of each share in floats, to some ten digits, for 1 ≤ k ≤ n. Nothing is proved.

    >>> lower_bounds(np.array([1.0, 5.0]), np.array([1.0, 5.0]), 0.5**5).round(12).tolist()
    [0.03125, 0.5]
    """
    from scipy import special

    return np.asarray(special.betaincinv(k, n - k + 1, level))


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
    """The upper bounds of many cells: k people have the property exactly when n − k do not."""
    k, n = np.broadcast_arrays(np.asarray(k, dtype=np.int64), np.asarray(n, dtype=np.int64))
    return np.asarray(SCALE - exact_lower_bounds(n - k, n, level), dtype=np.int64)


def exact_lower_bounds(k: IntArray, n: IntArray, level: Fraction | Iterable[Fraction]) -> IntArray:
    """The lower bounds of many cells, in their shape; `level` is one for all, or one for each in reading order."""
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
        yield 0 if k == 0 else _largest_fit(k, n, part, min(max(int(guess), 0), SCALE - 1))


def _largest_fit(k: int, n: int, level: Fraction, guess: int) -> int:
    """The last m in 0 … SCALE − 1 whose tail is proved to be at most the level, by doubling steps from the guess."""

    def fits(m: int) -> bool:
        return m == 0 or is_at_most(lambda: binomial_tail(k, n, m), level)

    step = 1
    if fits(guess):
        good, bad = guess, min(guess + step, SCALE)
        while bad < SCALE and fits(bad):
            step *= 2
            good, bad = bad, min(bad + step, SCALE)
    else:
        good, bad = max(guess - step, 0), guess
        while not fits(good):
            step *= 2
            good, bad = max(good - step, 0), good
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def binomial_tail(k: int, n: int, m: int) -> Any:
    """An interval that holds Pr[Bin(n, m / 2⁴⁰) ≥ k], for k ≥ 1."""
    from flint import arb, fmpq

    return arb(fmpq(m, SCALE)).beta_lower(k, n - k + 1, True)


def is_at_most(enclose: Callable[[], Any], level: Fraction) -> bool:
    """Whether what `enclose` encloses, ever more closely, is proved to be at most the level."""
    from flint import arb, ctx, fmpq

    for bits in PRECISIONS:
        with ctx.workprec(bits):
            value, limit = enclose(), arb(fmpq(level.numerator, level.denominator))
            if value <= limit:  # of the whole interval
                return True
            if value > limit:
                return False
    return False


@dataclass(frozen=True, slots=True)
class OutwardBounds:
    """Bounds from the rows themselves in floats, rounded outwards: for statements, and never for a certificate.

    Every bound is moved outwards by 2⁻³⁰ of itself, and to a multiple of 2⁻⁴⁰ beyond, so that it lies outside the exact
    one as long as nine digits are right. Nothing proves that they are.
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
