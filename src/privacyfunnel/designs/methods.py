"""Methods: the names under which protocols are asked for, and what makes each.

A method takes a joint and a promise and answers with a protocol that keeps it, and, where it proved one, with an upper
bound on what any protocol could keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privacyfunnel.designs.explicit import EXPLICIT
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocol import Protocol
from privacyfunnel.model.unary_encoding import UnaryEncoding
from privacyfunnel.tables.names import nearest

Progress = Callable[[float, float], None]  # called with utility and bound, now and then


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a search goes: the gap at which it may stop, and the seconds after which it must."""

    gap: float = 1e-6
    time_limit: float | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A protocol, and the bound that was proved for it in nats, if any."""

    protocol: Protocol | UnaryEncoding
    bound: float | None = None

    @property
    def outputs(self) -> int:
        """How many different outputs the protocol has."""
        if isinstance(self.protocol, UnaryEncoding):
            return int(self.protocol.a + 1 if self.protocol.alpha == math.inf else 2**self.protocol.a)
        return int((self.protocol.channel > 0).any(axis=0).sum())


Method = Callable[[Joint, Promise, bool, Effort], Made]


def make(
    method: str, joint: Joint, promise: Promise, *, sees_secret: bool = False, effort: Effort | None = None
) -> Made:
    """The protocol of that method which keeps the promise.

    >>> from privacyfunnel.model.promises import LIP
    >>> make("randomised-response", Joint.from_counts([[1, 0], [0, 1]]), LIP(9)).protocol.channel.shape
    (2, 2)
    """
    if method in BY_COLUMN:
        raise ParameterError(f"{method} works on the rows of a table, column by column; use it with sanitise.")
    if method not in METHODS:
        raise unknown_method(method, [*METHODS, *BY_COLUMN])
    return METHODS[method](joint, promise, sees_secret, effort or Effort())


def unknown_method(method: str, known: Sequence[str]) -> ParameterError:
    """The error for a name that no method has."""
    return ParameterError(
        f"A method is one of {', '.join(known)}; there is none called '{method}'.{nearest(method, known)}"
    )


def _optimal(joint: Joint, promise: Promise, sees_secret: bool, effort: Effort) -> Made:
    from privacyfunnel.designs.optimum import optimal

    best = optimal(
        joint,
        promise,
        sees_secret=sees_secret,
        gap=effort.gap,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return Made(best.protocol, best.bound)


def _explicit(name: str) -> Method:
    def made(joint: Joint, promise: Promise, sees_secret: bool, effort: Effort) -> Made:
        protocol = EXPLICIT[name](joint, promise)
        if sees_secret and not protocol.sees_secret:
            raise ParameterError(f"{name} never looks at the secret; leave out --sees-secret or use another method.")
        return Made(protocol)

    return made


METHODS: dict[str, Method] = {"optimal": _optimal, **{name: _explicit(name) for name in EXPLICIT}}
BY_COLUMN = ("product", "chain")  # for several published columns, each randomised in turn: see `attributes`
AUTO = "auto"  # the optimum, or a chain where too many combinations occur
DEFAULT_METHOD = AUTO
SEE_SECRET = frozenset({"conditional-reporting"})  # whether asked to or not
