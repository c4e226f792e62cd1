"""Side channels: the most that someone learns from a published record who knows some of its columns already."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privacyfunnel.audits.leakage_measurement import measure_leakage
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP

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
    """What to print: how much, for whom, and whether that is all."""
    if math.isinf(found.epsilon):
        return f"no bound: {found.text}"
    if found.exact:
        return f"at most ε = {found.epsilon:.4g}: {found.text}"
    upto = "" if math.isinf(found.bound) else f" and at most {found.bound:.4g}"
    return f"at least ε = {found.epsilon:.4g}{upto}, as far as there was time to look: {found.text}"
