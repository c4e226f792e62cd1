"""The tables on which arms are compared: census data, and two surveys that packages carry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.comparison.environments import BUILD, run_script
from benchmarks.published_model import code_frame
from privacyfunnel.arrays import IntArray
from privacyfunnel.model.published.measurement import CodedTable
from privacyfunnel.tables.readers.adult import write_adult_csv

Codes = NDArray[np.integer[Any]]

MOST_COMBINATIONS = 400  # for which a mechanism over all of them together is sought


@dataclass(frozen=True, eq=False)
class Case:
    """A table, its secret, and the column that analysts want to learn from the others."""

    name: str
    path: Path
    coded: CodedTable
    target: str

    @property
    def secret(self) -> str:
        """The name of the secret column."""
        return self.coded.secret.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the published columns."""
        return tuple(attribute.name for attribute in self.coded.attributes)

    @property
    def combinations(self) -> int:
        """How many there can be."""
        return int(np.prod(self.coded.sizes))

    def record_numbers(self, codes: Codes) -> Codes:
        """The number of each record's combination."""
        return np.asarray(np.ravel_multi_index(tuple(codes.T), self.coded.sizes))

    def counts(self) -> IntArray:
        """Secrets × combinations."""
        found = np.zeros((len(self.coded.secret.labels), self.combinations), dtype=np.int64)
        np.add.at(found, (self.coded.secrets, self.record_numbers(self.coded.codes)), 1)
        return found

    def encode(self, frame: pl.DataFrame) -> Codes:
        """The published columns of a frame with the same labels, as codes."""
        return np.column_stack(
            [
                frame[attribute.name].replace_strict(list(attribute.labels), range(len(attribute.labels))).to_numpy()
                for attribute in self.coded.attributes
            ]
        ).astype(np.int64)

    def decode(self, codes: Codes, secrets: Codes | None = None) -> pl.DataFrame:
        """Codes as labels."""
        columns = {a.name: np.array(a.labels)[codes[:, j]] for j, a in enumerate(self.coded.attributes)}
        if secrets is not None:
            columns[self.secret] = np.array(self.coded.secret.labels)[secrets]
        return pl.DataFrame(columns)


def load_cases() -> list[Case]:
    """Every table, from the smallest."""
    folder = BUILD / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    census = folder / "census.csv"
    if not census.exists():
        write_adult_csv(census)
    people = pl.read_csv(census, infer_schema=False)
    eight = [name for name in people.columns if name != "income"]
    return [
        _make_case("census 1", people, "occupation", ["education"], "education"),
        _make_case("census 3", people, "occupation", ["education", "sex", "workclass"], "workclass"),
        _make_case("census 8, income", people, "income", eight, "marital-status"),
        _make_case(
            "census 8, occupation",
            people,
            "occupation",
            [name for name in people.columns if name != "occupation"],
            "income",
        ),
        _survey("affairs", "affairs", "religious"),
        _survey("votes", "votetrump", "bornagain"),
    ]


def _survey(name: str, secret: str, target: str) -> Case:
    path, _ = run_script("tables", "survey_tables", Path(__file__), {"name": name}, 600)
    rows = pl.read_csv(path, infer_schema=False)
    return _make_case(name, rows, secret, [column for column in rows.columns if column != secret], target)


def _make_case(name: str, rows: pl.DataFrame, secret: str, columns: list[str], target: str) -> Case:
    path = BUILD / "tables" / f"{name.replace(', ', '-').replace(' ', '-')}.csv"
    kept = rows.select([*columns, secret])
    kept.write_csv(path)
    return Case(name, path, code_frame(kept, secret), target)
