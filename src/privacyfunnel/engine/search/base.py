r"""What searches share: the pricing problem, and descent by tangents.

Every search solves the pricing problem heuristically: given prices λ, it returns atoms of small reduced cost

.. math:: \min_{v \in V}\ \operatorname{cost}(v) - \lambda\cdot v .

The reduced cost is concave, so it lies below its tangent at any atom v. The atom that minimises the tangent therefore
costs no more than v (docs/theory.md, Lemma 7c); the descent repeats this step until nothing improves.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import Objective, reduced_costs, tangents
from privacyfunnel.engine.settings import SETTINGS


class Search(Protocol):
    """Finds atoms of small reduced cost; proves nothing."""

    patience: int  # consecutive searches without a find after which the pricing problem counts as solved

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """First atoms; for every input one that gives it much, unless that takes long."""

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """End points of long descents."""

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Atoms passed by many short descents that start near inputs with `missing` probability."""

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """End points of descents from these atoms."""


class ObjectiveSearch(Protocol):
    """A search whose objective can be replaced between calls."""

    def set_objective(self, objective: Objective) -> None: ...
    def start(self, clock: Clock = FOREVER) -> FloatArray: ...
    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray: ...


def descend_by_tangents(
    cheapest: Callable[[FloatArray], FloatArray],
    objective: Objective,
    slopes: FloatArray,
    prices: FloatArray,
    longest: int,
    least: float = SETTINGS.tolerance.solved,
) -> FloatArray:
    """All atoms on these descents; each starts at the minimum of its slopes and stops when nothing improves."""
    before, met = np.full(len(slopes), np.inf), []
    for _ in range(longest):
        atoms = cheapest(slopes - prices)
        if len(atoms) < len(before):  # the oracle found nothing, or ran out of time
            break
        reduced = reduced_costs(objective, atoms, prices)
        better = reduced < before - SETTINGS.tolerance.improvement
        if not better.any():
            break
        met.append(atoms[better])
        before = reduced[better]
        slopes = tangents(objective, atoms[better], least)
    return np.concatenate(met) if met else np.empty((0, prices.size))


def distinct_atoms(atoms: FloatArray) -> FloatArray:
    """The atoms that differ by more than rounding."""
    first: dict[bytes, int] = {}
    for i, atom in enumerate(np.round(atoms, SETTINGS.tolerance.atom_digits)):
        first.setdefault(atom.tobytes(), i)
    return atoms[list(first.values())]
