"""The published file and its kept columns: what carries a secret beside the values is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privacyfunnel import LIP
from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.release.ledger.ledger_file import Ledger
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.writers.table_writer import write_batches

SUFFIXES = ["csv", "tsv", "csv.gz", "csv.zst", "parquet", "arrow"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """An illness, a town that depends on it, and a coin and a text that do not."""
    rng = np.random.default_rng(3)
    ill = rng.choice(2, 3000)
    town = (ill + rng.choice(3, 3000, p=[0.5, 0.3, 0.2])) % 3
    return pl.DataFrame(
        {
            "ill": pl.Series(["no", "yes"]).gather(ill),
            "town": pl.Series(["Ghent", "-Lier", "Oud, Gent"]).gather(town),
            "coin": rng.integers(0, 2, 3000),
            "note": pl.Series(["a text longer than twelve bytes", "=short", None]).gather(rng.integers(0, 3, 3000)),
        }
    )


def write(frame: pl.DataFrame, path: Path) -> Path:
    if path.name.endswith(".parquet"):
        frame.write_parquet(path)
    elif path.name.endswith(".arrow"):
        frame.write_ipc(path)
    else:
        write_batches(path, path.name.removeprefix("people"), [frame])
    return path


def release(
    people: pl.DataFrame, folder: Path, suffix: str = "csv", *, keep: tuple[str, ...] = ()
) -> tuple[Path, Path, Path]:
    """The table, and the protocol and sanitised table made of it."""
    table = write(people, folder / f"people.{suffix}")
    spec = ReleaseSpec(
        prior="table",
        secret=("ill",),
        publish=("town",),
        promise=LIP(1),
        method="randomised-response",
        keep=keep,
        accept_kept=True,
    )
    sanitise_file(table, replace(spec, into=folder / "out"))
    return table, folder / "out" / "owner" / "protocol.json", folder / "out" / "public" / f"sanitised.{suffix}"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_that_sanitise_writes_is_found_to_hold_its_values_alone(
    people: pl.DataFrame, tmp_path: Path, suffix: str
) -> None:
    table, protocol, sanitised = release(people, tmp_path, suffix, keep=("coin", "note"))
    found = audit(protocol, table, sanitised=sanitised, keep=("coin", "note"))
    assert found.file is not None
    assert (found.file.compared, found.file.kept_by_row) == ("byte by byte", True)
    assert found.kept is not None
    assert found.kept.epsilon <= 1
    unordered = audit(protocol, table, sanitised=sanitised, keep=("coin", "note"), ledger=_empty_ledger(tmp_path))
    assert unordered.file is not None
    assert unordered.file.kept_by_row is False


def _empty_ledger(folder: Path) -> Path:
    """A ledger that knows no release, so that the order of rows is not known."""
    ledger = Ledger(folder / "other-ledger")
    ledger._write(bytes(16), ())
    return ledger.path


def quotes(path: Path, bits: list[bool]) -> None:
    header, *lines = path.read_text().splitlines()
    marked = [f'"{line}"' if bit and '"' not in line else line for line, bit in zip(lines, bits, strict=True)]
    path.write_text("\n".join([header, *marked]) + "\n")


def line_ends(path: Path, bits: list[bool]) -> None:
    header, *lines = path.read_text().splitlines()
    marked = [line + ("\r\n" if bit else "\n") for line, bit in zip(lines, bits, strict=True)]
    path.write_bytes("".join([header + "\n", *marked]).encode())


def apostrophes(path: Path, bits: list[bool]) -> None:
    header, *lines = path.read_text().splitlines()
    marked = [f"'{line}" if bit and line == "-Lier" else line for line, bit in zip(lines, bits, strict=True)]
    path.write_text("\n".join([header, *marked]) + "\n")


def metadata(path: Path, bits: list[bool]) -> None:
    pl.read_parquet(path).write_parquet(path, metadata={"note": "".join("01"[bit] for bit in bits)})


def row_groups(path: Path, bits: list[bool]) -> None:
    pl.read_parquet(path).write_parquet(path, row_group_size=100 + sum(bits[:50]))


@pytest.mark.parametrize(
    ("suffix", "carrier"),
    [("csv", quotes), ("csv", line_ends), ("csv", apostrophes), ("parquet", metadata), ("parquet", row_groups)],
)
def test_what_carries_a_secret_beside_the_values_is_found_out(
    people: pl.DataFrame, tmp_path: Path, suffix: str, carrier: Callable[[Path, list[bool]], None]
) -> None:
    table, protocol, sanitised = release(people, tmp_path, suffix)
    carrier(sanitised, (people["ill"] == "yes").to_list())
    with pytest.raises(GuaranteeError, match="its bytes differ"):
        audit(protocol, table, sanitised=sanitised)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("column", [pl.col("coin").reverse(), pl.lit("1"), pl.col("coin").shuffle(1).sort()])
def test_a_kept_column_that_was_altered_is_found_out(
    people: pl.DataFrame, tmp_path: Path, known: bool, column: pl.Expr
) -> None:
    table, protocol, sanitised = release(people, tmp_path, keep=("coin",))
    rows = pl.read_csv(sanitised, infer_schema=False)
    rows.with_columns(coin=column.alias("coin")).write_csv(sanitised)
    ledger = None if known else _empty_ledger(tmp_path)
    if not known and rows["coin"].sort().equals(rows.select(column.alias("coin").sort())["coin"]):
        return  # rows of the same kept values in another order are not told apart where the order is not known
    with pytest.raises(GuaranteeError, match="must be those of the original table"):
        audit(protocol, table, sanitised=sanitised, keep=("coin",), ledger=ledger)


@pytest.mark.parametrize("name", ["coin", "notes"])
def test_a_kept_column_that_is_the_secret_is_found_out(people: pl.DataFrame, tmp_path: Path, name: str) -> None:
    table, protocol, sanitised = release(people, tmp_path, keep=("coin",))
    rows = pl.read_csv(sanitised, infer_schema=False).drop("coin")
    rows.with_columns(people["ill"].alias(name)).write_csv(sanitised)
    with pytest.raises(GuaranteeError, match="kept column"):
        audit(protocol, table, sanitised=sanitised, keep=(name,))


def test_a_kept_column_that_leaks_with_the_output_is_refused(people: pl.DataFrame, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    odds = np.where((people["ill"] == "yes").to_numpy(), 0.95, 0.05)
    group = pl.Series("coin", (rng.random(len(people)) < odds).astype(np.int64))
    table, protocol, sanitised = release(people.with_columns(group), tmp_path, keep=())
    rows = pl.read_csv(sanitised, infer_schema=False)
    assert audit(protocol, table, sanitised=sanitised).kept is None
    rows.with_columns(group.sort()).write_csv(sanitised)
    with pytest.raises(GuaranteeError, match=r"what is published leaks together with the kept column coin up to ε = "):
        audit(protocol, table, sanitised=sanitised, keep=("coin",), ledger=_empty_ledger(tmp_path))
