r"""Somebody who learned from the raw rows how the secret goes with what is published: the best of some classifiers.

A classifier says P̂(s | x). The base is the shares of the secret, or for several columns a multinomial logistic
regression on their labels; the table's own counts are drawn towards it by m rows,

.. math:: \hat P(s \mid x) = \frac{n(s, x) + m\, \mathrm{base}_s(x)}{n(x) + m}.

Base and m are those with the least cross-validated log-loss. Each fold's classifier, with the shares of x, is a belief
p′; it judges the rows that it was not fitted to. A row with value x publishes y with chance q(y | x), so shares of rows
are expected ones and nothing is drawn but the folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.model.comparisons import GroupPairs, log_ratio
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

FOLDS = 4
PRIOR_ROWS = (1.0, 10.0, 100.0, 1e9)  # m; the last is the base alone
PENALTY = 1.0  # of the squares of coefficients
STEPS = 40  # of the optimiser
MOST_NUMBERS = 4 * 10**6  # coefficients looked up in a step: seconds for all folds
MOST_CHANCES = 2 * 10**6  # pairs of a value and an output


@dataclass(frozen=True, slots=True)
class ClassifierLeak:
    """How far the beliefs of whoever has that classifier move, beside what was promised."""

    up: float  # the largest log-ratio by which a row's record raises a belief
    down: float  # … and lowers one; infinite where it rules a secret out
    share_up: float  # of rows whose record raises a belief by more than was promised
    share_down: float
    log_loss: float  # nats, cross-validated
    blind_loss: float  # … of the shares of the secret alone

    @property
    def epsilon(self) -> float:
        """The larger of both."""
        return max(self.up, self.down)

    @property
    def gain(self) -> float:
        """How much of the uncertainty about the secret the classifier removes, on rows that it was not fitted to."""
        return max(1 - self.log_loss / self.blind_loss, 0.0) if self.blind_loss > 0 else 0.0

    @property
    def share(self) -> float:
        """At most so many rows move a belief by more than was promised."""
        return min(self.share_up + self.share_down, 1.0)


def classifier_leak(mechanism: Mechanism, promise: Promise, joint: Joint) -> ClassifierLeak | None:
    """The leak to somebody with a classifier, on the counts of the table; None where it takes too long to tell."""
    asked = next((each for each in promise.group_pairs(joint.c, joint.m, False) if not each.known), None)
    channel = None if mechanism.sees_secret else _channel(mechanism)
    if channel is None or asked is None or joint.a * joint.c * joint.m > MOST_NUMBERS or joint.total < FOLDS:
        return None
    counts = joint.weights.astype(np.int64)
    folds = _split(counts)
    bases = [[_shares(counts - fold) for fold in folds]]
    if joint.m > 1:
        bases.append([_logistic(joint.combos, counts - fold) for fold in folds])
    losses = {
        (number, m): sum(_loss(_smooth(counts - fold, part, m), fold) for fold, part in zip(folds, base, strict=True))
        for number, base in enumerate(bases)
        for m in PRIOR_ROWS
    }
    number, m = min(losses, key=lambda key: losses[key])
    moves = [
        _moves(asked, _smooth(counts - fold, part, m) * joint.p_x, channel)
        for fold, part in zip(folds, bases[number], strict=True)
    ]
    seen = [np.asarray(channel @ fold.sum(axis=0)) / joint.total for fold in folds]  # expected share of rows by output
    up, down = (
        max(float(np.max(each[way][each_seen > 0], initial=0.0)) for each, each_seen in zip(moves, seen, strict=True))
        for way in (0, 1)
    )
    beyond = [
        sum(float(each_seen[each[way] > promise.epsilon].sum()) for each, each_seen in zip(moves, seen, strict=True))
        for way in (0, 1)
    ]
    blind = losses[0, PRIOR_ROWS[-1]]
    return ClassifierLeak(up, down, beyond[0], beyond[1], losses[number, m] / joint.total, blind / joint.total)


def _channel(mechanism: Mechanism) -> Matrix | None:
    """q(y | x), outputs × values; None where there are too many outputs to list."""
    small = mechanism.table_protocol
    if small is not None:
        return small.channel.T
    listed = mechanism.explicit_protocol(MOST_CHANCES)
    return None if listed is None else listed.channel.T


def _moves(asked: GroupPairs, p_sx: FloatArray, channel: Matrix) -> tuple[FloatArray, FloatArray]:
    """By how much each output raises, and lowers, a belief about any pair of events, at most; log-ratios."""
    held = asked.groups.astype(np.float64)
    mass = held @ p_sx
    chance = np.asarray(channel @ mass.T).T / mass.sum(axis=1, keepdims=True)
    one, other = chance[asked.pairs[:, 0]], chance[asked.pairs[:, 1]]
    size, rises = log_ratio(one, other), one >= other
    return np.where(rises, size, 0.0).max(axis=0), np.where(rises, 0.0, size).max(axis=0)


def _split(counts: IntArray) -> list[IntArray]:
    """The rows of the table, dealt into folds at random, always alike."""
    rng = np.random.default_rng(0)
    dealt = rng.multinomial(counts.ravel(), np.full(FOLDS, 1 / FOLDS)).T
    return [part.reshape(counts.shape) for part in dealt]


def _shares(counts: IntArray) -> FloatArray:
    """The shares of the secrets, the same for every value; none is 0."""
    rows = counts.sum(axis=1) + 0.5
    return np.repeat((rows / rows.sum())[:, None], counts.shape[1], axis=1)


def _smooth(counts: IntArray, base: FloatArray, m: float) -> FloatArray:
    return np.asarray((counts + m * base) / (counts.sum(axis=0) + m))


def _loss(conditional: FloatArray, judged: IntArray) -> float:
    return float(-(judged * np.log(np.maximum(conditional, 1e-300))).sum())


def _logistic(combos: IntArray, counts: IntArray) -> FloatArray:
    """P(s | x) by a multinomial logistic regression on the labels of the columns, (c, a)."""
    from scipy.optimize import minimize  # slow to import, and of use for several columns only
    from scipy.special import log_softmax

    c, starts = len(counts), np.concatenate([[0], np.cumsum(combos.max(axis=0) + 1)])
    features = combos + starts[:-1]  # (a, m), numbers of coefficients
    rows, d = counts.sum(axis=0), int(starts[-1]) + 1  # and an intercept

    def logits(flat: FloatArray) -> FloatArray:
        w = flat.reshape(d, c)
        return np.asarray(log_softmax(w[features].sum(axis=1) + w[-1], axis=1))

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        log_p = logits(flat)
        missed = rows[:, None] * np.exp(log_p) - counts.T
        gradient = np.zeros((d, c))
        for column in features.T:
            np.add.at(gradient, column, missed)
        gradient[-1] = missed.sum(axis=0)
        penalty = flat.copy()
        penalty.reshape(d, c)[-1] = 0.0
        value = -(counts.T * log_p).sum() + PENALTY / 2 * penalty @ penalty
        return float(value), np.asarray(gradient.ravel() + PENALTY * penalty)

    start = np.zeros((d, c))
    start[-1] = np.log(counts.sum(axis=1) + 0.5)
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(np.exp(logits(found.x)).T)
