"""Three made-up tables for docs/choosing.md: a health register, a municipal survey, school results.

    python scripts/example_tables.py FOLDER

Nobody in them is real; the same seed gives the same people.
"""

import csv
import random
import sys
from pathlib import Path

SEED = 2026


def health(lot: random.Random) -> dict[str, str | int]:
    """A register: the diagnosis is secret, age, sex and district are wanted by planners."""
    age = min(95, int(lot.gauss(48, 20)) if lot.random() < 0.9 else lot.randint(60, 95))
    age, sex = max(0, age), lot.choice(["f", "m"])
    weights = [40, 8 + age / 4, 6 + age / 8, 14 - age / 10, 3]
    diagnosis = lot.choices(["none", "heart", "diabetes", "asthma", "depression"], [max(1.0, w) for w in weights])[0]
    district = lot.choices(["north", "south", "east", "west", "harbour"], [30, 25, 20, 15, 10])[0]
    return {"age": age, "sex": sex, "district": district, "diagnosis": diagnosis}


def survey(lot: random.Random) -> dict[str, str | int]:
    """A survey of a town: income is secret, housing, transport and satisfaction are to be open data."""
    income = lot.choices(["low", "middle", "high"], [30, 50, 20])[0]
    homes = {"low": [70, 20, 10], "middle": [45, 30, 25], "high": [20, 25, 55]}
    rides = {"low": [45, 35, 20], "middle": [30, 25, 45], "high": [20, 20, 60]}
    return {
        "housing": lot.choices(["rented", "cooperative", "owned"], homes[income])[0],
        "transport": lot.choices(["bus", "bicycle", "car"], rides[income])[0],
        "satisfied": lot.choices(["yes", "mostly", "no"], [40, 40, 20])[0],
        "income": income,
    }


def school(lot: random.Random) -> dict[str, str | int]:
    """School results: that a pupil gets free meals is secret, mark and track are to be published."""
    free = lot.random() < 0.22
    mark = lot.choices([1, 2, 3, 4, 5], [8, 22, 35, 25, 10] if free else [18, 32, 30, 15, 5])[0]
    track = lot.choices(["general", "technical", "academic"], [45, 35, 20] if free else [25, 30, 45])[0]
    return {"mark": mark, "track": track, "free meals": "yes" if free else "no"}


TABLES = {"health": (health, 12_000), "survey": (survey, 3_000), "school": (school, 1_500)}


def written(folder: Path) -> list[Path]:
    """Write the three tables."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (person, people) in TABLES.items():
        lot = random.Random(f"{SEED} {name}")
        rows = [person(lot) for _ in range(people)]
        paths.append(folder / f"{name}.csv")
        with paths[-1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return paths


if __name__ == "__main__":
    print(*written(Path(sys.argv[1])), sep="\n")
