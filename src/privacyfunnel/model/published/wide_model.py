"""A published model of any number of columns, as it stands in a protocol file: a tree, and what ε was spent on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privacyfunnel.errors import DistributionError
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.table_model import PublishedModel, facts_from_json
from privacyfunnel.model.published.tree_model import TreeModel


@dataclass(frozen=True, eq=False, kw_only=True)
class WideModel(PublishedModel):
    """p̃(s, x) over all combinations of labels, whether they occur or not."""

    tree: TreeModel

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.tree.shares) != len(self.groups):
            raise DistributionError(
                f"A model must have a share for each of {len(self.groups)} groups of secrets; this one has "
                f"{len(self.tree.shares)}."
            )

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), **self.tree.to_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], secret_name: str, attributes: Sequence[Attribute]) -> WideModel:
        """The model that a protocol file states, about these columns."""
        facts = facts_from_json(content)
        numbered = tuple(str(number) for number in range(len(facts["groups"])))
        tree = TreeModel.from_json(content, Attribute(secret_name, numbered), attributes)
        return cls(tree=tree, **facts)
