"""Proof by branch and bound that no allowed atom has reduced cost below a target: boxes, the worst first.

A relaxation (chords.py, class_cones.py, products.py, masters/average.py) bounds and cuts boxes. Here is what they
share: the queue of open boxes, the clock, the atoms met, and the bound that holds at the end.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import WORK, now
from privacyfunnel.engine.objective import Objective, reduced_costs
from privacyfunnel.engine.problem import Proof
from privacyfunnel.engine.settings import SETTINGS

Polish = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Open boxes: the bound known so far of each, and whatever a relaxation knows of it, an entry per box."""

    bound: FloatArray
    parts: tuple[NDArray[Any], ...]

    def __getitem__(self, which: IntArray) -> "Boxes":
        return Boxes(self.bound[which], tuple(part[which] for part in self.parts))

    def __len__(self) -> int:
        return self.bound.size

    @staticmethod
    def concatenate(boxes: "list[Boxes]") -> "Boxes":
        if len(boxes) == 1:
            return boxes[0]
        parts = zip(*(some.parts for some in boxes), strict=True)
        return Boxes(np.concatenate([some.bound for some in boxes]), tuple(np.concatenate(part) for part in parts))


def pack_boxes(boxes: Sequence[object], bound: float) -> Boxes:
    """Boxes that are objects, as they wait."""
    objects = np.empty(len(boxes), dtype=object)
    objects[:] = boxes
    return Boxes(np.full(len(boxes), bound), (objects,))


def clip_to_simplex(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ends of boxes, shrunk since the other entries' ends leave no more and no less; rounded outwards."""
    high = np.minimum(high, 1.0 - (low.sum(axis=-1, keepdims=True) - low) + SETTINGS.tolerance.rounding)
    return np.maximum(low, 1.0 - (high.sum(axis=-1, keepdims=True) - high) - SETTINGS.tolerance.rounding), high


def tighten_box(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """One box shrunk by Σ = 1; None if it is empty."""
    low, high = clip_to_simplex(*clip_to_simplex(low, high))
    if (low > high + SETTINGS.tolerance.near).any():
        return None
    return np.clip(low, 0.0, 1.0), np.clip(np.maximum(low, high), 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Branching:
    """What came of some boxes: boxes that hold all of them that matters, a bound on the rest, and atoms met."""

    boxes: Boxes
    closed_bound: float  # no atom in what was set aside costs less
    atoms: FloatArray


class Relaxation(Protocol):
    """How boxes are bounded and cut."""

    batch: int  # boxes worked on together
    chunk: int  # boxes of like bounds that wait together
    polish_every: int  # batches after which walks begin at the relaxation's solutions anyway; 0: never
    finds_vertices: bool  # whether the atoms met are vertices of the polytope, worth having as they are
    gather_factor: float  # once an atom is found: go on for this part of the boxes seen so far, to find others

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """Boxes that together hold every atom that matters."""

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound each box, set aside those that reach the goal, and cut the others; less well where time is up."""


class BranchAndBound:
    """Branch and bound over one relaxation; `visited` counts boxes over all proofs."""

    def __init__(self, relaxation: Relaxation, objective: Objective, polish: Polish) -> None:
        self.relaxation, self.objective, self.polish = relaxation, objective, polish
        self.visited = 0

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof:
        """A bound of at least −target on the reduced cost of every allowed atom.

        The bound is always valid. It may stay below −target when the clock (`clock.now`) passes the deadline, or
        when atoms were found whose reduced cost shows that −target cannot be proved: those are returned.
        """
        rounding = SETTINGS.tolerance.near * (1.0 + float(np.abs(prices).max()))
        goal, below = -target + rounding, -target - rounding
        queue = _Queue(self.relaxation)
        queue.push(self.relaxation.roots(prices, deadline))
        closed, found_atoms = np.inf, [np.empty((0, prices.size))]
        seen, batches, stop = 0, 0, np.inf
        if WORK.is_clock:  # a bound may creep up without end
            deadline = min(deadline, now() + SETTINGS.proofs.longest)
        while queue.size and seen < stop and now() <= deadline:
            boxes = queue.pop_batch()
            seen += len(boxes)
            WORK.boxes += len(boxes)
            WORK.entries += SETTINGS.work.box_passes * len(boxes) * prices.size
            done = self.relaxation.cut(boxes, prices, goal, deadline)
            queue.push(done.boxes)
            closed = min(closed, done.closed_bound)
            found_atoms.append(self._select_atoms(done.atoms, prices, below, batches))
            batches += 1
            if len(found_atoms[-1]) and reduced_costs(self.objective, found_atoms[-1], prices).min() < below:
                stop = min(stop, (1 + self.relaxation.gather_factor) * seen)
        self.visited += seen
        atoms = np.concatenate(found_atoms)
        best = np.argsort(reduced_costs(self.objective, atoms, prices), kind="stable")[: SETTINGS.proofs.most_atoms]
        bound = min(closed, queue.bound)
        return Proof((bound if np.isfinite(bound) or queue.size else goal) - rounding, atoms[best])

    def _select_atoms(self, atoms: FloatArray, prices: FloatArray, below: float, batch: int) -> FloatArray:
        """Vertices of negative reduced cost: among these atoms, and near the best of them."""
        every = self.relaxation.polish_every
        reduced = reduced_costs(self.objective, atoms, prices)
        first = np.argsort(reduced)[: SETTINGS.proofs.batch_atoms]
        good = (
            atoms[first[reduced[first] < -SETTINGS.tolerance.rounding]] if self.relaxation.finds_vertices else atoms[:0]
        )
        if first.size and (reduced[first[0]] < below or (every and batch % every == 0)):
            near = self.polish(atoms[first[: SETTINGS.proofs.polish_starts]], prices)
            good = np.concatenate([good, near[reduced_costs(self.objective, near, prices) < below]])
        return good


class _Queue:
    """Open boxes in chunks, the chunk with the lowest bound first. Chunks are never copied while they wait."""

    def __init__(self, relaxation: Relaxation) -> None:
        self._relaxation = relaxation
        self._heap: list[tuple[float, int, Boxes]] = []
        self._pushed = 0
        self.size = 0

    def push(self, boxes: Boxes) -> None:
        """Add boxes, in chunks of like bounds."""
        order, chunk = np.argsort(boxes.bound), self._relaxation.chunk
        for start in range(0, len(boxes), chunk):
            some = boxes[order[start : start + chunk]]
            self._pushed += 1
            heapq.heappush(self._heap, (float(some.bound[0]), self._pushed, some))
        self.size += len(boxes)

    def pop_batch(self) -> Boxes:
        """About a batch of boxes, from the chunks with the lowest bounds; few while few are open."""
        if self.size > SETTINGS.proofs.many_open:
            newest = max(range(len(self._heap)), key=lambda i: self._heap[i][1])
            self._heap[newest], self._heap[-1] = self._heap[-1], self._heap[newest]
            taken = [self._heap.pop()[2]]
            heapq.heapify(self._heap)
        else:
            taken = [heapq.heappop(self._heap)[2]]
            size = len(taken[0])
            most = min(self._relaxation.batch, max(self._relaxation.chunk, self.size // 4))
            while self._heap and size + len(self._heap[0][2]) <= most:
                taken.append(heapq.heappop(self._heap)[2])
                size += len(taken[-1])
        boxes = Boxes.concatenate(taken)
        self.size -= len(boxes)
        return boxes

    @property
    def bound(self) -> float:
        """The lowest bound of any open box."""
        return self._heap[0][0] if self._heap else np.inf
