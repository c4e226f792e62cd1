"""Numbers and coarser values as people write them."""

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import ColumnError, ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.model.joint import Attribute
from privacyfunnel.release.kept_counts import published_variable
from privacyfunnel.tables.coding.bin_syntax import column_bins, format_bins, parse_bin, parse_bins
from privacyfunnel.tables.coding.bins import Bins, Grouping
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.coding.grouping_rules import ByDate, Ends, Prefix, ValueMap, parse_grouping
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.formats import MISSING_TEXTS, NumberFormat, detect_decimal


def floats(texts: list[str], decimal: str, *missing: str) -> list[float | None]:
    numbers, strange = NumberFormat(decimal, missing).normalise(pl.Series(texts, dtype=pl.String))
    assert strange is None
    return numbers.cast(pl.Float64).to_list()


@settings(max_examples=60, deadline=None)
@given(
    value=st.decimals(-(10**9), 10**9, places=2),
    decimal=st.sampled_from([".", ","]),
    apart=st.sampled_from(["", "other", " ", "\u00a0", "'"]),
)
def test_a_number_is_read_as_whoever_wrote_it_meant_it(value: Any, decimal: str, apart: str) -> None:
    mark = {"other": "." if decimal == "," else ","}.get(apart, apart)
    text = f"{value:,.2f}".replace(",", "T").replace(".", decimal).replace("T", mark)
    assert floats([text, f" {text}"], decimal) == [float(value)] * 2


def test_a_point_that_is_no_mark_of_thousands_is_no_number_among_decimal_commas() -> None:
    numbers, strange = NumberFormat(",").normalise(pl.Series(["1.234", "12.5", "1.2345", "1,5"]))
    assert numbers.to_list() == ["1234", "12.5", "1.2345", "1.5"]
    assert strange is not None
    assert strange.to_list() == [False, True, True, False]


@pytest.mark.parametrize("text", [*MISSING_TEXTS, "na", "NULL", "", "  "])
def test_what_people_write_for_a_missing_number_is_missing(text: str) -> None:
    assert floats([text, "1"], ".") == [None, 1.0]
    assert floats(["refused", "1"], ".", "Refused") == [None, 1.0]


def test_the_decimal_mark_is_found_where_the_delimiter_allows_it() -> None:
    assert detect_decimal([["1.250", "x"]], ";") == ","
    assert detect_decimal([["1.250", "0.5"]], ";") == "."
    assert detect_decimal([["1.250", "x"]], "\t") == "."
    assert detect_decimal([["0,5", "x"]], "\t") == ","
    assert detect_decimal([["0,5"]], ",") == "."


def labels(how: Any, entries: Any) -> list[str]:
    """What a published column becomes."""
    table = FrameTable.from_native(pl.DataFrame({"x": entries, "s": ["u", "v"] * (len(entries) // 2)}))
    encoding = encode(table, secret=["s"], publish=["x"], bins=parse_bins({"x": how}))
    names = encoding.contingency.published.codings[0].labels
    return [names[code] for chunk in encoding.chunks() for code in chunk.published.tolist()]


@settings(max_examples=15, deadline=None)
@given(days=st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1)), min_size=2, max_size=2, unique=True))
def test_dates_are_grouped_as_the_calendar_does_however_they_are_written(days: list[date]) -> None:
    expected = {
        "year": [str(day.year) for day in days],
        "quarter": [f"{day.year}-Q{(day.month + 2) // 3}" for day in days],
        "month": [f"{day:%Y-%m}" for day in days],
        "week": [f"{day.isocalendar().year}-W{day.isocalendar().week:02}" for day in days],
        "weekday": [f"{day:%a}" for day in days],
    }
    for part, wanted in expected.items():
        for shape, how in (("%Y-%m-%d", ""), ("%d.%m.%Y", ""), ("%Y-%m-%d 13:45:00", ""), ("%m/%d/%Y", ":mdy")):
            rule = column_bins("x", part + how).how
            assert rule is not None
            assert rule.labels(pl.Series([day.strftime(shape) for day in days]), NumberFormat())[0].to_list() == wanted
        assert ByDate(part).labels(pl.Series(days), NumberFormat())[0].to_list() == wanted


def test_a_date_that_could_be_two_days_is_refused_until_its_order_is_said() -> None:
    days = ["03/04/2024"] * 6
    with pytest.raises(ColumnError, match=r"most often '03/04/2024'.*month:dmy or month:mdy"):
        labels("month", days)
    assert labels("month:dmy", days) == ["2024-04"] * 6
    assert labels("month:mdy", days) == ["2024-03"] * 6


def test_weekdays_and_numbers_with_ends_are_listed_in_order() -> None:
    assert ByDate("weekday").sort_labels(["Sun", "Mon", "Fri"]) == ["Mon", "Fri", "Sun"]
    assert labels("bottom:18,top:85", ["17", "18", "19.5", "85", "99", "NA"]) == [
        "up to 18", "up to 18", "19.5", "85+", "85+", "(missing)",
    ]  # fmt: skip
    assert Ends(18, 85).sort_labels(["85+", "9", "up to 18", "70"]) == ["up to 18", "9", "70", "85+"]


def test_a_width_cuts_at_its_multiples_and_quotes_nobody() -> None:
    prices = ["1.234", "2.345", "4.999", "12.000"]
    assert labels("width:2", prices) == ["under 2", "2–3", "4–5", "12+"]
    assert labels("width:2,bottom:0,top:4", prices) == ["0–1", "2–3", "4+", "4+"]
    assert parse_bin("x=width:2,bottom:0,top:4") == Bins("x", edges=(0, 2, 4), bottom=0, top=4)
    with pytest.raises(ParameterError, match="at most 1000 bins"):
        labels("width:0.001", prices)


@given(low=st.floats(-1e6, 1e6), span=st.floats(0, 100), width=st.sampled_from([0.1, 0.25, 1.0, 7.0]))
def test_edges_of_a_width_depend_on_the_ends_through_their_multiples_only(
    low: float, span: float, width: float
) -> None:
    bins = Bins("x", width=width)
    edges = bins.multiples(low, low + span)
    for edge in edges:
        assert abs(edge / width - round(edge / width)) < 1e-6
    inside = [edge for edge in edges if low < edge <= low + span]
    assert inside == list(edges) or (not inside and len(edges) == 1)


def test_a_hierarchy_of_arx_gives_groups_of_the_level_asked_for(tmp_path: Any) -> None:
    path = tmp_path / "icd.csv"
    path.write_text("E11.9;E11;E\nE10.1;E10;E\nI21;I2;I\n*;other;other\n")
    assert labels(f"map:{path}", ["E11.9", "E10.1", "I21", "Z99"]) == ["E11", "E10", "I2", "other"]
    assert labels(f"map:{path}:2", ["E11.9", "E10.1", "I21", ""]) == ["E", "E", "I", "(missing)"]
    assert labels({"a": "A", "b": "A", "c": "B"}, ["a", "c"]) == ["A", "B"]
    with pytest.raises(ColumnError, match=r"values that its map lists; 1 of 2 rows hold something else, each of them"):
        labels({"a": "A", "b": "B"}, ["a", "x"])


@pytest.mark.parametrize("rule", [ByDate("month"), ByDate("week", "dmy"), Prefix(3), Ends(1.5), ValueMap({"a": "b"})])
def test_a_rule_is_read_back_from_its_file_and_what_it_grouped_stays(rule: Grouping) -> None:
    assert parse_grouping(rule.to_json()) == rule
    grouped = {"by": "2024-05" if rule == ByDate("month") else "2024-W18", "prefix": "E11", "bottom": "up to 1.5"}
    label = next((text for key, text in grouped.items() if key in rule.to_json()), "b")
    found, strange = rule.labels(pl.Series([label]), NumberFormat())
    assert (found.to_list(), strange) == ([label], None)


@pytest.mark.parametrize("content", [{"by": "moon"}, {"prefix": 3, "by": "year"}, {}, {"top": 1, "bottom": 2}])
def test_a_rule_that_a_file_does_not_make_plain_is_refused(content: dict[str, Any]) -> None:
    domain = Domain((Attribute("day", ("a", "b")),), np.array([[0], [1]]), ("s",), groupings={"day": content})
    with pytest.raises(ProtocolFileError):
        published_variable(domain)


@pytest.mark.parametrize(
    "how", ["0,18,65", "quantiles:4", "width:10", "width:10,top:90", "top:85", "month:dmy", "prefix:3", "values"]
)
def test_bins_are_asked_for_in_one_language(how: str) -> None:
    assert format_bins(column_bins("age", how)) == how
    assert parse_bin(f"age={how}") == column_bins("age", how)
