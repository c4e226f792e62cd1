r"""Comparisons: pairs of events whose outputs must look alike, and where a protocol tells them apart.

An event says that the secret is one of some, and that the record belongs to a class: it shares the labels of some
attributes that an attacker knows. A comparison of E with F asks

.. math:: e^{-\varepsilon} \le \frac{P(Y = y \mid E)}{P(Y = y \mid F)} \le e^{\varepsilon} \quad\text{for every } y.

Where a promise is not the same for all pairs, or not both ways, a pair has a scale for either way up,

.. math:: P(y \mid E) \le e^{a \varepsilon} P(y \mid F), \qquad P(y \mid F) \le e^{b \varepsilon} P(y \mid E),

which is infinite where that side is not promised. Its leak is then the smallest ε for which both hold.

How far a belief may move: what a promise of size ε leaves of somebody's belief about one value of the secret.

A record y moves the belief p = P(s) to v = P(s | y). Where every secret's belief may move by a factor of e^ε, the
others' beliefs, which sum to 1 − v, may as well, and

.. math:: \max(p e^{-\varepsilon},\ 1 - (1 - p) e^{\varepsilon}) \le v
   \le \min(p e^{\varepsilon},\ 1 - (1 - p) e^{-\varepsilon}).

Where any two secrets make y likely within e^ε of each other, the odds move by that factor:

.. math:: \frac{p}{p + (1 - p) e^{\varepsilon}} \le v \le \frac{p e^{\varepsilon}}{p e^{\varepsilon} + 1 - p}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, matrix
from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.model.joint import Joint

EVERYBODY: tuple[int, ...] = ()  # the event that leaves the secret open
MOST_PAIRS = 1 << 22  # of events that are compared in one block: what they are made of takes some hundred megabytes
MOST_MARKS = 1 << 29  # of a table that says which secrets each group holds, a byte each
PAIRED_AT_ONCE = 1 << 20  # entries of a dense array of pairs that are worked on at a time
MOST_CELLS = 1 << 27  # of tables of classes and groups, eight bytes each

LONGEST_NAME = 120  # letters by which an output is called in a sentence; of many columns its groups have thousands

Secrets = tuple[int, ...]  # the numbers of the secrets that an event holds, or EVERYBODY


@dataclass(frozen=True, slots=True)
class Leak:
    """Where a protocol leaks most: |ln P(Y = output | E) / P(Y = output | F)| = epsilon × the scale of that side."""

    epsilon: float
    output: Any = None  # the output's number
    secrets: Secrets = EVERYBODY  # of E
    against: Secrets = EVERYBODY  # of F
    known: tuple[tuple[int, int], ...] = ()  # (attribute, label) pairs that the attacker knew

    def describe(self, joint: Joint, output: str | None = None) -> str:
        """The leak in words; `output` is how the output is called."""
        if self.output is None:
            return "no output says anything about the secret"
        knows = [f"{joint.attributes[j].name} = {joint.attributes[j].labels[v]}" for j, v in self.known]
        who = "someone who knows " + " and ".join(knows) if knows else "someone who knows nothing else"
        about = "two published values"
        if self.secrets:
            about = f"{joint.secret_name} = {_join_secrets(joint, self.secrets)}"
        called = str(self.output) if output is None else output
        if len(called) > LONGEST_NAME:
            called = f"{called[:LONGEST_NAME].rstrip()} …"
        return f"{who}, for output {called}, about {about}{self._format_comparison(joint)}"

    def _format_comparison(self, joint: Joint) -> str:
        if self.against == EVERYBODY:
            return ""
        if sorted(self.secrets + self.against) == list(range(joint.c)) and joint.c > 2:
            return " rather than anything else"
        return f" rather than {_join_secrets(joint, self.against)}"


def _join_secrets(joint: Joint, secrets: Secrets) -> str:
    return " or ".join(joint.secrets[s] for s in secrets)


@dataclass(frozen=True, slots=True, eq=False)
class GroupPairs:
    """Which groups of secrets a promise compares, in every class of those who share some attributes."""

    groups: BoolArray  # groups × secrets: which secrets each holds
    pairs: IntArray  # numbers of groups
    known: tuple[int, ...] = ()  # the attributes that an attacker knows
    scales: FloatArray | None = None  # pairs × 2, multiples of ε for either way up; None where all are 1


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Pairs of events (E, F), each event an integer mass on the protocol's inputs.

    Mass k of the arrays says that event `event[k]` puts weight `weight[k]` on input `input[k]`. Event i holds the
    secrets of `secrets[i]` in class `of_class[i]`, whose records have the labels `known_labels[of_class[i]]` in the
    attributes `known`. A pair compares event `pairs[·, 0]` with event `pairs[·, 1]` of the same class. Where an event
    is a part of its condition (as of those with s those who have k as well), `condition_totals` is the mass of that.
    An event of `mixed` comparisons may be a mixture of secrets in other shares than the table's.
    """

    inputs: int
    event: IntArray
    input: IntArray
    weight: NDArray[Any]
    secrets: BoolArray  # events × c
    of_class: IntArray
    pairs: IntArray
    known: tuple[int, ...]
    known_labels: IntArray  # classes × len(known)
    condition_totals: NDArray[Any] | None = None
    scales: FloatArray | None = None  # pairs × 2
    mixed: bool = False

    @property
    def event_totals(self) -> NDArray[Any]:
        """The exact mass of every event."""
        totals = np.zeros(len(self.of_class), dtype=self.weight.dtype)
        np.add.at(totals, self.event, self.weight)
        return totals

    @property
    def totals(self) -> NDArray[Any]:
        """The exact mass that the chances of every event are shares of: its own, or that of its condition."""
        return self.event_totals if self.condition_totals is None else self.condition_totals

    @property
    def masses(self) -> FloatArray:
        """The chance of every event given its condition: 1 where it is the condition itself."""
        if self.condition_totals is None:
            return np.ones(len(self.of_class))
        return np.asarray(self.event_totals / self.condition_totals, dtype=np.float64)

    @property
    def distributions(self) -> Matrix:
        """P(input | event), or P(input and event | condition), a row per event, as floats."""
        totals = self.totals
        p = np.asarray(self.weight / totals[self.event], dtype=np.float64)
        return matrix(p, self.event, self.input, (len(totals), self.inputs))

    def leak_sizes(self, one: FloatArray, other: FloatArray, first: int = 0) -> FloatArray:
        """The leak at P(y|E) and P(y|F), a row for each pair from `first` on."""
        return leak_sizes(one, other, None if self.scales is None else self.scales[first : first + len(one)])

    def leak(self, epsilon: float, pair: int, output: Any) -> Leak:
        """The leak of that size at that pair and output."""
        one, other = self.pairs[pair]
        labels = self.known_labels[self.of_class[one]]
        known = tuple(zip(self.known, map(int, labels), strict=True))
        return Leak(epsilon, output, self._secrets(one), self._secrets(other), known)

    def _secrets(self, event: int) -> Secrets:
        held = self.secrets[event]
        return EVERYBODY if held.all() else tuple(map(int, np.flatnonzero(held)))


def compare_groups(
    joint: Joint,
    sees_secret: bool,
    groups: ArrayLike,
    pairs: ArrayLike,
    known: tuple[int, ...] = (),
    scales: FloatArray | None = None,
) -> Comparisons:
    """Pairs of groups of secrets, compared among those who share the attributes `known`, in each such class.

    `groups` is a table of groups × secrets: which secrets each holds. `pairs` are pairs of numbers of groups. A group
    that has nobody in a class, and two groups that are the same people there, are not compared in it.
    """
    groups = np.asarray(groups, dtype=bool).reshape(-1, joint.c)
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    s, x = np.nonzero(joint.weights)
    w, z = joint.weights[s, x], s * joint.a + x if sees_secret else x
    labels, of_x = _attribute_classes(joint, known)
    check_comparison_size(joint.c, len(pairs), len(labels))
    # Each pair (s, x) that occurs, once for every group that holds s.
    holder, held = np.nonzero(groups.T)
    starts = np.searchsorted(holder, np.arange(joint.c + 1))
    times = np.diff(starts)[s]
    cell = np.repeat(np.arange(len(s)), times)
    nth = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)
    group = held[starts[s[cell]] + nth]
    found, event = np.unique(of_x[x[cell]] * len(groups) + group, return_inverse=True)
    number = np.full(len(labels) * len(groups), -1)
    number[found] = np.arange(len(found))
    each = number.reshape(len(labels), len(groups))[:, pairs].reshape(-1, 2)
    comparable = (each >= 0).all(axis=1) & _groups_differ(s, of_x[x], groups, pairs, len(labels)).ravel()
    return Comparisons(
        inputs=joint.a * (joint.c if sees_secret else 1),
        event=event.reshape(-1),
        input=z[cell],
        weight=w[cell],
        secrets=groups[found % len(groups)],
        of_class=found // len(groups),
        pairs=each[comparable],
        known=known,
        known_labels=labels,
        scales=None if scales is None else np.tile(scales, (len(labels), 1))[comparable],
    )


def check_comparison_size(secrets: int, pairs: int, classes: int = 1) -> None:
    """Refuse more comparisons than fit in memory, before any is written out."""
    if pairs > MOST_PAIRS or secrets**2 > MOST_MARKS or classes * max(pairs, secrets) > MOST_CELLS:
        among = f" among each of {classes:,} classes" if classes > 1 else ""
        raise SizeError(
            f"A promise compares at most {MOST_PAIRS:,} pairs of events at once; {secrets:,} values of the secret ask "
            f"for {pairs:,}{among}. Group the secret's values first."
        )


def _attribute_classes(joint: Joint, known: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """The labels that those who know these attributes tell apart, and which of them each value has."""
    if not known:
        return np.zeros((1, 0), dtype=np.int64), np.zeros(joint.a, dtype=np.int64)
    labels, of_x = np.unique(joint.combos[:, known], axis=0, return_inverse=True)
    return labels, of_x.reshape(-1)


def _groups_differ(s: IntArray, of_cell: IntArray, groups: BoolArray, pairs: IntArray, classes: int) -> BoolArray:
    """Whether two groups are different people in a class, (classes, pairs): else whoever knows the class knows as much.

    In the class of everybody every secret occurs, so different groups are different people.
    """
    if classes == 1:
        return np.ones((1, len(pairs)), dtype=bool)
    present = np.zeros((classes, groups.shape[1]), dtype=np.float64)
    present[of_cell, s] = 1.0
    apart = (groups[pairs[:, 0]] ^ groups[pairs[:, 1]]).astype(np.float64)
    return np.asarray(present @ apart.T > 0)


def log_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """|ln n/d| entry by entry: 0 where both are 0, infinite where only one is, and where either is no number."""
    both = (numerator > 0) & (denominator > 0)
    neither = (numerator == 0) & (denominator == 0)
    ratio = np.divide(numerator, denominator, out=np.ones_like(numerator), where=both)
    size = np.abs(np.log(ratio))
    size[~both & ~neither] = math.inf
    return size


def pair_chunks(block: Comparisons) -> Iterator[tuple[int, Matrix, Matrix]]:
    """The pairs of events a few at a time: the first pair's number, P(input | E) and P(input | F)."""
    p = block.distributions
    if not np.isfinite(p.data).all():
        raise DistributionError("Every event that a promise compares must be able to happen; one is not.")
    rows = max(1, PAIRED_AT_ONCE // block.inputs)
    for first in range(0, len(block.pairs), rows):
        pairs = block.pairs[first : first + rows]
        yield first, p[pairs[:, 0]], p[pairs[:, 1]]


def leak_sizes(one: FloatArray, other: FloatArray, scales: FloatArray | None) -> FloatArray:
    """The ε at which P(y|E) and P(y|F), a row per pair, keep their scales: |ln n/d| where these are all 1.

    >>> leak_sizes(np.array([[0.5, 0.0]]), np.array([[0.25, 0.5]]), np.array([[2.0, np.inf]])).round(3)
    array([[0.347, 0.   ]])
    """
    size = log_ratio(one, other)
    if scales is None:
        return size
    scale = np.where(one >= other, scales[:, :1], scales[:, 1:])
    scale[~(np.isfinite(one) & np.isfinite(other))] = 1.0  # what is no number passes no check
    return np.asarray(np.divide(size, scale, out=np.zeros_like(size), where=np.isfinite(scale)))


def scale_below(limit: float, epsilon: float) -> float:
    """The largest float whose product with ε is at most that limit: what is promised is never more than was asked.

    >>> scale_below(0.1, 0.3) * 0.3 <= 0.1, scale_below(0.5, 1.0)
    (True, 0.5)
    """
    if epsilon == 0:
        return 1.0
    scale = limit / epsilon
    while Fraction(scale) * Fraction(epsilon) > Fraction(limit):
        scale = math.nextafter(scale, 0.0)
    return scale


LARGEST = 700.0  # ε: e to the power of more is beyond all floats


def factor_bounds(prior: float, epsilon: float, down: float | None = None) -> tuple[float, float]:
    """The least and the largest belief after each secret's rose by a factor of at most e^ε, and fell by e^down.

    Without `down` that is ε too; an infinite one leaves it open.

    >>> least, most = factor_bounds(0.3, 1.0)
    >>> round(least, 4), round(most, 4)
    (0.1104, 0.7425)
    """
    factor, other = math.exp(min(epsilon, LARGEST)), 1.0 - prior
    fall = factor if down is None else math.exp(min(down, LARGEST))
    return max(prior / fall, 1.0 - other * factor), min(prior * factor, 1.0 - other / fall)


def odds_bounds(prior: float, epsilon: float) -> tuple[float, float]:
    """The least and the largest belief after the odds between any two secrets were moved by at most e^ε.

    >>> least, most = odds_bounds(0.3, 1.0)
    >>> round(least, 4), round(most, 4)
    (0.1362, 0.5381)
    """
    factor, other = math.exp(min(epsilon, LARGEST)), 1.0 - prior
    return prior / (prior + other * factor) if prior else 0.0, prior * factor / (prior * factor + other)


def float_below(number: Fraction) -> float:
    """The largest float that is not above a fraction."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)
