"""Results of an estimate: tables of shares with intervals, and notes on what could not be estimated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from privacyfunnel.arrays import FloatArray, special
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.formatting import MOST_ROWS, facts_html, table_html
from privacyfunnel.names import unique_label
from privacyfunnel.tables.readers.formats import POLARS

NUMBERS = ("share", "standard_error", "lower", "upper", "count", "rows")
CHANGES = ("before", "now", "change", "from", "to")
NO_VARIANCE = 1e-9  # beside the largest one: a direction that is known


def convert_rows(rows: pl.DataFrame, kind: str) -> Any:
    """A frame of polars as one of that kind."""
    from privacyfunnel.tables.readers.eager_frames import convert_frame

    if kind == POLARS:
        return rows
    return rows.to_arrow() if kind == "pyarrow" else convert_frame(rows, kind, None)


@dataclass(frozen=True, slots=True)
class Cell:
    """A share of the rows of a group, between `lower` and `upper` at the level asked for.

    Where the protocol does not identify the share there is no number for it: `share` and `standard_error` are `None`,
    and `lower` and `upper` are the smallest and largest share that fit what was published.
    """

    labels: tuple[str, ...]  # one per column of the table
    share: float | None
    standard_error: float | None
    lower: float
    upper: float

    @property
    def identified(self) -> bool:
        """Whether enough rows would tell the share exactly."""
        return self.share is not None


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that was made from shares, between `lower` and `upper` at the level asked for."""

    value: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class QuantileLabel:
    """The label in which a quantile lies, and the first and the last one in which it may."""

    label: str
    lower: str
    upper: str


@dataclass(frozen=True, slots=True)
class WaldTest:
    """A test of independence: the statistic is χ² with so many degrees of freedom if two columns are independent."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, slots=True, repr=False)
class ShareTable:
    """How the rows of a group divide over the values of one original column, or the combinations of several."""

    columns: tuple[str, ...]
    group: tuple[tuple[str, str], ...]  # kept columns and their labels; empty for the whole table
    rows: int
    cells: tuple[Cell, ...]
    sums: tuple[tuple[tuple[tuple[str, ...], ...], Cell], ...]  # cells that are identified only together, and their sum
    notes: tuple[str, ...]
    method: str | None = None  # by which it was estimated; None where it was not
    unbiased: FloatArray | None = field(default=None, compare=False, repr=False)  # linear estimates of all cells …
    covariance: FloatArray | None = field(default=None, compare=False, repr=False)  # … and their covariance

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __repr__(self) -> str:
        head = f"  {' & '.join(self.columns)}, {self.rows:,} rows{_format_group(self)}"
        lines = [f"    {' & '.join(cell.labels)}: {_format_cell(cell)}" for cell in self.cells[:MOST_ROWS]]
        more = len(self.cells) - MOST_ROWS
        return "\n".join([head, *lines, *([f"    and {more:,} more"] if more > 0 else [])])

    def _repr_html_(self) -> str:
        facts = [("rows", f"{self.rows:,}"), *(("note", note) for note in self.notes)]
        rows = [[*cell.labels, _format_cell(cell)] for cell in self.cells]
        bars = [cell.upper if cell.share is None else cell.share for cell in self.cells]
        head = facts_html(f"Shares of {' & '.join(self.columns)}{_format_group(self)}", facts)
        return head + table_html([*self.columns, "share"], rows, bars)

    def cell(self, *labels: str) -> Cell:
        """The cell of these labels."""
        return next(cell for cell in self.cells if cell.labels == labels)

    def sum(self, weights: Mapping[str, float], level: float = 0.95) -> Quantity:
        """Σ weight · share over the labels of a single column; labels that are not named have weight 0."""
        shares, covariance = self._linear_shares()
        known = [" & ".join(cell.labels) for cell in self.cells]
        strange = [label for label in weights if label not in known]
        if strange:
            raise ColumnError(f"Weights are for labels of {' & '.join(self.columns)}; '{strange[0]}' is none of them.")
        w = np.array([weights.get(label, 0.0) for label in known])
        return _quantity(float(w @ shares), float(w @ covariance @ w), level)

    def mean(self, scores: Mapping[str, float] | None = None, level: float = 0.95) -> Quantity:
        """The mean of a number that every label stands for, such as the middle of its bin; left out, labels are it."""
        if scores is None:
            known = [" & ".join(cell.labels) for cell in self.cells]
            scores = {label: float(label) for label in known if _is_number(label)}
        missing = [cell.labels for cell in self.cells if " & ".join(cell.labels) not in scores]
        if missing:
            raise ParameterError(f"A mean needs a number for every label; {len(missing)} have none. Give them all.")
        return self.sum(scores, level)

    def difference(self, first: str, second: str, level: float = 0.95) -> Quantity:
        """The share of one label less that of another."""
        return self.sum({first: 1.0, second: -1.0}, level)

    def ratio(self, first: str, second: str, level: float = 0.95) -> Quantity:
        """The share of one label over that of another, with Fieller's interval."""
        a, b, both = self.sum({first: 1.0}, level), self.sum({second: 1.0}, level), self.sum({first: 1.0, second: 1.0})
        z, va, vb = NormalDist().inv_cdf((1 + level) / 2), a.standard_error**2, b.standard_error**2
        vab = (both.standard_error**2 - va - vb) / 2
        if b.value**2 <= z**2 * vb:
            raise ParameterError(
                f"A ratio needs a divisor that is surely above 0; the share of '{second}' may be 0. Turn it over."
            )
        # The t with (a − t b)² ≤ z² (V_a − 2 t V_ab + t² V_b).
        p, q, r = b.value**2 - z**2 * vb, a.value * b.value - z**2 * vab, a.value**2 - z**2 * va
        half, t = math.sqrt(max(q * q - p * r, 0.0)) / p, a.value / b.value
        error = math.sqrt(max(va - 2 * t * vab + t * t * vb, 0.0)) / b.value
        return Quantity(t, error, q / p - half, q / p + half)

    def quantile(self, q: float, order: Sequence[str] = (), level: float = 0.95) -> QuantileLabel:
        """The label in which the q-quantile of a single column lies; labels rise as listed, or as `order` says.

        With F(l) the share up to a label, a label is left out where F(l) < q, or where F ≥ q already before it, is
        significant at (1 − level) / 2 (Woodruff).
        """
        shares, covariance = self._linear_shares()
        known = [" & ".join(cell.labels) for cell in self.cells]
        rising = list(order or known)
        if len(self.columns) > 1 or sorted(rising) != sorted(known):
            raise ParameterError(
                f"A quantile needs one column and an order of all of its {len(known)} labels, each once."
            )
        if not 0 < q < 1:
            raise ParameterError(f"A quantile lies between 0 and 1; asked was {q}. The median is 0.5.")
        rank = np.array([rising.index(label) for label in known])
        upto = (rank <= np.arange(len(rank))[:, None]).astype(np.float64)
        sums = upto @ shares
        half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(np.maximum(np.diag(upto @ covariance @ upto.T), 0.0))
        sums[-1], half[-1] = 1.0, 0.0
        below = np.flatnonzero(sums - half < q)
        places = (sums >= q).argmax(), (sums + half >= q).argmax(), below.max(initial=-1) + 1
        return QuantileLabel(*(rising[int(place)] for place in places))

    def _linear_shares(self) -> tuple[FloatArray, FloatArray]:
        if self.unbiased is None or self.covariance is None:
            raise ParameterError(
                f"Sums need unbiased estimates of all shares of {' & '.join(self.columns)}; the protocol does not "
                "identify them all, or they are too many."
            )
        return self.unbiased, self.covariance


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of original columns from a sanitised table."""

    tables: tuple[ShareTable, ...]
    level: float
    target: str  # table or population
    notes: tuple[str, ...]  # what holds for all tables
    kind: str = POLARS  # of the frame that was given, and of those that come back

    @property
    def methods(self) -> tuple[str, ...]:
        """By which tables were estimated, each once."""
        return tuple(dict.fromkeys(table.method for table in self.tables if table.method is not None))

    @property
    def method(self) -> str:
        """The same as one word, or as several with commas."""
        return ", ".join(self.methods)

    def __iter__(self) -> Iterator[ShareTable]:
        return iter(self.tables)

    def __repr__(self) -> str:
        lines = [f"Estimates of shares in {self.whose}, by {self.method}, {100 * self.level:g} % intervals"]
        return "\n".join([*lines, *map(repr, self.tables)])

    @property
    def whose(self) -> str:
        """What the intervals cover, in a few words."""
        return "the original table" if self.target == "table" else "the population"

    def _repr_html_(self) -> str:
        head = facts_html("Estimates", [("shares in", self.whose), ("intervals", f"{100 * self.level:g} %")])
        return head + "".join(table._repr_html_() for table in self.tables)

    def __getitem__(self, columns: str | tuple[str, ...]) -> ShareTable:
        """The table of a column, or of several, in all rows."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        for table in self.tables:
            if table.columns == names:
                return table
        known = ", ".join(" & ".join(table.columns) for table in self.tables)
        raise ColumnError(
            f"There is no table of {' & '.join(names)}; there are those of {known}. Ask for it by columns=."
        )

    def table(self, *columns: str, group: tuple[str, ...] = ()) -> ShareTable:
        """The table of these columns in the group with these labels."""
        return next(
            table
            for table in self.tables
            if table.columns == columns and tuple(label for _, label in table.group) == group
        )

    def independence(self, first: str, second: str) -> WaldTest:
        r"""Wald's test that two columns are independent in the population, from the covariance of their cross table.

        :math:`h = \pi_{ij} - \pi_{i\cdot} \pi_{\cdot j}` is 0 then, and with the covariance C of its estimate
        :math:`h^\top C^+ h` is χ² with rank C degrees of freedom. χ² on estimated or published counts is not.
        """
        if self.target != "population":
            raise ParameterError(
                "Independence is tested in a population: the rows of a table are hardly ever so exactly. Estimate with "
                "the population as the target."
            )
        table = self[first, second]
        shares, covariance = table._linear_shares()
        shape = tuple(len({cell.labels[k] for cell in table.cells}) for k in (0, 1))
        if len(shares) < math.prod(shape):
            raise ParameterError(
                f"A test of independence needs all {math.prod(shape)} combinations of {first} and {second}; the "
                f"protocol lists {len(shares)}. Coarser values, or a published model over all of them, would do."
            )
        rows = np.kron(np.eye(shape[0]), np.ones(shape[1]))
        columns = np.kron(np.ones(shape[0]), np.eye(shape[1]))
        by_row, by_column = rows @ shares, columns @ shares
        off = shares - np.outer(by_row, by_column).ravel()
        of_row, of_column = rows.T @ by_row, columns.T @ by_column
        slopes = np.eye(len(shares)) - of_column[:, None] * (rows.T @ rows) - of_row[:, None] * (columns.T @ columns)
        values, vectors = np.linalg.eigh(slopes @ covariance @ slopes.T)
        most = (shape[0] - 1) * (shape[1] - 1)
        kept = np.flatnonzero(values > NO_VARIANCE * values[-1])[-most:]
        statistic = float(((vectors[:, kept].T @ off) ** 2 / values[kept]).sum())
        return WaldTest(statistic, len(kept), float(special.chdtrc(len(kept), statistic)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "method": self.method,
            "level": self.level,
            "target": self.target,
            "notes": list(self.notes),
            "tables": [
                {
                    "columns": list(table.columns),
                    "group": dict(table.group),
                    "rows": table.rows,
                    "method": table.method,
                    "cells": [_cell_to_dict(cell) for cell in table.cells],
                    "sums": [
                        {**_cell_to_dict(cell), "labels": [list(labels) for labels in members]}
                        for members, cell in table.sums
                    ],
                    "notes": list(table.notes),
                }
                for table in self.tables
            ],
        }

    def to_tidy(self) -> Any:
        """One line per value: column, value, share, from, to; shares are those of the rows of its group.

        Values of several columns stand together, joined by ` & `; those of a group in a column of their own.
        """
        rows = [(name, {"share": c.share, "from": c.lower, "to": c.upper}) for name, _, c in self._named_cells()]
        return self._list_lines(rows, ("share", "from", "to"))

    def _named_cells(self) -> Iterator[tuple[dict[str, str], Any, Cell]]:
        """Every cell with its names, and with what tells it from others."""
        for table in self.tables:
            for cell in table:
                names = {"column": " & ".join(table.columns), "value": " & ".join(cell.labels)}
                yield {**dict(table.group), **names}, (table.group, table.columns, cell.labels), cell

    def _list_lines(self, rows: list[tuple[dict[str, str], dict[str, float | None]]], numbers: Sequence[str]) -> Any:
        groups = list(dict.fromkeys(name for table in self.tables for name, _ in table.group))
        text = dict.fromkeys([*groups, "column", "value"], pl.String)
        lines = [{**names, **values} for names, values in rows]
        return convert_rows(pl.DataFrame(lines, schema={**text, **dict.fromkeys(numbers, pl.Float64)}), self.kind)

    def changes_since(self, before: Estimates) -> Any:
        """One line per value: its share before and now, the change, and between what it lies: from, to.

        Both tables were drawn independently. Where unchanged people were drawn alike, intervals are wider than needed.
        """
        z = NormalDist().inv_cdf((1 + self.level) / 2)
        known, changed = {key: cell for _, key, cell in before._named_cells()}, []
        for names, key, cell in self._named_cells():
            old = known.get(key)
            line: dict[str, float | None] = {"before": None if old is None else old.share, "now": cell.share}
            if old is not None and old.share is not None and cell.share is not None:
                change = cell.share - old.share
                half = z * math.hypot(old.standard_error or 0.0, cell.standard_error or 0.0)
                line |= {"change": change, "from": change - half, "to": change + half}
            changed.append((names, line))
        return self._list_lines(changed, CHANGES)

    def to_pandas(self) -> Any:
        """`to_frame` for pandas."""
        return replace(self, kind="pandas").to_frame()

    def to_frame(self) -> Any:
        """One line per cell: kept columns, original columns, share, standard error, interval, estimated count, rows.

        A frame of pandas or pyarrow if the sanitised table was one, else of polars.
        """
        columns = list(
            dict.fromkeys(
                name for table in self.tables for name in (*(name for name, _ in table.group), *table.columns)
            )
        )
        text: dict[str, list[str | None]] = {name: [] for name in columns}
        numbers = []
        for table in self.tables:
            for cell in table.cells:
                labels = {**dict(table.group), **dict(zip(table.columns, cell.labels, strict=True))}
                for name in columns:
                    text[name].append(labels.get(name))
                count = None if cell.share is None else cell.share * table.rows
                numbers.append((cell.share, cell.standard_error, cell.lower, cell.upper, count, table.rows))
        kinds = {unique_label(name, columns): pl.Int64 if name == "rows" else pl.Float64 for name in NUMBERS}
        frame = pl.DataFrame(numbers, schema=kinds, orient="row")
        return convert_rows(pl.DataFrame(text, schema=dict.fromkeys(columns, pl.String)).hstack(frame), self.kind)


def _is_number(label: str) -> bool:
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False


def _quantity(value: float, variance: float, level: float) -> Quantity:
    error = math.sqrt(max(variance, 0.0))
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return Quantity(value, error, value - half, value + half)


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    return {
        "labels": list(cell.labels),
        "share": cell.share,
        "standard_error": cell.standard_error,
        "lower": cell.lower,
        "upper": cell.upper,
        "identified": cell.identified,
    }


def _format_group(table: ShareTable) -> str:
    return "".join(f", {column} = {label}" for column, label in table.group)


def _format_cell(cell: Cell) -> str:
    ends = f"{100 * cell.lower:.2f} to {100 * cell.upper:.2f} %"
    return f"not told, {ends}" if cell.share is None else f"{100 * cell.share:.2f} % ({ends})"
