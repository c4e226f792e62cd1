"""Tallies: how often inputs became outputs, beside the chances of that under the mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, sparse


@dataclass(frozen=True, slots=True, eq=False)
class PooledCounts:
    r"""By how much counts of what is shown exceed :math:`\sum_z n_z q(y|z)`, and how far that may vary.

    The covariance of two things of which a row shows one is :math:`-\sum_z n_z q(y|z) q(y'|z)`, the products of columns
    of `root`; where rows show each by a coin of its own there is none.
    """

    excess: FloatArray
    variance: FloatArray
    root: Matrix | None = None

    @classmethod
    def from_counts(cls, apart: FloatArray, chances: Matrix, drawn: IntArray) -> PooledCounts:
        """Of rows that were drawn so many times with these chances, of which each shows one."""
        rooted = sparse.csr_array(chances).multiply(np.sqrt(drawn)[:, None])
        squares = np.asarray(rooted.power(2).sum(axis=0)).reshape(-1)
        return cls(apart, np.asarray(chances.T @ drawn).reshape(-1) - squares, sparse.csr_array(rooted))


class DrawTally(Shape):
    """Counts while the rows of a sanitised table come in, beside those of the original."""

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows: each one's input, and what it was drawn as (−1 where the mechanism has no such output)."""

    @property
    def impossible(self) -> int:
        """How many rows show what their input never becomes."""

    @property
    def rows(self) -> Iterable[tuple[IntArray, FloatArray]]:
        """Tables of counts with the chances they should follow, a row per independent draw."""

    @property
    def pool_counts(self) -> Iterable[PooledCounts]:
        """What is shown over all inputs together, for each part of a record that is drawn by itself.

        Parts that are published one after the other come in that order: given the earlier ones, the rows of a later
        one are independent draws.
        """

    @property
    def size(self) -> int:
        """How many counts it holds."""

    def empty(self) -> Self:
        """Another count of the same, in which nothing was counted yet."""


class ChannelTally:
    """How often each input became each output, for channels that are drawn from side by side.

    Input z has value `values[z, j]` in channel j, whose output is the j-th drawn code.
    """

    def __init__(self, channels: Sequence[FloatArray], values: IntArray) -> None:
        self._channels, self._values = tuple(channels), values
        self._counts = [np.zeros(channel.shape, dtype=np.int64) for channel in channels]
        self._impossible = 0

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows."""
        drawn = drawn[:, : len(self._channels)]
        known = (drawn >= 0).all(axis=1)
        self._impossible += int((~known).sum())
        for j, counts in enumerate(self._counts):
            width = self._channels[j].shape[1]
            at = self._values[inputs[known], j] * width + drawn[known, j]
            cells, rows = np.unique(at, return_counts=True)
            counts.reshape(-1)[cells] += rows

    @property
    def impossible(self) -> int:
        """How many rows show what their values never become."""
        return self._impossible + sum(int(counts[channel == 0].sum()) for counts, channel in self.rows)

    @property
    def rows(self) -> list[tuple[IntArray, FloatArray]]:
        """Counts and chances, channel by channel."""
        return list(zip(self._counts, self._channels, strict=True))

    @property
    def pool_counts(self) -> Iterator[PooledCounts]:
        """By output, channel by channel."""
        for counts, channel in self.rows:
            drawn = counts.sum(axis=1)
            yield PooledCounts.from_counts(counts.sum(axis=0) - drawn @ channel, channel, drawn)

    @property
    def size(self) -> int:
        """All cells of all channels."""
        return sum(counts.size for counts in self._counts)

    def empty(self) -> ChannelTally:
        """Nothing counted yet."""
        return ChannelTally(self._channels, self._values)
