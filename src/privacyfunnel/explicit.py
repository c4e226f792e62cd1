r"""Randomised response, unary encoding and conditional reporting, calibrated to a promise (paper, section VI).

Each is a family of protocols with one parameter :math:`\alpha \ge 0`; the larger it is, the less random they are, and
:math:`\alpha = \infty` is no randomness at all. With :math:`k = e^{\alpha} - 1`, an output has probability

.. math:: P(y \mid E) \propto C_E(y) + k A_E(y)

given an event E, so for every output and every pair of events that a promise compares, the promise is linear in k:

.. math:: k\,(A_E(y) - e^{\varepsilon} A_F(y)) \le e^{\varepsilon} C_F(y) - C_E(y).

The k that keep a promise thus form an interval, and its upper end is known in closed form. That is where the search for
the largest :math:`\alpha` begins; what decides is the leakage measured on the member itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.sparse import coo_array, csr_array

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import DistributionError, GuaranteeError, ParameterError
from privacyfunnel.information import entropy
from privacyfunnel.joint import Joint
from privacyfunnel.promises import Comparable, Comparisons, Leak, Promise, log_ratio
from privacyfunnel.protocol import Labels, Protocol, checked_size

LARGEST_ALPHA = 700.0  # beyond it only α = ∞: e^α must be a float, and chances of e^-700 are beyond any sampler
_CHUNK = 1 << 20  # entries of a dense array that are worked on at a time
_STEP = 2.0**-48  # how far from the closed form the search looks first, relative to it
_STEPS = 64  # doublings of that step: the search reaches from 2^-48 to 2^16 times the closed form

Member = TypeVar("Member", bound=Comparable)


def randomised_response(joint: Joint, promise: Promise) -> Protocol:
    r"""The least random generalised randomised response that keeps the promise:

    .. math:: q(y|x) = \frac{e^{\alpha [x = y]}}{e^{\alpha} + a - 1}.

    Its outputs are the values that occur, several attributes together. Here :math:`A_E(y) = P(X = y|E)` and
    :math:`C = 1`: at :math:`\alpha = 0` the output is uniform, which keeps every promise.

    >>> from privacyfunnel.promises import LIP
    >>> coin = randomised_response(Joint.from_counts([[1, 0], [0, 1]]), LIP(math.log(2)))
    >>> coin.channel.round(6)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    a = joint.a
    checked_size(a, a, "Randomised response", "Merge rare values, publish fewer columns, or use unary-encoding.")
    outputs = joint.values

    def member(alpha: float) -> Protocol:
        loss = math.exp(-alpha)
        stays = 1 / (1 + (a - 1) * loss)
        channel = np.full((a, a), loss * stays)
        np.fill_diagonal(channel, stays)
        return Protocol(channel, outputs, alpha=alpha)

    def affine(events: csr_array) -> tuple[FloatArray, FloatArray]:
        return events.toarray(), np.ones((1, 1))

    blocks = tuple(promise.comparisons(joint, False))
    return _least_random("randomised response", promise, blocks, member, lambda: _interval(promise, blocks, affine))


def conditional_reporting(joint: Joint, promise: Promise) -> Protocol:
    r"""The least random conditional reporting that keeps the promise: tell x with a weight of :math:`e^{\alpha}`, and
    for every other secret, with a weight of 1, a value drawn from those who have it:

    .. math:: q(y|s,x) = \frac{e^{\alpha} [x = y] + \sum_{s' \ne s} p(y|s')}{e^{\alpha} + c - 1}.

    It looks at the secret. Under LIP and LDP :math:`\alpha = 0` tells nothing about the secret, though something about
    the value. Against someone who knows attributes (SRLIP), or has another prior, even :math:`\alpha = 0` leaks.

    Raises
    ------
    GuaranteeError
        If no :math:`\alpha` keeps the promise, or, for an ε of about 1e-15 and less, if rounding hides that one does.
    """
    c, a = joint.c, joint.a
    checked_size(c * a, a, "Conditional reporting", "Merge rare values, publish fewer columns, or use unary-encoding.")
    outputs = joint.values
    others = (1 - np.eye(c)) @ joint.p_x_given_s  # not a sum less a term: where all terms are 0, this is 0

    def member(alpha: float) -> Protocol:
        loss = math.exp(-alpha)
        tells = 1 / (1 + (c - 1) * loss)
        channel = np.repeat(others * (loss * tells), a, axis=0)
        pairs = np.arange(c * a)
        channel[pairs, pairs % a] += tells
        return Protocol(channel, outputs, sees_secret=True, alpha=alpha)

    def affine(events: csr_array) -> tuple[FloatArray, FloatArray]:
        cells = coo_array(events)
        event, pair = cells.coords
        p_x = coo_array((cells.data, (event, pair % a)), shape=(events.shape[0], a)).toarray()
        p_s = coo_array((cells.data, (event, pair // a)), shape=(events.shape[0], c)).toarray()
        return p_x, p_x + p_s @ others

    blocks = tuple(promise.comparisons(joint, True))
    return _least_random("conditional reporting", promise, blocks, member, lambda: _interval(promise, blocks, affine))


def unary_encoding(joint: Joint, promise: Promise) -> UnaryEncoding:
    r"""The least random optimised unary encoding that keeps the promise.

    For a set y of values :math:`A_E(y) = P(X \in y|E)` and :math:`C = 1`, so that over all sets

    .. math:: k \le \frac{e^{\varepsilon} - 1}{\max_{E,F} \sum_x \max(0, P(x|E) - e^{\varepsilon} P(x|F))}.
    """
    outputs = joint.values
    blocks = tuple(promise.comparisons(joint, False))

    def member(alpha: float) -> UnaryEncoding:
        return UnaryEncoding(joint.a, alpha, outputs)

    def interval() -> tuple[float, float]:
        bound = math.exp(min(promise.epsilon, LARGEST_ALPHA))
        excess = 0.0
        for block in blocks:
            for _, events, others in _chunks(block):
                p, q = events.toarray(), others.toarray()
                for more, less in ((p, q), (q, p)):
                    excess = max(excess, float(np.maximum(more - bound * less, 0.0).sum(axis=1).max()))
        return 0.0, (bound - 1) / excess if excess > 0 else math.inf

    return _least_random("unary encoding", promise, blocks, member, interval)


EXPLICIT: dict[str, Callable[[Joint, Promise], Protocol | UnaryEncoding]] = {
    "randomised-response": randomised_response,
    "unary-encoding": unary_encoding,
    "conditional-reporting": conditional_reporting,
}


@dataclass(frozen=True, slots=True, eq=False)
class UnaryEncoding:
    r"""Optimised unary encoding: publish a set of values. Each is in it by a draw of its own, the true one with chance
    1/2, every other one with chance :math:`q = 1/(e^{\alpha} + 1)`.

    With :math:`k = e^{\alpha} - 1` the set y has :math:`P(y|E) \propto 1 + k\,P(X \in y|E)`.
    """

    a: int  # how many values there are
    alpha: float
    outputs: tuple[Labels, ...] = ()  # what the members of a set are called, one label per published column

    def __post_init__(self) -> None:
        if not (0 <= self.alpha <= LARGEST_ALPHA or self.alpha == math.inf):
            raise ParameterError(f"α must be between 0 and {LARGEST_ALPHA:g}, or infinite; it is {self.alpha}.")
        outputs = self.outputs or tuple((str(x),) for x in range(self.a))
        if len(outputs) != self.a or self.a < 1:
            raise DistributionError(f"Labels must match the values; {len(outputs)} label {self.a}.")
        object.__setattr__(self, "outputs", outputs)

    @property
    def sees_secret(self) -> bool:
        """It looks at the values only."""
        return False

    @property
    def foreign(self) -> float:
        """The chance q that a value which is not the true one is in the set."""
        loss = math.exp(-self.alpha)
        return loss / (1 + loss)

    def fits(self, joint: Joint) -> bool:
        """Whether the values are as many as the joint has."""
        return self.a == joint.a

    def worst(self, comparisons: Comparisons) -> Leak:
        r"""The set and pair of events with the largest :math:`|\ln \frac{1 + k P(y|E)}{1 + k P(y|F)}|`.

        Among all sets the best for r = max of the ratio is :math:`\{x : P(x|E) > r P(x|F)\}`, a prefix of the values
        sorted by :math:`P(x|E)/P(x|F)`; for the smallest ratio it is a suffix. So a sort does for :math:`2^a` sets.
        At :math:`\alpha = \infty` only single values and the empty set are published.
        """
        if comparisons.inputs != self.a:
            raise DistributionError(
                f"A protocol must have a value per input; it has {self.a}, the table {comparisons.inputs}."
            )
        largest = Leak(0.0)
        for first, events, others in _chunks(comparisons):
            size, row, output = self._worst_set(events.toarray(), others.toarray())
            if size > largest.epsilon or largest.output is None:
                largest = comparisons.leak(size, first + row, output)
        return largest

    def _worst_set(self, p: FloatArray, q: FloatArray) -> tuple[float, int, tuple[int, ...]]:
        """The largest log-ratio over rows of p and q and sets of columns: its size, row and set."""
        if self.alpha == math.inf:
            sizes = log_ratio(p, q)
            row, x = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
            return float(sizes[row, x]), row, (x,)
        k = math.expm1(self.alpha)
        ratio = np.divide(p, q, out=np.where(p > 0, math.inf, 1.0), where=q > 0)
        falling = np.argsort(-ratio, axis=1, kind="stable")
        found = []
        for order in (falling, falling[:, ::-1]):
            p_in, q_in = np.take_along_axis(p, order, axis=1), np.take_along_axis(q, order, axis=1)
            p_y, q_y = p_in.cumsum(axis=1), q_in.cumsum(axis=1)
            # ln of the larger over the smaller, written so that a small one keeps its digits
            sizes = np.log1p(k * np.abs((p_in - q_in).cumsum(axis=1)) / (1 + k * np.minimum(p_y, q_y)))
            row, last = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
            members = order[row, : last + 1]
            matters = (p[row, members] > 0) | (q[row, members] > 0)
            found.append((float(sizes[row, last]), row, tuple(sorted(map(int, members[matters])))))
        return max(found, key=lambda leak: leak[0])

    def mutual_information(self, joint: Joint) -> float:
        r"""I(X;Y) in nats, within :math:`10^{-13} (1 + \alpha)`, for any number of values.

        Let :math:`Z = 1 + k\,p_X(Y) \ge 1`. Then :math:`\ln q(y|x)/p(y) = \alpha [x \in y] - \ln z`, and
        :math:`I = \alpha/2 - E[\ln Z]`. As :math:`\ln z = \int_0^\infty (e^{-u} - e^{-uz})\,du/u`,

        .. math:: E[\ln Z] = \int_{-\infty}^{\infty} (e^{-u} - E[e^{-uZ}])\,dv, \quad u = e^v,

        where :math:`E[e^{-uZ}]` is a product over the values. The integrand is analytic for
        :math:`|\mathrm{Im}\,v| < \pi/2` and its integral along :math:`\mathrm{Im}\,v = \theta` is at most
        :math:`\alpha/\cos\theta` in absolute value (Frullani), so the trapezoidal rule with step h is wrong by at most
        :math:`2\alpha / (\cos\theta\,(e^{2\pi\theta/h} - 1))`: under :math:`10^{-18} \alpha` at
        :math:`\theta = 1.5, h = 3/16`. What is cut off at the ends is under :math:`10^{-17}`; the rest is rounding.
        """
        p_x = joint.p_x
        if self.alpha == math.inf:  # the value itself, or the empty set
            return entropy(p_x) / 2
        if self.alpha == 0:
            return 0.0
        k, q, h = math.expm1(self.alpha), self.foreign, 0.1875
        first, last = -41.5 - max(0.0, math.log(k)), math.log(40.0)
        grid = h * np.arange(math.floor(first / h), math.ceil(last / h) + 1)
        mean_log = 0.0
        rows = max(1, _CHUNK // self.a)
        for start in range(0, len(grid), rows):
            v = grid[start : start + rows]
            missing = np.expm1(-np.exp(v + math.log(k))[:, None] * p_x)  # e^{-u k p_x} - 1
            in_or_out = np.log1p(q * missing)
            own = np.log1p((0.5 - q) * ((missing / (1 + q * missing)) @ p_x))
            mean_log += h * float((-np.exp(-np.exp(v)) * np.expm1(in_or_out.sum(axis=1) + own)).sum())
        return max(0.0, self.alpha / 2 - mean_log)


def _chunks(block: Comparisons) -> Iterator[tuple[int, csr_array, csr_array]]:
    """The pairs of events a few at a time: the first pair's number, P(input | E) and P(input | F)."""
    p = block.distributions
    rows = max(1, _CHUNK // block.inputs)
    for first in range(0, len(block.pairs), rows):
        pairs = block.pairs[first : first + rows]
        yield first, p[pairs[:, 0]], p[pairs[:, 1]]


def _interval(
    promise: Promise,
    blocks: Sequence[Comparisons],
    affine: Callable[[csr_array], tuple[FloatArray, FloatArray]],
) -> tuple[float, float]:
    """The smallest and the largest k that keep the promise; empty when the first is above the second."""
    bound = math.exp(min(promise.epsilon, LARGEST_ALPHA))
    low, high = 0.0, math.inf
    for block in blocks:
        for _, events, others in _chunks(block):
            e, f = affine(events), affine(others)
            for (a_e, c_e), (a_f, c_f) in ((e, f), (f, e)):
                slope = a_e - bound * a_f
                room = np.broadcast_to(bound * c_f - c_e, slope.shape)
                if bool(((slope == 0) & (room < 0)).any()):
                    return math.inf, 0.0
                above = np.divide(room, slope, out=np.full_like(slope, math.inf), where=slope > 0)
                below = np.divide(room, slope, out=np.zeros_like(slope), where=slope < 0)
                low, high = max(low, float(below.max())), min(high, float(above.min()))
    return low, high


def _least_random(
    family: str,
    promise: Promise,
    blocks: Sequence[Comparisons],
    member: Callable[[float], Member],
    interval: Callable[[], tuple[float, float]],
) -> Member:
    """The member of largest α whose measured leakage is at most ε."""

    def kept(alpha: float) -> bool:
        candidate = member(alpha)
        return all(candidate.worst(block).epsilon <= promise.epsilon for block in blocks)

    if kept(math.inf):
        return member(math.inf)
    low, high = interval()
    alpha = _last_kept(kept, min(math.log1p(max(high, 0.0)), LARGEST_ALPHA)) if low <= high else None
    if alpha is None:
        raise GuaranteeError(
            f"{promise.name} promised ε = {promise.epsilon:g}; {family} leaks more at every α. "
            "Ask for a larger ε, or use randomised-response."
        )
    return member(alpha)


def _last_kept(kept: Callable[[float], bool], start: float) -> float | None:
    """The last float that is kept: on the way up from `start` if that is kept, else the first on the way down."""
    inside = kept(start)
    near, step = start, start * _STEP
    for _ in range(_STEPS):
        far = min(start + step, LARGEST_ALPHA) if inside else max(start - step, 0.0)
        if far == near:
            return near if inside else None
        if kept(far) != inside:
            break
        near, step = far, 2 * step
    else:
        return near if inside else None
    keeps, breaks = (near, far) if inside else (far, near)
    while keeps < (middle := (keeps + breaks) / 2) < breaks:
        keeps, breaks = (middle, breaks) if kept(middle) else (keeps, middle)
    return keeps
