"""Seeds: were rows drawn from a seed that an attacker would guess?

A file may state that it is for publication although its rows were drawn from a seed. Nothing in the file can disprove
that, since whoever alters it writes all of it. So the first rows are drawn again from each guessable seed; one that
gives all of them is the one that was used. A seed also gives the row order, so rows need not be paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sampling import WORD_BITS, KeyStream
from privacyfunnel.release.shuffle import RowOrder

FIRST_ROWS = 2048  # that are drawn again
FEW_ROWS = 32  # of them first: nearly every seed fails there
JUDGED_BY = 8  # draws from fresh keys that say how much the rows tell
TRIED = 5000  # seeds from 0 on: two seconds
FAVOURITES = (12345, 123456, 1234567, 12345678, 31337, 8675309, 1234567890, 2**31 - 1, 2**32 - 1, -1)
MOST_WORDS = 1 << 27  # of orders that are tried: a few seconds
BITS = 40.0  # a draw from a fresh key repeats that of one seed with a chance of about 2^-40


def guessable_seeds() -> Iterable[int]:
    """The seeds that anybody would try first."""
    yield from range(TRIED)
    yield from FAVOURITES


def matches_seed(mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seeds: Iterable[int]) -> bool | None:
    """Whether one of the seeds draws just these rows, the first of their table; None where they say too little.

    They say too little if most draws from a fresh key would show the same: where outputs are all but certain.
    """
    inputs, drawn = inputs[:FIRST_ROWS], drawn[:FIRST_ROWS]
    if not _is_conclusive(mechanism, inputs, drawn):
        return None
    few = min(FEW_ROWS, len(inputs))
    return any(
        _count_differences(mechanism, inputs[:few], drawn[:few], seed) == 0
        and _count_differences(mechanism, inputs, drawn, seed) == 0
        for seed in seeds
    )


class FirstRows:
    """The first rows of a table, whatever order they come in."""

    def __init__(self) -> None:
        self._pieces: list[tuple[IntArray, IntArray, NDArray[Any]]] = []

    def add(self, numbers: IntArray, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Some rows, with their numbers in the original table."""
        mine = np.flatnonzero(numbers < FIRST_ROWS)
        if len(mine):
            self._pieces.append((numbers[mine], inputs[mine], drawn[mine]))

    def matches_seed(self, mechanism: Mechanism, seeds: Iterable[int]) -> bool | None:
        """Whether one of the seeds draws just these rows; None where they say too little."""
        numbers, inputs, drawn = (np.concatenate(parts) for parts in zip(*self._pieces, strict=True))
        order = np.argsort(numbers)
        return matches_seed(mechanism, inputs[order], drawn[order], seeds)


def matches_shuffled_seed(
    mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seeds: Iterable[int]
) -> bool | None:
    """Whether one of the seeds draws a table with these inputs whose first published rows are just `drawn`.

    None where they say too little, or where the table is so long that not all seeds were tried.
    """
    drawn, tried = drawn[:FIRST_ROWS], MOST_WORDS // max(1, len(inputs))
    _, alike = np.unique(drawn, axis=0, return_counts=True)
    chance = float(((alike / len(drawn)) ** 2).sum())  # that two of them look alike, as those of a wrong order do
    if chance >= 1 or -math.log2(chance) * len(drawn) < BITS:
        return None
    listed = tuple(seeds)
    if any(_matches_order(mechanism, inputs, drawn, seed) for seed in islice(listed, tried)):
        return True
    return False if tried >= len(listed) else None


def _matches_order(mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seed: int) -> bool:
    order = RowOrder.from_key(KeyStream.from_seed(seed).order_key())
    words = order.random_words(0, len(inputs))
    low = np.flatnonzero(words <= min(1.0, FEW_ROWS / len(words)) * (2.0**WORD_BITS - 2.0**12))  # about so many
    first = low[np.argsort(words[low])][:FEW_ROWS].tolist()
    few = zip(first, drawn, strict=False)
    if any(_count_differences(mechanism, inputs[row : row + 1], shown[None], seed, row) for row, shown in few):
        return False
    rows = order.sort_by_words(words)[: len(drawn)].tolist()
    pairs = zip(rows, drawn, strict=True)
    return not any(_count_differences(mechanism, inputs[row : row + 1], shown[None], seed, row) for row, shown in pairs)


def _count_differences(
    mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seed: int | None, first_row: int = 0
) -> int:
    """How many rows another draw shows otherwise, from a seed or from a fresh key."""
    stream = KeyStream.generate() if seed is None else KeyStream.from_seed(seed)
    again = mechanism.draw(inputs, stream.rows(first_row, len(inputs)))
    return int((again[:, : drawn.shape[1]] != drawn).any(axis=1).sum())


def _is_conclusive(mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any]) -> bool:
    """Whether fresh keys hardly ever repeat these rows.

    A row that differs with chance d repeats with chance 1 − d, and rows are independent; d is judged by a few draws.
    """
    share = min(_count_differences(mechanism, inputs, drawn, None) for _ in range(JUDGED_BY)) / max(1, len(inputs))
    return share >= 1 or -math.log2(1 - share) * len(inputs) >= BITS
