"""What a published record looks like: drawn codes to columns of a table, and back again for an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from typing import Protocol as Shape

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.laws.chain import ChainLaw
from privacyfunnel.laws.channel import ChannelLaw
from privacyfunnel.laws.law import UNIT
from privacyfunnel.laws.product import ProductLaw
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.laws.sets import SetsLaw
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.separate import SeparateColumns
from privacyfunnel.tables.names import unlike
from privacyfunnel.tables.picking import nameless

BETWEEN = " | "  # stands between the members of a set
SETS = ("column", "indicators")
HELD_AT_ONCE = 1 << 25  # entries of a matrix of rows × values


class Published(Shape):
    """The columns that a law's draws are written as."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def rows_at_once(self) -> int:
        """How many drawn rows may be held in memory together."""

    def columns(self, drawn: NDArray[Any]) -> list[pl.Series]:
        """The published columns of drawn rows."""

    def drawn(self, rows: pl.DataFrame) -> NDArray[Any]:
        """The codes that these columns show; an output that the law does not have is -1."""

    def unchanged(self, values: IntArray, drawn: NDArray[Any]) -> int:
        """How many rows show exactly the value they had."""

    def expected_unchanged(self, joint: Joint) -> float:
        """The chance of that under the law."""


def published(sealed: SealedProtocol, sets: str = "column") -> Published:
    """How the protocol's outputs are written; `sets` says how sets are: as one column or as 0/1 indicators."""
    if sets not in SETS:
        raise ParameterError(f"Sets are written as one of {', '.join(SETS)}; not as '{sets}'.")
    way = _way(sealed, sets)
    if isinstance(way, Members):
        way.refuse_ambiguous()
    return way


def _way(sealed: SealedProtocol, sets: str) -> Published:
    names = tuple(at.name for at in sealed.domain.attributes)
    law = sealed.law
    if isinstance(law, ChannelLaw):
        labels = [np.array(at.labels, dtype=object)[column] for at, column in _attribute_codes(sealed)]
        return Outputs(names, law, tuple(zip(*labels, strict=True)))
    if isinstance(law, SetsLaw):
        name = " & ".join(names)
        return Indicators(name, law) if sets == "indicators" else Members(name, law)
    if isinstance(law, ProductLaw | ChainLaw):
        return SeparateColumns(sealed.domain.attributes, law)
    raise TypeError(f"no way is known to write a law of kind {law.kind}")


def recognised(sealed: SealedProtocol, header: tuple[str, ...], table: str) -> Published:
    """The way a published table with this header was written."""
    for sets in SETS:
        if set(_way(sealed, sets).names) <= set(header):
            return published(sealed, sets)
    missing = next(name for name in _way(sealed, SETS[0]).names if name not in header)
    raise ColumnError(f"{table} must have the published column '{missing}'; it has not. Name the sanitised table.")


@dataclass(frozen=True, eq=False)
class Outputs:
    """A label per published column."""

    names: tuple[str, ...]
    law: ChannelLaw
    values: tuple[tuple[str, ...], ...]  # the inputs' labels

    @property
    def rows_at_once(self) -> int:
        return 1 << 20

    @cached_property
    def _labels(self) -> list[tuple[list[str], NDArray[np.uint32]]]:
        """For each column its labels, each once, and which of them every output has."""
        found = []
        for labels in self.law.columns:
            distinct = list(dict.fromkeys(labels))
            place = {label: code for code, label in enumerate(distinct)}
            found.append((distinct, np.array([place[label] for label in labels], dtype=np.uint32)))
        return found

    @cached_property
    def _same(self) -> IntArray:
        """The output that shows each value as it is, or -1."""
        place: Mapping[tuple[str, ...], int] = {labels: y for y, labels in enumerate(self.law.outputs)}
        return np.array([place.get(value, -1) for value in self.values], dtype=np.int64)

    def columns(self, drawn: NDArray[Any]) -> list[pl.Series]:
        y = drawn[:, 0]
        return [
            pl.Series(labels).gather(codes[y]).alias(name)
            for name, (labels, codes) in zip(self.names, self._labels, strict=True)
        ]

    def drawn(self, rows: pl.DataFrame) -> NDArray[Any]:
        # Numbers for names: a published column may be called `y`, or look like a pattern.
        numbers = [f"{j}" for j in range(len(self.names))]
        labels = pl.DataFrame(
            [pl.Series(j, labels).gather(codes) for j, (labels, codes) in zip(numbers, self._labels, strict=True)]
        ).with_row_index("y")
        text = pl.DataFrame(
            [_text(rows[name]).fill_null("").alias(j) for j, name in zip(numbers, self.names, strict=True)]
        )
        found = text.join(labels, on=numbers, how="left", maintain_order="left")["y"]
        return found.cast(pl.Int64).fill_null(-1).to_numpy()[:, None]

    def unchanged(self, values: IntArray, drawn: NDArray[Any]) -> int:
        return int(np.count_nonzero(self._same[values] == drawn[:, 0]))

    def expected_unchanged(self, joint: Joint) -> float:
        p_xy = self.law.protocol.joint_with_values(joint)
        kept = np.flatnonzero(self._same >= 0)
        return float(p_xy[kept, self._same[kept]].sum())


@dataclass(frozen=True, eq=False)
class _Sets:
    name: str
    law: SetsLaw

    @property
    def rows_at_once(self) -> int:
        return max(1, HELD_AT_ONCE // self.law.inputs)

    def unchanged(self, values: IntArray, drawn: NDArray[Any]) -> int:
        alone: BoolArray = drawn.sum(axis=1) == 1
        return int(np.count_nonzero(drawn[alone, values[alone]]))

    def expected_unchanged(self, joint: Joint) -> float:
        return float(0.5 * (1 - self.law.t / UNIT) ** (joint.a - 1))


@dataclass(frozen=True, eq=False)
class Indicators(_Sets):
    """A 0/1 column per value."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={value}" for value in self.law.values)

    def columns(self, drawn: NDArray[Any]) -> list[pl.Series]:
        return [pl.Series(name, held.astype(np.uint8)) for name, held in zip(self.names, drawn.T, strict=True)]

    def drawn(self, rows: pl.DataFrame) -> NDArray[Any]:
        codes = {"0": 0, "1": 1}
        shown = [_text(rows[name]).replace_strict(codes, default=-1, return_dtype=pl.Int8) for name in self.names]
        return np.column_stack([codes.to_numpy() for codes in shown])


@dataclass(frozen=True, eq=False)
class Members(_Sets):
    """One column that lists the members of the set."""

    def refuse_ambiguous(self) -> None:
        """Refuse values that could not be told apart in a list."""
        ambiguous = sum(BETWEEN in value for value in self.law.values)
        if ambiguous:
            raise ColumnError(
                f"values must not contain '{BETWEEN}' where sets are listed in one column; {ambiguous} of "
                f"'{self.name}' do. Use --sets indicators."
            )

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @cached_property
    def _none(self) -> str:
        return unlike("(none)", self.law.values)

    def columns(self, drawn: NDArray[Any]) -> list[pl.Series]:
        row, value = np.nonzero(drawn)
        labels = pl.Series(self.law.values, dtype=pl.String)
        members = pl.DataFrame({"row": row, "member": labels.gather(value.astype(np.uint32))})
        sets = members.group_by("row").agg(pl.col("member").str.join(BETWEEN))
        rows = pl.DataFrame({"row": np.arange(len(drawn))})
        listed = rows.join(sets, on="row", how="left", maintain_order="left")["member"]
        return [listed.fill_null(self._none).rename(self.name)]

    def drawn(self, rows: pl.DataFrame) -> NDArray[Any]:
        text = _text(rows[self.name]).fill_null("")
        members = pl.DataFrame({"row": np.arange(len(text)), "member": text.str.split(BETWEEN)}).explode("member")
        members = members.filter(pl.col("member") != self._none)
        codes = members["member"].cast(pl.Enum(self.law.values), strict=False).to_physical().cast(pl.Int64)
        held = np.zeros((len(text), len(self.law.values)), dtype=np.int8)
        known = codes.is_not_null().to_numpy()
        row = members["row"].to_numpy()
        held[row[known], codes.drop_nulls().to_numpy()] = 1
        held[row[~known]] = -1
        return held


def _text(entries: pl.Series) -> pl.Series:
    return nameless(entries).cast(pl.String)


def _attribute_codes(sealed: SealedProtocol) -> list[tuple[Any, IntArray]]:
    domain = sealed.domain
    return [(at, domain.combos[:, j]) for j, at in enumerate(domain.attributes)]
