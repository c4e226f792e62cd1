"""Hazards are found by what columns hold, whatever they are called, and no sentence quotes an entry."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel import ReleaseSpec, design, sanitise, sanitise_file
from privacyfunnel.errors import ColumnError
from privacyfunnel.tables.readers.column_hazards import Hazard, find_hazards
from privacyfunnel.tables.readers.eager_frames import frame_table

ROWS = 400
RANDOM = random.Random(7)
SECRET = [RANDOM.choice("abc") for _ in range(ROWS)]
HARMLESS = [RANDOM.choice(["north", "south", "east"]) for _ in range(ROWS)]
FIRST_DAY = date(1950, 1, 1)
DAYS = [FIRST_DAY + timedelta(days=RANDOM.randrange(20_000)) for _ in range(ROWS)]
WORDS = [
    "the",
    "patient",
    "came",
    "back",
    "with",
    "pain",
    "after",
    "the",
    "second",
    "treatment",
    "and",
    "asked",
    "for",
    "Dr",
    "Maier",
]

COLUMNS: dict[str, tuple[str, list[object]]] = {
    "identifier": ("q1", [f"K-{number * 7919 % 100_003}" for number in range(ROWS)]),
    "free text": ("q2", [" ".join(RANDOM.choices(WORDS, k=9)) for _ in range(ROWS)]),
    "date by the day": ("q3", [f"{day:%d.%m.%Y}" for day in DAYS]),
    "coordinates": ("q4", [f"{52.5 + RANDOM.random() / 10:.5f}" for _ in range(ROWS)]),
    "secret": ("q5", [f"group {value}" for value in SECRET]),
    "spelling": ("q6", [RANDOM.choice(["männlich", "Männlich", "MÄNNLICH ", "weiblich"]) for _ in range(ROWS)]),
}


def hazards(frame: pl.DataFrame, publish: list[str]) -> list[Hazard]:
    return find_hazards(frame_table(frame), secret=["s"], publish=publish, used=publish)


def with_column(name: str, entries: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"s": SECRET, "x": HARMLESS, name: entries})


def test_columns_of_few_labels_are_no_hazard() -> None:
    assert hazards(pl.DataFrame({"s": SECRET, "x": HARMLESS}), ["x"]) == []


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_hazard_is_found_in_a_published_column_and_in_no_other(kind: str) -> None:
    name, entries = COLUMNS[kind]
    frame = with_column(name, entries)
    found = hazards(frame, ["x", name])
    assert [(hazard.kind, hazard.column) for hazard in found] == [(kind, name)]
    assert found[0].blocks == (kind not in {"spelling", "secret"})
    assert hazards(frame, ["x"]) == []


@pytest.mark.parametrize("kind", COLUMNS)
def test_no_sentence_quotes_an_entry(kind: str) -> None:
    name, entries = COLUMNS[kind]
    (hazard,) = hazards(with_column(name, entries), [name])
    assert not any(f"'{entry}'" in hazard.sentence for entry in entries)
    assert not any(str(entry) in hazard.sentence for entry in entries if len(str(entry)) > 6)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S", "date", "datetime"])
def test_days_are_found_however_they_are_written(form: str) -> None:
    if form in {"date", "datetime"}:
        entries = pl.Series("day", DAYS).cast(pl.Date if form == "date" else pl.Datetime)
        frame = pl.DataFrame({"s": SECRET}).with_columns(entries)
    else:
        frame = with_column("day", [f"{day:{form}}" for day in DAYS])
    assert [hazard.kind for hazard in hazards(frame, ["day"])] == ["date by the day"]


def test_numbers_are_neither_coordinates_nor_days() -> None:
    wages = [f"{RANDOM.lognormvariate(7, 0.5) // 50 * 50:.0f}" for _ in range(ROWS)]
    assert hazards(with_column("wage", list(wages)), ["wage"]) == []


def test_a_number_that_repeats_with_constant_others_is_a_person() -> None:
    people = [(f"P{RANDOM.randrange(10**6)}", RANDOM.choice("mf"), RANDOM.choice("abcdefgh")) for _ in range(150)]
    rows = [(*person, RANDOM.choice("xyz")) for person in people for _ in range(3)]
    RANDOM.shuffle(rows)
    frame = pl.DataFrame(rows, schema=["Lfd. Nr.", "sex", "s", "visit"], orient="row")
    found = hazards(frame, ["sex", "visit"])
    assert [(hazard.kind, hazard.column, hazard.blocks) for hazard in found] == [("persons", "Lfd. Nr.", False)]


def test_a_class_of_pupils_is_no_person() -> None:
    classes = [f"class {RANDOM.randrange(40)}" for _ in range(ROWS)]
    frame = with_column("class", list(classes)).with_columns(pl.Series("y", HARMLESS[::-1]))
    assert hazards(frame, ["x"]) == []


def test_skewed_numbers_called_weights_are_weights_and_kilograms_are_not() -> None:
    skewed = [round(RANDOM.lognormvariate(3, 1), 2) for _ in range(ROWS)]
    kilograms = [round(RANDOM.gauss(70, 12), 1) for _ in range(ROWS)]
    assert [hazard.kind for hazard in hazards(with_column("Gewicht", list(skewed)), ["x"])] == ["weights"]
    assert hazards(with_column("weight", list(kilograms)), ["x"]) == []


def test_a_file_appended_to_itself_is_noticed() -> None:
    frame = with_column("age", [RANDOM.randrange(90) for _ in range(ROWS)])
    assert [hazard.kind for hazard in hazards(pl.concat([frame, frame]), ["x"])] == ["copies"]
    assert hazards(frame, ["x"]) == []


def test_missing_secrets_are_asked_about() -> None:
    frame = pl.DataFrame(
        {"s": [None if place % 9 == 0 else value for place, value in enumerate(SECRET)], "x": HARMLESS}
    )
    assert [hazard.kind for hazard in hazards(frame, ["x"])] == ["missing secret"]


@pytest.mark.parametrize("rows", [1, 49])
def test_few_rows_show_nothing(rows: int) -> None:
    assert hazards(with_column(*COLUMNS["identifier"]).head(rows), ["q1"]) == []


def test_a_release_refuses_a_hazard_until_it_is_allowed(tmp_path: Path) -> None:
    name, entries = COLUMNS["date by the day"]
    frame = with_column(name, entries)
    spec = ReleaseSpec(prior="table", secret="s", publish=[name], epsilon=1, method="randomised-response")
    with pytest.raises(ColumnError, match=f"'{name}' holds dates by the day.*allow"):
        sanitise(frame, spec)
    with pytest.raises(ColumnError, match="holds dates"):
        design(frame, spec)
    assert sanitise(frame, replace(spec, allow=name)).rows == ROWS
    assert sanitise(frame, replace(spec, bins={name: "year"})).rows == ROWS
    table = tmp_path / "t.csv"
    frame.write_csv(table)
    with pytest.raises(ColumnError, match="holds dates"):
        sanitise_file(table, replace(spec, into=tmp_path / "out"))
    assert not (tmp_path / "out").exists()
