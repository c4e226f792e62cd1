"""Sanitise: from a table to its sanitised version and its protocol, all of it or nothing.

table ──count──▶ Joint ──design──▶ SealedProtocol ──apply──▶ rows ──shuffle──▶ sanitised table
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.mechanisms.protocol_file import PROTOCOL
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.use import Use
from privacyfunnel.release.design import DesignResult, check_hazards, count_table, design_from_counts
from privacyfunnel.release.findings.findings import Findings
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import Destination, audience
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.checks import find_source
from privacyfunnel.spec.keywords import combine, require_spec
from privacyfunnel.tables.readers.table_files import TableSource

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.designs.interface import Progress
    from privacyfunnel.release.earlier_release import EarlierRelease
    from privacyfunnel.release.ledger.ledger_file import Entry
    from privacyfunnel.release.ledger.repeats import LedgerReport
    from privacyfunnel.release.row_sampler import ProgressCallback, RowSampler
    from privacyfunnel.tables.coding.contingency import Contingency
    from privacyfunnel.tables.coding.encoding import Encoding


class ReleaseRun:
    """A table on its way out: counted and sealed, and then drawn batch by batch."""

    def __init__(
        self,
        spec: ReleaseSpec,
        design: DesignResult,
        sampler: RowSampler,
        warnings: tuple[str, ...] = (),
        earlier: EarlierRelease | None = None,
    ) -> None:
        self._spec, self._design, self.sampler, self._warnings = spec, design, sampler, warnings
        self._earlier = earlier

    @classmethod
    def start(
        cls,
        table: Any,
        spec: ReleaseSpec,
        watch: ProgressCallback | None = None,
        progress: Progress | None = None,
        before_design: Callable[[Contingency], None] = lambda counted: None,
        before_noise: Callable[[Contingency], None] = lambda counted: None,
        earlier: EarlierRelease | None = None,
    ) -> ReleaseRun:
        """Count the table, make the protocol and seal it; nothing is published yet.

        `before_design` sees the counts and may refuse the release before anything is solved, `before_noise` before each
        draw of noise for them. After an `earlier` release
        the protocol is made by the model of that one, and no count is looked at.
        """
        from privacyfunnel.names import validate_columns
        from privacyfunnel.release.kept_counts import count_kept

        validate_columns(spec.keep, table.columns, "kept")
        warnings = check_hazards(table, spec)
        if watch:
            watch("counting", 0)
        if earlier is not None:
            from privacyfunnel.release.earlier_release import design_after
            from privacyfunnel.release.row_sampler import RowSampler

            design, bound = design_after(earlier, table, spec, progress)
            return cls(spec, design, RowSampler(bound, spec, watch), warnings, earlier)
        encoding = count_table(table, spec)
        before_design(encoding.contingency)
        kept = count_kept(encoding, spec.judged_columns) if spec.judged_columns else None
        design = design_from_counts(
            encoding.contingency, spec, progress, kept, lambda: before_noise(encoding.contingency)
        )
        return cls.from_design(encoding, spec, design, watch, warnings)

    @classmethod
    def from_design(
        cls,
        encoding: Encoding,
        spec: ReleaseSpec,
        design: DesignResult,
        watch: ProgressCallback | None = None,
        warnings: tuple[str, ...] = (),
    ) -> ReleaseRun:
        """The run for a table whose protocol is designed."""
        from privacyfunnel.release.bound_table import BoundTable
        from privacyfunnel.release.row_sampler import RowSampler

        if design.fitted is not None:
            encoding = encoding.recode(design.fitted.contingency.published)
        return cls(spec, design, RowSampler(BoundTable(design.sealed, encoding, True), spec, watch), warnings)

    @property
    def encoding(self) -> Encoding:
        return self.sampler.bound_table.encoding

    @property
    def sealed(self) -> SealedProtocol:
        return self._design.sealed

    def codebook(self) -> pl.DataFrame | None:
        """What outcome codes stand for, where the table shows any."""
        from privacyfunnel.release.release_files import codebook

        return codebook(self.sealed, self._design.joint)

    @property
    def expected_unchanged_share(self) -> float:
        """The share of rows that will show the value they had."""
        return self.sampler.layout.expected_unchanged_share(self._design.joint)

    def refuse_useless(self) -> None:
        """Refuse to go on where the release would say nothing."""
        # A release knows no estimation, which reads releases; the package, which is above all its parts, names it.
        import_module("privacyfunnel").refuse_useless(self._design, self.expected_unchanged_share, self._spec)

    def preview(self) -> Release:
        """What the release would be: no row is drawn."""
        return self._describe(None, self.expected_unchanged_share)

    def release(self, table: Any) -> Release:
        """The release, once all batches were drawn."""
        sampler, links = self.sampler, self.sampler.links
        return replace(
            self._describe(table, sampler.unchanged_share),
            links=links if self._earlier is None or links is None else self._earlier.next_links(links),
            order_tells=sampler.measure_row_order(),
            kept_columns=sampler.kept_columns(),
        )

    def _describe(self, table: Any, unchanged: float) -> Release:
        spec = self._spec
        used = {*spec.secret, *spec.keep, *(at.name for at in self.sealed.domain.attributes)}
        return Release(
            table=table,
            design=self._design,
            spec=spec,
            findings=Findings(self._design, spec),
            rows=self.encoding.rows,
            dropped=tuple(name for name in self.encoding.table.columns if name not in used),
            unchanged=unchanged,
            unchanged_expected=self.expected_unchanged_share,
            suspected=self._warnings,
        )


__all__ = ["Release", "sanitise", "sanitise_file"]


def sanitise(
    frame: Any,
    spec: ReleaseSpec | None = None,
    *,
    secret: str | Sequence[str | Sequence[str]] | Mapping[str, float] = (),
    publish: str | Sequence[str] = (),
    epsilon: float | None = None,
    promise: Promise | str | None = None,
    use: Use | str | None = None,
    bins: Sequence[Any] | Mapping[str, Any] = (),
    merge_rare: int | Mapping[str, int] | None = None,
    prior: str | None = None,
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
        The request. The keywords below are shorthand for its most common fields, and go before its own values. With
        `ReleaseSpec(after=release)` the promise is about all releases of these people since that one.
    secret
        The column that nobody shall learn. Several, `["health", "income"]` or `{"health": 0.5, "income": 1}`, are
        promised each by itself, with an ε of its own, and nothing about both; `[["health", "income"]]` are one secret.
    publish
        The column or columns to publish, randomised.
    epsilon, promise
        `"lip"` (a belief that starts from the prior moves by a factor of e^ε at most), `"ldp"` (any two secrets make a
        record likely within e^ε of each other) or `"srlip"` (lip, also to those who know some published values),
        with its `epsilon`; or a promise as a value, `LIP(1)`.
    use
        What the table is to be best for: `Information()`, `Statistics()`, `Balanced()`, `Values()`, `Distance()`, or
        a text: `"statistics:education,sex"`, `"balanced:0.97"`.
    bins
        Coarser values by column: `{"age": [0, 18, 65], "income": 8, "visit": "month", "icd": "prefix:3"}`. A list is
        edges, a number so many quantiles, a mapping groups of values.
    merge_rare
        Publish values with fewer rows than this as `other`: a number for all columns, or `{"zip": 10}`.
    prior
        What beliefs are compared with: `"model"`, a model of noisy counts that is published with the mechanism, so that
        ε covers all of it; `"table"`, the exact frequencies, whose mechanism is for the owner alone; `"population"`.
    """
    from privacyfunnel.tables.readers.eager_frames import frame_by_persons, frame_table

    spec = combine(
        spec,
        secret=secret,
        publish=publish,
        epsilon=epsilon,
        promise=promise,
        use=use,
        bins=bins,
        merge_rare=merge_rare,
        prior=prior,
    )
    spec, earlier = follow_earlier(spec)
    spec.require_columns()
    used = (*spec.secret, *spec.publish, *spec.read_columns)
    source = frame_by_persons(frame_table(frame), spec.person, spec.person_row, used)
    run = ReleaseRun.start(source, spec, earlier=earlier)
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


def follow_earlier(spec: ReleaseSpec) -> tuple[ReleaseSpec, EarlierRelease | None]:
    """The request with what the release before fixes, and that release, where one is named."""
    if spec.after is None:
        return spec, None
    from privacyfunnel.release.earlier_release import EarlierRelease

    earlier = EarlierRelease.load(spec.after)
    return earlier.complete_spec(spec), earlier


def sanitise_file(
    source: str | Path | TableSource | None,
    spec: ReleaseSpec,
    *,
    watch: Callable[[str, int], None] | None = None,
    progress: Callable[[float, float], None] | None = None,
    command: str = "",
    trial: bool = False,
    on_budget: Callable[[str], None] | None = None,
) -> Release:
    """Sanitise a file of any size, or a `Query`, into the folder `spec.into`; without a source, the spec's own table.

    The folder gets `public`, all of which may be published, and `owner`, which is for the owner alone. It appears whole
    or not at all. The release is recorded in the owner's ledger; a second one of the same rows about the same secret is
    refused before anything is solved, unless the spec says `again`. The owner's report says that `command` repeats it.
    A `trial`, such as a demonstration, is recorded and does not count. Where the spec says `try_`, nothing is drawn,
    written or recorded: the release says what it would be. After an earlier release `on_budget` is told what was spent
    and what is left, before anything is drawn.
    """
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.ledger.repeats import ProtocolText, noise_counts, record_noise, refuse_repeat
    from privacyfunnel.release.publish import output_text_format, publish
    from privacyfunnel.release.release_contents import write_contents

    spec, earlier = follow_earlier(require_spec(spec, "sanitise_file(source"))
    spec.require_columns()
    if earlier is not None and on_budget is not None:
        on_budget(earlier.describe_budget(spec.promise_value.epsilon))
    if spec.try_:
        table = find_source(source or spec.table, spec.query).open(spec.dialect)
        return ReleaseRun.start(table, spec, watch, earlier=earlier).preview()
    into, key = spec.require_into(), None
    if spec.sign is not None:
        from privacyfunnel.mechanisms.signatures import load_private_key

        key = load_private_key(spec.sign)  # before hours are spent
    source = find_source(source or spec.table, spec.query)
    table = source.open(spec.dialect)
    suffix = f".{spec.format}" if spec.format else source.suffix
    place = Destination.of_release(into, suffix, force=spec.force, source=source.file, target=spec.into_table)
    book = Ledger(ledger_path(source) if spec.ledger is None else spec.ledger)

    def finish(staged: Path, remembered: LedgerReport) -> Release:
        codes = run.codebook()
        release = replace(
            run.release(place.table),
            remembered=replace(remembered, noise=tuple(noise)),
            read_as=table.text_format.detection_notes,
        )
        return write_contents(
            release,
            staged,
            place,
            protocol=protocol.text,
            codes=None if codes is None else [codes],
            source=str(source if spec.table is None else spec.source),
            query=source.query,
            command=command,
            text_format=output_text_format(table, excel_safe=spec.excel_safe),
            key=key,
            watch=watch and (lambda doing: watch(doing, 0)),
        )

    private = spec.is_private_design and earlier is None
    path = into / audience(noisy=spec.is_private_design) / PROTOCOL
    noise: list[Entry] = []
    recorded: list[Path] = []  # designs whose noise is in the ledger

    def before_design(counted: Contingency) -> None:
        refuse_repeat(book, counted, spec, source, place.table, salt, trial=trial)

    def before_noise(counted: Contingency) -> None:
        if private and not recorded:
            noise.extend(record_noise(book, counted, spec, source, path, salt, trial=trial))
            recorded.append(path)

    with book.open_session() as salt:
        with noise_counts(recorded):
            run = ReleaseRun.start(table, spec, watch, progress, before_design, before_noise, earlier)
            if not trial:
                run.refuse_useless()
        protocol = ProtocolText(path, run.sealed.to_text())
        return publish(run.sampler, place, source, protocol, (book, salt), finish, spec=spec, trial=trial)
