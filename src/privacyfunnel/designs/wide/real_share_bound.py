r"""The largest share of rows that any protocol whatever can publish as they are: a bound from the ratios of the model.

Let q keep a promise under p̃: for every output y and pair (E, F), with :math:`c_{EF}(x) = r_E(x) - \rho r_F(x)`,

.. math:: \sum_x \tilde p(x)\, q(y|x)\, c_{EF}(x) \le 0 .

For any multipliers λ_k ≥ 0 of classes k of outputs, λ_0 = 0 among them, of which each output may be given the one that
suits it (docs/theory.md, Theorem 81),

.. math:: P(Y = X) \le \mathbb E_{\tilde p}
   \max\Big(1 - \max_k \lambda_k \cdot c(x),\ -\min_k \lambda_k \cdot c(x)\Big) .

A linear programme on classes of records chooses λ; the mean is taken over all combinations, or bounded from a sample.
"""

from __future__ import annotations

import math

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.wide.real_or_synthetic_design import DesignSample
from privacyfunnel.mechanisms.decoy_slacks import bernstein_error, can_list, list_records, simulate_chunks
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.neighbours import NeighbourPromise

MOST_ENTRIES = 120_000  # of the programme's constraints
MOST_CLASSES = 150
BOUND_SEED, BOUND_RECORDS = 11, 1 << 19  # public, and never that of a draw
FAILURE = 1e-9  # that a bound from a sample is wrong
ROUNDING = 1e-9  # relative: far above that of sums of floats


def bound_real_share(mechanism: RealOrSynthetic) -> float:
    """No protocol that keeps this promise under this model publishes a larger share of rows as they are.

    Where combinations are too many to list it is a bound but for a chance of 1e-9.
    """
    model, pairs = mechanism.model, len(mechanism.events.pairs)
    classes = min(MOST_CLASSES, math.isqrt(MOST_ENTRIES // (pairs + 1)))
    promise = mechanism.promise
    if promise.odds is not None:  # whoever covers more leaves no more rows as they are
        plain = promise.table_promise
        promise = NeighbourPromise(plain, promise.known_columns) if promise.known_columns else plain
    sample = DesignSample.draw(model, promise, classes)
    prices = _choose_multipliers(sample)
    listed = can_list(model)
    if listed:
        parts = ((part.ratios, part.everybody) for part in list_records(model, mechanism.events))
    else:
        stream = KeyStream.from_seed(BOUND_SEED)
        drawn = (model.ratios(codes) for codes in simulate_chunks(model, stream, BOUND_RECORDS))
        parts = ((ratios, np.full(len(ratios), 1.0 / BOUND_RECORDS)) for ratios in drawn)
    mean = square = 0.0
    for ratios, weights in parts:
        most = _largest_terms(mechanism, ratios, prices)
        mean += float(weights @ most)
        square += float(weights @ most**2)
    bound = mean * (1.0 + ROUNDING)
    if not listed:
        # r_F ≤ 1/p(F), so that −λ·c ≤ ρ Σ λ/p(F).
        events = mechanism.events
        held = np.where(events.members, model.shares, 0).sum(axis=1) / model.shares.sum()
        reach = 1.0 + float((prices @ (events.limits / held[events.pairs[:, 1]])).max())
        found = bernstein_error(np.array(mean), np.array(square), reach, BOUND_RECORDS, math.log(2.0 / FAILURE))
        bound += float(found)
    return min(bound, 1.0)


def _largest_terms(mechanism: RealOrSynthetic, ratios: FloatArray, prices: FloatArray) -> FloatArray:
    terms = _excess(mechanism, ratios) @ prices.T
    return np.asarray(np.maximum(1.0 - terms.max(axis=1), -terms.min(axis=1)))


def _excess(mechanism: RealOrSynthetic, ratios: FloatArray) -> FloatArray:
    events = mechanism.events
    by_event = events.ratios(ratios, mechanism.model.shares)
    first, second = events.pairs.T
    return np.asarray(by_event[:, first] - events.limits * by_event[:, second])


def _choose_multipliers(sample: DesignSample) -> FloatArray:
    """λ, of a class in each row; the last is 0: least Σ π_j u_j with u_j ≥ 1 − λ_j·c_j and u_j ≥ −λ_k·c_j ≥ −u_j."""
    from privacyfunnel.engine.lp.highs import INF, Programme  # slow to import, and of use for these records only

    shares, blank = sample.shares, sample.blank
    each = _excess(blank, sample.records.ratios) * sample.records.everybody[:, None]
    sums = np.stack([np.bincount(sample.classes, column, blank.classes) for column in each.T], axis=1)
    means = sums / shares[:, None]
    k, pairs = means.shape
    programme = Programme(solver="ipm", run_crossover="off", presolve="on")
    none = np.zeros(k + k * pairs, dtype=np.int64)
    programme.add_columns(np.append(shares, np.zeros(k * pairs)), none, none[:0], np.empty(0))
    of_class = k + np.arange(k * pairs).reshape(k, pairs)
    j = np.concatenate([np.arange(k), np.repeat(np.arange(k), k)])
    to = np.concatenate([np.arange(k), np.tile(np.arange(k), k)])
    index = np.concatenate([j[:, None], of_class[to]], axis=1)
    entries = np.concatenate([np.ones((len(j), 1)), means[j]], axis=1)
    low = np.append(np.ones(k), np.zeros(k * k))
    starts = np.arange(len(j)) * (pairs + 1)
    programme.add_sparse_rows(low, np.full(len(j), INF), starts, index.reshape(-1), entries.reshape(-1))
    programme.run()
    found = programme.solution
    prices = np.zeros((k + 1, pairs))
    if len(found) == k + k * pairs and np.isfinite(found).all():
        prices[:-1] = np.maximum(found[k:], 0.0).reshape(k, pairs)
    return prices  # where nothing was solved all are 0, and so the bound 1
