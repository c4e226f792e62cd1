"""Sealing: from a protocol of floats to integers on which the promise has been checked exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce, singledispatch
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.laws.channel import ChannelLaw
from privacyfunnel.laws.exact import NO_LEAK, ExactLeak, exp_below, worse
from privacyfunnel.laws.law import Law
from privacyfunnel.laws.sampling import KeyStream, Words
from privacyfunnel.laws.sets import SetsLaw
from privacyfunnel.model.comparisons import Comparable
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocol import Protocol
from privacyfunnel.model.unary_encoding import UnaryEncoding

# Integers of 64 bits cannot make S and Y exactly independent unless Y says nothing at all. A promise smaller than this
# is certified at this size, and the certificate says so.
SMALLEST_EPSILON = 2.0**-30
NOT_RETURNED = "It was not returned and no row was sanitised."
FEWEST_BITS = 20  # a sliver of up to 2^-20 makes up for rounding


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """What a protocol's inputs are. Public: it names columns and labels, and never says how often one occurs."""

    attributes: tuple[Attribute, ...]
    combos: IntArray  # the combinations of labels that are inputs, in order
    secret_columns: tuple[str, ...]
    secrets: tuple[str, ...] = ()  # the secret's labels, in order; only where the protocol sees the secret
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # the edges of columns that were numbers

    @classmethod
    def of(cls, joint: Joint, sees_secret: bool) -> Domain:
        """The domain of a joint."""
        return cls(joint.attributes, joint.combos, (joint.secret_name,), joint.secrets if sees_secret else ())


@dataclass(frozen=True, slots=True, eq=False)
class SealedProtocol:
    """Integers that keep a promise, checked exactly, with all it takes to draw from them and to publish them."""

    law: Law
    promise: Promise
    epsilon: float  # certified: the integers leak no more than this
    domain: Domain
    information: float  # I(X;Y) in nats
    entropy: float  # H(X) in nats
    bound: float | None = None  # nats: no protocol keeps more; None where nothing was proved
    induced: FloatArray | None = None  # q(y | x), where the protocol sees the secret as well
    information_error: float = 0.0  # nats: the standard error of `information` where rows were averaged over; else 0
    for_publication: bool = True  # False where the draw came from a seed, which someone may guess

    @property
    def sees_secret(self) -> bool:
        """Whether the draw depends on the secret too."""
        return self.law.sees_secret

    def sample(self, codes: NDArray[Any], stream: Words | None = None, *, first_row: int = 0) -> NDArray[Any]:
        """Codes of the published columns for input codes, one row each, from a fresh key unless a stream is given."""
        return self.law.draw(codes, stream if stream is not None else KeyStream.fresh(), first_row)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the public protocol file."""
        from privacyfunnel.laws.file import save

        save(self, Path(path), force=force)

    @staticmethod
    def load(path: str | Path) -> SealedProtocol:
        """Read a public protocol file."""
        from privacyfunnel.laws.file import load

        return load(Path(path))


def seal(protocol: Comparable, promise: Promise, joint: Joint, *, bound: float | None = None) -> SealedProtocol:
    r"""Round to integers over 2⁶⁴ and check, exactly, that those integers keep the promise.

    For every pair of events (E, F) of the promise, with integer weights w of the joint and integers N of the law,

    .. math:: \frac{\sum_z w_E(z) N(z,y)}{\sum_z w_E(z)} \le r \frac{\sum_z w_F(z) N(z,y)}{\sum_z w_F(z)}
       \quad\text{and the reverse},\qquad r \in \mathbb{Q},\ r \le e^{\varepsilon}.

    Where rounding alone breaks this, the smallest sufficient sliver of the constant protocol is mixed in.

    Raises
    ------
    GuaranteeError
        If the protocol leaks more than was promised. Nothing weaker is returned.
    """
    for law in _laws(protocol, promise, joint):
        worst = exact_worst(law, promise, joint)
        if not worst.exceeds(_limit(promise)):
            return SealedProtocol(
                law=law,
                promise=promise,
                epsilon=_certified(worst, promise),
                domain=Domain.of(joint, law.sees_secret),
                information=law.protocol.mutual_information(joint),
                entropy=entropy(joint.p_x),
                bound=bound,
                induced=_induced(law.protocol, joint),
            )
    raise _broken(promise, promise.leakage(joint, protocol))


def kept(protocol: Protocol, promise: Promise, joint: Joint, *, most: int = FEWEST_BITS) -> Protocol:
    """The protocol, with the smallest sliver mixed in after which both its floats and its integers keep the promise.

    Slivers of up to 2^-most are tried; whoever allows large ones measures the utility of what comes back.
    """
    for law in _laws(protocol, promise, joint, most):
        rounded = replace(protocol, channel=law.protocol.channel) if isinstance(law, ChannelLaw) else protocol
        in_floats = promise.leakage(joint, rounded) <= max(promise.epsilon, SMALLEST_EPSILON)
        if in_floats and not exact_worst(law, promise, joint).exceeds(_limit(promise)):
            return rounded
    raise _broken(promise, promise.leakage(joint, protocol))


def certify(law: Law, promise: Promise, joint: Joint, otherwise: str = NOT_RETURNED) -> float:
    """The ε that these integers are certified for, by exact arithmetic; raises where it is above what was promised.

    `otherwise` ends the sentence of that error: what follows from it.
    """
    worst = exact_worst(law, promise, joint)
    if worst.exceeds(_limit(promise)):
        raise _broken(promise, worst.leak.epsilon, otherwise)
    return _certified(worst, promise)


def exact_worst(law: Law, promise: Promise, joint: Joint) -> ExactLeak:
    """The largest ratio that the promise compares, over all its pairs of events and all outputs."""
    return reduce(worse, (law.worst(block) for block in promise.comparisons(joint, law.sees_secret)), NO_LEAK)


@singledispatch
def law_of(protocol: Comparable, joint: Joint, sliver: float) -> Law:
    """The integers of a protocol, after a sliver of the constant protocol was mixed in. One per kind of protocol."""
    raise TypeError(f"{type(protocol).__name__} has no law of integers")


@law_of.register
def _(protocol: Protocol, joint: Joint, sliver: float) -> ChannelLaw:
    return ChannelLaw.of(
        protocol.quieter(protocol.joint_with_values(joint).sum(axis=0), sliver) if sliver else protocol
    )


@law_of.register
def _(protocol: UnaryEncoding, joint: Joint, sliver: float) -> SetsLaw:
    return SetsLaw.of(protocol, sliver)


def _laws(protocol: Comparable, promise: Promise, joint: Joint, most: int = FEWEST_BITS) -> Iterator[Law]:
    """The integers of the protocol, then of ever slightly quieter ones, as far as rounding can explain."""
    yield law_of(protocol, joint, 0.0)
    # A sliver δ lowers a leakage near ε by less than δ times 2e^ε. Whoever needs more than 2⁻²⁰ did not keep its
    # promise to begin with.
    epsilon = max(promise.epsilon, SMALLEST_EPSILON)
    excess = (promise.leakage(joint, protocol) - epsilon) / (2 * math.exp(min(epsilon, 700.0)))
    for sliver in (2.0**-k for k in range(52, most - 1, -1)):
        if sliver >= excess or math.isinf(excess):
            yield law_of(protocol, joint, sliver)


def _induced(protocol: Comparable, joint: Joint) -> FloatArray | None:
    """q(y | x) of a protocol that sees the secret as well: all that an analyst can use of it."""
    if isinstance(protocol, Protocol) and protocol.sees_secret:
        return protocol.joint_with_values(joint) / joint.p_x[:, None]
    return None


def _limit(promise: Promise) -> Fraction:
    return exp_below(max(promise.epsilon, SMALLEST_EPSILON))


def _certified(worst: ExactLeak, promise: Promise) -> float:
    # The check was passed in exact arithmetic, so rounding ln upwards must not report more than was promised.
    return min(worst.leak.epsilon, max(promise.epsilon, SMALLEST_EPSILON))


def _broken(promise: Promise, leakage: float, otherwise: str = NOT_RETURNED) -> GuaranteeError:
    more = "without bound" if math.isinf(leakage) else f"{max(leakage - promise.epsilon, 0):.2g} more"
    return GuaranteeError(f"{promise.name} promised ε = {promise.epsilon:g}; this protocol leaks {more}. {otherwise}")
