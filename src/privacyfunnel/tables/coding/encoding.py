"""Encoding: a table, or a table of counts, becomes counts n(s, x) and the codes of every row.

A table is read once to count. Its codes are kept in the smallest integers that hold them, up to 256 MB; a larger table
is read again when its rows are drawn, and so are columns that are kept. Both readings are fingerprinted: a table that
changed between them is refused. A table of counts has a row per combination of values and a column of counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, freeze
from privacyfunnel.errors import ColumnError, ParameterError, SizeError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.names import validate_columns, validate_roles
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.coders import (
    BinCoder,
    Coder,
    Codes,
    LabelCoder,
    as_numbers,
)
from privacyfunnel.tables.coding.contingency import (
    CellCounter,
    CellIndex,
    Contingency,
    UnknownRows,
    Variable,
    count_variable,
    recode_positions,
)
from privacyfunnel.tables.coding.merges import Merge, rules_by_column
from privacyfunnel.tables.coding.normalisation import normalise_bins
from privacyfunnel.tables.coding.quantiles import find_edges
from privacyfunnel.tables.coding.row_hashes import Fingerprint, RowIds
from privacyfunnel.tables.readers.column_selection import categories_to_text, select_columns
from privacyfunnel.tables.readers.formats import NumberFormat, Table

KEPT_BYTES = 1 << 28  # of codes that are kept between the two readings of a table
CHUNK_ROWS = 1 << 18  # rows that are coded together
MOST_CELLS = 1 << 25  # of a table of counts: 256 MB


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Rows `start`, `start + 1`, … of a table."""

    start: int
    secret: IntArray  # position in Contingency.secret.combos, −1 where it is not known
    published: IntArray  # position in Contingency.published.combos, or codes of a record; −1 where it is not known
    kept: pl.DataFrame | None  # the columns to pass through, if any


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """A table that was read once: its counts, and its rows as codes, in order, as often as needed."""

    table: Table
    rows: int
    contingency: Contingency
    _coders: tuple[Coder, ...]  # of the secret columns, then of the published ones
    _sizes: tuple[int, ...]
    _secret: CellIndex
    _published: CellIndex
    _codes: tuple[Codes, ...] | None  # a column of provisional codes per coder, if they fit into memory
    _fingerprint: Fingerprint  # of the codes if they do not, and of the columns that may be kept
    unknown_rows: UnknownRows = field(default_factory=UnknownRows)  # rows that hold what is not known: in no count

    def recode(self, published: Variable) -> "Encoding":
        """The same rows by other labels of the published columns, each of which has one."""
        becomes = recode_positions(self.contingency.published, published)
        return replace(self, contingency=self.contingency.recode(published), _published=self._published.map(becomes))

    def chunks(self, keep: Sequence[str] = (), *, records: bool = False) -> Iterator[Chunk]:
        """The rows in order, with the columns `keep` as they are in the table; combinations by position or as `records`
        of codes, of which no list is looked up."""
        keep = validate_columns(keep, self.table.columns, "kept")
        used = [coder.column for coder in self._coders]
        for column in keep:
            if column in used:
                raise ColumnError(
                    f"column '{column}' cannot be kept as it is and be secret or published too. Name it once."
                )
            if column not in self._fingerprint:
                raise ColumnError(f"column '{column}' must be named when the table is counted, to be kept; it was not.")
        start, becomes = 0, self._published.column_codes(self.contingency.combos) if records else None
        for kept, codes, height in self._pieces(used, list(keep)):
            if start + height > self.rows:
                raise self._change_error()
            yield self._chunk(start, codes, height, kept, becomes)
            start += height
        if start != self.rows:
            raise self._change_error()

    def _pieces(self, used: list[str], keep: list[str]) -> Iterator[tuple[pl.DataFrame | None, list[Codes], int]]:
        """What pass two walks over: the codes in memory, the file, or both side by side."""
        if self._codes is not None and not keep:
            for start in range(0, self.rows, CHUNK_ROWS):
                stop = min(start + CHUNK_ROWS, self.rows)
                yield None, [column[start:stop] for column in self._codes], stop - start
            return
        read = [*used, *keep] if self._codes is None else keep
        again = self._fingerprint.empty_copy(read)
        start = 0
        for batch in self.table.batches(read):
            if self._codes is None:
                codes = [coder.codes(batch[coder.column]) for coder in self._coders]
                if tuple(coder.size for coder in self._coders) != self._sizes:
                    raise self._change_error()
                again.add(dict(zip(used, codes, strict=True)), start)
            else:
                codes = [column[start : start + batch.height] for column in self._codes]
            again.add({name: batch[name] for name in keep}, start)
            yield categories_to_text(select_columns(batch, keep)) if keep else None, codes, batch.height
            start += batch.height
        if not again.confirms(self._fingerprint):
            raise self._change_error()

    def _chunk(
        self,
        start: int,
        codes: list[Codes],
        height: int,
        kept: pl.DataFrame | None,
        becomes: Sequence[NDArray[np.int32]] | None,
    ) -> Chunk:
        split = len(self.contingency.secret.codings)
        secret = self._secret.positions(codes[:split], height)
        if becomes is None:
            published: NDArray[Any] = self._published.positions(codes[split:], height)
        else:
            published = np.stack([new[column] for new, column in zip(becomes, codes[split:], strict=True)]).T
        if not self.unknown_rows.rows and min(secret.min(initial=0), published.min(initial=0)) < 0:
            raise self._change_error()
        return Chunk(start, secret, published, kept)

    def _change_error(self) -> TableError:
        return TableError(f"{self.table.name} must not change while it is read; it did. Run again when it is at rest.")


def encode(
    table: Table,
    *,
    secret: Sequence[str],
    publish: Sequence[str],
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
    keep: Sequence[str] = (),
    ids: RowIds | None = None,
) -> Encoding:
    """Read `table` once: count n(s, x), the `secret` columns together being s and the `publish` columns x.

    `merges` say which values are read as one. Columns to `keep` with the rows must be named now, so that it is seen if
    they are others when they are read again; `ids` looks at the one of them that tells rows apart.
    """
    secret, publish = validate_roles(secret, publish, table.columns)
    table = normalise_bins(table, bins)
    coders = column_coders(table, (*secret, *publish), bins)
    kept = [column for column in validate_columns(keep, table.columns, "kept") if column not in (*secret, *publish)]
    return encode_with_coders(
        table, coders, len(secret), None, None, rules_by_column(merges, secret, publish), kept, ids=ids
    )


def column_coders(table: Table, columns: Sequence[str], bins: Sequence[Bins]) -> list[Coder]:
    """A coder per column of a prepared table. Edges from the data cost a reading of the columns concerned."""
    validate_columns([binned.column for binned in bins], table.columns, "binned")
    rules = {binned.column: binned for binned in bins}
    for column in rules:
        if column not in columns:
            raise ColumnError(
                f"column '{column}' is binned but neither secret nor published. Name it there, or drop its bins."
            )
    edges = find_edges(table, bins)
    return [_coder(column, rules.get(column), edges.get(column), table.numbers) for column in columns]


def _coder(column: str, rule: Bins | None, edges: tuple[float, ...] | None, numbers: NumberFormat) -> Coder:
    if edges is not None:
        return BinCoder(column, edges)
    return LabelCoder(column, keep_numbers=rule is not None, how=None if rule is None else rule.how, numbers=numbers)


def encode_with_coders(
    table: Table,
    coders: Sequence[Coder],
    split: int,
    secrets: IntArray | None,
    values: IntArray | None,
    merges: Mapping[str, Merge] | None = None,
    keep: Sequence[str] = (),
    *,
    ids: RowIds | None = None,
) -> Encoding:
    """The table read once with these coders, the first `split` of which are the secret's.

    `secrets` and `values` are the combinations that are known, where they are. Rows that hold what is
    not known are counted as strangers.
    """
    rows, used = 0, [coder.column for coder in coders]
    fingerprint = Fingerprint([*used, *keep])
    tally, kept = CellCounter(len(coders)), _CodeBuffer(used, fingerprint)
    with _parallel_coder(coders) as coded:
        for batch in table.batches([*used, *keep]):
            codes = coded(batch)
            sizes = [coder.size for coder in coders]
            tally.add(codes, sizes, batch.height)
            kept.add(codes, sizes, rows)
            fingerprint.add({name: batch[name] for name in keep}, rows)
            if ids is not None:
                ids.add(batch[ids.column])
            rows += batch.height
    if ids is not None:
        ids.check(table)
    contingency, (secret, published), strangers = build_contingency(coders, split, tally, secrets, values, merges)
    return Encoding(
        table,
        rows,
        contingency,
        tuple(coders),
        tuple(coder.size for coder in coders),
        secret,
        published,
        kept.columns(),
        fingerprint,
        strangers,
    )


@contextmanager
def _parallel_coder(coders: Sequence[Coder]) -> Iterator[Callable[[pl.DataFrame], list[Codes]]]:
    """What gives the codes of a batch, a thread for each column: polars looks them up without Python's lock."""
    with ThreadPoolExecutor(max(1, len(coders))) as threads:
        yield lambda batch: list(threads.map(lambda coder: coder.codes(batch[coder.column]), coders))


def build_contingency(
    coders: Sequence[Coder],
    split: int,
    tally: CellCounter,
    secrets: IntArray | None = None,
    values: IntArray | None = None,
    merges: Mapping[str, Merge] | None = None,
) -> tuple[Contingency, tuple[CellIndex, CellIndex], UnknownRows]:
    """n(s, x) of what was tallied, where the combinations of both are found, and the rows that are in no count."""
    cells, counts = tally.cells()
    secret, secret_index, s, lost = count_variable(coders[:split], cells[:, :split], counts, secrets, merges)
    published, published_index, x, gone = count_variable(coders[split:], cells[:, split:], counts, values, merges)
    shape = len(secret.combos), len(published.combos)
    if shape[0] * shape[1] > MOST_CELLS:
        raise SizeError(
            f"at most {MOST_CELLS} pairs of a secret and a published combination can be counted; there are "
            f"{shape[0]} × {shape[1]}. Publish fewer columns, or use coarser bins."
        )
    weights = np.zeros(shape, dtype=np.int64)
    good = (s >= 0) & (x >= 0)
    np.add.at(weights, (s[good], x[good]), counts[good])
    strangers = lost.combine(gone, int(counts[~good].sum()))
    return Contingency(freeze(weights), secret, published), (secret_index, published_index), strangers


class _CodeBuffer:
    """Columns of provisional codes, kept as long as they are small; then only their fingerprint is."""

    def __init__(self, names: Sequence[str], fingerprint: Fingerprint) -> None:
        self._names, self._fingerprint = names, fingerprint
        self._parts: list[list[Codes]] | None = [[] for _ in names]
        self._bytes = 0

    def add(self, codes: Sequence[Codes], sizes: Sequence[int], start: int) -> None:
        if self._parts is None:
            self._add_fingerprint(codes, start)
            return
        for parts, column, size in zip(self._parts, codes, sizes, strict=True):
            narrow = column.astype(np.min_scalar_type(size - 1))
            parts.append(narrow)
            self._bytes += narrow.nbytes
        if self._bytes > KEPT_BYTES:
            start = 0
            for batch in zip(*self._parts, strict=True):
                self._add_fingerprint(batch, start)
                start += len(batch[0])
            self._parts = None

    def _add_fingerprint(self, codes: Sequence[Codes], start: int) -> None:
        self._fingerprint.add(dict(zip(self._names, codes, strict=True)), start)

    def columns(self) -> tuple[Codes, ...] | None:
        """All that was kept, once: a column's parts go as it is put together, so that memory holds them once."""
        if self._parts is None:
            return None
        return tuple(np.concatenate(self._parts.pop(0)) for _ in self._names)


MOST_ROWS = 2**53  # up to which every whole number is a float


def contingency_from_counts(
    table: Table,
    counts: str,
    *,
    secret: Sequence[str],
    publish: Sequence[str],
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> Contingency:
    """n(s, x) of a table of counts, those of one combination added up."""
    secret = validate_columns(secret, table.columns, "secret")
    publish = validate_columns(publish, table.columns, "published")
    validate_columns([counts], table.columns, "counted")
    twice = [name for name in (*secret, counts) if name in publish or (name == counts and name in secret)]
    if twice:
        raise ColumnError(f"column '{twice[0]}' cannot be two of secret, published and counts. Name it once.")
    by_rows = [binned.column for binned in bins if binned.quantiles is not None]
    if by_rows:
        raise ParameterError(
            f"quantiles of '{by_rows[0]}' are found from rows; this is a table of counts. Give edges, such as "
            f"{hint('bins', f'{by_rows[0]}=0,10,20')}."
        )
    table = normalise_bins(table, bins)
    coders = column_coders(table, (*secret, *publish), bins)
    tally, total = CellCounter(len(coders)), 0
    for batch in table.batches([*secret, *publish, counts]):
        mine = _parse_counts(batch[counts], table.name)
        tally.add_counts([coder.codes(batch[coder.column]) for coder in coders], mine)
        total += int(mine.sum())
    if not 0 < total < MOST_ROWS:
        raise TableError(f"{table.name} must count between 1 and 2^53 rows; it counts {total:,}. Correct it.")
    return build_contingency(coders, len(secret), tally, merges=rules_by_column(merges, secret, publish))[0]


def _parse_counts(entries: pl.Series, table: str) -> IntArray:
    numbers, _ = as_numbers(entries)
    found = numbers.to_numpy()
    whole = np.isfinite(found) & (found >= 0) & (found < MOST_ROWS) & (found == np.floor(found))
    if not whole.all():
        raise TableError(
            f"the counts of {table} must be whole numbers of at least 0; {int((~whole).sum()):,} of {len(found):,} are "
            "not. Correct them."
        )
    return found.astype(np.int64)
