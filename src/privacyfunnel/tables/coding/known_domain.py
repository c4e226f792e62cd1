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
from privacyfunnel.names import current_label, validate_columns
from privacyfunnel.tables.coding.bins import Bins, bin_labels
from privacyfunnel.tables.coding.coders import (
    CodeCache,
    Codes,
    Coding,
    as_numbers,
    as_text,
    bin_numbers,
    codes_above_null,
    parse_plain_number,
)
from privacyfunnel.tables.coding.contingency import UnknownRows, Variable
from privacyfunnel.tables.coding.encoding import Encoding, column_coders, encode_with_coders
from privacyfunnel.tables.coding.merges import Merge, rules_by_column
from privacyfunnel.tables.coding.normalisation import normalise_bins, normalise_codings
from privacyfunnel.tables.coding.row_hashes import RowIds
from privacyfunnel.tables.readers.formats import Table

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
        self._code_by_meaning: dict[str, int] = {}
        for code, label in enumerate(coding.labels, 1):
            means = meaning(label) or current_label(label)
            self._code_by_meaning[means] = 0 if means in self._code_by_meaning else code
        self._recall = CodeCache(self._encode)

    def codes(self, entries: pl.Series) -> Codes:
        return self._recall.codes(entries)

    def _encode(self, entries: pl.Series) -> Codes:
        coding = self._coding
        codes: Codes
        if coding.edges:
            numbers, _ = as_numbers(entries)
            place = {current_label(label): code for code, label in enumerate(coding.labels, 1)}
            final = np.array([0, *(place.get(name, 0) for name in bin_labels(coding.edges))], dtype=np.uint32)
            codes = final[bin_numbers(numbers, coding.edges)]
            gaps = numbers.is_null().to_numpy()
            if gaps.any():  # what is no number is not missing but strange
                codes[gaps & _missing_mask(entries)] = self._missing
            return codes
        text = as_text(entries)
        codes = codes_above_null(text.cast(self._kind, strict=False).to_physical().cast(pl.UInt32))
        lost = codes == 0
        if lost.any():
            gone = (text.is_null() | (text == "")).to_numpy()
            codes[gone] = self._missing
            lost &= ~gone
        if lost.any():
            codes[lost] = self._match_meanings(text.filter(pl.Series(lost)))
        return codes

    def coding(self, used: Iterable[int]) -> tuple[Coding, IntArray]:
        return self._coding, np.arange(-1, self.size - 1, dtype=np.int64)

    def _match_meanings(self, texts: pl.Series) -> Codes:
        """The codes of texts that are no labels: of the label that means the same, or of the rest."""
        different = texts.unique()
        found = [self._code_by_meaning.get(meaning(text) or text) or self._rest for text in different.to_list()]
        codes: Codes = texts.replace_strict(different, pl.Series(found, dtype=pl.UInt32)).to_numpy()
        return codes


def meaning(text: str) -> str | None:
    """What a text says however it is written: a number, a truth value, a day or a time; None for all others.

    >>> [meaning(text) for text in ("1", "1.0", "10e-1", "01", "True", "2024-05-01T00:00:00.000", "2024-05-01")]
    ['1e0', '1e0', '1e0', None, 'true', '2024-05-01', '2024-05-01']
    """
    text = text.strip()
    if parse_plain_number(text) is not None:
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


def encode_known(
    table: Table,
    *,
    secret: Variable | None = None,
    published: Variable | None = None,
    domain_name: str = PROTOCOL,
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
    validate_columns(columns, table.columns, "known")
    kept = [column for column in validate_columns(keep, table.columns, "kept") if column not in columns]
    table = normalise_codings(table, (*secret.codings, *published.codings))
    coders = [KnownCoder(coding) for coding in (*secret.codings, *published.codings)]
    known = published.combos if len(published.combos) else None
    found = encode_with_coders(table, coders, len(secret.codings), secret.combos, known, keep=kept, ids=ids)
    refuse_unknown(found.unknown_rows, published.columns, domain_name)
    return found


def encode_published(
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
    validate_columns([*secret, *published.columns], table.columns, "known")
    table = normalise_codings(normalise_bins(table, bins), published.codings)
    free = column_coders(table, secret, bins)
    known = [KnownCoder(coding) for coding in published.codings]
    rules = rules_by_column(merges, secret, ())
    kept = validate_columns(keep, table.columns, "kept")
    combos = published.combos if len(published.combos) else None
    return encode_with_coders(table, [*free, *known], len(free), None, combos, rules, kept, ids=ids)


def refuse_unknown(found: UnknownRows, published: Sequence[str], domain_name: str = PROTOCOL) -> None:
    """Raise if rows hold what is not known."""
    for column, rows in found.columns.items():
        raise TableError(
            f"column '{column}' must hold only values {domain_name} knows; {rows} rows hold others. "
            f"{unknown_value_hint(domain_name)}"
        )
    if found.rows:
        names = " & ".join(published)
        raise TableError(
            f"columns {names} must hold only combinations {domain_name} knows; {found.rows} rows hold others. "
            f"{unknown_value_hint(domain_name)}"
        )


def unknown_value_hint(domain_name: str) -> str:
    """What to do about values that are not known."""
    if domain_name == PROTOCOL:
        return "Use the table and bins the protocol was made for."
    return "Add them there, or clear those entries."


def _missing_mask(entries: pl.Series) -> BoolArray:
    """Which entries are not there: what is text and no number is there, and strange."""
    if entries.dtype.is_numeric() or entries.dtype == pl.Null:
        return np.ones(len(entries), dtype=bool)
    text = as_text(entries).str.strip_chars()
    strange: BoolArray = (text.cast(pl.Float64, strict=False).is_null() & text.is_not_null() & (text != "")).to_numpy()
    return ~strange
