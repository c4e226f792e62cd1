"""What is asked of a solver, and what it answers: the best protocol for a use, with its proof.

The sizes at which designs change their way, where several of them must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from privacyfunnel.formatting import facts_html
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.model.uses.use import Information, Use

LARGEST_PROBLEM = 5000  # inputs of an optimum; beyond that the atoms alone fill the memory …
LARGEST_DIVIDED = 20_000  # … but for information by values alone, solved by blocks: the most that was ever measured
PUBLISHED_WELL = 316  # values that a linear programme publishes directly, half a minute's work; it has their square
MOST_PAIRS = 64  # of secret and value, for statistics by protocols that see both: beyond, nothing is proved in time
BLURRED = 1e-6  # ε below which shares that depend on the secret cannot be estimated from any table there is
CONDITIONED_WELL = 300  # combinations of a domain file up to which they are listed, not real or synthetic
CONDITIONED_AT_ALL = 1200  # inputs up to which the best for statistics is sought; beyond, a step outlasts short limits


Progress = Callable[[float, float], None]  # called with the value and the bound so far


class StopReason(Enum):
    """What ended a search."""

    GAP = "gap"  # value and bound are as close as was asked
    TIME = "time"  # the time limit
    NOTHING = "nothing left to try"  # neither search nor proof has anything more to say


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """A protocol that keeps its promise, and how far it may be from the best one for its use."""

    made: Protocol | SparseProtocol  # sparse where a table of all chances would fill the memory
    utility: float  # nats, I(X;Y) measured on `made`
    bound: float  # in the use's own unit, from the dual: no protocol that keeps the promise does better
    value: float  # in the use's own unit, measured on `made`; for information this is the utility
    use: Use
    sealed: SealedProtocol | None = None  # its integers, where they were checked already
    stopped: StopReason = StopReason.GAP  # what ended the search
    strategy: str = "values as they are"  # the line of the engine's plan that was taken

    @property
    def protocol(self) -> Protocol:
        """The protocol as a table of all chances; refused where that would not fit in memory."""
        return self.made if isinstance(self.made, Protocol) else self.made.table

    @property
    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("best for", self.use.full_name),
            ("value", f"{self.value:.6g} {self.use.unit}"),
            ("bound", f"{self.bound:.6g}: no protocol that keeps the promise does better"),
            ("information", f"{self.utility:.6g} nats"),
            ("outputs", f"{len(self.made.outputs):,}"),
        ]

    def __repr__(self) -> str:
        return "Optimum\n" + "\n".join(f"  {name:<12}{said}" for name, said in self._facts)

    def _repr_html_(self) -> str:
        return facts_html("Optimum", self._facts)


@dataclass(frozen=True, slots=True, eq=False)
class SolverRequest:
    """What is asked of a solver: the best protocol for a use, up to a gap, or what is best when time is up."""

    joint: Joint
    promise: Promise
    use: Use = field(default_factory=Information)
    sees_secret: bool = False
    gap: float = 1e-6  # in the use's own unit
    time_limit: float | None = None
    progress: Progress | None = None
