r"""Sets of priors: for every event a promise compares, all distributions that its people may have.

A set is a box cut by the simplex, with ends that are multiples of 2⁻⁴⁰:

.. math:: U_E = \{P : l_E \le P \le u_E,\ \textstyle\sum_z P(z) = 1\}.

The largest and the least P(y | E) of an output with likelihoods f are the greedy ones: begin at l, hand out the rest
where f is largest, or least,

.. math:: h_E(f) = \max_{P \in U_E} P \cdot f, \qquad l_E(f) = \min_{P \in U_E} P \cdot f.

A pair compares the people of E with those of E and F together, of whom at least a share π are E's (π = 0 compares E
with F itself). Over all members the largest ratios, either way up, are

.. math:: \frac{h_E}{\pi h_E + (1 - \pi) l_F}, \qquad \frac{\pi l_E + (1 - \pi) h_F}{l_E},

both largest at the least share (docs/theory.md, Theorem 45).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from typing import Protocol as Shape

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.errors import DistributionError
from privacyfunnel.model.comparisons import EVERYBODY, Comparisons, Leak, Secrets
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.joint import Joint

Known = tuple[tuple[int, int], ...]  # (attribute, label) pairs that an attacker knows


@dataclass(frozen=True, eq=False)
class CredalSets:
    """Boxes of distributions over a protocol's inputs, one per event, and which of them are compared."""

    low: IntArray  # (k, inputs), numerators over 2⁴⁰; 0 outside the event's class
    high: IntArray  # (k, inputs)
    secrets: BoolArray  # (k, c), the secrets of each event
    known: tuple[Known, ...]  # of each event: the labels that everybody in its class shares
    pairs: IntArray  # (n, 2), numbers of events E and F, which share nobody
    share: IntArray  # (n,), the least share π of E among the people of both, over 2⁴⁰; 0 compares E with F itself

    def __post_init__(self) -> None:
        fits = (self.low >= 0).all() and (self.low <= self.high).all() and (self.high <= SCALE).all()
        sums = (self.low.sum(axis=1) <= SCALE) & (self.high.sum(axis=1) >= SCALE)
        if not (fits and sums.all() and ((self.share >= 0) & (self.share <= SCALE)).all()):
            raise DistributionError("Every set of priors must hold a distribution; one does not. Widen its bounds.")

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return int(self.low.shape[1])

    @classmethod
    def concatenate(cls, parts: Sequence[CredalSets]) -> CredalSets:
        """The sets and pairs of all parts."""
        first = np.cumsum([0, *(len(part.low) for part in parts)])[:-1]
        return cls(
            low=np.concatenate([part.low for part in parts]),
            high=np.concatenate([part.high for part in parts]),
            secrets=np.concatenate([part.secrets for part in parts]),
            known=tuple(known for part in parts for known in part.known),
            pairs=np.concatenate([part.pairs + start for part, start in zip(parts, first, strict=True)]),
            share=np.concatenate([part.share for part in parts]),
        )

    def select_secret(self, secret: int) -> CredalSets:
        """Those pairs alone whose E is this secret, or whose F is where two are compared with each other."""
        alone = self.secrets[:, secret] & (self.secrets.sum(axis=1) == 1)
        e, f = self.pairs.T
        mine = alone[e] | (alone[f] & (self.share == 0))
        return replace(self, pairs=self.pairs[mine], share=self.share[mine])

    # -- worst members -----------------------------------------------------------------------------------------

    def greedy_members(self, order: IntArray) -> IntArray:
        """Of every set the member that has as much as it can of the first inputs of `order`, (k, inputs)."""
        room = (self.high - self.low)[:, order]
        spent = np.cumsum(room, axis=1) - room
        left = SCALE - self.low.sum(axis=1, keepdims=True)
        found = self.low.copy()
        found[:, order] += np.clip(left - spent, 0, room)
        return found

    def extremes(self, likelihoods: FloatArray) -> tuple[FloatArray, FloatArray]:
        """h_E(f) and l_E(f) for every column f of `likelihoods`, (k, columns) each.

        Members are exact in floats. What all inputs have in common is taken out of the sums, so that an output which
        does not depend on the input tells exactly nothing.
        """
        highest, lowest = np.empty((2, len(self.low), likelihoods.shape[1]))
        for y, f in enumerate(likelihoods.T):
            order = np.argsort(f, kind="stable")
            least, more = f[order[0]], (f - f[order[0]]) / SCALE
            highest[:, y] = least + self.greedy_members(order[::-1]) @ more
            lowest[:, y] = least + self.greedy_members(order) @ more
        return highest, lowest

    def evaluate(self, likelihoods: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What every pair compares, either way up, for every column: the first is at most e^ε times the second."""
        highest, lowest = self.extremes(likelihoods)
        (e, f), pi = self.pairs.T, (self.share / SCALE)[:, None]
        up, down = (
            (highest[e], pi * highest[e] + (1 - pi) * lowest[f]),
            (pi * lowest[e] + (1 - pi) * highest[f], lowest[e]),
        )
        return np.concatenate([up[0], down[0]]), np.concatenate([up[1], down[1]])

    def inverse_ratios(self, likelihoods: FloatArray) -> tuple[FloatArray, FloatArray]:
        """l_F / h_E and l_E / h_F of every pair and column, (n, columns): 1 where both are 0."""
        highest, lowest = self.extremes(likelihoods)
        e, f = self.pairs.T
        return _safe_ratio(lowest[f], highest[e]), _safe_ratio(lowest[e], highest[f])

    def ratios(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """The larger of the ratios above, at least 1, for such likenesses of every pair, (n, …)."""
        pi = (self.share / SCALE).reshape(-1, *[1] * (one.ndim - 1))
        with np.errstate(divide="ignore"):
            up, down = 1 / (pi + (1 - pi) * one), pi + np.where(pi < 1, (1 - pi) / other, 0.0)
        return np.asarray(np.maximum(np.maximum(up, down), 1.0))

    def worst(self, likelihoods: FloatArray) -> Leak:
        """The output, a column of likelihoods by input, and the pair with the largest log-ratio over all members."""
        if len(likelihoods) != self.inputs:
            raise DistributionError(
                f"A protocol must have a row per input; it has {len(likelihoods)}, the table {self.inputs}."
            )
        sizes = np.log(self.ratios(*self.inverse_ratios(likelihoods)))
        if not sizes.size:
            return Leak(0.0)
        pair, y = np.unravel_index(int(sizes.argmax()), sizes.shape)
        return self.leak(float(sizes[pair, y]), int(pair), int(y))

    def leak(self, epsilon: float, pair: int, output: Any) -> Leak:
        """The leak of that size at that pair and output."""
        e, f = self.pairs[pair]
        together = self.secrets[e] | self.secrets[f] if self.share[pair] else self.secrets[f]
        return Leak(epsilon, output, _secret_numbers(self.secrets[e]), _secret_numbers(together), self.known[e])


def _secret_numbers(held: BoolArray) -> Secrets:
    return EVERYBODY if held.all() else tuple(map(int, np.flatnonzero(held)))


def _safe_ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.ones_like(whole), where=whole > 0)


class Comparable(Shape):
    """What a promise and an information measure need of a sanitisation protocol, of whatever shape."""

    @property
    def sees_secret(self) -> bool: ...

    def worst(self, comparisons: Comparisons) -> Leak:
        """The output and pair of events with the largest log-ratio."""

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """The same where only a set of distributions is known for each event: the largest over all their members."""

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats."""
