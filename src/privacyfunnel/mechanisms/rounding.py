"""Rounding: from chances to integers of a fixed width."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, nonzero_entries

INT64_BITS = 62  # a certain output, 2^62, and sums of two of them still fit an int64


def round_rows(chances: Matrix, bits: int, finest: int = 1) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Each row of chances as integers that sum to 2^bits: the entries' rows, columns and numerators, row by row.

    Every chance is rounded down, to nothing where less than `finest` is left; the rest is given to the row's largest.
    Beyond 62 bits the integers are Python's own.
    """
    row, column, chance = nonzero_entries(chances)
    # A float times a power of two is exact, and so is its integer part.
    scaled = np.floor(np.ldexp(chance, bits))
    whole = bits > INT64_BITS
    numerator = np.array([int(x) for x in scaled], dtype=object) if whole else scaled.astype(np.int64)
    numerator[numerator < finest] = 0
    sums = np.zeros(chances.shape[0], dtype=numerator.dtype)
    np.add.at(sums, row, numerator)
    largest = np.zeros(chances.shape[0])
    np.maximum.at(largest, row, chance)
    are = np.flatnonzero(chance == largest[row])
    numerator[are[np.unique(row[are], return_index=True)[1]]] += (1 << bits) - sums  # the first where several are
    kept = numerator > 0
    return row[kept], column[kept], numerator[kept]


def merge_outputs(chances: FloatArray, frequency: FloatArray, stays: BoolArray) -> FloatArray:
    """The outputs that stay; all others are published as the most frequent of these.

    For outputs too rare for integers to follow them: an average of allowed posteriors is allowed.

    >>> merge_outputs(np.array([[0.5, 0.3, 0.2]]), np.array([0.5, 0.3, 0.2]), np.array([True, True, False]))
    array([[0.7, 0.3]])
    """
    whole = chances.copy()
    whole[:, np.argmax(np.where(stays, frequency, 0.0))] += chances[:, ~stays].sum(axis=1)
    return np.asarray(whole[:, stays])
