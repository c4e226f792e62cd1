r"""Promises that look at what the values of the secret are: by pairs, by distance, by named events, for many priors.

*Graded LDP* has an ε for every pair of secrets, :math:`P(y|s) \le e^{\varepsilon_{ss'}} P(y|s')`. What follows along a
path of pairs is promised too, so that ε is the length of the shortest path, and only pairs that are no shorter by
another way are compared. On a line, where :math:`\varepsilon_{ss'} = \varepsilon |s - s'|`, these are neighbours.

*Named events* are groups of secrets, each compared with everybody else; what lies within a group is not.

*Interior PML* is PML for every prior π on the secret that gives each value at least c. P(y|s) and P(y|s') do not
depend on π, so that :math:`P_\pi(y)` is least at a corner of these priors, where one value has all that is left:

.. math:: P(y|s) \le e^{\varepsilon} \Big(c \sum_t P(y|t) + (1 - kc) P(y|s')\Big) \quad\text{for all } s, s'.

At c = 0 that is LDP, at c = 1/k PML for even priors (docs/theory.md, Theorems 71 to 74).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import ParameterError, TableError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import (
    Comparisons,
    check_comparison_size,
    compare_groups,
    float_below,
    odds_bounds,
    scale_below,
)
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promise_base import Promise

LINE = "line"  # LDP by distance: the secret's values are numbers
MOST_VALUES = 1000  # that a file of pairs may name: every path between two of them is looked at


@dataclass(frozen=True)
class GradedLDP(Promise):
    """LDP with an ε for every pair of secrets; its ε is the largest of them, or on a line that of a step of 1."""

    asked_as: ClassVar[str] = "ldp:graded.csv, ldp:line"
    sizes: tuple[tuple[str, str, float], ...] = ()  # of pairs that no path makes shorter; none of them on a line
    tightened: int = 0  # pairs whose ε in the file was more than that of a path

    @classmethod
    def from_sizes(cls, sizes: Sequence[tuple[str, str, float]]) -> GradedLDP:
        """The promise of these pairs, each as small as the shortest path makes it.

        >>> GradedLDP.from_sizes([("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 5.0)]).sizes
        (('a', 'b', 1.0), ('b', 'c', 1.0))
        """
        length: dict[tuple[str, str], Fraction] = {}
        for one, other, size in sizes:
            if one == other or (one, other) in length or not (check_epsilon(size) > 0):
                raise ParameterError("Each pair of two values needs one ε above 0; one pair has none or several.")
            length[one, other] = length[other, one] = Fraction(size)
        values = sorted({value for pair in length for value in pair})
        if not 2 <= len(values) <= MOST_VALUES:
            raise ParameterError(f"Graded LDP is for 2 to {MOST_VALUES:,} values; {len(values):,} are named.")
        shortest = _shortest_paths(values, length)
        tightened = sum(shortest[one, other] < Fraction(size) for one, other, size in sizes)
        direct = [
            (one, other, float(shortest[one, other]))
            for i, one in enumerate(values)
            for other in values[i + 1 :]
            if not any(
                shortest[one, between] + shortest[between, other] == shortest[one, other]
                for between in values
                if between not in (one, other)
            )
        ]
        return cls(float(max(shortest.values())), tuple(direct), tightened)

    @classmethod
    def from_text(cls, argument: str, epsilon: float | None) -> GradedLDP:
        if argument == LINE:
            if epsilon is None:
                raise ParameterError(f"A promise needs its ε; none was given. Add {hint('epsilon', 1)}.")
            return cls(epsilon)
        if epsilon is not None:
            raise ParameterError(f"ldp:{argument} already fixes ε; drop {hint('epsilon')}.")
        rows = _read_rows(argument, 3, "two values and their ε in a row: low,high,0.5")
        try:
            return cls.from_sizes([(one, other, float(size)) for one, other, size in rows])
        except ValueError:
            raise ParameterError(f"'{argument}' must have an ε in its third column; one is no number.") from None

    @classmethod
    def fixes_epsilon(cls, argument: str) -> bool:
        return argument != LINE

    @property
    def text(self) -> str:
        return "" if self.sizes else f"ldp:{LINE}"

    @classmethod
    def from_parameters(cls, epsilon: float, parameters: Mapping[str, Any]) -> GradedLDP:
        sizes = tuple((str(one), str(other), float(size)) for one, other, size in parameters["sizes"])
        return cls(epsilon, sizes)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"sizes": [list(pair) for pair in self.sizes]}

    def smallest_scale(self, secrets: Sequence[str]) -> float:
        if self.sizes:
            return min(scale_below(size, self.epsilon) for _, _, size in self.sizes)
        return min(1.0, *_neighbours(secrets)[1].tolist()) if len(secrets) > 1 else 1.0

    def with_epsilon(self, epsilon: float) -> GradedLDP:
        share = Fraction(epsilon) / Fraction(self.epsilon)
        return GradedLDP(epsilon, tuple((one, other, float(share * Fraction(size))) for one, other, size in self.sizes))

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for one, other, _ in self.sizes for value in (one, other)))

    @property
    def for_any_belief(self) -> bool:
        return True

    @property
    def meaning(self) -> str:
        if self.sizes:
            return (
                "Seeing a record, nobody's odds between two values of {secret} can change by more than a factor of "
                "{factor}, and for most pairs by less, as the owner graded them; whatever they believed before."
            )
        return (
            "Seeing a record, nobody's odds between two values of {secret} that are 1 apart can change by more than a "
            "factor of {factor}, those of d apart by its d-th power; whatever they believed before."
        )

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        return odds_bounds(prior, epsilon) if self.sizes else (0.0, 1.0)

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        if joint.c > 1:
            pairs, scales = self._graded_pairs(joint) if self.sizes else _neighbours(joint.secrets)
            yield compare_groups(joint, sees_secret, np.eye(joint.c), pairs, (), np.repeat(scales[:, None], 2, axis=1))

    def _graded_pairs(self, joint: Joint) -> tuple[list[tuple[int, int]], FloatArray]:
        number = {label: s for s, label in enumerate(joint.secrets)}
        named = {value for one, other, _ in self.sizes for value in (one, other)}
        missing = len(set(number) - named)
        if missing:
            raise ParameterError(
                f"Graded LDP needs an ε for every value of {joint.secret_name}; {missing} of {joint.c} have none. Add "
                "a row for each."
            )
        length: dict[tuple[str, str], Fraction] = {}
        for one, other, size in self.sizes:
            length[one, other] = length[other, one] = Fraction(size)
        if named > set(number):  # values that nobody has still lie on paths
            length = _shortest_paths(sorted(named), length)
        held = [(pair, size) for pair, size in length.items() if pair[0] < pair[1] and set(pair) <= set(number)]
        scales = [scale_below(float(size), self.epsilon) for _, size in held]
        return [(number[one], number[other]) for (one, other), _ in held], np.array(scales)


def _shortest_paths(
    values: Sequence[str], length: Mapping[tuple[str, str], Fraction]
) -> dict[tuple[str, str], Fraction]:
    """The length of the shortest path between every two values, exactly."""
    found = dict(length)
    for between in values:
        near = [value for value in values if (value, between) in found and value != between]
        for one in near:
            for other in near:
                way = found[one, between] + found[between, other]
                if one != other and ((one, other) not in found or way < found[one, other]):
                    found[one, other] = way
    if len(found) < len(values) * (len(values) - 1):
        raise ParameterError("Every two values must have an ε, or a path of pairs that have one; some have none.")
    return found


def _neighbours(secrets: Sequence[str]) -> tuple[list[tuple[int, int]], FloatArray]:
    """The secrets next to each other on the line of their numbers, and how far they are apart."""
    try:
        place = [Fraction(label.strip()) for label in secrets]
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            "LDP on a line needs a secret whose values are numbers; some are not. Give an ε per pair: "
            f"{hint('promise', 'ldp:graded.csv')}."
        ) from None
    order = sorted(range(len(place)), key=place.__getitem__)
    pairs = list(pairwise(order))
    apart = [place[other] - place[one] for one, other in pairs]
    if not all(apart):
        raise ParameterError("LDP on a line needs distinct numbers; two values of the secret are the same.")
    return pairs, np.array([float_below(distance) for distance in apart])


@dataclass(frozen=True)
class Events(Promise):
    """Named groups of secrets, each against everybody else: :math:`P(y|G) / P(y|¬G)` within e^±ε."""

    asked_as: ClassVar[str] = "events:groups.csv"
    events: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def from_text(cls, argument: str, epsilon: float | None) -> Events:
        if not argument:
            raise ParameterError(f"events needs a file: {hint('promise', 'events:groups.csv')}.")
        if epsilon is None:
            raise ParameterError(f"A promise needs its ε; none was given. Add {hint('epsilon', 1)}.")
        members: dict[str, list[str]] = {}
        for value, event in _read_rows(argument, 2, "a value of the secret and its event in a row: F32,psychiatric"):
            members.setdefault(event, []).append(value)
        return cls(epsilon, tuple((event, tuple(values)) for event, values in members.items()))

    def __post_init__(self) -> None:
        super().__post_init__()
        values = [value for _, held in self.events for value in held]
        if not self.events or not all(held for _, held in self.events):
            raise ParameterError("Named events need at least one value each; one has none.")
        if len(set(values)) < len(values):
            raise ParameterError("Named events must share no value of the secret; two do. Name each value once.")

    @property
    def text(self) -> str:
        return ""

    @classmethod
    def from_parameters(cls, epsilon: float, parameters: Mapping[str, Any]) -> Events:
        return cls(epsilon, tuple((str(name), tuple(map(str, held))) for name, held in parameters["events"].items()))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"events": {name: list(values) for name, values in self.events}}

    def with_epsilon(self, epsilon: float) -> Events:
        return Events(epsilon, self.events)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(value for _, values in self.events for value in values)

    @property
    def meaning(self) -> str:
        names = ", ".join(name for name, _ in self.events)
        return (
            f"Seeing a record, nobody's odds on each of these events of {{secret}} ({names}) can change by more than a "
            "factor of {factor}, compared with the frequencies {where}. Which value within an event, or outside of "
            "all, is not promised."
        )

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        label = np.array(joint.secrets, dtype=object)
        groups = np.array([np.isin(label, np.array(values, dtype=object)) for _, values in self.events])
        for (name, _), held in zip(self.events, groups, strict=True):
            if not held.any() or held.all():
                found = "all" if held.any() else "no"
                raise ParameterError(
                    f"The event '{name}' must hold some values of {joint.secret_name} and leave some; it holds {found} "
                    "values. Name them as the table writes them, or leave the event out."
                )
        k = len(groups)
        yield compare_groups(joint, sees_secret, np.concatenate([groups, ~groups]), [[i, k + i] for i in range(k)])


@dataclass(frozen=True)
class InteriorPML(Promise):
    """PML for every prior on the secret that gives each value at least `floor`."""

    asked_as: ClassVar[str] = "pml:floor=0.05"
    floor: float = 0.0

    @classmethod
    def from_text(cls, argument: str, epsilon: float | None) -> InteriorPML:
        name, _, floor = argument.partition("=")
        try:
            least = float(floor)
        except ValueError:
            least = math.nan
        if name != "floor" or math.isnan(least):
            raise ParameterError(f"pml is asked for as pml or pml:floor=0.05; got 'pml:{argument}'.")
        if epsilon is None:
            raise ParameterError(f"A promise needs its ε; none was given. Add {hint('epsilon', 1)}.")
        return cls(epsilon, least)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.floor <= 0.5:
            raise ParameterError(
                f"The floor of priors must lie between 0 and 1 over the number of values; it is {self.floor:g}."
            )

    @property
    def text(self) -> str:
        return f"pml:floor={self.floor!r}"

    @classmethod
    def from_parameters(cls, epsilon: float, parameters: Mapping[str, Any]) -> InteriorPML:
        return cls(epsilon, float(parameters["floor"]))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"floor": self.floor}

    def with_epsilon(self, epsilon: float) -> InteriorPML:
        return InteriorPML(epsilon, self.floor)

    @property
    def meaning(self) -> str:
        return (
            "Seeing a record, a belief in a value of {secret} rises by a factor of at most {factor}, for "
            f"anybody who gives each value a chance of at least {self.floor:g} beforehand and believes the rest of the "
            "table. How far it may fall is not promised."
        )

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        k = joint.c
        if k == 1:
            return
        floor = Fraction(str(self.floor))
        if floor * k > 1:
            raise ParameterError(
                f"A prior cannot give each of {k} values of {joint.secret_name} at least {self.floor:g}. Ask for a "
                f"floor of at most 1/{k}."
            )
        check_comparison_size(k, k * k)
        plain = compare_groups(joint, sees_secret, np.eye(k), np.empty((0, 2)))
        # Mixtures as integers: all totals are brought to their least common multiple.
        totals = [int(total) for total in plain.totals]
        common = math.lcm(*totals)
        weight = np.array([int(w) * (common // totals[e]) for e, w in zip(plain.event, plain.weight, strict=True)])
        weight = weight.astype(object)
        rest = floor.denominator - k * floor.numerator
        events, inputs, weights = [plain.event], [plain.input], [weight * floor.denominator]
        for last in range(k):
            share = np.where(plain.event == last, floor.numerator + rest, floor.numerator).astype(object)
            held = share > 0
            events.append(np.full(int(held.sum()), k + last))
            inputs.append(plain.input[held])
            weights.append((share * weight)[held])
        pairs = np.array([(s, k + last) for s in range(k) for last in range(k) if s != last])
        alone = np.eye(k, dtype=bool)
        secrets = np.concatenate([alone, alone | bool(floor)])
        yield Comparisons(
            inputs=plain.inputs,
            event=np.concatenate(events),
            input=np.concatenate(inputs),
            weight=np.concatenate(weights),
            secrets=secrets,
            of_class=np.zeros(2 * k, dtype=np.int64),
            pairs=pairs,
            known=(),
            known_labels=plain.known_labels,
            scales=np.tile([1.0, np.inf], (len(pairs), 1)),
            mixed=True,
        )


def _read_rows(path: str, columns: int, expected: str) -> list[list[str]]:
    """The rows of a small CSV file; a first row that is no row of values, such as value,event, is left out."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise TableError(f"Cannot read '{path}'. Name a CSV file with {expected}.") from None
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    if rows and rows[0] in (["value", "event"], ["value", "other", "epsilon"]):
        rows = rows[1:]
    if not rows or any(len(row) != columns or not all(row) for row in rows):
        raise ParameterError(f"'{path}' needs {expected}; some row is not so.")
    return rows
