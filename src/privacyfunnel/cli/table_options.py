"""How a table is to be read, as options: how its file is written, and what its values are taken for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privacyfunnel.cli.options import (
    BinOption,
    Decimal,
    Delimiter,
    Encoding,
    MergeRareOption,
    MergeSecretsOption,
    Na,
    Person,
    PersonRow,
    Sheet,
)
from privacyfunnel.spec.kinds import parse_names

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.bins import Bins
    from privacyfunnel.tables.coding.merges import Merge
    from privacyfunnel.tables.readers.formats import Dialect


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How a file is written, as far as its reader says it."""

    delimiter: Delimiter = None
    encoding: Encoding = None
    decimal: Decimal = None
    na: Na = None
    sheet: Sheet = None

    @property
    def dialect(self) -> Dialect:
        """The same for those who read files."""
        from privacyfunnel.tables.readers.formats import Dialect

        return Dialect(self.delimiter, self.encoding, self.decimal, parse_names(self.na), self.sheet)


@dataclass(frozen=True, kw_only=True)
class TableOptions(FileOptions):
    """The same of a table about people, of whom each is to count once."""

    person: Person = None
    person_row: PersonRow = None

    @property
    def dialect(self) -> Dialect:
        """The same for those who read files."""
        from dataclasses import replace

        return replace(super().dialect, person=self.person, person_row=self.person_row)


@dataclass(frozen=True, kw_only=True)
class RecodingOptions:
    """What is read as one value: numbers in bins, merged secrets."""

    bin_: BinOption = None
    merge_secrets: MergeSecretsOption = None

    @property
    def bins(self) -> tuple[Bins, ...]:
        """How columns are cut."""
        from privacyfunnel.tables.coding.bin_syntax import parse_bin

        return tuple(map(parse_bin, self.bin_ or []))

    @property
    def merges(self) -> tuple[Merge, ...]:
        """Which values are merged."""
        from privacyfunnel.tables.coding.merges import parse_merge_secrets

        return (parse_merge_secrets(self.merge_secrets),) if self.merge_secrets else ()


@dataclass(frozen=True, kw_only=True)
class CoarseningOptions(RecodingOptions):
    """The same where published values may be merged as well, since they are few."""

    merge_rare: MergeRareOption = None

    @property
    def merges(self) -> tuple[Merge, ...]:
        """Which values are merged."""
        from privacyfunnel.tables.coding.merges import parse_merge_rare

        return (*map(parse_merge_rare, self.merge_rare or []), *super().merges)
