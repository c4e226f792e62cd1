r"""The next release given the last: a protocol q(y | x, h) under which all releases of a person together keep one ε.

What was published of a person before, h, is known, and published again beside the new record. For every h this is a
promise about y at the prior P(s, x | h) (`AfterPromise`), which the engine solves as any other; the protocols of
different h do not depend on each other. All of them together are one channel from (h, x) to (h, y).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import GuaranteeError, SizeError
from privacyfunnel.mechanisms.after_model import AfterModel
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.composable import AfterPromise
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Labels, Protocol

MOST_INPUTS = 20_000  # pairs of a history and a value
ROUNDING = 1e-9  # by which floats may call a leak too large; the seal compares integers

Solve = Callable[[Joint, Promise, float], SealedProtocol]  # told as well how much of ε was spent at most before


@dataclass(frozen=True, slots=True, eq=False)
class NextDesign:
    """A channel from history and value to history and record, at the prior that it was made for."""

    joint: Joint
    mechanism: ChannelMechanism
    shares: FloatArray  # of people by history, for weighing what is said of each


def design_next(model: AfterModel, before: Attribute, values: Joint, promise: Promise, solve: Solve) -> NextDesign:
    """The protocol of every history, one below the other; `before` names the histories, `values` what people may have.

    Raises
    ------
    GuaranteeError
        If what was published already leaks more than the promise allows.
    """
    size, count = len(values.combos), len(model.histories)
    if size * count > MOST_INPUTS:
        raise SizeError(
            f"A release after others is made for at most {MOST_INPUTS:,} pairs of an earlier record and a value; here "
            f"are {size * count:,}. Publish coarser values, or begin anew with other people."
        )
    combos = np.column_stack([np.repeat(np.arange(count), size), np.tile(values.combos, (count, 1))])
    joint = model.joint((before, *values.attributes), combos, values.secret_name)
    whole = model.bind_promise(promise)
    assert isinstance(whole, AfterPromise)
    problems = []
    for number in range(count):
        at = slice(number * size, (number + 1) * size)
        given = replace(joint, weights=joint.weights[:, at], attributes=values.attributes, combos=values.combos)
        mine = AfterPromise(promise, whole.totals, tuple(belief[:, at] for belief in whole.beliefs))
        problems.append((given, mine))
    constant = Protocol(np.ones((size, 1)))
    spent = max(mine.leakage(given, constant) for given, mine in problems)  # of a constant: what is known by now
    if spent > promise.epsilon * (1 + ROUNDING):
        raise GuaranteeError(
            f"All releases together must keep {promise.name} ε = {promise.epsilon:g} for records; those before leak "
            f"{spent:.6g}, so nothing is left. Allow a larger ε, or publish nothing more of these people."
        )
    indptr, output, numerator = [np.zeros(1, dtype=np.int64)], [], []
    outputs: list[Labels] = []
    for number, (given, mine) in enumerate(problems):
        law = solve(given, mine, spent).mechanism
        assert isinstance(law, ChannelMechanism)
        indptr.append(law.indptr[1:] + indptr[-1][-1])
        output.append(law.output + len(outputs))
        numerator.append(law.numerator)
        outputs += [(before.labels[number], *labels) for labels in law.outputs]
    mechanism = ChannelMechanism(
        np.concatenate(indptr), np.concatenate(output), np.concatenate(numerator), tuple(outputs), sees_secret=False
    )
    shares = joint.p_x.reshape(count, size).sum(axis=1)
    return NextDesign(joint, mechanism, shares)
