"""Batches of rows to a file, in a stream."""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source


def write_batches(path: Path, suffix: str, batches: Iterable[pl.DataFrame]) -> int:
    """Write `batches` in the format of `suffix`; the number of rows written. Failures of the disk are an `OSError`."""
    source = _Source(batches)
    lazy = register_io_source(source, schema=source.schema, is_pure=False)
    try:
        if suffix == ".parquet":
            lazy.sink_parquet(path, row_group_size=1 << 20)
        elif suffix in {".arrow", ".feather", ".ipc"}:
            lazy.sink_ipc(path, compression="zstd")
        else:
            lazy.sink_csv(
                path,
                separator="\t" if suffix.startswith(".tsv") else ",",
                compression="gzip" if suffix.endswith(".gz") else "uncompressed",
                check_extension=False,
            )
    except Exception as error:
        # polars wraps what the source raised; the caller should see it as it was.
        if source.failure is not None:
            raise source.failure from None
        raise _as_os_error(error) from error
    return source.rows


def _as_os_error(error: Exception) -> Exception:
    """polars may hand on a failure of the disk as a text that ends in `(os error 28)`."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return error if number is None else OSError(int(number[1]), os.strerror(int(number[1])))


class _Source:
    """An iterable of frames that polars can pull from, and that remembers why it stopped."""

    def __init__(self, batches: Iterable[pl.DataFrame]) -> None:
        iterator = iter(batches)
        first = next(iterator)
        self.schema = first.schema
        self.rows = 0
        self.failure: Exception | None = None
        self._batches = chain([first], iterator)

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        try:
            for batch in self._batches:
                self.rows += batch.height
                yield batch
        except Exception as error:
            self.failure = error
            raise
