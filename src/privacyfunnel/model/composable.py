r"""A promise whose releases add up: besides, no output is more likely by more than e^A under one value than another,

.. math:: q(y \mid x) \le e^{A} q(y \mid x') \quad\text{for all } x, x', y.

Then a release that is made independently of all others adds at most A to what they leak together, whatever they were
made from, and whatever somebody believes of how its values go with theirs (docs/theory.md, Theorem 77).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import Comparisons, check_comparison_size, scale_below
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promise_base import ExtendedPromise, Promise


@dataclass(frozen=True)
class ComposablePromise(ExtendedPromise, named=False):
    """A promise, and that no two values make an output likely by factors that differ by more than e^A."""

    limit: float  # A

    def __init__(self, promise: Promise, limit: float) -> None:
        if promise.population is not None or promise.components is not None or promise.odds is not None:
            raise ParameterError(
                f"{hint('composable')} goes with a promise at one prior; {promise.name} was asked for a population, "
                "several priors or odds. Leave one of them out."
            )
        if not check_epsilon(limit) > 0:
            raise ParameterError(f"{hint('composable')} must be above 0: at 0 nothing could be published.")
        for name, value in (("promise", promise), ("limit", float(limit)), ("epsilon", promise.epsilon)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "composable", self.limit)

    @property
    def table_promise(self) -> Promise:
        return self.promise.table_promise

    def with_epsilon(self, epsilon: float) -> ComposablePromise:
        return ComposablePromise(self.promise.with_epsilon(epsilon), self.limit)

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
