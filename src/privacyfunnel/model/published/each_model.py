"""A published model of several secrets, each by itself: a noisy table of each with what is published, and none of all.

Each table gets its part of ε_c, which adds up. Against one noisy table of all secrets together, which every table would
follow from by summation, k tables have noise of k² times the variance in a cell, and that one sums as many cells as the
other secrets have combinations: it is worse unless these are fewer than k².
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import DistributionError
from privacyfunnel.model.each_secret import stack_joints
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.published.table_model import PublishedModel, TableModel


@dataclass(frozen=True, eq=False, kw_only=True)
class EachModel(PublishedModel):
    """p̃(s_j, x) of every secret column, over the same values; ε, δ and the noise are those of all tables together."""

    parts: Mapping[str, TableModel]  # by column

    @classmethod
    def of_parts(cls, parts: Mapping[str, TableModel]) -> EachModel:
        """The model that these are together."""
        first = next(iter(parts.values()))
        return cls(
            groups=(),
            rest=None,
            rows=first.rows,
            epsilon=sum((part.epsilon for part in parts.values()), Fraction(0)),
            delta=sum((part.delta for part in parts.values()), Fraction(0)),
            total=first.total,
            parts=parts,
        )

    def __post_init__(self) -> None:
        parts = self.parts.values()
        if len(parts) < 2 or {(part.rows, part.total) for part in parts} != {(self.rows, self.total)}:
            raise DistributionError("The tables of several secrets must be of the same rows and ε; these are not.")
        if len({part.weights.shape[1] for part in parts}) > 1:
            raise DistributionError("The tables of several secrets must have the same values; these do not.")
        if sum(part.epsilon for part in parts) != self.epsilon or sum(part.delta for part in parts) != self.delta:
            raise DistributionError("The ε and δ of several tables must add up to the model's; they do not.")
        if not self.epsilon < self.total:
            raise DistributionError("The ε of a model must be a part of the whole ε; it is not.")

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(f"{column} = {label}" for column, part in self.parts.items() for label in part.secrets)

    @property
    def pooled(self) -> tuple[str, ...]:
        return tuple(f"{column} = {label}" for column, part in self.parts.items() for label in part.pooled)

    @property
    def weights_by_input(self) -> NDArray[Any]:
        return np.vstack([part.weights for part in self.parts.values()])

    def joint(self, attributes: tuple[Attribute, ...], combos: IntArray, secret_name: str) -> Joint:
        return stack_joints({column: part.joint(attributes, combos, column) for column, part in self.parts.items()})

    def to_json(self) -> dict[str, Any]:
        facts = super().to_json()
        del facts["secrets"], facts["rest"]
        return {**facts, "each": [part.to_json() for part in self.parts.values()]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], columns: tuple[str, ...]) -> EachModel:
        """The model that a protocol file states, a table for each of these secret columns."""
        if len(columns) != len(content["each"]):
            raise DistributionError("A model must have a table for each secret column; this one has not.")
        made = cls.of_parts(dict(zip(columns, map(TableModel.from_json, content["each"]), strict=True)))
        if {**made.to_json(), "each": None} != {**content, "each": None}:
            raise DistributionError("The ε, δ and rows of several tables must be those of the model; they are not.")
        return made
