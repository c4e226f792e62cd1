"""Leakage at scale: all 2^m side channels of many attributes, sparse over the combinations that occur.

Two shapes of protocols can be gone through: those whose outputs come from few combinations each (a sparse table), and
products. For a product the number of outputs is the product of the columns' outputs; where going through all of them
takes longer than is given, the rest is bounded, and the answer says between which two numbers the leakage lies.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from privacyfunnel.errors import DistributionError
from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.product import ProductProtocol, bounds_of_pairs
from privacyfunnel.model.promises import Promise

WORKED_ON = 1 << 22  # entries of P(y | E) that are worked on at a time


@dataclass(frozen=True, slots=True)
class Measured:
    """The largest leak that was found, and a number that no leak exceeds: the same where everything was looked at."""

    leak: Leak
    bound: float


def measured(
    joint: Joint, promise: Promise, protocol: ProductProtocol | csr_array, seconds: float = math.inf
) -> Measured:
    """Where the protocol leaks most. A plain protocol is given as its sparse table, a row per combination.

    Side channels that know least come first: what they show lets most others be skipped, since the more is known, the
    less an output can add. What is not reached in time is bounded by that (see `bounds_of_pairs`); of a sparse table
    nothing is known then.
    """
    deadline = time.monotonic() + seconds
    worst, bound = Leak(0.0), 0.0
    for block in promise.comparisons(joint, False):
        if time.monotonic() >= deadline:
            if not isinstance(protocol, ProductProtocol):
                bound = math.inf
                break
            limits = bounds_of_pairs(protocol.channels, protocol.combos, block)
            bound = max(bound, float(limits.max(initial=0.0)))
            continue
        if isinstance(protocol, ProductProtocol):
            found = protocol.worst(block, worst.epsilon)
        else:
            found, whole = sparse_worst(protocol, block, deadline)
            bound = bound if whole else math.inf
        if found.output is not None and (worst.output is None or found.epsilon > worst.epsilon):
            worst = found
        if math.isinf(worst.epsilon):
            break
    return Measured(worst, max(bound, worst.epsilon))


def sparse_worst(channel: csr_array, comparisons: Comparisons, deadline: float = math.inf) -> tuple[Leak, bool]:
    """The output and pair of events with the largest |ln P(y|E)/P(y|F)|, for a sparse table q(y | input).

    Some outputs at a time, so that memory stays small; whether all were looked at before the deadline.
    """
    if comparisons.inputs != channel.shape[0]:
        raise DistributionError(
            f"A protocol must have a row per input; it has {channel.shape[0]}, the table {comparisons.inputs}."
        )
    outputs = channel.shape[1]
    # An event has at most as many outputs as its inputs have together.
    entries = int(np.diff(channel.indptr)[comparisons.input].sum())
    worst = Leak(0.0)
    for part in np.array_split(np.arange(outputs), min(outputs, 1 + entries // WORKED_ON)):
        if time.monotonic() >= deadline:
            return worst, False
        found = _worst_among(csr_array(channel[:, part]), comparisons, int(part[0]))
        if found.output is not None and (worst.output is None or found.epsilon > worst.epsilon):
            worst = found
        if math.isinf(worst.epsilon):
            break
    return worst, True


def _worst_among(channel: csr_array, comparisons: Comparisons, first: int) -> Leak:
    p = csr_array(comparisons.distributions @ channel)
    p.eliminate_zeros()
    p.sort_indices()
    one, other = csr_array(p[comparisons.pairs[:, 0]]), csr_array(p[comparisons.pairs[:, 1]])
    # An output that comes under only one of the two events is an infinite leak; without one, the patterns agree.
    if one.nnz != other.nnz or (one.indptr != other.indptr).any() or (one.indices != other.indices).any():
        here, there = one.astype(bool).astype(np.int8), other.astype(bool).astype(np.int8)
        only = (here - there).tocoo()
        at = int(np.flatnonzero(only.data)[0])
        pair, output = (int(axis[at]) for axis in only.coords)
        return comparisons.leak(math.inf, pair, first + output)
    if not one.nnz:
        return Leak(0.0)
    sizes = np.abs(np.log(one.data / other.data))
    at = int(sizes.argmax())
    pair = int(np.searchsorted(one.indptr, at, side="right")) - 1
    return comparisons.leak(float(sizes[at]), pair, first + int(one.indices[at]))
