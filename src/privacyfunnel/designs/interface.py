"""Designs: what a method is told, and what it answers with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from typing import Protocol as Shape

from privacyfunnel.model.credal.credal_sets import Comparable
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.ordinal_scale import Orders
from privacyfunnel.model.uses.use import Information, Use, UseValue

if TYPE_CHECKING:
    from privacyfunnel.mechanisms.mechanism import DescribableProtocol
    from privacyfunnel.mechanisms.sealing import SealedProtocol

# The sizes at which designs change their way, where several of them must agree.
LARGEST_PROBLEM = 5000  # inputs of an optimum; beyond that the atoms alone fill the memory …
LARGEST_DIVIDED = 20_000  # … but for information by values alone, solved by blocks: the most that was ever measured
PUBLISHED_WELL = 316  # values that a linear programme publishes directly, half a minute's work; it has their square
MOST_PAIRS = 64  # of secret and value, for statistics by protocols that see both: beyond, nothing is proved in time
BLURRED = 1e-6  # ε below which shares that depend on the secret cannot be estimated from any table there is
CONDITIONED_WELL = 300  # combinations of a domain file up to which they are listed, not real or synthetic
CONDITIONED_AT_ALL = 1200  # inputs up to which the best for statistics is sought; beyond, a step outlasts short limits

Progress = Callable[[float, float], None]  # called with utility and bound, now and then


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a search goes: the gap at which it may stop, and when it must.

    With a time limit that is seconds of the wall clock. Without one it is counted work, in nominal seconds, so that the
    same table gives the same protocol on any machine; each method has its own where `work_limit` says nothing.
    """

    gap: float = 1e-6
    time_limit: float | None = None
    progress: Progress | None = None
    work_limit: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """What a method may be told beyond the joint and the promise. One that cannot follow an option refuses it."""

    sees_secret: bool = False
    as_values: bool = False  # publish original values, not groups of them
    use: Use = field(default_factory=Information)  # what the protocol is to be best for
    orders: Orders = ()  # of columns whose values stand on a line, though they are no numbers
    average: float | None = None  # nats: I(S;Y) may be no more than this, beside what is promised
    average_only: bool = False  # whether the promise is but a stop, and the average all that is asked
    effort: Effort = field(default_factory=Effort)


class Design(Shape):
    """What a method answers with."""

    @property
    def protocol(self) -> Comparable:
        """What is drawn from, as something to measure."""

    @property
    def bound(self) -> float | None:
        """Nats: no protocol keeps more; None where nothing was proved."""

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""

    @property
    def worth(self) -> UseValue:
        """How good it is for the use that was asked for."""

    @property
    def outputs(self) -> int:
        """How many different outputs there are."""

    def seal(self) -> SealedProtocol:
        """The protocol as integers on which the promise was checked, exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordDesign:
    """A protocol for whole records, and the bound that was proved for it in nats, if any."""

    joint: Joint
    promise: Promise
    protocol: DescribableProtocol
    outputs: int
    bound: float | None = None
    sealed: SealedProtocol | None = None  # where its integers were checked when it was made
    use_worth: UseValue | None = None  # where it was asked for another use than information

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return self.protocol.mutual_information(self.joint)

    @property
    def worth(self) -> UseValue:
        """How good it is for the use that was asked for."""
        return self.use_worth or information_worth(self)

    def seal(self) -> SealedProtocol:
        """The protocol as integers on which the promise was checked, exactly."""
        from privacyfunnel.mechanisms.sealing import seal

        return self.sealed or seal(self.protocol, self.promise, self.joint, bound=self.bound)


def information_worth(found: Design) -> UseValue:
    """What a design is worth where information is what counts."""
    return UseValue(Information(), found.information, found.bound)
