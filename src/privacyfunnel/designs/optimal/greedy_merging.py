"""Greedy merging: the usual way to the classical Privacy Funnel, without proof, to compare with and to begin from.

Every value is published as it is at first. Then, time and again, two outputs become one: those that lower I(S;Y) by
most, less what they cost of I(X;Y) at some price. Several prices are tried. The way down is the same for every average,
so that one walk serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, entropy_terms
from privacyfunnel.engine.clock import FOREVER, WORK, Clock
from privacyfunnel.model.information import information
from privacyfunnel.model.joint import Joint

PRICES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)  # of a nat of I(X;Y), in nats of I(S;Y)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A partition of the values: outputs are disjoint sets of them, so that I(X;Y) is the entropy of Y."""

    information: float  # I(X;Y)
    output: IntArray  # of each value

    def posteriors(self, joint: Joint) -> FloatArray:
        """p(x | y), a row per output."""
        p_yx = (self.output == np.unique(self.output)[:, None]) * joint.p_x
        return np.asarray(p_yx / p_yx.sum(axis=1, keepdims=True))


def greedy_merging(joint: Joint, averages: Sequence[float], clock: Clock = FOREVER) -> tuple[Partition, ...]:
    """For each average the partition that keeps most, among those that were met with I(S;Y) of at most that.

    >>> [round(merged.information, 3) for merged in greedy_merging(Joint.from_counts([[4, 1, 5], [1, 4, 5]]), [0.01])]
    [0.693]
    """
    found = [Partition(0.0, np.zeros(joint.a, dtype=np.int64)) for _ in averages]
    p_y = joint.p_x[None, :]
    cost = np.array([-_change(p_y, y) for y in range(joint.a)])  # of I(X;Y) = H(Y)
    less = cost + [_change(joint.p_sx, y) for y in range(joint.a)]  # of I(S;Y) = H(S) + H(Y) − H(S, Y)
    for price in PRICES:
        found = _walk(joint.p_sx, averages, price, cost, less, found, clock)
    return tuple(found)


def _walk(
    p_sy: FloatArray,
    averages: Sequence[float],
    price: float,
    cost: FloatArray,
    less: FloatArray,
    found: list[Partition],
    clock: Clock,
) -> list[Partition]:
    """The better of what was found before and of what is one step from a walk at this price."""
    p_sy, cost, less, best = p_sy.copy(), cost.copy(), less.copy(), list(found)
    output = left = np.arange(p_sy.shape[1])  # a merged output has the number of the first of its values
    while len(left) > 1 and not clock.late:
        told, kept = information(p_sy[:, left]), float(entropy_terms(p_sy[:, left].sum(axis=0)).sum())
        one, other = (left[side] for side in np.triu_indices(len(left), 1))
        by_cost, by_less = cost[one, other], less[one, other]
        WORK.entries += one.size * (4 + 2 * len(averages))
        for number, average in enumerate(averages):
            if told <= average and kept > best[number].information:
                best[number] = Partition(kept, output)
            after = np.where(told - by_less <= average, kept - by_cost, 0.0)
            pair = int(np.argmax(after))
            if after[pair] > best[number].information:
                best[number] = Partition(float(after[pair]), np.where(output == other[pair], one[pair], output))
        pair = int(np.argmax(by_less - price * by_cost))
        first, second = int(one[pair]), int(other[pair])
        output, left = np.where(output == second, first, output), left[left != second]
        p_sy[:, first] += p_sy[:, second]
        p_y = p_sy.sum(axis=0)[None, :]
        cost[first] = cost[:, first] = -_change(p_y, first)
        less[first] = less[:, first] = cost[first] + _change(p_sy, first)
    return best


def _change(p: FloatArray, y: int) -> FloatArray:
    """By how much the terms −p ln p of a column and each other one change when they become one."""
    own = p[:, y, None]
    return np.asarray((entropy_terms(p + own) - entropy_terms(p) - entropy_terms(own)).sum(axis=0))
