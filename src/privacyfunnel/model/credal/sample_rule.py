r"""Credal sets from a sample: they hold the population that it was drawn from, with a stated confidence.

The rows of a table are an independent sample from p*. For every event E that a promise compares, P(· | E) lies in the
box of one-sided Clopper–Pearson bounds of its cells; and P(E | E or F) is at least such a bound as well. The chances
that a bound fails add up to β = 1 − confidence, so that all hold together with probability 1 − β, whatever p* is.

Rare secrets are promised as one group, the pool: every secret that is not one of the common ones, seen or not.
β is divided among the limits and groupings that the rule might have chosen (`rare_secrets`), then evenly among the side
channels that a promise looks at, and then among events (`events`).

Pools of rare secrets: which secrets are promised as one group, and how many other pools the rule might have chosen.

A population may have secrets that no row of the sample has. So a grouping names the *common* secrets C, each promised
alone, and the pool is every other secret, seen or not. The rule reads C off the numbers of rows :math:`n_s`, but credal
sets hold for a C fixed beforehand. Hence every C counts that samples near their means would have given. With N rows,
means :math:`\mu_s` and :math:`D(n, \mu) = n \ln(n / \mu) - n + \mu`, a secret is near its mean if

.. math:: D(n_s, \mu_s) \le \ln\frac{4 N}{\beta' \mu_s}.

By Chernoff's bound some secret is not with probability at most :math:`\sum_s \beta' \mu_s / 2N = \beta' / 2`, however
many secrets the population has, since the means sum to N. The totals of the pools, of which there are at most
:math:`2^u` for u undecided secrets, are near theirs with probability :math:`1 - \beta' / 2` as well. If each C has its
sets at a part :math:`u(C) / \sum u` of β − β′, some fail with probability β at most. The sum depends on the population;
but if the totals seen are near its means, every C that counts is one of totals near means that the totals seen are near
as well. Those are summed here, so that it is never too small (docs/theory.md, Theorem 44a).

Where dozens of secrets have about as many rows as the limit, 2 to the power of dozens groupings might have been chosen,
and nothing is left of β. A limit in a gap between the totals leaves one. So a few limits are tried, each with a part of
β of its own for all its groupings, and the first is taken at which the sets' part is about the largest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import chain, combinations
from typing import Any, ClassVar
from typing import Protocol as Shape

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.comparisons import GroupPairs
from privacyfunnel.model.credal.clopper_pearson import exact_lower_bound, exact_lower_bounds, exact_upper_bounds
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.credal.events import Events, ShareBounds, empty_credal_sets, unite_groups
from privacyfunnel.model.joint import Joint

LIMITS = (200, 300, 400, 500, 600, 800, 1000, 2000, 5000, 50)  # rows: secrets with fewer of them are promised together
USUAL = Fraction(19, 20)  # of β: for the first of the limits; the others share the rest
LIMIT_TOLERANCE = 10  # a limit is good enough if the best one leaves at most so many times more: levels count by log
WEIGHT_RATIO = 8  # u(C) grows by this factor with every common secret
MOST_UNDECIDED = 10  # secrets that may be rare or not: with more, groupings are bounded instead of listed
STEPS = 200  # of a bisection: more than a float has digits
OUTWARD_MARGIN = 1e-9  # relative: more than rounding


def rare_group(rows: IntArray, rare: int) -> IntArray:
    """The seen secrets of the pool: those with fewer rows than `rare`, and the next one if they have fewer together."""
    order = np.argsort(rows, kind="stable")
    together = int((rows < rare).sum())
    while 0 < together < len(rows) and rows[order[:together]].sum() < rare:
        together += 1
    return np.asarray(order[:together])


def choose_limit(rows: IntArray, chance: Fraction) -> int:
    """The limit below which these secrets are pooled: one that leaves two groups, if the first one does."""
    useful = [limit for limit in LIMITS if len(rare_group(rows, limit)) < len(rows)]
    if LIMITS[0] not in useful:
        return LIMITS[0]
    least = smallest_limit(int(rows.sum()), chance)
    parts = {limit: grouping_share(rows, limit, chance) for limit in useful if limit in (LIMITS[0], max(limit, least))}
    return next(limit for limit in parts if LIMIT_TOLERANCE * parts[limit] >= max(parts.values()))


def smallest_limit(total: int, chance: Fraction) -> int:
    """The smallest limit that no secret without a row would have reached in a sample near its means."""
    return _near_totals(0, _log_scale(total, chance), True)[1] + 1


def grouping_share(rows: IntArray, rare: int, chance: Fraction) -> Fraction:
    """The limit's part, times that of the grouping that was chosen among all that might have been."""
    size = len(rare_group(rows, rare))
    counted = (n * Fraction(WEIGHT_RATIO) ** (size - other) for other, n in _pool_sizes(rows, rare, chance).items())
    return _limit_share(rare) / sum(counted, start=Fraction(0))


def _limit_share(rare: int) -> Fraction:
    """What is left for a limit where others are tried; all of it for one that was given beforehand."""
    if rare not in LIMITS:
        return Fraction(1)
    return USUAL if rare == LIMITS[0] else (1 - USUAL) / (len(LIMITS) - 1)


def _pool_sizes(rows: IntArray, rare: int, chance: Fraction) -> Counter[int]:
    """How many pools with every number of the secrets seen might have been chosen; perhaps more."""
    scale = _log_scale(int(rows.sum()), chance)
    near_totals = cache(_near_totals)  # for this call alone: no count outlives it
    ends = np.array([near_totals(int(n), scale, True) for n in rows])
    low, high = ends[:, 0], ends[:, 1]
    surely, perhaps = high < rare, (low < rare) & (high >= rare)
    pool_level = math.log(4 / float(chance)) + int(perhaps.sum()) * math.log(2)
    pool_level *= 1 + OUTWARD_MARGIN
    if perhaps.sum() > MOST_UNDECIDED:
        enough = near_totals(int(rows[surely].sum()), pool_level, False)[0] >= rare  # then no common secret joins
        others, first = int((perhaps if enough else ~surely).sum()), int(surely.sum())
        return Counter({first + k: math.comb(others, k) for k in range(others + 1)})
    open_ones = np.flatnonzero(perhaps)
    found: set[bytes] = set()
    for some in chain.from_iterable(combinations(open_ones, k) for k in range(len(open_ones) + 1)):
        pool = surely.copy()
        pool[list(some)] = True
        least, most = near_totals(int(rows[pool].sum()), pool_level, False)
        if pool.all() or least == 0 or most >= rare:  # as it is: without rows, or with enough
            found.add(pool.tobytes())
        if not pool.all() and least < rare:  # with the smallest common secret, whichever that may be
            found.update(_with_next(pool, np.maximum(low, rare), high))
    return Counter(sum(each) for each in found)


def _with_next(pool: BoolArray, low: IntArray, high: IntArray) -> set[bytes]:
    """The pool with each secret that may be the smallest of the others."""
    found = set()
    for s in np.flatnonzero(~pool & (low <= high[~pool].min())).tolist():
        joined = pool.copy()
        joined[s] = True
        found.add(joined.tobytes())
    return found


def _log_scale(total: int, chance: Fraction) -> float:
    """ln(4N / β′)."""
    return math.log(4 * max(total, 1) / float(chance)) * (1 + OUTWARD_MARGIN)


def _near_totals(n: int, level: float, by_mean: bool) -> tuple[int, int]:
    """Between which totals those are that are near a mean that n is near.

    Near is D ≤ level − ln μ for a secret (`by_mean`), and D ≤ level for a pool. Either way the means that n is near
    form an interval, and both ends of the totals near a mean grow with it.
    """

    def near(k: float, mean: float) -> bool:
        if mean <= 0:
            return k <= (1 if by_mean else 0)
        divergence = mean - k + (k * math.log(k / mean) if k > 0 else 0.0)
        return divergence <= level - (math.log(mean) if by_mean else 0.0)

    far = 4.0 * (n + level) + 4.0
    least = _bisect(lambda mean: near(n, mean), float(n), 0.0)
    most = _bisect(lambda mean: near(n, mean), float(n), far)
    low = _bisect(lambda k: near(k, least), least, 0.0)
    high = _bisect(lambda k: near(k, most), most, 4.0 * (most + level) + 4.0)
    return math.floor(low * (1 - OUTWARD_MARGIN)), math.ceil(high * (1 + OUTWARD_MARGIN))


def _bisect(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last place on the way from one that fits to one that need not, rounded outwards."""
    if fits(outside):
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside


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

    def pool_below(self, rare: int) -> CredalRule:
        """The same rule, with those secrets in the pool that have fewer rows than this; 0 for none."""

    def groups(self, joint: Joint) -> BoolArray:
        """Which secrets are promised together, groups × secrets."""

    def events(self, questions: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool) -> list[Events]:
        """The events of everything that is asked of so many groups of secrets, question by question."""

    def credal_sets(
        self, questions: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool
    ) -> CredalSets:
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

    def pool_below(self, rare: int) -> SampleRule:
        """The same rule, with those secrets in the pool that have fewer rows than this; 0 for none."""
        return replace(self, rare=rare)

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

    def events(self, questions: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool) -> list[Events]:
        """The events of everything that is asked of so many groups of secrets, question by question."""
        groups = self.groups(joint)
        each = (replace(one, groups=unite_groups(one.groups, groups)) for one in questions(len(groups)))
        return [Events(one, joint, sees_secret, self.anything_else) for one in each]

    def credal_sets(
        self, questions: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool
    ) -> CredalSets:
        """The sets of these events."""
        each = self.events(questions, joint, sees_secret)
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
