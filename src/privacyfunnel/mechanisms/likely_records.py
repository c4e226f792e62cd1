"""Records that a model draws often, whose class and probability are computed once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, WordArray
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.published.tree_model import CodeArray, TreeModel

SEED, SAMPLE = 10, 1 << 18  # of the records that are looked at
PLACES = 20  # bits: four times as many places as records, so that few share one
MIXING = np.uint64(0x9E3779B97F4A7C15)  # an odd number, by whose multiples keys are spread
NOBODY = np.uint64((1 << 64) - 1)
Assess = Callable[[CodeArray], tuple[IntArray, WordArray]]  # the class of records, and a(x)


@dataclass(frozen=True, slots=True, eq=False)
class LikelyRecords:
    """Distinct records, and a place for each by its key; of two that share a place one is not found."""

    sizes: tuple[int, ...]
    keys: WordArray  # and after them one that no record has
    places: NDArray[np.int32]
    classes: IntArray
    keep: WordArray

    @classmethod
    def simulate(cls, model: TreeModel, assess: Assess) -> LikelyRecords | None:
        """The records that a public simulation of the model draws; None where a key does not hold a record."""
        sizes = tuple(len(attribute.labels) for attribute in model.attributes)
        if math.prod(sizes) >= NOBODY:
            return None
        codes = simulate_codes(model, KeyStream.from_seed(SEED), SAMPLE)
        keys, first = np.unique(_pack(codes, sizes), return_index=True)
        places = np.full(1 << PLACES, len(keys), dtype=np.int32)
        places[_place(keys)] = np.arange(len(keys), dtype=np.int32)
        return cls(sizes, np.append(keys, NOBODY), places, *assess(codes[first]))

    def find(self, codes: NDArray[np.integer[Any]]) -> IntArray:
        """The number of each record; −1 where it has none."""
        keys = _pack(codes, self.sizes)
        found = self.places[_place(keys)].astype(np.int64)
        found[self.keys[found] != keys] = -1
        return found


def simulate_codes(model: TreeModel, stream: KeyStream, number: int) -> CodeArray:
    """So many records x ~ p̃, by the words of the first rows of a stream."""
    return model.sample(np.stack([stream.words(0, number, draw=draw) for draw in range(model.words_per_record)]))


def _pack(codes: NDArray[np.integer[Any]], sizes: tuple[int, ...]) -> WordArray:
    """Every record as one number."""
    keys = codes[:, 0].astype(np.uint64)
    for j, size in enumerate(sizes[1:], 1):
        keys *= np.uint64(size)
        keys += codes[:, j].astype(np.uint64)
    return keys


def _place(keys: WordArray) -> WordArray:
    return np.asarray((keys * MIXING) >> np.uint64(64 - PLACES))
