"""privacyfunnel as a user has it, and what it would be with ε divided otherwise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.comparison.channels import Channel, draw_channel
from benchmarks.comparison.environments import measure_memory
from benchmarks.comparison.published import Published
from benchmarks.comparison.tables import Case, Codes
from privacyfunnel import ReleaseSpec, apply, design, estimate
from privacyfunnel.arrays import FloatArray
from privacyfunnel.estimation.decoy_weights import KnownRecords, WeightedRelease, draw_decoys
from privacyfunnel.estimation.results import ShareTable
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.published.table_model import TableModel

DECOYS = 1 << 17


def release(case: Case, epsilon: float, seed: int, for_model: float | None = None) -> Published:
    """What `sanitise` does with a file of the labels: model, design and draw; tables as `estimate` gives them."""
    start = time.process_time()
    sealed = _design(case, epsilon, seed, for_model)
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


def _design(case: Case, epsilon: float, seed: int, for_model: float | None = None) -> SealedProtocol:
    spec = ReleaseSpec(
        secret=(case.secret,),
        publish=case.columns,
        epsilon=epsilon,
        design_epsilon=None if for_model is None else for_model * epsilon,
        domain=case.domain,
        seed=seed,
        allow=case.columns,
    )
    return design(case.frame, spec)


def release_with_shares(case: Case, epsilon: float, seed: int) -> Published:
    """Half of ε for the release, half for noisy tables of single columns; shares from both, by their variances.

    One row in the place of another changes two counts of every column, as in the model of a release.
    """
    found, n, scale = release(case, epsilon / 2, seed), case.coded.rows, 4 * len(case.columns) / epsilon
    rng, tables = np.random.default_rng(seed), dict(found.tables or {})
    for j, size in enumerate(case.coded.sizes):
        noisy = case.coded.count([j], by_secret=False) + rng.laplace(scale=scale, size=size)
        counted = tables[j,] * n
        variance = np.bincount(found.records[:, j], found.weights**2, size) - counted  # of rows that may be synthetic
        precision = 1 / np.maximum(variance, 1.0), np.full(size, 1 / (2 * scale**2))
        both = np.maximum((counted * precision[0] + noisy * precision[1]) / (precision[0] + precision[1]), 0)
        tables[j,] = both / both.sum()
    return replace(found, leak=epsilon, tables=tables)


def publish_model(case: Case, epsilon: float, seed: int) -> Published:
    """Synthetic rows of the published model, without the records: what its part of ε alone would give."""
    start = time.process_time()
    sealed = _design(case, epsilon, seed)
    assert isinstance(sealed.mechanism, RealOrSynthetic)
    codes, shares = draw_decoys(sealed.mechanism, KeyStream.from_seed(seed), DECOYS)
    rows = codes[np.random.default_rng(seed).choice(len(codes), case.coded.rows, p=shares / shares.sum())]
    seconds = time.process_time() - start
    found = _read_wide(case, sealed, rows, seed)
    return Published(codes, shares * case.coded.rows, rows, seconds, known_model=found.known_model)


def tell_real_rows(case: Case, epsilon: float, seed: int) -> Published:
    """What somebody would count who was told which rows are real: nobody is, and ε would not hold."""
    start, codes = time.process_time(), case.coded.codes
    mechanism = _design(case, epsilon, seed).mechanism
    assert isinstance(mechanism, RealOrSynthetic)
    drawn = mechanism.draw(codes, KeyStream.from_seed(seed).rows(0, case.coded.rows))
    real = (drawn == codes).all(axis=1)
    weights = KnownRecords.find(mechanism, codes).weights[real]
    return Published(codes[real], weights, codes[real], time.process_time() - start, real=float(real.mean()))


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
    law = release.rows.keep, _synthetic_part(release)
    likelihood = law[0][:, None] * np.nan_to_num(model.ratios(drawn)) + law[1]
    return Published(
        records=np.vstack([release.rows.codes, release.decoys.codes]),
        weights=np.concatenate([release.row_weights, release.decoy_weights]),
        rows=drawn,
        seconds=0.0,
        guesses=named[(shares * likelihood).argmax(axis=1)],
        linked_law=law,
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
