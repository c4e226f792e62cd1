r"""Branch and bound on the marginal of X, for protocols that see more than X.

The reduced cost of an atom v over pairs (s, x) is concave in few directions only: with m = T v,

.. math:: H(m) - \lambda\cdot v = \sum_x h(m_x) - \lambda\cdot v, \qquad h(t) = -t \ln t.

On a box :math:`l \le m \le u` and for *any* slopes σ,

.. math:: \sum_x h(m_x) - \lambda\cdot v \;\ge\; \sum_x \min\{h(l_x) - \sigma_x l_x,\ h(u_x) - \sigma_x u_x\}
   + \min_{v \in V} \sum_{s,x} (\sigma_x - \lambda_{s,x})\, v_{s,x},

because h(t) − σt is concave and so smallest at an end of [l, u]. The slopes used are those of the chords, where both
ends agree. The last term is a linear minimum over the whole polytope V: a corner v of V comes with it, an atom that is
allowed. Where its marginal lies between l and u, splitting the box there makes the chord exact at that corner; where it
lies outside, the chord lies above h. So a box whose bound is below its corner's reduced cost can always be split, at a
corner where it then is exact, and there are finitely many corners.
"""

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.problem import Pricing
from privacyfunnel.engine.with_secret_box import UNIT

MANY_OPEN = 1 << 18
MOST_ATOMS = 256
KEPT_PER_BATCH = 64
THIN = 1e-9
EXACT = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Cheapest:
    """For each of k linear costs: a valid lower bound on its minimum over the polytope, and a corner."""

    lower: FloatArray  # (k,)
    atoms: FloatArray  # (k, d)


class Corners(Protocol):
    """A polytope of atoms over which linear functions can be minimised."""

    @property
    def group(self) -> IntArray:
        """The value x of every input, numbered without holes."""
        ...

    @property
    def batch(self) -> int:
        """How many costs to minimise in one go."""
        ...

    def minimise(self, costs: FloatArray) -> Cheapest:
        """The cheapest corner for every row of costs, (k, d)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Open boxes of marginals, the bound on each, and the marginal of the corner that gave it."""

    low: FloatArray  # (k, a)
    high: FloatArray  # (k, a)
    marginal: FloatArray  # (k, a)
    bound: FloatArray  # (k,)

    def __getitem__(self, which: IntArray) -> "Boxes":
        return Boxes(self.low[which], self.high[which], self.marginal[which], self.bound[which])

    def __len__(self) -> int:
        return int(self.bound.size)


def entropy_terms(t: FloatArray) -> FloatArray:
    """h(t) = −t ln t, elementwise, with h(0) = 0."""
    return -t * np.log(np.maximum(t, 1e-300))


def marginals(atoms: FloatArray, group: IntArray) -> FloatArray:
    """T v for every row v."""
    k, a = atoms.shape[0], int(group.max()) + 1
    index = np.arange(k)[:, None] * a + group
    sums: FloatArray = np.bincount(index.ravel(), atoms.ravel(), k * a).astype(np.float64)
    return sums.reshape(k, a)


def marginal_ranges(corners: Corners) -> tuple[FloatArray, FloatArray]:
    """The least and the largest m_x of any atom, rounded outward."""
    each = (corners.group == np.arange(corners.group.max() + 1)[:, None]).astype(np.float64)
    least = corners.minimise(each).lower
    most = -corners.minimise(-each).lower
    return np.maximum(least, 0.0), np.minimum(most, 1.0)


def prove_on_marginals(
    corners: Corners, prices: FloatArray, ranges: tuple[FloatArray, FloatArray], target: float, deadline: float
) -> Pricing:
    """A bound of at least −target on H(T v) − prices·v over all atoms, whose marginals T v lie within `ranges`.

    Stops early when the deadline passes, or when an atom shows that −target cannot be proved; the bound then still
    holds, and the atoms met on the way are returned. Boxes are split worst first, in batches that grow with their
    number; when very many are open, newest first, which bounds the memory.
    """
    low, high = ranges
    found: list[FloatArray] = []
    settled = np.inf
    none = np.empty((0, low.size))
    live = Boxes(none, none, none, np.empty(0))
    fresh, costs, atoms = _bounded(corners, prices, low[None], high[None], np.array([-np.inf]))
    while True:
        best = np.argsort(costs)[:KEPT_PER_BATCH]
        found.append(atoms[best[costs[best] < max(-EXACT, -target)]])
        unproved = fresh.bound < -target
        settled = min(settled, float(fresh.bound[~unproved].min(initial=np.inf)))
        live = _joined(live, fresh[np.flatnonzero(unproved)])
        refuted = bool((costs < -target).any())
        if refuted or not len(live) or time.monotonic() > deadline:
            break
        take = min(len(live), corners.batch, max(corners.batch // 8, len(live) // 4))
        newest_first = np.arange(len(live))[::-1]
        order = newest_first if len(live) > MANY_OPEN else np.argpartition(live.bound, take - 1)
        chosen, live = live[order[:take]], live[np.sort(order[take:])]
        exact, parent, child_low, child_high = _halves(chosen)
        settled = min(settled, float(chosen.bound[exact].min(initial=np.inf)))
        fresh, costs, atoms = _bounded(corners, prices, child_low, child_high, chosen.bound[parent])
    bound = min(settled, float(live.bound.min(initial=np.inf)))
    atoms = np.concatenate(found)
    order = np.argsort(reduced_costs(atoms, corners.group, prices))[:MOST_ATOMS]
    return Pricing(bound, atoms[order])


def reduced_costs(atoms: FloatArray, group: IntArray, prices: FloatArray) -> FloatArray:
    """H(T v) − prices·v for every row v."""
    costs: FloatArray = entropy_terms(marginals(atoms, group)).sum(axis=1) - atoms @ prices
    return costs


def _bounded(
    corners: Corners, prices: FloatArray, low: FloatArray, high: FloatArray, floor: FloatArray
) -> tuple[Boxes, FloatArray, FloatArray]:
    """The boxes with their bounds, never below that of the box they came from; reduced costs, and atoms, met."""
    slopes = _chord_slopes(low, high)
    cheapest = corners.minimise(slopes[:, corners.group] - prices)
    ends = np.minimum(entropy_terms(low) - slopes * low, entropy_terms(high) - slopes * high)
    # |h(t)| and |σ t| stay below 1 at the ends of a chord; at each there are a handful of roundings.
    margin = 16 * UNIT * (low.shape[1] + np.abs(slopes * high).sum(axis=1))
    bound = np.maximum(cheapest.lower + ends.sum(axis=1) - margin, floor)
    m = marginals(cheapest.atoms, corners.group)
    costs = entropy_terms(m).sum(axis=1) - cheapest.atoms @ prices
    return Boxes(low, high, m, bound), costs, cheapest.atoms


def _chord_slopes(low: FloatArray, high: FloatArray) -> FloatArray:
    """The slope of the chord of h on [low, high]; on a very short interval, where it is all noise, of the tangent."""
    width = high - low
    tangent = -np.log(np.maximum((low + high) / 2, EXACT)) - 1.0
    chord = np.divide(entropy_terms(high) - entropy_terms(low), width, out=tangent.copy(), where=width > THIN)
    return np.where(width > THIN, chord, tangent)


def _halves(boxes: Boxes) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Each box split where its chords are worst at its corner: the boxes with none to split; parents, lows, highs."""
    low, high = boxes.low, boxes.high
    inside = np.clip(boxes.marginal, low, high)
    chord = entropy_terms(low) + _chord_slopes(low, high) * (inside - low)
    excess = entropy_terms(inside) - chord
    x = excess.argmax(axis=1)
    row = np.arange(len(boxes))
    splits = excess[row, x] > EXACT
    row, x = row[splits], x[splits]
    parent = np.concatenate([row, row])
    child_low, child_high = low[parent], high[parent]
    k = np.arange(row.size)
    child_high[k, x] = inside[row, x]
    child_low[row.size + k, x] = inside[row, x]
    # Since Σ m = 1, the other coordinates' ends bound each; rounded outward.
    others_low = child_low.sum(axis=1, keepdims=True) - child_low
    child_high = np.minimum(child_high, 1.0 - others_low + EXACT)
    others_high = child_high.sum(axis=1, keepdims=True) - child_high
    child_low = np.maximum(child_low, 1.0 - others_high - EXACT)
    holds = (child_low <= child_high + EXACT).all(axis=1)
    child_low, child_high = child_low[holds], child_high[holds]
    return np.flatnonzero(~splits), parent[holds], child_low, np.maximum(child_low, child_high)


def _joined(one: Boxes, other: Boxes) -> Boxes:
    return Boxes(
        np.concatenate([one.low, other.low]),
        np.concatenate([one.high, other.high]),
        np.concatenate([one.marginal, other.marginal]),
        np.concatenate([one.bound, other.bound]),
    )
