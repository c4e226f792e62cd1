"""Merging: several values of a column read as one, before anything is counted or designed.

A value that few rows hold points at the people who hold it, in the table and in the public file, which lists it.
Merged, it is published as `other`, and the file lists the values that are left and says that all others are `other`:
whoever reads the table again with that file alone maps every value as the owner did. Bins are merged with their
neighbours instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ColumnError, MergedAwayError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.names import OTHER, split_names, unique_label
from privacyfunnel.tables.coding.bins import bin_labels

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.coders import Coding

FEWEST = 2  # values with fewer rows than this are those of one person


class Merge(Protocol):
    """A rule by which values of a column become one."""

    @property
    def column(self) -> str | None:
        """The column that it names, if it names one."""

    def concerns(self, column: str, *, secret: bool) -> bool:
        """Whether it says something about this column."""

    def merged(self, coding: Coding, rows: IntArray) -> tuple[Coding, IntArray]:
        """The column's values afterwards, and the new code of every old one; `rows` says how many rows hold each."""


@dataclass(frozen=True, slots=True)
class MergeRare:
    """Values of a published column (of every one, if none is named) that fewer than so many rows hold are `other`.

    Should `other` have too few rows itself, the next rarest values join it. Bins join the next one, from below, until
    they have enough; what is left at the top joins the last. A missing number is no neighbour and stays.
    """

    fewest: int
    column: str | None = None

    def __post_init__(self) -> None:
        if self.fewest < FEWEST:
            raise ParameterError(f"rare values must have fewer than {FEWEST} rows or more; not than {self.fewest}.")

    def concerns(self, column: str, *, secret: bool) -> bool:
        return self.column == column if self.column is not None else not secret

    def merged(self, coding: Coding, rows: IntArray) -> tuple[Coding, IntArray]:
        if coding.edges:
            return self._merge_bins(coding, rows)
        joined = rows < self.fewest
        if not joined.any():
            return coding, np.arange(len(rows), dtype=np.int64)
        for code in np.argsort(rows, kind="stable"):  # the rarest first: those that are joined already come before all
            if rows[joined].sum() >= self.fewest:
                break
            joined[code] = True
        kept = [label for label, gone in zip(coding.labels, joined, strict=True) if not gone]
        if not kept:
            raise self._single_value_error(coding)
        found, becomes = _join_labels(coding, joined, unique_label(OTHER, kept))
        return replace(found, rest=len(kept)), becomes

    def _merge_bins(self, coding: Coding, rows: IntArray) -> tuple[Coding, IntArray]:
        names = bin_labels(coding.edges)
        held = dict(zip(coding.labels, rows.tolist(), strict=True))
        edges: list[float] = []
        waiting = 0
        for name, edge in zip(names, coding.edges, strict=False):
            waiting += held.get(name, 0)
            if waiting >= self.fewest:
                edges.append(edge)
                waiting = 0
        if edges and waiting + held.get(names[-1], 0) < self.fewest:
            edges.pop()
        if not edges:
            raise self._single_value_error(coding)
        whole = bin_labels(tuple(edges))
        place = np.searchsorted(np.array(edges), np.array([-np.inf, *coding.edges]), side="right").tolist()
        becomes_label = {name: whole[i] for name, i in zip(names, place, strict=True)}
        shown = [becomes_label.get(label, label) for label in coding.labels]
        labels = tuple(dict.fromkeys(shown))
        missing = None if coding.missing is None else len(labels) - 1  # it comes last
        found = replace(coding, labels=labels, missing=missing, edges=tuple(edges))
        return found, np.array([labels.index(label) for label in shown], dtype=np.int64)

    def _single_value_error(self, coding: Coding) -> MergedAwayError:
        return MergedAwayError(
            f"column '{coding.column}' must keep two values when those of fewer than {self.fewest} rows are merged; it "
            "keeps one. Leave it out, or merge less."
        )


@dataclass(frozen=True, slots=True)
class MergeOthers:
    """All values of a column but those listed are one, which has a label of its own: what a protocol file says."""

    column: str
    kept: frozenset[str]
    label: str

    def concerns(self, column: str, *, secret: bool) -> bool:
        return self.column == column and not secret

    def merged(self, coding: Coding, rows: IntArray) -> tuple[Coding, IntArray]:
        # A value that happens to be called as the others are together is one of them.
        joined = np.array([label not in self.kept or label == self.label for label in coding.labels])
        if not joined.any():
            return coding, np.arange(len(rows), dtype=np.int64)
        found, becomes = _join_labels(coding, joined, self.label)
        return replace(found, rest=len(found.labels) - 1), becomes


@dataclass(frozen=True, slots=True)
class MergeSecrets:
    """Named values of the secret are one: `groups` are the labels under each new label.

    Nothing is promised any more that tells the values of a group apart.
    """

    groups: Mapping[str, tuple[str, ...]]

    @property
    def column(self) -> None:
        """It is about the secret, whichever that is."""

    def __post_init__(self) -> None:
        named = [label for labels in self.groups.values() for label in labels]
        if not named or len(set(named)) < len(named):
            raise ParameterError("secrets to merge must be named, each once; they are not. Look like 'a,b,c=other'.")

    def concerns(self, column: str, *, secret: bool) -> bool:
        return secret

    def merged(self, coding: Coding, rows: IntArray) -> tuple[Coding, IntArray]:
        if coding.edges:
            raise ColumnError(
                f"merged secrets must be labels; the secret '{coding.column}' is in bins. Use coarser {hint('bins')}."
            )
        becomes = np.arange(len(rows), dtype=np.int64)
        for into, labels in self.groups.items():
            joined = np.isin(np.array(coding.labels, dtype=object), np.array(labels, dtype=object))
            absent = len(labels) - int(joined.sum())
            if absent:
                raise ColumnError(
                    f"secrets to merge must be values of '{coding.column}'; {absent} of {len(labels)} are not. Name "
                    "them as they stand in the table."
                )
            if into in [label for label, gone in zip(coding.labels, joined, strict=True) if not gone]:
                raise ColumnError(
                    f"merged secrets need a name that no other value of '{coding.column}' has; the one given is "
                    "taken. Choose another, or merge that value too."
                )
            if joined.all():
                raise ColumnError(
                    f"two values of '{coding.column}' must be left when secrets are merged; one is. Merge fewer."
                )
            coding, now = _join_labels(coding, joined, into)
            becomes = now[becomes]
        return replace(coding, merges_values=True), becomes


def _join_labels(coding: Coding, joined: BoolArray, label: str) -> tuple[Coding, IntArray]:
    """The coding in which the joined labels are one, which comes last."""
    kept = [old for old, gone in zip(coding.labels, joined.tolist(), strict=True) if not gone]
    becomes = np.where(joined, len(kept), np.cumsum(~joined) - 1).astype(np.int64)
    missing = None if coding.missing is None else int(becomes[coding.missing])
    return replace(coding, labels=(*kept, label), missing=missing), becomes


def rules_by_column(merges: Sequence[Merge], secret: Sequence[str], publish: Sequence[str]) -> dict[str, Merge]:
    """The rule of each column that has one; of several, a rule that names it goes before one for all."""
    for rule in merges:
        if rule.column is not None and rule.column not in publish:
            raise ColumnError(
                f"rare values are merged in published columns; '{rule.column}' is not. Publish it, or leave it out."
            )
    if len(secret) > 1 and any(rule.concerns(column, secret=True) for rule in merges for column in secret):
        raise ColumnError(
            "secrets are merged by the values of one column; several are secret. Merge values in the table itself."
        )
    found: dict[str, Merge] = {}
    for column, hidden in [*((name, True) for name in secret), *((name, False) for name in publish)]:
        mine = [rule for rule in merges if rule.concerns(column, secret=hidden)]
        mine.sort(key=lambda rule: rule.column is not None)
        if mine:
            found[column] = mine[-1]
    return found


def parse_merge_secrets(texts: Sequence[str]) -> MergeSecrets:
    """The rule meant by `a,b,c=other`, once or several times; a value that has a comma stands in double quotes.

    >>> parse_merge_secrets(["a,b=rare", '"c, d",e=other']).groups
    {'rare': ('a', 'b'), 'other': ('c, d', 'e')}
    """
    groups: dict[str, tuple[str, ...]] = {}
    for text in texts:
        labels, _, into = text.rpartition("=")
        named = tuple(label for label in split_names(labels) if label)
        if not named or not into or into in groups:
            raise ParameterError("merged secrets look like 'a,b,c=other', each name once; what was given does not.")
        groups[into] = named
    return MergeSecrets(groups)


def make_merges(
    rare: int | Mapping[str, int] | None = None, secrets: Mapping[str, Sequence[str]] | None = None
) -> tuple[Merge, ...]:
    """The rules as Python asks for them: `merge_rare=10` or `{"zip": 10}`, `merge_secrets={"other": ["a", "b"]}`.

    >>> make_merges({"zip": 10})
    (MergeRare(fewest=10, column='zip'),)
    """
    rules: list[Merge] = []
    if isinstance(rare, Mapping):
        rules += [MergeRare(fewest, column) for column, fewest in rare.items()]
    elif rare is not None:
        rules.append(MergeRare(rare))
    if secrets:
        rules.append(MergeSecrets({into: tuple(labels) for into, labels in secrets.items()}))
    return tuple(rules)
