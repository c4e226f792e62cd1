"""A published model of any number of columns, as it stands in a protocol file: a tree, and what ε was spent on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privacyfunnel.errors import DistributionError
from privacyfunnel.model.each_secret import APART
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.table_model import PublishedModel, SecretModels, facts_from_json, name_groups
from privacyfunnel.model.published.tree_model import TreeModel


@dataclass(frozen=True, eq=False, kw_only=True)
class WideModel(PublishedModel):
    """p̃(s, x) over all combinations of labels, whether they occur or not."""

    tree: TreeModel

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tree.secret.labels != self.secrets:
            raise DistributionError(
                f"A model must have a share for each of {len(self.secrets)} groups of secrets; this one has "
                f"{len(self.tree.shares)}."
            )

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), **self.tree.to_json()}


@dataclass(frozen=True, eq=False, kw_only=True)
class WideEachModel(WideModel, SecretModels):
    """p̃(s_j, x) of every secret column, one below the other in one tree: that of (J, S_J) for a column J."""


def read_wide_model(content: Mapping[str, Any], columns: tuple[str, ...], attributes: Sequence[Attribute]) -> WideModel:
    """The model that a protocol file states, about these secret columns and labels."""
    if "each" not in content:
        facts = facts_from_json(content)
        secret = Attribute(" & ".join(columns), name_groups(facts["groups"]))
        return WideModel(tree=TreeModel.from_json(content, secret, attributes), **facts)
    parts = [PublishedModel(**facts_from_json(part)) for part in content["each"]]
    values = stack_values(dict(zip(columns, (part.secrets for part in parts), strict=True)))
    tree = TreeModel.from_json(content, values, attributes)
    return WideEachModel.read_parts(content, columns, parts, tree=tree)


def stack_values(values: Mapping[str, Sequence[str]]) -> Attribute:
    """The values of several secret columns, one below the other."""
    return Attribute(
        APART.join(values), tuple(f"{column} = {label}" for column, labels in values.items() for label in labels)
    )
