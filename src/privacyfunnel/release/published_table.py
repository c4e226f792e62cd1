"""A sanitised table with its protocol, in memory or saved: what an analyst and its owner do with both."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import OutputError
from privacyfunnel.formatting import ShowsFacts
from privacyfunnel.mechanisms.protocol_file import find_protocol
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.tables.readers.table_files import find_table


class PublishedTable:
    """What is done with a table and the protocol it was drawn with; a release stands for both of its own.

    What estimates and audits knows releases, and not the other way round: the package, above all its parts, names it.
    """

    __slots__ = ()

    table: Any  # a frame, or the path of its file
    protocol_file: Path | None
    order: IntArray | None  # of a frame: the number in the original of each row, where the owner knows it

    if TYPE_CHECKING:  # a field of some, which a property here would be the default of

        @property
        def sealed(self) -> SealedProtocol:
            """The mechanism as integers, with its certificate."""

    @property
    def protocol(self) -> SealedProtocol:
        """The same by another name."""
        return self.sealed

    def estimate(self, **how: Any) -> Any:
        """Shares of the original values with intervals; see `privacyfunnel.estimate`."""
        return import_module("privacyfunnel").estimate(self, **how)

    def impute(self, m: int = 5, **how: Any) -> list[Any]:
        """Completed tables; see `privacyfunnel.impute`."""
        found: list[Any] = import_module("privacyfunnel").impute(self, m=m, **how)
        return found

    def regress(self, formula: str, **how: Any) -> Any:
        """Regression on the original values; see `privacyfunnel.regress`."""
        return import_module("privacyfunnel").regress(self, formula, **how)

    def posterior(self) -> Any:
        """What each record may have been; see `privacyfunnel.posterior`."""
        return import_module("privacyfunnel").posterior(self)

    def audit(self, original: Any, **how: Any) -> Any:
        """Check the promise and the draw against the original table; see `privacyfunnel.audit`."""
        return import_module("privacyfunnel").audit(self, original, **how)

    def apply(self, frame: Any, *more: Any, **how: Any) -> Any:
        """Draw other rows from the same protocol; see `privacyfunnel.apply`."""
        return import_module("privacyfunnel").apply(self, frame, *more, **how)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SavedRelease(ShowsFacts, PublishedTable):
    """A release that was saved: the path of its table, and its protocol."""

    table: Path
    sealed: SealedProtocol
    protocol_file: Path
    order: None = None

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The release in a folder, as `save` and the command line write it."""
        folder = Path(folder)
        if not folder.is_dir():
            raise OutputError(f"A saved release is a folder; there is none at '{folder}'. Name that of the release.")
        file, table = find_protocol(folder), find_table(folder)
        if table.is_dir():
            raise OutputError(f"A saved release has a table; '{folder}' has none. Name the folder of a release.")
        return cls(table, SealedProtocol.load(file), file)

    def summary(self) -> str:
        """What was promised and published, in a few lines."""
        return repr(self)

    def _facts(self) -> list[tuple[str, str]]:
        return [("table", str(self.table)), *self.sealed._facts()]
