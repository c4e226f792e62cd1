"""A table and a protocol file, matched: labels, codes of records, the order of published rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError, LedgerError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.row_order_leak import NeighbourGuesses, OrderLeak
from privacyfunnel.names import join_labels
from privacyfunnel.release.bound_table import refuse_unlinked
from privacyfunnel.release.findings.composition_leakage import look_up_labels
from privacyfunnel.release.findings.kept_columns import KeptColumnAnalysis
from privacyfunnel.release.kept_counts import column_bins, rest_merges
from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
from privacyfunnel.release.shuffle import RowOrder
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.domain_file import DomainFile
from privacyfunnel.tables.coding.encoding import Encoding, encode
from privacyfunnel.tables.readers.formats import Table
from privacyfunnel.tables.readers.table_files import TableSource

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.merges import Merge


@dataclass(frozen=True, slots=True, eq=False)
class MatchedTable:
    """A table whose values were found again among the inputs of a protocol."""

    encoding: Encoding
    joint: Joint
    inputs: IntArray  # the law's input for each input of the joint
    mechanism: Mechanism  # the law on those inputs alone

    @classmethod
    def match(
        cls, table: Table, sealed: SealedProtocol, bins: Sequence[Bins], merges: Sequence[Merge] = ()
    ) -> MatchedTable:
        """Read the table with the protocol's own bins, and look its labels up; `merges` is how secrets were merged."""
        domain = sealed.domain
        refuse_unlinked(sealed, table.columns)
        if not sealed.mechanism.lists_inputs:
            raise ParameterError(
                "Real or synthetic records are checked from the public files alone. Name the public folder, and no "
                "table. The noise of the tree model is not checked: the file does not state its noisy counts."
            )
        publish = tuple(at.name for at in domain.attributes)
        named = [b for b in bins if b.column in publish]
        if named:
            raise ColumnError(
                f"the bins of '{named[0].column}' are in the protocol file; leave out {hint('bins')} for it."
            )
        encoding = encode(
            table,
            secret=domain.secret_columns,
            publish=publish,
            bins=[*column_bins(domain), *bins],
            merges=[*rest_merges(domain), *merges],
        )
        joint = Joint.from_contingency(encoding.contingency)
        values = domain.values
        x = look_up_labels(joint.values, values, joint.weights.sum(axis=0), publish)
        if not sealed.sees_secret:
            return cls(encoding, joint, x, sealed.mechanism.restrict_inputs(x))
        s = look_up_labels(joint.secrets, domain.secrets, joint.weights.sum(axis=1), domain.secret_columns)
        inputs = (s[:, None] * len(values) + x[None, :]).reshape(-1)
        return cls(encoding, joint, inputs, sealed.mechanism.restrict_inputs(inputs))

    def codes(self) -> Iterator[IntArray]:
        """The rows in order, n × 3: the number of the row, its secret, and its input of the law."""
        for chunk in self.encoding.chunks():
            z = chunk.secret * self.joint.a + chunk.published if self.mechanism.sees_secret else chunk.published
            numbers = np.arange(chunk.start, chunk.start + len(z))
            yield np.stack([numbers, chunk.secret, self.inputs[z]], axis=1)


def secret_labels(sealed: SealedProtocol, domain: DomainFile) -> tuple[str, ...]:
    """The labels of the secrets, in the order of the file; refused where this cannot be the domain of the design."""
    population = sealed.promise.population
    counts = None if population is None else population.rule.table
    if counts is None:
        raise ParameterError(
            "A domain says how the secrets of a private design are called; this protocol was made from the table "
            f"itself, which says so. Leave out {hint('domain')}."
        )
    labels = domain.variable(sealed.domain.secret_columns).labels
    listed = domain.variable([at.name for at in sealed.domain.attributes]).labels
    if len(labels) != len(counts) or set(listed) != set(join_labels(sealed.domain.values)):
        raise ParameterError(
            f"{domain.name} must be the domain that the private design was made for; it lists other secrets or values. "
            f"Name that one, or leave out {hint('domain')}."
        )
    return labels


def row_order_leakage(
    table: Table, secret: Sequence[str], bins: Sequence[Bins], apart: Sequence[str]
) -> tuple[OrderLeak, tuple[str, ...]]:
    """What the order says about the secret; and those of the columns `apart` that are sorted as the table is."""
    mine = [binned for binned in bins if binned.column in secret]
    encoding = encode(table, secret=secret, publish=(), bins=mine, keep=apart)
    values = len(encoding.contingency.secret.combos)
    neighbours, kept = NeighbourGuesses(values, encoding.rows), KeptColumnAnalysis(apart, values, encoding.rows)
    for chunk in encoding.chunks(apart):
        neighbours.add(chunk.secret)
        kept.add(chunk.kept, chunk.secret)
    return neighbours.best_guess(), tuple(found.column for found in kept.kept_columns() if found.sorted)


RowNumbers = Callable[[Iterable[IntArray]], Iterator[IntArray]]  # codes of a table's rows, in the order of publication


def find_row_order(
    protocol: Path,
    table: str | Path | TableSource,
    sanitised: Path,
    rows: int,
    ledger: str | Path | None,
    keep_order: bool,
) -> RowNumbers | None:
    """How the rows of a table are put into the order of the sanitised one; None where nobody says."""
    if keep_order:
        return iter
    if ledger is not None and not Path(ledger).exists():
        raise LedgerError(f"the ledger that is named must be there; there is no '{ledger}'. Name another.")
    entry = Ledger(Path(ledger) if ledger is not None else ledger_path(table)).find_release(protocol, sanitised)
    if entry is None or entry.rows != rows or entry.order == b"":
        return None
    if entry.order is None:
        return iter
    order = RowOrder.from_key(entry.order)

    def reorder(codes: Iterable[IntArray]) -> Iterator[IntArray]:
        yield np.concatenate(list(codes))[order.permutation(rows)]

    return reorder


def frame_order(order: IntArray | None, *, keep_order: bool) -> RowNumbers | None:
    """The same for a frame, whose owner has the number of the original row of each published one."""
    if keep_order or order is None:
        return iter if keep_order else None

    def reorder(codes: Iterable[IntArray]) -> Iterator[IntArray]:
        yield np.concatenate(list(codes))[order]

    return reorder
