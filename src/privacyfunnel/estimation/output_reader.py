"""From a sanitised table to what estimation looks at: counts of outputs, for the whole table or group by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError, SizeError, TableError
from privacyfunnel.estimation.observation import Cells, ChannelModel, Observations
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.release.published_table import PublishedTable
from privacyfunnel.tables.readers.column_selection import select_columns, select_expression
from privacyfunnel.tables.readers.formats import TableWrapper

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.release.output_layout import OutputLayout
    from privacyfunnel.tables.readers.formats import Table

Group = tuple[str, ...]  # the label of each kept column
LARGEST_CHANNEL = 4 * 10**6  # entries: values × outputs; beyond it estimates take minutes
LARGEST_LISTED = 1 << 25  # of a law that lists its outputs: 0.3 GB, of which estimates hold a few copies


@dataclass(frozen=True, slots=True, eq=False)
class OutputReader:
    """The model of a protocol, the shape of its original values, and how a sanitised table shows them."""

    sealed: SealedProtocol
    mechanism: Mechanism  # of the columns that are looked at
    model: ChannelModel
    attributes: tuple[int, ...]  # the attributes whose values are its inputs
    combos: IntArray  # their labels in each of its values
    repeats: int = 1  # inputs are the values, so many times over: once per secret where the secret is an input too

    @classmethod
    def from_protocol(
        cls, protocol: SealedProtocol | str | Path, *, columns: Sequence[str] | None = None, grouped: bool = False
    ) -> OutputReader:
        """The reading of a protocol or protocol file, as far as it tells about `columns` (left out: about all).

        A protocol that sees the secret induces a channel from values to outputs for everybody together. Within a group
        the secret may be distributed otherwise, so there the inputs are the pairs of secret and value.

        Raises
        ------
        SizeError
            If the channel of these columns is too large to estimate from.
        """
        sealed = load_sealed(protocol)
        domain = sealed.domain
        names = [at.name for at in domain.attributes]
        wanted = names if columns is None else columns
        attributes = attribute_cover(sealed, wanted)
        law, inputs = sealed.mechanism.restrict_attributes(attributes)
        _check_size(law, wanted)
        if law.sees_secret and not grouped:
            if sealed.induced is None:
                raise ParameterError(
                    "A protocol that sees the secret must state the channel from values to outputs; this one does not. "
                    "Make the protocol file again."
                )
            return cls(sealed, law, ChannelModel(sealed.induced), attributes, domain.combos)
        model = ChannelModel(law.observation())
        combos = domain.combos[inputs % len(domain.combos)][:, attributes]
        repeats = len(domain.secrets) if law.sees_secret else 1
        return cls(sealed, law, model, attributes, combos[: len(combos) // repeats], repeats)

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """Its values as text."""
        attributes = [self.sealed.domain.attributes[j] for j in self.attributes]
        return tuple(
            tuple(at.labels[code] for at, code in zip(attributes, combo, strict=True)) for combo in self.combos.tolist()
        )

    def cells(self, columns: Sequence[str]) -> Cells:
        """The cells of a table of some of its columns.

        Labels stand in the order that the owner has given or their numbers have, else in that of their codes.
        """
        attributes = [self.sealed.domain.attributes[j] for j in self.attributes]
        place, orders = {at.name: j for j, at in enumerate(attributes)}, self.sealed.domain.label_orders
        known = [orders[name] for name in columns]
        parts = self.combos[:, [place[name] for name in columns]]
        for i, name in enumerate(columns):
            parts[:, i] = np.array(list(map(known[i].index, attributes[place[name]].labels)))[parts[:, i]]
        found, cell = np.unique(parts, axis=0, return_inverse=True)
        labels = tuple(tuple(names[code] for names, code in zip(known, codes, strict=True)) for codes in found.tolist())
        return Cells(labels, np.tile(cell.reshape(-1), self.repeats))

    def layout(self, table: Table, by: Sequence[str] = ()) -> OutputLayout:
        """How the table shows the outputs; checks that it fits the protocol, and that `by` are other columns of it."""
        return find_layout(self.sealed, table, by).restrict(self.mechanism, self.attributes)

    def decode(self, way: OutputLayout, rows: pl.DataFrame) -> NDArray[Any]:
        """The outputs that rows show, as the model has them."""
        shown = self.mechanism.observation_codes(way.recover_codes(rows))
        strangers = int((shown < 0).any(axis=1).sum())
        if strangers:
            raise TableError(
                f"{' & '.join(way.names[:3])} must hold only what the protocol publishes; {strangers:,} different "
                "entries do not occur in it. Name the sanitised table that belongs to this protocol."
            )
        return np.asarray(shown[:, 0])

    def observe(self, source: Any, by: Sequence[str] = (), *, weights: str | None = None) -> dict[Group, Observations]:
        """What each group shows, groups in order of their labels.

        With `weights`, a kept column, rows count by these; there are then (Σ w)² / Σ w² of them (Kish).
        """
        from privacyfunnel.tables.readers.table_files import open_source

        table = open_source(source)
        if weights is not None:
            table = WeightedTable(table, weights)
        way, beside = self.layout(table, by), () if weights is None else (weights,)
        counts: dict[Group, FloatArray] = {}
        squares: dict[Group, FloatArray] = {}
        k = self.model.statistics
        for rows in table.batches([*way.names, *by, *beside]):
            for group, outputs, seen in self._count(way, rows, by, beside):
                counts[group] = counts.get(group, np.zeros(k)) + np.bincount(outputs, seen[0], k)
                squares[group] = squares.get(group, np.zeros(2)) + seen.sum(axis=1)
        if not counts:
            raise TableError(f"{table.name} must have rows; it has none.")
        found = {group: self.model.observe(counts[group]) for group in sorted(counts)}
        if weights is None:
            return found
        return {group: each.scale(squares[group][0] / squares[group][1]) for group, each in found.items()}

    def _count(
        self, way: OutputLayout, rows: pl.DataFrame, by: Sequence[str], weights: Sequence[str] = ()
    ) -> Iterator[tuple[Group, NDArray[Any], FloatArray]]:
        """The distinct outputs of each group of some rows, with the sums of their weights and of their squares."""
        import polars as pl

        number = "".join([*rows.columns, "#"])  # a name that no column has
        each = [select_expression(weights) ** power if weights else pl.len() for power in (1, 2)]
        sums = [
            (of.sum() if weights else of).alias(name) for of, name in zip(each, (number, f"{number}²"), strict=True)
        ]
        distinct = rows.group_by(select_expression([*way.names, *by])).agg(sums)
        for start in range(0, len(distinct), way.rows_at_once):
            piece = distinct[start : start + way.rows_at_once]
            outputs = self.decode(way, piece)
            counts = piece.select(number, f"{number}²").to_numpy().astype(np.float64).T
            if not by:
                yield (), outputs, counts
                continue
            groups = group_labels(piece, by)
            place = {group: i for i, group in enumerate(dict.fromkeys(groups))}
            member = np.array([place[group] for group in groups])
            for group, i in place.items():
                yield group, outputs[member == i], counts[:, member == i]


@dataclass(frozen=True, slots=True, eq=False)
class WeightedTable(TableWrapper):
    """A table with a column of survey weights, checked and as numbers."""

    weights: str

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        import polars as pl

        for rows in self.table.batches(columns):
            weights = select_columns(rows, [self.weights]).to_series().cast(pl.Float64, strict=False)
            if weights.null_count() or not weights.is_finite().all() or (weights < 0).any():
                raise ColumnError(
                    f"weights must be numbers of at least 0 in every row; '{self.weights}' has others. Name another "
                    "column, or leave rows out."
                )
            yield rows.with_columns(weights)


def load_sealed(protocol: SealedProtocol | str | Path) -> SealedProtocol:
    """A sealed protocol, from its file if it is a path."""
    return SealedProtocol.load(protocol) if isinstance(protocol, str | Path) else protocol


def load_published(
    protocol: SealedProtocol | PublishedTable | str | Path, frame: Any = None
) -> tuple[SealedProtocol, Any]:
    """A sealed protocol and the sanitised table: that of a release, where none is given beside it."""
    if isinstance(protocol, PublishedTable):
        return protocol.sealed, protocol.table if frame is None else frame
    if frame is None:
        raise ParameterError("The sanitised table must stand beside its protocol; there is none. Name it.")
    return load_sealed(protocol), frame


def attribute_cover(sealed: SealedProtocol, columns: Sequence[str]) -> tuple[int, ...]:
    """The attributes that one reading covers which tells about `columns`."""
    names = [at.name for at in sealed.domain.attributes]
    return sealed.mechanism.required_attributes([names.index(name) for name in columns], len(names))


def _check_size(mechanism: Mechanism, wanted: Sequence[str]) -> None:
    """Refuse a channel that is too large to be worked with, before it is written out."""
    if mechanism.inputs * mechanism.expansion_size > LARGEST_CHANNEL:
        raise SizeError(
            f"Estimates of {' & '.join(wanted)} need a channel of {mechanism.inputs:,} combinations × "
            f"{mechanism.expansion_size:,} outputs; at most {LARGEST_CHANNEL:,} entries are worked with. Ask for fewer "
            "columns, or publish coarser values."
        )
    if mechanism.observation_size > LARGEST_LISTED:
        raise SizeError(
            f"Estimates are made from channels of at most {LARGEST_LISTED:,} chances; that of {' & '.join(wanted)} "
            f"has {mechanism.observation_size:,}. Publish fewer columns or merge rare values."
        )


def find_layout(sealed: SealedProtocol, table: Table, by: Sequence[str] = ()) -> OutputLayout:
    """How the table shows the protocol's outputs; checks that `by` are other columns of it."""
    from privacyfunnel.names import validate_columns
    from privacyfunnel.release.output_layout import detect_layout

    way = detect_layout(sealed, table.columns, table.name)
    validate_columns(by, table.columns, "kept")
    published = [name for name in by if name in way.names]
    if published:
        raise ColumnError(
            f"groups must come from a column that was kept as it is; '{published[0]}' was published by the protocol. "
            "Ask for a table of several columns instead."
        )
    return way


def group_labels(rows: pl.DataFrame, by: Sequence[str]) -> list[Group]:
    """The group of each row."""
    import polars as pl

    from privacyfunnel.names import MISSING
    from privacyfunnel.tables.readers.column_selection import drop_name

    return list(zip(*(drop_name(rows[name]).cast(pl.String).fill_null(MISSING).to_list() for name in by), strict=True))
