"""What records of a product or a chain look like in a table, one label per column, and how an audit reads them back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.laws.chain import ChainLaw
from privacyfunnel.laws.chain_step import UNIT, arrivals
from privacyfunnel.laws.product import ProductLaw
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.tables.picking import nameless

ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class SeparateColumns:
    """A column per attribute, each with labels of its own."""

    attributes: tuple[Attribute, ...]
    law: ProductLaw | ChainLaw

    @property
    def names(self) -> tuple[str, ...]:
        """The published columns."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def rows_at_once(self) -> int:
        """How many drawn rows may be held in memory together."""
        return ROWS_AT_ONCE

    def columns(self, drawn: NDArray[Any]) -> list[pl.Series]:
        """The labels of drawn rows."""
        return [
            pl.Series(labels, dtype=pl.String).gather(drawn[:, j].astype(np.uint32)).alias(name)
            for j, (name, labels) in enumerate(zip(self.names, self.law.columns, strict=True))
        ]

    def drawn(self, rows: pl.DataFrame) -> NDArray[Any]:
        """The codes of the labels; one that the law does not have is −1."""
        found = []
        for name, labels in zip(self.names, self.law.columns, strict=True):
            text = nameless(rows[name]).cast(pl.String).fill_null("")
            codes = text.cast(pl.Enum(labels), strict=False).to_physical().cast(pl.Int64)
            found.append(codes.fill_null(-1).to_numpy())
        return np.stack(found, axis=1)

    @cached_property
    def _same(self) -> IntArray:
        """For every input the code that shows its value as it is in each column, or −2."""
        own = []
        for j, (attribute, labels) in enumerate(zip(self.attributes, self.law.columns, strict=True)):
            place = {label: code for code, label in enumerate(labels)}
            codes = np.array([place.get(label, -2) for label in attribute.labels], dtype=np.int64)
            own.append(codes[self.law.combos[:, j]])
        return np.stack(own, axis=1)

    def unchanged(self, values: IntArray, drawn: NDArray[Any]) -> int:
        """How many rows show exactly the values they had."""
        return int((self._same[values] == drawn).all(axis=1).sum())

    def expected_unchanged(self, joint: Joint) -> float:
        """The chance of that under the law; for a chain, in the contexts that were reached."""
        same, p_x = self._same, joint.p_x
        if isinstance(self.law, ProductLaw):
            can = (same >= 0).all(axis=1)
            stays, combos = p_x[can], self.law.combos[can]
            for j, factor in enumerate(self.law.factors):
                stays = stays * factor.channel[combos[:, j], same[can, j]]
            return float(stays.sum())
        stays, inputs, node = p_x, np.arange(len(p_x)), np.zeros(len(p_x), dtype=np.int64)
        for number, step in enumerate(self.law.steps):
            output = step.showing(node, same[inputs][:, list(step.attributes)])
            entry = step.entries_of(step.rows_of(node, self.law.values_of(number)[inputs]), output)
            good = entry >= 0
            stays, inputs = stays[good] * (step.numerator[entry[good]] / UNIT), inputs[good]
            if number + 1 < len(self.law.steps):
                node = arrivals(self.law.steps[number + 1].came_by, output[good])
        return float(stays.sum())


class ProductTally:
    """How often each value of each attribute became each of its outputs."""

    def __init__(self, law: ProductLaw) -> None:
        self._law = law
        self._counts = [np.zeros((factor.inputs, len(factor.outputs)), dtype=np.int64) for factor in law.factors]
        self._strange = 0

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows."""
        known = (drawn >= 0).all(axis=1)
        self._strange += int((~known).sum())
        for j, counts in enumerate(self._counts):
            np.add.at(counts, (self._law.combos[inputs[known], j], drawn[known, j]), 1)

    @property
    def impossible(self) -> int:
        """How many rows show what their values never become."""
        wrong = (counts[f.channel == 0].sum() for counts, f in zip(self._counts, self._law.factors, strict=True))
        return self._strange + int(sum(wrong))

    @property
    def rows(self) -> list[tuple[IntArray, FloatArray]]:
        """Counts and chances, attribute by attribute."""
        return [(counts, f.channel) for counts, f in zip(self._counts, self._law.factors, strict=True)]


class ChainTally:
    """How often each value became each output in each context."""

    def __init__(self, law: ChainLaw) -> None:
        self._law = law
        self._counts = [np.zeros(len(step.numerator), dtype=np.int64) for step in law.steps]
        self._strange = 0

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows, following each along the labels it shows."""
        node = np.zeros(len(inputs), dtype=np.int64)
        for number, step in enumerate(self._law.steps):
            output = step.showing(node, drawn[:, list(step.attributes)])
            entry = step.entries_of(step.rows_of(node, self._law.values_of(number)[inputs]), output)
            good = entry >= 0
            self._strange += int((~good).sum())
            np.add.at(self._counts[number], entry[good], 1)
            inputs, drawn = inputs[good], drawn[good]
            if number + 1 < len(self._law.steps):
                node = arrivals(self._law.steps[number + 1].came_by, output[good])

    @property
    def impossible(self) -> int:
        """How many rows show what their values never become."""
        return self._strange

    @property
    def rows(self) -> list[tuple[IntArray, FloatArray]]:
        """Counts and chances of every row of a channel that was drawn from."""
        found = []
        for counts, step in zip(self._counts, self._law.steps, strict=True):
            starts = step.cell_starts
            drawn = np.add.reduceat(counts, starts[:-1])
            for row in np.flatnonzero(drawn):
                mine = slice(starts[row], starts[row + 1])
                found.append((counts[None, mine], step.numerator[None, mine] / UNIT))
        return found
