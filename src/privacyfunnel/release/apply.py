"""Apply: rows drawn from a protocol that was designed before, on these rows or on others.

A protocol that was designed once draws next month's rows, here or elsewhere. What is certified is its promise about
the table it was designed on (or about the people whom that table was a sample of, where this was asked for). On other
rows it leaks what it leaks there: that is measured where they carry the secret, before anything is drawn. Rows on which
more leaks than was promised are refused unless the owner accepts that, and then a notice beside them says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.arrays import IntArray
from privacyfunnel.atomic_files import begin_file
from privacyfunnel.errors import GuaranteeError, OutputError, ParameterError, TableError
from privacyfunnel.formatting import ShowsFacts, format_epsilon, format_number, format_percent
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify_at_model
from privacyfunnel.mechanisms.signatures import Signer, load_signed_protocol, read_signed_text
from privacyfunnel.model.row_order_leak import OrderLeak
from privacyfunnel.release.bound_table import BoundTable, ColumnDrift, TableLeak
from privacyfunnel.release.findings.kept_columns import KeptColumn, kept_column_statements
from privacyfunnel.release.ledger.repeats import LedgerReport
from privacyfunnel.release.private_design import model_scope_statement
from privacyfunnel.release.published_table import PublishedTable
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.checks import find_source
from privacyfunnel.spec.fields import BLUR, DROP, ERROR
from privacyfunnel.spec.keywords import combine, require_spec
from privacyfunnel.tables.coding.contingency import UnknownRows
from privacyfunnel.tables.readers.table_files import TableSource

if TYPE_CHECKING:
    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.tables.readers.formats import Table

MODEL_PROMISE = "the promise is about the published model, whatever these rows are"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Applied(ShowsFacts, PublishedTable):
    """Rows drawn from a protocol, here or on a cluster, and what there is to say about them."""

    table: Any  # a frame of the kind that was given, or the path of the file that was written
    sealed: SealedProtocol
    rows: int  # that are published
    spec: ReleaseSpec
    strangers: UnknownRows  # rows that hold what the protocol does not know: they are blurred or left out
    unchanged: float  # the share of published rows that show the value they had
    dropped: tuple[str, ...] = ()  # columns that are not published
    measured: TableLeak | None = None  # ε on these rows, where they carry the secret; the owner's own
    unmeasured: str = ""  # why not, where they do
    drift: tuple[ColumnDrift, ...] = ()  # of published columns since the design; the owner's own
    order: IntArray | None = None  # of a frame: which of its rows each published row is; the owner's own
    order_tells: OrderLeak | None = None
    kept_columns: tuple[KeptColumn, ...] = ()
    beside: tuple[str, ...] = ()  # what a frame carried beside its columns, and was not passed on
    protocol_file: Path | None = None
    remembered: LedgerReport | None = None
    signer: Signer | None = None  # whose signature beside the protocol file was verified, if there is one

    def _facts(self) -> list[tuple[str, str]]:
        leak = "not measured: the rows do not carry the secret" if self.measured is None else str(self.measured)
        facts = [("rows", f"{self.rows:,}"), *self.sealed._facts()[:-1]]
        return [*facts, ("unchanged", f"{format_percent(self.unchanged)} of rows"), ("on these", leak)]

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns that passed through."""
        return tuple(self.spec.keep)

    @property
    def kept_judged(self) -> bool:
        """Whether what is published leaks no more than was allowed together with them."""
        return bool(self.spec.judged_columns) and self.measured is not None and not self.measured.above

    @property
    def kept_order(self) -> bool:
        """Whether the rows are in the order of the table."""
        return self.spec.keep_order

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
        promise, secret = self.sealed.promise, self.sealed.secret_text
        if self.measured is None:
            why = self.unmeasured or f"these rows do not carry {secret}"
            return f"not measured: {why.rstrip('.')}. What was certified is certified {self.certified_for}"
        found = self.measured
        size = f"{promise.name} ε = {format_epsilon(found.epsilon)}"
        together = f" together {found.includes}" if found.includes else ""
        if found.above:
            why = f" ({found.why.rstrip('.')})" if found.why else ""
            return f"{size}{together}, ABOVE the {found.allowed:g} {self._allowed_for}{why}"
        return f"{size}{together}, within the {found.allowed:g} {self._allowed_for}, in exact arithmetic"

    @property
    def certified_for(self) -> str:
        """For whom the protocol file certifies its ε."""
        return "for the rows of the design" if self.sealed.model is None else "to whoever believes the published model"

    @property
    def _allowed_for(self) -> str:
        allowed = self.spec.allowed_epsilon is not None
        return "asked for these rows" if allowed else f"promised {self.certified_for}"

    @property
    def notice(self) -> str:
        """What is said publicly of rows that another ε holds for, or none: by what was asked, not by what was found."""
        promise, secret = self.sealed.promise, self.sealed.secret_text
        certified = f"{promise.name} ε = {format_number(promise.epsilon)} about {secret} was certified for other rows."
        if self.spec.accept_drift and self.sealed.model is None:
            return f"{certified} These are published whatever leaks on them: nothing is promised about them."
        if self.measured is None or self.measured.allowed <= promise.epsilon:
            return ""
        return (
            f"{certified} On these rows {promise.name} ε = {format_number(self.measured.allowed)} holds, by exact "
            "arithmetic."
        )

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What nobody should read into it, a sentence each."""
        promise, secret = self.sealed.promise, self.sealed.secret_text
        people = promise.population
        sentences = []
        if not self.sealed.for_publication or self.spec.seed is not None:
            sentences.append("This draw came from a seed, which someone may guess: it is NOT FOR PUBLICATION.")
        if self.notice:
            sentences.append(self.notice)
        elif self.measured is not None and people is None:
            sentences.append(
                "The promise holds on these rows, by exact arithmetic, and was certified for no later ones."
            )
        elif self.sealed.model is not None:
            sentences.append(model_scope_statement(self.sealed))
        elif people is None:
            sentences.append(
                "The promise was certified for the table that the protocol was designed on. If "
                f"{secret} depends otherwise on what is published in these rows, they may leak more about it."
            )
        else:
            sentences.append(
                "The promise holds for the people whom the table of the design was an independent sample of, with "
                f"{100 * people.confidence:g} % confidence: for these rows if they are of the same people."
            )
        if self.strangers.rows and self.spec.unknown == BLUR:
            sentences.append(f"{self.strangers.rows:,} rows have values that are not in the protocol: {self.blurred}.")
        if self.strangers.rows and self.spec.unknown == DROP and self.measured is None:
            sentences.append(f"Whose row is missing can be seen, and may reveal {secret}: this was not measured.")
        sentences += kept_column_statements(
            self.kept, self.kept_columns, secret, order=self.kept_order, judged=self.kept_judged
        )
        if self.beside:
            sentences.append(f"Not passed on, for it may hold the secret or names: {', '.join(self.beside)}.")
        twice = (
            "Whoever is in several releases and changed in between is published in independent draws"
            if self.spec.key_file is not None
            else "Whoever is in several releases is published in independent draws"
        )
        sentences.append(f"{twice}: together they can give away more than their ε added.")
        return tuple(sentences)


def apply(
    protocol: SealedProtocol | PublishedTable | str | Path,
    frame: Any,
    spec: ReleaseSpec | None = None,
    *,
    keep: str | Sequence[str] = (),
    unknown: str | None = None,
    row_id: str | None = None,
    key_file: RowKey | str | Path | None = None,
    bins: Sequence[Any] | Mapping[str, Any] = (),
) -> Applied:
    """Draw the rows of a frame (anything narwhals reads) from a protocol; `Applied.table` is of the same kind.

    Secret, published columns and promise are those of the protocol. The keywords are shorthand for fields of the spec:
    `unknown` rows, with values that the protocol does not know, are an error, published as if they had a random value
    (blur), or left out (drop). `row_id` names a column that identifies rows, and `key_file` a key that is kept, by
    which unchanged people get the same draw every time. `bins`, and `merge_secrets` of the spec, are those of the
    secret, where the rows carry it.
    """
    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.tables.readers.eager_frames import frame_by_persons, frame_table

    spec = combine(spec, keep=keep, unknown=unknown, row_id=row_id, key_file=key_file, bins=bins)
    sealed, signer = load_verified(protocol, spec)
    used = (*sealed.domain.secret_columns, *(at.name for at in sealed.domain.attributes), *spec.read_columns)
    source = frame_by_persons(frame_table(frame), spec.person, spec.person_row, used)
    sampler = RowSampler(_bind(source, sealed, spec), spec)
    measured = measure_drift(sampler.bound_table, spec)
    rows, order = sampler.draw_all(), sampler.order
    columns = [column for column in rows.get_columns() if column.name not in spec.keep]
    applied = _make_applied(sampler, source.make_frame(columns, spec.keep, order=order), measured)
    return replace(applied, order=order, beside=source.side_data, signer=signer)


def apply_file(
    protocol: str | Path,
    source: str | Path | TableSource,
    spec: ReleaseSpec,
    *,
    watch: Callable[[str, int], None] | None = None,
) -> Applied:
    """Draw the rows of a file of any size, or a `Query`, from a protocol file, into the file `spec.into`, all or none.

    A folder of parts, or a pattern such as `part-*.csv`, goes into a folder of as many parts of equal size. The
    release is recorded in the owner's ledger; a second one of the same rows about the same secret is refused unless the
    spec says `again`.
    """
    from privacyfunnel.mechanisms.protocol_file import find_protocol
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.ledger.repeats import ProtocolText
    from privacyfunnel.release.publish import publish
    from privacyfunnel.release.release_files import Destination
    from privacyfunnel.release.row_sampler import RowSampler

    spec = require_spec(spec, "apply_file(protocol, source")
    protocol, source, into = find_protocol(protocol), find_source(source, spec.query), spec.require_into()
    text, signer = read_signed_text(protocol, signed_by=spec.signed_by)
    sealed = _prove(SealedProtocol.from_text(text, str(protocol)))
    table = source.open(spec.dialect)
    place = Destination.of_rows(table, spec)
    for given, what in ((source.file, "the table"), (protocol, "the protocol")):
        if given is not None and into.exists() and into.samefile(given):
            raise OutputError(f"'{into}' is {what} itself and must not be overwritten. Name another file.")
    book = Ledger(ledger_path(source) if spec.ledger is None else spec.ledger)

    def finish(staged: Path, remembered: LedgerReport) -> Applied:
        applied = _make_applied(sampler, into, measured)
        if applied.notice:
            begin_file(staged / place.notice).write_text(f"{applied.notice}\n", encoding="utf-8")
        return replace(applied, protocol_file=protocol, remembered=remembered, signer=signer)

    with book.open_session() as salt:
        if watch:
            watch("counting", 0)
        sampler = RowSampler(_bind(table, sealed, spec), spec, watch)
        measured = measure_drift(sampler.bound_table, spec)
        written, of_secret = ProtocolText(protocol, text), (spec.bin_rules, spec.merges)
        return publish(sampler, place, source, written, (book, salt), finish, spec=spec, of_secret=of_secret)


def load_verified(
    protocol: SealedProtocol | PublishedTable | str | Path, spec: ReleaseSpec
) -> tuple[SealedProtocol, Signer | None]:
    """The protocol, and whose signature was verified where it is a file that was signed."""
    if isinstance(protocol, PublishedTable):
        protocol = protocol.sealed
    if not isinstance(protocol, SealedProtocol):
        sealed, signer = load_signed_protocol(protocol, signed_by=spec.signed_by)
        return _prove(sealed), signer
    if spec.signed_by is not None:
        raise ParameterError(f"A signature is of a file. Name the protocol's file, or leave out {hint('signed_by')}.")
    return protocol, None


def _prove(sealed: SealedProtocol) -> SealedProtocol:
    """The protocol of a file, refused where it does not keep its promise at the model that it states."""
    if sealed.model is not None:
        certify_at_model(sealed, "Nothing was drawn: ask for the file as it was published.")
    return sealed


def _bind(table: Table, sealed: SealedProtocol, spec: ReleaseSpec) -> BoundTable:
    """The table read as the protocol reads it; refused where it has unknown rows and must not."""
    from privacyfunnel.tables.coding.row_hashes import make_row_ids

    spec.refuse_used((*(at.name for at in sealed.domain.attributes), *sealed.domain.secret_columns))
    ids = make_row_ids(spec.row_id, table.columns)
    bound = BoundTable.bind(table, sealed, bins=spec.bin_rules, merges=spec.merges, keep=spec.read_columns, ids=ids)
    if bound.encoding.unknown_rows.rows and spec.unknown == ERROR:
        raise unknown_rows_error(
            bound.encoding.unknown_rows, bound.encoding.rows, sealed.mechanism.anything_else is not None
        )
    if bound.encoding.rows == bound.encoding.unknown_rows.rows:
        raise TableError(
            f"{table.name} must hold rows that the protocol knows; it knows none of {bound.encoding.rows:,}. Name the "
            "table that the protocol was made for, or one like it."
        )
    return bound


def measure_drift(bound: BoundTable, spec: ReleaseSpec) -> TableLeak | None:
    """What is published of these rows leaks; refused beyond the promise, unless the owner accepts that."""
    found = bound.measure_leak(spec.judged_columns, spec.unknown, spec.allowed_epsilon)
    refuse_drift(found, bound.sealed, spec, bound.unmeasured)
    return found


def refuse_drift(found: TableLeak | None, sealed: SealedProtocol, spec: ReleaseSpec, unmeasured: str = "") -> None:
    """Refuse rows on which more leaks than was promised, or that carry the secret and cannot be measured, unless the
    owner accepts that."""
    promise, secret = sealed.promise, sealed.secret_text
    if spec.accept_drift:
        return
    if unmeasured and sealed.model is None:
        raise GuaranteeError(
            f"what rows leak about {secret} must be measured before they are published; it cannot be: "
            f"{unmeasured.rstrip('.')}. Read {secret} as the design did, or take it out of these rows; "
            f"{hint('accept_drift')} publishes them unmeasured, and a notice says so."
        )
    if found is None or not found.above:
        return
    amount = "without bound" if math.isinf(found.epsilon) else f"up to ε = {format_epsilon(found.epsilon)}"
    together = f", together {found.includes}" if found.includes else ""
    why = f": {found.why.rstrip('.')}" if found.why else ""
    larger = f"Allow a larger {hint('epsilon')} for these rows, or design"
    larger = "Design" if math.isinf(found.epsilon) else larger
    keep = f"leave out {hint('keep')}, or keep unjudged ({hint('accept_kept')}); " if spec.judged_columns else ""
    raise GuaranteeError(
        f"{promise.name} ε = {format_number(found.allowed)} about {secret} must hold on these rows; there the "
        f"protocol leaks {amount}{together}{why}. {larger} a protocol for them, with rare values merged "
        f"({hint('merge_rare', 10)}), or beforehand for the population ({hint('population', '95%')}); {keep}"
        f"{hint('accept_drift')} publishes them all the same, and a notice says so."
    )


def unknown_rows_error(found: UnknownRows, rows: int, answered: bool = False) -> TableError:
    """How many rows hold what is not known, and in which columns; never what they hold."""
    where = [f"{count:,} in {column}" for column, count in found.columns.items()]
    if found.combinations:
        where.append(f"{found.combinations:,} or more in combinations of known values")
    return TableError(
        f"Rows must have values and combinations of the protocol; {found.rows:,} of {rows:,} have others "
        f"({', '.join(where)}). Design a protocol for them, or use {hint('unknown', 'blur')}"
        f"{', by its row for anything else,' if answered else ''} or {hint('unknown', 'drop')}."
    )


def _make_applied(outgoing: RowSampler, table: Any, measured: TableLeak | None) -> Applied:
    """What was done, once all rows were drawn."""
    bound, spec = outgoing.bound_table, outgoing.spec
    used = {*(at.name for at in bound.sealed.domain.attributes), *bound.sealed.domain.secret_columns, *spec.keep}
    return Applied(
        table=table,
        sealed=bound.sealed,
        rows=outgoing.rows,
        spec=spec,
        strangers=bound.encoding.unknown_rows,
        unchanged=outgoing.unchanged_share,
        dropped=tuple(name for name in bound.encoding.table.columns if name not in used),
        measured=measured,
        unmeasured=bound.unmeasured or (MODEL_PROMISE if bound.sealed.model is not None and bound.has_secret else ""),
        drift=bound.measure_columns(),
        order_tells=outgoing.measure_row_order(),
        kept_columns=outgoing.kept_columns(),
    )
