"""The main job: from a table to its sanitised version and the public protocol, whole or not at all.

table ──count──▶ Joint ──design──▶ SealedProtocol ──apply──▶ sanitised table
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.designs.choice import DEFAULT_METHOD
from privacyfunnel.designs.curve import Point
from privacyfunnel.designs.methods import Effort
from privacyfunnel.errors import ColumnError
from privacyfunnel.laws.sampling import KeyStream
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, Promise
from privacyfunnel.release.advice import sparse_words
from privacyfunnel.release.design import Designed, counted, designed
from privacyfunnel.release.files import Page, ReleaseFiles
from privacyfunnel.release.order import LABELS, Order, Watch, names
from privacyfunnel.release.private import private_design, told_of_design
from privacyfunnel.release.rare import few_words, rare_secret_words
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.merging import merges_of

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.tables.domain_file import DomainFile
    from privacyfunnel.tables.encoding import Encoding


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A sanitised table, the protocol it was drawn with, and what there is to say about both."""

    table: Any  # a frame of the kind that was given, or the path of the file that was written
    sealed: SealedProtocol
    method: str
    rows: int
    kept: tuple[str, ...]  # passed through as they are, unprotected
    dropped: tuple[str, ...]
    unchanged: float  # the share of rows that show the value they had
    unchanged_expected: float  # and the share that the law expects
    known_values_leak: float | None = None  # ε against someone who knows X, where the protocol sees S
    protocol_file: Path | None = None
    seconds: float = 0.0  # what making and certifying the protocol took
    reason: str = ""  # why this method, where it was chosen for the owner
    sparse: str = ""  # how far combinations give the secret away, and what a smaller table would change
    rare: tuple[str, ...] = ()  # values that few people have, and what merging rare secrets would keep; a sentence each
    pages: tuple[Path, ...] = ()  # the reports that were written
    joint: Joint | None = None  # the owner's own: it holds counts, and is in no public file
    known: tuple[Point, ...] = ()  # the points of a curve that were solved on the way
    excel_safe: bool = False  # whether cells that a spreadsheet would take for formulas have an apostrophe in front
    beside: tuple[str, ...] = ()  # what a frame carried beside its columns, such as an index: it was not passed on

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return self.sealed.information

    @property
    def share_kept(self) -> float:
        """I(X;Y) / H(X)."""
        return self.sealed.information / self.sealed.entropy

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What nobody should read into the promise, a sentence each."""
        domain, promise = self.sealed.domain, self.sealed.promise
        secret, columns = " & ".join(domain.secret_columns), " & ".join(at.name for at in domain.attributes)
        said = []
        if not self.sealed.for_publication:
            said.append("This draw came from a seed, which someone may guess: it is NOT FOR PUBLICATION.")
        if self.known_values_leak is not None and not promise.guards_known_attributes:
            said.append(
                f"This protocol looks at {secret}. Whoever already knows a person's {columns} may learn {secret} from "
                f"the published record, up to ε = {self.known_values_leak:.3g}; {promise.name} does not cover them, "
                "SRLIP does."
            )
        elif len(domain.attributes) > 1 and not promise.guards_known_attributes:
            said.append(
                f"Whoever already knows some of {columns} of a person may learn more about {secret}; "
                f"{promise.name} does not cover them, SRLIP does."
            )
        if domain.secrets_merged:
            said.append(f"Values of {secret} were merged: nothing is promised that tells those apart that are one now.")
        if self.kept:
            said.append(f"Kept as they are, unprotected: {', '.join(self.kept)}.")
        if self.beside:
            said.append(
                f"Not passed on, for it may hold the secret or names: {', '.join(self.beside)}. "
                "What is to be published of it must be made a column and named among those to keep."
            )
        said += told_of_design(self.sealed.promise, secret)
        said += [
            f"{columns} itself is not protected, nor who is in the table: only {secret} is.",
            "A second release of the same rows, or several rows about one person, can give away more than their ε "
            "added; audit --with computes it for releases.",
            f"Beliefs are compared with the distribution of {secret} in this table; whoever starts from another "
            "belief may learn more or less.",
        ]
        return tuple(said)


def sanitise(
    frame: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    promise: Promise,
    population: float | None = None,
    method: str = DEFAULT_METHOD,
    chain_order: Sequence[str] = (),
    budgets: str | Sequence[float] | None = None,
    keep: str | Sequence[str] = (),
    bins: Sequence[Bins] = (),
    merge_rare: int | Mapping[str, int] | None = None,
    merge_secrets: Mapping[str, Sequence[str]] | None = None,
    as_: str = LABELS,
    sets: str = "column",
    sees_secret: bool = False,
    seed: int | None = None,
    effort: Effort | None = None,
    design_epsilon: float | None = None,
    domain: DomainFile | None = None,
) -> Release:
    """Sanitise a frame in memory (anything narwhals reads); `Release.table` is a frame of the same kind.

    An index, attrs and metadata of the frame are not passed on; `Release.beside` says which there were.
    What each argument means is what `Order` says of it.
    """
    import polars as pl

    from privacyfunnel.tables.frames import FrameTable

    order = Order(
        secret=names(secret),
        publish=names(publish),
        promise=promise,
        population=population,
        method=method,
        chain_order=tuple(chain_order),
        budgets=budgets if budgets is None or isinstance(budgets, str) else tuple(budgets),
        keep=names(keep),
        bins=tuple(bins),
        merges=merges_of(merge_rare, merge_secrets),
        as_=as_,
        sets=sets,
        sees_secret=sees_secret,
        seed=seed,
        effort=effort or Effort(),
        private=private_design(design_epsilon),
        domain=domain,
    )
    source = FrameTable.of(frame)
    work = _Work.begun(source, order)
    rows = pl.concat(work.batches())
    release = work.release(source.like(rows.get_columns(), order.keep))
    named = tuple(name for name in source.index_names or () if name and name not in source.columns)
    return replace(release, dropped=(*release.dropped, *named), beside=source.beside)


def sanitise_file(
    source: str | Path,
    into: str | Path,
    order: Order,
    *,
    suffix: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    force: bool = False,
    excel_safe: bool = False,
    watch: Watch | None = None,
    pages: Callable[[Release], Iterable[Page]] | None = None,
) -> Release:
    """Sanitise a file of any size into the folder `into`: `sanitised.csv` (or as `suffix` says) and `protocol.json`.

    Both files, and the `pages` that are drawn from the release (whose table is not in its place yet), appear whole and
    together, or none does. With `force` they take the place of the release that is there. If it is to be `excel_safe`,
    a cell of text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    from privacyfunnel.tables.files import open_table, table_suffix
    from privacyfunnel.tables.spreadsheets import refuse_unsafe
    from privacyfunnel.tables.whole import folder
    from privacyfunnel.tables.writing import write_batches

    source, into = Path(source), Path(into)
    table = open_table(source, delimiter=delimiter, encoding=encoding)
    files = ReleaseFiles(into, suffix or str(table_suffix(source)), force=force)
    files.refuse_early(source)
    work = _Work.begun(table, order, watch, order.keep)
    if excel_safe:
        refuse_unsafe(files.suffix, [*work.way.names, *order.keep], [*work.sealed.law.columns, work.sealed.law.members])
    with folder(into), files.together() as parts:
        drawn = parts.begin(files.table.name)
        write_batches(drawn, files.suffix, work.batches(order.keep), excel_safe=excel_safe)
        # Made from the counts themselves, it can tell a person's secret (benchmarks attacks): it is the owner's.
        protocol = parts.begin(files.protocol.name, owners=order.private is None)
        protocol.write_text(work.sealed.to_text(), encoding="utf-8")
        release = replace(work.release(files.table), protocol_file=files.protocol, excel_safe=excel_safe)
        written = []
        for page in pages(replace(release, table=drawn)) if pages else ():
            parts.begin(page.name, owners=page.owners).write_text(page.text, encoding="utf-8")
            written.append(into / page.name)
    return replace(release, pages=tuple(written))


class _Work:
    """A table on its way out: counted and sealed, and now drawn batch by batch while the unchanged rows are counted."""

    def __init__(
        self, encoding: Encoding, order: Order, found: Designed, stream: KeyStream, watch: Watch | None
    ) -> None:
        from privacyfunnel.release.write import published

        self._encoding, self._order, self._found = encoding, order, found
        self._stream, self._watch, self._unchanged = stream, watch, 0
        self.way = published(found.sealed, order.sets)
        taken = [name for name in order.keep if name in self.way.names]
        if taken:
            raise ColumnError(f"column '{taken[0]}' cannot be kept: a published column has that name. Rename it first.")

    @classmethod
    def begun(cls, table: Any, order: Order, watch: Watch | None = None, keep: Sequence[str] = ()) -> _Work:
        """Count the table, make the protocol and seal it; nothing is published yet."""
        from privacyfunnel.tables.names import checked_columns

        checked_columns(order.keep, table.columns, "kept")
        if watch:
            watch("counting", 0)
        encoding = counted(table, order, keep)
        stream = KeyStream.fresh() if order.seed is None else KeyStream.from_seed(order.seed)
        return cls(encoding, order, designed(encoding, order, stream), stream, watch)

    @property
    def sealed(self) -> SealedProtocol:
        return self._found.sealed

    def batches(self, keep: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """The sanitised rows in the order of the table: the published columns, then those to `keep`."""
        from privacyfunnel.release.apply import applied

        for batch in applied(self.sealed, self._encoding, self._stream, self.way, keep, self._found.drawn):
            self._unchanged += batch.unchanged
            yield batch.rows
            if self._watch:
                self._watch("drawn", batch.end)

    def release(self, table: Any) -> Release:
        """What was done, once all batches were drawn."""
        encoding, order, found = self._encoding, self._order, self._found
        used = {*order.secret, *order.publish, *order.keep}
        law, joint = self.sealed.law, found.joint
        return Release(
            table=table,
            sealed=self.sealed,
            method=found.choice.method,
            rows=encoding.rows,
            kept=order.keep,
            dropped=tuple(name for name in encoding.table.columns if name not in used),
            unchanged=self._unchanged / encoding.rows,
            unchanged_expected=self.way.expected_unchanged(joint),
            known_values_leak=SRLIP(0).leakage(joint, law.protocol) if law.sees_secret else None,
            seconds=found.seconds,
            reason=found.choice.reason,
            sparse="" if order.private else sparse_words(found, self._watch),
            rare=()
            if order.private
            else tuple(
                filter(None, (few_words(joint, self.sealed.domain.bins), rare_secret_words(found, order.secret)))
            ),
            joint=joint,
            known=() if found.point is None else (found.point,),
        )
