"""Sealing: from a protocol of floats to integers on which the promise has been checked exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.errors import (
    DistributionError,
    GuaranteeError,
    InputError,
    ParameterError,
    ProtocolFileError,
    SizeError,
)
from privacyfunnel.formatting import ShowsFacts, format_epsilon, format_number, format_percent, format_percent_range
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.after_model import AfterModel
from privacyfunnel.mechanisms.certificate import (
    Certificate,
    promise_from_json,
    promise_to_json,
    round_epsilon_up,
    round_nats_down,
    round_nats_up,
)
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.decoy_slacks import PROOF_SEED, check_slacks
from privacyfunnel.mechanisms.exact_arithmetic import NO_LEAK, ExactLeak, larger_leak
from privacyfunnel.mechanisms.input_domain import (
    ColumnShares,
    Domain,
    shares_to_json,
    substitutes_from_json,
    substitutes_to_json,
)
from privacyfunnel.mechanisms.mechanism import DescribableProtocol, Mechanism
from privacyfunnel.mechanisms.outcomes import Outcomes, outcomes_from_json, outcomes_to_json
from privacyfunnel.mechanisms.protocol_file import (
    content_digest,
    find_protocol,
    from_text,
    parse_channel,
    parse_model,
    parse_shares,
    read_text,
    to_text,
)
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream, WordStream
from privacyfunnel.model.credal.credal_sets import Comparable
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.model.published.table_model import PublishedModel
from privacyfunnel.model.published.wide_model import WideModel

# Integers of 64 bits cannot make S and Y exactly independent unless Y says nothing at all. A promise smaller than this
# is certified at this size, and the certificate says so.
SMALLEST_EPSILON = 2.0**-30
NOT_RETURNED = "It was not returned and no row was sanitised."
FEWEST_BITS = 20  # a sliver of up to 2^-20 makes up for rounding
NATS = 1e-9  # by how much rounding may bring stated amounts of information out of order
MECHANISMS: Mapping[str, type[Mechanism]] = {law.kind: law for law in (ChannelMechanism, RealOrSynthetic)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SealedProtocol(ShowsFacts):
    """Integers that keep a promise, checked exactly, with all it takes to draw from them and to publish them."""

    mechanism: Mechanism
    promise: Promise
    epsilon: float  # certified: the integers leak no more than this
    domain: Domain
    information: float  # I(X;Y) in nats
    entropy: float  # H(X) in nats
    bound: float | None = None  # nats: no protocol keeps more; None where nothing was proved
    induced: FloatArray | None = None  # q(y | x), where the protocol sees the secret as well
    information_error: float = 0.0  # nats: the standard error of `information` where rows were averaged over; else 0
    outcomes: Outcomes = ()  # the columns of codes, where the table shows these
    for_publication: bool = True  # False where the draw came from a seed, which someone may guess
    substitutes: IntArray | None = None  # inputs that stand for values which are not known, where there are any
    shares: ColumnShares | None = None  # of the published columns, where their owner publishes them
    model: PublishedModel | None = None  # the prior that the promise is about, where it is published
    secret_text: str = field(init=False)  # what is secret, in a sentence
    follows: int = field(
        init=False
    )  # releases before it that its promise covers; its first column is what they published

    def _facts(self) -> list[tuple[str, str]]:
        secret, epsilon = " & ".join(self.domain.secret_columns), format_number(self.total_epsilon)
        beliefs, certified = self.promise.belief_bounds(0.3, self.certified_total), format_epsilon(self.epsilon)
        return [
            ("published", " & ".join(at.name for at in self.domain.attributes)),
            ("promise", f"{self.promise.name} about {secret}, ε = {epsilon}, certified {certified}"),
            ("means", f"a belief of 30 % about {secret} may become {format_percent_range(*beliefs)}"),
            ("kept", f"{format_percent(self.information / self.entropy)} of the information"),
        ]

    def __post_init__(self) -> None:
        columns = self.domain.secret_columns
        each = f"each of {', '.join(columns[:-1])} and {columns[-1]}" if self.promise.by_column else None
        object.__setattr__(self, "secret_text", each or " & ".join(columns))
        object.__setattr__(self, "follows", len(self.model.files) if isinstance(self.model, AfterModel) else 0)

    @property
    def secret_sizes(self) -> dict[str, float]:
        """ε of all that is published together for each of several secrets, where they differ."""
        sizes, largest = self.promise.own_sizes, self.promise.epsilon
        return {at: self._add_noise(sizes.get(at, largest)) for at in self.domain.secret_columns if sizes}

    @property
    def sees_secret(self) -> bool:
        """Whether the draw depends on the secret too."""
        return self.mechanism.sees_secret

    def require_model(self) -> PublishedModel:
        """The published model, or an error where there is none."""
        if self.model is None:
            raise ParameterError(
                "A promise is checked from the file alone where its prior is a published model; this one is about the "
                f"rows of its table. Name the table, or make the protocol with {hint('prior', 'model')}."
            )
        return self.model

    @property
    def model_joint(self) -> Joint:
        """p̃ as a list of values, where it is published and they are listed."""
        domain, model = self.domain, self.require_model()
        return model.joint(domain.attributes, domain.combos, " & ".join(domain.secret_columns))

    @property
    def has_noisy_design(self) -> bool:
        """Whether it was computed from noisy counts; if not, its file says too much about the records to be public."""
        return self.design_epsilon is not None

    @property
    def design_epsilon(self) -> float | None:
        """The ε of the noise in the counts that it was computed from; None if they were exact."""
        return None if self._noise_epsilon is None else float(self._noise_epsilon)

    @property
    def _noise_epsilon(self) -> Fraction | None:
        if self.model is not None:
            return self.model.epsilon
        population = self.promise.population
        return None if population is None else population.rule.design_epsilon

    def _add_noise(self, epsilon: float) -> float:
        """ε of records and counts together, not below their sum, to twelve digits."""
        return math.ceil((Fraction(epsilon) + (self._noise_epsilon or 0)) * 10**12) / 10**12

    @property
    def total_epsilon(self) -> float:
        """ε of all that is published together where counts got noise; else of the records."""
        return self.promise.epsilon if self._noise_epsilon is None else self._add_noise(self.promise.epsilon)

    @property
    def certified_total(self) -> float:
        """What was certified of all that is published: for the owner, since it follows from the counts of the table."""
        return self.epsilon if self._noise_epsilon is None else self._add_noise(self.epsilon)

    def certified_inputs(self, law: Mechanism, joint: Joint, secrets: Sequence[str] = ()) -> tuple[Mechanism, Joint]:
        """What the promise is checked on, for a table that was found again among the inputs of the mechanism.

        A private design does not know its table: its promise is about the people, and stands on the noisy counts of
        the file, for all inputs of the law; `secrets` are what its domain calls them, which the file does not say.
        """
        if self.model is not None:
            return self.mechanism, self.model_joint
        population = self.promise.population
        counts = None if population is None else population.rule.table
        if counts is None:
            return law, joint
        numbered = tuple(f"number {number} of its domain" for number in range(1, len(counts) + 1))
        name, called = " & ".join(self.domain.secret_columns), self.domain.secrets or tuple(secrets) or numbered
        return self.mechanism, Joint(counts, called, self.domain.attributes, self.domain.combos, name)

    def sample(self, codes: NDArray[Any], stream: WordStream | None = None, *, first_row: int = 0) -> NDArray[Any]:
        """What the mechanism draws for input codes, a row each, from a fresh key unless a stream is given."""
        stream = stream if stream is not None else KeyStream.generate()
        return self.mechanism.draw(codes, stream.rows(first_row, len(codes)))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the protocol file, whole or not at all; only its owner can read it unless the design is private."""
        with atomic_file(path, force=force, owner_only=not self.has_noisy_design) as beside:
            beside.write_text(self.to_text(), encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> SealedProtocol:
        """Read a protocol file, or that of a release by its folder; refuse what is damaged, foreign or of another
        version."""
        path = find_protocol(path)
        return SealedProtocol.from_text(read_text(path), str(path))

    def to_text(self) -> str:
        """The text of the protocol file."""
        return to_text(self.to_json())

    @staticmethod
    def from_text(text: str, name: str = "the protocol file") -> SealedProtocol:
        """The sealed protocol that a file's text describes."""
        content = from_text(text, name)
        try:
            return SealedProtocol.from_json(content)
        except (ProtocolFileError, SizeError) as error:
            raise type(error)(f"'{name}': {error}") from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, InputError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ProtocolFileError(f"'{name}' is incomplete or inconsistent ({what}). Make it again.") from None

    @property
    def certificate(self) -> Certificate:
        """What was certified, as the public may know it."""
        return Certificate(
            round_epsilon_up(self.epsilon, max(self.promise.epsilon, self.epsilon)),
            round_nats_down(self.information),
            round_nats_up(self.information_error),
            round_nats_up(self.entropy),
            None if self.bound is None else round_nats_up(self.bound),
        )

    def to_json(self) -> dict[str, Any]:
        """What the public protocol file states."""
        return {
            "promise": promise_to_json(self.promise),
            "certificate": self.certificate.to_json(),
            **self.domain.to_json(),
            "for_publication": self.for_publication,
            "sees_secret": self.sees_secret,
            "kind": self.mechanism.kind,
            "law": self.mechanism.to_json(),
            "induced": None if self.induced is None else self.induced.tolist(),
            **outcomes_to_json(self.outcomes),
            **substitutes_to_json(self.substitutes),
            **shares_to_json(self.shares),
            **({} if self.model is None else {"model": self.model.to_json()}),
        }

    @property
    def digest(self) -> bytes:
        """What tells protocols apart that draw differently: of the domain and the integers, and nothing else."""
        drawn = {**self.domain.to_json(), "kind": self.mechanism.kind, "law": self.mechanism.to_json()}
        if self.model is not None and not self.mechanism.lists_inputs:  # synthetic records are drawn from it
            drawn |= {"model": self.model.to_json(), "promise": promise_to_json(self.promise)}
        return content_digest(drawn)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> SealedProtocol:
        """The sealed protocol that a file states, as far as it can be checked without the data."""
        domain = Domain.from_json(content)
        certificate = content["certificate"]
        promise = promise_from_json(content["promise"], domain)
        epsilon = certificate["epsilon"]
        if not 0 <= epsilon <= max(promise.epsilon, SMALLEST_EPSILON):
            raise ProtocolFileError("the certified ε must lie between 0 and what was promised; it does not.")
        kept, whole, bound = (certificate[f"{name}_nats"] for name in ("information", "entropy", "bound"))
        if not (0 <= kept <= whole + NATS and (bound is None or bound >= kept - NATS)):
            raise ProtocolFileError("the information kept must lie between 0 and its bounds; it does not.")
        model = parse_model(content, domain, promise)
        if isinstance(model, WideModel):
            law: Mechanism = RealOrSynthetic.restore(content["law"], model.tree, promise)
        else:
            law = MECHANISMS[content["kind"]].from_json(content["law"], content["sees_secret"], domain.combos)
        if domain.lists_combinations != law.lists_inputs:
            raise ProtocolFileError("combinations must be listed exactly where they are inputs; it is not so.")
        inputs = len(domain.combos) * (len(domain.secrets) if law.sees_secret else 1)
        if law.inputs != inputs:
            raise ProtocolFileError(f"the law must have a row for each of {inputs} inputs; it has {law.inputs}.")
        if promise.anything_else != (law.anything_else is not None):
            raise ProtocolFileError(
                "the law must have a row for anything else exactly where the promise covers that; it is not so."
            )
        return SealedProtocol(
            mechanism=law,
            promise=promise,
            epsilon=float(epsilon),
            domain=domain,
            information=float(kept),
            information_error=float(certificate.get("information_error_nats", 0.0)),
            entropy=float(whole),
            bound=None if bound is None else float(bound),
            induced=None if content["induced"] is None else parse_channel(content["induced"], domain, law),
            for_publication=content["for_publication"],
            outcomes=outcomes_from_json(content, law, domain),
            substitutes=substitutes_from_json(content, len(domain.combos), law.sees_secret),
            shares=parse_shares(content, domain, promise),
            model=model,
        )


def seal(
    protocol: DescribableProtocol,
    promise: Promise,
    joint: Joint,
    *,
    bound: float | None = None,
    most: int = FEWEST_BITS,
    also_in_floats: bool = False,
) -> SealedProtocol:
    r"""Round to integers over 2⁶⁴ and check, exactly, that those integers keep the promise.

    For every pair of events (E, F) of the promise, with integer weights w of the joint and integers N of the mechanism,

    .. math:: \frac{\sum_z w_E(z) N(z,y)}{\sum_z w_E(z)} \le r \frac{\sum_z w_F(z) N(z,y)}{\sum_z w_F(z)}
       \quad\text{and the reverse},\qquad r \in \mathbb{Q},\ r \le e^{\varepsilon}.

    A promise for a population is checked besides for the worst members of its sets of priors.

    Where rounding alone breaks this, the smallest sufficient sliver of the constant protocol is mixed in, of up to
    2^-most; whoever allows large ones looks at the information that is left. `also_in_floats` asks for a sliver with
    which the floats nearest to the integers keep the promise as well.

    Raises
    ------
    GuaranteeError
        If the protocol leaks more than was promised. Nothing weaker is returned.
    """
    for law in _candidate_mechanisms(protocol, promise, joint, most):
        in_floats = law.protocol
        if also_in_floats and not promise.leakage(joint, in_floats) <= max(promise.epsilon, SMALLEST_EPSILON):
            continue
        worst = exact_worst_leak(law, promise, joint)
        if not worst.exceeds(_checked_epsilon(promise)):
            return SealedProtocol(
                mechanism=law,
                promise=promise,
                epsilon=_certified_epsilon(worst, promise),
                domain=Domain.from_joint(joint, law.sees_secret),
                information=in_floats.mutual_information(joint),
                entropy=entropy(joint.p_x),
                bound=bound,
                induced=_induced_channel(law, joint),
            )
    leak = promise.worst(joint, protocol)
    raise _guarantee_error(promise, leak.epsilon, where=protocol.describe(leak, joint))


def certify(mechanism: Mechanism, promise: Promise, joint: Joint, otherwise: str = NOT_RETURNED) -> float:
    """The ε that these integers are certified for, by exact arithmetic; raises where it is above what was promised.

    `otherwise` ends the sentence of that error: what follows from it.
    """
    worst = exact_worst_leak(mechanism, promise, joint)
    if worst.exceeds(_checked_epsilon(promise)):
        raise _guarantee_error(promise, worst.leak.epsilon, otherwise)
    return _certified_epsilon(worst, promise)


def certify_at_model(sealed: SealedProtocol, otherwise: str = NOT_RETURNED) -> float:
    """The ε of records at the published model, from the file alone; raises where it is above what was promised.

    In exact arithmetic where values are listed. Else the guard of every record is exact, and the slacks that it stands
    on are proved again: by listing, or by the simulation of the file, which is wrong with probability 1e-9 at most.
    """
    law = sealed.mechanism
    if not isinstance(law, RealOrSynthetic):
        return certify(law, sealed.require_model().bind_promise(sealed.promise), sealed.model_joint, otherwise)
    try:
        check_slacks(law, KeyStream.from_seed(PROOF_SEED), law.proof_records)
    except GuaranteeError:
        raise _guarantee_error(sealed.promise, sealed.promise.epsilon, otherwise, "its slacks are not proved") from None
    return sealed.promise.epsilon


def exact_worst_leak(mechanism: Mechanism, promise: Promise, joint: Joint) -> ExactLeak:
    """The largest ratio that the promise compares, over all its pairs of events and all outputs."""
    worst = NO_LEAK
    for block in promise.comparisons(joint, mechanism.sees_secret):
        # Of an event without mass there is no P(y|E): it would compare with anything and pass.
        if not (block.totals > 0).all():
            raise DistributionError("Every event that a promise compares must be able to happen; one is not.")
        if block.condition_totals is not None and not mechanism.measures_parts:
            raise TypeError(f"a {mechanism.kind} does not measure parts of events: list its outputs")
        worst = larger_leak(worst, mechanism.worst(block))
    sets = promise.credal_sets(joint, mechanism.sees_secret)
    return worst if sets is None else larger_leak(worst, mechanism.worst_credal_leak(sets))


@singledispatch
def build_mechanism(protocol: Comparable, joint: Joint, sliver: float) -> Mechanism:
    """The integers of a protocol, after a sliver of the constant protocol was mixed in. One per kind of protocol."""
    raise TypeError(f"{type(protocol).__name__} has no law of integers")


@build_mechanism.register
def _(protocol: Protocol, joint: Joint, sliver: float) -> ChannelMechanism:
    return ChannelMechanism.from_protocol(
        protocol.mix_constant(protocol.joint_with_values(joint).sum(axis=0), sliver) if sliver else protocol
    )


@build_mechanism.register
def _(protocol: SparseProtocol, joint: Joint, sliver: float) -> ChannelMechanism:
    return ChannelMechanism.from_protocol(protocol.mix_constant(joint, sliver) if sliver else protocol)


def _candidate_mechanisms(
    protocol: Comparable, promise: Promise, joint: Joint, most: int = FEWEST_BITS
) -> Iterator[Mechanism]:
    """The integers of the protocol, then of ever slightly quieter ones, as far as rounding can explain."""
    yield build_mechanism(protocol, joint, 0.0)
    # A sliver δ lowers a leakage near ε by less than δ times 2e^ε. Whoever needs more than 2⁻²⁰ did not keep its
    # promise to begin with.
    epsilon = max(promise.epsilon, SMALLEST_EPSILON)
    excess = (promise.leakage(joint, protocol) - epsilon) / (2 * math.exp(min(epsilon, 700.0)))
    for sliver in (2.0**-k for k in range(52, most - 1, -1)):
        if sliver >= excess or math.isinf(excess):
            yield build_mechanism(protocol, joint, sliver)


def _induced_channel(mechanism: Mechanism, joint: Joint) -> FloatArray | None:
    """q(y | x) of a protocol that sees the secret as well: all that an analyst can use of it."""
    table = mechanism.table_protocol if mechanism.sees_secret else None
    if table is None:
        return None
    return np.asarray(table.joint_with_values(joint) / joint.p_x[:, None])


def _checked_epsilon(promise: Promise) -> float:
    return max(promise.epsilon, SMALLEST_EPSILON)


def _certified_epsilon(worst: ExactLeak, promise: Promise) -> float:
    # The check was passed in exact arithmetic, so rounding ln upwards must not report more than was promised.
    return min(worst.leak.epsilon, _checked_epsilon(promise))


def _guarantee_error(
    promise: Promise, leakage: float, otherwise: str = NOT_RETURNED, where: str = ""
) -> GuaranteeError:
    more = "without bound" if math.isinf(leakage) else f"{max(leakage - promise.epsilon, 0):.2g} more"
    place = f" ({where})" if where else ""
    return GuaranteeError(
        f"{promise.name} promised ε = {promise.epsilon:g}; this protocol leaks {more}{place}. {otherwise}"
    )
