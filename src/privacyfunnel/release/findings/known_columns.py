"""Side channels: the largest leakage to somebody who already knows some columns of a published record."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from privacyfunnel.formatting import format_epsilon
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.model.comparisons import Leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, Promise
from privacyfunnel.model.protocols.sparse_protocol import Measurable

SECONDS = 30.0  # a measurement that takes longer says how far it came
MOST_PATHS = 3 * 10**6  # pairs of a combination and an output it can become that are gone through


@dataclass(frozen=True, slots=True)
class SideChannel:
    """The worst side channel that was found, in words, and a number that none exceeds (infinite where unknown)."""

    epsilon: float
    bound: float
    text: str

    @property
    def exact(self) -> bool:
        """Whether every side channel was looked at."""
        return self.bound <= self.epsilon


def side_channel(joint: Joint, mechanism: Mechanism, seconds: float = SECONDS) -> SideChannel | None:
    """Over all 2^m sets of known columns; None where knowing a column is knowing all, or there is too much to look at.

    Someone who knows everything learns nothing from a protocol that never saw the secret, so one column has none.
    """
    if mechanism.sees_secret:
        protocol = mechanism.protocol
        leak = SRLIP(0).worst(joint, protocol)
        return SideChannel(leak.epsilon, leak.epsilon, protocol.describe(leak, joint))
    whole = None if joint.m == 1 else mechanism.measurable_protocol(MOST_PATHS)
    if whole is None:
        return None
    found = measure_leakage(joint, SRLIP(0), whole, seconds)
    return SideChannel(found.leak.epsilon, found.bound, whole.describe(found.leak, joint))


def format_side_channel(found: SideChannel) -> str:
    """The side channel as text: ε, for whom, and whether the search was complete."""
    if math.isinf(found.epsilon):
        return f"no bound: {found.text}"
    if found.exact:
        return f"at most ε = {format_epsilon(found.epsilon)}: {found.text}"
    upto = "" if math.isinf(found.bound) else f" and at most {format_epsilon(found.bound)}"
    return (
        f"at least ε = {format_epsilon(found.epsilon, down=True)}{upto}, as far as there was time to look: {found.text}"
    )


@dataclass(frozen=True, slots=True)
class LeakageBounds:
    """The largest leak that was found, and a number that no leak exceeds: the same where everything was looked at."""

    leak: Leak
    bound: float


def measure_leakage(joint: Joint, promise: Promise, protocol: Measurable, seconds: float = math.inf) -> LeakageBounds:
    """Where the protocol leaks most.

    Side channels that know least come first: what they show lets most others be skipped, since the more is known, the
    less an output can add. What is not reached in time is bounded by what the protocol says of it.
    """
    deadline = time.monotonic() + seconds
    worst, bound = Leak(0.0), 0.0
    for block in promise.comparisons(joint, protocol.sees_secret):
        if math.isinf(max(worst.epsilon, bound)) and time.monotonic() >= deadline:
            break  # no more is found, and no more is known
        if time.monotonic() >= deadline:
            bound = max(bound, protocol.bound(block))
            continue
        found, whole = protocol.measure(block, worst.epsilon, deadline)
        bound = bound if whole else max(bound, protocol.bound(block))
        if found.output is not None and (worst.output is None or found.epsilon > worst.epsilon):
            worst = found
        if math.isinf(worst.epsilon):
            break
    return LeakageBounds(worst, max(bound, worst.epsilon))
