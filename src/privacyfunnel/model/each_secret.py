r"""Several secrets, each by itself: one promise about every secret column, each with an ε of its own.

The secret of the joint is all columns together, (S₁, …, S_n). The promise about S_j compares groups of these values:
those who have s_j, whatever else they have. So constraints, certificate and audit are those of one list of pairs, the
union over all columns; about what the columns say together nothing is promised (docs/theory.md, Theorem 75).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacyfunnel.arrays import BoolArray
from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import Comparisons, GroupPairs, compare_groups, scale_below
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promise_base import PROMISES, Promise

BETWEEN = " & "  # what stands between the labels of several columns


@dataclass(frozen=True)
class Each(Promise):
    """A promise about each of several secret columns by itself; its ε is that of columns without one of their own."""

    asked_as: ClassVar[str] = "each, each:ldp,health=0.5"
    reads_labels: ClassVar[bool] = True
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
    def from_text(cls, argument: str, epsilon: float | None) -> Each:
        if epsilon is None:
            raise ParameterError(f"A promise needs its ε; none was given. Add {hint('epsilon', 1)}.")
        kind, *sizes = argument.split(",") if argument else ["lip"]
        if "=" in kind:
            kind, sizes = "lip", [kind, *sizes]
        try:
            own = tuple((column, float(size)) for column, size in (each.rsplit("=", 1) for each in sizes))
        except ValueError:
            raise ParameterError(f"each is asked for as each:lip,health=0.5; got 'each:{argument}'.") from None
        return cls(epsilon, kind.lower(), own)

    @property
    def text(self) -> str:
        return ",".join([f"each:{self.kind}", *(f"{column}={size!r}" for column, size in self.sizes)])

    @classmethod
    def from_parameters(cls, epsilon: float, parameters: Mapping[str, Any]) -> Each:
        sizes = tuple((str(column), float(size)) for column, size in parameters["sizes"].items())
        return cls(epsilon, str(parameters["promise"]), sizes)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"promise": self.kind, "sizes": dict(self.sizes)}

    def smallest_scale(self, secrets: object) -> float:
        return min((scale_below(size, self.epsilon) for _, size in self.sizes), default=1.0)

    def with_epsilon(self, epsilon: float) -> Each:
        share = Fraction(epsilon) / Fraction(self.epsilon) if self.epsilon else Fraction(1)
        return Each(epsilon, self.kind, tuple((column, float(share * Fraction(size))) for column, size in self.sizes))

    @property
    def _promise(self) -> Promise:
        return PROMISES[self.kind](self.epsilon)

    @property
    def guards_known_attributes(self) -> bool:
        return self._promise.guards_known_attributes

    @property
    def meaning(self) -> str:
        own = "".join(
            f"; for {column} it is that to the power of {size / self.epsilon:.3g}" for column, size in self.sizes
        )
        return (
            f"{self.kind.upper()} about each of {{secret}} by itself: a published record changes no belief about one "
            f"of them by more than a factor of {{factor}}, compared with its share {{where}}{own}. What it says about "
            "several of them together is not bounded."
        )

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        columns = joint.secret_name.split(BETWEEN)
        unknown = {column for column, _ in self.sizes} - set(columns)
        if unknown or len(columns) < 2:
            named = f"'{min(unknown)}' is none" if unknown else f"there is one, {joint.secret_name}"
            raise ParameterError(f"A promise about each secret by itself needs several secret columns; {named}.")
        by_column = [
            self._column_pairs(joint, j, dict(self.sizes).get(name), sees_secret) for j, name in enumerate(columns)
        ]
        for blocks in zip(*by_column, strict=True):
            yield _merge_blocks(joint, sees_secret, blocks)

    def _column_pairs(self, joint: Joint, j: int, size: float | None, sees_secret: bool) -> list[GroupPairs]:
        """What the promise compares of one column, as groups of the values of all."""
        parts = [label.split(BETWEEN) for label in joint.secrets]
        columns = joint.secret_name.count(BETWEEN) + 1
        if any(len(part) != columns for part in parts):
            raise ParameterError(
                f"Each secret by itself needs values without '{BETWEEN.strip()}' between words, and none that were "
                f"merged; some of {joint.secret_name} are. Rename them, or ask for {hint('prior', 'table')}."
            )
        values, held = np.unique([part[j] for part in parts], return_inverse=True)
        mine: BoolArray = held.reshape(-1) == np.arange(len(values))[:, None]
        scale = 1.0 if size is None else scale_below(size, self.epsilon)
        return [
            GroupPairs(
                (each.groups.astype(np.int64) @ mine) > 0,
                each.pairs,
                each.known,
                scale * (np.ones((len(each.pairs), 2)) if each.scales is None else each.scales),
            )
            for each in self._promise.group_pairs(len(values), joint.m, sees_secret)
        ]


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
