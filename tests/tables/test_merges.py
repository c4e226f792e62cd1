"""Merging: rare values are one, bins join their neighbours, and a protocol's domain maps every value the same way."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel import Bins, MergeRare, MergeSecrets
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.tables.coding import encoding
from privacyfunnel.tables.coding.encoding import Encoding, encode
from privacyfunnel.tables.coding.known_domain import encode_known
from privacyfunnel.tables.coding.merges import Merge, MergeOthers, make_merges, parse_merge_secrets
from privacyfunnel.tables.readers.eager_frames import FrameTable


def read(rows: dict[str, list[Any]], *merges: Merge, bins: tuple[Bins, ...] = ()) -> Encoding:
    publish = [column for column in rows if column != "s"]
    return encode(FrameTable.from_native(pl.DataFrame(rows)), secret=["s"], publish=publish, bins=bins, merges=merges)


def read_if_two_are_left(rows: dict[str, list[Any]], *merges: Merge, bins: tuple[Bins, ...] = ()) -> Encoding | None:
    try:
        return read(rows, *merges, bins=bins)
    except ColumnError as error:
        if "must keep two values" not in str(error):
            raise
        return None


def shown(code: Encoding) -> list[str]:
    labels = code.contingency.published.labels
    return [labels[x] for chunk in code.chunks() for x in chunk.published.tolist()]


def held(code: Encoding) -> list[int]:
    counts = code.contingency.weights.sum(axis=0)
    return [int(n) for n in counts]


values = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "other", "other 2", None]), min_size=4, max_size=40)


@settings(max_examples=80, deadline=None)
@given(column=values, fewest=st.integers(2, 6))
def test_every_value_left_has_enough_rows_and_no_more_are_merged_than_needed(
    column: list[str | None], fewest: int
) -> None:
    rows: dict[str, list[Any]] = {"s": ["u", "v"] * len(column), "x": [*column, *column]}
    before = Counter(rows["x"])
    code = read_if_two_are_left(rows, MergeRare(fewest))
    if code is None:
        assert min(before.values()) < fewest
        return
    coding = code.contingency.published.codings[0]
    assert min(held(code)) >= fewest
    assert len(set(coding.labels)) == len(coding.labels)
    if coding.rest is None:
        assert min(before.values()) >= fewest
        return
    other = coding.labels[coding.rest]
    now = shown(code)
    merged = Counter(value for value, label in zip(rows["x"], now, strict=True) if label == other)
    unmerged = [n for value, n in before.items() if value not in merged]
    assert max(merged.values()) <= min(unmerged)
    rare = [n for n in before.values() if n < fewest]
    assert sum(merged.values()) - max(merged.values()) < max(fewest, sum(rare))
    assert {value for value in merged if value in coding.labels} <= {other}


@settings(max_examples=60, deadline=None)
@given(column=values, fewest=st.integers(2, 6))
def test_the_domain_alone_maps_raw_values_as_the_owner_did(column: list[str | None], fewest: int) -> None:
    rows: dict[str, list[Any]] = {"s": ["u", "v"] * len(column), "x": [*column, *column]}
    code = read_if_two_are_left(rows, MergeRare(fewest))
    if code is None:
        return
    known = code.contingency.published
    again = encode_known(FrameTable.from_native(pl.DataFrame(rows)), secret=code.contingency.secret, published=known)
    np.testing.assert_array_equal(again.contingency.weights, code.contingency.weights)
    coding = known.codings[0]
    if coding.rest is not None:  # what a protocol file says: these labels, and this one for all others
        stated = MergeOthers("x", frozenset(coding.labels), coding.labels[coding.rest])
        assert shown(read(rows, stated)) == shown(code)
        new = {"s": ["u"], "x": ["never seen"]}
        assert shown(encode_known(FrameTable.from_native(pl.DataFrame(new)), published=known)) == [
            coding.labels[coding.rest]
        ]


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 40) | st.none(), min_size=6, max_size=50),
    edges=st.lists(st.integers(1, 39), min_size=1, max_size=8, unique=True).map(sorted),
    fewest=st.integers(2, 8),
)
def test_bins_join_their_neighbours_until_each_has_enough_rows(
    numbers: list[int | None], edges: list[int], fewest: int
) -> None:
    rows: dict[str, list[Any]] = {"s": ["u", "v"] * len(numbers), "x": [*numbers, *numbers]}
    bins = (Bins("x", edges=tuple(edges)),)
    code = read_if_two_are_left(rows, MergeRare(fewest), bins=bins)
    if code is None:
        return
    coding = code.contingency.published.codings[0]
    assert set(coding.edges) <= set(edges)
    assert coding.rest is None
    counts = dict(zip(coding.labels, held(code), strict=True))
    assert all(n >= fewest for label, n in counts.items() if label != "(missing)")
    assert shown(read(rows, bins=(Bins("x", edges=coding.edges),))) == shown(code)


def test_a_rule_for_a_column_goes_before_one_for_all() -> None:
    rows = {"s": ["u", "v"] * 6, "x": ["a"] * 9 + ["b"] * 3, "y": ["k"] * 5 + ["l"] * 5 + ["m"] + ["n"]}
    code = read(rows, MergeRare(3, "x"), MergeRare(4))
    assert code.contingency.attribute_labels == (("a", "b"), ("l", "other"))
    assert read(rows, MergeRare(2)).contingency.attribute_labels == (("a", "b"), ("k", "l", "other"))


def test_a_table_too_large_to_be_kept_in_codes_is_merged_alike_when_it_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: dict[str, list[Any]] = {"s": ["u", "v", "w"] * 6, "x": ["a"] * 9 + ["b"] * 7 + ["c", None], "y": [*range(18)]}
    rules: list[Merge] = [MergeRare(3), MergeSecrets({"o": ("u", "w")})]
    bins = (Bins("y", edges=(1, 2, 9)),)
    kept = read(rows, *rules, bins=bins)
    monkeypatch.setattr(encoding, "KEPT_BYTES", 0)
    again = read(rows, *rules, bins=bins)
    assert shown(kept) == shown(again)
    assert kept.contingency.attribute_labels == (("a", "other"), ("under 9", "9+"))
    assert [chunk.secret.tolist() for chunk in kept.chunks()] == [chunk.secret.tolist() for chunk in again.chunks()]


def test_the_label_of_merged_values_is_no_other_values() -> None:
    rows = {"s": ["u", "v"] * 6, "x": ["other"] * 5 + ["a"] * 4 + ["b", "c", "d"]}
    assert read(rows, MergeRare(2)).contingency.attribute_labels == (("a", "other", "other 2"),)


def test_secrets_are_merged_by_name_and_others_stay() -> None:
    rows = {"s": ["u", "v", "w", "z"] * 3, "x": ["a", "b"] * 6}
    code = read(rows, MergeSecrets({"rare": ("u", "w")}))
    assert code.contingency.secret_labels == ("v", "z", "rare")
    assert code.contingency.weights.sum(axis=1).tolist() == [3, 3, 6]
    assert code.contingency.secret.codings[0].merges_values
    two = read(rows, MergeSecrets({"rare": ("u", "w"), "u": ("v", "z")}))
    assert two.contingency.secret_labels == ("rare", "u")


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ({"other": ("u", "nobody")}, "1 of 2 are not"),
        ({"z": ("u", "v")}, "a name that no other value"),
        ({"other": ("u", "v", "w", "z")}, "two values of 's' must be left"),
    ],
)
def test_secrets_that_cannot_be_merged_are_refused_without_naming_them(
    groups: dict[str, tuple[str, ...]], why: str
) -> None:
    rows = {"s": ["u", "v", "w", "z"] * 3, "x": ["a", "b"] * 6}
    with pytest.raises(ColumnError, match=why) as caught:
        read(rows, MergeSecrets(groups))
    assert "nobody" not in str(caught.value)


def test_a_secret_in_bins_or_of_several_columns_is_not_merged_by_name() -> None:
    rows = {"s": [1, 2, 3] * 4, "t": ["p", "q"] * 6, "x": ["a", "b"] * 6}
    table = FrameTable.from_native(pl.DataFrame(rows))
    with pytest.raises(ColumnError, match="Use coarser"):
        encode(table, secret=["s"], publish=["x"], bins=[Bins("s", edges=(2,))], merges=make_merges(None, {"o": ["1"]}))
    with pytest.raises(ColumnError, match="several are secret"):
        encode(table, secret=["s", "t"], publish=["x"], merges=make_merges(None, {"o": ["1"]}))
    with pytest.raises(ColumnError, match="'t' is not"):
        encode(table, secret=["s"], publish=["x"], merges=[MergeRare(3, "t")])


@pytest.mark.parametrize("texts", [[""], ["a,b"], ["=other"], ["a=other", "b=other"], ["a=o", "a=p"], ["a,a=o"]])
def test_what_is_no_rule_for_secrets_is_refused(texts: list[str]) -> None:
    with pytest.raises(ParameterError, match="a,b,c=other"):
        parse_merge_secrets(texts)
