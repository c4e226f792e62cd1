"""Columns and encoding: every row gets the code of its label, and counts are counts of rows."""

from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import ColumnError, TableError
from privacyfunnel.tables.coding import contingency, encoding
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Variable
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.coding.known_domain import encode_known
from privacyfunnel.tables.coding.row_hashes import Fingerprint
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.table_files import open_table, write_table
from tests.tables.coded import consistent, decoded, frame

Row = tuple[str | None, ...]


CELL = st.sampled_from([None, "", "a", "b", "01", "1", "(missing)", "a & b"])
TABLES = st.lists(st.tuples(CELL, CELL, CELL, CELL), min_size=1, max_size=30)


@settings(max_examples=80, deadline=None)
@given(rows=TABLES, dense=st.booleans(), kept=st.booleans())
def test_codes_lead_back_to_the_labels_of_every_row_by_every_way(rows: list[Row], dense: bool, kept: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contingency, "DENSE_CELLS", 1 << 20 if dense else 0)
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
    again = encode_known(table, secret=first.contingency.secret, published=first.contingency.published)
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
    table = FrameTable.from_native(pl.DataFrame({"x": entries}).with_row_index("s"))
    assert encode(table, secret=["s"], publish=["x"]).contingency.attribute_labels == (labels,)


def test_lists_are_no_categories() -> None:
    with pytest.raises(ColumnError, match="column 'x' must hold text, numbers, dates or truth values; it holds List"):
        encode(frame(s=["u"], x=[[1, 2]]), secret=["s"], publish=["x"])


SMALL = {"occupation": ["u", "v"], "education": ["a", "b"], "income": ["1", "2"]}


@pytest.mark.parametrize(
    ("secret", "publish", "bins", "sentence"),
    [
        (["occupation"], ["educaton"], [], r"^no column 'educaton' among 3\. Did you mean 'education'\?$"),
        (["Occupation"], ["education"], [], r"^no column 'Occupation' among 3\. Did you mean 'occupation'\?$"),
        (["zzz"], ["education"], [], r"^no column 'zzz' among 3\. They are occupation, education, income\.$"),
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
    labels = np.array(code.contingency.published.labels)
    out = []
    for chunk in code.chunks(keep=["id"]):
        assert chunk.kept is not None
        out.append(pl.DataFrame({"x": labels[chunk.published]}).hstack(chunk.kept))
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
        mine = first.empty_copy(["a"])
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
        encode_known(frame(x=["a", "c", "", None, "b"]), published=known)
    bins = Variable((Coding("x", ("[0, 1)", "(missing)"), missing=1, edges=(0.0, 1.0)),), np.array([[0], [1]]))
    assert encode_known(frame(x=["0.5", ""]), published=bins).contingency.weights.tolist() == [[1, 1]]
    with pytest.raises(TableError, match="2 rows hold others"):
        encode_known(frame(x=["0.5", "7", "word"]), published=bins)


def test_combinations_that_are_not_known_are_counted_and_named() -> None:
    known = Variable((Coding("x", ("a", "b")), Coding("y", ("a", "b"))), np.array([[0, 0], [1, 1]]))
    with pytest.raises(TableError, match="columns x & y must hold only combinations the protocol knows; 2 rows"):
        encode_known(frame(x=["a", "a", "b"], y=["a", "b", "a"]), published=known)
