"""A table on its way out: counted, designed for, drawn, and put into a random order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.release.design import DesignResult, check_hazards, count_table, design_from_counts
from privacyfunnel.release.findings.findings import Findings
from privacyfunnel.release.release import Release
from privacyfunnel.spec import ReleaseSpec

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.designs.interface import Progress
    from privacyfunnel.release.row_sampler import ProgressCallback, RowSampler
    from privacyfunnel.tables.coding.contingency import Contingency
    from privacyfunnel.tables.coding.encoding import Encoding


class ReleaseRun:
    """A table on its way out: counted and sealed, and then drawn batch by batch."""

    def __init__(
        self, spec: ReleaseSpec, design: DesignResult, sampler: RowSampler, warnings: tuple[str, ...] = ()
    ) -> None:
        self._spec, self._design, self.sampler, self._warnings = spec, design, sampler, warnings

    @classmethod
    def start(
        cls,
        table: Any,
        spec: ReleaseSpec,
        watch: ProgressCallback | None = None,
        progress: Progress | None = None,
        before_design: Callable[[Contingency], None] = lambda counted: None,
    ) -> ReleaseRun:
        """Count the table, make the protocol and seal it; nothing is published yet.

        `before_design` sees the counts and may refuse the release before anything is solved.
        """
        from privacyfunnel.names import validate_columns
        from privacyfunnel.release.kept_counts import count_kept

        validate_columns(spec.keep, table.columns, "kept")
        warnings = check_hazards(table, spec)
        if watch:
            watch("counting", 0)
        encoding = count_table(table, spec)
        before_design(encoding.contingency)
        kept = count_kept(encoding, spec.judged_columns) if spec.judged_columns else None
        design = design_from_counts(encoding.contingency, spec, progress, kept)
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
        from privacyfunnel.release.codebook import codebook

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
        sampler = self.sampler
        return replace(
            self._describe(table, sampler.unchanged_share),
            order_tells=sampler.measure_row_order(),
            kept_columns=sampler.kept_columns(),
        )

    def _describe(self, table: Any, unchanged: float) -> Release:
        spec = self._spec
        used = {*spec.secret, *spec.publish, *spec.keep}
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
