"""Mechanisms over all combinations of values: rows drawn through a matrix, and what is estimated from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.comparison.environments import RivalError
from benchmarks.comparison.published import Published
from benchmarks.comparison.tables import Case, Codes
from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.joint import Joint

LEAST = 1e-6  # a share that an estimate treats as more than none
STEPS = 3000  # of the iteration for the most likely shares


@dataclass(frozen=True, eq=False)
class Channel:
    """q(y | x) for the combinations with these numbers."""

    values: Codes
    chances: FloatArray


def occurring(case: Case) -> tuple[Joint, Codes]:
    """The joint distribution of the secret and the combinations that occur, and the numbers of these."""
    counts, values = case.occurring_counts
    return Joint.from_counts(counts), values


def channel_leak(p: FloatArray, chances: FloatArray) -> float:
    """The largest |ln p(s|y)/p(s)|."""
    outputs = p @ chances
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(outputs / (p.sum(axis=1, keepdims=True) * outputs.sum(axis=0)))
    return float(np.nanmax(np.abs(ratios)))


def invariant_pram(joint: Joint, epsilon: float, seed: int) -> FloatArray:
    """The invariant matrix of sdcMicro (R/pram.R, calcTransitionMatrix) at the least noise that keeps ε.

    A first matrix has diagonal entries drawn between `pd` and 1, the rest of each row spread evenly; a second one
    undoes it by Bayes' rule; `alpha` of their product and 1 − `alpha` of no change is the matrix. `alpha` is sought for
    the largest `pd` among some with which ε is kept at all.
    """
    p = joint.weights / joint.weights.sum()
    shares, size = p.sum(axis=0), joint.a
    drawn = np.random.default_rng(seed).random(size)
    for least in (0.8, 0.5, 0.2, 0.1, 0.05, 0.0):
        diagonal = least + (1 - least) * drawn
        first = np.repeat(((1 - diagonal) / (size - 1))[:, None], size, axis=1)
        np.fill_diagonal(first, diagonal)
        back = (first * shares[:, None]).T / (shares @ first)[:, None]
        product = first @ back
        if channel_leak(p, product) <= epsilon:
            low, high = 0.0, 1.0
            for _ in range(40):
                alpha = (low + high) / 2
                kept = channel_leak(p, alpha * product + (1 - alpha) * np.eye(size)) <= epsilon
                low, high = (low, alpha) if kept else (alpha, high)
            return np.asarray(high * product + (1 - high) * np.eye(size))
    raise RivalError(f"no pd and alpha of sdcMicro's matrix keep ε = {epsilon:g}")


def unary_leak(p: FloatArray, own: float) -> float:
    """What a report by optimised unary encoding with an ε of its own tells about the secret, at worst.

    A report with the bits B has p(y|s)/p(y) = (b + P(B|s))/(b + P(B)) with one number b; both extremes over all B are
    at sets of the values with the largest, or the smallest, p(x|s)/p(x).
    """
    p = p[:, p.sum(axis=0) > 0]
    shares, given = p.sum(axis=0), p / p.sum(axis=1, keepdims=True)
    on, off = unary_ratios(own)
    worst = 0.0
    for of_secret in given:
        order = np.argsort(of_secret / shares)
        for places in (order, order[::-1]):
            inside, expected = np.cumsum(of_secret[places]), np.cumsum(shares[places])
            ratios = (off + (on - off) * inside) / (off + (on - off) * expected)
            worst = max(worst, float(np.abs(np.log(ratios)).max()))
    return worst


def unary_ratios(own: float) -> tuple[float, float]:
    """How much likelier a bit that is set, and one that is not, is at the true value than elsewhere."""
    return (math.exp(own) + 1) / 2, (1 + math.exp(-own)) / 2


def unary_epsilon(p: FloatArray, epsilon: float) -> float:
    """The largest ε of optimised unary encoding with which a report tells at most `epsilon` about the secret."""
    low, high = 0.0, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if unary_leak(p, middle) <= epsilon else (low, middle)
    return max(low, 1e-3)


def draw_channel(case: Case, channel: Channel, seed: int, *, invariant: bool = False) -> Published:
    """Rows through a channel; counted by the most likely shares, shown as draws from what an output may stand for.

    An invariant channel publishes values with the shares of the table: they are counted and shown as they come.
    """
    rng, chances, values = np.random.default_rng(seed), channel.chances, channel.values
    place = np.full(case.combinations, -1)
    place[values] = np.arange(len(values))
    inputs = place[case.record_numbers(case.coded.codes)]
    counts = np.zeros((len(case.coded.secret.labels), len(values)))
    np.add.at(counts, (case.coded.secrets, inputs), 1)
    outputs, n = _draw(rng, chances, inputs), len(inputs)
    joint = counts @ chances / n
    if invariant:
        shown = outputs
        counted: dict[str, Any] = {"records": case.records(values[shown]), "weights": np.ones(n)}
    else:
        seen = np.bincount(outputs, minlength=chances.shape[1]).astype(float)
        shares = np.full(len(values), 1 / len(values))
        for _ in range(STEPS):
            shares = shares * (chances @ (seen / np.maximum(shares @ chances, 1e-300))) / n
        posterior = (shares[:, None] * chances).T
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
        shown = _draw(rng, posterior, outputs)
        counted = {"records": case.records(values), "weights": shares * n}
        counted["covariance"] = _share_covariance(shares, chances) * n
    return Published(
        **counted,
        rows=case.records(values[shown]),
        seconds=0.0,
        guesses=joint.argmax(axis=0)[outputs],
        leak=channel_leak(counts / n, chances),
        real=float((shown == inputs).mean()),
        joint=joint,
    )


def _draw(rng: np.random.Generator, chances: FloatArray, rows: Codes) -> Codes:
    found = np.empty(len(rows), dtype=np.int64)
    for value in np.unique(rows):
        places = np.flatnonzero(rows == value)
        found[places] = rng.choice(chances.shape[1], len(places), p=chances[value] / chances[value].sum())
    return found


def _share_covariance(shares: FloatArray, chances: FloatArray) -> FloatArray:
    """n times the covariance of the most likely shares: the inverse of the information less what the sum fixes."""
    some = shares > LEAST
    expected = shares @ chances
    scaled = chances[some] / np.sqrt(np.maximum(expected, 1e-300))
    found = np.zeros((len(shares), len(shares)))
    inverse = np.linalg.pinv(scaled @ scaled.T, rcond=1e-9, hermitian=True)
    found[np.ix_(some, some)] = inverse - np.outer(shares[some], shares[some])
    return found
