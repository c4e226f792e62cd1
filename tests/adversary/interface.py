"""Releases as a user makes them: by commands in this process, and by the public functions on frames of every library.

A release is handed over as records, each with the secret that stood in its row and with everything that was published
in its place. Who published what is known by the place of a row: commands are asked to keep the order where single
records are compared, and functions state it (`Release.order`).
"""

import gzip
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import ipc

import privacyfunnel as pf
from privacyfunnel.cli import main
from tests.adversary.tables import Table

EVENTS = "ill at present,ill\n"
NEWEST = pl.CompatLevel.newest()  # text stays in the buffers that polars has


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def refused(self) -> bool:
        """Whether it was refused, or failed, in a sentence."""
        return self.code != 0

    @property
    def found(self) -> Any:
        """The JSON that it printed."""
        return json.loads(self.out)


def run(folder: Path, *words: object) -> Done:
    """`privacyfunnel WORDS … --json` in a folder, in this process; it succeeds, or says in a sentence why not."""
    before, out, err = Path.cwd(), io.StringIO(), io.StringIO()
    os.chdir(folder)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*map(str, words), "--json"])
    finally:
        os.chdir(before)
    if code != 0 and "Traceback" in err.getvalue():
        raise AssertionError(f"{' '.join(map(str, words))} ended with {code}: {err.getvalue()}")
    return Done(code, out.getvalue(), err.getvalue())


def write_table(rows: pl.DataFrame, path: Path) -> Path:
    """A table as a file of the format that its name states."""
    if path.suffix == ".parquet":
        rows.write_parquet(path)
    elif path.suffix == ".arrow":
        rows.write_ipc(path)
    else:
        rows.write_csv(path)
    return path


def write_domain(table: Table, path: Path, *names: str) -> None:
    """A list of the labels of secret and values, as if it was known beforehand."""
    columns = {name: {"labels": sorted(set(table.column(name))), "missing": False} for name in names or ("s", "x")}
    content = {"format": "privacyfunnel domain", "version": 1, "columns": columns}
    path.write_text(json.dumps(content), encoding="utf-8")


def read_rows(path: Path) -> pl.DataFrame:
    """The columns of a published file as text."""
    if path.suffix == ".parquet":
        rows = pl.read_parquet(path)
    elif path.suffix == ".arrow":
        rows = pl.read_ipc(io.BytesIO(path.read_bytes()))
    else:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        rows = pl.read_csv(io.BytesIO(raw), infer_schema=False, separator="\t" if ".tsv" in path.name else ",")
    return as_text(rows)


def as_text(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows with every entry as text."""
    return rows.select(pl.all().cast(pl.String).fill_null(""))


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sanitise_file(
    folder: Path, table: Table, words: Sequence[object], *, file: str = "table.csv"
) -> tuple[Done, pl.DataFrame]:
    """`sanitise` on a file; the published rows, none where it was refused."""
    if not (folder / file).exists():
        write_table(table.rows, folder / file)
    rmtree(folder / "out", ignore_errors=True)  # which may hold what an adversary changed, and then is not replaced
    (folder / "events.csv").write_text(EVENTS, encoding="utf-8")
    fixed = ("--into", "out", "--no-report", "--again", "--anyway", "--time-limit", 5)
    done = run(folder, "sanitise", file, *fixed, *(word for word in words if word != "--anyway"))
    return done, pl.DataFrame() if done.refused else read_rows(folder / done.found["table"])


def design_and_apply(
    folder: Path,
    table: Table,
    words: Sequence[object],
    *,
    apply: Sequence[object] = (),
    others: pl.DataFrame | None = None,
) -> tuple[Done, pl.DataFrame]:
    """`design` on a file, then `apply` on the same file or on other rows."""
    if not (folder / "table.csv").exists():
        write_table(table.rows, folder / "table.csv")
    done = run(folder, "design", "table.csv", "--into", "design.json", "--force", "--time-limit", 5, *words)
    if done.refused:
        return done, pl.DataFrame()
    write_table(table.rows if others is None else others, folder / "rows.csv")
    done = run(folder, "apply", "design.json", "rows.csv", "--into", "drawn.csv", "--force", "--again", *apply)
    return done, pl.DataFrame() if done.refused else read_rows(folder / "drawn.csv")


# ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_polars(rows: pl.DataFrame) -> Any:
    """The rows as polars has them."""
    return rows


def as_arrow(rows: pl.DataFrame) -> Any:
    """A table of pyarrow."""
    return rows.to_arrow()


def as_pandas(rows: pl.DataFrame) -> Any:
    """A frame of pandas, its rows numbered."""
    return pd.DataFrame({name: rows[name].to_list() for name in rows.columns})


def _indexed(index: Callable[[int], Any]) -> Callable[[pl.DataFrame], Any]:
    return lambda rows: as_pandas(rows).set_axis(index(len(rows)), axis=0)


def _permutation(n: int) -> Any:
    return np.random.default_rng(n).permutation(n)


FRAMES: Mapping[str, Callable[[pl.DataFrame], Any]] = {
    "polars": as_polars,
    "pyarrow": as_arrow,
    "pandas": as_pandas,
    "pandas, shuffled index": _indexed(_permutation),
    "pandas, reversed index": _indexed(lambda n: range(n - 1, -1, -1)),
    "pandas, duplicate index": _indexed(lambda n: np.arange(n) % 7),
    "pandas, text index": _indexed(lambda n: [f"id {i * 7919 % n}" for i in range(n)]),
    "pandas, two-level index": _indexed(lambda n: pd.MultiIndex.from_arrays([np.arange(n) % 5, _permutation(n)])),
    "pandas, index called x": _indexed(lambda n: pd.Index(_permutation(n), name="x")),
}


def sanitise_frame(rows: Any, **asked: Any) -> tuple[pl.DataFrame, list[int]]:
    """`sanitise` on a frame: what is published, and which row each published row was."""
    release = pf.sanitise(rows, pf.ReleaseSpec(**{"time_limit": 5.0} | asked))
    return frame_text(release.table), _places(release.order, len(release.table))


def apply_frame(protocol: Any, rows: Any, **asked: Any) -> tuple[pl.DataFrame, list[int]]:
    """`apply` on a frame, likewise."""
    applied = pf.apply(protocol, rows, pf.ReleaseSpec(**asked))
    return frame_text(applied.table), _places(applied.order, applied.rows)


def _places(order: Any, rows: int) -> list[int]:
    return [int(i) for i in (range(rows) if order is None else order)]


def frame_text(rows: Any) -> pl.DataFrame:
    """A frame of any library as columns of text, with its index if that is more than numbers from 0."""
    if isinstance(rows, pd.DataFrame):
        plain = isinstance(rows.index, pd.RangeIndex) and rows.index.equals(pd.RangeIndex(len(rows)))
        found = {name: rows[name].astype(str).to_list() for name in rows.columns}
        return pl.DataFrame(found if plain else found | {"(index)": [str(each) for each in rows.index]})
    return as_text(pl.from_arrow(rows) if isinstance(rows, pa.Table) else rows)  # type: ignore[arg-type]


# ── bytes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def raw_bytes(path: Path) -> bytes:
    """The content of a published file, unpacked: of Arrow all buffers one after the other."""
    if path.suffix == ".arrow":
        return arrow_buffers(ipc.open_file(str(path)).read_all())
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def arrow_buffers(table: Any) -> bytes:
    """All buffers of all columns, with what they hold beyond the entries."""
    buffers = (each for column in table.columns for chunk in column.chunks for each in chunk.buffers())
    return b"\n".join(each.to_pybytes() for each in buffers if each is not None)


def frame_bytes(rows: Any) -> bytes:
    """What a frame carries in memory, and takes along where it is saved."""
    if isinstance(rows, pl.DataFrame):
        return arrow_buffers(rows.to_arrow(compat_level=NEWEST))
    if isinstance(rows, pa.Table):
        return arrow_buffers(rows)
    return arrow_buffers(pa.Table.from_pandas(rows))


def public_files(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Files that others may read, by name: their mode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.stat().st_mode & 0o777
        if path.is_file() and mode & 0o044:
            found[str(path.relative_to(folder))] = (f"{mode:o}", path.read_bytes())
    return found
