"""The tables on which arms are compared: census data, COMPAS, and two surveys that packages carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
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
MOST_TRIPLES = 20
YEARS = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip


@dataclass(frozen=True)
class Analysis:
    """What an analyst regresses: by logistic regression whether a column has a label, by linear regression a number."""

    event: tuple[str, str]
    number: tuple[str, Mapping[str, float]]
    predictors: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """A table, its secret, and the column that analysts want to learn from the others."""

    name: str
    path: Path
    coded: CodedTable
    target: str
    analysis: Analysis | None = None
    cache: dict[tuple[object, ...], Any] = field(default_factory=dict)  # of what all draws share

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

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The labels of every column, the secret last: public for every arm."""
        return {a.name: a.labels for a in (*self.coded.attributes, self.coded.secret)}

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The columns of every table of one or two columns, and of three, or of twenty of those."""
        every = [list(combinations(range(len(self.columns)), size)) for size in (1, 2, 3)]
        if len(every[2]) > MOST_TRIPLES:
            chosen = np.random.default_rng(0).choice(len(every[2]), MOST_TRIPLES, replace=False)
            every[2] = [every[2][i] for i in sorted(chosen)]
        return [group for groups in every for group in groups]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The table itself."""
        return self.decode(self.coded.codes, self.coded.secrets)

    @cached_property
    def domain(self) -> str:
        """The path of a file of all labels, for privacyfunnel."""
        path = self.path.with_suffix(".domain.json")
        columns = {name: {"labels": labels, "missing": False} for name, labels in self.labels.items()}
        path.write_text(json.dumps({"format": "privacyfunnel domain", "version": 1, "columns": columns}))
        return str(path)

    def tabulate(self, codes: Codes, weights: Any, group: tuple[int, ...]) -> Any:
        """Shares of the cells of a table; what is counted below 0 is 0."""
        shape = tuple(self.coded.sizes[j] for j in group)
        cells = np.ravel_multi_index(tuple(codes[:, j] for j in group), shape)
        counted = np.maximum(np.bincount(cells, weights, int(np.prod(shape))), 0)
        return counted / counted.sum()

    def record_numbers(self, codes: Codes) -> Codes:
        """The number of each record's combination."""
        return np.asarray(np.ravel_multi_index(tuple(codes.T), self.coded.sizes))

    def records(self, numbers: Codes) -> Codes:
        """The combinations with these numbers."""
        return np.column_stack(np.unravel_index(numbers, self.coded.sizes))

    @cached_property
    def occurring_counts(self) -> tuple[IntArray, Codes]:
        """Secrets × combinations that occur, and the numbers of these."""
        values, places = np.unique(self.record_numbers(self.coded.codes), return_inverse=True)
        found = np.zeros((len(self.coded.secret.labels), len(values)), dtype=np.int64)
        np.add.at(found, (self.coded.secrets, places), 1)
        return found, values

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
        return pl.DataFrame(columns).select(sorted(columns))


def load_cases() -> list[Case]:
    """Every table."""
    folder = BUILD / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    census = folder / "census.csv"
    if not census.exists():
        write_adult_csv(census)
    people = pl.read_csv(census, infer_schema=False)
    eight = [name for name in people.columns if name != "income"]
    others = [name for name in people.columns if name != "occupation"]
    years = ("education", {label: float(i + 1) for i, label in enumerate(YEARS)})
    three = Analysis(("sex", "Male"), years, ("sex", "workclass"))
    married = Analysis(("marital-status", "Married-civ-spouse"), years, ("sex", "race", "workclass"))
    rich = Analysis(("income", ">50K"), years, ("sex", "race", "marital-status"))
    numbers = {f"{i}.0": float(i) for i in range(1, 8)}
    happy = Analysis(("religious", "3.0"), ("rate_marriage", numbers), ("age", "children", "educ", "occupation"))
    party = Analysis(("bornagain", "1.0"), ("pid7na", numbers), ("racef", "female", "collegeed", "ideo"))
    scores = {"Low": 1.0, "Medium": 2.0, "High": 3.0}
    risk = Analysis(("c_charge_degree", "F"), ("score_text", scores), ("sex", "age_cat", "race", "priors"))
    return [
        _survey("compas", "two_year_recid", "score_text", risk),
        _survey("affairs", "affairs", "religious", happy),
        _survey("votes", "votetrump", "bornagain", party),
        _make_case("census 1", people, "occupation", ["education"], "education"),
        _make_case("census 8, income", people, "income", eight, "marital-status", married),
        _make_case("census 3", people, "occupation", ["education", "sex", "workclass"], "workclass", three),
        _make_case("census 8, occupation", people, "occupation", others, "income", rich),
    ]


def _survey(name: str, secret: str, target: str, analysis: Analysis) -> Case:
    (made,) = run_script("tables", "survey_tables", BUILD / "tables" / "census.csv", {"name": name}, [0], 600)
    rows = pl.read_csv(made.path, infer_schema=False)
    return _make_case(name, rows, secret, [column for column in rows.columns if column != secret], target, analysis)


def _make_case(
    name: str,
    rows: pl.DataFrame,
    secret: str,
    columns: list[str],
    target: str,
    analysis: Analysis | None = None,
) -> Case:
    path = BUILD / "tables" / f"{name.replace(', ', '-').replace(' ', '-')}.csv"
    kept = rows.select([*columns, secret])
    kept.select(sorted(kept.columns)).write_csv(path)  # a rival draws once from tables that differ in the secret alone
    return Case(name, path, code_frame(kept, secret), target, analysis)
