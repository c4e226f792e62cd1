r"""The next release given the last: a protocol q(y₂ | x, y₁) under which all releases together keep one ε.

What was published of a person before, h = (y₁, …), is known. Given it a secret's odds have moved by
:math:`P(h|s) / P(h)`, and what is left of ε is

.. math:: e^{-\varepsilon} \le \frac{P(h, y \mid s)}{P(h, y)}
   = \frac{P(h \mid s)}{P(h)} \cdot \frac{P(y \mid s, h)}{P(y \mid h)} \le e^{\varepsilon} .

For every h this is a promise about y at the prior P(s, x | h), with events that are parts of their condition, and the
engine solves it as any other. Between releases people may change: their x moves by a kernel. All of it is integers
(docs/theory.md, Theorem 78).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError, SizeError
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promise_base import ExtendedPromise, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.use import Information, Use

MOST_HISTORIES = 10_000
MOST_CHANCES = 10**7
ROUNDING = 1e-9  # by which floats may call a leak too large; the seal compares integers

Outputs = tuple[int, ...]  # the number of the output of each release so far


@dataclass(frozen=True)
class AfterPromise(ExtendedPromise, named=False):
    """A promise about what was published before and what is published now, at the prior given what was before."""

    totals: tuple[int, ...]  # the weight of every secret before anything was published

    def __init__(self, promise: Promise, totals: tuple[int, ...]) -> None:
        for name, value in (("promise", promise), ("totals", totals), ("epsilon", promise.epsilon)):
            object.__setattr__(self, name, value)

    def with_epsilon(self, epsilon: float) -> AfterPromise:
        return AfterPromise(self.promise.with_epsilon(epsilon), self.totals)

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        totals = np.array(self.totals, dtype=object)
        for block in self.promise.comparisons(joint, sees_secret):
            if block.known or sees_secret or block.mixed:
                raise ParameterError(
                    "After an earlier release a promise compares groups of secrets among everybody, by what is "
                    f"published alone; {self.promise.name} does not. Use LIP, PML, ALIP or LDP."
                )
            whole = np.array([totals[held].sum() for held in block.secrets], dtype=object)
            # Both sides over P(h), which may be small: the same ratios, by numbers that floats can tell apart.
            weight, seen = block.weight.astype(object) * int(totals.sum()), int(joint.weights.sum())
            yield replace(block, weight=weight, condition_totals=whole * seen, mixed=True)

    def constraints(self, joint: Joint, sees_secret: bool = False) -> LinearConstraints:
        return Promise.constraints(self, joint, sees_secret)


@dataclass(frozen=True, eq=False)
class History:
    """What was published so far: the weights of secret and value together with every sequence of outputs."""

    joint: Joint  # the prior, before anything was published: secrets, attributes, combinations
    states: Mapping[Outputs, NDArray[Any]]  # c × a integers, over `unit` times the total of the prior
    unit: int

    @classmethod
    def start(cls, joint: Joint) -> History:
        """Nothing was published."""
        return cls(joint, {(): joint.weights.astype(object)}, 1)

    @property
    def totals(self) -> tuple[int, ...]:
        """The weight of every secret, whatever was published."""
        return tuple(int(n) * self.unit for n in self.joint.weights.sum(axis=1))

    def move(self, kernel: ArrayLike) -> History:
        """The same people later: `kernel[x, x']` of every `kernel[x].sum()`, alike for all x, have changed to x'."""
        moves = np.asarray(kernel, dtype=object)
        rows = {int(row.sum()) for row in moves}
        if moves.shape != (self.joint.a, self.joint.a) or len(rows) != 1 or (moves < 0).any() or 0 in rows:
            raise ParameterError("Changes must be whole numbers of at least 0 whose rows sum to the same; they do not.")
        return replace(self, states={h: w @ moves for h, w in self.states.items()}, unit=self.unit * rows.pop())

    def publish(self, mechanisms: Mapping[Outputs, Mechanism]) -> History:
        """The history after each of its sequences was followed by an output of its own mechanism."""
        states: dict[Outputs, NDArray[Any]] = {}
        unit = 0
        for h, weights in self.states.items():
            numerators = mechanisms[h].numerators(MOST_CHANCES)
            if numerators is None or mechanisms[h].sees_secret:
                raise SizeError("What was released before must be a list of outputs that did not look at the secret.")
            unit, occurs = int(numerators[:, 0].sum()), np.flatnonzero(weights.sum(axis=0))
            after = np.zeros((len(numerators), self.joint.a), dtype=object)
            after[:, occurs] = numerators if numerators.shape[1] == len(occurs) else numerators[:, occurs]
            states |= {(*h, y): weights * row for y, row in enumerate(after) if (weights * row).any()}
        if len(states) > MOST_HISTORIES:
            raise SizeError(f"At most {MOST_HISTORIES:,} sequences of outputs are told apart; there are more.")
        return replace(self, states=states, unit=self.unit * unit)

    def design(self, promise: Promise, use: Use | None = None) -> dict[Outputs, SealedProtocol]:
        """The best protocol after every sequence of outputs, sealed: all releases together keep the promise.

        Raises
        ------
        GuaranteeError
            If what was published already leaks more than ε, or integers do not keep the promise.
        """
        together = AfterPromise(promise, self.totals)
        found = {}
        for h, weights in self.states.items():
            occurs = np.flatnonzero(weights.sum(axis=0))
            given = replace(self.joint, weights=weights[:, occurs], combos=self.joint.combos[occurs])
            leak = together.leakage(given, Protocol(np.ones((given.a, 1))))  # of a constant: what is known by now
            if leak > together.epsilon * (1 + ROUNDING):
                raise GuaranteeError(
                    f"All releases together must keep {promise.name} ε = {promise.epsilon:g}; what was published "
                    f"before leaks {leak:.6g}, so nothing is left. Allow a larger ε, or publish nothing more."
                )
            best = optimal(given, together, use or Information())
            found[h] = seal(best.protocol, together, given, bound=best.bound)
        return found
