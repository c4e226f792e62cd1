r"""Side channels: simpler problems where rows look at classes of inputs (SRLIP), and what they say together.

Whoever knows some attributes knows the class of an input: each side channel divides the inputs. For such divisions let
h(π) be what a split leaves open, on average, about the class in π,

.. math:: h(\pi) = \sum_y q_y H(T_\pi v_y).

Within a class of π the atoms of a split are, each with its share of the class, a split of the class's own prior, and
keep the rows that look at nothing outside of it. So for σ finer than π

.. math:: h(\sigma) - h(\pi) \ge \sum_{l \in \pi} m_l \min \sum_y q_y H(T_\sigma v_y)
   \text{ over splits of } p_l \text{ into atoms that the rows inside } l \text{ allow,}

m_l being the mass of class l. These are problems of few inputs and few rows. And entropies are submodular:
:math:`h(\pi) + h(\sigma) \ge h(\tau) + h(\rho)` where π and σ together tell τ, and each of them tells ρ. The least
h of the inputs themselves under all of these is a linear programme of a few numbers, and bounds what a split costs
(docs/theory.md, Theorem 7b). What is left open of each attribute, all others known, adds up in it (Han's inequality).

What side channels leave open, as far as there is time: runs on their parts, each gone on with where it counts.

Every question of side_channels.py, what is left open where some division is known, has a part for each class of that
division: a small problem with a value and a bound of its own. What the question says is the sum of its parts' bounds,
what it may come to say the sum of their values, and how much of that the bound on the whole would rise is told by the
multipliers of the programme that takes all questions together. So those parts go on next of which the most may be
gained per second.

A part has side channels of its own, the finer divisions within its class. What those have said already, taken together
in the same way, bounds the part before it is begun, and where it is not solved in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import now
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.objective import Objective
from privacyfunnel.engine.problem import InputPart, Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.information import entropy


@dataclass(frozen=True, slots=True)
class DivisionPair:
    """What is left open about a division where another is known: numbers of both, and by which rows that is judged."""

    known: int
    finer: int
    all_constraints: bool  # by all rows within a class of what is known; else by those that look at all of it
    largest_class: int  # of the largest class of what is known

    @property
    def indices(self) -> tuple[int, int]:
        return self.known, self.finer


@dataclass(frozen=True, eq=False)
class SideChannels:
    """The divisions of a problem's inputs, the coarsest first: nothing is known, …, everything is."""

    problem: Problem
    divisions: tuple[IntArray, ...]  # the class of each input, numbered without holes

    @classmethod
    def from_problem(cls, problem: Problem) -> SideChannels | None:
        """The divisions that rows look at; None where all rows look at all inputs."""
        rows, d = problem.constraints, problem.size
        if not rows.is_local or not problem.objective.is_identity:
            return None
        found = {
            _number_classes(rows.members[rows.side_channel == channel]) for channel in np.unique(rows.side_channel)
        }
        found |= {bytes(np.zeros(d, dtype=np.int64)), bytes(np.arange(d))}
        divisions = [np.frombuffer(each, dtype=np.int64) for each in sorted(found)]
        return cls(problem, tuple(sorted(divisions, key=lambda each: int(each.max()))))

    def division_pairs(self) -> list[DivisionPair]:
        """What can be asked, small classes first; in large ones only of the inputs themselves, by few rows."""
        last, size = len(self.divisions) - 1, [int(np.bincount(division).max()) for division in self.divisions]
        small = [
            i > 0 and size[i] <= SETTINGS.bounds.class_inputs for i in range(last)
        ]  # where nothing is known it is no simpler
        pairs = [DivisionPair(i, last, small[i], size[i]) for i in range(last)]
        pairs += [DivisionPair(i, j, True, size[i]) for i, j in self._finer_pairs if j < last and small[i]]
        return sorted(
            pairs, key=lambda each: each.largest_class * (1 if each.finer == last else SETTINGS.bounds.finer_factor)
        )

    def parts(self, pair: DivisionPair) -> list[InputPart]:
        """The problems within the classes of what is known, but for those in which nothing is asked or compared."""
        problem, division = self.problem, self.divisions[pair.known]
        rows, size = problem.constraints, problem.constraints.members.sum(axis=1)
        inside, parts, ends = rows.enclosing_parts(division), [], np.cumsum(np.bincount(division))[:-1]
        for number, inputs in enumerate(np.split(np.argsort(division, kind="stable"), ends)):
            kept = (inside == number) & (pair.all_constraints | (size == inputs.size))
            objective = Objective.from_groups(self.divisions[pair.finer][inputs])
            if objective.image_size > 1 and kept[rows.compared_classes].any():
                mass = float(problem.prior[inputs].sum())
                own = Problem(
                    problem.prior[inputs] / mass,
                    rows.restrict_to_classes(inputs, kept, mass),
                    problem.epsilon,
                    objective,
                )
                parts.append(InputPart(inputs, mass, own))
        return parts

    def finer_divisions(self, known: int) -> list[int]:
        """The divisions that tell this one, itself first."""
        return [known, *(j for i, j in self._finer_pairs if i == known)]

    def restrict(self, known: int, part: InputPart) -> SideChannels:
        """These as they divide one class of the known one."""
        own = [np.unique(self.divisions[j][part.inputs], return_inverse=True)[1] for j in self.finer_divisions(known)]
        return SideChannels(part.problem, tuple(division.reshape(-1) for division in own))

    @cached_property
    def _finer_pairs(self) -> list[tuple[int, int]]:
        """Pairs of divisions of which the second tells the first."""
        return [
            (i, j) for i, j in combinations(range(len(self.divisions)), 2) if self._determines(self.divisions[j], i)
        ]

    def _determines(self, division: IntArray, other: int) -> bool:
        """Whether whoever knows the class of an input in this division knows the other."""
        return np.unique(division).size == np.unique(_joint_classes(division, self.divisions[other])).size

    @cached_property
    def _entropy_constraints(self) -> FloatArray:
        """Rows with rows·h >= 0: first a finer division leaves more open, for every pair; then submodularity."""
        n, finer = len(self.divisions), set(self._finer_pairs)
        rows = np.zeros((len(self._finer_pairs), n))
        for row, (i, j) in zip(rows, self._finer_pairs, strict=True):
            row[j] += 1.0
            row[i] -= 1.0
        more = []
        for i, j in combinations(range(n), 2):
            if (i, j) not in finer:
                both = _joint_classes(self.divisions[i], self.divisions[j])
                determined = max(k for k in range(n) if self._determines(both, k))
                shared = max(k for k in range(i) if (k, i) in finer and (k, j) in finer)
                row = np.zeros(n)
                np.add.at(row, [i, j, determined, shared], [1.0, 1.0, -1.0, -1.0])
                more.append(row)
        return np.concatenate([rows, np.array(more).reshape(-1, n)])

    def combine_bounds(self, least: FloatArray) -> tuple[float, FloatArray]:
        r"""What every split costs at least if h(j) − h(i) >= least[i, j] for all divisions; and how much each counts.

        For any multipliers α >= 0 of rows R h >= b and any rest r of the finest one, h(last) = αᵀR h + r·h, and
        :math:`0 \le h(\pi) \le H(T_\pi p)`: that is at least αᵀb less what a negative rest may cost.
        """
        n, rows = len(self.divisions), self._entropy_constraints
        one, other = np.array(self._finer_pairs).T
        low = np.concatenate([least[one, other], np.zeros(len(rows) - len(one))])
        finest = np.eye(n)[-1]
        programme = Programme()
        programme.add_rows(low, np.full(len(low), INF))
        programme.add_dense_columns(finest[1:], rows[:, 1:].T)  # nothing is left open about nothing
        weights = np.zeros((n, n))
        if not programme.run():
            return 0.0, weights
        multipliers = np.maximum(programme.multipliers, 0.0)
        rest = np.minimum((finest - multipliers @ rows)[1:], 0.0)
        most = [entropy(np.bincount(division, self.problem.prior)) for division in self.divisions[1:]]
        weights[one, other] = multipliers[: len(one)]
        return float(multipliers @ low + rest @ most), weights


def _joint_classes(one: IntArray, other: IntArray) -> IntArray:
    """A number for each pair of classes."""
    return np.asarray(one * (1 + other.max()) + other)


def _number_classes(members: FloatArray) -> bytes:
    """Which classes hold each input, as a number for each different answer, in the order of the inputs."""
    _, first, answer = np.unique(members, axis=1, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    return bytes(place[answer.reshape(-1)].astype(np.int64))


class Run(Protocol):
    """A run on a problem, which can be gone on with."""

    @property
    def value(self) -> float:
        """What the best split found costs."""

    @property
    def bound(self) -> float:
        """What every split costs at least."""

    def run(self, gap: float, time_limit: float | None = None) -> None:
        """Go on until the gap is reached or time is up."""


# Makes a run on a simpler problem.
RunFactory = Callable[[Problem], Run]


def _first_turn(inputs: int) -> float:
    """Seconds of a part's first turn: little more than parts that are solved in time have been seen to take."""
    return SETTINGS.bounds.part_seconds * (inputs / SETTINGS.bounds.part_inputs) ** 2


class PartRun:
    """A part, and how far its run has come; the run is forgotten once it is as close as it ever gets."""

    def __init__(self, part: InputPart, begin: RunFactory, floor: float) -> None:
        self.part, self.lower_bound, self.value = part, floor, part.problem.prior_cost
        self.seconds = _first_turn(part.problem.size)  # that the next turn may take
        self._begin, self._gap, self._ended = begin, SETTINGS.bounds.part_gap, False
        self._run: Run | None = None

    @property
    def gain(self) -> float:
        """What its bound is hoped to rise by, in nats of the whole: the less, the longer turns in vain have made it."""
        hope = _first_turn(self.part.problem.size) / self.seconds
        return 0.0 if self._ended else self.part.mass * max(self.value - self.lower_bound, 0.0) * hope

    @property
    def is_solved(self) -> bool:
        """Whether it is known as well as was asked for, or nearly."""
        return self.value - self.lower_bound <= SETTINGS.bounds.part_solved * self._gap * self.part.problem.prior_cost

    def advance(self, deadline: float) -> None:
        """A turn: the next one is longer if this was not enough, else it is to come closer."""
        left = deadline - now()
        if left <= 0:
            return
        if self._run is None:
            self._run = self._begin(self.part.problem)
        self._run.run(self._gap * self.part.problem.prior_cost, min(self.seconds, left))
        self.lower_bound, self.value = max(self.lower_bound, self._run.bound), min(self.value, self._run.value)
        if not self.is_solved:
            self.seconds *= SETTINGS.bounds.part_longer
        elif self._gap > SETTINGS.bounds.part_closest:
            self._gap /= SETTINGS.bounds.part_closer
        else:
            self._run, self._ended = None, True


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalEntropy:
    """What is left open of one division where another is known, by its parts."""

    divisions: DivisionPair
    parts: tuple[PartRun, ...]

    @property
    def lower_bound(self) -> float:
        """What is left open at least."""
        return sum(run.part.mass * run.lower_bound for run in self.parts)

    @property
    def gain(self) -> float:
        return sum(run.gain for run in self.parts)

    def lower_bound_within(self, inputs: IntArray) -> float:
        """What is left open at least in those of its classes that lie among these inputs."""
        among = set(inputs.tolist())
        return sum(run.part.mass * run.lower_bound for run in self.parts if int(run.part.inputs[0]) in among)


class ConditionalEntropyBound:
    """Bounds on what a problem with side channels costs."""

    def __init__(self, channels: SideChannels, begin: RunFactory) -> None:
        self._channels, self._begin = channels, begin
        self._waiting, self._questions = channels.division_pairs(), list[ConditionalEntropy]()

    def bounds(self, deadline: float) -> Iterator[float]:
        """What is known after every step, until there is no time or nothing to be gained."""
        while now() < deadline:
            counts = self._weights()
            gain = max((counts[each.divisions.indices] * each.gain for each in self._questions), default=0.0)
            if (
                self._waiting
                and gain
                < SETTINGS.bounds.part_worth * self._channels.problem.prior_cost / self._waiting[0].largest_class
            ):
                self._start_parts(self._waiting.pop(0), deadline)
            elif gain > 0.0:
                self._advance(counts, deadline)
            else:
                return
            yield self._combine_bounds(lambda each: each.lower_bound)[0]

    def _start_parts(self, pair: DivisionPair, deadline: float) -> None:
        """Have a turn of every part, the heaviest first, as far as there is time."""
        parts = [PartRun(part, self._begin, self._initial_bound(pair, part)) for part in self._channels.parts(pair)]
        self._questions.append(ConditionalEntropy(pair, tuple(parts)))
        here = now()
        until = here + SETTINGS.bounds.part_share * (deadline - here)
        for run in sorted(parts, key=lambda run: -run.part.mass):
            run.advance(until)

    def _initial_bound(self, pair: DivisionPair, part: InputPart) -> float:
        """What the finer questions that were asked say of a part, together."""
        finer = self._channels.finer_divisions(pair.known)
        if pair.finer != finer[-1]:
            return 0.0
        least = np.zeros((len(finer), len(finer)))
        for question in self._questions:
            if question.divisions.known in finer:
                at = finer.index(question.divisions.known), finer.index(question.divisions.finer)
                least[at] = max(least[at], question.lower_bound_within(part.inputs) / part.mass)
        return max(self._channels.restrict(pair.known, part).combine_bounds(least)[0], 0.0) if least.any() else 0.0

    def _advance(self, counts: FloatArray, deadline: float) -> None:
        """Have turns of those parts of which the most is gained per second."""
        turns = [
            (counts[each.divisions.indices] * run.gain / run.seconds, run)
            for each in self._questions
            for run in each.parts
        ]
        most = max(rate for rate, _ in turns)
        for rate, run in turns:
            if rate >= SETTINGS.bounds.part_alongside * most:
                run.advance(deadline)

    def _weights(self) -> FloatArray:
        """How much each question counts: for the bound as it is, or as it is hoped to become."""
        now = self._combine_bounds(lambda each: each.lower_bound)[1]
        return np.maximum(now, self._combine_bounds(lambda each: each.lower_bound + each.gain)[1])

    def _combine_bounds(self, quantity: Callable[[ConditionalEntropy], float]) -> tuple[float, FloatArray]:
        n = len(self._channels.divisions)
        least = np.zeros((n, n))
        for question in self._questions:
            least[question.divisions.indices] = max(least[question.divisions.indices], quantity(question))
        return self._channels.combine_bounds(least)
