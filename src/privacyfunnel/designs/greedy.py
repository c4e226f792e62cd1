"""Greedy merging: the usual way to the classical Privacy Funnel, without proof, to compare with.

Every value is published as it is at first. Then, time and again, two outputs become one: those that lower I(S;Y) by
most, less what they cost of I(X;Y) at some price. Several prices are tried.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.information import information, surprise
from privacyfunnel.model.joint import Joint

PRICES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)  # of a nat of I(X;Y), in nats of I(S;Y)


def greedy_merging(joint: Joint, average: float) -> float:
    """The most I(X;Y) that was found among partitions of the values with I(S;Y) of at most `average`.

    Outputs are disjoint sets of values, so that I(X;Y) is the entropy of Y.

    >>> round(greedy_merging(Joint.from_counts([[4, 1, 5], [1, 4, 5]]), 0.01), 3)
    0.693
    """
    return max(_merged(joint.p_sx, average, price) for price in PRICES)


def _merged(p_sy: FloatArray, average: float, price: float) -> float:
    told, kept = information(p_sy), float(surprise(p_sy.sum(axis=0)).sum())
    best = kept if told <= average else 0.0
    while told > average and p_sy.shape[1] > 1:
        one, other = np.triu_indices(p_sy.shape[1], 1)
        p_y = p_sy.sum(axis=0)[:, None]
        cost = -_change(p_y[one], p_y[other])  # of I(X;Y) = H(Y)
        less = _change(p_sy.T[one], p_sy.T[other]) + cost  # of I(S;Y) = H(S) + H(Y) − H(S, Y)
        enough = told - less <= average
        best = max(best, float((kept - cost)[enough].max(initial=0.0)))
        pair = int(np.argmax(less - price * cost))
        merged = p_sy[:, one[pair]] + p_sy[:, other[pair]]
        p_sy = np.column_stack([np.delete(p_sy, [one[pair], other[pair]], axis=1), merged])
        told, kept = information(p_sy), float(surprise(p_sy.sum(axis=0)).sum())
    return best


def _change(one: FloatArray, other: FloatArray) -> FloatArray:
    """By how much the terms −p ln p of two columns change when they become one; row by row."""
    return np.asarray((surprise(one + other) - surprise(one) - surprise(other)).sum(axis=1))
