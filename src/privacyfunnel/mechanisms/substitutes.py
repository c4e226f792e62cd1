r"""What stands for a value that a protocol does not know.

Such a row is published as that of a random input: one of 256 evenly spaced points of the inputs' distribution, chosen
by the row's own word and by nothing in the row. So its output says nothing about its value, and outputs keep their own
distribution, to within the 1/256 to which these points follow p(x):

.. math:: P(y) = \tfrac{1}{256} \sum_{i} q(y \mid x_i), \qquad \sum_{x \le x_i} p(x) \ge \tfrac{i + 1/2}{256}.

No more of p(x) is in the file than these points tell. Nothing is certified for such rows: the promise was checked on
values that are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.sampling import WORD_BITS, RandomWords

BITS = 8
SIZE = 1 << BITS  # points: as few as give the larger shares their due, and nobody's count away
DRAW = (1 << 64) - 2  # the draw number in which they are chosen: no law draws in it


def build_substitutes(p_x: FloatArray) -> IntArray:
    """Evenly spaced points of a distribution of inputs, in order.

    >>> np.bincount(build_substitutes(np.array([0.5, 0.25, 0.25]))).tolist()
    [128, 64, 64]
    """
    points = (np.arange(SIZE) + 0.5) / SIZE
    found: IntArray = np.minimum(np.searchsorted(np.cumsum(p_x), points), len(p_x) - 1)
    return found


def draw_substitutes(substitutes: IntArray, random_words: RandomWords) -> IntArray:
    """An input for each of these rows, by its word."""
    return np.asarray(substitutes[(random_words.word(DRAW) >> np.uint64(WORD_BITS - BITS)).astype(np.int64)])


def substitutes_to_json(substitutes: IntArray | None) -> dict[str, Any]:
    """As they stand in the protocol file: inputs, each with how many of the points it has."""
    if substitutes is None:
        return {}
    inputs, times = np.unique(substitutes, return_counts=True)
    return {"substitutes": [list(pair) for pair in zip(inputs.tolist(), times.tolist(), strict=True)]}


def substitutes_from_json(content: Mapping[str, Any], inputs: int, sees_secret: bool) -> IntArray | None:
    """Those that a protocol file states, if it does."""
    stated = content.get("substitutes")
    if stated is None:
        return None
    code, times = (np.array([pair[i] for pair in stated], dtype=np.int64) for i in (0, 1))
    if sees_secret or int(times.sum()) != SIZE or (np.diff(code) <= 0).any() or code.max() >= inputs:
        raise ProtocolFileError(
            f"what stands for unknown values must be {SIZE} points among inputs that are values; it is not."
        )
    return np.repeat(code, times)
