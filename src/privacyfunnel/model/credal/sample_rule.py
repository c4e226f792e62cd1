r"""Credal sets from a sample: they hold the population that it was drawn from, with a stated confidence.

The rows of a table are an independent sample from p*. For every event E that a promise compares, P(· | E) lies in the
box of one-sided Clopper–Pearson bounds of its cells; and P(E | E or F) is at least such a bound as well. The chances
that a bound fails add up to β = 1 − confidence, so that all hold together with probability 1 − β, whatever p* is.

Rare secrets are promised as one group, the pool: every secret that is not one of the common ones, seen or not.
β is divided among the limits and groupings that the rule might have chosen (`rare_secrets`), then evenly among the side
channels that a promise looks at, and then among events (`events`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar
from typing import Protocol as Shape

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.comparisons import GroupPairs
from privacyfunnel.model.credal.clopper_pearson import exact_lower_bound, exact_lower_bounds, exact_upper_bounds
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.credal.events import Events, ShareBounds, empty_credal_sets, unite_groups
from privacyfunnel.model.credal.rare_secrets import LIMITS, choose_limit, grouping_share, rare_group, smallest_limit
from privacyfunnel.model.joint import Joint

RARE = LIMITS[0]  # rows: secrets with fewer of them are promised together as a rule
TOTALS = Fraction(1, 100)  # of β: that the numbers of rows are far from their means
MOST_ROWS = 2**40  # of a sample: more are probabilities, written as integers


class CredalRule(Shape):
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

    @property
    def anything_else(self) -> bool:
        """Whether people may have a value that no row has: one more input of every event, the last one."""

    def cover_anything_else(self, covers: bool = True) -> CredalRule:
        """The same rule where they may, if it can say so, or may not."""

    def to_json(self) -> dict[str, Any]:
        """What a file says beside confidence and rarity."""

    def without_pooling(self) -> CredalRule:
        """The same rule, with no secret too rare."""

    def groups(self, joint: Joint) -> BoolArray:
        """Which secrets are promised together, groups × secrets."""

    def events(self, asked: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool) -> list[Events]:
        """The events of everything that is asked of so many groups of secrets, question by question."""

    def credal_sets(self, asked: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool) -> CredalSets:
        """The sets of these events, which take a while."""


@dataclass(frozen=True, slots=True)
class ClopperPearson:
    """Bounds from the rows themselves."""

    def box(self, counts: IntArray, level: Fraction) -> tuple[IntArray, IntArray]:
        """See Bounds."""
        total = np.full_like(counts, counts.sum())
        return exact_lower_bounds(counts, total, level), exact_upper_bounds(counts, total, level)

    def least_share(self, some: int, others: int, level: Fraction) -> int:
        """See Bounds."""
        return exact_lower_bound(some, some + others, level) if some else 0


@dataclass(frozen=True, slots=True)
class SampleRule:
    """Sets for the people that a table's rows are an independent sample of."""

    confidence: Fraction
    rare: int = RARE
    bounds: ShareBounds = ClopperPearson()
    anything_else: bool = False
    # Another way to sets needs another name, so that a file never changes its meaning.
    name: ClassVar[str] = "Clopper-Pearson boxes 60/38/2, pool of all but the common secrets"

    def fit_limit(self, joint: Joint) -> SampleRule:
        """The same rule, with the limit of rarity that suits these rows."""
        return replace(self, rare=choose_limit(joint.weights.sum(axis=1), TOTALS * (1 - self.confidence)))

    def check_limit(self, rows: int) -> SampleRule:
        """The rule, if its pool holds every secret that these rows do not show."""
        least = smallest_limit(rows, TOTALS * (1 - self.confidence))
        if 0 < self.rare < least:
            raise ParameterError(
                f"rare must be 0 or at least {least} for a sample of {rows:,} rows; got {self.rare}. Below that, a "
                "secret that no row has might have been one of the common ones."
            )
        return self

    @property
    def table(self) -> None:
        """See Rule."""
        return None

    @property
    def design_epsilon(self) -> None:
        """See Rule."""
        return None

    def to_json(self) -> dict[str, Any]:
        """What a file says beside confidence and rarity; the rest are the owner's counts."""
        return {"anything_else": True} if self.anything_else else {}

    @classmethod
    def from_json(cls, confidence: Fraction, rare: int, content: Mapping[str, Any]) -> SampleRule:
        """The rule that a file states."""
        return cls(confidence, rare, anything_else=content.get("anything_else", False))

    def cover_anything_else(self, covers: bool = True) -> SampleRule:
        """The same rule, where people may have a value that no row has, or may not."""
        return replace(self, anything_else=covers)

    def without_pooling(self) -> SampleRule:
        """The same rule, with no secret too rare."""
        return replace(self, rare=0)

    def groups(self, joint: Joint) -> BoolArray:
        """Which of the seen secrets are in one group, groups × secrets: the pool first, then the common ones.

        The pool also holds every secret that no row has.

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
        together = rare_group(rows, self.rare)
        if joint.c > 1 and len(together) >= joint.c:
            raise small_sample_error(rows, joint.total, self.rare)
        alone = np.eye(joint.c, dtype=bool)
        first = alone[together].any(axis=0, keepdims=True)
        return np.concatenate([first, np.delete(alone, together, axis=0)]) if len(together) else alone

    def events(self, asked: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool) -> list[Events]:
        """The events of everything that is asked of so many groups of secrets, question by question."""
        groups = self.groups(joint)
        each = (replace(one, groups=unite_groups(one.groups, groups)) for one in asked(len(groups)))
        return [Events(one, joint, sees_secret, self.anything_else) for one in each]

    def credal_sets(self, asked: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool) -> CredalSets:
        """The sets of these events."""
        each = self.events(asked, joint, sees_secret)
        part = self._grouping_share(joint) / max(len(each), 1)
        made = [events.credal_sets(part, self.bounds) for events in each]
        inputs = joint.a * (joint.c if sees_secret else 1) + self.anything_else
        return CredalSets.concatenate(made) if made else empty_credal_sets(inputs, joint.c)

    def _grouping_share(self, joint: Joint) -> Fraction:
        """The part of β that the sets of these groups have, for other groups might have been read off the table."""
        beta = 1 - self.confidence
        if not self.rare:  # nothing is chosen
            return beta
        return (1 - TOTALS) * beta * grouping_share(joint.weights.sum(axis=1), self.rare, TOTALS * beta)


class SeenSecretsRule(SampleRule):
    """The rule that older protocol files name. Its pool held seen secrets only, so its sets missed the others.

    Such files can still be read and drawn from; they are checked by the sets of `SampleRule`.
    """

    __slots__ = ()
    name: ClassVar[str] = "Clopper-Pearson boxes 60/38/2, every grouping and limit"


def small_sample_error(totals: IntArray, rows: int, rare: int) -> ParameterError:
    """Why a sample says nothing of its people, and how large one with the same shares would have to be."""
    of_one, of_all = int(totals.max()), max(int(totals.sum()), 1)
    least = min(of_one, of_all - of_one)
    needed = f" A sample of {math.ceil(Fraction(rare * of_all, least)):,} such rows would do." if least > 0 else ""
    return ParameterError(
        f"A promise for a population needs two secrets, or groups of them, of at least {rare} rows each; these "
        f"{rows:,} rows are too few for that.{needed or ' Gather more rows.'}"
    )


def check_confidence(confidence: float | Fraction | str) -> Fraction:
    """The confidence as the decimal fraction it is written as, or one sentence that says why it is none.

    >>> check_confidence(0.95)
    Fraction(19, 20)
    """
    try:
        exact = Fraction(str(confidence))
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if isinstance(confidence, bool) or not 0 < exact < 1:
        raise ParameterError(f"A confidence must lie between 0 and 1, like 0.95; it is {confidence}.")
    return exact
