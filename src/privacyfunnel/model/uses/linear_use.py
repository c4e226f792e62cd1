r"""Uses that are linear in the split: somebody reads an output, and acts.

Acting as if the value were k costs :math:`\ell(x, k)` where it is x. With the best action for every output,

.. math:: \operatorname{value} = \sum_y \min_k \sum_x p(x, y)\, \ell(x, k).

Outputs with the same best action may be published as one: the posterior of the whole is an average of posteriors that
keep the promise, and its cost is no larger. So an output is an action, and the best protocol a linear programme.

Where the `margin` is kept, what is published are values, taken at their word, and each as often as it was:
:math:`P(Y = x) = P(X = x)`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.model.contingency_csv import read_table
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.ordinal_scale import (
    Orders,
    all_have_positions,
    check_orders,
    scale_positions,
    value_positions,
)
from privacyfunnel.model.uses.use import Use
from privacyfunnel.names import suggest_name


@dataclass(frozen=True, slots=True)
class CostTable:
    """ℓ(x, k) by labels: a line per true value, a column per action, the same labels in both, in any order."""

    name: str
    values: tuple[str, ...]
    actions: tuple[str, ...]
    cells: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if not all(0 <= cell < math.inf for line in self.cells for cell in line):
            raise ParameterError(f"costs must be finite and at least 0; some in '{self.name}' are not. Correct them.")
        if sorted(self.values) != sorted(self.actions) or len(set(self.values)) != len(self.values):
            raise ParameterError(
                f"costs need a line and a column for each value, once; '{self.name}' has {len(self.values)} lines and "
                f"{len(self.actions)} columns that are not the same values. Correct it."
            )

    def align(self, joint: Joint) -> FloatArray:
        """The costs in the order of the joint's values, if there is one for each of them."""
        if joint.m != 1:
            raise ParameterError(f"a table of costs is for one column; {joint.m} are published. Publish one.")
        labels, column = joint.attributes[0].labels, joint.attributes[0].name
        if sorted(labels) != sorted(self.values):
            raise ColumnError(
                f"costs need a line and a column for each of the {len(labels)} values of '{column}' and no others; "
                f"'{self.name}' has {len(self.values)}, {len(set(labels) & set(self.values))} of them among these."
            )
        x, k = ([where.index(label) for label in labels] for where in (self.values, self.actions))
        used = joint.combos[:, 0]
        return np.asarray(np.array(self.cells)[np.ix_(x, k)][np.ix_(used, used)])


def read_costs(path: str) -> CostTable:
    """The costs in a CSV file."""
    return CostTable(path, *read_table(path, "value", "costs"))


MARGIN = "margin"  # how it is asked for
ABSOLUTE, SQUARED, NEARBY = "absolute", "squared", "nearby"
# Beside the 1 of another value, what the farthest costs more. Distance alone may publish each value as its neighbour,
# and then nothing can be told from the table but its own margin; this much leaves values as right as they can be.
FARTHEST = 0.3


def _nearby_cost(differences: FloatArray) -> FloatArray:
    """1 for another value, and up to FARTHEST more for one that is far away."""
    size = np.abs(differences)
    return np.asarray((size > 0) + FARTHEST * size / max(float(size.max(initial=0.0)), np.finfo(np.float64).tiny))


# What being off by a difference costs, and what that is called.
DISTANCES: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {ABSOLUTE: np.abs, SQUARED: np.square, NEARBY: _nearby_cost}
)
UNITS: Mapping[str, str] = MappingProxyType(
    {
        ABSOLUTE: "expected absolute error",
        SQUARED: "expected squared error",
        NEARBY: f"expected cost: 1 for another value, up to {FARTHEST} more the farther it is",
    }
)


class LinearUse(Use):
    """A cost for every value and action; the actions are the values themselves."""

    margin: bool  # whether every value is published as often as it was
    published: bool  # whether outputs are called by the values they are taken for

    @property
    def keeps_margin(self) -> bool:
        return self.margin

    def actions(self, joint: Joint) -> FloatArray | None:
        """a: the numbers that the values are, where any number may be acted by; None where the actions are values."""
        return None

    def line(self, attribute: Attribute) -> FloatArray | None:
        """Where each label of a column stands, if values count by that; else None."""
        return None

    @abstractmethod
    def costs(self, joint: Joint) -> FloatArray:
        """ℓ(x, k), a × a: what it costs to act as if the value were k where it is x."""

    def value(self, joint: Joint, protocol: Protocol) -> float:
        p_xy = protocol.joint_with_values(joint)
        of_action = p_xy.T @ self.costs(joint)
        if not self.margin:
            return float(of_action.min(axis=1).sum())
        if protocol.outputs != joint.values:
            raise ParameterError(f"{self.full_name} is measured where outputs are values; these are not.")
        return float(np.trace(of_action))


@dataclass(frozen=True, slots=True)
class Values(LinearUse):
    """Most often the right value."""

    margin: bool = False
    published: bool = False
    name: ClassVar[str] = "values"

    @property
    def full_name(self) -> str:
        return f"{self.name}:{MARGIN}" if self.margin else self.name

    @property
    def unit(self) -> str:
        return "chance that the published value is not the true one" if self.margin else "chance of a wrong guess"

    @property
    def value_use(self) -> Values:
        return replace(self, published=True)

    def refuse(self, joint: Joint) -> None:
        """Never: every value is right or wrong."""

    def costs(self, joint: Joint) -> FloatArray:
        return 1.0 - np.eye(joint.a)


@dataclass(frozen=True, slots=True)
class Distance(LinearUse):
    """Least expected cost of being off: absolute, squared, nearby (see `DISTANCES`), or as a table of costs says.

    Squared, one acts by any number, so the best action is the mean of what an output stands for; where values are to be
    published it is a value. Several columns add up.
    """

    cost: str = ABSOLUTE
    table: CostTable | None = None
    margin: bool = False
    published: bool = False
    orders: Orders = ()  # of columns whose values are no numbers
    name: ClassVar[str] = "distance"

    @property
    def full_name(self) -> str:
        return f"{self.name}:{self.cost}{f',{MARGIN}' if self.margin else ''}"

    @property
    def unit(self) -> str:
        return UNITS.get(self.cost, "expected cost")

    @property
    def value_use(self) -> Distance:
        return replace(self, published=True)

    @property
    def _acts_by_number(self) -> bool:
        return self.table is None and self.cost == SQUARED and not (self.margin or self.published)

    def with_orders(self, orders: Orders) -> Distance:
        return replace(self, orders=orders)

    def refuse(self, joint: Joint) -> None:
        check_orders(self.orders, joint)
        if self.table is not None:
            self.table.align(joint)
        elif self._acts_by_number and joint.m > 1:
            raise ParameterError(
                f"squared distance is for one column; {joint.m} are published. Use distance:absolute, or publish one."
            )
        else:
            value_positions(joint, self.orders)

    def actions(self, joint: Joint) -> FloatArray | None:
        return np.asarray(value_positions(joint, self.orders)[:, 0]) if self._acts_by_number else None

    def line(self, attribute: Attribute) -> FloatArray | None:
        return scale_positions(attribute, self.orders) if self.table is None else None

    def costs(self, joint: Joint) -> FloatArray:
        if self.table is not None:
            return self.table.align(joint)
        numbers = value_positions(joint, self.orders)
        return np.asarray(DISTANCES[self.cost](numbers[:, None, :] - numbers[None, :, :]).sum(axis=2))

    def value(self, joint: Joint, protocol: Protocol) -> float:
        x = self.actions(joint)
        if x is None:
            return LinearUse.value(self, joint, protocol)
        p_xy = protocol.joint_with_values(joint)
        p_y = p_xy.sum(axis=0)
        mean = np.divide(x @ p_xy, p_y, out=np.zeros_like(p_y), where=p_y > 0)
        return float((p_xy * np.square(x[:, None] - mean)).sum())


def resolve_value_use(use: Use, joint: Joint, orders: Orders = ()) -> Use:
    """The use that is served where original values must be published.

    One that says nothing about single values (information, statistics) leaves each as often as it was, so that the
    table can be counted as it is, and otherwise as right as can be: and near where all stand on a line.
    """
    if use.value_use is not None:
        return use.value_use
    return Distance(NEARBY, margin=True, orders=orders) if all_have_positions(joint, orders) else Values(margin=True)


def parse_values(text: str) -> Values:
    """What stands behind `values:`."""
    if text not in {"", MARGIN}:
        raise ParameterError(f"values are asked for as 'values' or 'values:{MARGIN}'; not as 'values:{text}'.")
    return Values(margin=text == MARGIN)


def parse_distance(text: str) -> Distance:
    """What stands behind `distance:`: absolute (where nothing does), squared or the name of a CSV file of costs."""
    if text == MARGIN:
        return Distance(margin=True)
    cost, margin = text.removesuffix(f",{MARGIN}") or ABSOLUTE, text.endswith(f",{MARGIN}")
    if cost not in DISTANCES and not Path(cost).suffix:
        raise ParameterError(
            f"a distance is {', '.join(DISTANCES)} or the name of a CSV file of costs; '{cost}' is none."
            f"{suggest_name(cost, tuple(DISTANCES))}"
        )
    table = None if cost in DISTANCES else read_costs(cost)
    return Distance(cost, table, margin)
