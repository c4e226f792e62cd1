"""The leakage of output and kept columns together, in exact arithmetic (`model/kept_promise.py` states the promise)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacyfunnel.errors import GuaranteeError, SizeError
from privacyfunnel.formatting import format_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.mechanism import UNIT, Mechanism
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, exact_worst_leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.kept_promise import KeptCounts, KeptPromise
from privacyfunnel.model.promises import Promise

MOST_CHANCES = 3 * 10**6  # of inputs and outputs that are listed: some seconds
LISTED = Fraction(10**9 + 1, 10**9)  # outputs that are listed are products of floats: their ratios are raised by this


@dataclass(frozen=True, slots=True)
class KeptLeakage:
    """The leakage of output and kept columns together, about the secret of the counted records."""

    columns: tuple[str, ...]
    combinations: int  # of kept values
    epsilon: float  # infinite where a pair (y, k) excludes what the promise compares
    keeps: bool  # the promise, by exact comparison

    def __str__(self) -> str:
        return f"outputs and {', '.join(self.columns)} together: ε = {self.epsilon:.6g} on this table"


def kept_leakage(mechanism: Mechanism, promise: Promise, joint: Joint, counts: KeptCounts) -> KeptLeakage:
    """The ε for which (output, kept columns) keep the promise on these records, in exact arithmetic.

    `mechanism` has the inputs of `joint`. A promise for a population, or for several priors, is measured as the promise
    it is made of.

    Raises
    ------
    SizeError
        If the outputs cannot be listed, or there are too many pairs of value and kept value.
    """
    plain = promise.table_promise
    listed, factor = _list_outputs(mechanism)
    worst = exact_worst_leak(listed, KeptPromise(plain, counts), joint).times(factor)
    limit = max(plain.epsilon, SMALLEST_EPSILON)
    keeps, epsilon = not worst.exceeds(limit), worst.leak.epsilon
    return KeptLeakage(counts.columns, counts.combinations, min(epsilon, limit) if keeps else epsilon, keeps)


def refuse_kept_alone(promise: Promise, joint: Joint, counts: KeptCounts) -> None:
    """Refuse kept columns that break the promise by themselves: no mechanism can mend that.

    Raises
    ------
    GuaranteeError
        If they leak more than ε about the secret whatever is published beside them.
    """
    constant = ChannelMechanism(
        np.arange(joint.a + 1),
        np.zeros(joint.a, dtype=np.int64),
        np.array([UNIT] * joint.a, dtype=object),
        (("",) * joint.m,),
        sees_secret=False,
    )
    found = kept_leakage(constant, promise, joint, counts)
    if not found.keeps:
        each = (kept_leakage(constant, promise, joint, column) for column in counts.each_column())
        worst = max((one for one in each if not one.keeps), key=lambda one: one.epsilon, default=found)
        raise kept_columns_error(promise, joint.secret_name, worst.columns, worst.epsilon, alone=True)


def kept_columns_error(
    promise: Promise, secret: str, columns: tuple[str, ...], epsilon: float, *, alone: bool = False, made: bool = False
) -> GuaranteeError:
    """Kept columns that leak more than was promised, by themselves or with what is, or was, `made` to be published."""
    amount = "without bound" if epsilon == float("inf") else f"up to ε = {format_epsilon(epsilon)}"
    name, many = ", ".join(columns), len(columns) > 1
    kept = f"the kept column{'s' if many else ''} {name}"
    who = f"{kept} alone leak{'' if many else 's'}" if alone else f"what is published leaks together with {kept}"
    larger = "" if epsilon == float("inf") else f", or allow a larger {hint('epsilon')}"
    unjudged = "" if made else f"; {hint('accept_kept')} keeps {'them' if many else 'it'} unjudged"
    return GuaranteeError(
        f"{promise.name} ε = {format_epsilon(promise.epsilon)} about {secret} must hold for all that is published of a "
        f"record; {who} {amount}. Leave {'them' if many else 'it'} out, make {'them' if many else 'it'} coarser, "
        f"or publish {'them' if many else 'it'} through the protocol with {hint('publish')}{larger}{unjudged}."
    )


def _list_outputs(mechanism: Mechanism) -> tuple[Mechanism, Fraction]:
    """The mechanism as one that measures parts of events, and by how much its ratios may be too small."""
    if mechanism.measures_parts:
        return mechanism, Fraction(1)
    listed = mechanism.explicit_protocol(MOST_CHANCES)
    if listed is None:
        raise SizeError(
            f"Kept columns are measured where the outputs can be listed; those of a {mechanism.kind} are too many. "
            "Keep no column, or use a method with one channel, such as randomised-response."
        )
    return ChannelMechanism.from_protocol(listed), LISTED
