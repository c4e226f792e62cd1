"""What every published model states beside its distribution: secrets, rows, and the ε that was spent on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privacyfunnel.errors import DistributionError
from privacyfunnel.names import OTHER, unique_label


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedModel:
    """The secrets that a model tells apart, n, and how ε is shared between the model and the records."""

    groups: tuple[tuple[str, ...], ...]  # the secrets that each of its secrets stands for
    rest: int | None  # the group of every secret that is not listed; None where all are
    rows: int  # n, which is public
    epsilon: Fraction  # ε_c
    delta: Fraction  # 0 where labels were given
    total: Fraction  # ε of everything that is published together

    def __post_init__(self) -> None:
        named = [label for group in self.groups for label in group]
        if len(self.groups) < 2 or len(set(named)) < len(named) or self.rows < 1:
            raise DistributionError("A model must tell groups of secrets apart, each secret in one; this one does not.")
        if self.rest is not None and not 0 <= self.rest < len(self.groups):
            raise DistributionError("Secrets that a model does not list must be in one of its groups; they are not.")
        if not all(group or s == self.rest for s, group in enumerate(self.groups)):
            raise DistributionError("Every group of a model must list secrets, or stand for the rest; some do not.")
        if not (0 < self.epsilon < self.total and 0 <= self.delta < 1):
            raise DistributionError("The ε of a model must be a part of the whole ε; it is not.")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What each group is called: its secret, or `other` where it stands for several."""
        taken = [group[0] for group in self.groups if len(group) == 1]
        called: list[str] = []
        for group in self.groups:
            called.append(group[0] if len(group) == 1 else unique_label(OTHER, [*taken, *called]))
        return tuple(called)

    @property
    def pooled(self) -> tuple[str, ...]:
        """The listed secrets that are promised as a group only."""
        return tuple(label for group in self.groups if len(group) > 1 for label in group)

    def group_of(self, labels: Sequence[str]) -> tuple[str, ...]:
        """The group that secrets with these labels belong to, by what it is called."""
        place = {label: s for s, group in enumerate(self.groups) for label in group}
        unknown = [label for label in labels if label not in place]
        if unknown and self.rest is None:
            raise DistributionError("The model must list every secret of the table; it does not.")
        called = self.secrets
        return tuple(called[place.get(label, self.rest or 0)] for label in labels)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a protocol file."""
        return {
            "rows": self.rows,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "total_epsilon": str(self.total),
            "secrets": [list(group) for group in self.groups],
            "rest": self.rest,
        }


def facts_from_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a model that every protocol file with one states."""
    return {
        "groups": tuple(map(tuple, content["secrets"])),
        "rest": content["rest"],
        "rows": content["rows"],
        "epsilon": Fraction(content["epsilon"]),
        "delta": Fraction(content["delta"]),
        "total": Fraction(content["total_epsilon"]),
    }
