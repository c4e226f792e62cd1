r"""The events that a promise compares, and the boxes that bounds on their cells make.

An event is a group of secrets in a class of people who share some labels. Its cells are the inputs that these people
may have; where values never seen are to be covered, "anything else" is one more cell of every event, with no rows: it
is the last input, the same one for all events.

Of the chance β that any bound fails, 60 % is for the secrets' own boxes, 38 % for those of the rest of the people, 2 %
for shares, and what is not needed for the secrets' own. Own boxes get parts proportional to the root of 1 / rows.
Given how many rows an event has, its cells are multinomial: so parts may depend on the numbers of rows of events, and
never on cells (docs/theory.md, Theorem 44).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import GroupPairs
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.credal_sets import CredalSets, Known
from privacyfunnel.model.joint import Joint

RESTS, SHARES = Fraction(38, 100), Fraction(2, 100)  # of β; the rest of it is for the secrets' own boxes
FINEST = 2**60  # parts of β are rounded down to multiples of 1 / this


class ShareBounds(Shape):
    """What is known of shares, from whichever counts: numerators over 2⁴⁰ that fail with chance `level` at most."""

    def box(self, counts: IntArray, level: Fraction) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds on the share of each cell of an event; each bound fails with chance `level`."""

    def least_share(self, some: int, others: int, level: Fraction) -> int:
        """A lower bound on the share of an event with `some` rows among it and one of `others`."""


def tighten_box(low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """The bounds of a box, as tight as the simplex makes them.

    >>> [side.tolist() for side in tighten_box(np.array([SCALE // 2, 0]), np.array([SCALE, SCALE]))]
    [[549755813888, 0], [1099511627776, 549755813888]]
    """
    tighter = np.maximum(low, SCALE - (high.sum() - high))
    return tighter, np.minimum(high, SCALE - (low.sum() - low))


def unite_groups(of_groups: BoolArray, groups: BoolArray) -> BoolArray:
    """Groups of groups, as groups of secrets."""
    return np.asarray(of_groups.astype(np.float64) @ groups.astype(np.float64) > 0)  # integers multiply slowly


def empty_credal_sets(inputs: int, c: int) -> CredalSets:
    """Sets where nothing is compared."""
    none = np.empty((0, inputs), dtype=np.int64)
    pairs = np.empty((0, 2), dtype=np.int64)
    return CredalSets(none, none, np.empty((0, c), dtype=bool), (), pairs, pairs[:, 0])


def people_classes(joint: Joint, known: tuple[int, ...]) -> list[tuple[Known, IntArray]]:
    """The classes of people who share these attributes: what they share, and the values that they may have."""
    if not known:
        return [((), np.arange(joint.a))]
    labels, of_value = np.unique(joint.combos[:, known], axis=0, return_inverse=True)
    return [
        (tuple(zip(known, shared, strict=True)), np.flatnonzero(of_value.reshape(-1) == number))
        for number, shared in enumerate(labels.tolist())
    ]


def refuse_scales(question: GroupPairs) -> None:
    """Refuse a promise that is not the same both ways for every pair: sets of priors are checked alike."""
    if question.scales is not None:
        raise ParameterError(
            "For a population, or odds that differ, a promise must be symmetric, each pair with the same ε; "
            f"this one does not. Promise LIP, LDP or SRLIP, or leave out {hint('population')} and {hint('robust')}."
        )


class Events:
    """The events of one question: in every class of people, each group against others or against all of them."""

    def __init__(self, question: GroupPairs, joint: Joint, sees_secret: bool, anything_else: bool = False) -> None:
        refuse_scales(question)
        self.joint, self.sees_secret, self.known = joint, sees_secret, question.known
        self.anything_else = anything_else
        self.masks: dict[bytes, int] = {}
        self.group_masks: list[BoolArray] = []
        self.pairs: list[tuple[int, int, bool]] = []
        for one, other in question.pairs:
            mine, theirs = question.groups[one], question.groups[other]
            if (mine & ~theirs).any() and (mine & theirs).any():
                mine, theirs = theirs, mine  # either way up is the same comparison
            within = bool((mine & theirs).any())
            if within and (mine & ~theirs).any():
                raise ParameterError(
                    "For a population a promise must compare groups of secrets that share none, or of which one holds "
                    "the other; two of these overlap. Compare their parts."
                )
            self.pairs.append((self._mask_number(mine), self._mask_number(theirs & ~mine), within))
        first = {e for e, _, _ in self.pairs}
        self.own_groups = first | {f for _, f, within in self.pairs if not within}
        self.classes = self._classes()

    def _mask_number(self, mask: BoolArray) -> int:
        number = self.masks.setdefault(mask.tobytes(), len(self.group_masks))
        if number == len(self.group_masks):
            self.group_masks.append(mask)
        return number

    def _classes(self) -> list[tuple[Known, IntArray]]:
        """What the people of a class share, and the values that they may have.

        Where the protocol sees X alone and these people can have but one input, it tells nothing about them.
        """
        found = people_classes(self.joint, self.known)
        several = self.sees_secret or self.anything_else or not self.known
        return [each for each in found if several or len(each[1]) > 1]

    def _cells(self, mask: BoolArray, values: IntArray) -> tuple[IntArray, IntArray]:
        """The inputs of an event and how many rows each has; where the secret is seen, a pair never seen counts too."""
        weights, inputs = self.joint.weights[mask][:, values], values
        if self.sees_secret:
            inputs = (np.flatnonzero(mask)[:, None] * self.joint.a + values).ravel()
        counts = weights.ravel() if self.sees_secret else weights.sum(axis=0)
        if self.anything_else:
            inputs, counts = np.append(inputs, self.inputs - 1), np.append(counts, 0)
        return inputs, counts.astype(np.int64)

    @property
    def inputs(self) -> int:
        """How many inputs there are, with anything else as the last one where that is covered."""
        return self.joint.a * (self.joint.c if self.sees_secret else 1) + self.anything_else

    @property
    def share_count(self) -> int:
        """How many shares sets of them bound."""
        return len(self.classes) * len(self.group_masks) * self.inputs

    def credal_sets(self, beta: Fraction, bounds: ShareBounds) -> CredalSets:
        """Boxes of all events, whose bounds fail with chance β at most, all together."""
        k = len(self.group_masks)
        cells = [self._cells(mask, values) for _, values in self.classes for mask in self.group_masks]
        rows = [int(counts.sum()) for _, counts in cells]
        parts = self._failure_shares(beta, rows)
        low, high = np.zeros((2, len(cells), self.inputs), dtype=np.int64)
        for i, (where, counts) in enumerate(cells):
            low[i, where], high[i, where] = _event_box(counts, parts[i], bounds)
        within = sum(w for _, _, w in self.pairs) * len(self.classes)
        level = round_level(SHARES * beta / within) if within else Fraction(0)
        pairs = [(j * k + e, j * k + f, w) for j in range(len(self.classes)) for e, f, w in self.pairs]
        share = [bounds.least_share(rows[e], rows[f], level) if w else 0 for e, f, w in pairs]
        return CredalSets(
            low=low,
            high=high,
            secrets=np.tile(np.array(self.group_masks), (len(self.classes), 1)),
            known=tuple(known for known, _ in self.classes for _ in self.group_masks),
            pairs=np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2),
            share=np.array(share, dtype=np.int64),
        )

    def _failure_shares(self, beta: Fraction, rows: Sequence[int]) -> list[Fraction]:
        """The part of β that each event gets, class by class."""
        k = len(self.group_masks)
        rests, within = k - len(self.own_groups), any(w for _, _, w in self.pairs)
        own = 1 - (RESTS if rests else 0) - (SHARES if within else 0)
        weights = [math.isqrt(FINEST // n) if n and i % k in self.own_groups else 0 for i, n in enumerate(rows)]
        whole = max(sum(weights), 1)
        rest = RESTS * beta / max(rests * len(self.classes), 1)
        return [
            round_level(own * beta * w / whole) if i % k in self.own_groups else rest for i, w in enumerate(weights)
        ]


def _event_box(counts: IntArray, part: Fraction, bounds: ShareBounds) -> tuple[IntArray, IntArray]:
    """The tight box of an event with these counts. Of two cells one number is bounded; of none seen, nothing is."""
    cells = len(counts)
    if cells == 1:
        return np.array([SCALE]), np.array([SCALE])
    if not counts.any():
        return np.zeros(cells, dtype=np.int64), np.full(cells, SCALE)
    low, high = bounds.box(counts, round_level(part / (2 if cells == 2 else 2 * cells)))
    if cells == 2:
        return np.array([low[0], SCALE - high[0]]), np.array([high[0], SCALE - low[0]])
    return tighten_box(low, high)


def round_level(level: Fraction) -> Fraction:
    """A part of β, rounded down."""
    return Fraction(math.floor(level * FINEST), FINEST)


ANY = "any"


@dataclass(frozen=True, slots=True)
class OddsRange:
    """By which factor somebody's odds may differ from the model's; None is any."""

    factor: Fraction | None

    @classmethod
    def parse(cls, text: object) -> OddsRange:
        """The range that a request or a file names: a number from 1, or `any`.

        >>> OddsRange.parse("1.5"), str(OddsRange.parse("any"))
        (OddsRange(factor=Fraction(3, 2)), 'any')
        """
        if text == ANY:
            return cls(None)
        try:
            factor = Fraction(str(text))
        except (ValueError, ZeroDivisionError):
            factor = Fraction(0)
        if factor < 1:
            raise ParameterError(f"Odds may differ by a factor of at least 1, or by '{ANY}'; got '{text}'.")
        return cls(factor)

    def __str__(self) -> str:
        return ANY if self.factor is None else str(self.factor)

    def people(self, prior: str) -> str:
        """Whom it covers, in words; `prior` is what they are compared with.

        >>> OddsRange(Fraction(2)).people("the model")[:60]
        'everybody who agrees with the model on all shares and whose '
        """
        if self.factor is None:
            return f"everybody who agrees with {prior} on the shares of the secret and of what is published"
        return (
            f"everybody who agrees with {prior} on all shares and whose odds of the secret, given what is published, "
            f"differ by a factor of at most {float(self.factor):g}"
        )

    def conditional_bounds(self, event: int, everybody: int) -> tuple[Fraction, Fraction]:
        """The least and the largest p′(E | x) where p(E | x) is the quotient of these two.

        >>> OddsRange(Fraction(2)).conditional_bounds(1, 3)
        (Fraction(1, 5), Fraction(1, 2))
        """
        if self.factor is None:
            return Fraction(0), Fraction(1)
        others, gamma = everybody - event, self.factor
        return Fraction(event) / (event + gamma * others), gamma * event / (gamma * event + others)

    def box(self, event: NDArray[Any], everybody: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """The bounds on P′(x | E), rounded outwards, from the weights of E and of everybody by x."""
        whole, low, high = sum(map(int, event)), [], []
        for mine, all_of_them in zip(map(int, event), map(int, everybody), strict=True):
            least, most = (all_of_them * bound / whole for bound in self.conditional_bounds(mine, all_of_them))
            low.append(math.floor(least * SCALE))
            high.append(min(math.ceil(most * SCALE), SCALE))
        return tighten_box(np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))
