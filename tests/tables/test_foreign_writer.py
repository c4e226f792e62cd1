"""Tables written for Excel, Stata and SPSS come back as they were, with labels in their order."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.errors import OutputError
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.table_files import open_table
from privacyfunnel.tables.writers.foreign_writer import variable_names, write_foreign

ROWS = pl.DataFrame({"the age": ["7-8", "under 7", "9+", "7-8"], "town": ["=1+1", "a & b <c>", " x ", ""]})
ORDERS = {"the age": ("under 7", "7-8", "9+")}


def _written(path: Path) -> pl.DataFrame:
    write_foreign(path, FrameTable.from_native(ROWS), ORDERS, others={"estimates": pl.DataFrame({"share": [0.25]})})
    table = open_table(path)
    return pl.concat(list(table.batches(table.columns)))


def test_a_workbook_holds_text_that_no_program_takes_for_a_day_or_a_formula(tmp_path: Path) -> None:
    found = _written(tmp_path / "t.xlsx")
    assert found["the age"].to_list() == ROWS["the age"].to_list()
    assert found["town"].to_list()[:3] == ROWS["town"].to_list()[:3]
    assert pl.read_excel(tmp_path / "t.xlsx", sheet_name="estimates")["share"].to_list() == [0.25]


@pytest.mark.parametrize("suffix", [".dta", ".sav"])
def test_labels_are_numbers_in_their_order(suffix: str, tmp_path: Path) -> None:
    import pyreadstat

    path = tmp_path / f"t{suffix}"
    assert _written(path)["the_age"].to_list() == ROWS["the age"].to_list()
    read = pyreadstat.read_dta if suffix == ".dta" else pyreadstat.read_sav
    rows, meta = read(str(path), output_format="polars")
    assert rows["the_age"].cast(pl.Int64).to_list() == [2, 1, 3, 2]
    assert meta.column_names_to_labels["the_age"] == "the age"


def test_names_and_places_are_checked(tmp_path: Path) -> None:
    assert variable_names(["a b", "a-b", "a_b", "1", "_"]) == ["a_b", "a_b_2", "a_b_3", "v1", "v"]
    with pytest.raises(OutputError, match=r"end in \.xlsx, \.dta, \.sav"):
        write_foreign(tmp_path / "t.csv", FrameTable.from_native(ROWS), ORDERS)
    _written(tmp_path / "t.xlsx")
    with pytest.raises(OutputError, match="exists already"):
        _written(tmp_path / "t.xlsx")
