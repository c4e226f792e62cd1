"""What is published holds values in published order, whatever lies in its bytes: no view, dictionary or statistic, no
metadata and nothing under a missing entry gives back the order of the table, or what no row says.

Rows stand sorted by the secret, so that their order is the secret. Every kept column has a long text of its own in each
row, whose number says which row of the table it is from; whoever finds these texts in the order of the table knows the
secrets.
"""

import gzip
import io
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import privacyfunnel as pf
from privacyfunnel.atomic_files import MANIFEST
from privacyfunnel.errors import ColumnError
from privacyfunnel.release import shuffle
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.formats import ARROW, DELIMITED, PARQUET, SUFFIXES
from privacyfunnel.tables.writers.table_writer import rebuild, rebuild_frame

N = 600
NUMBERS = np.random.default_rng(1).permutation(N)  # what the rows of the table are called: not sorted as they are
ABSENT = "nobody at all number 99999"  # a category that no row has
TEXT = re.compile(rb"(\w+) at all number (\d{5})")


def texts(tag: str) -> list[str]:
    return [f"{tag} at all number {number:05d}" for number in NUMBERS]


def masked(tag: str) -> pl.Expr:
    """Every other text; polars leaves the bytes of the others where they were."""
    return pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.Series(texts(tag))).alias(tag)


PLAIN = pl.DataFrame(
    {
        "ill": ["yes" if i < N // 3 else "no" for i in range(N)],
        "x": [f"published value number {i * 7 % 4}" for i in range(N)],
        "text": texts("text"),
        "few": [f"fews at all number {i // 150:05d}" for i in range(N)],  # not in every row
        "number": NUMBERS,
    }
)
CATEGORY = pl.Categorical(pl.Categories.random())
KINDS: dict[str, pl.Series] = {
    "binary": pl.Series(texts("binary")).cast(pl.Binary),
    "category": pl.Series([*texts("category"), ABSENT]).cast(CATEGORY)[:N],
    "enum": pl.Series(texts("enum"), dtype=pl.Enum([*sorted(texts("enum")), ABSENT])),
    "inlist": pl.Series([[text] for text in texts("inlist")]),
    "instruct": pl.Series([{"a": text} for text in texts("instruct")]),
    "inarray": pl.Series([[text] for text in texts("inarray")], dtype=pl.Array(pl.String, 1)),
    "listed": pl.Series([[text] for text in texts("listed")], dtype=pl.List(pl.Enum([ABSENT, *texts("listed")]))),
}
TYPED = PLAIN.with_columns(*(column.alias(name) for name, column in KINDS.items()), masked("masked"))
UNLIKE_TEXT = ("binary", "inlist", "instruct", "inarray", "listed")
KEEP = [name for name in TYPED.columns if name not in ("ill", "x", "number")]


def order(keep: list[str]) -> pf.ReleaseSpec:
    return pf.ReleaseSpec(
        prior="table",
        secret=("ill",),
        publish=("x",),
        promise=pf.LIP(0.5),
        method="randomised-response",
        keep=tuple(keep),
        accept_kept=True,
    )


def found(raw: bytes) -> dict[str, list[int]]:
    """The numbers behind each tag in the order in which they first stand in the bytes."""
    met: dict[str, dict[int, None]] = {}
    for tag, number in TEXT.findall(raw):
        met.setdefault(tag.decode(), {}).setdefault(int(number))
    return {tag: list(numbers) for tag, numbers in met.items()}


def check(raw: bytes, rows: pl.DataFrame, tags: list[str]) -> None:
    """The bytes hold the texts of these rows, in the order of the rows, and no other."""
    published = [int(text[-5:]) for text in rows["text"]]
    within = set(published)
    table = [number for number in NUMBERS.tolist() if number in within]
    assert published not in (table, sorted(published))
    assert ABSENT.encode() not in raw
    seen = found(raw)
    for tag in tags:
        expected = [number for number in published if tag != "masked" or number in SHOWN]
        assert sorted(seen[tag]) == sorted(expected)
        # Parquet states the first and the last of the sorted texts before all others: so it would in any order.
        ends = {min(expected), max(expected)} if raw.startswith(b"PAR1") else set()
        assert [number for number in seen[tag] if number not in ends] == [n for n in expected if n not in ends]
    assert set(seen.get("fews", [])) == {int(text[-5:]) for text in rows["few"]}


SHOWN = set(NUMBERS[::2].tolist())  # rows whose masked text is not missing


@pytest.fixture(autouse=True)
def plain_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are packed; here they are not, so that all of their bytes can be read."""
    for name in ("sink_ipc", "sink_parquet"):
        written: Any = getattr(pl.LazyFrame, name)

        def write(frame: pl.LazyFrame, file: Any, *, _written: Any = written, **asked: Any) -> Any:
            return _written(frame, file, **{**asked, "compression": "uncompressed"})

        monkeypatch.setattr(pl.LazyFrame, name, write)


def content(path: Path) -> bytes:
    if path.suffix == ".zst":
        return bytes(pa.input_stream(str(path), compression="zstd").read())
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def read(path: Path) -> pl.DataFrame:
    if path.suffix in ARROW:
        return pl.read_ipc(io.BytesIO(path.read_bytes()))
    if path.suffix in PARQUET:
        return pl.read_parquet(path)
    return pl.read_csv(io.BytesIO(content(path)), separator="\t" if ".tsv" in path.name else ",")


def tables(folder: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """The same table as files of several formats, with what is kept of it."""
    PLAIN.write_csv(folder / "people.csv")
    yield "csv", folder / "people.csv", ["text", "few"]
    TYPED.write_parquet(folder / "people.parquet")
    yield "parquet", folder / "people.parquet", KEEP
    TYPED.write_ipc(folder / "people.arrow")
    yield "arrow", folder / "people.arrow", KEEP


@pytest.mark.parametrize("held", ["in memory", "in buckets"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_bytes_of_a_file_are_in_published_order(
    suffix: str, held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if held == "in buckets":
        monkeypatch.setattr(shuffle, "MOST_HELD", 1 << 14)
    for kind, source, keep in tables(tmp_path):
        mine = [name for name in keep if suffix not in DELIMITED or name not in UNLIKE_TEXT]
        release = pf.sanitise_file(
            source, replace(order(mine), into=tmp_path / f"release-{kind}", format=suffix[1:], ledger=tmp_path / kind)
        )
        rows = read(Path(release.table))
        tags = [name for name in mine if name != "few"]
        check(content(Path(release.table)), rows.select("text", "few"), tags)
        assert rows.height == N
        assert all("Categorical" not in str(kind) and "Enum" not in str(kind) for kind in rows.schema.values())


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_the_bytes_of_applied_rows_and_of_parts_are_in_published_order(suffix: str, tmp_path: Path) -> None:
    sealed = pf.design(
        TYPED,
        pf.ReleaseSpec(prior="table", secret="ill", publish="x", promise=pf.LIP(0.5), method="randomised-response"),
    )
    sealed.save(tmp_path / "protocol.json")
    keep = [name for name in KEEP if suffix not in DELIMITED or name not in UNLIKE_TEXT]
    for place in ("people", "parts"):
        (tmp_path / place).mkdir()
    cut = {"people": [TYPED], "parts": [TYPED[:250], TYPED[250:]]}
    for place, pieces in cut.items():
        for i, piece in enumerate(pieces):
            piece.write_ipc(tmp_path / place / f"part-{i}.arrow")
        if suffix != ".arrow" and place == "parts":
            continue  # parts keep their format
        source = tmp_path / place if place == "parts" else tmp_path / place / "part-0.arrow"
        into = tmp_path / ("out" if place == "parts" else f"out{suffix}")
        pf.apply_file(
            tmp_path / "protocol.json", source, replace(ReleaseSpec(keep=tuple(keep), accept_kept=True), into=into)
        )
        written = sorted(path for path in into.iterdir() if path.name != MANIFEST) if into.is_dir() else [into]
        assert len(written) == len(pieces)
        for path in written:
            rows = read(path)
            check(content(path), rows.select("text", "few"), [name for name in keep if name != "few"])


def buffers(array: Any) -> bytes:
    """Every byte behind an array of Arrow: of its children and dictionaries as well, used or not."""
    if isinstance(array, pa.Table):
        return b"|".join(buffers(column) for column in array.columns)
    if isinstance(array, pa.ChunkedArray):
        return b"|".join(map(buffers, array.chunks))
    if isinstance(array, pa.DictionaryArray):
        return buffers(array.dictionary)
    if isinstance(array, pa.StructArray):
        return b"|".join(buffers(array.field(i)) for i in range(array.type.num_fields))
    if hasattr(array, "values") and isinstance(array, pa.Array):
        return buffers(array.values)
    return b"|".join(buffer.to_pybytes() for buffer in array.buffers() if buffer is not None)


def of_polars(frame: pl.DataFrame) -> Iterator[bytes]:
    yield buffers(frame.rechunk().to_arrow(compat_level=pl.CompatLevel.newest()))
    yield frame.serialize()
    yield pickle.dumps(frame)
    for write in (frame.write_ipc, frame.write_ipc_stream, frame.write_parquet):
        file = io.BytesIO()
        write(file, compression="uncompressed")
        yield file.getvalue()


def of_arrow(table: pa.Table) -> Iterator[bytes]:
    yield buffers(table)
    yield pickle.dumps(table)
    sink = pa.BufferOutputStream()
    feather.write_feather(table, sink, compression="uncompressed")
    yield sink.getvalue().to_pybytes()
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="none")
    yield sink.getvalue().to_pybytes()


def of_pandas(frame: pd.DataFrame) -> Iterator[bytes]:
    yield pickle.dumps(frame)
    yield from of_arrow(pa.Table.from_pandas(frame))


ARROW_KINDS: dict[str, Callable[[str], Any]] = {
    "string": lambda tag: pa.array(texts(tag)),
    "large": lambda tag: pa.array(texts(tag), pa.large_string()),
    "bytes": lambda tag: pa.array([text.encode() for text in texts(tag)]),
    "dictionary": lambda tag: pa.DictionaryArray.from_arrays(np.arange(N, dtype=np.int32), [*texts(tag), ABSENT]),
    "inlist": lambda tag: pa.array([[text] for text in texts(tag)]),
    "instruct": lambda tag: pa.array([{"a": text} for text in texts(tag)]),
    "listed": lambda tag: pa.ListArray.from_arrays(
        np.arange(N + 1, dtype=np.int32), pa.DictionaryArray.from_arrays(np.arange(N, dtype=np.int32), texts(tag))
    ),
}


def arrow_table() -> pa.Table:
    rows = PLAIN.select("ill", "x", "text", "few").to_arrow()
    for tag, make in ARROW_KINDS.items():
        rows = rows.append_column(tag, make(tag))
    shown = np.arange(N) % 2 == 0
    under = pa.array(texts("masked"), pa.large_string()).buffers()
    mark = pa.py_buffer(np.packbits(shown, bitorder="little").tobytes())
    return rows.append_column("masked", pa.Array.from_buffers(pa.large_string(), N, [mark, *under[1:]]))


def pandas_frame() -> pd.DataFrame:
    rows = pd.DataFrame({name: PLAIN[name].to_list() for name in ("ill", "x", "text", "few")})
    rows["object"] = pd.Series(texts("object"), dtype=object)
    rows["python"] = pd.Series(texts("python"), dtype=pd.StringDtype("python"))
    rows["pyarrow"] = pd.Series(texts("pyarrow"), dtype=pd.StringDtype("pyarrow"))
    rows["category"] = pd.Categorical(texts("category"), categories=[*texts("category"), ABSENT])
    table = arrow_table()
    for tag in (*ARROW_KINDS, "masked"):
        rows[tag] = pd.arrays.ArrowExtensionArray(pa.chunked_array([table[tag].combine_chunks()]))
    return rows


FRAMES: dict[str, tuple[Callable[[], Any], Callable[[Any], Iterator[bytes]], Callable[[Any], pl.DataFrame]]] = {
    "polars": (lambda: TYPED, of_polars, lambda frame: frame),
    "polars lazy": (TYPED.lazy, lambda lazy: of_polars(lazy.collect()), lambda lazy: lazy.collect()),
    "pyarrow": (arrow_table, of_arrow, lambda table: pl.DataFrame(table.select(["text", "few"]))),
    "pandas": (pandas_frame, of_pandas, lambda frame: pl.DataFrame(frame[["text", "few"]].to_dict("list"))),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_the_bytes_of_a_frame_are_in_published_order(kind: str, tmp_path: Path) -> None:
    make, written, plain = FRAMES[kind]
    frame = make()
    names = nw.from_native(frame).collect_schema().names()
    keep = [name for name in names if name not in ("ill", "x", "number")]
    asked: dict[str, Any] = {"prior": "table", "secret": "ill", "publish": "x", "method": "randomised-response"}
    sealed = pf.design(frame, pf.ReleaseSpec(promise=pf.LIP(0.5), **asked))
    for release in (
        pf.sanitise(frame, pf.ReleaseSpec(promise=pf.LIP(0.5), **asked, keep=keep, accept_kept=True)),
        pf.apply(sealed, frame, pf.ReleaseSpec(keep=keep, accept_kept=True)),
    ):
        for raw in written(release.table):
            check(raw, plain(release.table).select("text", "few"), [name for name in keep if name != "few"])
    few = pf.sanitise(frame, pf.ReleaseSpec(promise=pf.LIP(0.5), **asked, keep=["text", "few"], accept_kept=True))
    for suffix in (".csv", ".parquet", ".arrow"):
        path = few.save(tmp_path / suffix[1:], suffix) / "public" / f"sanitised{suffix}"
        check(content(path), read(path).select("text", "few"), ["text"])


def test_a_duckdb_relation_is_in_published_order() -> None:
    import duckdb

    given = duckdb.from_arrow(PLAIN.to_arrow())
    found_rows = pf.sanitise(
        given,
        pf.ReleaseSpec(
            prior="table",
            secret="ill",
            publish="x",
            promise=pf.LIP(0.5),
            method="randomised-response",
            keep=["text", "few"],
            accept_kept=True,
        ),
    ).table
    table = found_rows.to_arrow_table() if hasattr(found_rows, "to_arrow_table") else found_rows.arrow()
    check(buffers(table), pl.DataFrame(table.select(["text", "few"])), ["text"])


def test_published_categories_are_listed_in_an_order_that_is_not_the_tables() -> None:
    labels = [f"published value number {i}" for i in (3, 1, 2, 0)]  # as they are met in the table
    column = [labels[i * 4 // N] for i in range(N)]
    for frame in (
        pd.DataFrame({"ill": PLAIN["ill"].to_list(), "x": pd.Categorical(column, categories=labels)}),
        PLAIN.select("ill").with_columns(x=pl.Series(column, dtype=pl.Enum(labels))),
        pa.table({"ill": PLAIN["ill"].to_arrow(), "x": pa.array(column).dictionary_encode()}),
    ):
        given = pf.sanitise(
            frame,
            pf.ReleaseSpec(
                prior="table",
                secret="ill",
                publish="x",
                promise=pf.LIP(0.5),
                method="randomised-response",
                as_="values",
            ),
        ).table
        table = given if isinstance(given, pa.Table) else pa.table(given)
        listed = table["x"].combine_chunks().dictionary.to_pylist()
        assert listed in (sorted(labels), list(dict.fromkeys(table["x"].to_pylist())))


def test_what_no_value_says_is_not_in_the_columns_of_any_file() -> None:
    """Numbers under a missing entry are those of somebody, too."""
    numbers = pa.Array.from_buffers(
        pa.int64(), N, [pa.py_buffer(bytes(N // 8 + 1)), pa.py_buffer((NUMBERS + 7_777_000).astype(np.int64).tobytes())]
    )
    rows = pl.DataFrame({"number": pl.Series(numbers)})
    held = rebuild(rows)["number"].to_arrow().buffers()[1]
    assert held is None or not (np.frombuffer(held, dtype=np.int64) > 7_000_000).any()
    blank = pd.array(NUMBERS + 7_777_000, dtype="Int64")
    blank[::2] = pd.NA
    frame = pd.DataFrame({"ill": PLAIN["ill"].to_list(), "x": PLAIN["x"].to_list(), "blank": blank})
    kept = pf.sanitise(
        frame,
        pf.ReleaseSpec(
            prior="table",
            secret="ill",
            publish="x",
            promise=pf.LIP(0.5),
            method="randomised-response",
            keep="blank",
            accept_kept=True,
        ),
    )
    column = kept.table["blank"]
    assert column.dtype == "Int64"
    assert sorted(column.dropna()) == sorted((NUMBERS + 7_777_000)[1::2])
    under = np.frombuffer(pa.array(column.array).buffers()[1], dtype=np.int64)[:N]
    assert (under > 7_000_000).sum() == N // 2


def test_a_part_of_rows_holds_no_other_rows() -> None:
    part = rebuild(TYPED.select("text", "inlist")[10:20])
    seen = found(buffers(part.to_arrow(compat_level=pl.CompatLevel.newest())))
    assert seen == {tag: NUMBERS[10:20].tolist() for tag in ("text", "inlist")}


def test_columns_keep_their_values_and_types() -> None:
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal

    rows = pl.DataFrame(
        {
            "*": ["a", None, ""],
            "": pl.Series([[["a", None], None], None, []], dtype=pl.List(pl.List(pl.String))),
            "time": [datetime(2024, 5, 1, 3, 4, 5, 6), None, None],
            "zone": pl.Series([datetime(2024, 5, 1), None, None]).dt.replace_time_zone("Europe/Berlin"),
            "day": [date(2024, 5, 1), None, None],
            "hour": [time(3, 4, 5), None, None],
            "span": [timedelta(1), None, None],
            "decimal": [Decimal("1.250"), None, None],
            "large": pl.Series([1 << 100, None, None], dtype=pl.Int128),
            "nan": [float("nan"), None, -0.0],
            "truth": [True, None, False],
            "none": [None, None, None],
            "array": pl.Series([["a", None], None, ["b", "c"]], dtype=pl.Array(pl.String, 2)),
            "struct": [{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}],
        }
    )
    for each in (rows, rows[:0], rows[1:2]):
        assert rebuild(each).equals(each)
        assert rebuild(each).schema == each.schema
    with pytest.raises(ColumnError, match="must hold what can be made anew"):
        rebuild(pl.DataFrame({"nothing": pl.Series([{}], dtype=pl.Struct({}))}))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array(["a"]))
    with pytest.raises(ColumnError, match="'runs' must hold what can be made anew"):
        rebuild_frame(nw.from_native(pa.table({"runs": runs}), eager_only=True))


@pytest.mark.parametrize("view", [pa.string_view(), pa.list_(pa.string_view())])
def test_views_of_arrow_are_made_anew(view: Any) -> None:
    nested = not pa.types.is_string_view(view)
    whole = pa.array([[text] for text in texts("text")] if nested else texts("text"), view)
    table = pa.table({"text": whole.slice(10, 20)})
    fresh = rebuild_frame(nw.from_native(table, eager_only=True)).to_native()
    assert fresh.equals(table)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, fresh.schema) as file:
        file.write_table(fresh)
    assert found(sink.getvalue().to_pybytes()) == {"text": NUMBERS[10:30].tolist()}
