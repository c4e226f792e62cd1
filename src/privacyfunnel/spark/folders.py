"""Releases as folders: a table of Spark in, a folder out that appears whole, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.release.apply import Applied
from privacyfunnel.release.codebook import codebook
from privacyfunnel.release.design import Designed, designed
from privacyfunnel.release.files import CODEBOOKS, PROTOCOL
from privacyfunnel.release.order import Order
from privacyfunnel.release.sending import Sending
from privacyfunnel.spark.counting import counted
from privacyfunnel.spark.drawing import Draw
from privacyfunnel.spark.places import Files, Hidden, whole_folder
from privacyfunnel.tables.counts import contingency_of_counts
from privacyfunnel.tables.dialect import AS_FOUND, Dialect
from privacyfunnel.tables.frames import FrameTable
from privacyfunnel.tables.names import unlike
from privacyfunnel.tables.variables import Contingency

NOT_MEASURED = "on a cluster the secret is not read again; count it and use audit"


@dataclass(frozen=True, slots=True)
class Counts:
    """A data frame as a source of counts, which the cluster makes when it is opened."""

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
        return unlike("rows", self.columns)

    def open(self, dialect: Dialect) -> FrameTable:
        return FrameTable.of(counted(self.df, self.columns, self.counts))

    def contingency(self, order: Order) -> Contingency:
        """n(s, x) as the order reads it."""
        return contingency_of_counts(
            self.open(AS_FOUND),
            self.counts,
            secret=order.secret,
            publish=order.publish,
            bins=order.bins,
            merges=order.merges,
        )


def applied(sealed: SealedProtocol, df: Any, sending: Sending, files: Files) -> Applied:
    """The rows of a data frame drawn into a folder that appears whole, or not at all."""
    with whole_folder(df.sparkSession, files) as folder:
        return written(Draw.of(sealed, df, sending), folder, files)


def sanitised(df: Any, order: Order, files: Files) -> tuple[Designed, Applied]:
    """The same for a protocol that is designed first; it and its codebook are in the folder, too."""
    source = Counts(df, (*order.secret, *order.publish))
    with whole_folder(df.sparkSession, files) as folder:
        found = designed(source.contingency(order), order)
        done = written(Draw.of(found.sealed, df, order.sending), folder, files)
        folder.describe(PROTOCOL, found.sealed.to_text())
        codes = codebook(found.sealed, found.joint)
        if codes is not None:
            folder.describe(CODEBOOKS[0], codes.write_csv())
    return found, done


def written(draw: Draw, folder: Hidden, files: Files) -> Applied:
    """The rows drawn into a hidden folder, and what there is to say about them."""
    sealed, sending = draw.sealed, draw.sending
    rows = draw.once(folder.place("drawn")) if sending.row_id is None else draw.by_ids()
    folder.write(rows)
    used = {*draw.columns, *sealed.domain.secret_columns, *sending.keep}
    return Applied(
        table=files.table,
        sealed=sealed,
        rows=draw.rows,
        sending=sending,
        strangers=draw.strangers,
        unchanged=float("nan"),  # nobody looked at both
        dropped=tuple(name for name in draw.df.columns if name not in used),
        unmeasured=NOT_MEASURED if {*sealed.domain.secret_columns} <= {*draw.df.columns} else "",
    )
