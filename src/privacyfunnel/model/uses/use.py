"""Use: what a protocol is to be best for, and how good one is for it, in a unit that can be said in words.

A use measures; it does not solve. How the best protocol for it is found stands in `designs/optimal/optimum.py`,
under the use's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.ordinal_scale import Orders


class Use(ABC):
    """What a protocol is to be best for."""

    name: ClassVar[str]  # under which it is asked for, and its solver found
    finest: ClassVar[float] = 0.0  # of the value: no smaller gap between value and bound is sought

    @property
    def full_name(self) -> str:
        """The name with its parameters, as `parse_use` reads it."""
        return self.name

    @property
    @abstractmethod
    def unit(self) -> str:
        """What `value` is measured in, in words."""

    @property
    def less_is_better(self) -> bool:
        """Whether a small value is a good one; a bound then lies below it."""
        return True

    @property
    def ignores_promise(self) -> bool:
        """Whether it asks the same under every promise, so that a protocol for a smaller ε serves a larger one."""
        return True

    @property
    def keeps_margin(self) -> bool:
        """Whether every value is published as often as it was, so that the channel tells how often that is."""
        return False

    @property
    def value_use(self) -> Use | None:
        """The same use where what is published must be original values; None where that is no way to serve it."""
        return None

    @property
    def orders(self) -> Orders:
        """The orders that the owner has given, where the use looks at any."""
        return ()

    def with_orders(self, orders: Orders) -> Use:
        """The same use where the owner has said in which order the values of some columns stand."""
        return self

    def tolerance(self, gap: float, value: float) -> float:
        """How near to its bound a value has to come, where `gap` was asked for: no nearer than `finest`."""
        return max(gap, self.finest * abs(value))

    @abstractmethod
    def refuse(self, joint: Joint) -> None:
        """Raise an InputError where the use does not fit the columns that are published."""

    @abstractmethod
    def value(self, joint: Joint, protocol: Protocol) -> float:
        """How good the protocol is for this use."""


@dataclass(frozen=True, slots=True)
class Information(Use):
    """I(X;Y): how much a published record says about the original one, whoever reads it."""

    name: ClassVar[str] = "information"

    @property
    def unit(self) -> str:
        return "nats of information about X"

    @property
    def less_is_better(self) -> bool:
        return False

    def refuse(self, joint: Joint) -> None:
        """Never: there is information in anything."""

    def value(self, joint: Joint, protocol: Protocol) -> float:
        return protocol.mutual_information(joint)


@dataclass(frozen=True, slots=True)
class UseValue:
    """How good a protocol is for a use, and how good any could be, in the use's own unit."""

    use: Use
    value: float
    bound: float | None  # no protocol that keeps the promise does better; None where nothing was proved
    stopped: str | None = None  # what ended the search for it: gap, time or nothing left to try; None without a search
    strategy: str | None = None  # how the optimum was computed; None without an optimum

    @property
    def is_unproved(self) -> bool:
        """Whether nothing is known about how good any could be: that no error is below 0 is no news."""
        return self.bound is None or (self.use.less_is_better and self.bound <= 0 < self.value)

    def describe_method(self, method: str) -> str:
        """The method; one that failed to prove its optimum is not called by that name alone.

        >>> unproved = UseValue(Information(), 0.3, None)
        >>> unproved.describe_method("optimal"), unproved.describe_method("randomised-response")
        ('best found, not proved to be optimal', 'randomised-response')
        """
        return "best found, not proved to be optimal" if method == "optimal" and self.is_unproved else method
