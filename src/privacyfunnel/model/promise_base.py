r"""What a promise is, and for whom it is kept: its table, other priors, the people that the table is a sample of.

Every promise compares how likely an output is under pairs of events E and F about the record:

.. math:: e^{-b\varepsilon} \le \frac{P(Y = y \mid E)}{P(Y = y \mid F)} \le e^{a\varepsilon} \quad\text{for every } y,

with scales a and b that are 1 unless a pair has others; an infinite one leaves that side open. A promise is thus a list
of pairs of events and nothing else: from it come the measured leakage of a protocol, the rows
of the polytope of posteriors, and the exact check on integers. For several priors, or for sets of them, the same pairs
are compared under each.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np

from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import Comparisons, GroupPairs, Leak, compare_groups, float_below
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.credal.credal_sets import Comparable, CredalSets
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.credal.sample_rule import CredalRule, SampleRule, check_confidence
from privacyfunnel.model.joint import Joint

PROMISES: dict[str, type[Promise]] = {}  # by name; a promise enters when its class is made


@dataclass(frozen=True)
class Promise(ABC):
    """What the owner promises about the secret, of size ε."""

    asked_as: ClassVar[str] = ""  # its text, where that is not its name
    by_column: ClassVar[bool] = False  # whether it is about each of several secret columns by itself
    composable: ClassVar[float | None] = None  # what it adds to other releases of the same records; None if unbounded
    epsilon: float

    def __init_subclass__(cls, *, named: bool = True) -> None:
        """A promise that is nothing but its size can be asked for by name, and written into files and read again."""
        name = cls.__name__.lower()
        if named and name in PROMISES and PROMISES[name].__module__ != cls.__module__:
            raise ParameterError(
                f"There is a promise '{name}' already, in {PROMISES[name].__module__}. Rename this one."
            )
        if named:
            PROMISES[name] = cls

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    @property
    def name(self) -> str:
        """How the promise is called: LIP, LDP or SRLIP."""
        return type(self).__name__

    @classmethod
    def from_text(cls, argument: str, epsilon: float | None) -> Promise:
        """The promise as it is asked for, `argument` being what stands behind its name and a colon.

        Some say their own ε; all others need one.
        """
        if argument:
            raise ParameterError(f"{cls.__name__.lower()} has nothing behind its name; there is '{argument}'.")
        if epsilon is None:
            raise ParameterError(f"A promise needs its ε; none was given. Add {hint('epsilon', 1)}.")
        return cls(epsilon)

    @classmethod
    def fixes_epsilon(cls, argument: str) -> bool:
        """Whether its text says its ε."""
        return False

    @property
    def text(self) -> str:
        """How it is asked for, but for its ε where that is given beside it."""
        return self.name.lower()

    @classmethod
    def from_parameters(cls, epsilon: float, parameters: Mapping[str, Any]) -> Promise:
        """The promise that a protocol file states."""
        if parameters:
            raise ParameterError(f"{cls.__name__} has no parameters but its ε; there are others.")
        return cls(epsilon)

    @property
    def parameters(self) -> dict[str, Any]:
        """What it is besides its name and ε, as a protocol file states it; public with the promise."""
        return {}

    @property
    def meaning(self) -> str:
        """What it says, in a sentence about {secret}, {factor} = e^ε and {where}; empty where nothing more is known."""
        return ""

    def smallest_scale(self, secrets: Sequence[str]) -> float:
        """The smallest multiple of ε that it promises for a pair of these, at most 1."""
        return 1.0

    def reduce(self, epsilon: Fraction, secrets: Sequence[str]) -> Promise:
        """What is left for records where a model takes so much of every pair's own ε, which may be a part of ε."""
        total = Fraction(str(self.epsilon))
        left = total - epsilon / Fraction(self.smallest_scale(secrets))
        if left <= 0:
            raise ParameterError(
                f"{self.name} promises some pairs less than the model's ε = {float(epsilon):.6g}. Give the model less "
                f"with {hint('design_epsilon')}, or ask for {hint('prior', 'table')}."
            )
        made = self.with_epsilon(float_below(left))
        while Fraction(made.epsilon) + epsilon / Fraction(made.smallest_scale(secrets)) > total:  # scales are rounded
            made = self.with_epsilon(math.nextafter(made.epsilon, 0.0))
        return made

    @property
    def own_sizes(self) -> dict[str, float]:
        """ε of secret columns that have a smaller one of their own."""
        return {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of the secret that it names, which then must not be merged."""
        return ()

    @property
    def guards_known_attributes(self) -> bool:
        """Whether it also holds against those who know some of the attributes."""
        return False

    @property
    def for_any_belief(self) -> bool:
        """Whether it holds whatever somebody believes about the secret beforehand, if X depends on it as in the table.

        Otherwise beliefs are compared with the distribution of the secret in the table.
        """
        return False

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        """Between what a belief of `prior` about one secret may come to lie, where this promise is kept for ε."""
        return 0.0, 1.0

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        """Which of c secrets, or groups of them, the promise compares, among whom: in tables of m attributes."""
        raise ParameterError(
            "For a population, and for odds that differ, a promise must say which "
            f"groups of secrets it compares whatever the secrets are; {self.name} does not. Use LIP or LDP."
        )

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        """The pairs of events that the promise compares, in blocks."""
        for question in self.group_pairs(joint.c, joint.m, sees_secret):
            block = compare_groups(joint, sees_secret, question.groups, question.pairs, question.known, question.scales)
            if len(block.pairs):
                yield block

    def credal_sets(self, joint: Joint, sees_secret: bool = False) -> CredalSets | None:
        """The sets of priors that it holds for besides, where all that is known is that these rows are a sample."""
        return None

    def share_count(self, joint: Joint, sees_secret: bool = False) -> int:
        """How many shares these sets bound, which is known before they are made; 0 where there are none."""
        return 0

    def with_epsilon(self, epsilon: float) -> Promise:
        """The same promise of another size."""
        return type(self)(epsilon)

    def worst(self, joint: Joint, protocol: Comparable) -> Leak:
        """Where the protocol leaks most: the output, the secret and what the attacker knew."""
        leaks = [protocol.worst(block) for block in self.comparisons(joint, protocol.sees_secret)]
        sets = self.credal_sets(joint, protocol.sees_secret)
        if sets is not None:
            leaks.append(protocol.worst_credal_leak(sets))
        return max(leaks, key=lambda leak: leak.epsilon, default=Leak(0.0))

    def leakage(self, joint: Joint, protocol: Comparable) -> float:
        """The smallest ε for which the protocol keeps this promise; `inf` if there is none."""
        return self.worst(joint, protocol).epsilon

    def count(self, joint: Joint, sees_secret: bool = False) -> int:
        """How many comparisons it makes."""
        return sum(len(block.pairs) for block in self.comparisons(joint, sees_secret))

    def constraints(self, joint: Joint, sees_secret: bool = False) -> LinearConstraints:
        r"""What the promise asks of a posterior over the inputs that occur, with the structure it was born with.

        With :math:`q(y|z) = q_y v_y(z) / p(z)`, P(y | E) is :math:`q_y \sum_z P(z|E)/p(z)\, v_y(z)`.
        """
        blocks = self.comparisons(joint, sees_secret)
        inputs = int(np.count_nonzero(joint.weights)) if sees_secret else joint.a
        return LinearConstraints.concatenate(
            [LinearConstraints.from_comparisons(block, joint, joint, sees_secret) for block in blocks], inputs
        )

    @property
    def table_promise(self) -> Promise:
        """The same promise about the rows at hand and nobody else."""
        return self

    @property
    def without_scales(self) -> Promise:
        """The promise by which a leak is told as it is, and not in parts of an ε of its own."""
        return self.table_promise

    @property
    def components(self) -> tuple[Promise, tuple[Joint, ...]] | None:
        """The promise and the priors that it is made of, where it is one for several priors."""
        return None

    def for_priors(self, priors: Sequence[Joint]) -> PriorsPromise:
        """The same promise, kept for each of these priors as well (paper, Remark 1)."""
        return PriorsPromise(self, tuple(priors))

    @property
    def population(self) -> Population | None:
        """What it promises of the people that the table is a sample of; None where it is about the table alone."""
        return None

    @property
    def odds(self) -> OddsRange | None:
        """By how much odds may differ from those of its prior; None where it is promised for that prior alone."""
        return None

    @property
    def known_columns(self) -> tuple[str, ...]:
        """Columns of a person that somebody may know beforehand: it is kept for them as well."""
        return ()

    @property
    def anything_else(self) -> bool:
        """Whether it is kept for people who have a value that no row has, too: by a row of the protocol for these."""
        return False

    def cover_anything_else(self, covers: bool = True) -> Promise:
        """The same promise, for people of a population who have a value that no row has as well, or without them."""
        return self

    def for_population(self, joint: Joint, confidence: float = 0.95, *, rare: int | None = None) -> PopulationPromise:
        """The same promise, kept as well for the people whom these rows are an independent sample of.

        With probability `confidence` over the sample the protocol keeps it for them, whoever they are. Secrets with
        fewer rows than `rare`, and those that no row has, are promised to them as one group (docs/theory.md, Theorem
        44a); on the table each is promised alone. The default of `rare` is 200, or another limit that separates the
        totals of this table better. The labels must not depend on the counts.

        Raises
        ------
        ParameterError
            If the confidence is none, or the sample is too small to promise anything.
        """
        sure = check_confidence(confidence)
        rule = SampleRule(sure).fit_limit(joint) if rare is None else SampleRule(sure, rare).check_limit(joint.total)
        return PopulationPromise(self, Population(rule, joint.total), joint)


def inner(name: str) -> Any:
    """What a promise that is kept for more has, or does, as the one that it widens."""
    return property(attrgetter(f"promise.{name}"))


@dataclass(frozen=True)
class ExtendedPromise(Promise, named=False):
    """A promise that is kept for more than its table, and called and compared as the one it widens."""

    epsilon: float = field(init=False)
    promise: Promise

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", self.promise.epsilon)

    def with_epsilon(self, epsilon: float) -> Self:
        return replace(self, promise=self.promise.with_epsilon(epsilon))

    name = inner("name")
    parameters = inner("parameters")
    meaning = inner("meaning")
    smallest_scale = inner("smallest_scale")
    by_column = inner("by_column")
    own_sizes = inner("own_sizes")
    labels = inner("labels")
    guards_known_attributes = inner("guards_known_attributes")
    for_any_belief = inner("for_any_belief")
    belief_bounds = inner("belief_bounds")
    comparisons = inner("comparisons")
    constraints = inner("constraints")


@dataclass(frozen=True)
class PriorsPromise(ExtendedPromise, named=False):
    """A promise that holds for its joint and for each of some other priors on the same values."""

    priors: tuple[Joint, ...]

    @property
    def components(self) -> tuple[Promise, tuple[Joint, ...]]:
        return self.promise, self.priors

    table_promise = inner("table_promise")
    population = inner("population")
    credal_sets = inner("credal_sets")
    share_count = inner("share_count")
    anything_else = inner("anything_else")

    def cover_anything_else(self, covers: bool = True) -> PriorsPromise:
        return PriorsPromise(self.promise.cover_anything_else(covers), self.priors)

    def _check_priors(self, joint: Joint, sees_secret: bool) -> Iterator[Joint]:
        for prior in self.priors:
            if prior.attributes != joint.attributes or not np.array_equal(prior.combos, joint.combos):
                raise ParameterError("Every prior must be over the same values as the table; one is not.")
            if sees_secret and (prior.c != joint.c or bool(((prior.weights > 0) & (joint.weights == 0)).any())):
                raise ParameterError(
                    "For a protocol that sees the secret, a prior may only have the pairs of secret and value that "
                    "the table has; one has others."
                )
            yield prior

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        yield from self.promise.comparisons(joint, sees_secret)
        for prior in self._check_priors(joint, sees_secret):
            yield from self.promise.comparisons(prior, sees_secret)

    def constraints(self, joint: Joint, sees_secret: bool = False) -> LinearConstraints:
        own = self.promise.constraints(joint, sees_secret)
        others = [
            LinearConstraints.from_comparisons(block, prior, joint, sees_secret)
            for prior in self._check_priors(joint, sees_secret)
            for block in self.promise.comparisons(prior, sees_secret)
        ]
        return LinearConstraints.concatenate([own, *others])


@dataclass(frozen=True)
class Population:
    """Whom a promise holds for beyond the table: how sets of priors follow from it, and how many rows it has."""

    rule: CredalRule
    rows: int

    @property
    def confidence(self) -> float:
        """With which probability over the sample it holds."""
        return float(self.rule.confidence)


@dataclass(frozen=True)
class PopulationPromise(ExtendedPromise, named=False):
    """A promise that holds for its table, and with a stated confidence for the people it is a sample of.

    It is its rule, and no count of anybody: whoever has the counts can make the sets again.
    """

    people: Population
    _made: dict[tuple[int, bool], tuple[Joint, CredalSets]] = field(repr=False, compare=False)

    def __init__(self, promise: Promise, population: Population, joint: Joint | None = None) -> None:
        object.__setattr__(self, "promise", promise)
        object.__setattr__(self, "people", population)
        object.__setattr__(self, "epsilon", promise.epsilon)
        object.__setattr__(self, "_made", {})
        if joint is not None:
            next(promise.group_pairs(2, 1, False), None)  # refuses a promise that does not say what it compares …
            population.rule.groups(joint)  # … and a sample that is too small

    @property
    def population(self) -> Population:
        return self.people

    table_promise = inner("table_promise")

    @property
    def anything_else(self) -> bool:
        return self.people.rule.anything_else

    def cover_anything_else(self, covers: bool = True) -> PopulationPromise:
        if covers == self.anything_else:
            return self
        return PopulationPromise(self.promise, replace(self.people, rule=self.people.rule.cover_anything_else(covers)))

    def with_epsilon(self, epsilon: float) -> PopulationPromise:
        other = PopulationPromise(self.promise.with_epsilon(epsilon), self.people)
        object.__setattr__(other, "_made", self._made)  # sets do not depend on ε, and take a while
        return other

    group_pairs = inner("group_pairs")

    def credal_sets(self, joint: Joint, sees_secret: bool = False) -> CredalSets:
        """The sets that these rows make, by the rule."""
        known = self._made.get((id(joint), sees_secret))
        if known is not None and known[0] is joint:
            return known[1]
        rule, promise = self.people.rule, self.promise
        made = rule.credal_sets(lambda groups: promise.group_pairs(groups, joint.m, sees_secret), joint, sees_secret)
        self._made[id(joint), sees_secret] = (joint, made)
        return made

    def share_count(self, joint: Joint, sees_secret: bool = False) -> int:
        rule, promise = self.people.rule, self.promise
        each = rule.events(lambda groups: promise.group_pairs(groups, joint.m, sees_secret), joint, sees_secret)
        return sum(events.share_count for events in each)
