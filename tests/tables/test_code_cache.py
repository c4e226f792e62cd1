"""Entries that are recalled have the codes that they would have been given anew."""

from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.tables.coding import coders
from privacyfunnel.tables.coding.coders import CodeCache, Codes, LabelCoder, as_text

COLUMNS = [
    ["b", None, "a", "", "b", "a much longer label than fits a view"],
    [3, 1, None, 3, -7],
    [0.5, -0.0, 0.0, float("nan"), None, 1.0],
    [True, None, False],
    [date(2024, 5, 1), None, date(1970, 1, 1)],
]


class Counting:
    """Codes texts by a dictionary, and remembers how many entries it saw."""

    def __init__(self) -> None:
        self.seen = 0
        self._codes: dict[str | None, int] = {}

    def __call__(self, entries: pl.Series) -> Codes:
        self.seen += len(entries)
        return np.array([self._codes.setdefault(text, len(self._codes)) for text in as_text(entries)], dtype=np.uint32)


@given(batches=st.lists(st.tuples(st.sampled_from(COLUMNS), st.lists(st.integers(0, 5), max_size=20)), max_size=6))
def test_codes_are_those_of_the_coder_whatever_came_before(batches: list[tuple[list[object], list[int]]]) -> None:
    plain = Counting()
    recall = CodeCache(plain)
    for values, picks in batches:
        entries = pl.Series("*", values, strict=False).gather([pick % len(values) for pick in picks])
        assert recall.codes(entries).tolist() == plain(entries).tolist()


def test_a_different_entry_is_coded_once_however_many_rows_hold_it() -> None:
    coder = Counting()
    recall, entries = CodeCache(coder), pl.Series([f"label {i % 300}" for i in range(30_000)])
    codes = np.concatenate([recall.codes(entries[:20_000]), recall.codes(entries[20_000:])])
    assert codes.tolist() == codes[:300].tolist() * 100
    assert sorted(codes[:300].tolist()) == list(range(300))
    assert 300 <= coder.seen < 320  # two that share a bucket are coded by turns


def test_a_number_and_a_day_that_hash_alike_are_not_mistaken_for_each_other() -> None:
    recall, numbers = CodeCache(Counting()), pl.Series([1, 2], dtype=pl.Int32)
    assert set(recall.codes(numbers).tolist()) == {0, 1}
    assert set(recall.codes(numbers.cast(pl.Date)).tolist()) == {2, 3}


def test_a_column_of_very_many_labels_is_coded_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coders, "MOST_ENTRIES", 8)
    monkeypatch.setattr(coders, "MOST_BITS", 3)
    coder, entries = LabelCoder("c"), pl.Series([f"{i % 100}" for i in range(1000)])
    codes = np.concatenate([coder.codes(entries[:500]), coder.codes(entries[500:])])
    assert len(set(zip(entries.to_list(), codes.tolist(), strict=True))) == 100
    assert len(set(codes.tolist())) == 100
