"""Sanitise: from a table to its sanitised version and its protocol, all of it or nothing.

table ──count──▶ Joint ──design──▶ SealedProtocol ──apply──▶ rows ──shuffle──▶ sanitised table
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import ReleaseFiles, ReportPage
from privacyfunnel.release.release_run import ReleaseRun
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.checks import find_source
from privacyfunnel.spec.keywords import accept_older_keywords, combine, require_spec

if TYPE_CHECKING:
    from privacyfunnel.atomic_files import StagedFiles
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.model.uses.use import Use
    from privacyfunnel.release.ledger.ledger_file import Entry
    from privacyfunnel.release.ledger.repeats import LedgerReport
    from privacyfunnel.tables.coding.contingency import Contingency
    from privacyfunnel.tables.readers.table_files import TableSource

__all__ = ["Release", "sanitise", "sanitise_file"]


@accept_older_keywords
def sanitise(
    frame: Any,
    spec: ReleaseSpec | None = None,
    *,
    secret: str | Sequence[str] = (),
    publish: str | Sequence[str] = (),
    epsilon: float | None = None,
    promise: Promise | str | None = None,
    use: Use | str | None = None,
    bins: Sequence[Any] | Mapping[str, Any] = (),
    merge_rare: int | Mapping[str, int] | None = None,
    keep: str | Sequence[str] = (),
) -> Release:
    """Sanitise a frame in memory (anything narwhals reads); `Release.table` is a frame of the same kind.

    Its rows are in a random order unless the spec keeps it; `Release.order` maps them back, for the owner. An index,
    attrs and metadata of the frame are not passed on; `Release.beside` lists them. Columns of numbers, truth values and
    categories keep their type where single values are published.

    Parameters
    ----------
    frame
        The rows: a frame of pandas, polars, pyarrow or anything else that narwhals reads.
    spec
        The request. The keywords below are shorthand for its most common fields, and go before its own values.
    secret
        The column, or columns together, that nobody shall learn.
    publish
        The column or columns to publish, randomised.
    epsilon, promise
        `"lip"` (nobody's belief about the secret moves by more than a factor of e^ε), `"ldp"` (any two secrets make a
        record likely within e^ε of each other) or `"srlip"` (lip, also against those who know some published values),
        with its `epsilon`; or a promise as a value, `LIP(1)`.
    use
        What the table is to be best for: `Information()`, `Statistics()`, `Balanced()`, `Values()`, `Distance()`, or
        a text: `"statistics:education,sex"`, `"balanced:0.97"`.
    bins
        Coarser values by column: `{"age": [0, 18, 65], "income": 8, "visit": "month", "icd": "prefix:3"}`. A list is
        edges, a number so many quantiles, a mapping groups of values.
    merge_rare
        Publish values with fewer rows than this as `other`: a number for all columns, or `{"zip": 10}`.
    keep
        Columns to publish unchanged. The promise is about them and what is published together.
    """
    from privacyfunnel.tables.readers.lazy_frames import frame_table

    spec = combine(
        spec,
        secret=secret,
        publish=publish,
        epsilon=epsilon,
        promise=promise,
        use=use,
        bins=bins,
        merge_rare=merge_rare,
        keep=keep,
    ).require_columns()
    source = frame_table(frame)
    run = ReleaseRun.start(source, spec)
    rows, numbers = run.sampler.draw_all(), run.sampler.order
    columns = [column for column in rows.get_columns() if column.name not in spec.keep]
    release = run.release(source.make_frame(columns, spec.keep, order=numbers))
    book = run.codebook()
    named = tuple(name for name in source.index_names or () if name and name not in source.columns)
    return replace(
        release,
        codebook=None if book is None else source.make_frame(book.get_columns()),
        order=numbers,
        dropped=(*release.dropped, *named),
        beside=source.side_data,
    )


def sanitise_file(
    source: str | Path | TableSource | None,
    spec: ReleaseSpec,
    *,
    watch: Callable[[str, int], None] | None = None,
    progress: Callable[[float, float], None] | None = None,
    pages: Callable[[Release], Iterable[ReportPage]] | None = None,
    trial: bool = False,
) -> Release:
    """Sanitise a file of any size, or a `Query`, into the folder `spec.into`; without a source, the spec's own table.

    The folder gets `sanitised.csv` (or another format), `protocol.json`, `codebook.csv` where the table shows codes of
    outputs, and the `pages` drawn from the release. They appear together, or none does. The release is recorded in the
    owner's ledger; a second one of the same rows about the same secret is refused before anything is solved, unless
    the spec says `again`. A `trial`, such as a demonstration, is recorded and does not count.
    """
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.ledger.noise_draws import record_noise
    from privacyfunnel.release.ledger.repeats import ProtocolText, refuse_repeat
    from privacyfunnel.release.publish import output_text_format, publish
    from privacyfunnel.tables.writers.table_writer import write_batches

    spec = require_spec(spec, "sanitise_file(source").require_columns()
    into = spec.require_into()
    source = find_source(source or spec.table, spec.query)
    table = source.open(spec.dialect)
    files = ReleaseFiles(into, f".{spec.format}" if spec.format else source.suffix, force=spec.force)
    files.refuse_early(source.file)
    book = Ledger(ledger_path(source) if spec.ledger is None else spec.ledger)

    def finish(parts: StagedFiles, drawn: Path, remembered: LedgerReport) -> Release:
        # Made from the counts themselves, both can reveal a person's secret (benchmarks attacks): the owner's.
        owners = not spec.is_private_design
        parts.begin(files.protocol.name, owner_only=owners).write_text(protocol.text, encoding="utf-8")
        codes = run.codebook()
        if codes is not None:
            beside = parts.begin(files.codebook.name, owner_only=owners)
            like = output_text_format(table, excel_safe=spec.excel_safe)
            write_batches(beside, beside.suffix, [codes], excel_safe=spec.excel_safe, text_format=like)
        release = replace(
            run.release(files.table),
            protocol_file=files.protocol,
            codebook=None if codes is None else files.codebook,
            remembered=replace(remembered, noise=tuple(noise)),
            read_as=table.text_format.detection_notes,
        )
        written = []
        for page in pages(replace(release, table=drawn)) if pages else ():
            parts.begin(page.name, owner_only=page.owners).write_text(page.text, encoding="utf-8")
            written.append(into / page.name)
        return replace(release, pages=tuple(written))

    noise: list[Entry] = []

    def before_design(counted: Contingency) -> None:
        refuse_repeat(book, counted, spec, source, files.table, salt, trial=trial)
        noise.extend(record_noise(book, counted, spec, source, files.protocol, salt, trial=trial))

    with book.open_session() as salt:
        run = ReleaseRun.start(table, spec, watch, progress, before_design=before_design)
        protocol = ProtocolText(files.protocol, run.sealed.to_text())
        return publish(run.sampler, files, source, protocol, (book, salt), finish, spec=spec, trial=trial)
