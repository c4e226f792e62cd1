"""Arms: ways of publishing a table, each with what it promises and how it is run.

Those of the first kind keep ε about the secret, LIP: what a linked record tells changes a belief about the secret by at
most e^ε. Those of the second kind have promises of their own.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from benchmarks.comparison.channels import (
    Channel,
    draw_channel,
    invariant_pram,
    occurring,
    unary_epsilon,
    unary_leak,
    unary_ratios,
)
from benchmarks.comparison.environments import Output, RivalError, run_script
from benchmarks.comparison.own_releases import publish_model, release, release_with_shares, tell_real_rows
from benchmarks.comparison.published import Published
from benchmarks.comparison.tables import MOST_COMBINATIONS, Case, Codes
from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.model.disclosure_models import measure_disclosure
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information, Use

DELTA = 1e-9  # of differential privacy by Gaussian noise (dpmm)
STEPS = 1000  # of mirror descent in a fit by dpmm, whose MST takes 2500 and 5000
LIMIT = 36000.0  # seconds for all draws of a rival
SOLVE = 20.0  # seconds for one design
TIGHTER = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)  # levels that are tried until ε is kept, as multiples of the first
SUPPRESS = 10  # percent of rows that a generalisation may leave out
AT_TABLE, AT_MODEL = "LIP at the table's frequencies", "LIP at a published model, ε in all"


@dataclass(frozen=True)
class Script:
    """A rival in an environment of its own, and how its draws are read."""

    environment: str
    name: str
    options: Callable[[Case, float], dict[str, Any]]
    read: Callable[[Case, Output, int], Published]

    def run(self, case: Case, epsilon: float, seeds: Sequence[int]) -> list[Output]:
        """All draws, in one process where they are not kept."""
        return run_script(self.environment, self.name, case.path, self.options(case, epsilon), seeds, LIMIT)

    def publish(self, case: Case, epsilon: float, seed: int) -> Published:
        """One draw."""
        return self.read(case, self.run(case, epsilon, [seed])[0], seed)


@dataclass(frozen=True)
class Arm:
    """One way of publishing a table."""

    name: str
    promise: str
    publish: Callable[[Case, float, int], Published]  # of a table, ε and a seed
    fits: Callable[[Case], bool] = lambda case: True
    most_draws: int = 20
    script: Script | None = None
    every_epsilon: bool = True  # or at ε = 1 alone
    attacked: bool = True  # by those who need a second release


def all_arms() -> Iterator[Arm]:
    """Every arm, the cheapest first."""
    few = _has_few_combinations
    yield Arm("as it is", "none", _publish_as_is, most_draws=1, every_epsilon=False)
    yield Arm("randomised response", AT_TABLE, partial(_channel, _respond), few)
    yield Arm("PRAM, invariant", AT_TABLE, partial(_channel, invariant_pram), few)
    for name, use in (("statistics", Statistics()), ("information", Information())):
        yield Arm(f"privacyfunnel, {name}, table prior", AT_TABLE, partial(_channel, partial(_solve, use)), few)
    yield Arm("privacyfunnel, default", AT_MODEL, release)
    explains = partial(Arm, fits=_has_eight_columns, every_epsilon=False)
    yield explains("privacyfunnel, a tenth of ε for its model", AT_MODEL, partial(release, for_model=0.1))
    yield explains("privacyfunnel, half of ε for shares", AT_MODEL, release_with_shares)
    yield explains("privacyfunnel, its model alone", "DP", publish_model)
    yield explains("privacyfunnel, told which rows are real", "none", tell_real_rows, attacked=False)
    yield _by_script("OpenDP, noisy tables", "DP", Script("opendp", "opendp_tables", _for_opendp, _read_tables))
    yield _by_script("OUE (multi-freq-ldpy)", "LIP, as measured", Script("ldp", "oue", _for_unary, _read_unary))
    yield _by_script("PAC-Synth", "DP, its own δ", Script("pac", "pac_synthesis", _just_epsilon, _read_synthetic))
    trees = Script("learners", "trees", lambda *_: {}, _read_synthetic)
    yield replace(_by_script("trees, not private", "none", trees), every_epsilon=False)
    for model, first in (("delta-disclosure", 1.0), ("beta-likeness", 1.0), ("t-closeness", 0.5), ("l-diversity", 2.0)):
        yield Arm(f"ANJANA {model}", "LIP, as measured", partial(_generalise, model, first), most_draws=1)
    for model in ("MST", "PrivBayes", "AIM"):
        yield _by_dpmm(f"dpmm {model}", model)
    ours = replace(_by_dpmm("dpmm MST, neighbours as here", "MST", rho=3 / 8), fits=_has_eight_columns)
    full = replace(_by_dpmm("dpmm MST, all its steps", "MST", steps=5000), fits=lambda case: case.name == "compas")
    yield from (replace(arm, every_epsilon=False, attacked=False) for arm in (ours, full))


def _by_dpmm(name: str, model: str, rho: float = 1.0, steps: int = STEPS) -> Arm:
    def choose(case: Case, epsilon: float) -> dict[str, Any]:
        return {"model": model, "epsilon": epsilon, "delta": DELTA, "rho": rho, "steps": steps}

    return _by_script(name, "DP, δ = 1e-9", Script("dpmm", "dpmm_synthesis", choose, _read_synthetic))


def _by_script(name: str, promise: str, script: Script) -> Arm:
    return Arm(name, promise, script.publish, script=script)


def _has_few_combinations(case: Case) -> bool:
    return case.combinations <= MOST_COMBINATIONS


def _has_eight_columns(case: Case) -> bool:
    return case.name == "census 8, income"


def _publish_as_is(case: Case, epsilon: float, seed: int) -> Published:
    counts, values = case.occurring_counts
    places = np.searchsorted(values, case.record_numbers(case.coded.codes))
    return Published(
        records=case.coded.codes,
        weights=np.ones(case.coded.rows),
        rows=case.coded.codes,
        seconds=0.0,
        guesses=counts.argmax(axis=0)[places],
        leak=measure_disclosure(counts).delta_disclosure,
        real=1.0,
    )


# -- mechanisms over all combinations ----------------------------------------------------------------------------------


def _channel(make: Callable[[Joint, float, int], FloatArray], case: Case, epsilon: float, seed: int) -> Published:
    """Rows through a channel that is made once for all draws."""
    start = time.process_time()
    joint, values = occurring(case)
    key = (make if not isinstance(make, partial) else repr(make.args), epsilon)
    if key not in case.cache:
        case.cache[key] = make(joint, epsilon, 0)
        case.cache[key, "seconds"] = time.process_time() - start
    start = time.process_time()
    found = draw_channel(case, Channel(values, case.cache[key]), seed, invariant=make is invariant_pram)
    return replace(found, seconds=time.process_time() - start + case.cache[key, "seconds"])


def _solve(use: Use, joint: Joint, epsilon: float, seed: int) -> FloatArray:
    return optimal(joint, LIP(epsilon), use, time_limit=SOLVE).protocol.all_rows


def _respond(joint: Joint, epsilon: float, seed: int) -> FloatArray:
    return randomised_response(joint, LIP(epsilon)).all_rows


# -- rivals in their own environments ----------------------------------------------------------------------------------


def _just_epsilon(case: Case, epsilon: float) -> dict[str, Any]:
    return {"epsilon": epsilon}


def _for_opendp(case: Case, epsilon: float) -> dict[str, Any]:
    return {"epsilon": epsilon, "labels": case.labels}


def _for_unary(case: Case, epsilon: float) -> dict[str, Any]:
    """The least noise that keeps ε about the secret, for each column."""
    labels = {name: case.labels[name] for name in case.columns}
    return {"labels": labels, "epsilons": {name: unary_epsilon(_with_secret(case, name), epsilon) for name in labels}}


def _with_secret(case: Case, name: str) -> FloatArray:
    """p(s, x) of one column."""
    column, size = case.columns.index(name), len(case.coded.secret.labels)
    return case.coded.count([column], by_secret=True).reshape(size, -1) / case.coded.rows


def _read_tables(case: Case, output: Output, seed: int) -> Published:
    """Shares of single columns, and records drawn from them independently."""
    frame = pl.read_csv(output.path)
    noisy = {name: frame.filter(pl.col("column") == name)["count"].to_numpy() for name in case.columns}
    return _independent(case, {name: np.maximum(counts, 0) for name, counts in noisy.items()}, output, seed)


def _independent(case: Case, shares: dict[str, FloatArray], output: Output, seed: int) -> Published:
    rng, n = np.random.default_rng(seed), case.coded.rows
    columns: list[Codes] = []
    tables: dict[tuple[int, ...], FloatArray] = {}
    for j, name in enumerate(case.columns):
        chances = shares[name] / shares[name].sum()
        tables[j,] = chances
        spread = np.floor(chances * n).astype(int)
        spread[: n - spread.sum()] += 1
        columns.append(rng.permutation(np.repeat(np.arange(len(chances)), spread)))
    records = np.column_stack(columns)
    facts = output.facts
    return Published(records, np.ones(n), records, facts["seconds"], facts.get("memory"), tables=tables)


def _read_unary(case: Case, output: Output, seed: int) -> Published:
    """What the library estimates, and what a linked report tells."""
    shares = {name: np.maximum(np.array(found), 1e-12) for name, found in output.facts["shares"].items()}
    frame = pl.read_csv(output.path, infer_schema=False)
    asked, bits = frame["column"].to_numpy(), frame["bits"].to_numpy()
    guesses, leaks = np.empty(case.coded.rows, dtype=np.int64), []
    for name in case.columns:
        people = np.flatnonzero(asked == name)
        p, own = _with_secret(case, name), output.facts["epsilons"][name]
        set_bits = np.array([[bit == "1" for bit in report] for report in bits[people].tolist()])
        guesses[people] = (np.where(set_bits, *unary_ratios(own)) @ p.T).argmax(axis=1)
        leaks.append(unary_leak(p, own))
    return replace(_independent(case, shares, output, seed), guesses=guesses, leak=max(leaks))


def _read_synthetic(case: Case, output: Output, seed: int) -> Published:
    """Synthetic rows; an empty cell, or a label that the table has not, stands for any value of its column."""
    frame, rng = pl.read_csv(output.path, infer_schema=False).fill_null(""), np.random.default_rng(seed)
    columns = []
    for name, labels in case.labels.items():
        codes = frame[name].replace_strict(list(labels), range(len(labels)), default=-1).to_numpy().astype(np.int64)
        known = codes[codes >= 0]
        codes[codes < 0] = rng.choice(known if len(known) else np.arange(len(labels)), int((codes < 0).sum()))
        columns.append(codes)
    rows, facts = np.column_stack(columns[:-1]), output.facts
    return Published(rows, np.ones(len(rows)), rows, facts["seconds"], facts.get("memory"), secrets=columns[-1])


def _generalise(model: str, first: float, case: Case, epsilon: float, seed: int) -> Published:
    """Groups of labels, ever coarser, until every class of records keeps ε, that of suppressed rows included."""
    hierarchies = {name: _hierarchy(case, j) for j, name in enumerate(case.columns)}
    spent = 0.0
    for factor in TIGHTER:
        level = math.ceil(first / factor) if model == "l-diversity" else epsilon * first * factor
        if model == "beta-likeness":
            level = math.expm1(epsilon * factor)
        options = {"model": model, "level": level, "secret": case.secret, "hierarchies": hierarchies}
        (output,) = run_script(
            "anjana", "anjana_generalisation", case.path, {**options, "suppress": SUPPRESS}, [seed], LIMIT
        )
        spent += output.facts["seconds"]
        found = _read_generalised(case, pl.read_csv(output.path, infer_schema=False), hierarchies, spent, seed)
        if found.leak is not None and found.leak <= epsilon:
            return replace(found, memory=output.facts.get("memory"))
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
        joint=occupied / n,
    )
