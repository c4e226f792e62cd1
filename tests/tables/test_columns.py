"""Columns, bins and encoding: every row gets the code of its label, and counts are counts of rows."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.tables import encoding, quantiles, tally
from privacyfunnel.tables.asking import parse_bin
from privacyfunnel.tables.bins import Bins, bin_labels, example_edges
from privacyfunnel.tables.columns import MOST_LABELS, Coding
from privacyfunnel.tables.encoding import Encoding, encode, labelled
from privacyfunnel.tables.files import open_table, write_table
from privacyfunnel.tables.fingerprint import Fingerprint
from privacyfunnel.tables.frames import FrameTable, contingency_of_frame
from privacyfunnel.tables.known import encode_against
from privacyfunnel.tables.looking import look
from privacyfunnel.tables.quantiles import QuantileSummary
from privacyfunnel.tables.variables import Variable

Row = tuple[str | None, ...]


def frame(**columns: Sequence[Any]) -> FrameTable:
    return FrameTable.of(pl.DataFrame({name: list(entries) for name, entries in columns.items()}, strict=False))


def decoded(code: Encoding) -> list[tuple[str, str]]:
    """(secret label, published label) of each row, by way of its codes."""
    secrets, values = code.contingency.secret_labels, code.contingency.published.labels
    return [
        (secrets[s], values[x]) for chunk in code.chunks() for s, x in zip(chunk.secret, chunk.published, strict=True)
    ]


def consistent(code: Encoding) -> None:
    """The counts are those of the codes."""
    found = np.zeros_like(code.contingency.weights)
    for chunk in code.chunks():
        np.add.at(found, (chunk.secret, chunk.published), 1)
    assert np.array_equal(found, code.contingency.weights)
    assert found.sum() == code.rows


CELL = st.sampled_from([None, "", "a", "b", "01", "1", "(missing)", "a & b"])
TABLES = st.lists(st.tuples(CELL, CELL, CELL, CELL), min_size=1, max_size=30)


@settings(max_examples=80, deadline=None)
@given(rows=TABLES, dense=st.booleans(), kept=st.booleans())
def test_codes_lead_back_to_the_labels_of_every_row_by_every_way(rows: list[Row], dense: bool, kept: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "DENSE_CELLS", 1 << 20 if dense else 0)
        patch.setattr(encoding, "KEPT_BYTES", 1 << 20 if kept else 0)
        patch.setattr(encoding, "CHUNK_ROWS", 7)
        columns = dict(zip("pqrs", zip(*rows, strict=True), strict=True))
        code = encode(frame(**columns), secret=["p", "q"], publish=["r", "s"])
        consistent(code)
        secrets, values = code.contingency.secret, code.contingency.published

        def labels(variable: Variable, position: int) -> list[str | None]:
            combo = zip(variable.codings, variable.combos[position], strict=True)
            return [None if at == domain.missing else domain.labels[at] for domain, at in combo]

        back = [
            (*labels(secrets, s), *labels(values, x))
            for chunk in code.chunks()
            for s, x in zip(chunk.secret, chunk.published, strict=True)
        ]
        assert back == [tuple(cell or None for cell in row) for row in rows]
        for variable in (secrets, values):
            assert len(set(variable.labels)) == len(variable.combos)
            assert variable.combos.tolist() == sorted(variable.combos.tolist())
            for domain in variable.codings:
                assert len(set(domain.labels)) == len(domain.labels)


@settings(max_examples=50, deadline=None)
@given(rows=TABLES)
def test_a_table_encoded_against_its_own_domains_gives_the_same_codes(rows: list[Row]) -> None:
    table = frame(**dict(zip("pqrs", zip(*rows, strict=True), strict=True)))
    first = encode(table, secret=["p", "q"], publish=["r", "s"])
    again = encode_against(table, secret=first.contingency.secret, published=first.contingency.published)
    assert np.array_equal(first.contingency.weights, again.contingency.weights)
    assert decoded(first) == decoded(again)


def test_missing_is_a_category_and_stays_apart_from_a_label_of_that_name() -> None:
    code = encode(frame(s=["u", "v", "u"], x=["(missing)", None, ""]), secret=["s"], publish=["x"])
    assert code.contingency.attribute_labels == (("(missing)", "(missing) 2"),)
    assert code.contingency.weights.tolist() == [[1, 1], [0, 1]]
    assert code.contingency.published.codings[0].missing == 1


def test_secrets_of_several_columns_are_one_and_alike_names_stay_apart() -> None:
    code = encode(frame(s=["a", "a & b"], t=["b & c", "c"], x=["0", "1"]), secret=["s", "t"], publish=["x"])
    assert code.contingency.secret_labels == ("a & b & c", "a & b & c 2")


@pytest.mark.parametrize(
    ("entries", "labels"),
    [
        ([10, 9, None], ("9", "10", "(missing)")),
        ([10.0, 9.5, float("nan"), -0.0, 0.0], ("0.0", "9.5", "10.0", "(missing)")),
        ([True, False, None], ("false", "true", "(missing)")),
        ([date(2024, 5, 1), date(2023, 1, 1)], ("2023-01-01", "2024-05-01")),
        (pl.Series(["b", "a", None], dtype=pl.Categorical), ("a", "b", "(missing)")),
        (["10", "9", "1e3"], ("9", "10", "1e3")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["02", "1", "01"], ("01", "02", "1")),
    ],
)
def test_every_type_has_a_text_and_numbers_are_sorted_by_size(entries: Any, labels: tuple[str, ...]) -> None:
    table = FrameTable.of(pl.DataFrame({"x": entries}).with_row_index("s"))
    assert encode(table, secret=["s"], publish=["x"]).contingency.attribute_labels == (labels,)


def test_lists_are_no_categories() -> None:
    with pytest.raises(ColumnError, match="column 'x' must hold text, numbers, dates or truth values; it holds List"):
        encode(frame(s=["u"], x=[[1, 2]]), secret=["s"], publish=["x"])


@settings(max_examples=60, deadline=None)
@given(
    edges=st.lists(st.integers(-20, 20).map(lambda i: i / 4), min_size=1, max_size=5, unique=True).map(sorted),
    numbers=st.lists(st.integers(-24, 24).map(lambda i: i / 4), min_size=1, max_size=20),
    as_text=st.booleans(),
)
def test_every_number_falls_into_the_bin_whose_label_says_so(
    edges: list[float], numbers: list[float], as_text: bool
) -> None:
    entries: list[Any] = [f" {number} " if as_text else number for number in numbers]
    bins = [Bins("x", edges=tuple(edges))]
    code = encode(frame(s=["u"] * len(numbers), x=entries), secret=["s"], publish=["x"], bins=bins)
    for number, (_, label) in zip(numbers, decoded(code), strict=True):
        if label.startswith("<"):
            assert number < float(label[2:]) == edges[0]
        elif label.startswith(">="):
            assert number >= float(label[3:]) == edges[-1]
        else:
            low, high = label[1:-1].split(",")
            assert float(low) <= number < float(high)
    again = encode_against(frame(x=entries), published=code.contingency.published)
    assert [x for _, x in decoded(again)] == [x for _, x in decoded(code)]


def test_bins_keep_missing_apart_and_infinity_outside() -> None:
    table = frame(s=["u"] * 6, x=["1", "", None, "NaN", "inf", "-inf"])
    code = encode(table, secret=["s"], publish=["x"], bins=[Bins("x", edges=(0, 2))])
    assert [x for _, x in decoded(code)] == ["[0, 2)", "(missing)", "(missing)", "(missing)", ">= 2", "< 0"]


@pytest.mark.parametrize("bins", ["x=0,2", "x=quantiles:2"])
def test_what_is_no_number_cannot_be_binned_and_is_counted_not_shown(bins: str) -> None:
    table = frame(s=["u"] * 4, x=["1", "secret-entry", "", "two"])
    with pytest.raises(ColumnError, match="column 'x' must hold numbers to be binned; 2 of 4 rows") as caught:
        encode(table, secret=["s"], publish=["x"], bins=[parse_bin(bins)])
    assert "secret-entry" not in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.integers(0, 30), min_size=1, max_size=60), count=st.integers(2, 6))
def test_quantile_bins_are_as_even_as_repeated_numbers_allow(numbers: list[int], count: int) -> None:
    summary = QuantileSummary()
    for start in range(0, len(numbers), 7):
        summary.add(pl.Series(numbers[start : start + 7], dtype=pl.Float64))
    cuts = summary.cuts(count)
    assert list(cuts) == sorted(set(cuts))
    for rank in range(1, count):
        target = rank * len(numbers) / count
        expected = min(v for v in numbers if sum(u <= v for u in numbers) > target)
        assert expected in cuts or expected == min(numbers)


def test_a_stream_too_long_for_exact_quantiles_is_within_the_stated_error(monkeypatch: pytest.MonkeyPatch) -> None:
    points = 1 << 10
    monkeypatch.setattr(quantiles, "MOST_POINTS", points)
    rng = np.random.default_rng(5)
    summary, everything = QuantileSummary(), []
    merges = 0
    for _ in range(60):
        numbers = np.where(rng.random(points // 2) < 0.3, 0.0, rng.normal(size=points // 2))
        everything.append(numbers)
        summary.add(pl.Series(numbers))
        merges += 1
    numbers = np.concatenate(everything)
    error = merges * 8 / points  # a merge moves a rank by less than 8 n / MOST_POINTS
    assert error < 0.5
    for rank, edge in zip((1, 2, 4, 5), np.array(summary.cuts(6))[[0, 1, -2, -1]], strict=True):
        below, upto = np.mean(numbers < edge), np.mean(numbers <= edge)
        assert below - error / 10 <= rank / 6 <= upto + error / 10
    assert 0.0 in summary.cuts(6)
    assert 0.0 in summary.edges(6)


def test_numbers_too_large_for_bins_are_refused_without_bins() -> None:
    frame = pl.DataFrame({"s": ["a", "b"] * 30, "x": [f"{i + 1}{'0' * 400}" for i in range(60)]})
    with pytest.raises(ColumnError, match="They are too large for bins: leave it out") as refusal:
        contingency_of_frame(frame, secret="s", publish="x")
    assert "inf" not in str(refusal.value)


def test_a_separator_before_a_number_is_no_fault() -> None:
    code = encode(frame(s=["u", "v"], x=["\x1c1", "2"]), secret=["s"], publish=["x"])
    assert code.contingency.attribute_labels == (("\x1c1", "2"),)


def test_many_numbers_are_refused_with_bins_that_would_do() -> None:
    table = frame(s=["u", "v"] * 37, age=[str(i) for i in range(17, 91)])
    with pytest.raises(ColumnError) as caught:
        encode(table, secret=["s"], publish=["age"])
    message = str(caught.value)
    assert message.startswith("column 'age' holds 74 different numbers or more, too many for categories.")
    option = message.split("--bin ")[1].split(" or ", maxsplit=1)[0]
    assert option == "age=0,20,40,60,80,100"
    binned = encode(table, secret=["s"], publish=["age"], bins=[parse_bin(option)])
    assert binned.contingency.attribute_labels[0][0] == "[0, 20)"
    whole = encode(table, secret=["s"], publish=["age"], bins=[parse_bin("age=values")])
    assert len(whole.contingency.attribute_labels[0]) == 74


def test_codes_with_leading_zeros_are_labels_however_many() -> None:
    entries = [f"{i:04}" for i in range(200)]
    code = encode(frame(s=["u", "v"] * 100, x=entries), secret=["s"], publish=["x"])
    assert code.contingency.attribute_labels == (tuple(entries),)


@pytest.mark.parametrize("prefix", ["", "person "])
def test_a_column_of_too_many_values_is_refused(prefix: str) -> None:
    table = frame(s=["u"] * (MOST_LABELS + 5), x=[f"{prefix}{i}" for i in range(MOST_LABELS + 5)])
    with pytest.raises(ColumnError, match="--bin x=0,20000" if not prefix else f"at most {MOST_LABELS} distinct"):
        encode(table, secret=["s"], publish=["x"])


@given(low=st.floats(-1e9, 1e9), span=st.floats(1e-6, 1e9))
def test_example_edges_cover_the_range_and_are_few(low: float, span: float) -> None:
    edges = parse_bin("x=" + example_edges(low, low + span)).edges
    assert len(edges) <= 9
    slack = 1e-9 * max(abs(low), abs(low + span), 1)
    assert edges[0] <= low + slack
    assert edges[-1] >= low + span - slack


@pytest.mark.parametrize("text", ["age", "=1,2", "age=", "age=1,x", "age=2,1", "age=1,1", "age=nan", "age=inf"])
def test_bins_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        parse_bin(text)


@pytest.mark.parametrize("count", ["1", "x", "1001", ""])
def test_quantiles_that_cannot_be_are_refused(count: str) -> None:
    with pytest.raises(ParameterError):
        parse_bin(f"age=quantiles:{count}")


def test_a_column_name_may_hold_an_equals_sign() -> None:
    assert parse_bin("a=b=1,2") == Bins("a=b", edges=(1.0, 2.0))
    assert bin_labels((1.0, 2.5)) == ("< 1", "[1, 2.5)", ">= 2.5")


SMALL = {"occupation": ["u", "v"], "education": ["a", "b"], "income": ["1", "2"]}


@pytest.mark.parametrize(
    ("secret", "publish", "bins", "sentence"),
    [
        (["occupation"], ["educaton"], [], r"^no column 'educaton' among 3\. Did you mean 'education'\?$"),
        (["Occupation"], ["education"], [], r"^no column 'Occupation' among 3\. Did you mean 'occupation'\?$"),
        (["zzz"], ["education"], [], r"^no column 'zzz' among 3\.$"),
        (["occupation"], ["education", "education"], [], "'education' was named twice"),
        (["occupation", "occupation"], ["education"], [], "'occupation' was named twice"),
        (["occupation"], ["education", "occupation"], [], "'occupation' cannot be secret and published"),
        (["occupation"], ["education"], [Bins("incme", (1.0,))], r"Did you mean 'income'\?"),
        (["occupation"], ["education"], [Bins("income", (1.0,))], "'income' is binned but neither"),
        (["occupation"], ["income"], [Bins("income", (1.0,))] * 2, "'income' was named twice"),
    ],
)
def test_columns_that_cannot_be_used(secret: list[str], publish: list[str], bins: list[Bins], sentence: str) -> None:
    with pytest.raises(ColumnError, match=sentence):
        encode(frame(**SMALL), secret=secret, publish=publish, bins=bins)


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
def test_kept_columns_pass_through_beside_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    monkeypatch.setattr(encoding, "KEPT_BYTES", kept_bytes)
    rows = pl.DataFrame({"s": ["u", "v", "u"], "x": ["b", "a", "b"], "id": ["03", None, "01"]})
    write_table(tmp_path / "t.csv", [rows])
    code = encode(open_table(tmp_path / "t.csv"), secret=["s"], publish=["x"], keep=["id"])
    out = [
        labelled({"x": (code.contingency.published.labels, chunk.published)}, chunk.kept)
        for chunk in code.chunks(keep=["id"])
    ]
    assert pl.concat(out).equals(rows.select("x", "id"))
    with pytest.raises(ColumnError, match="'s' cannot be kept as it is and be secret"):
        list(code.chunks(keep=["s"]))


CHANGES = {
    "more rows": "s,x,id\nu,a,1\nv,b,2\nu,b,3\nu,a,4\n",
    "fewer rows": "s,x,id\nu,a,1\nv,b,2\n",
    "a new value": "s,x,id\nu,a,1\nv,c,2\nu,b,3\n",
    "a known value": "s,x,id\nu,a,1\nu,b,2\nu,b,3\n",
    "another order": "s,x,id\nu,b,3\nv,b,2\nu,a,1\n",
    "two rows for one another": "s,x,id\nu,a,3\nv,b,2\nu,b,1\n",
}


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_changes_between_the_passes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_bytes: int, suffix: str, change: str
) -> None:
    def written(text: str) -> None:
        header, *rows = (line.split(",") for line in text.split())
        write_table(path, [pl.DataFrame(dict(zip(header, zip(*rows, strict=True), strict=True)))], force=True)

    monkeypatch.setattr(encoding, "KEPT_BYTES", kept_bytes)
    path = tmp_path / f"t{suffix}"
    written("s,x,id\nu,a,1\nv,b,2\nu,b,3\n")
    code = encode(open_table(path), secret=["s"], publish=["x"], keep=["id"])
    assert [chunk.kept["id"].to_list() for chunk in code.chunks(["id"]) if chunk.kept is not None] == [["1", "2", "3"]]
    written(CHANGES[change])
    if kept_bytes and change in {"a new value", "a known value"}:  # the rows that were counted are drawn
        assert sum(len(chunk.secret) for chunk in code.chunks(["id"])) == 3
    else:
        with pytest.raises(TableError, match="must not change while it is read"):
            list(code.chunks(["id"]))


def test_a_kept_column_is_named_when_the_table_is_counted() -> None:
    code = encode(frame(s=["u", "v"], x=["a", "b"], id=["1", "2"]), secret=["s"], publish=["x"])
    with pytest.raises(ColumnError, match="'id' must be named when the table is counted"):
        list(code.chunks(["id"]))


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=30),
    st.data(),
)
def test_a_fingerprint_sees_every_row_and_its_place_and_no_batch(rows: list[str], data: st.DataObject) -> None:
    def printed(entries: list[str], cuts: list[int]) -> Fingerprint:
        mine = first.again(["a"])
        for start, stop in pairwise([0, *sorted(cuts), len(entries)]):
            mine.add({"a": pl.Series(entries[start:stop], dtype=pl.String)}, start)
        return mine

    first = Fingerprint(["a", "b"])
    column = pl.Series(rows, dtype=pl.String)
    first.add({"a": column, "b": column}, 0)
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4))
    others = data.draw(st.permutations(rows))
    assert printed(rows, cuts).confirms(first)
    assert printed(others, cuts).confirms(first) == (others == rows)


def test_values_that_are_not_known_are_counted_and_named() -> None:
    known = Variable((Coding("x", ("a", "b")),), np.array([[0], [1]]))
    with pytest.raises(TableError, match="column 'x' must hold only values the protocol knows; 3 rows hold others"):
        encode_against(frame(x=["a", "c", "", None, "b"]), published=known)
    bins = Variable((Coding("x", ("[0, 1)", "(missing)"), missing=1, edges=(0.0, 1.0)),), np.array([[0], [1]]))
    assert encode_against(frame(x=["0.5", ""]), published=bins).contingency.weights.tolist() == [[1, 1]]
    with pytest.raises(TableError, match="2 rows hold others"):
        encode_against(frame(x=["0.5", "7", "word"]), published=bins)


def test_combinations_that_are_not_known_are_counted_and_named() -> None:
    known = Variable((Coding("x", ("a", "b")), Coding("y", ("a", "b"))), np.array([[0, 0], [1, 1]]))
    with pytest.raises(TableError, match="columns x & y must hold only combinations the protocol knows; 2 rows"):
        encode_against(frame(x=["a", "a", "b"], y=["a", "b", "a"]), published=known)


FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns, index=[7, 7, 3]),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_kind_give_the_same_counts_and_get_their_kind_back(kind: str) -> None:
    native = FRAMES[kind]({"s": ["u", "v", None], "x": [1.5, None, 2.0], "n": [3, 1, 2]})
    table = FrameTable.of(native)
    code = encode(table, secret=["s"], publish=["x"])
    assert code.contingency.secret_labels == ("u", "v", "(missing)")
    assert decoded(code) == [("u", "1.5"), ("v", "(missing)"), ("(missing)", "2.0")]
    result = table.like([pl.Series("x", ["p", "q", "r"])], keep=["n"])
    assert type(result) is type(native)
    assert Counter(
        result["x"].tolist() if kind == "pandas" else result["x"].to_pylist() if kind == "pyarrow" else result["x"]
    ) == Counter("pqr")
    if kind == "pandas":
        assert result.index.tolist() == [0, 1, 2]
        assert table.like([pl.Series("x", ["p", "q", "r"])], indexed=True).index.tolist() == [7, 7, 3]
        assert result["n"].tolist() == [3, 1, 2]


def test_a_frame_is_counted_in_one_call() -> None:
    native = pd.DataFrame({"s": ["u", "v", "u"], "age": [3, 40, 70], "x": ["a", "b", "a"]})
    counted = contingency_of_frame(native, secret="s", publish=["age", "x"], bins=["age=18,65"])
    assert counted.attribute_names == ("age", "x")
    assert counted.published.labels == ("< 18 & a", "[18, 65) & b", ">= 65 & a")
    assert counted.weights.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_pandas_objects_are_text_and_what_is_no_frame_is_refused() -> None:
    table = FrameTable.of(pd.DataFrame({"s": ["u", "v", "u"], "x": pd.Series([1, "z", None], dtype=object)}))
    assert encode(table, secret=["s"], publish=["x"]).contingency.attribute_labels == (("1", "z", "(missing)"),)
    for wrong in (pl.LazyFrame({"a": [1]}), 3, pd.DataFrame([[1, 2]], columns=["a", "a"])):
        with pytest.raises(TableError):
            FrameTable.of(wrong)
    with pytest.raises(TableError, match="the frame must have rows"):
        encode(frame(s=[], x=[]), secret=["s"], publish=["x"])


def test_a_look_counts_each_column_with_the_secret_and_numbers_both_exactly_and_in_bins() -> None:
    rng = np.random.default_rng(3)
    n = 5_000
    secret, town = rng.integers(0, 3, n).astype(str).tolist(), rng.integers(0, 4, n).astype(str).tolist()
    table = frame(
        s=secret, town=town, age=rng.integers(0, 99, n).tolist(), zip=[f"{i % 60:05}" for i in range(n)], gap=[None] * n
    )
    found = look(table, secret=["s"], columns=["gap", "zip", "age", "town"])
    assert list(found) == ["gap", "zip", "age", "town"]
    sizes: dict[str, list[tuple[int, ...]]] = {}
    for column, looked in found.items():
        for counted in (looked.as_it_is, looked.in_bins):
            if counted is not None:
                assert counted.contingency is not None
                assert counted.contingency.weights.sum() == counted.rows == n
                sizes.setdefault(column, []).append(counted.contingency.weights.shape)
    assert sizes == {"gap": [(3, 1)], "zip": [(3, 60)], "age": [(3, 99), (3, 8)], "town": [(3, 4)]}
    alone = encode(table, secret=["s"], publish=["town"]).contingency
    town_look = found["town"].as_it_is
    assert town_look is not None
    assert town_look.contingency is not None
    assert np.array_equal(town_look.contingency.weights, alone.weights)


def test_a_look_reports_a_column_that_cannot_be_counted_and_goes_on() -> None:
    n = MOST_LABELS + 9
    table = frame(s=["u", "v"] * (n // 2) + ["u"], name=[f"p{i}" for i in range(n)], x=["a"] * n)
    found = look(table, secret=["s"], columns=["name", "x"])
    assert found["name"].as_it_is is None
    assert (found["name"].values, found["name"].rows) == (n, n)
    assert found["x"].as_it_is is not None
