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
from itertools import product
from tempfile import TemporaryDirectory
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
from benchmarks.comparison.environments import Output, RivalError, measure_memory, run_script
from benchmarks.comparison.published import Published
from benchmarks.comparison.tables import MOST_COMBINATIONS, Case, Codes
from privacyfunnel import ReleaseSpec, apply, design, estimate
from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.estimation.decoy_weights import WeightedRelease, draw_decoys
from privacyfunnel.estimation.results import ShareTable
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.disclosure_models import measure_disclosure
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.published.table_model import TableModel
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information, Use

DELTA = 1e-9  # of differential privacy by Gaussian noise (dpmm)
DECOYS = 1 << 17
ROUNDS = {"MST": 500, "PrivBayes": 500, "AIM": 100}  # of inference: a tenth of its own, so that twenty draws can be had
LIMIT = 3600.0  # seconds for one run of a rival
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
    heeds_epsilon: bool = True


def all_arms() -> Iterator[Arm]:
    """Every arm, the cheapest first."""
    few = _has_few_combinations
    yield Arm("as it is", "none", _publish_as_is, most_draws=1, heeds_epsilon=False)
    yield Arm("randomised response", AT_TABLE, partial(_channel, _respond), few)
    yield Arm("PRAM, invariant", AT_TABLE, partial(_channel, invariant_pram), few)
    for name, use in (("statistics", Statistics()), ("information", Information())):
        yield Arm(f"privacyfunnel, {name}, table prior", AT_TABLE, partial(_channel, partial(_solve, use)), few)
    yield Arm("privacyfunnel, default", AT_MODEL, _release)
    yield Arm("privacyfunnel, half of ε for shares", AT_MODEL, _release_with_shares, _is_wide)
    yield Arm("privacyfunnel, its model alone", "DP", _publish_model, _is_wide)
    yield _by_script("OpenDP, noisy tables", "DP", Script("opendp", "opendp_tables", _for_opendp, _read_tables))
    yield _by_script("OUE (multi-freq-ldpy)", "LIP, as measured", Script("ldp", "oue", _for_unary, _read_unary))
    yield _by_script("PAC-Synth", "DP, its own δ", Script("pac", "pac_synthesis", _just_epsilon, _read_synthetic))
    trees = Script("learners", "trees", lambda *_: {}, _read_synthetic)
    yield replace(_by_script("trees, not private", "none", trees), heeds_epsilon=False)
    for model, first in (("delta-disclosure", 1.0), ("beta-likeness", 1.0), ("t-closeness", 0.5), ("l-diversity", 2.0)):
        yield Arm(f"ANJANA {model}", "LIP, as measured", partial(_generalise, model, first), most_draws=1)
    for own, (model, rounds) in product((False, True), ROUNDS.items()):
        options = partial(_for_dpmm, model, None if own else rounds)
        script = Script("dpmm", "dpmm_synthesis", options, _read_synthetic)
        arm = _by_script(f"dpmm {model}{', its own rounds' if own else ''}", "DP, δ = 1e-9", script)
        yield replace(arm, fits=_is_control) if own else arm


def _by_script(name: str, promise: str, script: Script) -> Arm:
    return Arm(name, promise, script.publish, script=script)


def _has_few_combinations(case: Case) -> bool:
    return case.combinations <= MOST_COMBINATIONS


def _is_control(case: Case) -> bool:
    return case.name in ("compas", "census 8, income")


def _is_wide(case: Case) -> bool:
    return len(case.columns) > 2


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


# -- privacyfunnel as a user has it ------------------------------------------------------------------------------------


def _release(case: Case, epsilon: float, seed: int) -> Published:
    """What `sanitise` does with a file of the labels: model, design and draw; tables as `estimate` gives them."""
    start = time.process_time()
    sealed = _design(case, epsilon, seed)
    asked = [tuple(case.columns[j] for j in group) for group in case.groups]
    if isinstance(sealed.mechanism, RealOrSynthetic):
        drawn = sealed.mechanism.draw(case.coded.codes, KeyStream.from_seed(seed).rows(0, case.coded.rows))
        shown = case.decode(drawn)
    else:
        shown = apply(sealed, case.frame, ReleaseSpec(seed=seed, accept_drift=True)).table
    tables = _share_arrays(case, estimate(sealed, shown, columns=asked).tables)
    seconds = time.process_time() - start
    if isinstance(sealed.mechanism, RealOrSynthetic):
        found = _read_wide(case, sealed, drawn, seed)
    else:
        assert isinstance(sealed.mechanism, ChannelMechanism)
        values = np.ravel_multi_index(tuple(sealed.domain.combos.T), case.coded.sizes)
        found = draw_channel(case, Channel(np.asarray(values), sealed.mechanism.channel), seed)
        assert isinstance(sealed.model, TableModel)
        joint = sealed.model.joint(sealed.domain.attributes, sealed.domain.combos, case.secret)
        best = _stands_for(case, sealed)[joint.weights.argmax(axis=0)]
        known = partial(_look_up, case, {int(value): i for i, value in enumerate(values)}, best)
        found = replace(found, known_model=known, joint=None)
    memory = _measure_memory(case, epsilon) if seed == 1 and epsilon == 1 else None
    return replace(found, leak=epsilon, tables=tables, seconds=seconds, memory=memory)


def _design(case: Case, epsilon: float, seed: int) -> SealedProtocol:
    spec = ReleaseSpec(
        secret=(case.secret,), publish=case.columns, epsilon=epsilon, domain=case.domain, seed=seed, allow=case.columns
    )
    return design(case.frame, spec)


def _release_with_shares(case: Case, epsilon: float, seed: int) -> Published:
    """Half of ε for the release, half for noisy tables of single columns; shares from both, by their variances.

    One row in the place of another changes two counts of every column, as in the model of a release.
    """
    found, n, scale = _release(case, epsilon / 2, seed), case.coded.rows, 4 * len(case.columns) / epsilon
    rng, tables = np.random.default_rng(seed), dict(found.tables or {})
    for j, size in enumerate(case.coded.sizes):
        noisy = case.coded.count([j], by_secret=False) + rng.laplace(scale=scale, size=size)
        counted = tables[j,] * n
        variance = np.bincount(found.records[:, j], found.weights**2, size) - counted  # of rows that may be synthetic
        precision = 1 / np.maximum(variance, 1.0), np.full(size, 1 / (2 * scale**2))
        both = np.maximum((counted * precision[0] + noisy * precision[1]) / (precision[0] + precision[1]), 0)
        tables[j,] = both / both.sum()
    return replace(found, leak=epsilon, tables=tables)


def _publish_model(case: Case, epsilon: float, seed: int) -> Published:
    """Synthetic rows of the published model, without the records: what its part of ε alone would give."""
    start = time.process_time()
    sealed = _design(case, epsilon, seed)
    assert isinstance(sealed.mechanism, RealOrSynthetic)
    codes, shares = draw_decoys(sealed.mechanism, KeyStream.from_seed(seed), DECOYS)
    rows = codes[np.random.default_rng(seed).choice(len(codes), case.coded.rows, p=shares / shares.sum())]
    seconds = time.process_time() - start
    found = _read_wide(case, sealed, rows, seed)
    return Published(codes, shares * case.coded.rows, rows, seconds, known_model=found.known_model)


def _measure_memory(case: Case, epsilon: float) -> float:
    """Of the whole command, with its report."""
    with TemporaryDirectory() as folder:
        columns = ["--secret", case.secret, "--publish", ",".join(case.columns), "--allow", ",".join(case.columns)]
        where = ["--domain", case.domain, "--into", f"{folder}/out", "--ledger", f"{folder}/ledger.json"]
        return measure_memory(["sanitise", str(case.path), "--epsilon", f"{epsilon:g}", *columns, *where, "--anyway"])


def _look_up(case: Case, place: dict[int, int], best: Codes, codes: Codes) -> Codes:
    return best[[place[number] for number in case.record_numbers(codes).tolist()]]


def _stands_for(case: Case, sealed: SealedProtocol) -> Codes:
    """The secret that is guessed where the model says a group: its commonest one."""
    assert sealed.model is not None
    labels = case.coded.secret.labels
    order = np.argsort(np.bincount(case.coded.secrets, minlength=len(labels)), kind="stable")
    found = {group: int(s) for s in order for group in [sealed.model.group_of([labels[s]])[0]]}
    return np.array([found[group] for group in sealed.model.secrets])


def _share_arrays(case: Case, tables: Sequence[ShareTable]) -> dict[tuple[int, ...], FloatArray]:
    found = {}
    for group, table in zip(case.groups, tables, strict=True):
        names = [case.coded.attributes[j].labels for j in group]
        shares = np.zeros(tuple(map(len, names)))
        for cell in table.cells:
            at = tuple(labels.index(label) for labels, label in zip(names, cell.labels, strict=True))
            shares[at] = (cell.lower + cell.upper) / 2 if cell.share is None else cell.share
        found[group] = shares.reshape(-1) / shares.sum()
    return found


def _read_wide(case: Case, sealed: SealedProtocol, drawn: Codes, seed: int) -> Published:
    assert isinstance(sealed.mechanism, RealOrSynthetic)
    model = sealed.mechanism.model
    release = WeightedRelease.weigh(sealed.mechanism, drawn, KeyStream.from_seed(seed + 1), DECOYS)
    shares, named = model.shares / model.shares.sum(), _stands_for(case, sealed)
    likelihood = release.rows.keep[:, None] * np.nan_to_num(model.ratios(drawn)) + _synthetic_part(release)
    return Published(
        records=np.vstack([release.rows.codes, release.decoys.codes]),
        weights=np.concatenate([release.row_weights, release.decoy_weights]),
        rows=drawn,
        seconds=0.0,
        guesses=named[(shares * likelihood).argmax(axis=1)],
        known_model=lambda codes: named[(shares * np.nan_to_num(model.ratios(codes))).argmax(axis=1)],
        real=float((drawn == case.coded.codes).all(axis=1).mean()),
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


# -- rivals in their own environments ----------------------------------------------------------------------------------


def _just_epsilon(case: Case, epsilon: float) -> dict[str, Any]:
    return {"epsilon": epsilon}


def _for_dpmm(model: str, rounds: int | None, case: Case, epsilon: float) -> dict[str, Any]:
    fewer = {} if rounds is None else {"rounds": rounds}
    return {"model": model, "epsilon": epsilon, "delta": DELTA, **fewer}


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
