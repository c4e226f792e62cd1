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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.objective import Entropy
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.reductions.reduced_problems import InputPart
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
        """The two divisions."""
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
        asked = [DivisionPair(i, last, small[i], size[i]) for i in range(last)]
        asked += [DivisionPair(i, j, True, size[i]) for i, j in self._finer_pairs if j < last and small[i]]
        return sorted(
            asked, key=lambda each: each.largest_class * (1 if each.finer == last else SETTINGS.bounds.finer_factor)
        )

    def parts(self, pair: DivisionPair) -> list[InputPart]:
        """The problems within the classes of what is known, but for those in which nothing is asked or compared."""
        problem, division = self.problem, self.divisions[pair.known]
        rows, size = problem.constraints, problem.constraints.members.sum(axis=1)
        inside, parts, ends = rows.enclosing_parts(division), [], np.cumsum(np.bincount(division))[:-1]
        for number, inputs in enumerate(np.split(np.argsort(division, kind="stable"), ends)):
            kept = (inside == number) & (pair.all_constraints | (size == inputs.size))
            objective = Entropy.from_groups(self.divisions[pair.finer][inputs])
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
                told = max(k for k in range(n) if self._determines(both, k))
                shared = max(k for k in range(i) if (k, i) in finer and (k, j) in finer)
                row = np.zeros(n)
                np.add.at(row, [i, j, told, shared], [1.0, 1.0, -1.0, -1.0])
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
        at, row = np.nonzero(rows[:, 1:].T)  # nothing is left open about nothing
        programme.add_columns(finest[1:], np.searchsorted(at, np.arange(n - 1)), row, rows[row, at + 1])
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


def one_side_channel(problem: Problem) -> InputPart | None:
    """All inputs with the rows alone that look at all of them; None where those are all rows, or none."""
    if not problem.constraints.is_local:
        return None
    every = np.arange(problem.size)
    rows = problem.constraints.restrict_to_classes(every, np.asarray(problem.constraints.members.all(axis=1)), 1.0)
    return InputPart(every, 1.0, problem.replace_constraints(rows)) if len(rows) else None
