r"""What side channels leave open, as far as there is time: runs on their parts, each gone on with where it counts.

Every question of side_channels.py, what is left open where some division is known, has a part for each class of that
division: a small problem with a value and a bound of its own. What the question says is the sum of its parts' bounds,
what it may come to say the sum of their values, and how much of that the bound on the whole would rise is told by the
multipliers of the programme that takes all questions together. So those parts go on next of which the most may be
gained per second.

A part has side channels of its own, the finer divisions within its class. What those have said already, taken together
in the same way, bounds the part before it is begun, and where it is not solved in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.bounds.side_channel_relaxation import DivisionPair, SideChannels
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.reductions.reduced_problems import InputPart
from privacyfunnel.engine.settings import SETTINGS


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
        left = deadline - time.monotonic()
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
        """What that is hoped to rise by."""
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
        while time.monotonic() < deadline:
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

    def _start_parts(self, asked: DivisionPair, deadline: float) -> None:
        """Have a turn of every part, the heaviest first, as far as there is time."""
        parts = [PartRun(part, self._begin, self._initial_bound(asked, part)) for part in self._channels.parts(asked)]
        self._questions.append(ConditionalEntropy(asked, tuple(parts)))
        now = time.monotonic()
        until = now + SETTINGS.bounds.part_share * (deadline - now)
        for run in sorted(parts, key=lambda run: -run.part.mass):
            run.advance(until)

    def _initial_bound(self, asked: DivisionPair, part: InputPart) -> float:
        """What the finer questions that were asked say of a part, together."""
        finer = self._channels.finer_divisions(asked.known)
        if asked.finer != finer[-1]:
            return 0.0
        least = np.zeros((len(finer), len(finer)))
        for question in self._questions:
            if question.divisions.known in finer:
                at = finer.index(question.divisions.known), finer.index(question.divisions.finer)
                least[at] = max(least[at], question.lower_bound_within(part.inputs) / part.mass)
        return max(self._channels.restrict(asked.known, part).combine_bounds(least)[0], 0.0) if least.any() else 0.0

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
