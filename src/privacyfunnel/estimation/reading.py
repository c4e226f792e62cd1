"""From a sanitised table to what estimation looks at: counts of outputs, for the whole table or group by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.estimation.columnwise import Columnwise, covering
from privacyfunnel.estimation.observation import ChannelModel, Observed, SetsModel
from privacyfunnel.laws.chain import ChainLaw
from privacyfunnel.laws.channel import ChannelLaw
from privacyfunnel.laws.law import UNIT
from privacyfunnel.laws.product import ProductLaw
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.laws.sets import SetsLaw

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.release.write import Published
    from privacyfunnel.tables.files import Table

Group = tuple[str, ...]  # the label of each kept column


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The model of a protocol, the shape of its original values, and how a sanitised table shows them."""

    sealed: SealedProtocol
    model: ChannelModel | SetsModel
    repeats: int = 1  # inputs are the values, so many times over: once per secret where the secret is an input too
    part: Columnwise | None = None  # where only some columns are looked at

    @classmethod
    def of(
        cls, protocol: SealedProtocol | str | Path, *, columns: Sequence[str] | None = None, grouped: bool = False
    ) -> Reading:
        """The reading of a protocol or protocol file, as far as it tells about `columns` (left out: about all).

        A protocol that sees the secret induces a channel from values to outputs for everybody together. Within a group
        the secret may be distributed otherwise, so there the inputs are the pairs of secret and value.
        """
        sealed = loaded(protocol)
        law = sealed.law
        if isinstance(law, ProductLaw | ChainLaw):
            names = [at.name for at in sealed.domain.attributes]
            wanted = range(len(names)) if columns is None else [names.index(name) for name in columns]
            part = Columnwise.of(law, names, wanted)
            return cls(sealed, ChannelModel(part.channel), part=part)
        if isinstance(law, SetsLaw):
            return cls(sealed, SetsModel(law.inputs, law.t / UNIT))
        if not isinstance(law, ChannelLaw):
            raise ParameterError(
                f"Estimation needs a protocol with a channel; a law of kind '{law.kind}' has none that is known here."
            )
        if not law.sees_secret:
            return cls(sealed, ChannelModel(law.channel))
        if grouped:
            return cls(sealed, ChannelModel(law.channel), law.inputs // len(sealed.domain.combos))
        if sealed.induced is None:
            raise ParameterError(
                "A protocol that sees the secret must state the channel from values to outputs; this one does not. "
                "Make the protocol file again."
            )
        return cls(sealed, ChannelModel(np.asarray(sealed.induced)))

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes whose values are its inputs."""
        return tuple(range(len(self.sealed.domain.attributes))) if self.part is None else self.part.attributes

    @property
    def combos(self) -> IntArray:
        """Those attributes' labels in each of its values."""
        return self.sealed.domain.combos if self.part is None else self.part.combos

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """The same as text."""
        attributes = [self.sealed.domain.attributes[j] for j in self.attributes]
        return tuple(
            tuple(at.labels[code] for at, code in zip(attributes, combo, strict=True)) for combo in self.combos.tolist()
        )

    def way(self, table: Table, by: Sequence[str] = ()) -> Published | Columnwise:
        """How the table shows the outputs; checks that it fits the protocol, and that `by` are other columns of it."""
        whole = _way_written(self.sealed, table, by)
        return whole if self.part is None else self.part

    def observed(self, source: Any, by: Sequence[str] = (), *, distinct: bool = False) -> dict[Group, Observed]:
        """What each group shows, groups in order of their labels; `distinct` sets are counted one by one if asked."""
        table = as_table(source)
        way = self.way(table, by)
        tallies: dict[Group, _Tally] = {}
        for rows in table.batches([*way.names, *by]):
            for group, codes, counts in _counted(way, rows, by):
                tally = tallies.setdefault(group, _Tally.empty(self.model))
                tally.add(codes, counts, distinct=distinct)
        if not tallies:
            raise TableError(f"{table.name} must have rows; it has none.")
        return {group: tallies[group].observed() for group in sorted(tallies)}


def loaded(protocol: SealedProtocol | str | Path) -> SealedProtocol:
    """A sealed protocol, from its file if it is a path."""
    return SealedProtocol.load(protocol) if isinstance(protocol, str | Path) else protocol


def default_method(sealed: SealedProtocol) -> str:
    """The method with the least measured error that is affordable."""
    law = sealed.law
    return SetsModel(law.inputs, law.t / UNIT).default_method if isinstance(law, SetsLaw) else "ml"


def covered_by(sealed: SealedProtocol, columns: Sequence[str]) -> tuple[int, ...]:
    """The attributes that one reading covers which tells about `columns`."""
    names = [at.name for at in sealed.domain.attributes]
    if isinstance(sealed.law, ProductLaw | ChainLaw):
        return covering(sealed.law, [names.index(name) for name in columns])
    return tuple(range(len(names)))


def as_table(source: Any) -> Table:
    """A file by its path, or a frame that narwhals reads."""
    if isinstance(source, str | Path):
        from privacyfunnel.tables.files import open_table

        return open_table(source)
    from privacyfunnel.tables.frames import FrameTable

    return FrameTable.of(source)


def _way_written(sealed: SealedProtocol, table: Table, by: Sequence[str] = ()) -> Published:
    """How the table shows the protocol's outputs; checks that `by` are other columns of it."""
    from privacyfunnel.release.write import recognised
    from privacyfunnel.tables.names import checked_columns

    way = recognised(sealed, table.columns, table.name)
    checked_columns(by, table.columns, "kept")
    published = [name for name in by if name in way.names]
    if published:
        raise ColumnError(
            f"groups must come from a column that was kept as it is; '{published[0]}' was published by the protocol. "
            "Ask for a table of several columns instead."
        )
    return way


def decoded(way: Published | Columnwise, rows: pl.DataFrame) -> NDArray[Any]:
    """The outputs that rows show: codes of a channel (n), or sets (n × values)."""
    drawn = way.drawn(rows)
    strangers = int((drawn < 0).any(axis=1).sum())
    if strangers:
        raise TableError(
            f"{' & '.join(way.names[:3])} must hold only what the protocol publishes; {strangers:,} different entries "
            "do not occur in it. Name the sanitised table that belongs to this protocol."
        )
    return drawn


def group_labels(rows: pl.DataFrame, by: Sequence[str]) -> list[Group]:
    """The group of each row."""
    import polars as pl

    from privacyfunnel.tables.columns import MISSING
    from privacyfunnel.tables.picking import nameless

    return list(zip(*(nameless(rows[name]).cast(pl.String).fill_null(MISSING).to_list() for name in by), strict=True))


def _counted(
    way: Published | Columnwise, rows: pl.DataFrame, by: Sequence[str]
) -> Iterator[tuple[Group, NDArray[Any], NDArray[np.int64]]]:
    """The distinct outputs of each group of some rows, with how often each occurs."""
    import polars as pl

    number = "".join([*rows.columns, "#"])  # a name that no column has
    distinct = rows.group_by(pl.all()).agg(pl.len().alias(number))
    for start in range(0, len(distinct), way.rows_at_once):
        piece = distinct[start : start + way.rows_at_once]
        codes, counts = decoded(way, piece), piece[number].to_numpy().astype(np.int64)
        if not by:
            yield (), codes, counts
            continue
        groups = group_labels(piece, by)
        place = {group: i for i, group in enumerate(dict.fromkeys(groups))}
        member = np.array([place[group] for group in groups])
        for group, i in place.items():
            yield group, codes[member == i], counts[member == i]


@dataclass(slots=True, eq=False)
class _Tally:
    """Counts while the batches of a table come in."""

    model: ChannelModel | SetsModel
    rows: int
    sums: FloatArray
    sets: list[NDArray[np.uint8]]  # of each batch, eight values to a byte
    counts: list[NDArray[np.int64]]

    @classmethod
    def empty(cls, model: ChannelModel | SetsModel) -> _Tally:
        size = model.channel.shape[1] if isinstance(model, ChannelModel) else model.inputs
        return cls(model, 0, np.zeros(size), [], [])

    def add(self, codes: NDArray[Any], counts: NDArray[np.int64], *, distinct: bool) -> None:
        self.rows += int(counts.sum())
        if isinstance(self.model, ChannelModel):
            self.sums += np.bincount(codes[:, 0], weights=counts, minlength=len(self.sums))
            return
        self.sums += counts @ codes.astype(np.float64)
        if distinct:
            self.sets.append(np.packbits(codes.astype(np.bool_), axis=1))
            self.counts.append(counts)

    def observed(self) -> Observed:
        if isinstance(self.model, ChannelModel):
            return self.model.observed(self.sums)
        if not self.sets:
            return self.model.observed(self.rows, self.sums, np.zeros((0, self.model.inputs)), np.zeros(0))
        packed, which = np.unique(np.concatenate(self.sets), axis=0, return_inverse=True)
        counts = np.bincount(which.reshape(-1), weights=np.concatenate(self.counts))
        sets = np.unpackbits(packed, axis=1, count=self.model.inputs).astype(np.bool_)
        return self.model.observed(self.rows, self.sums, sets, counts)
