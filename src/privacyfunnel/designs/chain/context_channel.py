"""A context's channel as integers: rounded to multiples of 2^-62, so that what is drawn is what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.chain.band import Band
from privacyfunnel.mechanisms.chain_step import BITS, FINEST, UNIT
from privacyfunnel.mechanisms.exact_arithmetic import merge_outputs, round_rows

MERGES = 6  # times that outputs outside of the band are joined with others


@dataclass(frozen=True, slots=True, eq=False)
class Channel:
    """A context's channel as integers over 2^62, a row per value, sparse and sorted by value and output."""

    value: IntArray
    output: IntArray
    numerator: IntArray

    @classmethod
    def identity(cls, values: int) -> Channel:
        """Every value is published as it is."""
        every = np.arange(values)
        return cls(every, every, np.full(values, UNIT))

    @classmethod
    def constant(cls, values: int) -> Channel:
        """One output for all values: nothing is said."""
        return cls(np.arange(values), np.zeros(values, dtype=np.int64), np.full(values, UNIT))

    def as_values(self, table: FloatArray, band: Band) -> tuple[Channel, IntArray]:
        """Instead of an output a value, drawn from what the output stands for; and the value that each output shows.

        This is post-processing: whatever band the outputs were in, these averages of them are in it too. Where rounding
        carries them out of it, the likeliest value is shown whatever the value was.
        """
        d = table.shape[1]
        p_xy = np.zeros((d, int(self.output.max()) + 1))
        p_xy[self.value, self.output] = table[0, self.value] * (self.numerator / UNIT)
        posterior = p_xy / p_xy.sum(axis=0)
        drawn, shown = round_channel(table, (p_xy / table[0][:, None]) @ posterior.T, band)
        return (drawn, shown) if len(shown) > 1 else (drawn, np.array([table[0].argmax()]))

    def refine(self, group: IntArray) -> Channel:
        """The channel of finer values, each with the row of its group."""
        starts = np.searchsorted(self.value, np.arange(self.value[-1] + 2))
        rows = [slice(starts[g], starts[g + 1]) for g in group]
        lengths = [row.stop - row.start for row in rows]
        return Channel(
            np.repeat(np.arange(len(group)), lengths),
            np.concatenate([self.output[row] for row in rows]),
            np.concatenate([self.numerator[row] for row in rows]),
        )


def lump_rare(table: FloatArray, most: int) -> tuple[FloatArray, IntArray]:
    """The table with all but the likeliest values lumped into one, so that it has at most so many, and who is where."""
    d = table.shape[1]
    if d <= most:
        return table, np.arange(d)
    group = np.full(d, most - 1)
    group[np.argsort(-table[0], kind="stable")[: most - 1]] = np.arange(most - 1)
    members = np.zeros((d, most))
    members[np.arange(d), group] = 1.0
    prior = table[0] @ members
    return np.vstack([prior, (table[1:] * table[0]) @ members / prior]), group


def round_channel(table: FloatArray, chances: FloatArray, band: Band) -> tuple[Channel, IntArray]:
    """A channel of integers, and which outputs it has.

    Outputs that are too rare for integers to follow them leave the band. They join the most frequent one that does not,
    for an average of allowed posteriors is allowed; where that does not help, the channel is silent.
    """
    d = table.shape[1]
    names = np.arange(chances.shape[1])
    for _ in range(MERGES):
        chances = chances / chances.sum(axis=1, keepdims=True)
        row, column, entries = round_rows(chances, BITS, FINEST)
        numerators = np.zeros(chances.shape, dtype=np.int64)
        numerators[row, column] = entries
        used = numerators.any(axis=0)
        numerators, chances, names = numerators[:, used], chances[:, used], names[used]
        p_xy = table[0][:, None] * (numerators / UNIT)
        p_y = p_xy.sum(axis=0)
        ratio = (table[1:] @ p_xy) / p_y
        inside = band.holds(ratio, axis=0)
        if len(names) == 1 or not inside.any():
            break
        if inside.all():
            value, output = np.nonzero(numerators)
            return Channel(value, output, numerators[value, output]), names
        chances, names = merge_outputs(chances, p_y, inside), names[inside]
    return Channel.constant(d), np.zeros(1, dtype=np.int64)
