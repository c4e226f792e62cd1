"""A package that adds a promise, a use and a method to privacyfunnel: see pyproject.toml beside it."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.methods import Design, Method, Options, design_randomised_response
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.comparisons import GroupPairs
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.linear_use import LinearUse


class EveryoneElse(Promise):
    """e^-ε <= P(y | S = s) / P(y | S ≠ s) <= e^ε."""

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        if c > 1:
            one = np.eye(c, dtype=bool)
            yield GroupPairs(np.concatenate([one, ~one]), np.array([[s, c + s] for s in range(c)]))


class Neighbours(LinearUse):
    """The value next to the true one, in the order of the labels, costs half of a wrong one."""

    name: ClassVar[str] = "neighbours"
    margin = False
    published = False

    @property
    def unit(self) -> str:
        return "expected cost: 1 for a wrong value, 0.5 for a neighbour"

    def refuse(self, joint: Joint) -> None:
        """Never: every label has a place."""

    def costs(self, joint: Joint) -> FloatArray:
        places = np.arange(joint.a)
        return np.asarray(np.minimum(np.abs(places[:, None] - places), 2) / 2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Neighbours)

    def __hash__(self) -> int:
        return hash(self.name)


def parse_neighbours(text: str) -> Neighbours:
    """The use, of what stands behind its name and a colon: nothing."""
    if text:
        raise ParameterError(f"neighbours is asked for with nothing behind it; there is '{text}'.")
    return Neighbours()


def _design(joint: Joint, promise: Promise, options: Options) -> Design:
    return design_randomised_response(joint, promise.with_epsilon(promise.epsilon / 2), options)


SHY_RESPONSE = Method("shy-response", _design, uses=(LinearUse,))
