"""Domains: what a protocol's inputs are, as far as the public may know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError, ParameterError, ProtocolFileError
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.model.uses.ordinal_scale import Orders
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Variable
from privacyfunnel.tables.coding.grouping import Grouping
from privacyfunnel.tables.coding.grouping_rules import parse_grouping
from privacyfunnel.tables.coding.merges import Merge, MergeOthers


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """What a protocol's inputs are. Public: it names columns and labels, and never says how often one occurs."""

    attributes: tuple[Attribute, ...]
    combos: IntArray  # the combinations of labels that are inputs, in order
    secret_columns: tuple[str, ...]
    secrets: tuple[str, ...] = ()  # the secret's labels, in order; only where the protocol sees the secret
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # the edges of columns that were numbers
    groupings: Mapping[str, Grouping] = field(default_factory=dict)  # by which rule columns of coarser labels are read
    rest: Mapping[str, str] = field(default_factory=dict)  # the label of every value of a column that is not listed
    missing: Mapping[str, str] = field(default_factory=dict)  # the label of a missing entry of a column, if it has one
    orders: Orders = ()  # of columns whose labels stand on a line, though they are no numbers: the least first
    secrets_merged: bool = False  # whether some values of the secret are one: nothing is promised that tells them apart

    @classmethod
    def from_joint(cls, joint: Joint, sees_secret: bool) -> Domain:
        """The domain of a joint."""
        return cls(joint.attributes, joint.combos, (joint.secret_name,), joint.secrets if sees_secret else ())

    @property
    def published_variable(self) -> Variable:
        """How the published columns of any table are read: entries become codes of these labels."""
        return Variable(tuple(map(self._coding, self.attributes)), self.combos)

    def _coding(self, at: Attribute) -> Coding:
        missing, rest = self.missing.get(at.name), self.rest.get(at.name)
        return Coding(
            at.name,
            at.labels,
            missing=None if missing is None else at.labels.index(missing),
            edges=tuple(self.bins.get(at.name, ())),
            rest=None if rest is None else at.labels.index(rest),
            how=self.groupings.get(at.name),
        )

    @property
    def values(self) -> tuple[Labels, ...]:
        """Each combination as its labels, one per attribute."""
        columns = [np.array(at.labels, dtype=object)[self.combos[:, j]] for j, at in enumerate(self.attributes)]
        return tuple(zip(*columns, strict=True))

    @property
    def column_bins(self) -> tuple[Bins, ...]:
        """How each published column is read; without edges or a rule `Bins` keeps every value as it is."""
        return tuple(
            Bins(at.name, edges=tuple(self.bins.get(at.name, ())), how=self.groupings.get(at.name))
            for at in self.attributes
        )

    @property
    def rest_merges(self) -> tuple[Merge, ...]:
        """How the published columns of a table are read again as they were read for the protocol."""
        return tuple(
            MergeOthers(at.name, frozenset(at.labels), self.rest[at.name])
            for at in self.attributes
            if at.name in self.rest
        )

    def input_labels(self, labels: Sequence[str]) -> Labels:
        """The input that a record with these labels is: what is not listed is the rest, where there is one."""
        return tuple(
            label if label in at.labels else self.rest.get(at.name, label)
            for at, label in zip(self.attributes, labels, strict=True)
        )

    def check_secrets(self, given: Sequence[Merge]) -> None:
        """Secrets must be merged as they were for the protocol: else another promise would be judged."""
        if self.secrets_merged != bool(given):
            found = "says that some were" if self.secrets_merged else "says that none were"
            raise ColumnError(
                f"secrets must be merged as they were for the protocol; its file {found}. "
                f"{'Name' if self.secrets_merged else 'Leave out'} --merge-secrets."
            )

    def to_json(self) -> dict[str, Any]:
        """The domain as it stands in the protocol file."""
        return {
            "secret": {
                "columns": list(self.secret_columns),
                "labels": list(self.secrets),
                **({"merged": True} if self.secrets_merged else {}),
            },
            "publish": [
                {
                    "column": at.name,
                    "labels": list(at.labels),
                    "bins": _check_edges(self.bins.get(at.name)),
                    **({"grouped": self.groupings[at.name].to_json()} if at.name in self.groupings else {}),
                    **({"rest": self.rest[at.name]} if at.name in self.rest else {}),
                    **({"missing": self.missing[at.name]} if at.name in self.missing else {}),
                    **({"ordered": list(dict(self.orders)[at.name])} if at.name in dict(self.orders) else {}),
                }
                for at in self.attributes
            ],
            "combinations": None if self._is_plain else self.combos.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Domain:
        """The domain that a protocol file states; it must name labels that there are, and nothing twice."""
        published = content["publish"]
        attributes = tuple(Attribute(p["column"], tuple(p["labels"])) for p in published)
        combos = content["combinations"]
        if combos is None:
            if len(attributes) > 1:
                raise ProtocolFileError("combinations must be listed for several columns; they are not. Make it again.")
            combos = [[code] for code in range(len(attributes[0].labels))]
        if any(len(combo) != len(attributes) for combo in combos):
            raise ProtocolFileError("every combination must name a label of each column; some do not. Make it again.")
        domain = cls(
            attributes=attributes,
            combos=np.array(combos, dtype=np.int64).reshape(-1, len(attributes)),
            secret_columns=tuple(content["secret"]["columns"]),
            secrets=tuple(content["secret"]["labels"]),
            bins={p["column"]: tuple(map(float, p["bins"])) for p in published if p["bins"] is not None},
            groupings={p["column"]: _parse_grouping(p["grouped"]) for p in published if "grouped" in p},
            rest={p["column"]: p["rest"] for p in published if "rest" in p},
            missing={p["column"]: p["missing"] for p in published if "missing" in p},
            orders=tuple((p["column"], tuple(p["ordered"])) for p in published if "ordered" in p),
            secrets_merged="merged" in content["secret"],
        )
        _check_columns(domain)
        _check_rest(domain)
        _check_combinations(domain)
        return domain

    @property
    def _is_plain(self) -> bool:
        """One attribute whose inputs are its labels in order."""
        return len(self.attributes) == 1 and np.array_equal(
            self.combos[:, 0], np.arange(len(self.attributes[0].labels))
        )


def _check_columns(domain: Domain) -> None:
    """A file that names no secret, or publishes it, would be certified for nothing."""
    secret, published = domain.secret_columns, [at.name for at in domain.attributes]
    if not secret or len({*secret, *published}) != len(secret) + len(published):
        raise ProtocolFileError("secret and published columns must be named, each once; they are not.")


def _check_rest(domain: Domain) -> None:
    """What stands for all other values is a label of its column, and bins leave none; an order is of all labels."""
    for at in domain.attributes:
        if at.name in domain.missing and domain.missing[at.name] not in at.labels:
            raise ProtocolFileError("what stands for a missing entry must be a label of its column; it is not.")
        if sorted(dict(domain.orders).get(at.name, at.labels)) != sorted(at.labels):
            raise ProtocolFileError("an order must name every label of its column once; it does not.")
        if at.name in domain.rest and (domain.rest[at.name] not in at.labels or at.name in domain.bins):
            raise ProtocolFileError(
                "what stands for all other values must be a label of its column, which has no bins; it is not."
            )


def _parse_grouping(content: Mapping[str, Any]) -> Grouping:
    try:
        return parse_grouping(content)
    except ParameterError as error:
        raise ProtocolFileError(f"{error} The file was altered or written by another program: make it again.") from None


def _check_combinations(domain: Domain) -> None:
    """Every input is a combination of labels that there are, and all differ."""
    combos, sizes = domain.combos, [len(at.labels) for at in domain.attributes]
    if not len(combos) or (combos < 0).any() or (combos >= np.array(sizes)).any():
        raise ProtocolFileError("every combination must name labels of its columns; some do not.")
    if len(np.unique(combos, axis=0)) < len(combos):
        raise ProtocolFileError("every combination must be listed once; some are listed twice.")


def _check_edges(edges: tuple[float, ...] | None) -> list[float] | None:
    if edges is None:
        return None
    if not all(map(math.isfinite, edges)):
        raise ParameterError("Edges of bins must be finite numbers; some are not.")
    return list(edges)
