"""The main job: from a table to its sanitised version and the public protocol, whole or not at all.

table ──count──▶ Joint ──design──▶ SealedProtocol ──apply──▶ rows ──shuffle──▶ sanitised table
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.designs.method_selection import DEFAULT_METHOD
from privacyfunnel.designs.methods import Effort
from privacyfunnel.model.promises import Promise, resolve_promise
from privacyfunnel.model.uses.use import Use
from privacyfunnel.model.uses.use_parser import resolve_use
from privacyfunnel.release.order import OUTCOMES, Order
from privacyfunnel.release.population_scope import parse_population
from privacyfunnel.release.private_design import make_private_design
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import ReleaseFiles, ReportPage
from privacyfunnel.release.release_run import ReleaseRun
from privacyfunnel.release.sending import ProgressCallback, column_tuple
from privacyfunnel.tables.coding.bin_syntax import parse_bins
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.merges import make_merges
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect

if TYPE_CHECKING:
    from privacyfunnel.atomic_files import StagedFiles
    from privacyfunnel.release.ledger.repeats import LedgerReport
    from privacyfunnel.tables.coding.domain_file import DomainFile
    from privacyfunnel.tables.readers.table_files import TableSource

__all__ = ["Release", "sanitise", "sanitise_file"]


def sanitise(
    frame: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    promise: Promise | str = "lip",
    epsilon: float | None = None,
    population: float | str | None = None,
    method: str = DEFAULT_METHOD,
    chain_order: Sequence[str] = (),
    budgets: str | Sequence[float] | None = None,
    keep: str | Sequence[str] = (),
    bins: Sequence[Bins | str] | Mapping[str, Any] = (),
    merge_rare: int | Mapping[str, int] | None = None,
    merge_secrets: Mapping[str, Sequence[str]] | None = None,
    as_: str = OUTCOMES,
    sets: str = "column",
    use: Use | str | None = None,
    ordered: Mapping[str, Sequence[str]] | None = None,
    sees_secret: bool = False,
    with_shares: bool = False,
    keep_order: bool = False,
    seed: int | None = None,
    effort: Effort | None = None,
    design_epsilon: float | None = None,
    domain: DomainFile | None = None,
) -> Release:
    """Sanitise a frame in memory (anything narwhals reads); `Release.table` is a frame of the same kind.

    Its rows are in a random order, of which `Release.order` tells the owner, unless the order is to be kept.
    An index, attrs and metadata of the frame are not passed on; `Release.beside` says which there were.
    Columns of numbers, truth values and categories come back as such where single values are published.

    Parameters
    ----------
    frame
        The rows: a frame of pandas, polars, pyarrow or anything else that narwhals reads.
    secret
        The column, or columns together, that nobody shall learn.
    publish
        The column or columns to publish, randomised.
    promise, epsilon
        `"lip"` (nobody's belief about the secret moves by more than a factor of e^ε), `"ldp"` (any two secrets make a
        record likely within e^ε of each other) or `"srlip"` (lip, also against those who know some published values),
        with its `epsilon`; or a promise as a value, `LIP(1)`.
    population
        `"95%"`: keep it, with that confidence, for the people whom the rows are a sample of; `"auto"`: where possible.
    method
        `"auto"`, or `optimal`, `chain`, `product`, `randomised-response`, `unary-encoding`, `conditional-reporting`.
    budgets
        Of a product: `"sound"`, `"paper"`, or an ε per column; searched where left out.
    bins
        Coarser values by column: `{"age": [0, 18, 65], "income": 8, "visit": "month", "icd": "prefix:3"}`. A list is
        edges, a number so many quantiles, a mapping groups of values; texts are those of the command line.
    merge_rare
        Publish values that fewer than so many rows hold as `other`: a number for all columns, or `{"zip": 10}`.
    merge_secrets
        Secrets that are one from now on: `{"other": ["a", "b"]}`. Nothing is promised that tells them apart.
    as_
        `"outcomes"`: the most likely value and a code; `"labels"`: groups of values in words; `"values"`: values
        alone, in the types that they had.
    use
        What the table is to be best for: `Information()`, `Statistics()`, `Balanced()`, `Values()`, `Distance()`, or
        as the command line has it: `"statistics:education,sex"`, `"balanced:0.97"`.
    ordered
        Columns whose values stand on a line though they are no numbers: `{"size": ["S", "M", "L"]}`.
    sees_secret
        Let the protocol look at the secret as well: it keeps more and promises less.
    with_shares
        Publish the exact shares of each published column in the protocol, by which estimates are calibrated.
    effort
        How long and how closely to search: `Effort(time_limit=60)`.
    design_epsilon, domain
        Make the protocol from counts with noise, over public labels (`read_domain`).
    chain_order
        For a chain: the columns in the order in which they are published.
    keep
        Columns to pass through as they are, unprotected.
    sets
        How sets of values are written: one `"column"`, or 0/1 `"indicators"`.
    keep_order
        Publish the rows in the order of the frame, which may give the secret away.
    seed
        For tests only: a release that was drawn from a seed is not for publication.
    """
    from privacyfunnel.tables.readers.lazy_frames import frame_table

    order = Order(
        secret=column_tuple(secret),
        publish=column_tuple(publish),
        promise=resolve_promise(promise, epsilon),
        population=parse_population(population).confidence,
        population_if_possible=parse_population(population).if_possible,
        method=method,
        chain_order=tuple(chain_order),
        budgets=budgets if budgets is None or isinstance(budgets, str) else tuple(budgets),
        keep=column_tuple(keep),
        bins=parse_bins(bins),
        merges=make_merges(merge_rare, merge_secrets),
        as_=as_,
        sets=sets,
        use=resolve_use(use),
        orders=tuple((column, tuple(labels)) for column, labels in (ordered or {}).items()),
        sees_secret=sees_secret,
        with_shares=with_shares,
        keep_order=keep_order,
        seed=seed,
        effort=effort or Effort(),
        private=make_private_design(design_epsilon),
        domain=domain,
    )
    source = frame_table(frame)
    work = ReleaseRun.start(source, order)
    rows, numbers = work.outgoing.draw_all(), work.outgoing.order
    columns = [column for column in rows.get_columns() if column.name not in order.keep]
    release = replace(work.release(source.make_frame(columns, order.keep, order=numbers)), order=numbers)
    book = work.codebook()
    release = release if book is None else replace(release, codebook=source.make_frame(book.get_columns()))
    named = tuple(name for name in source.index_names or () if name and name not in source.columns)
    return replace(release, dropped=(*release.dropped, *named), beside=source.side_data)


def sanitise_file(
    source: str | Path | TableSource,
    into: str | Path,
    order: Order,
    *,
    suffix: str | None = None,
    dialect: Dialect = AUTO_DETECT,
    force: bool = False,
    excel_safe: bool = False,
    ledger: str | Path | None = None,
    again: bool = False,
    trial: bool = False,
    watch: ProgressCallback | None = None,
    pages: Callable[[Release], Iterable[ReportPage]] | None = None,
) -> Release:
    """Sanitise a file of any size into the folder `into`: `sanitised.csv` (or as `suffix` says), `protocol.json`, and
    `codebook.csv` where the table shows codes of outputs.

    These files, and the `pages` that are drawn from the release (whose table is not in its place yet), appear whole and
    together, or none does. With `force` they take the place of the release that is there. If it is to be `excel_safe`,
    a cell of text that a spreadsheet would take for a formula gets an apostrophe in front. The release is remembered in
    the owner's `ledger`, by default beside the table; a second one of the same rows about the same secret is refused
    unless it is to be made `again`. A `trial`, such as a demonstration, is remembered and does not count.
    In place of a file there may be a `Query`.
    """
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.ledger.repeats import ProtocolText
    from privacyfunnel.release.publish import output_text_format, publish
    from privacyfunnel.tables.readers.persons import person_warnings
    from privacyfunnel.tables.readers.table_files import resolve_source
    from privacyfunnel.tables.writers.table_writer import write_batches

    source, into = resolve_source(source), Path(into)
    table = source.open(dialect)
    files = ReleaseFiles(into, suffix or source.suffix, force=force)
    files.refuse_early(source.file)
    book = Ledger(ledger_path(source) if ledger is None else Path(ledger))

    def finish(parts: StagedFiles, drawn: Path, remembered: LedgerReport) -> Release:
        # Made from the counts themselves, both can tell a person's secret (benchmarks attacks): the owner's.
        owners = order.private is None
        parts.begin(files.protocol.name, owner_only=owners).write_text(protocol.text, encoding="utf-8")
        codes = work.codebook()
        if codes is not None:
            beside = parts.begin(files.codebook.name, owner_only=owners)
            like = output_text_format(table, excel_safe=excel_safe)
            write_batches(beside, beside.suffix, [codes], excel_safe=excel_safe, text_format=like)
        release = replace(
            work.release(files.table),
            protocol_file=files.protocol,
            codebook=None if codes is None else files.codebook,
            excel_safe=excel_safe,
            remembered=remembered,
            read_as=table.text_format.detection_notes,
            suspected=() if dialect.person or trial else person_warnings(table, (*order.secret, *order.publish)),
        )
        written = []
        for page in pages(replace(release, table=drawn)) if pages else ():
            parts.begin(page.name, owner_only=page.owners).write_text(page.text, encoding="utf-8")
            written.append(into / page.name)
        return replace(release, pages=tuple(written))

    with book.open_session() as salt:
        work = ReleaseRun.start(table, order, watch)
        protocol = ProtocolText(files.protocol, work.sealed.to_text())
        return publish(
            work.outgoing,
            files,
            source,
            protocol,
            (book, salt),
            finish,
            again=again,
            trial=trial,
            excel_safe=excel_safe,
            bins=[binned for binned in order.bins if binned.column in order.secret],
            merges=[rule for rule in order.merges if any(rule.concerns(name, secret=True) for name in order.secret)],
        )
