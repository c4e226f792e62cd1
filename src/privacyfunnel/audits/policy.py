"""A policy for many tables: a decision about every column, the largest ε, the promise that is required.

epsilon = 1.0                       # the largest, for every table
promise = "lip"                     # or srlip, ldp

[tables."patients-*.csv"]           # by the name of the file
epsilon = 0.5                       # of this table's releases
promise = "srlip"
protocol = "job/protocol.json"      # with which new rows are drawn: what it promises must hold on them

[tables."patients-*.csv".columns]
illness = "secret"
town = "publish"
name = "drop"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from privacyfunnel.errors import ParameterError, PrivacyFunnelError
from privacyfunnel.formatting import format_number
from privacyfunnel.model.promises import find_promise
from privacyfunnel.names import format_names
from privacyfunnel.release.apply import load_verified, refuse_drift
from privacyfunnel.release.bound_table import BoundTable
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.table_files import open_table

SECRET, PUBLISH, KEEP, DROP = DECISIONS = ("secret", "publish", "keep", "drop")
COVERS = {"lip": {"lip", "srlip"}, "srlip": {"srlip"}, "ldp": {"ldp"}}  # which promises keep one that is required
FIELDS = {"epsilon", "promise", "protocol", "columns"}


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """What was decided about tables of one name."""

    pattern: str
    epsilon: float
    promise: str
    columns: Mapping[str, str]
    protocol: Path | None = None

    def decided(self, decision: str) -> set[str]:
        """The columns of which this was decided."""
        return {column for column, mine in self.columns.items() if mine == decision}


@dataclass(frozen=True, slots=True)
class Policy:
    """The owner's appetite, and a decision for each table."""

    epsilon: float
    promise: str
    tables: tuple[TablePolicy, ...]

    @classmethod
    def load(cls, path: Path) -> Policy:
        """The policy of a file; paths in it are relative to its folder."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ParameterError(f"Cannot read the policy '{path}': {error}. Correct it.") from None
        epsilon, promise = content.get("epsilon"), str(content.get("promise", "lip"))
        if not isinstance(epsilon, int | float) or promise not in COVERS:
            raise ParameterError(
                f"A policy states its largest epsilon, a number, and its promise, one of {', '.join(COVERS)}; '{path}' "
                "does not. Add them."
            )
        tables = content.get("tables", {})
        return cls(float(epsilon), promise, tuple(_read_table(path, name, tables[name], content) for name in tables))

    def find_table(self, name: str) -> TablePolicy | None:
        """What was decided about a file of that name; the first pattern that fits."""
        return next((table for table in self.tables if fnmatch(name, table.pattern)), None)

    def violations(self, path: Path) -> list[str]:
        """What a table breaks, a sentence each; none where it may go on."""
        mine = self.find_table(path.name)
        if mine is None:
            return [f"the policy decides nothing about '{path.name}'"]
        return [*self._excess(mine), *_undecided(mine, path), *_broken_promise(mine, path)]

    def _excess(self, mine: TablePolicy) -> Iterator[str]:
        if mine.epsilon > self.epsilon:
            size, most = format_number(mine.epsilon), format_number(self.epsilon)
            yield f"'{mine.pattern}' asks for ε = {size}, above the largest of {most}"
        if mine.promise not in COVERS[self.promise]:
            yield f"'{mine.pattern}' promises {mine.promise}, which does not keep the required {self.promise}"


def _read_table(path: Path, name: str, content: Any, policy: Mapping[str, Any]) -> TablePolicy:
    columns = content.get("columns", {}) if isinstance(content, Mapping) else None
    if not isinstance(columns, Mapping) or not {*columns.values()} <= {*DECISIONS} or not {*content} <= FIELDS:
        raise ParameterError(
            f"Table '{name}' of the policy '{path}' must have epsilon, promise, protocol and columns, each column "
            f"{', '.join(DECISIONS[:-1])} or {DROP}; it has something else. Correct it."
        )
    protocol = content.get("protocol")
    promise = str(content.get("promise", policy.get("promise", "lip")))
    epsilon = float(content.get("epsilon", policy["epsilon"]))
    find_promise(promise, epsilon)
    return TablePolicy(name, epsilon, promise, dict(columns), None if protocol is None else path.parent / protocol)


def _undecided(mine: TablePolicy, path: Path) -> Iterator[str]:
    columns = open_table(path).columns
    new = [column for column in columns if column not in mine.columns]
    gone = [column for column in mine.columns if column not in columns]
    if new:
        yield f"'{path.name}' has columns without a decision: {format_names(new)}"
    if gone:
        yield f"'{path.name}' has no longer {format_names(gone)}"


def _broken_promise(mine: TablePolicy, path: Path) -> Iterator[str]:
    """What the protocol that new rows are drawn with breaks on these."""
    if mine.protocol is None:
        return
    spec = ReleaseSpec()
    try:
        sealed, _ = load_verified(mine.protocol, spec)
        published = {at.name for at in sealed.domain.attributes}
        for decision, used in ((PUBLISH, published), (SECRET, {*sealed.domain.secret_columns})):
            if used != mine.decided(decision):
                has = format_names(sorted(used))
                yield f"'{mine.protocol.name}' has {has} as {decision}; the policy decides otherwise"
                return
        if sealed.total_epsilon > mine.epsilon or sealed.promise.name.lower() not in COVERS.get(mine.promise, set()):
            size = format_number(sealed.total_epsilon)
            yield f"'{mine.protocol.name}' promises {sealed.promise.name} ε = {size}, not what the policy asks for"
        table = BoundTable.bind(open_table(path), sealed)
        unknown = table.encoding.unknown_rows.rows
        if unknown:
            yield f"{unknown:,} rows of '{path.name}' hold what '{mine.protocol.name}' does not know"
        else:
            refuse_drift(table.measure_leak(), sealed, spec)
    except PrivacyFunnelError as error:
        yield error.sentence.rstrip(".")
