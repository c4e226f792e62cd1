"""A glance at a table: what it says of each column is what counting by hand says."""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.tables.coding.exploration import BARS, DATES, NUMBERS, TEXT, profile_columns
from privacyfunnel.tables.readers.formats import Dialect
from privacyfunnel.tables.readers.table_files import open_table

NAMES = st.sampled_from(["a", "b", "", "c d"])
ROWS = st.lists(st.tuples(NAMES, st.one_of(st.none(), st.integers(-50, 50))), min_size=2, max_size=40)


@given(ROWS)
def test_values_gaps_and_bars_are_those_of_counting_by_hand(rows: list[tuple[str, int | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("name", "n", "end"), *((name, n, "x") for name, n in rows)])
        found, (name, number, _) = profile_columns(open_table(path))
    assert found == len(rows)
    names = Counter(text for text, _ in rows if text)
    assert (name.missing, name.distinct, name.more) == (sum(not text for text, _ in rows), len(names), False)
    assert dict(name.common).items() <= {text: held for text, held in names.items() if held > 1}.items()
    numbers = [n for _, n in rows if n is not None]
    assert number.missing == len(rows) - len(numbers)
    assert number.distinct == len(set(numbers))
    if numbers:
        assert number.kind == NUMBERS
        assert number.bars is not None
        assert (number.bars.low, number.bars.high) == (min(numbers), max(numbers))
        assert (len(number.bars.rows), sum(number.bars.rows)) == (BARS, len(numbers))
    else:
        assert number.bars is None


def test_kinds_are_told_apart_and_decimal_commas_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("price;day;code\n1,5;2024-01-02;01a\n2,25;2024-03-04;02\n;;03\n", encoding="utf-8")
    _, found = profile_columns(open_table(path))
    assert [at.kind for at in found] == [NUMBERS, DATES, TEXT]
    assert found[0].bars is not None
    assert (found[0].bars.low, found[0].bars.high) == (1.5, 2.25)
    _, points = profile_columns(open_table(path, Dialect(decimal=".")))
    assert points[0].kind == TEXT


def test_postcodes_are_codes_and_german_dates_are_dates(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("plz;born;pay;zip\n45127;03.04.1965;100;0123\n45130;17.12.2001;20000;0456\n", encoding="utf-8")
    kinds = {at.column: at.kind for at in profile_columns(open_table(path))[1]}
    assert kinds == {"plz": TEXT, "born": DATES, "pay": NUMBERS, "zip": TEXT}
