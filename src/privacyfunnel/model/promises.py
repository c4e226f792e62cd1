r"""LDP, LIP and SRLIP: what the owner promises about the secret.

Every promise compares how likely an output is under pairs of events E and F about the record:

.. math:: e^{-\varepsilon} \le \frac{P(Y = y \mid E)}{P(Y = y \mid F)} \le e^{\varepsilon} \quad\text{for every } y.

LIP compares each secret with everybody, LDP each secret with each other one, SRLIP each secret with everybody among
those who share some attributes. A promise is thus a list of pairs of events and nothing else: from it come the
measured leakage of a protocol, the rows of the polytope of posteriors, and the exact check on integers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ParameterError, checked_epsilon
from privacyfunnel.model.joint import Joint

EVERYBODY = -1


@dataclass(frozen=True, slots=True)
class Leak:
    """Where a protocol leaks most under a promise: |ln P(Y = output | E) / P(Y = output | F)| = epsilon."""

    epsilon: float
    output: Any = None  # the output's number; for unary encoding the set of values
    secret: int = EVERYBODY
    against: int = EVERYBODY  # the other secret, or everybody
    known: tuple[tuple[int, int], ...] = ()  # (attribute, label) pairs that the attacker knew

    def describe(self, joint: Joint, output: str | None = None) -> str:
        """The leak in words; `output` is how the output is called."""
        if self.output is None:
            return "no output says anything about the secret"
        knows = [f"{joint.attributes[j].name} = {joint.attributes[j].labels[v]}" for j, v in self.known]
        who = "someone who knows " + " and ".join(knows) if knows else "someone who knows nothing else"
        versus = "" if self.against == EVERYBODY else f" rather than {joint.secrets[self.against]}"
        about = f"{joint.secret_name} = {joint.secrets[self.secret]}{versus}"
        return f"{who}, for output {output if output is not None else self.output}, about {about}"


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Pairs of events (E, F), each event an integer mass on the protocol's inputs.

    Mass k of the arrays says that event `event[k]` puts weight `weight[k]` on input `input[k]`. A pair i compares
    event `pairs[i, 0]` (with secret `secret[i]`) with `pairs[i, 1]` (with secret `against[i]` or everybody),
    given that attributes `known` have the labels `known_labels[i]`.
    """

    inputs: int
    event: IntArray
    input: IntArray
    weight: NDArray[Any]
    pairs: IntArray
    secret: IntArray
    against: IntArray
    known: tuple[int, ...]
    known_labels: IntArray

    @property
    def totals(self) -> NDArray[Any]:
        """The exact mass of every event."""
        totals = np.zeros(int(self.event.max()) + 1, dtype=self.weight.dtype)
        np.add.at(totals, self.event, self.weight)
        return totals

    @property
    def distributions(self) -> csr_array:
        """P(input | event), a row per event, as floats."""
        totals = self.totals
        p = np.asarray(self.weight / totals[self.event], dtype=np.float64)
        return coo_array((p, (self.event, self.input)), shape=(len(totals), self.inputs)).tocsr()

    def leak(self, epsilon: float, pair: int, output: Any) -> Leak:
        """The leak of that size at that pair and output."""
        known = tuple(zip(self.known, map(int, self.known_labels[pair]), strict=True))
        return Leak(epsilon, output, int(self.secret[pair]), int(self.against[pair]), known)


class Comparable(Shape):
    """What a promise and an information measure need of a sanitisation protocol, of whatever shape."""

    @property
    def sees_secret(self) -> bool: ...

    def worst(self, comparisons: Comparisons) -> Leak:
        """The output and pair of events with the largest log-ratio."""

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats."""


@dataclass(frozen=True)
class Promise(ABC):
    """What the owner promises about the secret, of size ε."""

    epsilon: float
    guards_known_attributes: ClassVar[bool] = False  # whether those who know published attributes already are covered

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    def of_size(self, epsilon: float) -> Promise:
        """The same promise with another ε."""
        return replace(self, epsilon=epsilon)

    @property
    def name(self) -> str:
        """How the promise is called: LIP, LDP or SRLIP."""
        return type(self).__name__

    @abstractmethod
    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        """The pairs of events that the promise compares, in blocks."""

    def worst(self, joint: Joint, protocol: Comparable) -> Leak:
        """Where the protocol leaks most: the output, the secret and what the attacker knew."""
        blocks = self.comparisons(joint, protocol.sees_secret)
        return max((protocol.worst(block) for block in blocks), key=lambda leak: leak.epsilon, default=Leak(0.0))

    def leakage(self, joint: Joint, protocol: Comparable) -> float:
        """The smallest ε for which the protocol keeps this promise; `inf` if there is none."""
        return self.worst(joint, protocol).epsilon

    def count(self, joint: Joint, sees_secret: bool = False) -> int:
        """How many comparisons it makes."""
        return sum(len(block.pairs) for block in self.comparisons(joint, sees_secret))

    def rows(self, joint: Joint, sees_secret: bool = False) -> tuple[csr_array, csr_array]:
        r"""Matrices N, D such that a posterior v over the inputs is allowed iff
        :math:`e^{-\varepsilon} D v \le N v \le e^{\varepsilon} D v`.

        With :math:`q(y|z) = q_y v_y(z) / p(z)`, P(y | E) is :math:`q_y \sum_z P(z|E)/p(z)\, v_y(z)`. Inputs that
        never occur get empty columns.
        """
        p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
        lift = np.divide(1.0, p_z, out=np.zeros_like(p_z), where=p_z > 0)
        numerators, denominators = [], []
        for block in self.comparisons(joint, sees_secret):
            lifts = block.distributions.multiply(lift[None, :]).tocsr()
            numerators.append(lifts[block.pairs[:, 0]])
            denominators.append(lifts[block.pairs[:, 1]])
        if not numerators:
            empty = csr_array((0, len(p_z)), dtype=np.float64)
            return empty, empty
        return vstack(numerators, format="csr"), vstack(denominators, format="csr")

    def for_priors(self, priors: Sequence[Joint]) -> ForPriors:
        """The same promise, kept for each of these priors as well (paper, Remark 1)."""
        return ForPriors(self, tuple(priors))


class LIP(Promise):
    r"""Local information privacy: :math:`e^{-\varepsilon} \le P(y|s) / P(y) \le e^{\varepsilon}`.

    Nobody's belief about the secret moves by more than a factor :math:`e^{\varepsilon}`.
    """

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        if joint.c > 1:
            yield _among(joint, sees_secret, ())


class LDP(Promise):
    r"""Local differential privacy w.r.t. the secret: :math:`P(y|s) \le e^{\varepsilon} P(y|s')`."""

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        if joint.c == 1:
            return
        s, _, w, z = _cells(joint, sees_secret)
        pairs = np.array(list(combinations(range(joint.c), 2)), dtype=np.int64)
        yield Comparisons(
            inputs=joint.a * (joint.c if sees_secret else 1),
            event=s,
            input=z,
            weight=w,
            pairs=pairs,
            secret=pairs[:, 0],
            against=pairs[:, 1],
            known=(),
            known_labels=np.zeros((len(pairs), 0), dtype=np.int64),
        )


class SRLIP(Promise):
    r"""Side-channel resistant LIP: LIP for everyone who already knows some attributes,

    .. math:: e^{-\varepsilon} \le P(y \mid s, x^J) / P(y \mid x^J) \le e^{\varepsilon}
       \quad\text{for every } J \subseteq \{1, …, m\} \text{ and } x^J.

    J = all attributes is empty for a protocol that sees only X. For one that sees S it is the case that matters.
    """

    guards_known_attributes: ClassVar[bool] = True

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        for size in range(joint.m + 1 if sees_secret else joint.m):
            for known in combinations(range(joint.m), size):
                block = _among(joint, sees_secret, known)
                if len(block.pairs):
                    yield block


@dataclass(frozen=True)
class ForPriors(Promise):
    """A promise that holds for its joint and for each of some other priors on the same values."""

    promise: Promise
    priors: tuple[Joint, ...]

    def __init__(self, promise: Promise, priors: tuple[Joint, ...]) -> None:
        object.__setattr__(self, "promise", promise)
        object.__setattr__(self, "priors", priors)
        object.__setattr__(self, "epsilon", promise.epsilon)
        object.__setattr__(self, "guards_known_attributes", promise.guards_known_attributes)

    @property
    def name(self) -> str:
        return self.promise.name

    def of_size(self, epsilon: float) -> ForPriors:
        return ForPriors(self.promise.of_size(epsilon), self.priors)

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        yield from self.promise.comparisons(joint, sees_secret)
        for prior in self.priors:
            if prior.attributes != joint.attributes or not np.array_equal(prior.combos, joint.combos):
                raise ParameterError("Every prior must be over the same values as the table; one is not.")
            if sees_secret and (prior.c != joint.c or bool(((prior.weights > 0) & (joint.weights == 0)).any())):
                raise ParameterError(
                    "For a protocol that sees the secret, a prior may only have the pairs of secret and value that "
                    "the table has; one has others."
                )
            yield from self.promise.comparisons(prior, sees_secret)


PROMISES: dict[str, type[Promise]] = {"lip": LIP, "ldp": LDP, "srlip": SRLIP}


def promise(name: str, epsilon: float) -> Promise:
    """The promise of that name: lip, ldp or srlip."""
    if name.lower() not in PROMISES:
        raise ParameterError(f"A promise is one of {', '.join(PROMISES)}; there is none called '{name}'.")
    return PROMISES[name.lower()](epsilon)


def log_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """|ln n/d| entry by entry: 0 where both are 0, infinite where only one is."""
    both = (numerator > 0) & (denominator > 0)
    ratio = np.divide(numerator, denominator, out=np.ones_like(numerator), where=both)
    size = np.abs(np.log(ratio))
    size[(numerator > 0) != (denominator > 0)] = math.inf
    return size


def _cells(joint: Joint, sees_secret: bool) -> tuple[IntArray, IntArray, NDArray[Any], IntArray]:
    """The pairs that occur: their secret, value, weight, and number as an input of the protocol."""
    s, x = np.nonzero(joint.weights)
    return s, x, joint.weights[s, x], s * joint.a + x if sees_secret else x


def _among(joint: Joint, sees_secret: bool, known: tuple[int, ...]) -> Comparisons:
    """Each secret against everybody, among those who share the attributes `known`."""
    s, x, w, z = _cells(joint, sees_secret)
    if known:
        labels, peers = np.unique(joint.combos[:, known], axis=0, return_inverse=True)
        peers = peers.reshape(-1)
    else:
        labels, peers = np.zeros((1, 0), dtype=np.int64), np.zeros(joint.a, dtype=np.int64)
    group = peers[x]
    both, event = np.unique(group * joint.c + s, return_inverse=True)
    group_of_event = both // joint.c
    # Where a group holds one secret only, whoever knows the group knows the secret: no output can tell more.
    told = np.bincount(group_of_event, minlength=len(labels))[group_of_event] > 1
    pairs = np.stack([np.flatnonzero(told), len(both) + group_of_event[told]], axis=1)
    return Comparisons(
        inputs=joint.a * (joint.c if sees_secret else 1),
        event=np.concatenate([event.reshape(-1), len(both) + group]),
        input=np.concatenate([z, z]),
        weight=np.concatenate([w, w]),
        pairs=pairs,
        secret=both[told] % joint.c,
        against=np.full(len(pairs), EVERYBODY),
        known=known,
        known_labels=labels[group_of_event[told]],
    )
