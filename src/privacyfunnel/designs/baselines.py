r"""Randomised response and conditional reporting, calibrated to a promise (paper, section VI).

Each is a family of protocols with one parameter :math:`\alpha \ge 0`; the larger it is, the less random they are, and
:math:`\alpha = \infty` is no randomness at all. With :math:`k = e^{\alpha} - 1`, an output has probability

.. math:: P(y \mid E) \propto C_E(y) + k A_E(y)

given an event E, so for every output and every pair of events that a promise compares, the promise is linear in k:

.. math:: k\,(A_E(y) - e^{\varepsilon} A_F(y)) \le e^{\varepsilon} C_F(y) - C_E(y).

The k that keep a promise thus form an interval, and its upper end is known in closed form. That is where the search for
the largest :math:`\alpha` begins; what decides is the leakage measured on the member itself. Over sets of priors it is
so for every pair of their members: an interval again, within the table's own, where the search begins as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, Matrix, dense
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.model.comparisons import Comparisons, pair_chunks
from privacyfunnel.model.credal.credal_sets import Comparable, CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol, check_channel_size

LARGEST_ALPHA = 700.0  # beyond it only α = ∞: e^α must be a float, and chances of e^-700 are beyond any sampler
_STEP = 2.0**-48  # how far from the closed form the search looks first, relative to it
_FAR_STEP = 1 / 64  # the same over sets of priors, whose end of the interval is not the table's
LEAST = 1e-300  # in the place of e^ε − 1 where that is nothing
_STEPS = 64  # doublings of that step: the search reaches from 2^-48 to 2^16 times the closed form

Member = TypeVar("Member", bound=Comparable)


def randomised_response(joint: Joint, promise: Promise) -> Protocol:
    r"""The least random generalised randomised response (GRR) that keeps the promise:

    .. math:: q(y|x) = \frac{e^{\alpha [x = y]}}{e^{\alpha} + a - 1}.

    Its outputs are the values that occur, several attributes together. Here :math:`A_E(y) = P(X = y|E)` and
    :math:`C = 1`: at :math:`\alpha = 0` the output is uniform, which keeps every promise.

    >>> from privacyfunnel.model.promises import LIP
    >>> coin = randomised_response(Joint.from_counts([[1, 0], [0, 1]]), LIP(math.log(2)))
    >>> coin.channel.round(6)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    a, elsewhere = joint.a, np.full(joint.a, 1 / joint.a) if promise.anything_else else None
    check_channel_size(a, a, "Randomised response", "Merge rare values, or publish fewer columns.")
    outputs = joint.values

    def member(alpha: float) -> Protocol:
        loss = math.exp(-alpha)
        stays = 1 / (1 + (a - 1) * loss)
        channel = np.full((a, a), loss * stays)
        np.fill_diagonal(channel, stays)
        return Protocol(channel, outputs, alpha=alpha, elsewhere=elsewhere)

    def affine(events: Matrix) -> tuple[FloatArray, FloatArray]:
        return dense(events), np.ones((1, 1))

    blocks = tuple(promise.comparisons(joint, False))
    return calibrate(
        "randomised response",
        promise,
        blocks,
        promise.credal_sets(joint),
        member,
        lambda: _interval(promise, blocks, affine),
    )


def conditional_reporting(joint: Joint, promise: Promise) -> Protocol:
    r"""The least random conditional reporting (CR) that keeps the promise: tell x with a weight of
    :math:`e^{\alpha}`, and for every other secret, with a weight of 1, a value drawn from those who have it:

    .. math:: q(y|s,x) = \frac{e^{\alpha} [x = y] + \sum_{s' \ne s} p(y|s')}{e^{\alpha} + c - 1}.

    It looks at the secret. Under LIP and LDP :math:`\alpha = 0` tells nothing about the secret, though something about
    the value. Against someone who knows attributes (SRLIP), or has another prior, even :math:`\alpha = 0` leaks.

    Raises
    ------
    GuaranteeError
        If no :math:`\alpha` keeps the promise, or, for an ε of about 1e-15 and less, if rounding hides that one does.
    """
    c, a = joint.c, joint.a
    check_channel_size(c * a, a, "Conditional reporting", "Merge rare values, or publish fewer columns.")
    outputs = joint.values
    others = (1 - np.eye(c)) @ joint.p_x_given_s  # not a sum less a term: where all terms are 0, this is 0
    elsewhere = joint.p_x_given_s.mean(axis=0) if promise.anything_else else None  # as everybody's at α = 0

    def member(alpha: float) -> Protocol:
        loss = math.exp(-alpha)
        tells = 1 / (1 + (c - 1) * loss)
        channel = np.repeat(others * (loss * tells), a, axis=0)
        pairs = np.arange(c * a)
        channel[pairs, pairs % a] += tells
        return Protocol(channel, outputs, sees_secret=True, alpha=alpha, elsewhere=elsewhere)

    def affine(events: Matrix) -> tuple[FloatArray, FloatArray]:
        p = dense(events).reshape(-1, c, a)
        p_x, p_s = p.sum(axis=1), p.sum(axis=2)
        return p_x, p_x + p_s @ others

    blocks = tuple(promise.comparisons(joint, True))
    interval = partial(_interval, promise, blocks, affine)
    return calibrate("conditional reporting", promise, blocks, promise.credal_sets(joint, True), member, interval)


BASELINES: dict[str, Callable[[Joint, Promise], Protocol]] = {
    "randomised-response": randomised_response,
    "conditional-reporting": conditional_reporting,
}


def _interval(
    promise: Promise,
    blocks: Sequence[Comparisons],
    affine: Callable[[Matrix], tuple[FloatArray, FloatArray]],
) -> tuple[float, float]:
    """The smallest and the largest k that keep the promise; empty when the first is above the second."""
    low, high = 0.0, math.inf
    for block in blocks:
        for first, events, others in pair_chunks(block):
            e, f = affine(events), affine(others)
            ways = zip(((e, f), (f, e)), _limits(promise, block, first, e[0]), strict=True)
            for ((a_e, c_e), (a_f, c_f)), (required, bound) in ways:
                slope = (a_e - bound * a_f)[required]
                room = np.broadcast_to(bound * c_f - c_e, a_e.shape)[required]
                if bool(((slope == 0) & (room < 0)).any()):
                    return math.inf, 0.0
                above = np.divide(room, slope, out=np.full_like(slope, math.inf), where=slope > 0)
                below = np.divide(room, slope, out=np.zeros_like(slope), where=slope < 0)
                low, high = max(low, float(below.max(initial=0.0))), min(high, float(above.min(initial=math.inf)))
    return low, high


def _limits(
    promise: Promise, block: Comparisons, first: int, like: FloatArray
) -> Iterator[tuple[BoolArray, FloatArray]]:
    """For either way up of the pairs from `first` on: which are asked, and e^ε to their scale, a row each."""
    scales = np.ones((len(like), 2)) if block.scales is None else block.scales[first : first + len(like)]
    for scale in scales.T:
        required = np.isfinite(scale)
        yield required, np.exp(np.minimum(promise.epsilon * np.where(required, scale, 1.0), LARGEST_ALPHA))[:, None]


def calibrate(
    family: str,
    promise: Promise,
    blocks: Sequence[Comparisons],
    sets: CredalSets | None,
    member: Callable[[float], Member],
    interval: Callable[[], tuple[float, float]],
) -> Member:
    """The member of largest α whose measured leakage is at most ε."""

    def keeps_promise(alpha: float) -> bool:
        candidate = member(alpha)
        on_the_table = all(candidate.worst(block).epsilon <= promise.epsilon for block in blocks)
        return on_the_table and (sets is None or candidate.worst_credal_leak(sets).epsilon <= promise.epsilon)

    if keeps_promise(math.inf):
        return member(math.inf)
    low, high = interval()
    step = _STEP if sets is None else _FAR_STEP
    alpha = (
        _largest_feasible(keeps_promise, min(math.log1p(max(high, 0.0)), LARGEST_ALPHA), step) if low <= high else None
    )
    if alpha is None:
        raise GuaranteeError(
            f"{promise.name} promised ε = {promise.epsilon:g}; {family} leaks more at every α. "
            "Ask for a larger ε, or use randomised-response."
        )
    return member(alpha)


def _largest_feasible(feasible: Callable[[float], bool], start: float, step: float = _STEP) -> float | None:
    """The last float that is kept: on the way up from `start` if that is kept, else the first on the way down."""
    inside = feasible(start)
    near, step = start, start * step
    for _ in range(_STEPS):
        far = min(start + step, LARGEST_ALPHA) if inside else max(start - step, 0.0)
        if far == near:
            return near if inside else None
        if feasible(far) != inside:
            break
        near, step = far, 2 * step
    else:
        return near if inside else None
    keeps, breaks = (near, far) if inside else (far, near)
    while keeps < (middle := (keeps + breaks) / 2) < breaks:
        keeps, breaks = (middle, breaks) if feasible(middle) else (keeps, middle)
    return keeps
