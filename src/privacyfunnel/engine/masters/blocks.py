r"""Splits by balanced blocks, where inputs are too many for one master.

Each block of inputs is the same problem, small (`build_block`). Blocks are solved one by one, then joined in pairs:
what the two knew is a split of the pair, from which the search goes on, and the pair costs no more than the two did.
Joined so while there is time, blocks are all inputs in the end, or as many as one master takes.

Prices of all blocks together are prices of the whole, though only atoms within blocks were asked about them; once one
block has all inputs they are what a proof needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, sparse
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.driver import ColumnGeneration
from privacyfunnel.engine.masters.restricted_master import repair_split, split_by_forced_response
from privacyfunnel.engine.masters.slack_masters import EntropyMaster, PenalisedMaster
from privacyfunnel.engine.problem import InputPart, Problem
from privacyfunnel.engine.reductions.merge_equal import functionals
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.comparisons import leak_sizes


class SingleBlockMaster(PenalisedMaster):
    """A master of one block, whose best split is handed out as the solver left it, to be begun from again."""

    def _best(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        """The best split, closed to rounding; where there was no time for any, one of the first atoms."""
        if not self._weights.size:
            self.master.forbid_slack()
            self.solve(FOREVER)
        return repair_split(self.problem, self._weights, self._paid)[:2]


@dataclass(frozen=True, slots=True, eq=False)
class BlockSplit:
    """A part with its best split, over all inputs, and its prices."""

    part: InputPart
    weights: FloatArray  # they sum to 1
    atoms: sparse.csr_array
    value: float
    prices: FloatArray

    def dense_atoms(self, inputs: IntArray) -> FloatArray:
        """The atoms as plain rows over these inputs, which hold all of its own."""
        return np.asarray(self.atoms[:, inputs].toarray())


class BlockMaster(EntropyMaster):
    """A supply without a master of the whole: searching it joins two blocks."""

    def __init__(
        self, problem: Problem, smaller: Callable[[Problem], ColumnGeneration], first: int, largest: int
    ) -> None:
        super().__init__(problem)
        self._smaller, self._first, self._largest = smaller, first, largest  # inputs of a block
        self._blocks: list[BlockSplit] = []
        self._gap = 0.0
        self._known: BlockSplit | None = None  # what was known before
        self._whole: PenalisedMaster | None = None  # a master of all inputs, once blocks are joined to one

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray:
        """Solve the first blocks; half of the time goes by their mass, half by their number.

        Once it is up, the inputs of the rest, the rarest ones, are named as they are.
        """
        self._gap = max(gap, SETTINGS.slack.block_gap * self.problem.prior_cost)
        if start is not None:
            whole = build_block(self.problem, np.arange(self.problem.size))
            self._known = self._solve_part(whole, start, clock.part(SETTINGS.slack.joining_share))
            self.value = min(self.value, self._known.value)
        parts, left = sorted(balance_blocks(self.problem, self._first), key=lambda part: -part.mass), 1.0
        open_cost = float(sum(part.mass * part.problem.prior_cost for part in parts))
        for number, part in enumerate(parts):
            share = 0.5 * part.mass / max(left, part.mass) + 0.5 / (len(parts) - number)
            self._blocks.append(
                self._split_without_search(part) if clock.late else self._solve_part(part, None, clock.part(share))
            )
            left, open_cost = left - part.mass, open_cost - part.mass * part.problem.prior_cost
            self.value = min(self.value, self._cost() + open_cost)
            self.on_change()
        np.random.default_rng(1).shuffle(self._blocks)  # pairs of likely and of rare ones
        return self._prices()

    def _solve_part(self, part: InputPart, start: FloatArray | None, clock: Clock) -> BlockSplit:
        run = self._smaller(part.problem)
        seconds = None if clock.time_limit is None else max(clock.time_limit, SETTINGS.slack.block_seconds)
        run.run(self._gap, seconds, None, start, proofs=False)
        found = run.best(clock)
        return self._build_block(part, found.weights, np.asarray(found.atoms), found.value, run.prices)

    def _split_without_search(self, part: InputPart) -> BlockSplit:
        """A forced response: every input by itself, with as much of the block's prior beside it as it takes."""
        found = split_by_forced_response(part.problem)
        value = float(found.weights @ part.problem.costs(found.atoms))
        return self._build_block(part, found.weights, np.asarray(found.atoms), value, np.zeros(part.inputs.size))

    def _build_block(
        self, part: InputPart, weights: FloatArray, atoms: FloatArray, value: float, prices: FloatArray
    ) -> BlockSplit:
        row, column = np.nonzero(atoms)
        cells = (row, part.inputs[column])
        over_all = sparse.csr_array((atoms[row, column], cells), shape=(len(weights), self.problem.size))
        return BlockSplit(part, weights, over_all, value, prices)

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """Nothing is to be mixed, and nothing owed, until one master has all."""
        if self._whole is None:
            return self._prices(), 0.0
        prices, owed = self._whole.solve(clock)
        self.value = min(self.value, self._whole.value)
        return prices, owed

    def _cost(self) -> float:
        return float(sum(block.part.mass * block.value for block in self._blocks))

    def _prices(self) -> FloatArray:
        prices = np.zeros(self.problem.size)
        for block in self._blocks:
            prices[block.part.inputs] = block.prices
        return prices

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """Join two of the smallest blocks, if they are small enough; atoms only once one master has all."""
        if self._whole is not None:
            return self._whole.search(prices, clock)
        self._blocks.sort(key=lambda block: block.part.inputs.size)
        size = sum(block.part.inputs.size for block in self._blocks[:2])
        if size <= self._largest and not clock.late:
            if len(self._blocks) <= 2:
                whole = self._smaller(self.problem).master
                assert isinstance(whole, PenalisedMaster)
                self._whole = whole
                known = [block.atoms.toarray() for block in self._blocks]
                self._whole.begin(np.concatenate(known), self._gap, clock)
            else:
                one, other = self._blocks[:2]
                self._blocks[:2] = [self._join(one, other, clock.part(SETTINGS.slack.joining_share))]
                self.value = min(self.value, self._cost())
        return np.empty((0, self.problem.size))

    def _join(self, one: BlockSplit, other: BlockSplit, clock: Clock) -> BlockSplit:
        part = build_block(self.problem, np.sort(np.concatenate([one.part.inputs, other.part.inputs])))
        start = np.concatenate([block.dense_atoms(part.inputs) for block in (one, other)])
        found = self._solve_part(part, start, clock)
        before = one.part.mass * one.value + other.part.mass * other.value
        if part.mass * found.value < before:
            return found
        weights = np.concatenate([block.weights * (block.part.mass / part.mass) for block in (one, other)])
        atoms = sparse.csr_array(sparse.vstack([one.atoms, other.atoms]))
        prices = np.zeros(self.problem.size)
        prices[one.part.inputs], prices[other.part.inputs] = one.prices, other.prices
        return BlockSplit(part, weights, atoms, before / part.mass, prices[part.inputs])

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        return np.empty(0, dtype=np.int64) if self._whole is None else self._whole.add(atoms, costs)

    def raise_slack_price(self) -> None:
        if self._whole is not None:
            self._whole.raise_slack_price()

    def slack_price_threshold(self, gap: float) -> float:
        return 0.0 if self._whole is None else self._whole.slack_price_threshold(gap)

    def best(self, clock: Clock) -> tuple[FloatArray, Matrix, float]:
        """The splits of all blocks, each with its mass; or what is better."""
        blocks, value = self._blocks, self._cost()
        if self._known is not None and self._known.value < value:
            blocks, value = [self._known], self._known.value
        if self._whole is not None and self._whole.value < value:
            return self._whole.best(clock)
        weights = np.concatenate([block.part.mass * block.weights for block in blocks])
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
