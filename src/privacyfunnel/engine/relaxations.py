r"""Simpler problems, each of which bounds the cost of this one from below.

*Fewer secrets* (docs/theory.md, Theorem 7a). A promise about every secret holds for groups of secrets as well, so the
polytope of the groups contains that of the secrets, and its cheapest split costs no more. With two groups every vertex
is one value or a pair, and the cheapest split is found and proved at once; each group more costs more time.

*One side channel at a time* (Theorem 7b). Rows that look at some inputs only bound what may be told within these. Take
disjoint classes l of inputs, of masses :math:`m_l` under the prior, and of all rows only those of these classes. An
atom may then say which class it is, for nothing, and what is left falls apart:

.. math:: \min \sum_y q_y H(v_y) \ \ge\ \sum_l m_l \min \sum_y q_y H(v_y) \text{ over splits of } p_l
   \text{ into atoms that the rows of } l \text{ allow.}

Under SRLIP the classes of one side channel J are the values of :math:`X_J`, and each part is a problem under LIP.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.engine.objective import Entropy
from privacyfunnel.engine.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A problem whose secrets can be grouped."""

    problem: Problem
    count: int  # of secrets

    def singled_out(self, few: Sequence[int]) -> Problem | None:
        """The problem in which these secrets stay as they are, and all others are one group."""
        groups = np.zeros((len(few) + 1, self.count), dtype=bool)
        groups[np.arange(len(few)), list(few)] = True
        groups[-1] = ~groups.any(axis=0)
        rows = self.problem.rows.grouped(groups)
        return None if rows is None else self.problem.easier(rows)


def grouped_secrets(problem: Problem) -> Groups | None:
    """The secrets behind the rows, three or more, where all rows are about everybody."""
    rows = problem.rows
    if rows.share.shape[1] < 3 or not problem.objective.plain or rows.grouped(np.eye(rows.share.shape[1]) > 0) is None:
        return None
    return Groups(problem, rows.share.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A class: its inputs, their mass, and the problem within it."""

    inputs: IntArray
    mass: float
    problem: Problem


def side_channels(problem: Problem) -> list[tuple[Part, ...]]:
    """Ways to divide inputs into classes that rows look at, fewest and largest first; none that has all rows in one.

    Every way that holds the likeliest input has a class that does.
    """
    rows = problem.rows
    if not rows.local:
        return []
    likeliest = rows.compared[rows.members[rows.compared, int(np.argmax(problem.prior))]]
    ways = {tuple(way) for way in rows.disjoint_classes(likeliest)}
    ordered = sorted(ways, key=lambda way: (len(way), -int(rows.members[list(way)].sum())))
    found = (tuple(_part(problem, number) for number in way) for way in ordered)
    return [parts for parts in found if len(parts[0].problem.rows) < len(rows)]


def one_side_channel(problem: Problem) -> Part | None:
    """The class of the rows that look at most inputs; None where those are all rows."""
    ways = side_channels(problem)
    return ways[0][0] if ways else None


def _part(problem: Problem, number: int) -> Part:
    inputs = np.flatnonzero(problem.rows.members[number])
    mass = float(problem.prior[inputs].sum())
    rows = problem.rows.within(number, mass)
    objective = Entropy.of(np.arange(inputs.size))
    return Part(inputs, mass, Problem(problem.prior[inputs] / mass, rows, problem.epsilon, objective))
