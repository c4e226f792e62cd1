"""What attackers and users get out of what an arm published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from benchmarks.comparison.arms import LIMIT, Arm, Published
from benchmarks.comparison.environments import BUILD, run_script
from benchmarks.comparison.tables import Case, Codes
from privacyfunnel.arrays import FloatArray

MOST_TRIPLES = 20


@dataclass(frozen=True)
class Judgement:
    """One draw of an arm, in numbers; none where a question makes no sense."""

    leak: float | None  # the largest |ln p(s|y)/p(s)| of a linked record
    linked: float | None  # how often the secret is named right by whoever sees the linked record
    learnt: float | None  # … by whoever knows the other columns, and learns from the release
    member: float | None  # how well members are told from others: the area under the curve, .5 is a coin
    real: float | None  # the share of rows that show what they had
    one_way: float  # mean error of a share, in points
    two_way: float  # mean total variation of tables of two columns, in percent
    three_way: float
    trained: float  # accuracy on true rows of a classifier that was trained on the release
    seconds: float


def judge(case: Case, arm: Arm, epsilon: float, seed: int) -> Judgement:
    """Publish once, and ask every question."""
    found = arm.publish(case, epsilon, seed)
    truth = case.coded
    errors = {size: _table_errors(case, found, size) for size in (1, 2, 3)}
    return Judgement(
        leak=found.leak,
        linked=None if found.guesses is None else float((found.guesses == truth.secrets).mean()),
        learnt=_learnt(case, found),
        member=_tell_members(case, arm, epsilon, seed) if seed == 0 else None,
        real=found.real,
        one_way=100 * float(np.mean([error.mean() for error in errors[1]])),
        two_way=_variation(errors[2]),
        three_way=_variation(errors[3]),
        trained=_learn(case, case.decode(found.rows), case.target, [c for c in case.columns if c != case.target])
        if len(case.columns) > 1
        else float("nan"),
        seconds=found.seconds,
    )


def _variation(errors: list[FloatArray]) -> float:
    return 100 * float(np.mean([error.sum() / 2 for error in errors])) if errors else float("nan")


def _table_errors(case: Case, found: Published, size: int) -> list[FloatArray]:
    """|estimated − true| shares of every table of so many columns, or of twenty."""
    groups = list(combinations(range(len(case.columns)), size))
    if len(groups) > MOST_TRIPLES and size == 3:
        chosen = np.random.default_rng(0).choice(len(groups), MOST_TRIPLES, replace=False)
        groups = [groups[i] for i in sorted(chosen)]
    errors = []
    for columns in groups:
        shape = tuple(case.coded.sizes[j] for j in columns)
        counted = np.bincount(_cells(found.records, columns, shape), found.weights, int(np.prod(shape)))
        counted = np.maximum(counted, 0)
        true = np.bincount(_cells(case.coded.codes, columns, shape), minlength=int(np.prod(shape)))
        errors.append(np.abs(counted / counted.sum() - true / true.sum()))
    return errors


def _cells(codes: Codes, columns: tuple[int, ...], shape: tuple[int, ...]) -> Codes:
    return np.asarray(np.ravel_multi_index(tuple(codes[:, j] for j in columns), shape))


def _learnt(case: Case, found: Published) -> float | None:
    """How often the secret is named right by somebody who knows a person's other columns."""
    if found.secrets is not None:
        return _learn(case, case.decode(found.rows, found.secrets), case.secret, list(case.columns))
    if found.known_model is not None:
        return float((found.known_model(case.coded.codes) == case.coded.secrets).mean())
    return float(np.bincount(case.coded.secrets).max() / case.coded.rows)  # nothing is learnt beyond the shares


def _learn(case: Case, release: pl.DataFrame, column: str, known: list[str]) -> float:
    if release[column].n_unique() < 2:
        return _accuracy(case, column, pl.Series([release[column][0]] * case.coded.rows))
    path = BUILD / "tables" / "training.csv"
    release.write_csv(path)
    options = {"truth": str(case.path), "column": column, "from": known}
    named, _ = run_script("learners", "learner", path, options, LIMIT)
    return _accuracy(case, column, pl.read_csv(named, infer_schema=False)[column])


def _accuracy(case: Case, column: str, named: pl.Series) -> float:
    truth = pl.read_csv(case.path, infer_schema=False)[column]
    return float((named == truth).sum() / len(truth))


def _tell_members(case: Case, arm: Arm, epsilon: float, seed: int) -> float:
    """Publish one half of the people: are records of these more often found in the release than those of the others?"""
    inside = np.random.default_rng(seed + 17).permutation(case.coded.rows) < case.coded.rows // 2
    coded = case.coded
    half = replace(coded, secrets=coded.secrets[inside], codes=coded.codes[inside])
    path = case.path.with_name(f"half-{case.path.name}")
    case.decode(half.codes, half.secrets).write_csv(path)
    found = arm.publish(replace(case, path=path, coded=half), epsilon, seed)
    seen: dict[int, int] = {}
    for number in case.record_numbers(found.rows).tolist():
        seen[number] = seen.get(number, 0) + 1
    scores = np.array([seen.get(number, 0) for number in case.record_numbers(coded.codes).tolist()])
    # rare records alone: what is common says nothing about anybody
    own = case.record_numbers(coded.codes)
    _, place, times = np.unique(own, return_inverse=True, return_counts=True)
    rare = times[place] == 1
    if not (rare & inside).any() or not (rare & ~inside).any():
        return 0.5
    members, others = scores[rare & inside], scores[rare & ~inside]
    ordered = np.sort(others)
    below, upto = np.searchsorted(ordered, members, "left"), np.searchsorted(ordered, members, "right")
    return float(((below + upto) / 2).mean() / len(others))
