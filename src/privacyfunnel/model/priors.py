r"""What a sample says of the people it was drawn from: sets of priors that hold them all with a stated confidence.

The rows of a table are an independent sample from p*. For every event E that a promise compares, P(· | E) lies in the
box of one-sided Clopper–Pearson bounds of its cells; and P(E | E or F) is at least such a bound as well. The chances
that a bound fails add up to β = 1 − confidence, so that all hold together with probability 1 − β, whatever p* is.

β is divided evenly among the side channels that a promise looks at; then 60 % for the secrets' own boxes, 38 % for
those of the rest of the people, 2 % for shares, and what is not needed for the secrets' own. Own boxes get parts
proportional to the root of 1 / rows. Given how many rows an event has, its cells are multinomial: so parts may depend
on the numbers of rows of events, and never on cells (docs/theory.md, Theorem 28P).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar
from typing import Protocol as Shape

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.binomial import SCALE, lower, lowers, uppers
from privacyfunnel.model.comparisons import Asked
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.sets import Known, PriorSets

RESTS, SHARES = Fraction(38, 100), Fraction(2, 100)  # of β; the rest of it is for the secrets' own boxes
RARE = 200  # rows: secrets with fewer of them are promised together
MOST_ROWS = 2**40  # of a sample: more are probabilities, written as integers
FINEST = 2**60  # parts of β are rounded down to multiples of 1 / this


class Rule(Shape):
    """How sets of priors follow from what is known of a table."""

    @property
    def confidence(self) -> Fraction:
        """With which probability all sets hold their people."""

    @property
    def rare(self) -> int:
        """Below how many rows secrets are promised together."""

    name: ClassVar[str]

    @property
    def table(self) -> IntArray | None:
        """Counts that stand for the table where it is not known itself, in a private design; else None."""

    @property
    def design_epsilon(self) -> Fraction | None:
        """What a private design itself may tell of a person; None where it was made from the counts themselves."""

    def stated(self) -> dict[str, Any]:
        """What a file says beside confidence and rarity."""

    def for_each(self) -> Rule:
        """The same rule, with no secret too rare."""

    def groups(self, joint: Joint) -> BoolArray:
        """Which secrets are promised together, groups × secrets."""

    def sets(self, asked: Callable[[int], Iterable[Asked]], joint: Joint, sees_secret: bool) -> PriorSets:
        """The sets of everything that is asked of so many groups of secrets."""


class Bounds(Shape):
    """What is known of shares, from whichever counts: numerators over 2⁴⁰ that fail with chance `level` at most."""

    def box(self, counts: IntArray, level: Fraction) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds on the share of each cell of an event; each bound fails with chance `level`."""

    def least_share(self, some: int, others: int, level: Fraction) -> int:
        """A lower bound on the share of an event with `some` rows among it and one of `others`."""


@dataclass(frozen=True, slots=True)
class ClopperPearson:
    """Bounds from the rows themselves."""

    def box(self, counts: IntArray, level: Fraction) -> tuple[IntArray, IntArray]:
        """See Bounds."""
        total = np.full_like(counts, counts.sum())
        return lowers(counts, total, level), uppers(counts, total, level)

    def least_share(self, some: int, others: int, level: Fraction) -> int:
        """See Bounds."""
        return lower(some, some + others, level) if some else 0


@dataclass(frozen=True, slots=True)
class Sampled:
    """Sets for the people that a table's rows are an independent sample of."""

    confidence: Fraction
    rare: int = RARE
    bounds: Bounds = ClopperPearson()
    # Another way to sets needs another name, so that a file never changes its meaning.
    name: ClassVar[str] = "Clopper-Pearson boxes 60/38/2"

    @property
    def table(self) -> None:
        """See Rule."""
        return None

    @property
    def design_epsilon(self) -> None:
        """See Rule."""
        return None

    def stated(self) -> dict[str, Any]:
        """What a file says beside confidence and rarity: nothing, for the rest are the owner's counts."""
        return {}

    @classmethod
    def from_stated(cls, confidence: Fraction, rare: int, content: Mapping[str, Any]) -> Sampled:
        """The rule that a file states."""
        return cls(confidence, rare)

    def for_each(self) -> Sampled:
        """The same rule, with no secret too rare."""
        return replace(self, rare=0)

    def groups(self, joint: Joint) -> BoolArray:
        """Which secrets are promised together, groups × secrets: the rare ones, joined by the next until they are not.

        Raises
        ------
        ParameterError
            If fewer than two groups are left: then nothing can be promised about these people.
        """
        if joint.total > MOST_ROWS:
            raise ParameterError(
                "A promise for a population needs the counts of a sample; these weights are of probabilities. Use "
                "Joint.from_counts, or for_priors for distributions that are known."
            )
        rows = joint.weights.sum(axis=1)
        order = np.argsort(rows, kind="stable")
        together = int((rows < self.rare).sum())
        while 0 < together < joint.c and rows[order[:together]].sum() < self.rare:
            together += 1
        if joint.c > 1 and together >= joint.c:
            most = Fraction(int(rows.max()), joint.total)
            needed = math.ceil(self.rare / min(most, 1 - most))
            raise ParameterError(
                f"A promise for a population needs two secrets, or groups of them, of at least {self.rare} rows each; "
                f"these {joint.total:,} rows are too few for that. A sample of {needed:,} such rows would do."
            )
        alone = np.eye(joint.c, dtype=bool)
        first = alone[order[:together]].any(axis=0, keepdims=True)
        return np.concatenate([first, alone[np.sort(order[together:])]]) if together else alone

    def sets(self, asked: Callable[[int], Iterable[Asked]], joint: Joint, sees_secret: bool) -> PriorSets:
        """The sets of everything that is asked of so many groups of secrets."""
        groups = self.groups(joint)
        each = [Asked(_united(one.groups, groups), one.pairs, one.known) for one in asked(len(groups))]
        part = (1 - self.confidence) / max(len(each), 1)
        made = [_Events(one, joint, sees_secret).sets(part, self.bounds) for one in each]
        inputs = joint.a * (joint.c if sees_secret else 1)
        return PriorSets.joined(made) if made else _nothing(inputs, joint.c)


def checked_confidence(confidence: float | Fraction) -> Fraction:
    """The confidence as the decimal fraction it is written as, or one sentence that says why it is none.

    >>> checked_confidence(0.95)
    Fraction(19, 20)
    """
    try:
        exact = Fraction(str(confidence))
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if isinstance(confidence, bool) or not 0 < exact < 1:
        raise ParameterError(f"A confidence must lie between 0 and 1, like 0.95; it is {confidence}.")
    return exact


def boxed(low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """The bounds of a box, as tight as the simplex makes them.

    >>> [side.tolist() for side in boxed(np.array([SCALE // 2, 0]), np.array([SCALE, SCALE]))]
    [[549755813888, 0], [1099511627776, 549755813888]]
    """
    tighter = np.maximum(low, SCALE - (high.sum() - high))
    return tighter, np.minimum(high, SCALE - (low.sum() - low))


def _united(of_groups: BoolArray, groups: BoolArray) -> BoolArray:
    """Groups of groups, as groups of secrets."""
    return np.asarray(of_groups.astype(np.int64) @ groups.astype(np.int64) > 0)


def _nothing(inputs: int, c: int) -> PriorSets:
    none = np.empty((0, inputs), dtype=np.int64)
    pairs = np.empty((0, 2), dtype=np.int64)
    return PriorSets(none, none, np.empty((0, c), dtype=bool), (), pairs, pairs[:, 0])


class _Events:
    """The events of one question: in every class of people, each group against others or against all of them."""

    def __init__(self, asked: Asked, joint: Joint, sees_secret: bool) -> None:
        self.joint, self.sees_secret, self.known = joint, sees_secret, asked.known
        self.masks: dict[bytes, int] = {}
        self.held: list[BoolArray] = []
        self.pairs: list[tuple[int, int, bool]] = []
        for one, other in asked.pairs:
            mine, theirs = asked.groups[one], asked.groups[other]
            if (mine & ~theirs).any() and (mine & theirs).any():
                mine, theirs = theirs, mine  # either way up is the same comparison
            within = bool((mine & theirs).any())
            if within and (mine & ~theirs).any():
                raise ParameterError(
                    "For a population a promise must compare groups of secrets that share none, or of which one holds "
                    "the other; two of these overlap. Compare their parts."
                )
            self.pairs.append((self._number(mine), self._number(theirs & ~mine), within))
        first = {e for e, _, _ in self.pairs}
        self.own = first | {f for _, f, within in self.pairs if not within}
        self.classes = self._classes()

    def _number(self, mask: BoolArray) -> int:
        number = self.masks.setdefault(mask.tobytes(), len(self.held))
        if number == len(self.held):
            self.held.append(mask)
        return number

    def _classes(self) -> list[tuple[Known, IntArray]]:
        """What the people of a class share, and the values that they may have; where X is seen, two or more."""
        if not self.known:
            return [((), np.arange(self.joint.a))]
        labels, of_value = np.unique(self.joint.combos[:, self.known], axis=0, return_inverse=True)
        found = []
        for number, shared in enumerate(labels.tolist()):
            values = np.flatnonzero(of_value.reshape(-1) == number)
            if self.sees_secret or len(values) > 1:
                found.append((tuple(zip(self.known, shared, strict=True)), values))
        return found

    def _cells(self, mask: BoolArray, values: IntArray) -> tuple[IntArray, IntArray]:
        """The inputs of an event and how many rows each has; where the secret is seen, a pair never seen counts too."""
        weights = self.joint.weights[mask][:, values]
        if not self.sees_secret:
            return values, weights.sum(axis=0).astype(np.int64)
        inputs = np.flatnonzero(mask)[:, None] * self.joint.a + values
        return inputs.ravel(), weights.ravel().astype(np.int64)

    def sets(self, beta: Fraction, bounds: Bounds) -> PriorSets:
        """Boxes of all events, whose bounds fail with chance β at most, all together."""
        k, inputs = len(self.held), self.joint.a * (self.joint.c if self.sees_secret else 1)
        cells = [self._cells(mask, values) for _, values in self.classes for mask in self.held]
        rows = [int(counts.sum()) for _, counts in cells]
        parts = self._parts(beta, rows)
        low, high = np.zeros((2, len(cells), inputs), dtype=np.int64)
        for i, (where, counts) in enumerate(cells):
            low[i, where], high[i, where] = _box(counts, parts[i], bounds)
        within = sum(w for _, _, w in self.pairs) * len(self.classes)
        level = _rounded(SHARES * beta / within) if within else Fraction(0)
        pairs = [(j * k + e, j * k + f, w) for j in range(len(self.classes)) for e, f, w in self.pairs]
        share = [bounds.least_share(rows[e], rows[f], level) if w else 0 for e, f, w in pairs]
        return PriorSets(
            low=low,
            high=high,
            secrets=np.tile(np.array(self.held), (len(self.classes), 1)),
            known=tuple(known for known, _ in self.classes for _ in self.held),
            pairs=np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2),
            share=np.array(share, dtype=np.int64),
        )

    def _parts(self, beta: Fraction, rows: Sequence[int]) -> list[Fraction]:
        """The part of β that each event gets, class by class."""
        k = len(self.held)
        rests, within = k - len(self.own), any(w for _, _, w in self.pairs)
        own = 1 - (RESTS if rests else 0) - (SHARES if within else 0)
        weights = [math.isqrt(FINEST // n) if n and i % k in self.own else 0 for i, n in enumerate(rows)]
        whole = max(sum(weights), 1)
        rest = RESTS * beta / max(rests * len(self.classes), 1)
        return [_rounded(own * beta * w / whole) if i % k in self.own else rest for i, w in enumerate(weights)]


def _box(counts: IntArray, part: Fraction, bounds: Bounds) -> tuple[IntArray, IntArray]:
    """The tight box of an event with these counts. Of two cells one number is bounded; of none seen, nothing is."""
    cells = len(counts)
    if cells == 1:
        return np.array([SCALE]), np.array([SCALE])
    if not counts.any():
        return np.zeros(cells, dtype=np.int64), np.full(cells, SCALE)
    low, high = bounds.box(counts, _rounded(part / (2 if cells == 2 else 2 * cells)))
    if cells == 2:
        return np.array([low[0], SCALE - high[0]]), np.array([high[0], SCALE - low[0]])
    return boxed(low, high)


def _rounded(level: Fraction) -> Fraction:
    return Fraction(math.floor(level * FINEST), FINEST)
