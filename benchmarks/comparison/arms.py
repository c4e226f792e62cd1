"""Arms: ways of publishing a table, each with what it promises and how it is run.

Those of the first kind keep ε about the secret, LIP: what a linked record tells changes a belief about the secret by at
most e^ε. Those of the second kind have promises of their own.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
import polars as pl

from benchmarks.comparison.environments import RivalError, run_script
from benchmarks.comparison.tables import MOST_COMBINATIONS, Case, Codes
from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.wide.real_or_synthetic_design import design_real_or_synthetic
from privacyfunnel.estimation.decoy_weights import WeightedRelease
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.disclosure_models import measure_disclosure
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.published.noise import OwnNoise
from privacyfunnel.model.published.tree_fit import fit_tree_model
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information, Use

FOR_MODEL = Fraction(1, 5)  # of ε in all, where a model is published
DELTA = 1e-9  # of differential privacy by Gaussian noise (dpmm)
DECOYS = 1 << 18
LIMIT = 1800.0  # seconds for one run of a rival
TIGHTER = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)  # levels that are tried until ε is kept, as multiples of the first
SUPPRESS = 10  # percent of rows that a generalisation may leave out


@dataclass(frozen=True, eq=False)
class Published:
    """What an arm gave away of a table: records with weights, which may be below 0, and what a linked one tells."""

    records: Codes  # n × columns, for counting with the weights
    weights: FloatArray
    rows: Codes  # what a user trains a classifier on
    seconds: float
    secrets: Codes | None = None  # of the rows, where the release shows the secret
    guesses: Codes | None = None  # the likeliest secret of every row of the table, by its linked record
    leak: float | None = None  # the largest |ln p(s|y)/p(s)| of a linked record; none where no record is linked
    known_model: Callable[[Codes], Codes] | None = None  # the likeliest secret of a record, by a published model
    real: float | None = None  # the share of rows that show what they had
    note: str = ""


@dataclass(frozen=True)
class Arm:
    """One way of publishing a table."""

    name: str
    promise: str
    publish: Callable[[Case, float, int], Published]  # of a table, ε and a seed
    fits: Callable[[Case], bool] = lambda case: True
    most_draws: int = 100
    same_promise: bool = True


def all_arms() -> Iterator[Arm]:
    """Every arm."""
    few = _has_few_combinations
    yield Arm("as it is", "none", _publish_as_is, most_draws=1, same_promise=False)
    yield Arm("privacyfunnel, statistics", "LIP at the table's frequencies", partial(_solve, Statistics()), few)
    yield Arm("privacyfunnel, information", "LIP at the table's frequencies", partial(_solve, Information()), few)
    yield Arm("privacyfunnel, real or synthetic", "LIP at a published model, ε in all", _mix)
    yield Arm("randomised response", "LIP at the table's frequencies", _respond, few)
    yield Arm("PRAM, invariant", "LIP at the table's frequencies", _post_randomise, few)
    for model, first in (("delta-disclosure", 1.0), ("beta-likeness", 1.0), ("t-closeness", 0.5), ("l-diversity", 2.0)):
        yield Arm(f"ANJANA {model}", "LIP, as measured", partial(_generalise, model, first), most_draws=1)
    yield Arm("noisy tables (Laplace)", "DP", _noisy_tables, same_promise=False)
    for model in ("MST", "AIM", "PrivBayes"):
        yield Arm(f"dpmm {model}", "DP, δ = 1e-9", partial(_synthesise, model), most_draws=3, same_promise=False)
    yield Arm("trees, not private", "none", _grow_trees, most_draws=3, same_promise=False)


def _has_few_combinations(case: Case) -> bool:
    return case.combinations <= MOST_COMBINATIONS


def _publish_as_is(case: Case, epsilon: float, seed: int) -> Published:
    counts = case.counts()
    numbers = case.record_numbers(case.coded.codes)
    return Published(
        records=case.coded.codes,
        weights=np.ones(case.coded.rows),
        rows=case.coded.codes,
        seconds=0.0,
        guesses=counts.argmax(axis=0)[numbers],
        leak=measure_disclosure(counts).delta_disclosure,
        real=1.0,
    )


# -- mechanisms over all combinations ----------------------------------------------------------------------------------


def _solve(use: Use, case: Case, epsilon: float, seed: int) -> Published:
    start = time.perf_counter()
    joint, occurring = _occurring(case)
    protocol = optimal(joint, LIP(epsilon), use, time_limit=60).protocol
    return _draw_channel(case, occurring, protocol.all_rows, seed, start)


def _respond(case: Case, epsilon: float, seed: int) -> Published:
    start = time.perf_counter()
    joint, occurring = _occurring(case)
    return _draw_channel(case, occurring, randomised_response(joint, LIP(epsilon)).all_rows, seed, start)


def _post_randomise(case: Case, epsilon: float, seed: int) -> Published:
    """Invariant PRAM: a record stays, or becomes one drawn from the table's frequencies, as seldom as ε allows."""
    start = time.perf_counter()
    joint, occurring = _occurring(case)
    p = joint.weights / joint.weights.sum()
    least, most = 0.0, 1.0
    for _ in range(40):
        moved = (least + most) / 2
        channel = (1 - moved) * np.eye(joint.a) + moved * p.sum(axis=0)
        least, most = (least, moved) if _channel_leak(p, channel) <= epsilon else (moved, most)
    return _draw_channel(case, occurring, (1 - most) * np.eye(joint.a) + most * p.sum(axis=0), seed, start)


def _occurring(case: Case) -> tuple[Joint, Codes]:
    counts = case.counts()
    occurring = np.flatnonzero(counts.sum(axis=0))
    return Joint.from_counts(counts[:, occurring]), occurring


def _channel_leak(p: FloatArray, channel: FloatArray) -> float:
    outputs = p @ channel
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(outputs / (p.sum(axis=1, keepdims=True) * outputs.sum(axis=0)))
    return float(np.nanmax(np.abs(ratios)))


def _draw_channel(case: Case, occurring: Codes, channel: FloatArray, seed: int, start: float) -> Published:
    """Rows through a channel; counted by the most likely shares, shown as draws from what a code may stand for."""
    rng = np.random.default_rng(seed)
    counts = case.counts()[:, occurring]
    place = np.full(case.combinations, -1)
    place[occurring] = np.arange(len(occurring))
    inputs = place[case.record_numbers(case.coded.codes)]
    outputs = np.empty(len(inputs), dtype=np.int64)
    for value in range(len(occurring)):
        rows = np.flatnonzero(inputs == value)
        outputs[rows] = rng.choice(channel.shape[1], len(rows), p=channel[value] / channel[value].sum())
    seen = np.bincount(outputs, minlength=channel.shape[1]).astype(float)
    shares = np.full(len(occurring), 1 / len(occurring))
    for _ in range(2000):  # maximum likelihood
        shares = shares * (channel @ (seen / np.maximum(shares @ channel, 1e-300))) / seen.sum()
    posterior = (shares[:, None] * channel).T
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
    shown = np.empty(len(inputs), dtype=np.int64)
    for output in np.unique(outputs):
        rows = np.flatnonzero(outputs == output)
        shown[rows] = rng.choice(len(occurring), len(rows), p=posterior[output] / posterior[output].sum())
    joint = counts @ channel
    sizes = case.coded.sizes
    return Published(
        records=np.column_stack(np.unravel_index(occurring, sizes)),
        weights=shares * len(inputs),
        rows=np.column_stack(np.unravel_index(occurring[shown], sizes)),
        seconds=time.perf_counter() - start,
        guesses=joint.argmax(axis=0)[outputs],
        leak=_channel_leak(counts / counts.sum(), channel),
        real=float((shown == inputs).mean()),
    )


# -- records of any number of columns ----------------------------------------------------------------------------------


def _mix(case: Case, epsilon: float, seed: int) -> Published:
    start = time.perf_counter()
    for_model = FOR_MODEL * Fraction(str(epsilon))
    model = fit_tree_model(case.coded, for_model, partial(OwnNoise, randbelow=Random(seed).randrange))
    mechanism = design_real_or_synthetic(model, LIP(float(Fraction(str(epsilon)) - for_model))).mechanism
    drawn = mechanism.draw(case.coded.codes, KeyStream.from_seed(seed).rows(0, case.coded.rows))
    release = WeightedRelease.weigh(mechanism, drawn, KeyStream.from_seed(seed + 1), DECOYS)
    shares = model.shares / model.shares.sum()
    likelihood = release.rows.keep[:, None] * np.nan_to_num(model.ratios(drawn)) + _synthetic_part(release)
    return Published(
        records=np.vstack([release.rows.codes, release.decoys.codes]),
        weights=np.concatenate([release.row_weights, release.decoy_weights]),
        rows=drawn,
        seconds=time.perf_counter() - start,
        guesses=(shares * likelihood).argmax(axis=1),
        leak=epsilon,
        known_model=lambda codes: (shares * np.nan_to_num(model.ratios(codes))).argmax(axis=1),
        real=float((drawn == case.coded.codes).all(axis=1).mean()),
        note="ε about the secret in all, model included, for whoever believes the published model",
    )


def _synthetic_part(release: WeightedRelease) -> FloatArray:
    """W of every published row's class, n × secrets, from the decoys."""
    model, k = release.mechanism.model, release.mechanism.classes
    ratios = np.nan_to_num(model.ratios(release.decoys.codes))
    replaced = np.stack(
        [release.decoys.add_by_class(release.shares * (1 - release.decoys.keep) * column, k) for column in ratios.T]
    )  # secrets × classes: E[(1 − a); k(x) = j | s]
    acceptance = release.mechanism.acceptance.astype(float)
    of_class = release.decoys.add_by_class(release.shares, k)
    rates = acceptance / (acceptance @ of_class)[:, None]
    return np.asarray((replaced @ rates).T[release.rows.classes])


def _noisy_tables(case: Case, epsilon: float, seed: int) -> Published:
    """All one-way tables with Laplace noise, and nothing else: records drawn from them independently."""
    start = time.perf_counter()
    rng, n = np.random.default_rng(seed), case.coded.rows
    scale = 2 * len(case.columns) / epsilon
    columns = []
    for j, size in enumerate(case.coded.sizes):
        noisy = np.bincount(case.coded.codes[:, j], minlength=size) + rng.laplace(0, scale, size)
        chances = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
        spread = np.floor(chances * n).astype(int)
        spread[: n - spread.sum()] += 1
        columns.append(rng.permutation(np.repeat(np.arange(size), spread)))
    records = np.column_stack(columns)
    return Published(records, np.ones(n), records, time.perf_counter() - start)


# -- rivals in their own environments ----------------------------------------------------------------------------------


def _synthesise(model: str, case: Case, epsilon: float, seed: int) -> Published:
    options = {"model": model, "epsilon": epsilon, "delta": DELTA, "seed": seed}
    path, seconds = run_script("dpmm", "dpmm_synthesis", case.path, options, LIMIT)
    return _read_synthetic(case, pl.read_csv(path, infer_schema=False), seconds)


def _grow_trees(case: Case, epsilon: float, seed: int) -> Published:
    path, seconds = run_script("learners", "trees", case.path, {"seed": seed}, LIMIT)
    return _read_synthetic(case, pl.read_csv(path, infer_schema=False), seconds)


def _read_synthetic(case: Case, frame: pl.DataFrame, seconds: float) -> Published:
    codes = case.encode(frame)
    labels = list(case.coded.secret.labels)
    secrets = frame[case.secret].replace_strict(labels, range(len(labels))).to_numpy()
    return Published(codes, np.ones(len(codes)), codes, seconds, secrets=np.asarray(secrets))


def _generalise(model: str, first: float, case: Case, epsilon: float, seed: int) -> Published:
    """Groups of labels, ever coarser, until every class of records keeps ε, that of suppressed rows included."""
    hierarchies = {name: _hierarchy(case, j) for j, name in enumerate(case.columns)}
    spent = 0.0
    for factor in TIGHTER:
        level = math.ceil(first / factor) if model == "l-diversity" else epsilon * first * factor
        if model == "beta-likeness":
            level = math.expm1(epsilon * factor)
        options = {"model": model, "level": level, "secret": case.secret, "hierarchies": hierarchies}
        path, seconds = run_script(
            "anjana", "anjana_generalisation", case.path, {**options, "suppress": SUPPRESS}, LIMIT
        )
        spent += seconds
        found = _read_generalised(case, pl.read_csv(path, infer_schema=False), hierarchies, spent, seed)
        if found.leak is not None and found.leak <= epsilon:
            return found
    raise RivalError(f"no level that was tried keeps ε = {epsilon:g}")


def _hierarchy(case: Case, column: int) -> list[dict[str, str]]:
    """Labels that are alike in the secret grouped by three, by nine, and altogether: kind to a generalisation."""
    labels = case.coded.attributes[column].labels
    counts = case.coded.count([column], by_secret=True).reshape(len(case.coded.secret.labels), -1)
    means = (np.arange(len(counts)) @ counts) / np.maximum(counts.sum(axis=0), 1)
    order = np.argsort(means)
    levels = []
    for size in (3, 9):
        if len(labels) > size:
            groups = [order[start : start + size] for start in range(0, len(order), size)]
            named = ["|".join(str(i) for i in sorted(group)) for group in groups]
            levels.append({labels[i]: name for group, name in zip(groups, named, strict=True) for i in group})
    everything = "|".join(str(i) for i in range(len(labels)))
    return [*levels, dict.fromkeys(labels, everything)]


def _read_generalised(
    case: Case, frame: pl.DataFrame, hierarchies: dict[str, list[dict[str, str]]], seconds: float, seed: int
) -> Published:
    rng, n = np.random.default_rng(seed), case.coded.rows
    everything = [levels[-1][case.coded.attributes[j].labels[0]] for j, levels in enumerate(hierarchies.values())]
    cells = np.array([everything] * n, dtype=object)  # suppressed rows: a class like any other
    suppressed = np.ones(n, dtype=bool)
    if frame.height:
        rows = frame["row_number"].cast(pl.Int64).to_numpy()
        suppressed[rows] = False
        cells[rows] = frame.select(case.columns).to_numpy()
    _, classes = np.unique([json.dumps([*row.tolist()]) for row in cells], return_inverse=True)
    classes = np.where(suppressed, classes.max() + 1, classes)
    counts = np.zeros((len(case.coded.secret.labels), classes.max() + 1), dtype=np.int64)
    np.add.at(counts, (case.coded.secrets, classes), 1)
    records = np.empty((n, len(case.columns)), dtype=np.int64)
    for j, attribute in enumerate(case.coded.attributes):
        own = {label: str(i) for i, label in enumerate(attribute.labels)}
        for cell in set(cells[:, j]):
            group = np.array(list(map(int, own.get(cell, cell).split("|"))))
            inside = np.flatnonzero(cells[:, j] == cell)
            records[inside, j] = rng.choice(group, len(inside))  # a group is spread evenly by whoever counts
    occupied = counts[:, counts.sum(axis=0) > 0]
    return Published(
        records=records,
        weights=np.ones(n),
        rows=records,
        seconds=seconds,
        guesses=counts.argmax(axis=0)[classes],
        leak=measure_disclosure(occupied).delta_disclosure,
        secrets=case.coded.secrets,
        real=float((records == case.coded.codes).all(axis=1).mean()),
        note=f"{suppressed.mean():.0%} of rows suppressed",
    )
