"""Costs as a file: first column the true values, header the values that are acted upon."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.model.contingency_csv import read_table
from privacyfunnel.model.joint import Joint


@dataclass(frozen=True, slots=True)
class CostTable:
    """ℓ(x, k) by labels: a line per true value, a column per action, the same labels in both, in any order."""

    name: str
    values: tuple[str, ...]
    actions: tuple[str, ...]
    cells: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if not all(0 <= cell < math.inf for line in self.cells for cell in line):
            raise ParameterError(f"costs must be finite and at least 0; some in '{self.name}' are not. Mend them.")
        if sorted(self.values) != sorted(self.actions) or len(set(self.values)) != len(self.values):
            raise ParameterError(
                f"costs need a line and a column for each value, once; '{self.name}' has {len(self.values)} lines and "
                f"{len(self.actions)} columns that are not the same values. Mend it."
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
