r"""The largest ratio over all members of sets of priors, exactly.

For an output with integers N(z) and a pair (E, F) of sets with share π the worst members are greedy: sort N, begin at
the lower ends and hand out the rest. All of it is in integers, so that the ratios

.. math:: \frac{h_E}{\pi h_E + (1 - \pi) l_F}, \qquad \frac{\pi l_E + (1 - \pi) h_F}{l_E}

are fractions. Floats only choose which few of them are worth computing: members are exact in floats and all terms of
the sums are positive, so floats are off by a factor that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import SizeError
from privacyfunnel.mechanisms.exact_arithmetic import NO_LEAK, ExactLeak, exact_leak, larger_leak
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.protocols.forced_response import cell_bounds

NEAR = 1e-10  # log-ratios closer than this to the largest are compared again as fractions
ROUNDING = 2.0**-53  # of one operation on floats

Column = Callable[[int], Sequence[int]]  # N(z) of an output, by its number
Name = Callable[[int], Any]  # what the output of that number is called


def exact_credal_leak(
    sets: CredalSets, channel: FloatArray, column: Column, name: Name = int, factors: int = 1
) -> ExactLeak:
    """The largest ratio over outputs, pairs and members; `channel` are the floats of N, products of so many each."""
    if (sets.inputs + 4 * factors + 8) * 8 * ROUNDING > NEAR / 4:
        raise SizeError(f"For a population a law is sealed for fewer inputs than {sets.inputs:,}.")
    sizes = np.log(sets.ratios(*sets.inverse_ratios(channel)))
    top = sizes.max(initial=0.0)
    pairs, outputs = np.nonzero(sizes >= top - NEAR) if np.isfinite(top) else np.nonzero(np.isinf(sizes))
    if np.isinf(top):
        pairs, outputs = pairs[:1], outputs[:1]
    worst, members = NO_LEAK, {y: _extreme_masses(sets, column(y)) for y in np.unique(outputs).tolist()}
    for pair, y in zip(pairs.tolist(), outputs.tolist(), strict=True):
        worst = larger_leak(worst, exact_leak(sets, _pair_ratio(sets, pair, *members[y]), pair, name(y)))
    return worst


def _extreme_masses(sets: CredalSets, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """h_E and l_E of every set, over 2⁴⁰ times what the integers are over."""
    order = np.array(sorted(range(len(numbers)), key=numbers.__getitem__), dtype=np.int64)
    exact = np.array(numbers, dtype=object)
    highest, lowest = (
        sets.greedy_members(order[::-1]).astype(object) @ exact,
        sets.greedy_members(order).astype(object) @ exact,
    )
    return [int(h) for h in highest], [int(low) for low in lowest]


def _pair_ratio(sets: CredalSets, pair: int, highest: list[int], lowest: list[int]) -> Fraction | None:
    (e, f), pi = sets.pairs[pair].tolist(), int(sets.share[pair])
    up = (highest[e] * SCALE, pi * highest[e] + (SCALE - pi) * lowest[f])
    down = (pi * lowest[e] + (SCALE - pi) * highest[f], lowest[e] * SCALE)
    return largest_fraction([up, down])


def largest_fraction(quotients: Sequence[tuple[int, int]]) -> Fraction | None:
    """The largest of these quotients of integers, and 1; None where one is infinite. 0 over 0 says nothing."""
    if any(above > 0 and below == 0 for above, below in quotients):
        return None
    return reduce(max, (Fraction(above, below) for above, below in quotients if below), Fraction(1))


def forced_credal_leak(sets: CredalSets, truth: int, noise: NDArray[Any], own: IntArray) -> ExactLeak:
    """The same for a forced response, of whose outputs each has one input that is likelier than all others."""
    lowest, highest = (
        truth * _record_bounds(bound, own, len(noise)) + SCALE * noise[None, :] for bound in cell_bounds(sets)
    )
    e, f = sets.pairs.T
    # Integers of up to 104 bits: their quotients as floats are within a few units of the last place.
    one, other = (_quotients(low, high) for low, high in ((lowest[f], highest[e]), (lowest[e], highest[f])))
    sizes = np.log(sets.ratios(one, other))
    top = sizes.max(initial=0.0)
    pairs, outputs = np.nonzero(sizes >= top - NEAR) if np.isfinite(top) else np.nonzero(np.isinf(sizes))
    worst = NO_LEAK
    for pair, y in zip(pairs.tolist(), outputs.tolist(), strict=True):
        column = [int(h) for h in highest[:, y]], [int(low) for low in lowest[:, y]]
        worst = larger_leak(worst, exact_leak(sets, _pair_ratio(sets, pair, *column), pair, y))
        if worst.ratio is None:
            break
    return worst


def _record_bounds(bound: IntArray, own: IntArray, records: int) -> NDArray[Any]:
    """Bounds on the chances of inputs as bounds on those of the records that they are."""
    held = np.zeros((len(bound), records), dtype=object)
    np.add.at(held.T, own, bound.T.astype(object))
    return held


def _quotients(part: NDArray[Any], whole: NDArray[Any]) -> FloatArray:
    shares = np.divide(part, whole, out=np.ones(part.shape, dtype=object), where=whole > 0)
    return np.asarray(shares, dtype=np.float64)


def outward_credal_leak(sets: CredalSets, outputs: FloatArray, names: IntArray, error: float) -> ExactLeak:
    """The largest ratio among some outputs, a column each of P(y | z) in floats, whose error is added to it."""
    if not len(names) or not len(sets.pairs):
        return NO_LEAK
    ratios = sets.ratios(*sets.inverse_ratios(outputs))
    pair, y = map(int, np.unravel_index(int(ratios.argmax()), ratios.shape))
    largest = float(ratios[pair, y])
    above = Fraction(largest) * (1 + Fraction(error)) if np.isfinite(largest) else None
    return exact_leak(sets, above, pair, int(names[y]))
