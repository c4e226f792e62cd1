r"""What leaks to somebody who knows more than the prior: some columns of a record, or a classifier of the raw rows.

A classifier says P̂(s | x). The base is the shares of the secret, or for several columns a multinomial logistic
regression on their labels; the table's own counts are drawn towards it by m rows,

.. math:: \hat P(s \mid x) = \frac{n(s, x) + m\, \mathrm{base}_s(x)}{n(x) + m}.

Base and m are those with the least cross-validated log-loss. Each fold's classifier, with the shares of x, is a belief
p′; it judges the rows that it was not fitted to. A row with value x publishes y with chance q(y | x), so shares of rows
are expected ones and nothing is drawn but the folds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, nonzero_entries
from privacyfunnel.errors import ParameterError
from privacyfunnel.formatting import format_epsilon
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.model.comparisons import GroupPairs, Leak, log_ratio
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, Promise
from privacyfunnel.model.protocols.sparse_protocol import Measurable

SECONDS = 30.0  # a measurement that takes longer says how far it came
MOST_PATHS = 3 * 10**6  # pairs of a combination and an output it can become that are gone through
FOLDS = 4
PRIOR_ROWS = (1.0, 10.0, 100.0, 1e9)  # m; the last is the base alone
PENALTY = 1.0  # of the squares of coefficients
STEPS = 40  # of the optimiser
MOST_NUMBERS = 4 * 10**6  # coefficients looked up in a step: seconds for all folds
MOST_CHANCES = 2 * 10**6  # pairs of a value and an output


@dataclass(frozen=True, slots=True)
class SideChannel:
    """The worst side channel that was found, in words, and a number that none exceeds (infinite where unknown)."""

    epsilon: float
    bound: float
    text: str

    @property
    def exact(self) -> bool:
        """Whether every side channel was looked at."""
        return self.bound <= self.epsilon


def side_channel(joint: Joint, mechanism: Mechanism, seconds: float = SECONDS) -> SideChannel | None:
    """Over all 2^m sets of known columns; None where knowing a column is knowing all, or there is too much to look at.

    Someone who knows everything learns nothing from a protocol that never saw the secret, so one column has none.
    """
    if mechanism.sees_secret:
        protocol = mechanism.protocol
        leak = SRLIP(0).worst(joint, protocol)
        return SideChannel(leak.epsilon, leak.epsilon, protocol.describe(leak, joint))
    whole = None if joint.m == 1 else mechanism.measurable_protocol(MOST_PATHS)
    if whole is None:
        return None
    found = measure_leakage(joint, SRLIP(0), whole, seconds)
    return SideChannel(found.leak.epsilon, found.bound, whole.describe(found.leak, joint))


def format_side_channel(found: SideChannel) -> str:
    """The side channel as text: ε, for whom, and whether the search was complete."""
    if math.isinf(found.epsilon):
        return f"no bound: {found.text}"
    if found.exact:
        return f"at most ε = {format_epsilon(found.epsilon)}: {found.text}"
    upto = "" if math.isinf(found.bound) else f" and at most {format_epsilon(found.bound)}"
    return (
        f"at least ε = {format_epsilon(found.epsilon, down=True)}{upto}, as far as there was time to look: {found.text}"
    )


@dataclass(frozen=True, slots=True)
class LeakageBounds:
    """The largest leak that was found, and a number that no leak exceeds: the same where everything was looked at."""

    leak: Leak
    bound: float


def measure_leakage(joint: Joint, promise: Promise, protocol: Measurable, seconds: float = math.inf) -> LeakageBounds:
    """Where the protocol leaks most.

    Side channels that know least come first: what they show lets most others be skipped, since the more is known, the
    less an output can add. What is not reached in time is bounded by what the protocol says of it.
    """
    deadline = time.monotonic() + seconds
    worst, bound = Leak(0.0), 0.0
    for block in promise.comparisons(joint, protocol.sees_secret):
        if math.isinf(max(worst.epsilon, bound)) and time.monotonic() >= deadline:
            break  # no more is found, and no more is known
        if time.monotonic() >= deadline:
            bound = max(bound, protocol.bound(block))
            continue
        found, whole = protocol.measure(block, worst.epsilon, deadline)
        bound = bound if whole else max(bound, protocol.bound(block))
        if found.output is not None and (worst.output is None or found.epsilon > worst.epsilon):
            worst = found
        if math.isinf(worst.epsilon):
            break
    return LeakageBounds(worst, max(bound, worst.epsilon))


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
    """The leak to somebody with a classifier, on the counts of the table; None where it takes too long to tell.

    None too for a promise that names values of the secret, or is not the same both ways.
    """
    try:
        question = next((each for each in promise.group_pairs(joint.c, joint.m, False) if not each.known), None)
    except ParameterError:
        return None
    if question is not None and question.scales is not None:
        return None
    channel = None if mechanism.sees_secret else _channel(mechanism)
    counts, combos = joint.weights.astype(np.int64), joint.combos
    rows, p_x = int(counts.sum()), counts.sum(axis=0) / counts.sum()
    if channel is None or question is None or counts.size * combos.shape[1] > MOST_NUMBERS or rows < FOLDS:
        return None
    folds = _split(counts)
    bases = [[_shares(counts - fold) for fold in folds]]
    if combos.shape[1] > 1:
        bases.append([_logistic(combos, counts - fold) for fold in folds])
    losses = {
        (number, m): sum(_loss(_smooth(counts - fold, part, m), fold) for fold, part in zip(folds, base, strict=True))
        for number, base in enumerate(bases)
        for m in PRIOR_ROWS
    }
    number, m = min(losses, key=lambda key: losses[key])
    beliefs = [_smooth(counts - fold, part, m) * p_x for fold, part in zip(folds, bases[number], strict=True)]
    up, down = _moves(question, beliefs, channel)
    seen = np.array([channel @ fold.sum(axis=0) for fold in folds]) / rows  # expected share of rows, by output
    return ClassifierLeak(
        up=float(up.max(initial=0.0, where=seen > 0)),
        down=float(down.max(initial=0.0, where=seen > 0)),
        share_up=float(seen[up > promise.epsilon].sum()),
        share_down=float(seen[down > promise.epsilon].sum()),
        log_loss=losses[number, m] / rows,
        blind_loss=losses[0, PRIOR_ROWS[-1]] / rows,
    )


def _channel(mechanism: Mechanism) -> Matrix | None:
    """q(y | x), outputs × values; None where there are too many outputs to list."""
    small = mechanism.table_protocol
    if small is not None:
        return small.channel.T
    listed = mechanism.explicit_protocol(MOST_CHANCES)
    return None if listed is None else listed.channel.T


def _moves(question: GroupPairs, beliefs: Sequence[FloatArray], channel: Matrix) -> tuple[FloatArray, FloatArray]:
    """By how much each output raises, and lowers, a belief about any pair of events: log-ratios, beliefs × outputs."""
    held, chances = question.groups.astype(np.float64), []
    for p_sx in beliefs:
        mass = held @ p_sx
        chances.append(np.asarray(channel @ mass.T).T / mass.sum(axis=1, keepdims=True))
    one, other = (np.array(chances)[:, question.pairs[:, side]] for side in (0, 1))
    size, rises = log_ratio(one, other), one >= other
    return np.where(rises, size, 0.0).max(axis=1), np.where(rises, 0.0, size).max(axis=1)


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


@dataclass(frozen=True, slots=True)
class Linkage:
    """Whether published values point at people, and how often somebody who knows them finds a person's record."""

    rows: int
    unique: int  # people whose published values nobody else has
    smallest: int  # k: people who share the rarest published values
    found: float | None  # share of people whose record is found by their values, expected; None where not measured
    found_most: float | None  # … of whoever is found most easily

    def to_dict(self) -> dict[str, Any]:
        """As one object of JSON."""
        return asdict(self)


def measure_linkage(mechanism: Mechanism, joint: Joint) -> Linkage:
    """Who knows a person's x looks for the output y with the largest q(y | x) / rows(y), and takes one of its rows.

    Numbers of rows by output are expected ones.
    """
    rows = joint.weights.sum(axis=0).astype(np.float64)
    channel = None if mechanism.sees_secret else _channel(mechanism)
    found = most = None
    if channel is not None:
        seen = np.maximum(np.asarray(channel @ rows), 1.0)
        best = np.zeros(len(rows))
        y, x, chance = nonzero_entries(channel)
        np.maximum.at(best, x, chance / seen[y])
        found, most = float(best @ rows / rows.sum()), float(best.max())
    return Linkage(int(rows.sum()), int((rows == 1).sum()), int(rows.min()), found, most)
