"""Optimised unary encoding, which the paper compares with: a protocol that publishes sets of values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, dense
from privacyfunnel.designs.baselines import LARGEST_ALPHA, calibrate
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.comparisons import Comparisons, Leak, leak_sizes, pair_chunks
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

_CHUNK = 1 << 20  # entries of a dense array that are worked on at a time


@dataclass(frozen=True, slots=True, eq=False)
class UnaryEncoding:
    r"""Optimised unary encoding: publish a set of values. Each is in it by a draw of its own, the true one with chance
    1/2, every other one with chance :math:`q = 1/(e^{\alpha} + 1)`.

    With :math:`k = e^{\alpha} - 1` the set y has :math:`P(y|E) \propto 1 + k\,P(X \in y|E)`.
    """

    a: int  # how many values there are
    alpha: float

    @property
    def sees_secret(self) -> bool:
        """It looks at the values only."""
        return False

    @property
    def foreign(self) -> float:
        """The chance q that a value which is not the true one is in the set."""
        loss = math.exp(-self.alpha)
        return loss / (1 + loss)

    def worst(self, comparisons: Comparisons) -> Leak:
        r"""The set and pair of events with the largest :math:`|\ln \frac{1 + k P(y|E)}{1 + k P(y|F)}|`.

        Among all sets the best for r = max of the ratio is :math:`\{x : P(x|E) > r P(x|F)\}`, a prefix of the values
        sorted by :math:`P(x|E)/P(x|F)`; for the smallest ratio it is a suffix. So a sort does for :math:`2^a` sets.
        At :math:`\alpha = \infty` only single values and the empty set are published.
        """
        largest = Leak(0.0)
        for first, events, others in pair_chunks(comparisons):
            scales = None if comparisons.scales is None else comparisons.scales[first : first + events.shape[0]]
            size, row, output = self._worst_set(dense(events), dense(others), scales)
            if size > largest.epsilon or largest.output is None:
                largest = comparisons.leak(size, first + row, output)
        return largest

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """Refused: the paper has no sets of priors."""
        raise ParameterError("Unary encoding is measured for one prior, as in the paper; a set of priors was given.")

    def _worst_set(self, p: FloatArray, q: FloatArray, scales: FloatArray | None) -> tuple[float, int, tuple[int, ...]]:
        """The largest leak over rows of p and q and sets of columns: its size, row and set."""
        if self.alpha == math.inf:
            sizes = leak_sizes(p, q, scales)
            row, x = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
            return float(sizes[row, x]), row, (x,)
        k = math.expm1(self.alpha)
        ratio = np.divide(p, q, out=np.where(p > 0, math.inf, 1.0), where=q > 0)
        falling = np.argsort(-ratio, axis=1, kind="stable")
        found = []
        for way, order in enumerate((falling, falling[:, ::-1])):
            p_in, q_in = np.take_along_axis(p, order, axis=1), np.take_along_axis(q, order, axis=1)
            p_y, q_y = p_in.cumsum(axis=1), q_in.cumsum(axis=1)
            # ln of the larger over the smaller, written so that a small one keeps its digits
            sizes = np.log1p(k * np.abs((p_in - q_in).cumsum(axis=1)) / (1 + k * np.minimum(p_y, q_y)))
            if scales is not None:  # along each order only one side is above the other
                sizes = sizes / scales[:, way, None]
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


def unary_encoding(joint: Joint, promise: Promise) -> UnaryEncoding:
    r"""The least random optimised unary encoding (OUE) that keeps the promise.

    For a set y of values :math:`A_E(y) = P(X \in y|E)` and :math:`C = 1`, so that over all sets

    .. math:: k \le \frac{e^{\varepsilon} - 1}{\max_{E,F} \sum_x \max(0, P(x|E) - e^{\varepsilon} P(x|F))}.
    """
    blocks = tuple(promise.comparisons(joint, False))

    def member(alpha: float) -> UnaryEncoding:
        return UnaryEncoding(joint.a, alpha)

    def interval() -> tuple[float, float]:
        bound = math.exp(min(promise.epsilon, LARGEST_ALPHA))
        excess = 0.0
        for block in blocks:
            for _, events, others in pair_chunks(block):
                p, q = dense(events), dense(others)
                for more, less in ((p, q), (q, p)):
                    excess = max(excess, float(np.maximum(more - bound * less, 0.0).sum(axis=1).max()))
        return 0.0, (bound - 1) / excess if excess > 0 else math.inf

    return calibrate("unary encoding", promise, blocks, promise.credal_sets(joint), member, interval)
