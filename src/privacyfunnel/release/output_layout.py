"""What a published record looks like: drawn codes to columns of a table, and back again for an audit or an estimate.

The law says which label of which column a drawn row shows, and which drawn row shows them. Here labels become text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.outcomes import Outcomes
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.tables.coding.coders import as_text
from privacyfunnel.tables.writers.table_writer import strip_guards

ROWS_AT_ONCE = 1 << 20  # rows that are written together: some ten megabytes


@dataclass(frozen=True, eq=False)
class OutputLayout:
    """A label per published column, as a category of text."""

    law: Mechanism
    attributes: tuple[str, ...]  # the original columns' names
    labels: tuple[Labels, ...]  # and their values'
    combos: IntArray

    @property
    def names(self) -> tuple[str, ...]:
        """The published columns."""
        return self.attributes

    @property
    def rows_at_once(self) -> int:
        """How many drawn rows may be held in memory together."""
        return ROWS_AT_ONCE

    @property
    def texts(self) -> tuple[Labels, ...]:
        """All that may stand in columns of text."""
        return self.law.columns

    def restrict(self, law: Mechanism, attributes: Sequence[int]) -> Self:
        """The way in which some of the columns, and the law of these, are written."""
        return replace(
            self,
            law=law,
            attributes=tuple(self.attributes[j] for j in attributes),
            labels=tuple(self.labels[j] for j in attributes),
            combos=self.combos[:, list(attributes)],
        )

    def refuse_taken(self, keep: Sequence[str]) -> None:
        """Refuse to keep a column that is called as a published one is."""
        for name in keep:
            if name in self.names:
                raise ColumnError(f"column '{name}' cannot be kept: a published column has that name. Rename it first.")

    @cached_property
    def _texts(self) -> list[pl.Series]:
        return [_categories(labels) for labels in self.law.columns]

    def columns(self, drawn: NDArray[Any]) -> list[pl.Series]:
        """The published columns of drawn rows."""
        return _label_columns(self.names, self._texts, self.law.label_codes(drawn))

    def recover_codes(self, rows: pl.DataFrame) -> NDArray[Any]:
        """The drawn rows that these columns show; −1 for an output that the law does not have."""
        return self.law.find_outputs(read_label_codes(rows, self.names, self.law.columns))

    @cached_property
    def _own_outputs(self) -> NDArray[Any]:
        return self.law.unchanged_outputs(self.labels, self.combos)

    def count_unchanged(self, values: IntArray, drawn: NDArray[Any]) -> int:
        """How many rows show exactly the value they had, which is a number or a record of codes."""
        if values.ndim == 2:
            return int((values == drawn).all(axis=1).sum())
        return self.law.count_unchanged(self._own_outputs, values, drawn)

    def expected_unchanged_share(self, joint: Joint) -> float:
        """The chance of that under the law."""
        return self.law.unchanged_probability(self._own_outputs, joint)


@dataclass(frozen=True, eq=False)
class CodedLayout(OutputLayout):
    """The most likely value per published column, and beside them a column of codes for each part of the law.

    A code says all; the values beside it follow from it, and rows in which they do not are no output of the law.
    """

    outcomes: Outcomes

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.attributes, *(outcome.column for outcome in self.outcomes))

    @property
    def texts(self) -> tuple[Labels, ...]:
        return self.labels

    def restrict(self, law: Mechanism, attributes: Sequence[int]) -> Self:
        mine = {outcome.attributes: outcome for outcome in self.outcomes}
        kept = [mine[tuple(attributes[j] for j in part.attributes)] for part in law.parts]
        outcomes = tuple(replace(old, attributes=part.attributes) for old, part in zip(kept, law.parts, strict=True))
        return replace(super().restrict(law, attributes), outcomes=outcomes)

    @cached_property
    def _texts(self) -> list[pl.Series]:
        return [_categories(labels) for labels in (*self.labels, *(outcome.codes for outcome in self.outcomes))]

    def columns(self, drawn: NDArray[Any]) -> list[pl.Series]:
        split = len(self.attributes)
        values = _label_columns(self.names[:split], self._texts[:split], self._likely_labels(drawn))
        return values + _label_columns(self.names[split:], self._texts[split:], drawn[:, : len(self.outcomes)])

    def recover_codes(self, rows: pl.DataFrame) -> NDArray[Any]:
        columns = [outcome.column for outcome in self.outcomes]
        codes = read_label_codes(rows, columns, [outcome.codes for outcome in self.outcomes])
        beside = read_label_codes(rows, self.attributes, self.labels) == self._likely_labels(np.maximum(codes, 0))
        return np.where(beside.all(axis=1, keepdims=True), codes, -1)

    def count_unchanged(self, values: IntArray, drawn: NDArray[Any]) -> int:
        """How many rows show the value they had."""
        return int((self._likely_labels(drawn) == self.combos[values]).all(axis=1).sum())

    def expected_unchanged_share(self, joint: Joint) -> float:
        return self.law.likely_probability([outcome.likely for outcome in self.outcomes], joint)

    def _likely_labels(self, codes: NDArray[Any]) -> IntArray:
        """rows × attributes: the label that stands beside the codes."""
        shown = np.empty((len(codes), len(self.attributes)), dtype=np.int64)
        for i, outcome in enumerate(self.outcomes):
            shown[:, list(outcome.attributes)] = outcome.likely[codes[:, i]]
        return shown


def output_layout(sealed: SealedProtocol) -> OutputLayout:
    """How the protocol's outputs are written."""
    law, domain = sealed.mechanism, sealed.domain
    names, labels = tuple(at.name for at in domain.attributes), tuple(at.labels for at in domain.attributes)
    if sealed.outcomes:
        return CodedLayout(law, names, labels, domain.combos, sealed.outcomes)
    return OutputLayout(law, names, labels, domain.combos)


def detect_layout(sealed: SealedProtocol, header: tuple[str, ...], table: str) -> OutputLayout:
    """The way a published table with this header was written."""
    found = output_layout(sealed)
    for missing in found.names:
        if missing not in header:
            raise ColumnError(
                f"{table} must have the published column '{missing}'; it has not. Name the sanitised table."
            )
    return found


def read_label_codes(rows: pl.DataFrame, names: Sequence[str], columns: Sequence[Labels]) -> NDArray[np.int64]:
    """rows × columns: the code of the label that each published column shows; −1 for one that it does not have."""
    found = []
    for name, labels in zip(names, columns, strict=True):
        text = strip_guards(as_text(rows[name]).fill_null(""), labels)
        codes = text.cast(pl.Enum(labels), strict=False).to_physical().cast(pl.Int64)
        found.append(codes.fill_null(-1).to_numpy())
    return np.stack(found, axis=1)


def _categories(labels: Sequence[str]) -> pl.Series:
    """Labels as categories of text, in this order; a series of few of them names no other."""
    return pl.Series(labels, dtype=pl.String).cast(pl.Categorical(pl.Categories.random()))


def _label_columns(names: Sequence[str], texts: Sequence[pl.Series], codes: NDArray[Any]) -> list[pl.Series]:
    """A column under each name: the texts that its codes stand for."""
    columns = [codes[:, j] if codes.dtype.kind == "u" else codes[:, j].astype(np.uint32) for j in range(len(names))]
    return [
        text.gather(pl.Series(column)).alias(name) for name, text, column in zip(names, texts, columns, strict=True)
    ]
