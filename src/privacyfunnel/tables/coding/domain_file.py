"""domain.json: the labels and bins of columns that are public whatever the table holds.

A private design takes only noisy counts from the table, so the domain must be known beforehand. The file lists, for
each column, its labels or the edges of its bins, and whether an entry may be missing. The command `scan` drafts one
from a table. A draft quotes the table: its owner must remove every label that is not public knowledge before using it.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.errors import ColumnError, ParameterError, SizeError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.names import MISSING, format_names, suggest_name, unique_label
from privacyfunnel.tables.coding.bins import Bins, Grouping, bin_labels, example_edges
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Contingency, Variable
from privacyfunnel.tables.coding.encoding import Encoding, column_coders
from privacyfunnel.tables.coding.exploration import numeric_columns
from privacyfunnel.tables.coding.grouping_rules import parse_grouping
from privacyfunnel.tables.coding.known_domain import encode_known
from privacyfunnel.tables.coding.normalisation import normalise_bins
from privacyfunnel.tables.coding.quantiles import number_ranges
from privacyfunnel.tables.coding.row_hashes import RowIds
from privacyfunnel.tables.readers.formats import Table

MOST_DRAFT_LABELS = 1000  # of a column in a draft
MOST_LABELS_OF_ONE = 20  # labels that may each be held by one row: small tables have such columns
Value = tuple[str, str]  # a column and one of its labels
FORMAT = "privacyfunnel domain"
VERSION = 1
MOST_COMBINATIONS = 1 << 14  # of the labels of several columns: all of them are inputs, whether they occur or not


@dataclass(frozen=True, slots=True)
class DomainFile:
    """What columns may hold, by name."""

    codings: Mapping[str, Coding]
    name: str = "the domain"
    impossible: tuple[tuple[Value, ...], ...] = ()  # values that nobody has together

    def variable(self, columns: Sequence[str], *, unlisted: bool = False) -> Variable:
        """These columns read as one, with every combination of their labels, unless they are `unlisted`."""
        missing = [column for column in columns if column not in self.codings]
        if missing:
            raise ColumnError(
                f"{self.name} must list every secret and published column; '{missing[0]}' is not among its "
                f"{len(self.codings)}.{suggest_name(missing[0], list(self.codings))} Add it there."
            )
        codings = tuple(self.codings[column] for column in columns)
        size = math.prod(len(coding.labels) for coding in codings)
        if unlisted:
            return Variable(codings, np.zeros((0, len(codings)), dtype=np.int64))
        if size > MOST_COMBINATIONS:
            raise SizeError(
                f"a domain may have at most {MOST_COMBINATIONS:,} combinations of labels; {' & '.join(columns)} have "
                f"{size:,}. Publish fewer columns, or use coarser bins."
            )
        combos = list(itertools.product(*(range(len(coding.labels)) for coding in codings)))
        return Variable(codings, np.array(combos, dtype=np.int64).reshape(size, len(codings)))

    def encode(
        self,
        table: Table,
        *,
        secret: Sequence[str],
        publish: Sequence[str],
        keep: Sequence[str] = (),
        ids: RowIds | None = None,
        unlisted: bool = False,
    ) -> Encoding:
        """The table counted in this domain: all combinations of its labels, or those that occur where `unlisted`.

        Raises
        ------
        TableError
            If rows hold what the domain does not list. It says how many.
        """
        both = [column for column in secret if column in publish]
        if both:
            raise ColumnError(f"column '{both[0]}' cannot be secret and published. Take it out of one of the two.")
        hidden, shown = self.variable(secret), self.variable(publish, unlisted=unlisted)
        return encode_known(table, secret=hidden, published=shown, domain_name=self.name, keep=keep, ids=ids)

    def to_text(self) -> str:
        """The file that lists this domain."""
        columns = {name: _to_json(coding) for name, coding in self.codings.items()}
        whole: dict[str, Any] = {"format": FORMAT, "version": VERSION, "columns": columns}
        if self.impossible:
            whole["impossible"] = [dict(combination) for combination in self.impossible]
        return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def read_domain(path: str | Path) -> DomainFile:
    """The domain that a file lists, refusing whatever it does not understand."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise TableError(f"no domain file '{path}'. Draft one with the command scan.") from None
    except UnicodeDecodeError:
        raise TableError(f"'{path}' must be JSON text in UTF-8; it is not. Draft one with the command scan.") from None
    except OSError as error:
        raise TableError(f"'{path}' could not be read: {(error.strerror or str(error)).lower()}.") from None
    return domain_from_text(text, f"'{path}'")


def domain_from_text(text: str, name: str = "the domain") -> DomainFile:
    """The domain that a text lists."""
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise TableError(f"{name} must be JSON that names each thing once; it is not. Correct it.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
        raise TableError(
            f"{name} must be a domain file of version {VERSION}; it is none. Draft one with the command scan."
        )
    columns, stated = content.get("columns"), content.get("impossible", [])
    if {*content} - {"impossible"} != {"format", "version", "columns"} or not isinstance(columns, dict) or not columns:
        raise TableError(f"{name} must hold format, version and columns, and no more than impossible too. Correct it.")
    codings = {column: _parse_coding(column, entry, name) for column, entry in columns.items()}
    fine = isinstance(stated, list) and all(isinstance(each, dict) and len(each) > 1 for each in stated)
    named = [value for each in stated for value in each.items()] if fine else []
    if not fine or any(column not in codings or label not in codings[column].labels for column, label in named):
        raise TableError(
            f"impossible of {name} must list objects of two columns or more, each with a label that is listed; it does "
            "not. Correct it."
        )
    return DomainFile(codings, name, tuple(tuple(each.items()) for each in stated))


def draft_domain(table: Table, columns: Sequence[str], bins: Sequence[Bins] = ()) -> DomainFile:
    """A draft of a domain: the labels that these columns have in the table, or round edges for many numbers.

    A column of more than 1,000 labels, or of labels most of which one row holds, is omitted: free text, names, dates of
    birth and ids are nobody's public knowledge.
    """
    named = {binned.column for binned in bins}
    numbers = numeric_columns(table, [column for column in columns if column not in named])
    table = normalise_bins(table, [Bins(column, edges=(0.0,)) for column in numbers])
    cuts = {column: example_edges(*ends) for column, ends in number_ranges(table, numbers).items()}
    rounded = [Bins(column, edges=tuple(map(float, cut.split(",")))) for column, cut in cuts.items()]
    given = [at for at in bins if at.column in columns]
    table = normalise_bins(table, given)
    coders = column_coders(table, columns, [*given, *rounded])
    counts: dict[str, Counter[int]] = {column: Counter() for column in columns}
    for batch in table.batches(list(columns)):
        for coder in [coder for coder in coders if len(counts[coder.column]) <= MOST_DRAFT_LABELS]:
            codes, rows = np.unique(coder.codes(batch[coder.column]), return_counts=True)
            counts[coder.column].update(dict(zip(codes.tolist(), rows.tolist(), strict=True)))
    listed = [coder for coder in coders if not _quotes_persons(counts[coder.column])]
    if not listed:
        raise ColumnError(
            f"a domain must list labels that are public; those of {format_names(columns)} are too many or held by one "
            f"row each. Group them with {hint('bins')}, or name other columns."
        )
    codings = [coder.coding(sorted(counts[coder.column]))[0] for coder in listed]
    return DomainFile({coding.column: fill_bins(coding, missing=coding.missing is not None) for coding in codings})


def _quotes_persons(rows: Counter[int]) -> bool:
    """Whether the labels with these numbers of rows are too many, or most of many are held by one row."""
    alone = sum(held == 1 for held in rows.values())
    return len(rows) > MOST_DRAFT_LABELS or (len(rows) > MOST_LABELS_OF_ONE and alone > len(rows) / 2)


def fill_bins(coding: Coding, *, missing: bool) -> Coding:
    """A binned column with all of its bins, whether they occur or not; `missing` says whether an entry may be."""
    return _make_coding(coding.column, (), coding.edges, missing) if coding.edges else coding


def fill_table(table: Contingency) -> Contingency:
    """The table with every bin of its binned columns, which are public, and a label for missing numbers."""
    codings = table.published.codings
    if not any(coding.edges for coding in codings):
        return table
    wide = [fill_bins(coding, missing=True) for coding in codings]
    if len(wide) == 1:
        return table.recode(DomainFile({wide[0].column: wide[0]}).variable([wide[0].column]))
    becomes = [np.array([new.labels.index(at) for at in old.labels]) for old, new in zip(codings, wide, strict=True)]
    combos = np.column_stack([new[column] for new, column in zip(becomes, table.combos.T, strict=True)])
    return replace(table, published=replace(table.published, codings=tuple(wide), combos=combos))


def _make_coding(
    column: str, labels: tuple[str, ...], edges: tuple[float, ...], missing: bool, how: Grouping | None = None
) -> Coding:
    labels = bin_labels(edges) if edges else labels
    if not missing:
        return Coding(column, labels, edges=edges, how=how)
    return Coding(column, (*labels, unique_label(MISSING, labels)), missing=len(labels), edges=edges, how=how)


def _to_json(coding: Coding) -> dict[str, Any]:
    missing = coding.missing is not None
    if coding.edges:
        return {"bins": list(coding.edges), "missing": missing}
    grouped = {} if coding.how is None else {"grouped": coding.how.to_json()}
    return {"labels": list(coding.labels[: len(coding.labels) - missing]), "missing": missing, **grouped}


def _parse_coding(column: str, entry: Any, name: str) -> Coding:
    if not isinstance(entry, dict) or set(entry) - {"grouped"} not in ({"labels", "missing"}, {"bins", "missing"}):
        raise TableError(f"column '{column}' of {name} must have labels or bins, and missing; it has not. Correct it.")
    if "bins" in entry and "grouped" in entry:
        raise TableError(f"column '{column}' of {name} must have bins or be grouped, not both. Correct it.")
    if not isinstance(entry["missing"], bool):
        raise TableError(f"missing of column '{column}' of {name} must be true or false; it is neither. Correct it.")
    if "bins" in entry:
        edges = entry["bins"]
        if not isinstance(edges, list) or not edges or any(type(edge) not in (int, float) for edge in edges):
            raise TableError(
                f"the bins of column '{column}' of {name} must be a list of edges; they are not. Correct it."
            )
        try:
            return _make_coding(column, (), Bins(column, edges=tuple(edges)).edges, entry["missing"])
        except (ParameterError, OverflowError):
            raise TableError(
                f"the bins of column '{column}' of {name} must be finite edges that increase; they are not. Correct it."
            ) from None
    labels = entry["labels"]
    texts = isinstance(labels, list) and bool(labels) and all(isinstance(label, str) and label for label in labels)
    if not texts or len(set(labels)) < len(labels):
        raise TableError(
            f"the labels of column '{column}' of {name} must be texts, none empty and each listed once; they are not. "
            "Correct it."
        )
    try:
        how = parse_grouping(entry["grouped"]) if "grouped" in entry else None
    except (ParameterError, TypeError, ValueError, AttributeError):
        raise TableError(
            f"how column '{column}' of {name} is grouped must be a rule; it is none. Correct it."
        ) from None
    return _make_coding(column, tuple(labels), (), entry["missing"], how)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)


def _reject_constant(name: str) -> float:
    raise ValueError(name)


def read_zeros(path: Path) -> tuple[tuple[Value, ...], ...]:
    """What a table calls impossible: two values or more in each line, in the columns that they belong to."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"'{path}' must be a CSV file in UTF-8 of impossible combinations; {error}.") from None
    found = []
    for number, line in enumerate(lines[1:], 2):
        named = tuple((name, entry) for name, entry in zip(lines[0], line, strict=False) if entry.strip())
        if not any(map(str.strip, line)):
            continue
        if len(named) < 2:
            raise TableError(
                f"'{path}' must name two values or more in each line, in the columns they belong to; line {number} "
                f"names {len(named)}. Say by two values what nobody has together."
            )
        found.append(named)
    if not found:
        raise TableError(f"'{path}' must name impossible combinations below the names of columns; it names none.")
    return tuple(found)
