r"""Bounds from one side channel at a time (docs/theory.md, Theorem 7b).

Rows that look at some inputs only bound what may be told within these. Take disjoint classes l of inputs, of masses
:math:`m_l` under the prior, and of all rows only those that look at exactly one class. An atom may then say which class
it is, for nothing, and what is left falls apart:

.. math:: \min \sum_y q_y H(v_y) \ \ge\ \sum_l m_l \min \sum_y q_y H(v_y) \text{ over splits of } p_l
   \text{ into atoms that the rows of } l \text{ allow.}

Under SRLIP the classes of one side channel J are the values of :math:`X_J`, and each part is a problem under LIP.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.polytope import dense
from privacyfunnel.engine.problem import Splitting


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A class: its inputs, their mass, and the problem within it."""

    inputs: IntArray
    mass: float
    problem: Splitting


def side_channels(problem: Splitting) -> Iterator[tuple[Part, ...]]:
    """Ways to divide inputs into classes that rows look at, those with the fewest and largest classes first."""
    N, D = dense(problem.numerators), dense(problem.denominators)
    sets, looked_at = np.unique((N != 0) | (D != 0), axis=0, return_inverse=True)
    looked_at = looked_at.reshape(-1)
    # Every way that holds the likeliest input has a class that does.
    ways = set(disjoint(sets, np.flatnonzero(sets[:, np.argmax(problem.prior)])))
    for chosen in sorted(ways, key=lambda numbers: (len(numbers), -int(sets[list(numbers)].sum()))):
        yield tuple(_part(problem, N[looked_at == number], D[looked_at == number]) for number in chosen)


def _part(problem: Splitting, N: FloatArray, D: FloatArray) -> Part:
    """The class at which these rows look. A row may be scaled: where all of D is the same it is then 1, as in LIP."""
    inputs = np.flatnonzero((N != 0).any(axis=0) | (D != 0).any(axis=0))
    N, D, p = N[:, inputs], D[:, inputs], problem.prior[inputs]
    scale = D.mean(axis=1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)
    mass = float(p.sum())
    return Part(inputs, mass, Splitting(p / mass, np.arange(p.size), N / scale, D / scale, problem.epsilon))


def disjoint(sets: BoolArray, firsts: IntArray) -> Iterator[tuple[int, ...]]:
    """Disjoint sets, by their numbers: each of `firsts`, then the largest one that is no larger, and so on."""
    size = sets.sum(axis=1)
    order = np.argsort(-size, kind="stable")
    for first in firsts:
        chosen, covered = [int(first)], sets[first].copy()
        for other in order[size[order] <= size[first]]:
            if not (sets[other] & covered).any():
                chosen.append(int(other))
                covered |= sets[other]
        yield tuple(sorted(chosen))
