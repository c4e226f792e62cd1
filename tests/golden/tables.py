"""The small tables of the golden cases, made from whole numbers alone: the same bytes everywhere and always."""

import csv
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

ILLNESSES = ("asthma", "diabetes", "flu", "none")
JOBS = ("clerk", "driver", "farmer", "nurse", "teacher", "weaver")
TOWNS = ("Delft", "Ghent", "Liege")
COLUMNS = ("id", "illness", "job", "town", "age", "visit")

# Records of each illness and job: some jobs nearly give an illness away, and one excludes another.
COUNTS = (
    (30, 12, 8, 21, 16, 3),
    (9, 26, 5, 7, 24, 14),
    (22, 17, 35, 4, 11, 9),
    (41, 38, 27, 52, 49, 0),
)


def write_tables(folder: Path) -> None:
    """Write people.csv, counts.csv (illness by job), costs.csv (of one job for another) and later.csv (new records)."""
    people = _people()
    _write(folder / "people.csv", COLUMNS, people)
    counts = ([illness, *row] for illness, row in zip(ILLNESSES, COUNTS, strict=True))
    _write(folder / "counts.csv", ("illness", *JOBS), counts)
    costs = ([job, *(abs(place - other) for other in range(len(JOBS)))] for place, job in enumerate(JOBS))
    _write(folder / "costs.csv", ("job", *JOBS), costs)
    stranger = ["9001", "flu", "sailor", "Ghent", 33, "2024-02-01"]  # whose job no design has seen
    _write(folder / "later.csv", COLUMNS, [*people[1::3], stranger])


def _people() -> list[list[object]]:
    cells = product(range(len(ILLNESSES)), range(len(JOBS)))
    records = [(illness, job, number) for illness, job in cells for number in range(COUNTS[illness][job])]
    return [_person(place, *records[place * 7 % len(records)]) for place in range(len(records))]


def _person(place: int, illness: int, job: int, number: int) -> list[object]:
    town = TOWNS[illness % 3 if number % 5 < 2 else (number + job) % 3]
    age = 18 + (number * 7 + job * 5 + illness * 3) % 60
    visit = f"2024-{1 + (number + illness) % 12:02}-{1 + age % 28:02}"
    return [str(1000 + place), ILLNESSES[illness], JOBS[job], town, age, visit]


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
