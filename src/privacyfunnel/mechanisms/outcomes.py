r"""Outcomes: what an output is called in a table that people work with.

An output y stands for many values. In the table it is a short code, such as `y07`, beside the value that is most likely
given it, :math:`\arg\max_x p(x \mid y)`, one column per attribute. Codes follow the numbers of the law's outputs; which
values are most likely is stated in the protocol file, for only the owner knows p(x).

Nothing new is given away by that: the order of p(x|y) stands in the labels of outputs too, and it is post-processing
of y, so that the promise stands whatever is shown beside a code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.mechanism import Mechanism, OutputPart
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.names import unique_label

NAME = "outcome"  # of the column of codes
FEWEST_DIGITS = 2  # of a code
ITSELF = 1e-4  # q(y | x) / p(y): an output that is called x and means x has more; rounding and slivers have far less


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A column of codes, one per output of some attributes, and the most likely value of each."""

    column: str
    attributes: tuple[int, ...]
    likely: IntArray  # outputs × attributes: the code of the label

    @property
    def codes(self) -> Labels:
        """What the outputs are called: `y01`, `y02`, …"""
        return outcome_codes(len(self.likely))


Outcomes = tuple[Outcome, ...]


def outcome_codes(outputs: int) -> Labels:
    """Codes that no program takes for a number, a date or a formula, all of the same length.

    >>> outcome_codes(2), outcome_codes(100)[6]
    (('y01', 'y02'), 'y007')
    """
    digits = max(FEWEST_DIGITS, len(str(outputs)))
    return tuple(f"y{number:0{digits}d}" for number in range(1, outputs + 1))


def build_outcomes(mechanism: Mechanism, joint: Joint, taken: Collection[str]) -> Outcomes:
    """The columns of codes of a law, called unlike all that is `taken`; none where outputs are values or sets already.

    An output that never comes stands for nobody in particular, and shows any value.
    """
    if all(_is_identity(part, joint) for part in mechanism.parts):
        return ()
    found = mechanism.value_joint(joint)
    plain = all(_names_values(part, *chances, joint) for part, chances in zip(mechanism.parts, found, strict=True))
    if plain:
        return ()
    outcomes: list[Outcome] = []
    for part, (values, p_xy) in zip(mechanism.parts, found, strict=True):
        name = NAME if len(mechanism.parts) == 1 else f"{joint.attributes[part.attributes[0]].name} {NAME}"
        column = unique_label(name, {*taken, *(other.column for other in outcomes)})
        outcomes.append(Outcome(column, part.attributes, values[p_xy.argmax(axis=0)]))
    return tuple(outcomes)


def _is_identity(part: OutputPart, joint: Joint) -> bool:
    """Whether outputs are the values of one column, in order."""
    if len(part.attributes) > 1:
        return False
    labels = joint.attributes[part.attributes[0]].labels
    return len(part.names) == len(labels) and all(
        name == (label,) for name, label in zip(part.names, labels, strict=True)
    )


def _names_values(part: OutputPart, values: IntArray, p_xy: Any, joint: Joint) -> bool:
    """Whether outputs are the values in order; or each is called like a value, and means it: a value may have the very
    name by which another output says what it stands for."""
    labels = [np.array(joint.attributes[j].labels, dtype=object)[values[:, i]] for i, j in enumerate(part.attributes)]
    named = tuple(zip(*labels, strict=True))
    if part.names == named:
        return True
    place = {name: x for x, name in enumerate(named)}
    x = np.array([place.get(name, -1) for name in part.names], dtype=np.int64)
    if (x < 0).any():
        return False
    p_x, p_y = p_xy.sum(axis=1), p_xy.sum(axis=0)
    own = p_xy[x, np.arange(len(x))]
    return bool((own >= ITSELF * p_x[x] * p_y).all())


def outcomes_to_json(outcomes: Outcomes) -> dict[str, Any]:
    """The outcomes as they stand in the protocol file; nothing where there are none."""
    if not outcomes:
        return {}
    return {"outcomes": [{"column": each.column, "likely": each.likely.tolist()} for each in outcomes]}


def outcomes_from_json(content: Mapping[str, Any], mechanism: Mechanism, domain: Domain) -> Outcomes:
    """The outcomes that a protocol file states: codes and labels for all outputs of its mechanism, or none."""
    stated: Sequence[Mapping[str, Any]] = content.get("outcomes", ())
    if not stated:
        return ()
    taken = [*domain.secret_columns, *(at.name for at in domain.attributes), *(each["column"] for each in stated)]
    if len(set(taken)) < len(taken):
        raise ProtocolFileError("columns of outcomes must be called unlike all others; some are not. Make it again.")
    if len(stated) != len(mechanism.parts):
        raise ProtocolFileError(
            f"outcomes must have a column for each of {len(mechanism.parts)} parts that have outputs of their "
            "own; they have "
            f"{len(stated)}. Make it again."
        )
    return tuple(_parse_outcome(each, part, domain) for each, part in zip(stated, mechanism.parts, strict=True))


def _parse_outcome(stated: Mapping[str, Any], part: OutputPart, domain: Domain) -> Outcome:
    wide = len(part.attributes)
    if len(stated["likely"]) != len(part.names) or any(len(row) != wide for row in stated["likely"]):
        raise ProtocolFileError(
            f"a most likely value must be stated for each of {len(part.names)} outputs; it is not. Make it again."
        )
    likely = np.array(stated["likely"], dtype=np.int64).reshape(-1, wide)
    if (likely >= np.array([len(domain.attributes[j].labels) for j in part.attributes])).any():
        raise ProtocolFileError("every most likely value must be a label of its column; some are not. Make it again.")
    return Outcome(stated["column"], part.attributes, likely)
