"""What a grouping is: a rule by which the entries of a column get coarser labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import polars as pl

from privacyfunnel.tables.readers.number_format import NumberFormat

GroupedEntries = tuple[
    pl.Series, pl.Series | None
]  # a label for each entry, null for a gap; and which have none, if any


class Grouping(Protocol):
    """A rule by which the entries of a column get coarser labels."""

    @property
    def rule_text(self) -> str:
        """The rule as it is asked for on the command line."""

    @property
    def requirement(self) -> str:
        """What an entry must be to have a label."""

    def labels(self, entries: pl.Series, numbers: NumberFormat) -> GroupedEntries:
        """The label of each entry. A label is its own label: what is grouped already stays as it is."""

    def sort_labels(self, labels: Iterable[str]) -> list[str]:
        """The labels as they are listed."""

    def to_json(self) -> dict[str, Any]:
        """The rule as it stands in a protocol file."""
