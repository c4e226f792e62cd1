r"""Leakage of a record's output together with the columns that are kept beside it.

A kept column K leaves as it is, so an output of the release is the pair (Y, K). For a record with input z and kept
value k it is drawn from

.. math:: q((y, k') \mid (z, k)) = q(y \mid z) \, [k' = k],

a channel on the pairs (z, k). A promise compares P(y, k | E) with P(y, k | F) on the counts n(s, x, k) of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import SizeError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, exact_worst_leak
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import Promise

MOST_CELLS = 1 << 25  # of secrets × pairs (x, k): 256 MB
MOST_CHANCES = 3 * 10**6  # of pairs (x, k) and outputs: some seconds


@dataclass(frozen=True, slots=True)
class KeptLeakage:
    """The leakage of output and kept columns together, about the secret of the counted records."""

    columns: tuple[str, ...]
    combinations: int  # of kept values
    epsilon: float  # infinite where a pair (y, k) excludes what the promise compares
    keeps: bool  # the promise, by exact comparison

    def __str__(self) -> str:
        return f"outputs and {', '.join(self.columns)} together: ε = {self.epsilon:.6g} on this table"


def kept_leakage(
    mechanism: Mechanism, promise: Promise, joint: Joint, columns: Sequence[str], records: IntArray
) -> KeptLeakage:
    """The ε for which (output, kept columns) keep the promise on these records, in exact arithmetic.

    `mechanism` has the inputs of `joint`. `records` is n × 3: the secret and the value of each record as numbers of
    `joint`, and the number of its combination of values of the kept `columns`. A promise for a population is measured
    as the promise it is made of, on these records.

    Raises
    ------
    SizeError
        If the outputs cannot be listed, or there are too many pairs of value and kept value.
    """
    s, x, kept = records.T
    numbers, k = np.unique(kept, return_inverse=True)
    pairs, pair = np.unique(x * len(numbers) + k.reshape(-1), return_inverse=True)
    if joint.c * len(pairs) > MOST_CELLS:
        raise SizeError(
            f"Kept columns are measured for at most {MOST_CELLS // joint.c:,} combinations of published and kept "
            f"values; {' & '.join(columns)} make {len(pairs):,}. Keep fewer or coarser columns."
        )
    weights = np.zeros((joint.c, len(pairs)), dtype=np.int64)
    np.add.at(weights, (s, pair.reshape(-1)), 1)
    x_of, k_of = pairs // len(numbers), pairs % len(numbers)
    name = Attribute(" & ".join(columns), tuple(map(str, range(len(numbers)))))
    extended = Joint(
        weights,
        joint.secrets,
        (*joint.attributes, name),
        np.column_stack([joint.combos[x_of], k_of]),
        joint.secret_name,
    )
    inputs = (np.arange(joint.c)[:, None] * joint.a + x_of).reshape(-1) if mechanism.sees_secret else x_of
    channel = _extend(_list_outputs(mechanism), inputs, np.resize(k_of, len(inputs)))
    plain = promise if promise.components is None else promise.components[0]
    worst = exact_worst_leak(channel, plain, extended)
    limit = max(plain.epsilon, SMALLEST_EPSILON)
    keeps = not worst.exceeds(exp_below(limit))
    return KeptLeakage(
        tuple(columns), len(numbers), min(worst.leak.epsilon, limit) if keeps else worst.leak.epsilon, keeps
    )


@singledispatch
def _list_outputs(mechanism: Mechanism) -> ChannelMechanism:
    """The mechanism as one channel from inputs to whole outputs."""
    listed = mechanism.explicit_protocol(MOST_CHANCES)
    if listed is None:
        raise SizeError(
            f"Kept columns are measured where the outputs can be listed; those of a {mechanism.kind} are too many. "
            "Keep no column, or use a method with one channel, such as randomised-response."
        )
    return ChannelMechanism.from_protocol(listed)


@_list_outputs.register
def _(mechanism: ChannelMechanism) -> ChannelMechanism:
    return mechanism


def _extend(channel: ChannelMechanism, inputs: IntArray, kept: IntArray) -> ChannelMechanism:
    """The channel on pairs of an input and a kept value, to pairs of an output and that kept value."""
    if len(inputs) * len(channel.outputs) > 100 * MOST_CHANCES or channel.indptr[-1] * len(inputs) > MOST_CHANCES * max(
        1, channel.inputs
    ):
        raise SizeError(
            f"Kept columns are measured for at most {MOST_CHANCES:,} chances of an output; there are more. "
            "Keep fewer or coarser columns."
        )
    rows = replace(channel, elsewhere=False).restrict_inputs(inputs)
    of_entry = np.repeat(kept, np.diff(rows.indptr))
    shown, output = np.unique(of_entry * len(channel.outputs) + rows.output, return_inverse=True)
    outputs = tuple((str(number),) for number in range(len(shown)))
    return replace(rows, output=output.reshape(-1), outputs=outputs)
