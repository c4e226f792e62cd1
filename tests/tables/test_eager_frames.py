"""Frames of every kind, and a look at each column with the secret."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privacyfunnel.errors import TableError
from privacyfunnel.tables.coding.coders import MOST_LABELS
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.coding.exploration import tabulate_columns
from privacyfunnel.tables.readers.eager_frames import FrameTable, contingency_from_frame
from tests.tables.coded import decoded, frame

FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns, index=[7, 7, 3]),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_kind_give_the_same_counts_and_get_their_kind_back(kind: str) -> None:
    native = FRAMES[kind]({"s": ["u", "v", None], "x": [1.5, None, 2.0], "n": [3, 1, 2]})
    table = FrameTable.from_native(native)
    code = encode(table, secret=["s"], publish=["x"])
    assert code.contingency.secret_labels == ("u", "v", "(missing)")
    assert decoded(code) == [("u", "1.5"), ("v", "(missing)"), ("(missing)", "2.0")]
    result = table.make_frame([pl.Series("x", ["p", "q", "r"])], keep=["n"])
    assert type(result) is type(native)
    assert Counter(
        result["x"].tolist() if kind == "pandas" else result["x"].to_pylist() if kind == "pyarrow" else result["x"]
    ) == Counter("pqr")
    if kind == "pandas":
        assert result.index.tolist() == [0, 1, 2]
        assert table.make_frame([pl.Series("x", ["p", "q", "r"])], keep_index=True).index.tolist() == [7, 7, 3]
        assert result["n"].tolist() == [3, 1, 2]


def test_a_frame_of_polars_is_answered_without_an_object_per_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FrameTable.from_native(pl.DataFrame({"n": [3, 1], "c": pl.Series(["u", "v"], dtype=pl.Categorical)}))
    monkeypatch.setattr(pl.Series, "to_list", lambda _: pytest.fail("listed"))
    fresh = [pl.Series("x", [None, None], dtype=pl.String), pl.Series("n", ["7", "8"]), pl.Series("c", ["v", "u"])]
    assert dict(table.make_frame(fresh).schema) == {"x": pl.String, "n": pl.Int64, "c": pl.Categorical}


def test_a_frame_is_counted_in_one_call() -> None:
    native = pd.DataFrame({"s": ["u", "v", "u"], "age": [3, 40, 70], "x": ["a", "b", "a"]})
    counted = contingency_from_frame(native, secret="s", publish=["age", "x"], bins=["age=18,65"])
    assert counted.attribute_names == ("age", "x")
    assert counted.published.labels == ("under 18 & a", "18–64 & b", "65+ & a")
    assert counted.weights.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_pandas_objects_are_text_and_what_is_no_frame_is_refused() -> None:
    table = FrameTable.from_native(pd.DataFrame({"s": ["u", "v", "u"], "x": pd.Series([1, "z", None], dtype=object)}))
    assert encode(table, secret=["s"], publish=["x"]).contingency.attribute_labels == (("1", "z", "(missing)"),)
    for wrong in (pl.LazyFrame({"a": [1]}), 3, pd.DataFrame([[1, 2]], columns=["a", "a"])):
        with pytest.raises(TableError):
            FrameTable.from_native(wrong)
    with pytest.raises(TableError, match="the frame must have rows"):
        encode(frame(s=[], x=[]), secret=["s"], publish=["x"])


def test_a_look_counts_each_column_with_the_secret_and_numbers_both_exactly_and_in_bins() -> None:
    rng = np.random.default_rng(3)
    n = 5_000
    secret, town = rng.integers(0, 3, n).astype(str).tolist(), rng.integers(0, 4, n).astype(str).tolist()
    table = frame(
        s=secret, town=town, age=rng.integers(0, 99, n).tolist(), zip=[f"{i % 60:05}" for i in range(n)], gap=[None] * n
    )
    found = tabulate_columns(table, secret=["s"], columns=["gap", "zip", "age", "town"])
    assert list(found) == ["gap", "zip", "age", "town"]
    sizes: dict[str, list[tuple[int, ...]]] = {}
    for column, looked in found.items():
        for counted in (looked.exact, looked.binned):
            if counted is not None:
                assert counted.contingency is not None
                assert counted.contingency.weights.sum() == counted.rows == n
                sizes.setdefault(column, []).append(counted.contingency.weights.shape)
    assert sizes == {"gap": [(3, 1)], "zip": [(3, 60)], "age": [(3, 99), (3, 8)], "town": [(3, 4)]}
    alone = encode(table, secret=["s"], publish=["town"]).contingency
    town_look = found["town"].exact
    assert town_look is not None
    assert town_look.contingency is not None
    assert np.array_equal(town_look.contingency.weights, alone.weights)


def test_a_look_reports_a_column_that_cannot_be_counted_and_goes_on() -> None:
    n = MOST_LABELS + 9
    table = frame(s=["u", "v"] * (n // 2) + ["u"], name=[f"p{i}" for i in range(n)], x=["a"] * n)
    found = tabulate_columns(table, secret=["s"], columns=["name", "x"])
    assert found["name"].exact is None
    assert (found["name"].values, found["name"].rows) == (n, n)
    assert found["x"].exact is not None
