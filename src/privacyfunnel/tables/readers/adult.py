"""UCI Adult (Becker and Kohavi 1996, CC BY 4.0): the counts of its categorical columns, all 48,842 records.

The package ships a count table, see `data/README.md`; `?` is a category like any other.
"""

import csv
import gzip
import hashlib
import io
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.errors import ColumnError
from privacyfunnel.names import suggest_name

ADULT_COLUMNS = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
    "income",
)


def adult_counts(*columns: str) -> tuple[IntArray, tuple[tuple[str, ...], ...]]:
    """n(x¹, …, xᵐ): how many records hold each combination of values, and the sorted labels along each axis.

    >>> counts, (sex, income) = adult_counts("sex", "income")
    >>> sex, income
    (('Female', 'Male'), ('<=50K', '>50K'))
    >>> counts.tolist()
    [[14423, 1769], [22732, 9918]]
    """
    combinations, weights = _count_table()
    labels, codes = [], []
    for column in columns:
        if column not in ADULT_COLUMNS:
            raise ColumnError(
                f"Adult has no column '{column}' among {len(ADULT_COLUMNS)}.{suggest_name(column, ADULT_COLUMNS)}"
            )
        position = ADULT_COLUMNS.index(column)
        values = [combination[position] for combination in combinations]
        domain = sorted(set(values))
        place = {label: code for code, label in enumerate(domain)}
        labels.append(tuple(domain))
        codes.append(np.array([place[value] for value in values]))
    counts = np.zeros([len(domain) for domain in labels], dtype=np.int64)
    np.add.at(counts, tuple(codes), weights)
    return counts, tuple(labels)


def write_adult_csv(path: str | Path, *, force: bool = False) -> None:
    """Write the 48,842 records as a CSV file, in an order that is fixed and not sorted."""
    combinations, weights = _count_table()
    rows = [row for row, weight in zip(combinations, weights, strict=True) for _ in range(weight)]
    # A hash of the row number, not a generator: the same order with every version of every library.
    order = sorted(range(len(rows)), key=lambda i: hashlib.blake2b(i.to_bytes(4, "big")).digest())
    with atomic_file(path, force=force) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ADULT_COLUMNS)
        writer.writerows(rows[i] for i in order)


@cache
def _count_table() -> tuple[list[tuple[str, ...]], list[int]]:
    packed = resources.files("privacyfunnel").joinpath("data/adult.csv.gz").read_bytes()
    lines = csv.reader(io.StringIO(gzip.decompress(packed).decode("ascii")))
    header = next(lines)
    assert header == [*ADULT_COLUMNS, "count"]
    table = [(tuple(line[:-1]), int(line[-1])) for line in lines]
    return [combination for combination, _ in table], [count for _, count in table]
