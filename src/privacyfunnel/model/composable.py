r"""A promise whose releases add up: besides, no output is more likely by more than e^A under one value than another,

.. math:: q(y \mid x) \le e^{A} q(y \mid x') \quad\text{for all } x, x', y.

Then a release that is made independently of all others adds at most A to what they leak together, whatever they were
made from, and whatever somebody believes of how its values go with theirs (docs/theory.md, Theorem 77).

And a promise about what was published of a person before, h, together with what is published now, y:

.. math:: e^{-\varepsilon} \le \frac{P(h, y \mid s)}{P(h, y)}
   = \frac{P(h \mid s)}{P(h)} \cdot \frac{P(y \mid s, h)}{P(y \mid h)} \le e^{\varepsilon} .

For every h this is a promise about y at the prior P(s, x | h), with events that are parts of their condition. There may
be several beliefs about how x changed since: a promise under each holds under every mixture, for chances are linear in
them (Theorem 78).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import Comparisons, check_comparison_size, scale_below
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promise_base import ExtendedPromise, Promise, inner


def most_information(limit: float) -> float:
    """The most nats that an output can tell of the value: m − 1 − ln m with m = A / (1 − e^−A) (Theorem 77a)."""
    m = limit / -math.expm1(-limit)
    return m - 1.0 - math.log(m)


@dataclass(frozen=True)
class ComposablePromise(ExtendedPromise, named=False):
    """A promise, and that no two values make an output likely by factors that differ by more than e^A."""

    limit: float  # A

    def __post_init__(self) -> None:
        super().__post_init__()
        promise = self.promise
        if promise.population is not None or promise.components is not None or promise.odds is not None:
            raise ParameterError(
                f"{hint('composable')} goes with a promise at one prior; {promise.name} was asked for a population, "
                "several priors or odds. Leave one of them out."
            )
        if not check_epsilon(self.limit) > 0:
            raise ParameterError(f"{hint('composable')} must be above 0: at 0 nothing could be published.")
        object.__setattr__(self, "composable", float(self.limit))

    table_promise = inner("table_promise")

    def reduce(self, epsilon: Fraction, secrets: Sequence[str]) -> ComposablePromise:
        return ComposablePromise(self.promise.reduce(epsilon, secrets), self.limit)

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        if sees_secret:
            raise ParameterError(
                f"{hint('composable')} goes with mechanisms that read only what is published. Leave out "
                f"{hint('sees_secret')}."
            )
        yield from self.promise.comparisons(joint, sees_secret)
        pairs = np.column_stack(np.triu_indices(joint.a, 1))
        check_comparison_size(joint.a, len(pairs))
        each = np.arange(joint.a)
        yield Comparisons(
            inputs=joint.a,
            event=each,
            input=each,
            weight=np.ones(joint.a, dtype=np.int64),
            secrets=np.ones((joint.a, joint.c), dtype=bool),
            of_class=np.zeros(joint.a, dtype=np.int64),
            pairs=pairs,
            known=(),
            known_labels=np.zeros((1, 0), dtype=np.int64),
            scales=np.full((len(pairs), 2), scale_below(self.limit, self.epsilon)),
            mixed=True,
        )

    def constraints(self, joint: Joint, sees_secret: bool = False) -> LinearConstraints:
        return Promise.constraints(self, joint, sees_secret)


@dataclass(frozen=True, eq=False)
class AfterPromise(ExtendedPromise, named=False):
    """A promise about what was published before and what is published now, at the prior given what was before."""

    totals: tuple[int, ...]  # the weight of every secret before anything was published
    beliefs: tuple[NDArray[Any], ...] = ()  # weights c × a under each of which it holds; without any, the joint's own

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        for weights in self.beliefs or (joint.weights,):
            yield from self._compare(joint, weights, sees_secret)

    def _compare(self, joint: Joint, weights: NDArray[Any], sees_secret: bool) -> Iterator[Comparisons]:
        totals, occurs = np.array(self.totals, dtype=object), np.flatnonzero(weights.sum(axis=0))
        given = replace(joint, weights=weights[:, occurs], combos=joint.combos[occurs])
        for block in self.promise.comparisons(given, sees_secret):
            if block.known or sees_secret or block.mixed:
                raise ParameterError(
                    "After an earlier release a promise compares groups of secrets among everybody, by what is "
                    f"published alone; {self.promise.name} does not. Use LIP, PML, ALIP or LDP."
                )
            whole = np.array([totals[held].sum() for held in block.secrets], dtype=object)
            # Both sides over P(h), which may be small: the same ratios, by numbers that floats can tell apart.
            weight, seen = block.weight.astype(object) * int(totals.sum()), int(weights.sum())
            whole, among = whole * seen, occurs[block.input]
            yield replace(block, inputs=joint.a, input=among, weight=weight, condition_totals=whole, mixed=True)

    def constraints(self, joint: Joint, sees_secret: bool = False) -> LinearConstraints:
        return Promise.constraints(self, joint, sees_secret)
