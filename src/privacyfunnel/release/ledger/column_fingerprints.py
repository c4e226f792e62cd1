"""Fingerprints of columns: the same for the same values, each as often, in whatever order the rows come.

They are keyed, so those of two ledgers have nothing in common; whoever has the key can try out guesses of a small one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.tables.coding.contingency import Contingency, Variable


def column_fingerprints(contingency: Contingency, salt: bytes) -> dict[str, str]:
    """A keyed fingerprint of each column: of its values and how often each occurs, in whatever order."""
    weights = contingency.weights
    sides = ((contingency.secret, weights.sum(axis=1)), (contingency.published, weights.sum(axis=0)))
    return {name: mark for variable, counts in sides for name, mark in _variable_fingerprints(variable, counts, salt)}


def _variable_fingerprints(variable: Variable, counts: IntArray, salt: bytes) -> Iterator[tuple[str, str]]:
    for j, coding in enumerate(variable.codings):
        rows = np.zeros(len(coding.labels), dtype=np.int64)
        np.add.at(rows, variable.combos[:, j], counts)
        held = [pair for pair in zip(coding.labels, rows.tolist(), strict=True) if pair[1]]  # a domain may list more
        content = json.dumps(sorted(held), ensure_ascii=True)
        yield coding.column, hashlib.blake2b(content.encode(), key=salt, digest_size=16).hexdigest()
