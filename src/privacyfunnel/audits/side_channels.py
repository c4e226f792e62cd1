"""Side channels: the most that someone learns from a published record who knows some of its columns already."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.sparse import csr_array

from privacyfunnel.audits.measurement import Measured, measured
from privacyfunnel.laws.chain import ChainLaw
from privacyfunnel.laws.channel import ChannelLaw
from privacyfunnel.laws.law import Law
from privacyfunnel.laws.product import ProductLaw
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP

SECONDS = 30.0  # a measurement that takes longer says how far it came
MOST_PATHS = 3 * 10**6  # pairs of a combination and an output it can become that are gone through


@dataclass(frozen=True, slots=True)
class SideChannel:
    """The worst side channel that was found, in words, and a number that none exceeds (infinite where unknown)."""

    epsilon: float
    bound: float
    words: str

    @property
    def exact(self) -> bool:
        """Whether every side channel was looked at."""
        return self.bound <= self.epsilon


def side_channel(joint: Joint, law: Law, seconds: float = SECONDS) -> SideChannel | None:
    """Over all 2^m sets of known columns; None where knowing a column is knowing all, or there is too much to look at.

    Someone who knows everything learns nothing from a protocol that never saw the secret, so one column has none.
    """
    if isinstance(law, ChannelLaw) and law.sees_secret:
        leak = SRLIP(0).worst(joint, law.protocol)
        label = None if leak.output is None else " & ".join(law.outputs[leak.output])
        return SideChannel(leak.epsilon, leak.epsilon, leak.describe(joint, label))
    if joint.m == 1:
        return None
    if isinstance(law, ProductLaw):
        product = law.protocol
        found = measured(joint, SRLIP(0), product, seconds)
        return SideChannel(found.leak.epsilon, found.bound, product.describe(found.leak, joint))
    if isinstance(law, ChannelLaw):
        channel = csr_array(law.protocol.channel)
        names = law.outputs
    elif isinstance(law, ChainLaw):
        shown, paths = law.whole_outputs()
        channel = csr_array(paths.T)
        names = tuple(
            tuple(labels[code] for labels, code in zip(law.columns, row, strict=True)) for row in shown.tolist()
        )
    else:
        return None
    if channel.nnz > MOST_PATHS:
        return None
    return _named(joint, measured(joint, SRLIP(0), channel, seconds), names)


def _named(joint: Joint, found: Measured, names: tuple[tuple[str, ...], ...]) -> SideChannel:
    leak = found.leak
    label = None if leak.output is None or isinstance(leak.output, tuple) else f"({', '.join(names[leak.output])})"
    return SideChannel(leak.epsilon, max(found.bound, leak.epsilon), leak.describe(joint, label))


def in_words(found: SideChannel) -> str:
    """What to print: how much, for whom, and whether that is all."""
    if math.isinf(found.epsilon):
        return f"no bound: {found.words}"
    if found.exact:
        return f"at most ε = {found.epsilon:.4g}: {found.words}"
    upto = "" if math.isinf(found.bound) else f" and at most {found.bound:.4g}"
    return f"at least ε = {found.epsilon:.4g}{upto}, as far as there was time to look: {found.words}"
