"""Tables in parts: a folder of files, or those that a pattern finds, read one after another as one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.errors import TableError
from privacyfunnel.tables.readers.dialect import TextFormat
from privacyfunnel.tables.readers.number_format import NumberFormat

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.tables.readers.table_interface import Table

PATTERN = frozenset("*?[")
NOT_ROWS = ("_", ".")  # what the names of files begin with that hold no rows, such as Spark's _SUCCESS


def has_parts(path: Path) -> bool:
    """Whether a path means several files."""
    return path.is_dir() or (not path.exists() and bool(PATTERN & set(path.name)))


def part_paths(path: Path) -> tuple[Path, ...]:
    """The files that are meant, in the order of their names."""
    found = sorted(path.iterdir() if path.is_dir() else path.parent.glob(path.name))
    files = tuple(part for part in found if part.is_file() and not part.name.startswith(NOT_ROWS))
    if not files:
        raise TableError(f"'{path}' must mean at least one file with rows; it means none. Check the path.")
    return files


@dataclass(frozen=True, eq=False)
class PartsTable:
    """Several tables under one header, as one."""

    path: Path
    parts: tuple[Table, ...]
    names: tuple[str, ...]  # of their files
    sizes: list[int] = field(default_factory=list)  # how many rows each has, once all were read

    @classmethod
    def from_parts(cls, path: Path, parts: Iterable[tuple[str, Table]]) -> PartsTable:
        names, tables = zip(*parts, strict=True)
        for name, table in zip(names, tables, strict=True):
            if table.columns != tables[0].columns:
                raise TableError(
                    f"the parts of '{path}' must have one header; that of '{name}' is another than that of "
                    f"'{names[0]}'. Mend it, or name only parts that go together."
                )
        return cls(path, tables, names)

    @property
    def name(self) -> str:
        return f"'{self.path}'"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.parts[0].columns

    @property
    def numbers(self) -> NumberFormat:
        return self.parts[0].numbers

    @property
    def text_format(self) -> TextFormat:
        return self.parts[0].text_format

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows of the first part, then those of the next. An empty part is refused by its own name."""
        sizes = []
        kinds: dict[str, pl.DataType] = {}
        for part, name in zip(self.parts, self.names, strict=True):
            rows = 0
            for batch in part.batches(columns):
                for column, kind in batch.schema.items():
                    if kinds.setdefault(column, kind) != kind:
                        raise TableError(
                            f"the parts of '{self.path}' must have columns of one type; '{column}' of '{name}' has "
                            "another than before. Write the parts alike."
                        )
                rows += batch.height
                yield batch
            sizes.append(rows)
        if not self.sizes:
            self.sizes.extend(sizes)
