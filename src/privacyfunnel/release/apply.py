"""Apply: rows drawn from a protocol that was designed before, on these rows or on others.

A protocol that was designed once draws next month's rows, here or elsewhere. What is certified is its promise about
the table it was designed on (or about the people whom that table was a sample of, where this was asked for). On other
rows it leaks what it leaks there: that is measured where they carry the secret, and said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import OutputError, TableError
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.row_order_leak import OrderLeak
from privacyfunnel.release.bound_table import BoundTable, TableLeak
from privacyfunnel.release.sending import BLUR, ERROR, ProgressCallback, Sending, column_tuple, kept_column_statements
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.merges import Merge, make_merges
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect

if TYPE_CHECKING:
    from privacyfunnel.atomic_files import StagedFiles
    from privacyfunnel.release.findings.kept_columns import KeptColumn
    from privacyfunnel.release.ledger.repeats import LedgerReport
    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.tables.coding.contingency import UnknownRows
    from privacyfunnel.tables.readers.table_files import TableSource
    from privacyfunnel.tables.readers.table_interface import Table


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """Rows drawn from a protocol, and what there is to say about them."""

    table: Any  # a frame of the kind that was given, or the path of the file that was written
    sealed: SealedProtocol
    rows: int  # that are published
    sending: Sending
    strangers: UnknownRows  # rows that hold what the protocol does not know: they are blurred or left out
    unchanged: float  # the share of published rows that show the value they had
    dropped: tuple[str, ...] = ()  # columns that are not published
    measured: TableLeak | None = None  # ε on these rows, where they carry the secret; the owner's own
    unmeasured: str = ""  # why not, where they do
    order: IntArray | None = None  # of a frame: which of its rows each published row is; the owner's own
    order_tells: OrderLeak | None = None
    kept_columns: tuple[KeptColumn, ...] = ()
    beside: tuple[str, ...] = ()  # what a frame carried beside its columns, and was not passed on
    protocol_file: Path | None = None
    remembered: LedgerReport | None = None

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns that passed through, unprotected."""
        return self.sending.keep

    @property
    def kept_order(self) -> bool:
        """Whether the rows are in the order of the table."""
        return self.sending.keep_order

    @property
    def blurred(self) -> str:
        """How rows were published that hold what the protocol does not know."""
        if self.sealed.mechanism.anything_else is None:
            return "they were published as if they held a random value, and no certificate covers them"
        return (
            "they were published by the protocol's row for anything else, which the promise for the people covers if "
            "the list of values was made before the sample was seen"
        )

    @property
    def on_these_rows(self) -> str:
        """What the promise means on these rows, in a sentence for the owner."""
        promise, secret = self.sealed.promise, " & ".join(self.sealed.domain.secret_columns)
        if self.measured is None:
            why = self.unmeasured or f"these rows do not carry {secret}"
            return f"not measured: {why.rstrip('.')}. What was certified is certified for the rows of the design"
        found = self.measured
        size = "unbounded" if found.epsilon == float("inf") else f"{found.epsilon:.6g}"
        if found.above:
            return f"{promise.name} ε = {size}, ABOVE the {promise.epsilon:g} promised for the rows of the design"
        return f"{promise.name} ε = {size}, within the {promise.epsilon:g} that was promised, in exact arithmetic"

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What nobody should read into it, a sentence each."""
        promise, secret = self.sealed.promise, " & ".join(self.sealed.domain.secret_columns)
        people = promise.population
        said = []
        if not self.sealed.for_publication or self.sending.seed is not None:
            said.append("This draw came from a seed, which someone may guess: it is NOT FOR PUBLICATION.")
        if people is None:
            said.append(
                "The promise was certified for the table that the protocol was designed on. If "
                f"{secret} goes otherwise with what is published in these rows, they may tell more about it."
            )
        else:
            said.append(
                "The promise holds for the people whom the table of the design was an independent sample of, with "
                f"{100 * people.confidence:g} % confidence: for these rows if they are of the same people."
            )
        if self.strangers.rows and self.sending.unknown == BLUR:
            said.append(f"{self.strangers.rows:,} rows hold what the protocol does not know: {self.blurred}.")
        said += kept_column_statements(self.kept, self.kept_columns, secret, order=self.kept_order)
        if self.beside:
            said.append(f"Not passed on, for it may hold the secret or names: {', '.join(self.beside)}.")
        twice = (
            "Whoever is in several releases and changed in between is published in independent draws"
            if self.sending.key is not None
            else "Whoever is in several releases is published in independent draws"
        )
        said.append(f"{twice}: together they can give away more than their ε added.")
        return tuple(said)


def apply(
    protocol: SealedProtocol | str | Path,
    frame: Any,
    *,
    keep: str | Sequence[str] = (),
    unknown: str = ERROR,
    row_id: str | None = None,
    key: RowKey | str | Path | None = None,
    keep_order: bool = False,
    sets: str = "column",
    bins: Sequence[Bins] = (),
    merge_secrets: Mapping[str, Sequence[str]] | None = None,
    seed: int | None = None,
) -> Applied:
    """Draw the rows of a frame (anything narwhals reads) from a protocol; `Applied.table` is of the same kind.

    `unknown` says what becomes of rows that hold what the protocol does not know: an error, or they are published as
    if they held a random value (blur), or left out (drop). `row_id` names a column that tells rows apart, and `key` a
    key that is kept, so that whoever did not change is drawn alike every time. `bins` and `merge_secrets` are those of
    the secret, where the rows carry it.
    """
    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.tables.readers.lazy_frames import frame_table

    sealed = protocol if isinstance(protocol, SealedProtocol) else SealedProtocol.load(protocol)
    secret_key = key if key is None or isinstance(key, RowKey) else RowKey.load(key)
    sending = Sending(column_tuple(keep), sets, keep_order, seed, row_id, secret_key, unknown)
    source = frame_table(frame)
    outgoing = RowSampler(_bind(source, sealed, sending, bins, make_merges(None, merge_secrets)), sending)
    rows, order = outgoing.draw_all(), outgoing.order
    columns = [column for column in rows.get_columns() if column.name not in sending.keep]
    applied = _make_applied(outgoing, source.make_frame(columns, sending.keep, order=order))
    return replace(applied, order=order, beside=source.side_data)


def apply_file(
    protocol: str | Path,
    source: str | Path | TableSource,
    into: str | Path,
    sending: Sending,
    *,
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
    dialect: Dialect = AUTO_DETECT,
    force: bool = False,
    excel_safe: bool = False,
    ledger: str | Path | None = None,
    again: bool = False,
    watch: ProgressCallback | None = None,
) -> Applied:
    """Draw the rows of a file of any size from a protocol file, into the file `into`, whole or not at all.

    A folder of parts, or a pattern such as `part-*.csv`, goes into a folder of parts of the same names and sizes. In
    place of a file there may be a `Query`.

    The release is remembered in the owner's `ledger`, by default beside the table; a second one of the same rows about
    the same secret is refused unless it is to be made `again`.
    """
    from privacyfunnel.mechanisms.protocol_file import read_text
    from privacyfunnel.release.destinations import resolve_destination
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.ledger.repeats import ProtocolText
    from privacyfunnel.release.publish import publish
    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.tables.readers.table_files import resolve_source

    protocol, source, into = Path(protocol), resolve_source(source), Path(into)
    text = read_text(protocol)
    sealed = SealedProtocol.from_text(text, str(protocol))
    table = source.open(dialect)
    place = resolve_destination(table, into, force=force)
    for given, what in ((source.file, "the table"), (protocol, "the protocol")):
        if given is not None and into.exists() and into.samefile(given):
            raise OutputError(f"'{into}' is {what} itself and must not be overwritten. Name another file.")
    book = Ledger(ledger_path(source) if ledger is None else Path(ledger))

    def finish(parts: StagedFiles, drawn: Path, remembered: LedgerReport) -> Applied:
        return replace(_make_applied(outgoing, into), protocol_file=protocol, remembered=remembered)

    with book.open_session() as salt:
        if watch:
            watch("counting", 0)
        outgoing = RowSampler(_bind(table, sealed, sending, bins, merges), sending, watch)
        return publish(
            outgoing,
            place,
            source,
            ProtocolText(protocol, text),
            (book, salt),
            finish,
            again=again,
            excel_safe=excel_safe,
            bins=bins,
            merges=merges,
        )


def _bind(
    table: Table, sealed: SealedProtocol, sending: Sending, bins: Sequence[Bins], merges: Sequence[Merge]
) -> BoundTable:
    """The table met by the protocol; refused where rows are not known and must be."""
    from privacyfunnel.tables.coding.row_hashes import make_row_ids

    sending.refuse_used((*(at.name for at in sealed.domain.attributes), *sealed.domain.secret_columns))
    ids = make_row_ids(sending.row_id, table.columns)
    met = BoundTable.bind(table, sealed, bins=bins, merges=merges, keep=sending.read, ids=ids)
    if met.encoding.unknown_rows.rows and sending.unknown == ERROR:
        raise unknown_rows_error(
            met.encoding.unknown_rows, met.encoding.rows, sealed.mechanism.anything_else is not None
        )
    if met.encoding.rows == met.encoding.unknown_rows.rows:
        raise TableError(
            f"{table.name} must hold rows that the protocol knows; it knows none of {met.encoding.rows:,}. Name the "
            "table that the protocol was made for, or one like it."
        )
    return met


def unknown_rows_error(found: UnknownRows, rows: int, answered: bool = False) -> TableError:
    """How many rows hold what is not known, and in which columns; never what they hold."""
    where = [f"{count:,} in {column}" for column, count in found.columns.items()]
    if found.combinations:
        where.append(f"{found.combinations:,} or more in combinations of known values")
    return TableError(
        f"rows must hold only values and combinations that the protocol knows; {found.rows:,} of {rows:,} do not "
        f"({', '.join(where)}). Design a protocol for them, or use --unknown blur"
        f"{', by its row for anything else,' if answered else ''} or --unknown drop."
    )


def _make_applied(outgoing: RowSampler, table: Any) -> Applied:
    """What was done, once all rows were drawn."""
    met, sending = outgoing.bound_table, outgoing.sending
    used = {*(at.name for at in met.sealed.domain.attributes), *met.sealed.domain.secret_columns, *sending.keep}
    return Applied(
        table=table,
        sealed=met.sealed,
        rows=outgoing.rows,
        sending=sending,
        strangers=met.encoding.unknown_rows,
        unchanged=outgoing.unchanged_share,
        dropped=tuple(name for name in met.encoding.table.columns if name not in used),
        measured=met.measure_leak(),
        unmeasured=met.unmeasured,
        order_tells=outgoing.measure_row_order(),
        kept_columns=outgoing.kept_columns(),
    )
