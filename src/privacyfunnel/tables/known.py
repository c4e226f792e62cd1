"""Tables read in a domain that is known: every entry becomes the code of a label that stands in a file.

An entry is the label with its text. Programs write one value in several ways: a whole number becomes `1.0` where its
column has gaps, a date gets an hour, truth is `True` here and `true` there. So an entry whose text is no label is the
label that means the same, if exactly one does. `01` is a code, and means nothing but itself. What is then still without
a label is strange.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np
import polars as pl

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import TableError
from privacyfunnel.tables.bins import Bins, bin_labels
from privacyfunnel.tables.columns import Coding, above_nulls, as_numbers, as_plain_number, as_text, bin_numbers
from privacyfunnel.tables.encoding import Encoding, column_coders, encoded
from privacyfunnel.tables.files import Table
from privacyfunnel.tables.identity import RowIds
from privacyfunnel.tables.merging import Merge, by_column
from privacyfunnel.tables.names import checked_columns
from privacyfunnel.tables.prepared import prepared, prepared_for
from privacyfunnel.tables.recalling import Codes, Recall
from privacyfunnel.tables.variables import Strangers, Variable

PROTOCOL = "the protocol"  # that knows the values of a table, unless a file lists them
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?)?", re.ASCII)


class KnownCoder:
    """Entries that must belong to a known domain: the provisional code is the final one plus 1, or 0 if strange."""

    def __init__(self, coding: Coding) -> None:
        self.column = coding.column
        self.size = len(coding.labels) + 1
        self._coding = coding
        self._kind = pl.Enum(coding.labels)
        self._rest = 0 if coding.rest is None else coding.rest + 1
        self._missing = self._rest if coding.missing is None else coding.missing + 1
        self._meant: dict[str, int] = {}
        for code, label in enumerate(coding.labels, 1):
            means = meaning(label)
            if means is not None:
                self._meant[means] = 0 if means in self._meant else code
        self._recall = Recall(self._coded)

    def codes(self, entries: pl.Series) -> Codes:
        return self._recall.codes(entries)

    def _coded(self, entries: pl.Series) -> Codes:
        coding = self._coding
        codes: Codes
        if coding.edges:
            numbers, _ = as_numbers(entries)
            place = {label: code for code, label in enumerate(coding.labels, 1)}
            final = np.array([0, *(place.get(name, 0) for name in bin_labels(coding.edges))], dtype=np.uint32)
            codes = final[bin_numbers(numbers, coding.edges)]
            gaps = numbers.is_null().to_numpy()
            if gaps.any():  # what is no number is not missing but strange
                codes[gaps & _missing(entries)] = self._missing
            return codes
        text = as_text(entries)
        codes = above_nulls(text.cast(self._kind, strict=False).to_physical().cast(pl.UInt32))
        lost = codes == 0
        if lost.any():
            gone = (text.is_null() | (text == "")).to_numpy()
            codes[gone] = self._missing
            lost &= ~gone
        if lost.any():
            codes[lost] = self._understood(text.filter(pl.Series(lost)))
        return codes

    def coding(self, used: Iterable[int]) -> tuple[Coding, IntArray]:
        return self._coding, np.arange(-1, self.size - 1, dtype=np.int64)

    def _understood(self, texts: pl.Series) -> Codes:
        """The codes of texts that are no labels: of the label that means the same, or of the rest."""
        different = texts.unique()
        found = [self._meant.get(meaning(text) or "") or self._rest for text in different.to_list()]
        codes: Codes = texts.replace_strict(different, pl.Series(found, dtype=pl.UInt32)).to_numpy()
        return codes


def meaning(text: str) -> str | None:
    """What a text says however it is written: a number, a truth value, a day or a time; None for all others.

    >>> [meaning(text) for text in ("1", "1.0", "10e-1", "01", "True", "2024-05-01T00:00:00.000", "2024-05-01")]
    ['1e0', '1e0', '1e0', None, 'true', '2024-05-01', '2024-05-01']
    """
    text = text.strip()
    if as_plain_number(text) is not None:
        sign, digits, exponent = Decimal(text).as_tuple()
        whole = "".join(map(str, digits)).lstrip("0")
        kept = whole.rstrip("0")
        assert isinstance(exponent, int)  # it is a number
        return f"{'-' if sign and kept else ''}{kept}e{exponent + len(whole) - len(kept)}" if kept else "0"
    if text.casefold() in {"true", "false"}:
        return text.casefold()
    moment = _TIME.fullmatch(text)
    if moment is None:
        return None
    day, minute, second, part = moment.groups()
    hour = f"{minute or '00:00'}:{second or '00'}.{(part or '').rstrip('0')}".rstrip(".")
    return day if hour == "00:00:00" else f"{day} {hour}"


def encode_against(
    table: Table,
    *,
    secret: Variable | None = None,
    published: Variable | None = None,
    known_by: str = PROTOCOL,
    keep: Sequence[str] = (),
    ids: RowIds | None = None,
) -> Encoding:
    """Read `table` once, its values being known: the counts have a row and a column for each combination that is known.

    Raises
    ------
    TableError
        If rows hold a value or a combination that is not known. It says how many.
    """
    nothing = Variable((), np.zeros((1, 0), dtype=np.int64))
    secret, published = secret or nothing, published or nothing
    columns = (*secret.columns, *published.columns)
    checked_columns(columns, table.columns, "known")
    kept = [column for column in checked_columns(keep, table.columns, "kept") if column not in columns]
    table = prepared_for(table, (*secret.codings, *published.codings))
    coders = [KnownCoder(coding) for coding in (*secret.codings, *published.codings)]
    found = encoded(table, coders, len(secret.codings), secret.combos, published.combos, keep=kept, ids=ids)
    refuse_strange(found.strangers, published.columns, known_by)
    return found


def encode_with(
    table: Table,
    published: Variable,
    *,
    secret: Sequence[str] = (),
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
    keep: Sequence[str] = (),
    ids: RowIds | None = None,
) -> Encoding:
    """Read `table` once: what is published is known; the secret, if any column is named, is read as it comes.

    Rows that hold what is not known have the position −1, and are in no count; `Encoding.strangers` says how many.
    `bins` and `merges` are the secret's.
    """
    checked_columns([*secret, *published.columns], table.columns, "known")
    table = prepared_for(prepared(table, bins), published.codings)
    free = column_coders(table, secret, bins)
    known = [KnownCoder(coding) for coding in published.codings]
    rules = by_column(merges, secret, ())
    kept = checked_columns(keep, table.columns, "kept")
    return encoded(table, [*free, *known], len(free), None, published.combos, rules, kept, ids=ids)


def refuse_strange(found: Strangers, published: Sequence[str], known_by: str = PROTOCOL) -> None:
    """Raise if rows hold what is not known."""
    for column, rows in found.columns.items():
        raise TableError(
            f"column '{column}' must hold only values {known_by} knows; {rows} rows hold others. "
            f"{instead_of_strangers(known_by)}"
        )
    if found.rows:
        names = " & ".join(published)
        raise TableError(
            f"columns {names} must hold only combinations {known_by} knows; {found.rows} rows hold others. "
            f"{instead_of_strangers(known_by)}"
        )


def instead_of_strangers(known_by: str) -> str:
    """What to do about values that are not known."""
    if known_by == PROTOCOL:
        return "Use the table and bins the protocol was made for."
    return "Add them there, or clear those entries."


def _missing(entries: pl.Series) -> BoolArray:
    """Which entries are not there: what is text and no number is there, and strange."""
    if entries.dtype.is_numeric() or entries.dtype == pl.Null:
        return np.ones(len(entries), dtype=bool)
    text = as_text(entries).str.strip_chars()
    strange: BoolArray = (text.cast(pl.Float64, strict=False).is_null() & text.is_not_null() & (text != "")).to_numpy()
    return ~strange
