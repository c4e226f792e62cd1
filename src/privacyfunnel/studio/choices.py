"""What the owner has chosen so far, as immutable text and numbers; and the request that it makes.

Everything is kept as the command line would be told it, so that the command that repeats a release is read off, not
made up (`tasks/publish_task.py`), and the rooms read it by the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.errors import ColumnError, TableError
from privacyfunnel.spec.fields import MODEL, POPULATION_PRIOR, TABLE
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect

if TYPE_CHECKING:
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.coding.bins import Bins
    from privacyfunnel.tables.coding.merges import Merge

SECRET, PUBLISH, KEEP, LEAVE = "secret", "publish", "keep", "leave"
ROLES = (SECRET, PUBLISH, KEEP, LEAVE)
CONFIDENCE = 0.95  # with which a promise to the people holds


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table: where it is, and what its owner calls it."""

    path: Path
    name: str
    uploaded: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen; what was not has a default that can be seen."""

    source: TableFile | None = None
    dialect: Dialect = AUTO_DETECT  # how the file is read
    roles: Mapping[str, str] = field(default_factory=dict)  # of columns; left out where none is given
    bins: Mapping[str, str] = field(default_factory=dict)  # how each column is cut
    rare: Mapping[str, int] = field(default_factory=dict)  # values of fewer rows are one
    public: tuple[str, ...] = ()  # columns of which everybody knows which values there are
    knows: bool = False  # an attacker may know some of the published columns
    ratios: bool = False  # any two secrets must be as good as alike, also rare ones
    epsilon: float = 1.0  # as it was asked for: of any two secrets, where `ratios`
    prior: str = MODEL  # what beliefs are compared with: a published model, the table, or also its population
    use: str = ""  # what the table is to be best for; empty for what serves most, as the command line chooses
    time_limit: float | None = None  # seconds, where the best so far was taken
    into: str = ""  # the folder; empty for one beside the table

    def columns(self, role: str) -> tuple[str, ...]:
        """The columns of that role, in the order of the table."""
        return tuple(column for column, given in self.roles.items() if given == role)

    @property
    def table(self) -> TableFile:
        if self.source is None:
            raise TableError("a table must be chosen; none is. Begin with the first step.")
        return self.source

    @property
    def promise_name(self) -> str:
        """Two plain questions to one of three promises.

        Whoever knows published values is covered by SRLIP, ratios between any two secrets by LDP. Nothing has both in
        its name, but SRLIP of half the size has both: two factors of at most e^(ε/2) are one of at most e^ε.
        """
        return "srlip" if self.knows else "ldp" if self.ratios else "lip"

    @property
    def size(self) -> float:
        """The ε of that promise."""
        return self.epsilon / 2 if self.knows and self.ratios else self.epsilon

    @property
    def population(self) -> float | None:
        return CONFIDENCE if self.prior == POPULATION_PRIOR else None

    @property
    def exact(self) -> bool:
        """Whether the mechanism is made from the table's own counts, and is for the owner alone."""
        return self.prior != MODEL or bool(self.columns(KEEP)) or any(rule.quantiles for rule in self.cuts)

    @property
    def promise(self) -> Promise:
        from privacyfunnel.model.promises import find_promise as promise_called

        return promise_called(self.promise_name, self.size)

    @property
    def cuts(self) -> tuple[Bins, ...]:
        """The bins of columns that are secret or published."""
        from privacyfunnel.tables.coding.bin_syntax import parse_bin

        used = {*self.columns(SECRET), *self.columns(PUBLISH)}
        return tuple(parse_bin(f"{column}={how}") for column, how in self.bins.items() if how and column in used)

    @property
    def merges(self) -> tuple[Merge, ...]:
        from privacyfunnel.tables.coding.merges import MergeRare

        return tuple(MergeRare(rows, column) for column, rows in self.rare.items() if column in self.columns(PUBLISH))

    @property
    def folder(self) -> Path:
        """Where the release goes."""
        if self.into:
            return Path(self.into).expanduser()
        stem = self.table.name.split(".", maxsplit=1)[0] or "table"
        beside = Path.cwd() if self.table.uploaded else self.table.path.parent
        return beside / f"{stem}-sanitised"

    @property
    def ledger(self) -> Path | None:
        """The owner's memory of releases: beside the table, or beside the release where the table does not stay."""
        from privacyfunnel.release.ledger.ledger_file import NAME

        return self.folder.parent / NAME if self.table.uploaded else None

    def to_spec(self) -> ReleaseSpec:
        """The request that all this makes."""
        from privacyfunnel.spec import ReleaseSpec

        self.check_roles()
        used = {*self.columns(SECRET), *self.columns(PUBLISH)}
        rare = {column: rows for column, rows in self.rare.items() if column in self.columns(PUBLISH)}
        return ReleaseSpec(
            table=self.table.name if self.table.uploaded else self.table.path,
            secret=self.columns(SECRET),
            publish=self.columns(PUBLISH),
            epsilon=self.size,
            promise=self.promise_name,
            prior=TABLE if self.exact else None,
            population=self.population,
            use=self.use or None,
            keep=self.columns(KEEP),
            bins={column: how for column, how in self.bins.items() if how and column in used},
            merge_rare=rare or None,
            public_labels=() if self.exact else tuple(column for column in self.public if column in used),
            time_limit=self.time_limit,
            delimiter=self.dialect.delimiter,
            encoding=self.dialect.encoding,
            decimal=self.dialect.decimal,
            sheet=self.dialect.sheet,
            header_row=self.dialect.header_row,
            ledger=self.ledger,
            into=self.folder,
        )

    def check_roles(self) -> None:
        """Refuse what nothing can be published with."""
        if not self.columns(SECRET):
            raise ColumnError(
                "at least one column must be secret; none is. Say under Roles which one must not be told."
            )
        if not self.columns(PUBLISH):
            raise ColumnError("at least one column must be published; none is. Say under Roles which one.")

    @property
    def factor(self) -> float:
        """e^ε: by how much a belief may grow."""
        return math.exp(min(self.epsilon, 700.0))
