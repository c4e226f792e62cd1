"""Releases as folders: a Spark table in, a folder out that appears complete or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privacyfunnel.mechanisms.protocol_file import PROTOCOL
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import unique_label
from privacyfunnel.release.apply import Applied
from privacyfunnel.release.codebook import codebook
from privacyfunnel.release.design import DesignResult, design_from_counts
from privacyfunnel.release.release_files import NOTICE, codebook_name
from privacyfunnel.spark.counting import count_combinations
from privacyfunnel.spark.frame_draw import FrameDraw
from privacyfunnel.spark.output_folder import HiddenFolder, OutputFiles, atomic_folder
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.contingency import Contingency
from privacyfunnel.tables.coding.encoding import contingency_from_counts
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """A data frame as a source of counts, made by the cluster when it is opened."""

    df: Any
    columns: tuple[str, ...]
    query: str = ""
    file: Path | None = None
    folder: Path = Path()
    identity: str = ""
    suffix: str = ".csv"

    @property
    def counts(self) -> str:
        """The column that says how many rows a combination stands for."""
        return unique_label("rows", self.columns)

    def open(self, dialect: Dialect) -> FrameTable:
        return FrameTable.from_native(count_combinations(self.df, self.columns, self.counts))

    def contingency(self, spec: ReleaseSpec) -> Contingency:
        """n(s, x) as the spec reads it."""
        return contingency_from_counts(
            self.open(AUTO_DETECT),
            self.counts,
            secret=spec.secret,
            publish=spec.publish,
            bins=spec.bin_rules,
            merges=spec.merges,
        )


def apply_to_folder(sealed: SealedProtocol, df: Any, spec: ReleaseSpec, files: OutputFiles) -> Applied:
    """Draw the rows of a data frame into a folder that appears complete or not at all."""
    with atomic_folder(df.sparkSession, files) as folder:
        return write_draw(FrameDraw.of(sealed, df, spec), folder, files)


def sanitise_to_folder(df: Any, spec: ReleaseSpec, files: OutputFiles) -> tuple[DesignResult, Applied]:
    """Design a protocol, then draw; the folder also holds the protocol and its codebook."""
    source = ClusterCounts(df, (*spec.secret, *spec.publish))
    with atomic_folder(df.sparkSession, files) as folder:
        found = design_from_counts(source.contingency(spec), spec)
        done = write_draw(FrameDraw.of(found.sealed, df, spec), folder, files)
        folder.describe(PROTOCOL, found.sealed.to_text())
        codes = codebook(found.sealed, found.joint)
        if codes is not None:
            folder.describe(codebook_name(".csv"), codes.write_csv())
    return found, done


def write_draw(draw: FrameDraw, folder: HiddenFolder, files: OutputFiles) -> Applied:
    """Draw the rows into a hidden folder, and describe them."""
    sealed, spec = draw.sealed, draw.spec
    rows = draw.draw_without_ids(folder.path("drawn")) if spec.row_id is None else draw.draw_by_ids()
    folder.write(rows)
    used = {*draw.columns, *sealed.domain.secret_columns, *spec.keep}
    applied = Applied(
        table=files.table,
        sealed=sealed,
        rows=draw.rows,
        spec=spec,
        strangers=draw.strangers,
        unchanged=float("nan"),  # nobody looked at both
        dropped=tuple(name for name in draw.df.columns if name not in used),
        measured=draw.measured,
        unmeasured=draw.unmeasured,
    )
    if applied.notice:
        folder.describe(f"_{NOTICE}", f"{applied.notice}\n", public=True)
    return applied
