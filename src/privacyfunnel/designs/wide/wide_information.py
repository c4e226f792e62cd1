"""How much real or synthetic records tell of the original ones, from records that are simulated by a public seed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray
from privacyfunnel.mechanisms.decoy_slacks import acceptance_rates
from privacyfunnel.mechanisms.real_or_synthetic import KEEP_BITS, RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.published.tree_model import UNIT, TreeModel

RECORDS = 1 << 15
SEEDS = 4, 5  # of records and of what they become: public, and never those of a draw


class WideInformation(NamedTuple):
    """Nats, under the model."""

    information: float  # I(X;Y)
    error: float  # its standard error
    entropy: float  # H(X)


def measure_information(mechanism: RealOrSynthetic, records: int = RECORDS) -> WideInformation:
    """The mean of ln P(y|x)/P(y) over simulated records."""
    model = mechanism.model
    words = np.stack(
        [KeyStream.from_seed(SEEDS[0]).words(0, records, draw=draw) for draw in range(model.words_per_record)]
    )
    codes = model.sample(words)
    drawn = mechanism.draw(codes, KeyStream.from_seed(SEEDS[1]).rows(0, records))
    log_own, log_drawn = log_probabilities(model, codes), log_probabilities(model, drawn)
    ratios, ratios_drawn = model.ratios(codes), model.ratios(drawn)
    classes, classes_drawn = mechanism.classify(ratios), mechanism.classify(ratios_drawn)
    keep = mechanism.keep_numerators(ratios, classes) / 2.0**KEEP_BITS
    keep_drawn = mechanism.keep_numerators(ratios_drawn, classes_drawn) / 2.0**KEEP_BITS
    shares = np.bincount(classes, minlength=mechanism.classes) / records
    rates = acceptance_rates(mechanism, shares)
    replaced = np.bincount(classes, 1.0 - keep, mechanism.classes) / records @ rates  # W of everybody
    given = (1.0 - keep) * rates[classes, classes_drawn] * np.exp(log_drawn)
    given += keep * (codes == drawn).all(axis=1)
    told = np.log(np.maximum(given, 1e-300)) - log_drawn - np.log(keep_drawn + replaced[classes_drawn])
    entropy = float(-log_own.mean())
    information = min(max(float(told.mean()), 0.0), entropy)
    return WideInformation(information, float(told.std() / math.sqrt(records)), entropy)


def log_probabilities(model: TreeModel, codes: NDArray[np.integer[Any]]) -> FloatArray:
    """ln p̃(x) of records that the model allows."""
    logs = np.zeros((len(codes), len(model.shares)))
    with np.errstate(divide="ignore"):
        for j, (parent, table) in enumerate(zip(model.parents, model.tables, strict=True)):
            above = np.zeros(len(codes), dtype=np.int64) if parent is None else codes[:, parent]
            logs += np.log(table[:, above, codes[:, j]].T / UNIT)
        logs += np.log(model.shares / UNIT)
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))
