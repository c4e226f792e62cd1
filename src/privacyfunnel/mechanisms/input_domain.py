r"""Domain: the inputs of a protocol, the shares of their labels, and substitutes for unknown values.

Shares are the number of rows with each label of each published column, where the owner publishes them. They are exact,
so that estimates of other tables can be calibrated to them; docs/limits.md says what they leak.

A record with an unknown value is published like that of a random input: one of 256 evenly spaced points of the inputs'
distribution, chosen by the record's own random word. Its output is independent of its value, and outputs keep their
distribution, to within the 1/256 to which these points follow p(x):

.. math:: P(y) = \tfrac{1}{256} \sum_{i} q(y \mid x_i), \qquad \sum_{x \le x_i} p(x) \ge \tfrac{i + 1/2}{256}.

The file states these points of p(x) and no more. Nothing is certified for such records: the promise was checked on
known values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError, ProtocolFileError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sampling import WORD_BITS, RandomWords
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.model.uses.ordinal_scale import Orders
from privacyfunnel.names import OTHER


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """What a protocol's inputs are. Public: it names columns and labels, and never says how often one occurs."""

    attributes: tuple[Attribute, ...]
    combos: IntArray  # the combinations of labels that are inputs, in order; none where they are not listed
    secret_columns: tuple[str, ...]
    secrets: tuple[str, ...] = ()  # the secret's labels, in order; only where the protocol sees the secret
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # the edges of columns that were numbers
    groupings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the rules of coarser labels
    rest: Mapping[str, str] = field(default_factory=dict)  # the label of every value of a column that is not listed
    missing: Mapping[str, str] = field(default_factory=dict)  # the label of a missing entry of a column, if it has one
    orders: Orders = ()  # of columns whose labels stand on a line, though they are no numbers: the least first
    secrets_merged: bool = False  # whether some values of the secret are one: nothing is promised that tells them apart

    @property
    def label_orders(self) -> dict[str, tuple[str, ...]]:
        """The labels of each column as they are listed: by the owner's order, or by the numbers that all begin with."""
        given = dict(self.orders)
        return {at.name: tuple(given.get(at.name) or order_by_number(at.labels)) for at in self.attributes}

    @classmethod
    def from_joint(cls, joint: Joint, sees_secret: bool) -> Domain:
        """The domain of a joint."""
        return cls(joint.attributes, joint.combos, (joint.secret_name,), joint.secrets if sees_secret else ())

    @property
    def lists_combinations(self) -> bool:
        """Whether inputs are the combinations of a list; else every combination of labels is one."""
        return len(self.combos) > 0

    @property
    def values(self) -> tuple[Labels, ...]:
        """Each combination as its labels, one per attribute."""
        columns = [np.array(at.labels, dtype=object)[self.combos[:, j]] for j, at in enumerate(self.attributes)]
        return tuple(zip(*columns, strict=True))

    def input_labels(self, labels: Sequence[str]) -> Labels:
        """The input that a record with these labels is: what is not listed is the rest, where there is one."""
        return tuple(
            label if label in at.labels else self.rest.get(at.name, label)
            for at, label in zip(self.attributes, labels, strict=True)
        )

    def check_secrets(self, merges: Sequence[object]) -> None:
        """Secrets must be merged as they were for the protocol: else another promise would be judged."""
        if self.secrets_merged != bool(merges):
            found = "says that some were" if self.secrets_merged else "says that none were"
            raise ColumnError(
                f"secrets must be merged as they were for the protocol; its file {found}. "
                f"{'Name' if self.secrets_merged else 'Leave out'} {hint('merge_secrets')}."
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
                    **({"grouped": dict(self.groupings[at.name])} if at.name in self.groupings else {}),
                    **({"rest": self.rest[at.name]} if at.name in self.rest else {}),
                    **({"missing": self.missing[at.name]} if at.name in self.missing else {}),
                    **({"ordered": list(dict(self.orders)[at.name])} if at.name in dict(self.orders) else {}),
                }
                for at in self.attributes
            ],
            "combinations": None if self._is_plain or not self.lists_combinations else self.combos.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Domain:
        """The domain that a protocol file states; it must name labels that there are, and nothing twice."""
        published = content["publish"]
        attributes = tuple(Attribute(p["column"], tuple(p["labels"])) for p in published)
        combos = content["combinations"]
        if combos is None:
            unlisted = "tables" in content.get("model", {})  # of a tree
            if len(attributes) > 1 and not unlisted:
                raise ProtocolFileError("combinations must be listed for several columns; they are not. Make it again.")
            combos = [] if unlisted else [[code] for code in range(len(attributes[0].labels))]
        if any(len(combo) != len(attributes) for combo in combos):
            raise ProtocolFileError("every combination must name a label of each column; some do not. Make it again.")
        domain = cls(
            attributes=attributes,
            combos=np.array(combos, dtype=np.int64).reshape(-1, len(attributes)),
            secret_columns=tuple(content["secret"]["columns"]),
            secrets=tuple(content["secret"]["labels"]),
            bins={p["column"]: tuple(map(float, p["bins"])) for p in published if p["bins"] is not None},
            groupings={p["column"]: _check_rule(p["grouped"]) for p in published if "grouped" in p},
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


def _check_rule(rule: Mapping[str, Any]) -> Mapping[str, Any]:
    """A column is grouped by one rule; whether its values have the right form, the schema says."""
    kinds = [{"by", "dates"} if "by" in rule else {"by"}, {"prefix"}, {"map"}, {"bottom", "top"}]
    if not rule or not any(set(rule) <= kind for kind in kinds):
        raise ProtocolFileError("a column must be grouped by one known rule; it is grouped by several or none.")
    return rule


def _check_combinations(domain: Domain) -> None:
    """Every input is a combination of labels that there are, and all differ."""
    combos, sizes = domain.combos, [len(at.labels) for at in domain.attributes]
    if (combos < 0).any() or (combos >= np.array(sizes)).any():
        raise ProtocolFileError("every combination must name labels of its columns; some do not.")
    if len(np.unique(combos, axis=0)) < len(combos):
        raise ProtocolFileError("every combination must be listed once; some are listed twice.")


def _check_edges(edges: tuple[float, ...] | None) -> list[float] | None:
    if edges is None:
        return None
    if not all(map(math.isfinite, edges)):
        raise ParameterError("Edges of bins must be finite numbers; some are not.")
    return list(edges)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnShares:
    """How many rows have each label of each published column."""

    counts: tuple[IntArray, ...]

    @classmethod
    def from_joint(cls, joint: Joint) -> ColumnShares:
        """Those of a table.

        >>> ColumnShares.from_joint(Joint.from_counts([[1, 2], [3, 4]])).counts
        (array([4, 6]),)
        """
        rows = joint.weights.sum(axis=0)
        return cls(
            tuple(
                np.bincount(joint.combos[:, j], weights=rows, minlength=len(at.labels)).astype(np.int64)
                for j, at in enumerate(joint.attributes)
            )
        )

    @property
    def rows(self) -> int:
        """n."""
        return int(self.counts[0].sum())

    def share(self, column: int) -> FloatArray:
        """The share of each label of a column."""
        return np.asarray(self.counts[column] / self.rows)

    def equals(self, other: ColumnShares) -> bool:
        """Whether both say the same."""
        return len(self.counts) == len(other.counts) and all(map(np.array_equal, self.counts, other.counts))


def shares_to_json(shares: ColumnShares | None) -> dict[str, Any]:
    """As they stand in the protocol file: a list per column, in the order of its labels."""
    return {} if shares is None else {"shares": [counts.tolist() for counts in shares.counts]}


def shares_from_json(content: Mapping[str, Any], domain: Domain) -> ColumnShares | None:
    """Those that a protocol file states, if it does."""
    stated: Sequence[Sequence[int]] | None = content.get("shares")
    if stated is None:
        return None
    labels, totals = [len(at.labels) for at in domain.attributes], {sum(counts) for counts in stated}
    if [len(counts) for counts in stated] != labels or len(totals) != 1 or totals == {0}:
        raise ProtocolFileError(
            "shares must be a number of rows for every label of every column, each column adding up to the same; they "
            "are not."
        )
    return ColumnShares(tuple(np.array(counts, dtype=np.int64) for counts in stated))


BITS = 8
SIZE = 1 << BITS  # points: as few as give the larger shares their due, and nobody's count away
DRAW = (1 << 64) - 2  # the draw number in which they are chosen: no mechanism draws in it


def build_substitutes(p_x: FloatArray) -> IntArray:
    """Evenly spaced points of a distribution of inputs, in order.

    >>> np.bincount(build_substitutes(np.array([0.5, 0.25, 0.25]))).tolist()
    [128, 64, 64]
    """
    points = (np.arange(SIZE) + 0.5) / SIZE
    found: IntArray = np.minimum(np.searchsorted(np.cumsum(p_x), points), len(p_x) - 1)
    return found


def draw_substitutes(substitutes: IntArray, random_words: RandomWords) -> IntArray:
    """An input for each of these rows, by its word."""
    return np.asarray(substitutes[(random_words.word(DRAW) >> np.uint64(WORD_BITS - BITS)).astype(np.int64)])


def substitutes_to_json(substitutes: IntArray | None) -> dict[str, Any]:
    """As they stand in the protocol file: inputs, each with how many of the points it has."""
    if substitutes is None:
        return {}
    inputs, times = np.unique(substitutes, return_counts=True)
    return {"substitutes": [list(pair) for pair in zip(inputs.tolist(), times.tolist(), strict=True)]}


def substitutes_from_json(content: Mapping[str, Any], inputs: int, sees_secret: bool) -> IntArray | None:
    """Those that a protocol file states, if it does."""
    stated = content.get("substitutes")
    if stated is None:
        return None
    code, times = (np.array([pair[i] for pair in stated], dtype=np.int64) for i in (0, 1))
    if sees_secret or int(times.sum()) != SIZE or (np.diff(code) <= 0).any() or code.max() >= inputs:
        raise ProtocolFileError(
            f"what stands for unknown values must be {SIZE} points among inputs that are values; it is not."
        )
    return np.repeat(code, times)


def order_by_number(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels by the numbers that all of them begin with, `other` last; as they are where some begin otherwise.

    >>> order_by_number(["0-3", "10-12", "4-6", "other"])
    ('0-3', '4-6', '10-12', 'other')
    """
    found = [re.match(r"-?\d+(?:\.\d+)?", label) for label in labels]
    if not all(number or label == OTHER for number, label in zip(found, labels, strict=True)):
        return tuple(labels)
    size = {
        label: math.inf if number is None else float(number[0]) for number, label in zip(found, labels, strict=True)
    }
    return tuple(sorted(labels, key=lambda label: size[label]))
