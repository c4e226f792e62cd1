"""Files that appear whole or not at all: who can read them, while they are written and afterwards."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.tables.files import write_table
from privacyfunnel.tables.suffixes import SUFFIXES
from privacyfunnel.tables.whole import whole_file


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_an_owners_file_is_readable_by_its_owner_only_whatever_the_umask(
    tmp_path: Path, mask: int, force: bool
) -> None:
    path = tmp_path / "report.html"
    if force:
        path.write_text("an old one that everybody can read")
        path.chmod(0o666)
    with umask(mask), whole_file(path, force=force, owners=True) as beside:
        beside.write_text("exact shares")
        assert mode(beside) == 0o600
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mask", "ordinary"), [(0o000, 0o666), (0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_is_for_everybody_once_it_is_whole_and_for_its_owner_while_it_is_written(
    tmp_path: Path, suffix: str, mask: int, ordinary: int
) -> None:
    path = tmp_path / f"sanitised{suffix}"
    meanwhile: list[int] = []

    def batches() -> Iterator[pl.DataFrame]:
        for _ in range(3):
            yield pl.DataFrame({"a": ["x"] * 1000})
            meanwhile.extend(mode(part) for part in tmp_path.iterdir())

    with umask(mask):
        write_table(path, batches())
        assert os.umask(mask) == mask
    assert set(meanwhile) == {0o600}
    assert mode(path) == ordinary


def test_parts_that_nobody_holds_are_removed_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "sanitised.csv"
    (tmp_path / ".sanitised.csv.0123456789abcdef.part").write_text("of a killed run")
    (tmp_path / "mine").write_text("a table")
    others = [".sanitised.csv.part", ".sanitised.csv.0123456789ABCDEF.part", ".other.csv.0123456789abcdef.part"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    (tmp_path / ".sanitised.csv.00000000000000ff.part").symlink_to(tmp_path / "mine")
    with whole_file(path, force=True) as first:
        first.write_text("the one that is not done yet")
        with whole_file(path, force=True) as second:
            second.write_text("the one that is done before")
        assert first.exists()
    assert path.read_text() == "the one that is not done yet"
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"sanitised.csv", "mine", ".sanitised.csv.00000000000000ff.part", *others}
