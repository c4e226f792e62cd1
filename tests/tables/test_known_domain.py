"""One domain, whatever a table is read from: the same value is the same label, and what is not known is counted."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privacyfunnel.errors import ColumnError
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Variable
from privacyfunnel.tables.coding.known_domain import encode_published, meaning
from privacyfunnel.tables.coding.row_hashes import RowIds
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.table_files import open_table

LABELS = ("01", "1", "2", "2024-05-01", "true", "(missing)")
KNOWN = Variable((Coding("x", LABELS, missing=5),), np.arange(6)[:, None])


def codes(table: Any) -> list[int]:
    found: list[int] = np.concatenate([chunk.published for chunk in encode_published(table, KNOWN).chunks()]).tolist()
    return found


def test_a_value_is_the_same_label_from_text_numbers_days_and_truth(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n01\n1\n1.0\n2024-05-01\nTrue\n3\n\n01.0\n")
    assert codes(open_table(tmp_path / "t.csv")) == [0, 1, 1, 3, 4, -1, 5, -1]
    pl.DataFrame({"x": [1, 2, None, 3]}).write_parquet(tmp_path / "t.parquet")
    assert codes(open_table(tmp_path / "t.parquet")) == [1, 2, 5, -1]
    frames: list[tuple[Any, list[int]]] = [
        (pd.DataFrame({"x": [1, 2, None]}), [1, 2, 5]),  # whole numbers that a gap made floats
        (pd.DataFrame({"x": pd.Categorical(["01", "1", None])}), [0, 1, 5]),
        (pd.DataFrame({"x": pd.to_datetime(["2024-05-01", "2024-05-02"])}), [3, -1]),
        (pl.DataFrame({"x": [date(2024, 5, 1), None]}), [3, 5]),
        (pl.DataFrame({"x": [datetime(2024, 5, 1), datetime(2024, 5, 1, 7)]}), [3, -1]),
        (pl.DataFrame({"x": [True, False]}), [4, -1]),
        (pl.DataFrame({"x": ["01", "1"]}, schema={"x": pl.Categorical}), [0, 1]),
    ]
    for frame, expected in frames:
        assert codes(FrameTable.from_native(frame)) == expected


def test_labels_that_mean_the_same_are_told_apart_by_their_text_alone() -> None:
    both = Variable((Coding("x", ("1", "1.0")),), np.arange(2)[:, None])
    chunks = encode_published(FrameTable.from_native(pl.DataFrame({"x": ["1", "1.0", "1.00"]})), both).chunks()
    assert [chunk.published.tolist() for chunk in chunks] == [[0, 1, -1]]
    assert meaning("1e400") == "1e400"
    assert meaning("-0.0") == meaning("0") == "0"


def test_what_is_not_known_is_counted_by_column_and_combination() -> None:
    known = Variable((Coding("x", ("a", "b")), Coding("y", ("u", "v"))), np.array([[0, 0], [1, 1]]))
    frame = pl.DataFrame({"x": ["a", "c", "b", "a", "c"], "y": ["u", "u", "u", "v", "w"], "s": list("ppqqq")})
    found = encode_published(FrameTable.from_native(frame), known, secret=["s"])
    assert (found.unknown_rows.rows, found.unknown_rows.columns) == (4, {"x": 2, "y": 1})
    assert found.contingency.weights.sum() == 1


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2, None], "missing in 1 of 3 rows"),
        ([1, 2, 1], "1 of 3 rows have an id"),
        (["a", "a", "a"], "2 of 3 rows have an id"),
        (["a", "b", "c" * 300], "at most 256 bytes; 1 of"),
    ],
)
def test_an_id_that_does_not_tell_rows_apart_is_refused_with_a_count(ids: list[Any], said: str) -> None:
    table = FrameTable.from_native(pl.DataFrame({"x": ["1", "1", "1"], "id": ids}, strict=False))
    with pytest.raises(ColumnError, match=said):
        encode_published(table, KNOWN, keep=["id"], ids=RowIds("id"))


def test_ids_whose_hashes_agree_are_looked_at_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FrameTable.from_native(pl.DataFrame({"x": ["1", "1", "1"], "id": ["a", "b", "c"]}))
    monkeypatch.setattr(pl.Series, "hash", lambda series, *_: pl.Series([7] * len(series), dtype=pl.UInt64))
    ids = RowIds("id")
    ids.add(pl.Series("id", ["a", "b", "c"]))
    ids.check(table)
