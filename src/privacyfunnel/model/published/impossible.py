"""Combinations of labels, of two columns or more, that nobody has: records of a class that is never published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.model.joint import Attribute

Label = tuple[str, str]  # a column and one of its labels
Combination = tuple[Label, ...]
MOST_CHECKED = 1 << 20  # combinations of the columns named together, among which every label is looked for


@dataclass(frozen=True, eq=False)
class ImpossibleRecords:
    """Patterns of codes, a column for each of the model's: −1 stands for any."""

    patterns: IntArray

    @classmethod
    def find(cls, attributes: Sequence[Attribute], named: Sequence[Combination]) -> ImpossibleRecords:
        """Those of which every label is published; refused where they leave a label nothing to occur with."""
        place = {attribute.name: j for j, attribute in enumerate(attributes)}
        rows = []
        for combination in named:
            names = [name for name, _ in combination]
            strange = [name for name in names if name not in place]
            if strange:
                raise ColumnError(
                    f"An impossible combination names column '{strange[0]}', which is not published. Publish it, or "
                    "leave it out there."
                )
            if len({*names}) < len(names):
                raise ColumnError(f"An impossible combination is of different columns; '{names[0]}' is named twice.")
            row = [-1] * len(attributes)
            for name, label in combination:
                labels = attributes[place[name]].labels
                row[place[name]] = labels.index(label) if label in labels else len(labels)
            if all(code < len(at.labels) for code, at in zip(row, attributes, strict=True)):
                rows.append(row)
        found = cls(np.array(rows, dtype=np.int64).reshape(len(rows), len(attributes)))
        found._refuse_stuck(attributes)
        return found

    @classmethod
    def read(cls, patterns: Any, attributes: Sequence[Attribute]) -> ImpossibleRecords:
        """Those that a protocol file states."""
        found, sizes = np.array(patterns, dtype=np.int64), [len(attribute.labels) for attribute in attributes]
        if found.ndim != 2 or found.shape[1] != len(sizes) or not len(found):
            raise ParameterError("Impossible records are patterns of a code, or −1, for each column; these are not.")
        if (found < -1).any() or (found >= sizes).any() or ((found >= 0).sum(axis=1) < 2).any():
            raise ParameterError("Impossible records name two labels or more; these do not.")
        return cls(found)

    def match(self, codes: NDArray[np.integer[Any]]) -> BoolArray:
        """Which records have one of them."""
        found = np.zeros(len(codes), dtype=bool)
        for pattern in self.patterns:
            first, *others = np.flatnonzero(pattern >= 0).tolist()
            rows = np.flatnonzero(codes[:, first] == pattern[first])
            for j in others:
                rows = rows[codes[rows, j] == pattern[j]]
            found[rows] = True
        return found

    def _refuse_stuck(self, attributes: Sequence[Attribute]) -> None:
        columns = np.flatnonzero((self.patterns >= 0).any(axis=0)).tolist()
        shape = tuple(len(attributes[j].labels) for j in columns)
        if not columns or math.prod(shape) > MOST_CHECKED:
            return
        codes = np.zeros((math.prod(shape), len(attributes)), dtype=np.int32)
        codes[:, columns] = np.stack(np.unravel_index(np.arange(len(codes)), shape), axis=1)
        possible = codes[~self.match(codes)]
        for j, size in zip(columns, shape, strict=True):
            stuck = np.setdiff1d(np.arange(size), possible[:, j])
            if stuck.size:
                raise ParameterError(
                    f"Impossible combinations leave '{attributes[j].labels[stuck[0]]}' of '{attributes[j].name}' "
                    "nothing to occur with. Remove the label or a combination."
                )
