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

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import SizeError
from privacyfunnel.mechanisms.exact_arithmetic import NO_LEAK, ExactLeak, exact_leak, larger_leak
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.credal_sets import CredalSets

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
