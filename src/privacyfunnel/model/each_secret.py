r"""Several secrets, each by itself: one promise about every secret column, each with an ε of its own.

The secret of the joint is all columns together, (S₁, …, S_n). The promise about S_j compares groups of these values:
those who have s_j, whatever else they have. So constraints, certificate and audit are those of one list of pairs, the
union over all columns; about what the columns say together nothing is promised (docs/theory.md, Theorem 75).

A published model has a table p̃(s_j, x) of every secret column and none of all together. Its joint has the values of
all columns one below the other, `health = ill`, `income = high`, …: that of (J, S_J) for a column J drawn evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacyfunnel.arrays import BoolArray
from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import Comparisons, GroupPairs, compare_groups, float_below, scale_below
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promise_base import PROMISES, Promise

BETWEEN = " & "  # what stands between the labels of several columns …
APART = " | "  # … and between the names of columns whose values stand below each other, as `health = ill`


@dataclass(frozen=True)
class Each(Promise):
    """A promise about each of several secret columns by itself; its ε is that of columns without one of their own."""

    asked_as: ClassVar[str] = "each"
    by_column: ClassVar[bool] = True
    kind: str = "lip"
    sizes: tuple[tuple[str, float], ...] = ()  # of columns that have a smaller ε of their own

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in PROMISES or PROMISES[self.kind].asked_as:
            raise ParameterError(f"each is about lip, pml, ldp or srlip; got '{self.kind}'.")
        columns = [column for column, _ in self.sizes]
        if len(set(columns)) < len(columns):
            raise ParameterError("Every secret column has one ε; one was given several.")
        for column, size in self.sizes:
            if not 0 < check_epsilon(size) <= self.epsilon:
                raise ParameterError(
                    f"The ε of a column must lie above 0 and be at most {hint('epsilon')} = {self.epsilon:g}; that of "
                    f"'{column}' is {size:g}. Let {hint('epsilon')} be the largest."
                )

    @classmethod
    def of_columns(cls, promise: Promise, sizes: Mapping[str, float | None]) -> Each:
        """That promise about each of these columns, with an ε of its own where one is given."""
        if isinstance(promise, Each) and not any(sizes.values()):
            return promise
        if type(promise).asked_as:
            raise ParameterError(
                f"Several secrets, each by itself, are promised by lip, pml, ldp or srlip; {promise.name} was asked "
                f"for. Make them one secret with a comma: {hint('secret', ','.join(sizes))}."
            )
        every = {column: promise.epsilon if size is None else size for column, size in sizes.items()}
        largest = max(every.values())
        return cls(largest, promise.name.lower(), tuple((at, size) for at, size in every.items() if size < largest))

    @property
    def text(self) -> str:
        return "" if self.sizes or self.kind != "lip" else "each"

    @classmethod
    def from_parameters(cls, epsilon: float, parameters: Mapping[str, Any]) -> Each:
        sizes = tuple((str(column), float(size)) for column, size in parameters["sizes"].items())
        return cls(epsilon, str(parameters["promise"]), sizes)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"promise": self.kind, "sizes": dict(self.sizes)}

    def reduce(self, epsilon: Fraction, secrets: Sequence[str]) -> Each:
        least = min((size for _, size in self.sizes), default=self.epsilon)
        if not epsilon < Fraction(least):
            raise ParameterError(
                f"Every secret needs a larger ε than the model's {float(epsilon):.3g}; the least is {least:g}. Give it "
                f"more, the model less with {hint('design_epsilon')}, or ask for {hint('prior', 'table')}."
            )
        left = [(column, float_below(Fraction(str(size)) - epsilon)) for column, size in self.sizes]
        return Each(float_below(Fraction(str(self.epsilon)) - epsilon), self.kind, tuple(left))

    @property
    def own_sizes(self) -> dict[str, float]:
        return dict(self.sizes)

    def with_epsilon(self, epsilon: float) -> Each:
        share = Fraction(epsilon) / Fraction(self.epsilon) if self.epsilon else Fraction(1)
        return Each(epsilon, self.kind, tuple((column, float(share * Fraction(size))) for column, size in self.sizes))

    @property
    def without_scales(self) -> Each:
        return Each(self.epsilon, self.kind)

    @property
    def _promise(self) -> Promise:
        return PROMISES[self.kind](self.epsilon)

    @property
    def guards_known_attributes(self) -> bool:
        return self._promise.guards_known_attributes

    @property
    def meaning(self) -> str:
        own = f"; for {', '.join(column for column, _ in self.sizes)} by less, its own ε" if self.sizes else ""
        return (
            f"{self.kind.upper()} about {{secret}}, by itself: a published record changes no belief about one of them "
            f"by more than a factor of {{factor}}, compared with its share {{where}}{own}. What it says about several "
            "of them together is not bounded."
        )

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        return self._promise.belief_bounds(prior, epsilon)

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        columns = split_columns(joint)
        unknown = {column for column, _ in self.sizes} - set(columns)
        if unknown or len(columns) < 2:
            named = f"'{min(unknown)}' is none" if unknown else f"there is one, {joint.secret_name}"
            raise ParameterError(f"A promise about each secret by itself needs several secret columns; {named}.")
        by_column = [
            self._column_pairs(joint, values, dict(self.sizes).get(name), sees_secret)
            for name, (_, values) in columns.items()
        ]
        for blocks in zip(*by_column, strict=True):
            yield _merge_blocks(joint, sees_secret, blocks)

    def _column_pairs(self, joint: Joint, values: BoolArray, size: float | None, sees_secret: bool) -> list[GroupPairs]:
        """What the promise compares of one column, as groups of the secrets of the joint."""
        scale = 1.0 if size is None else scale_below(size, self.epsilon)
        return [
            GroupPairs(
                (each.groups.astype(np.int64) @ values) > 0,
                each.pairs,
                each.known,
                scale * (np.ones((len(each.pairs), 2)) if each.scales is None else each.scales),
            )
            for each in self._promise.group_pairs(len(values), joint.m, sees_secret)
        ]


def split_columns(joint: Joint) -> dict[str, tuple[tuple[str, ...], BoolArray]]:
    """The values of each column by its name, and which secrets of the joint have each: values × secrets."""
    if APART in joint.secret_name:
        names = joint.secret_name.split(APART)
        mine = [[s for s, label in enumerate(joint.secrets) if label.startswith(f"{name} = ")] for name in names]
        if sorted(s for each in mine for s in each) != list(range(joint.c)):
            raise ParameterError(
                "Each value of several secrets must name the one column that it is of; some do not. Rename columns "
                f"that have '=' or '{APART.strip()}' in their names."
            )
        return {
            name: (tuple(joint.secrets[s].removeprefix(f"{name} = ") for s in each), np.eye(joint.c, dtype=bool)[each])
            for name, each in zip(names, mine, strict=True)
        }
    names, parts = joint.secret_name.split(BETWEEN), [label.split(BETWEEN) for label in joint.secrets]
    if len(names) > 1 and any(len(part) != len(names) for part in parts):
        raise ParameterError(
            f"Each secret by itself needs values without '{BETWEEN.strip()}' between words, and none that were "
            f"merged; some of {joint.secret_name} are. Rename them, or ask for {hint('prior', 'model')}."
        )
    found = {}
    for j, name in enumerate(names):
        values, held = np.unique([part[j] for part in parts], return_inverse=True)
        found[name] = tuple(values.tolist()), held.reshape(-1) == np.arange(len(values))[:, None]
    return found


def stack_joints(joints: Mapping[str, Joint]) -> Joint:
    """The values of several secret columns, one below the other, over the same published values."""
    first = next(iter(joints.values()))
    return Joint(
        np.concatenate([joint.weights for joint in joints.values()]),
        tuple(f"{name} = {label}" for name, joint in joints.items() for label in joint.secrets),
        first.attributes,
        first.combos,
        APART.join(joints),
    )


def _merge_blocks(joint: Joint, sees_secret: bool, blocks: tuple[GroupPairs, ...]) -> Comparisons:
    """The pairs of all columns in one block: all are about the same classes of people."""
    first = np.cumsum([0, *(len(block.groups) for block in blocks)])
    scales = np.concatenate([block.scales for block in blocks if block.scales is not None])
    return compare_groups(
        joint,
        sees_secret,
        np.concatenate([block.groups for block in blocks]),
        np.concatenate([block.pairs + start for block, start in zip(blocks, first, strict=False)]),
        blocks[0].known,
        None if (scales == 1).all() else scales,
    )
