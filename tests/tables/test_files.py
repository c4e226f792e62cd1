"""Real files of every format, in and out; files that are no tables, each with its sentence."""

import csv
import gzip
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import ColumnError, OutputError, ParameterError, PrivacyFunnelError, TableError
from privacyfunnel.tables.readers import delimited
from privacyfunnel.tables.readers.formats import SUFFIXES, Dialect
from privacyfunnel.tables.readers.table_files import open_table, write_table

ROWS = [("01", "Ann, the first", 'says "hi"'), ("2", "Bö\nb", "(missing)"), ("003", " Cy ", "x")]
FRAME = pl.DataFrame(ROWS, schema=["id", "name", "note"], orient="row")


def read(path: Path, *columns: str, delimiter: str | None = None, encoding: str | None = None) -> list[tuple[str, ...]]:
    table = open_table(path, Dialect(delimiter, encoding))
    frames = list(table.batches(columns or table.columns))
    return [row for frame in frames for row in frame.rows()]


def packed(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_again(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people{suffix}"
    assert write_table(path, FRAME.iter_slices(2)) == 3
    assert read(path) == ROWS
    assert read(path, "note", "id") == [(note, number) for number, _, note in ROWS]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_categories_are_written_as_text_and_no_category_that_no_row_shows(tmp_path: Path, suffix: str) -> None:
    labels = pl.Series(["u", "v", "NOBODY-SHOWS-THIS"]).cast(pl.Categorical(pl.Categories.random()))
    shown = labels.gather([0, 1, 1, 0] * 100).alias("town")
    write_table(path := tmp_path / f"out{suffix}", [shown.to_frame(), shown.to_frame()])
    (batch,) = open_table(path).batches(["town"])
    assert batch.schema == {"town": pl.String}
    assert batch["town"].to_list() == ["u", "v", "v", "u"] * 200
    held = path.read_bytes()
    assert b"NOBODY" not in (gzip.decompress(held) if suffix.endswith(".gz") else held)
    if suffix == ".parquet":  # which is compressed
        pages = pq.read_table(path, read_dictionary=["town"]).column("town")
        assert all(set(page.dictionary.to_pylist()) == {"u", "v"} for page in pages.chunks)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_of_many_batches_keeps_its_order(tmp_path: Path, suffix: str) -> None:
    numbers = pl.DataFrame({"number": [f"{i:07}" for i in range(500_000)], "other": ["x"] * 500_000})
    path = tmp_path / f"numbers{suffix}"
    write_table(path, numbers.iter_slices(70_001))
    table = open_table(path)
    for _ in range(2):
        batches = list(table.batches(["number"]))
        assert pl.concat(batches)["number"].equals(numbers["number"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("zipped", [False, True])
def test_delimiter_and_encoding_are_found(
    tmp_path: Path, delimiter: str, encoding: str, newline: str, zipped: bool
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=newline)
    writer.writerows([FRAME.columns, *ROWS])
    content = text.getvalue().encode(encoding)
    path = written(tmp_path / "people.csv", gzip.compress(content) if zipped else content)
    assert read(path) == ROWS
    assert read(path, "name") == [(name,) for _, name, _ in ROWS]


def test_encoding_and_delimiter_can_be_given(tmp_path: Path) -> None:
    path = written(tmp_path / "people.csv", "näme:town\nÅse:Tromsø\n".encode("latin-1"))
    assert read(path, delimiter=":", encoding="latin-1") == [("Åse", "Tromsø")]


def test_an_empty_field_is_null_and_a_blank_end_is_no_row(tmp_path: Path) -> None:
    path = written(tmp_path / "gaps.csv", b"a,b\n1,\n,2\n,\n\n\r\n")
    assert read(path) == [("1", None), (None, "2"), (None, None)]


def test_a_blank_line_in_a_single_column_is_a_missing_entry(tmp_path: Path) -> None:
    assert read(written(tmp_path / "one.csv", b"a\n1\n\n3\n\n")) == [("1",), (None,), ("3",), (None,)]


FIELD = st.text(st.sampled_from('ab,;"\n é'), max_size=4)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.lists(FIELD, min_size=3, max_size=3), min_size=1, max_size=8), column=st.integers(0, 2))
def test_polars_reads_what_the_csv_module_writes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], column: int
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["x", "y", "z"], *rows])
    path = written(tmp_path_factory.mktemp("csv") / "t.csv", text.getvalue().encode())
    assert [row[0] or "" for row in read(path, "xyz"[column])] == [row[column] for row in rows]


@settings(max_examples=80, deadline=None)
@given(
    widths=st.lists(st.sampled_from([1, 2, 3, 3, 3, 3, 4, 5]), min_size=1, max_size=6),
    last=st.sampled_from(["", "w"]),
    column=st.integers(0, 2),
)
def test_rows_are_refused_exactly_if_one_is_ragged(
    tmp_path_factory: pytest.TempPathFactory, widths: list[int], last: str, column: int
) -> None:
    lines = [["x", "y", "z"], *(["v", '"q,q"', last, "v", "v"][:width] for width in widths)]
    content = "".join(",".join(line) + "\n" for line in lines).encode()
    for name, data in {"plain.csv": content, "zipped.csv.gz": gzip.compress(content)}.items():
        path = written(tmp_path_factory.mktemp("csv") / name, data)
        wrong = [(number, width) for number, width in enumerate(widths, start=2) if width != 3]
        if not wrong:
            assert len(read(path, "xyz"[column], delimiter=",")) == len(widths)
            continue
        with pytest.raises(TableError, match=f"must have 3 fields; line {wrong[0][0]} has {wrong[0][1]}\\."):
            read(path, "xyz"[column], delimiter=",")


def test_records_that_span_chunks_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "CHUNK", 64)
    rows = [(f"{i}", "line\n" * (i % 7), '"' * (i % 3) + "x") for i in range(300)]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([("a", "b", "c"), *rows])
    path = written(tmp_path / "t.csv.gz", gzip.compress(text.getvalue().encode()))
    assert [(a, b or "", c) for a, b, c in read(path)] == rows


GOOD = b"a,b\n1,2\n3,4\n"
PARQUET = io.BytesIO()
FRAME.write_parquet(PARQUET)
BAD = {
    "empty.csv": (b"", "is empty; a table must have a header and rows"),
    "empty.csv.gz": (gzip.compress(b""), "is empty; a table must have a header and rows"),
    "header.csv": (b"a,b\n", "must have rows; it has a header only"),
    "header.csv.gz": (gzip.compress(b"a,b\n"), "must have rows; it has a header only"),
    "blank.csv": (b"\n\na,b\n", "must begin with a header of column names; its first line is blank"),
    "short.csv": (b"a,b,c\n1,2,3\n4,5\n", "must have 3 fields; line 3 has 2"),
    "long.csv": (b"a,b\n1,2\n3,4,5\n", "must have 2 fields; line 3 has 3"),
    "both.csv": (b"a,b,c\n1,2,3\n4,5,6,7\n8,9\n", "must have 3 fields; line 3 has 4"),
    "hole.csv": (b"a,b\n1,2\n\n3,4\n", "must have a row on every line; line 3 is blank"),
    "broken.csv": ("a,b\né,2\n".encode() + b"\xe9,2\n", "must be UTF-8 text; .* for example encoding=.windows-1252"),
    "sheet.csv": (b"PK\x03\x04\x14\x00\x06\x00" + bytes(range(256)), "must be text; it is a binary file"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "must name every column once; 'a' occurs twice"),
    "open.csv": (b'a,b\n1,2\n"3,4\n5,6\n', "must have 2 fields; line 3|must close every quote|quotes do not match up"),
    "cut.csv.gz": (gzip.compress(GOOD * 999)[:-20], "must be a whole gzip file; it is damaged"),
    "cut.csv.zst": (packed(GOOD * 999)[:-7], "must be a whole Zstandard file; it is damaged"),
    "torn.csv.zst": (packed(GOOD * 999)[:40] + bytes(99), "must be a whole Zstandard file; it is damaged"),
    "torn.csv.gz": (gzip.compress(GOOD)[:12] + b"\xff" * 30, "must be a whole gzip file; it is damaged"),
    "cut.parquet": (PARQUET.getvalue()[:-9], "must be a whole Parquet file; it is damaged or something else"),
    "torn.parquet": (b"PAR1" + b"\xff" * 200 + b"PAR1", "must be a whole Parquet file"),
    "text.parquet": (GOOD, "must be a whole Parquet file"),
    "text.arrow": (GOOD, "must be a whole Arrow file"),
    "text.xlsx": (GOOD, r"must be a whole \.xlsx file"),
    "table.docx": (GOOD, r"must end in one of \.csv"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_table_gets_one_sentence(tmp_path: Path, name: str) -> None:
    content, sentence = BAD[name]
    path = written(tmp_path / name, content)
    with pytest.raises(TableError, match=sentence) as caught:
        read(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damage_inside_a_parquet_page_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [f"{i}" for i in range(20_000)]}).write_parquet(path)
    content = bytearray(path.read_bytes())
    content[200:2_000] = b"\xff" * 1_800
    with pytest.raises(TableError, match="must be a whole Parquet file"):
        read(written(path, bytes(content)))


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"there is no file '.*nowhere\.csv'\. Check the path\."):
        open_table(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="must mean at least one file with rows"):
        open_table(tmp_path / "folder.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(TableError, match="must be a regular file"):
        open_table(tmp_path / "pipe.csv")


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    written(tmp_path / "open.csv", GOOD)
    written(tmp_path / "closed.csv", GOOD).chmod(0)
    tmp_path.chmod(0o755)
    # The superuser may read everything, so the process gives up its rights; it has imported what it needs before.
    code = """
import os
from privacyfunnel.errors import TableError
from privacyfunnel.tables.readers.table_files import open_table
open_table("open.csv")
if os.geteuid() == 0:
    os.setuid(65534)
try:
    open_table("closed.csv")
except TableError as error:
    print(error)
"""
    answer = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=tmp_path)
    assert answer == "'closed.csv' cannot be read: permission denied. Check its permissions.\n"


@pytest.mark.parametrize(("delimiter", "encoding"), [(";;", None), ("é", None), ('"', None), (None, "klingon")])
def test_options_that_cannot_be_are_refused(tmp_path: Path, delimiter: str | None, encoding: str | None) -> None:
    with pytest.raises(ParameterError):
        open_table(written(tmp_path / "t.csv", GOOD), Dialect(delimiter, encoding))


def failing() -> Iterator[pl.DataFrame]:
    yield FRAME
    raise TableError("the source broke")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failing_source_leaves_nothing_behind_and_its_error_comes_through(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(TableError, match=r"^the source broke$"):
        write_table(tmp_path / f"out{suffix}", failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_existing_file_stays_unless_forced(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"out{suffix}", b"mine")
    with pytest.raises(OutputError, match="exists already and was left as it is"):
        write_table(path, failing())  # refused before anything is drawn
    with pytest.raises(TableError):
        write_table(path, failing(), force=True)
    assert path.read_bytes() == b"mine"
    write_table(path, [FRAME], force=True)
    assert read(path) == ROWS


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def batches() -> Iterator[pl.DataFrame]:
        yield FRAME
        (tmp_path / "out.csv").write_bytes(b"mine")

    with pytest.raises(OutputError, match="exists already and was left as it is"):
        write_table(tmp_path / "out.csv", batches())
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"mine"]


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"the folder .* must exist"):
        write_table(tmp_path / "no" / "out.csv", [FRAME])
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(OutputError, match="it is a directory"):
        write_table(tmp_path / "out.csv", [FRAME])
    with pytest.raises(OutputError, match=r"must end in one of"):
        write_table(tmp_path / "out.xlsx", [FRAME])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    # A limit on the size of files fails in the same way as a full disk, at a place we choose.
    code = """
import random, resource, sys
import polars as pl
from privacyfunnel.errors import OutputError
from privacyfunnel.tables.readers.table_files import write_table
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
batches = (pl.DataFrame({"a": [random.random() for _ in range(50_000)]}) for _ in range(20))
try:
    write_table(sys.argv[1], batches)
except OutputError as error:
    print(error)
"""
    path = tmp_path / f"out{suffix}"
    result = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert result.stdout == f"'{path}' was not written: the disk is full. Free some space or write elsewhere.\n", result
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_nothing_under_the_final_name(tmp_path: Path) -> None:
    code = """
import os, signal, sys
import polars as pl
from privacyfunnel.tables.readers.table_files import write_table
def batches():
    for i in range(50):
        yield pl.DataFrame({"a": ["x" * 100] * 10_000})
    os.kill(os.getpid(), signal.SIGKILL)
write_table(sys.argv[1], batches())
"""
    path = tmp_path / "out.csv"
    result = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert result.returncode == -9
    assert not path.exists()
    assert all(file.name.startswith(".privacyfunnel.") for file in tmp_path.iterdir())


def test_every_error_is_one_of_the_library(tmp_path: Path) -> None:
    """Any bytes at all are a table or an error that the command line can print."""
    seeds = [content for content, _ in BAD.values() if content] + [GOOD]
    for suffix in SUFFIXES:
        for number, content in enumerate(seeds):
            path = written(tmp_path / f"{number}{suffix}", content)
            with suppress(PrivacyFunnelError):
                read(path)


def test_importing_the_room_does_not_import_polars() -> None:
    code = (
        "import sys, privacyfunnel.tables.readers.table_files, privacyfunnel.tables.readers.adult; "
        "print('polars' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_lines_that_end_with_a_carriage_return_alone_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "old.csv", b"a,b\r1,2\r3,4\r")
    with pytest.raises(TableError, match="end with a line feed"):
        open_table(path)
    with pytest.raises(TableError, match="end with a line feed"):
        open_table(path, Dialect(","))


@pytest.mark.parametrize("encoding", ["rot13", "base64", "hex", "zip"])
def test_what_encodes_no_text_is_refused(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path / "people.csv", b"a,b\n1,2\n")
    with pytest.raises(ParameterError, match="an encoding of text"):
        open_table(path, Dialect(encoding=encoding))


@pytest.mark.parametrize(
    "entries", [[[1], [2]], [b"x", b"y"], [timedelta(1), timedelta(2)], [{"a": 1}, {"a": 2}]], ids=str
)
def test_what_has_no_text_is_not_written_as_text(tmp_path: Path, entries: list[object]) -> None:
    frame = pl.DataFrame({"k": entries})
    with pytest.raises(ColumnError, match=r"column 'k' must hold text.*format=.parquet"):
        write_table(tmp_path / "people.csv", [frame])
    assert list(tmp_path.iterdir()) == []
    write_table(tmp_path / "people.parquet", [frame])


def test_a_file_where_a_folder_is_needed_is_called_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "h.csv", b"a\n1\n")
    with pytest.raises(OutputError, match=r"h.csv' must be a folder to write to; it is a file"):
        write_table(path / "sanitised.csv", [FRAME])
