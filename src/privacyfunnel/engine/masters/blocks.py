r"""Splits by balanced blocks, where inputs are too many for one master.

Each block of inputs is the same problem, small (`build_block`). Blocks are solved one by one; their splits, each with
the mass of its block, are a split of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, nonzero_entries, sparse
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.driver import ColumnGeneration, Master
from privacyfunnel.engine.masters.restricted_master import PenalisedMaster, repair_split, split_by_forced_response
from privacyfunnel.engine.problem import InputPart, Problem, Split
from privacyfunnel.engine.reductions import functionals
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.comparisons import leak_sizes


class SingleBlockMaster(PenalisedMaster):
    """A master of one block, whose best split is handed out as the solver left it."""

    def _best(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        """The best split, closed to rounding; where there was no time for any, one of the first atoms."""
        if not self._weights.size:
            self.master.forbid_slack()
            self.solve(FOREVER)
        return repair_split(self.problem, self._weights, self._paid)[:2]


@dataclass(frozen=True, slots=True, eq=False)
class BlockSplit:
    """The best split of a part, over all inputs."""

    mass: float  # of the part
    weights: FloatArray  # they sum to 1
    atoms: sparse.csr_array
    value: float


class BlockMaster(Master):
    """Blocks in place of a master of the whole: there is nothing to search once they are solved."""

    def __init__(self, problem: Problem, smaller: Callable[[Problem], ColumnGeneration], largest: int) -> None:
        self.problem, self.size, self.value = problem, problem.size, problem.prior_cost
        self._smaller, self._largest = smaller, largest  # inputs of a block
        self._blocks: list[BlockSplit] = []
        self._gap = 0.0
        self._known: BlockSplit | None = None  # what was known before

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """Solve the blocks; half of the time goes by their mass, half by their number.

        Once it is up, the inputs of the rest, the rarest ones, are named as they are.
        """
        self._gap = max(gap, SETTINGS.slack.block_gap * self.problem.prior_cost)
        if start is not None:
            whole = build_block(self.problem, np.arange(self.problem.size))
            self._known = self._solve_part(whole, start, clock.part(SETTINGS.slack.known_share))
            self.value = min(self.value, self._known.value)
        parts, left = sorted(balance_blocks(self.problem, self._largest), key=lambda part: -part.mass), 1.0
        open_cost = float(sum(part.mass * part.problem.prior_cost for part in parts))
        for number, part in enumerate(parts):
            share = 0.5 * part.mass / max(left, part.mass) + 0.5 / (len(parts) - number)
            self._blocks.append(
                self._split_without_search(part) if clock.late else self._solve_part(part, None, clock.part(share))
            )
            left, open_cost = left - part.mass, open_cost - part.mass * part.problem.prior_cost
            self.value = min(self.value, self._cost() + open_cost)
            self.on_change()

    def _solve_part(self, part: InputPart, start: FloatArray | None, clock: Clock) -> BlockSplit:
        run = self._smaller(part.problem)
        seconds = None if clock.time_limit is None else max(clock.time_limit, SETTINGS.slack.block_seconds)
        run.run(self._gap, seconds, None, start, proofs=False)
        return self._build_block(part, run.best(clock))

    def _split_without_search(self, part: InputPart) -> BlockSplit:
        """A forced response: every input by itself, with as much of the block's prior beside it as it takes."""
        found = split_by_forced_response(part.problem)
        return self._build_block(part, replace(found, value=float(found.weights @ part.problem.costs(found.atoms))))

    def _build_block(self, part: InputPart, found: Split) -> BlockSplit:
        row, column, entries = nonzero_entries(found.atoms)
        cells = (row, part.inputs[column])
        atoms = sparse.csr_array((entries, cells), shape=(len(found.weights), self.problem.size))
        return BlockSplit(part.mass, found.weights, atoms, found.value)

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """Nothing is to be mixed, and nothing owed."""
        return np.zeros(self.size), 0.0

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        return np.empty((0, self.size))

    def _cost(self) -> float:
        return float(sum(block.mass * block.value for block in self._blocks))

    def best(self, clock: Clock) -> tuple[FloatArray, Matrix, float]:
        """The splits of all blocks, each with its mass; or what was known before, where that is better."""
        blocks = self._blocks
        if self._known is not None and self._known.value < self._cost():
            blocks = [self._known]
        weights = np.concatenate([block.mass * block.weights for block in blocks])
        atoms = sparse.csr_array(sparse.vstack([block.atoms for block in blocks]))
        return weights, atoms, float(self.problem.costs(atoms) @ weights)


def balance_blocks(problem: Problem, most: int) -> list[InputPart]:
    """Blocks of at most about so many inputs, each with a prior that is allowed.

    What an input adds to the imbalance Σ p (L − 1) of its block is a vector, of the length that χ² gives it; those of
    long vectors have their place first, each where Σ ‖imbalance‖² / mass over all blocks rises least. Blocks that stay
    out of balance are joined to others.
    """
    d, rows, L = problem.size, problem.constraints, functionals(problem)
    chance = (rows.secrets * rows.share[rows.of_class]).sum(axis=1)[np.unique(rows.pairs)]
    vectors = (chance[:, None] * (L - 1.0) * problem.prior).T
    count = -(-d // most)
    imbalance, mass, room = np.zeros((count, len(L))), np.zeros(count), np.full(count, most)
    badness, block_of = np.zeros(count), np.zeros(d, dtype=np.int64)
    for z in np.argsort(-np.square(vectors).sum(axis=1) / problem.prior, kind="stable").tolist():
        after = np.square(imbalance + vectors[z]).sum(axis=1) / (mass + problem.prior[z])
        block = int(np.argmin(np.where(room > 0, after - badness, np.inf)))
        imbalance[block] += vectors[z]
        mass[block] += problem.prior[z]
        badness[block], room[block], block_of[z] = after[block], room[block] - 1, block
    together = _join_until_feasible(problem, [np.flatnonzero(block_of == block) for block in range(count)])
    return [build_block(problem, inputs) for inputs in together]


def _join_until_feasible(problem: Problem, blocks: list[IntArray]) -> list[IntArray]:
    """The blocks, those out of balance joined to others; all inputs together are allowed.

    The one furthest out is joined to the smallest of those that mend it, and the rarest of these, or else to the one
    that mends most.
    """
    sums = np.array(
        [[side[:, inputs] @ problem.prior[inputs] for side in problem.constraints.dense] for inputs in blocks]
    )
    most = SETTINGS.slack.balanced * problem.epsilon
    while len(blocks) > 1 and (out := _imbalance(problem, sums)).max() > most:
        worst = int(np.argmax(out))
        after = _imbalance(problem, sums + sums[worst])
        size = np.array([inputs.size + problem.prior[inputs].sum() for inputs in blocks])
        after[worst] = np.inf
        mended = after <= most
        other = int(np.argmin(np.where(mended, size, np.inf) if mended.any() else after))
        sums[other] += sums[worst]
        blocks[other] = np.sort(np.concatenate([blocks[other], blocks[worst]]))
        sums = np.delete(sums, worst, axis=0)
        del blocks[worst]
    return blocks


def _imbalance(problem: Problem, sums: FloatArray) -> FloatArray:
    """The largest leak of each block, from the sums Σ p L of both sides of its rows; nothing on both sides is even."""
    sizes = leak_sizes(sums[:, 0].T, sums[:, 1].T, problem.constraints.scales)
    return np.asarray(sizes.max(axis=0, initial=0.0))


def build_block(problem: Problem, inputs: IntArray) -> InputPart:
    """The block of these inputs."""
    mass = float(problem.prior[inputs].sum())
    part = problem.restrict(inputs)
    return InputPart(inputs, mass, replace(part, prior=part.prior / mass))
