"""What a promise would cost and give, for several sizes of it, before anything is published.

For each ε the best protocol is designed and certified as a release would, and then judged as an analyst would judge it:
by how near estimates of shares come (`expected`). Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privacyfunnel.designs.method_selection import DEFAULT_METHOD, apply_default_use, resolve_method
from privacyfunnel.designs.methods import Effort, Options, find_method
from privacyfunnel.estimation.expected_precision import ExpectedPrecision, expected_precision_by_column
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
SECONDS = 4.0  # for each of them: a rough protocol tells enough to choose


@dataclass(frozen=True, slots=True, eq=False)
class Consequence:
    """What a promise of one size allows, and what it leaves to an analyst."""

    promise: Promise
    shares: tuple[ExpectedPrecision, ...]  # of each column; none where the protocol is made while it draws
    unknown: str = ""  # why there are none

    def belief_range(self, prior: float) -> tuple[float, float]:
        """Between what a belief may come to lie."""
        return self.promise.belief_bounds(prior, self.promise.epsilon)

    def to_dict(self, prior: float) -> dict[str, Any]:
        """As one object of JSON."""
        return {
            "epsilon": self.promise.epsilon,
            "belief": prior,
            "becomes": self.belief_range(prior),
            "shares_within": [told.to_dict() for told in self.shares],
            "unknown": self.unknown,
        }


def consequences(
    joint: Joint, rows: int, promise: Promise, epsilons: Sequence[float] = EPSILONS, seconds: float = SECONDS
) -> tuple[Consequence, ...]:
    """What each size of the promise would mean for this table; `rows` is how many it has."""
    return tuple(_consequence(joint, rows, promise.with_epsilon(epsilon), seconds) for epsilon in epsilons)


def _consequence(joint: Joint, rows: int, promise: Promise, seconds: float) -> Consequence:
    choice, options = resolve_method(DEFAULT_METHOD, joint, promise, Options(effort=Effort(time_limit=seconds)))
    choice, options = apply_default_use(choice, joint, promise, options)
    mine = find_method(choice.method)
    if mine.trial is not None:  # then a design takes long
        return Consequence(promise, (), f"a {choice.method} takes too long to be made for each ε")
    sealed = mine.design(joint, promise, options).seal()
    return Consequence(promise, expected_precision_by_column(sealed, joint, rows))
