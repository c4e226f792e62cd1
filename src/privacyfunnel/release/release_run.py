"""A table on its way out: counted, designed for, drawn, and put into a random order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.release.design import DesignResult, count_table, design_from_counts
from privacyfunnel.release.findings.findings import Findings
from privacyfunnel.release.hazard_check import check_hazards
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

    def release(self, table: Any) -> Release:
        """The release, once all batches were drawn."""
        spec, sampler = self._spec, self.sampler
        used = {*spec.secret, *spec.publish, *spec.keep}
        return Release(
            table=table,
            design=self._design,
            spec=spec,
            findings=Findings(self._design, spec),
            rows=self.encoding.rows,
            dropped=tuple(name for name in self.encoding.table.columns if name not in used),
            unchanged=sampler.unchanged_share,
            unchanged_expected=sampler.layout.expected_unchanged_share(self._design.joint),
            order_tells=sampler.measure_row_order(),
            kept_columns=sampler.kept_columns(),
            suspected=self._warnings,
        )
