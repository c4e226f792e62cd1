r"""What the order of a table's rows says about the secret.

Someone who knows how a table is ordered, and the secrets of other rows, guesses a row's secret from its neighbours:
the secret of the row k before it, or the commonest in the other half of its block of b. Neither guess looks at the row
itself, so in an order drawn at random each is right with a chance of at most :math:`\max_s p_s`, the base rate of
naming the commonest secret every time. A table sorted by its secret gives nearly every row away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.formatting import format_percent

LAGS = tuple(range(1, 9))  # households and visits come one after another
LARGEST_BLOCK = 1 << 16
MOST_ROWS = 1 << 20  # rows that are looked at, about
CHANCE = 5.0  # standard deviations: of the guesses at a random order, one in a million is so far above the base rate


@dataclass(frozen=True, slots=True)
class OrderLeak:
    """How many rows' secrets the best of these guesses gets right, and how many the base rate does."""

    rows: int
    guessed: float  # a share of the rows; the base rate where no guess is better by more than chance explains
    base: float
    how: str  # from which rows the best guess comes

    @property
    def is_leak(self) -> bool:
        """Whether the guess is better than the base rate by more than chance explains."""
        return self.guessed > self.base

    def __str__(self) -> str:
        if not self.is_leak:
            return f"neighbours predict the secret no better than the base rate, {format_percent(self.base)}"
        share = format_percent(self.guessed, up=True)
        return f"neighbours predict the secret of {share} of the rows (base rate {format_percent(self.base)})"


class NeighbourGuesses:
    """Counts right guesses while the secrets of a table come in, as codes below `values`, in the order of the rows.

    Of a table with many `rows` only every k-th chunk is looked at.
    """

    def __init__(self, values: int, rows: int = 0) -> None:
        self._values, self._rows = values, 0
        self._step, self._chunks = max(1, -(-rows // MOST_ROWS)), 0
        self._before: NDArray[np.integer] = np.empty(0, dtype=np.int64)
        self._same = dict.fromkeys(LAGS, 0)
        first = max(4, values // 2)  # so that counting a scale takes no more than a few times as many steps as rows
        blocks = [first * 4**k for k in range(9) if first * 4**k <= LARGEST_BLOCK]
        self._right = dict.fromkeys(blocks, 0)
        self._seen, self._all = np.zeros((2, values), dtype=np.int64)

    def add(self, secrets: NDArray[np.integer]) -> None:
        """Count a chunk of rows, which follow on those before."""
        self._chunks += 1
        counts = np.bincount(secrets, minlength=self._values)
        self._all += counts
        if self._step > 1:  # what is before this chunk was not looked at
            self._before = self._before[:0]
            if self._chunks % self._step != 1:
                return
        self._rows += len(secrets)
        self._seen += counts
        run = np.concatenate([self._before, secrets])
        for lag in LAGS:
            here = run[max(len(self._before), lag) :]
            self._same[lag] += int(np.count_nonzero(here == run[len(run) - len(here) - lag : len(run) - lag]))
        self._before = run[-max(LAGS) :]
        halved = secrets + (np.arange(len(secrets)) & 1) * self._values
        for block in self._right:
            self._right[block] += _count_right(halved, block, self._values)

    def best_guess(self) -> OrderLeak:
        """The best guess over all rows counted."""
        rows = max(self._rows, 1)
        base = int(self._seen.max(initial=0)) / rows
        ways = {f"the row {'' if lag == 1 else f'{lag} rows '}before it": self._same[lag] / rows for lag in LAGS}
        ways |= {f"its block of {block:,} rows": n / rows for block, n in self._right.items()}
        how = max(ways, key=lambda way: ways[way])
        # Rows are judged in two halves, of which each may be lucky by itself.
        luck = CHANCE * math.sqrt(2 * base * (1 - base) / rows)
        share = int(self._all.max(initial=0)) / max(int(self._all.sum()), 1)  # of all rows, also those not looked at
        return OrderLeak(self._rows, max(ways[how], share) if ways[how] > base + luck else share, share, how)


def _count_right(halved: IntArray, block: int, values: int) -> int:
    """How many rows are of the value that is commonest in the other half of their block.

    Halves are every second row: its secret stands `values` higher. A guess never looks at the half it is judged on, so
    what is counted there is as independent of it as the order is random.
    """
    blocks = -(-len(halved) // block)
    at = np.repeat(np.arange(blocks) * (2 * values), block)[: len(halved)] + halved
    counts: IntArray = np.bincount(at, minlength=2 * blocks * values).reshape(blocks, 2, values)
    guesses = counts.argmax(axis=2)[:, ::-1, None]
    return int(np.take_along_axis(counts, guesses, axis=2).sum())
