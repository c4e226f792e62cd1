"""Leakage at scale: all 2^m side channels of many attributes, sparse over the combinations that occur.

Two shapes of protocols can be gone through: those whose outputs come from few combinations each (a sparse table), and
products. For a product the number of outputs is the product of the columns' outputs; where going through all of them
takes longer than is given, the rest is bounded, and the answer says between which two numbers the leakage lies.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from privacyfunnel.model.comparisons import Leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.sparse_protocol import Measurable


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
