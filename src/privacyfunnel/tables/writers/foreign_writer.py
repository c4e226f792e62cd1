"""Tables for Excel, Stata and SPSS. Labels that have an order are numbers with labels there, so that they sort by it.

Stata and SPSS files are written by pyreadstat, which reads them too. A workbook is a few lines of XML in an archive,
whose cells are text, so that no program takes `7-8` for a day or `=1+1` for a formula.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape, quoteattr

import polars as pl

from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.errors import OutputError
from privacyfunnel.tables.readers.formats import Table
from privacyfunnel.tables.readers.table_files import match_suffix

FOREIGN_OUTPUTS = (".xlsx", ".dta", ".sav")
MOST_ROWS, LONGEST_NAME = (1 << 20) - 1, 31  # of a sheet, below its header; of names in all of these programs
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # what XML cannot hold


def write_foreign(
    path: Path,
    table: Table,
    orders: Mapping[str, Sequence[str]],
    *,
    others: Mapping[str, pl.DataFrame] | None = None,
    force: bool = False,
    owner_only: bool = False,
) -> None:
    """Write a table to a .xlsx, .dta or .sav file, whole or not at all; a workbook gets `others` as further sheets."""
    suffix = match_suffix(path, FOREIGN_OUTPUTS)
    if suffix is None:
        raise OutputError(f"Tables for other programs end in {', '.join(FOREIGN_OUTPUTS)}; '{path.name}' does not.")
    rows = pl.concat(list(table.batches(table.columns)))
    with atomic_file(path, force=force, owner_only=owner_only) as beside:
        if suffix == ".xlsx":
            with beside.open("wb") as file:
                _write_workbook(file, {"rows": rows, **(others or {})})
        else:
            _write_statistics(beside, suffix, rows, orders)


def _write_statistics(path: Path, suffix: str, rows: pl.DataFrame, orders: Mapping[str, Sequence[str]]) -> None:
    import pyreadstat

    names = variable_names(rows.columns)
    columns = dict(zip(names, rows.get_columns(), strict=True))
    labels: dict[str, dict[int | float, str]] = {}
    for name, column in columns.items():
        order = list(orders.get(column.name, ()))
        if order and not column.has_nulls() and set(column.unique()) <= set(order):
            columns[name] = column.replace_strict(order, list(range(1, len(order) + 1)), return_dtype=pl.Int32)
            labels[name] = dict(enumerate(order, start=1))
    write = pyreadstat.write_dta if suffix == ".dta" else pyreadstat.write_sav
    write(pl.DataFrame(columns), str(path), column_labels=[*rows.columns], variable_value_labels=labels)


def variable_names(columns: Sequence[str]) -> list[str]:
    """Names as Stata and SPSS take them, each once.

    >>> variable_names(["the age", "the-age", "7"])
    ['the_age', 'the_age_2', 'v7']
    """
    names: list[str] = []
    for column in columns:
        name = re.sub(r"\W", "_", column, flags=re.ASCII)[: LONGEST_NAME - 4] or "v"
        name = name if name[0].isalpha() else f"v{name.lstrip('_')}"
        twice = sum(other == name or other.startswith(f"{name}_") for other in names) if name in names else 0
        names.append(f"{name}_{twice + 1}" if twice else name)
    return names


def _write_workbook(file: IO[bytes], sheets: Mapping[str, pl.DataFrame]) -> None:
    numbers = range(1, len(sheets) + 1)
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{_TYPE}.worksheet+xml"/>' for i in numbers
    )
    listed = "".join(
        f'<sheet name={quoteattr(name[:LONGEST_NAME])} sheetId="{i}" r:id="r{i}"/>'
        for i, name in zip(numbers, sheets, strict=True)
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>' for i in numbers
    )
    content = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType="'
        'application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="'
        f'{_TYPE}.sheet.main+xml"/>{parts}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" Type="'
        f'{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(zipfile.ZipInfo(name), _XML + text)  # which says nothing of the hour
        for i, rows in zip(numbers, sheets.values(), strict=True):
            if len(rows) > MOST_ROWS:
                raise OutputError(
                    f"A sheet has at most {MOST_ROWS:,} rows; here are {len(rows):,}. Write .dta or .sav."
                )
            with archive.open(zipfile.ZipInfo(f"xl/worksheets/sheet{i}.xml"), "w", force_zip64=True) as sheet:
                sheet.write(f'{_XML}<worksheet xmlns="{_SHEETS}"><sheetData>{_row(rows.columns)}'.encode())
                for row in rows.iter_rows():
                    sheet.write(_row(row).encode())
                sheet.write(b"</sheetData></worksheet>")


def _row(cells: Sequence[object]) -> str:
    return f"<row>{''.join(map(_cell, cells))}</row>"


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "<c/>"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"<c><v>{value!r}</v></c>"
    text = escape(_CONTROL.sub("", str(value)))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
