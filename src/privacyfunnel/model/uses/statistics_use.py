r"""Statistics: the least total squared error with which shares, or other linear queries, can be estimated.

Let W have a query in every row, P = diag(p), and let Q be the channel from X to outputs, f = Qᵀp. For the population's
shares the best linear unbiased estimate (maximum likelihood attains it) has n times a total squared error of

.. math:: \operatorname{tr}(P W_c^\top W_c P M^{-1}),\qquad M = P Q \operatorname{diag}(f)^{-1} Q^\top P
   = \textstyle\sum_y q_y v_y v_y^\top,

with queries centred, :math:`W_c = W - W p 1^\top`. For the table's own shares, whose rows are fixed, it is less by what
sampling adds, :math:`\operatorname{tr}(W_c P W_c^\top)` (docs/theory.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import ColumnError, ParameterError, check_positive
from privacyfunnel.model.contingency_csv import read_table
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.use import Use
from privacyfunnel.names import split_names, suggest_name

POPULATION = "population"  # how that target is asked for
WEIGHT = "weight"  # the header of a file that weighs values
KEPT = 0.99  # of the best information, where nothing else is said
REACHED = 1e-6  # of a query: what may lie outside of what the outputs tell apart, by rounding
FINEST = 1e-3  # of the value: no smaller gap is sought, since errors are random by far more than that
UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries by labels: a name and a coefficient for each value that is named; others count 0."""

    name: str
    values: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]  # a row per query

    def __post_init__(self) -> None:
        if not self.coefficients:
            raise ParameterError(f"a workload needs at least one query; '{self.name}' has none. Add one.")
        if not all(np.isfinite(row).all() for row in self.coefficients):
            raise ParameterError(f"coefficients must be finite; some in '{self.name}' are not. Correct them.")
        twice = [value for value in self.values if self.values.count(value) > 1]
        if twice:
            raise ColumnError(f"a workload names a value once; '{self.name}' names '{twice[0]}' twice. Correct it.")

    def query_matrix(self, joint: Joint) -> FloatArray:
        """The queries over the joint's values."""
        if joint.m != 1:
            raise ParameterError(f"a table of queries is for one column; {joint.m} are published. Name their margins.")
        labels = [label for (label,) in joint.values]
        unknown = [value for value in self.values if value not in labels]
        if unknown:
            raise ColumnError(
                f"a workload may name values of '{joint.attributes[0].name}' only; '{unknown[0]}' in '{self.name}' is "
                f"none.{suggest_name(unknown[0], labels)}"
            )
        W = np.zeros((len(self.coefficients), joint.a))
        W[:, [labels.index(value) for value in self.values]] = np.array(self.coefficients)
        return W


@dataclass(frozen=True, slots=True)
class Statistics(Use):
    """Least total squared error: of all shares, of the margins of some columns, or of a table of queries.

    `weights` make some values count more, where all shares are asked for: pairs of a label and a number; 1 where none
    is given.
    """

    columns: tuple[str, ...] = ()
    workload: Workload | None = None
    weights: tuple[tuple[str, float], ...] = ()
    weights_name: str = ""  # of the file that they were read from
    population: bool = False
    name: ClassVar[str] = "statistics"
    finest: ClassVar[float] = FINEST

    @property
    def full_name(self) -> str:
        parts = [*self.columns, *([] if self.workload is None else [self.workload.name])]
        parts += [self.weights_name or "weighted"] if self.weights else []
        parts += [POPULATION] if self.population else []
        return f"{self.name}:{','.join(parts)}" if parts else self.name

    @property
    def unit(self) -> str:
        return "n × total squared error of shares"

    def refuse(self, joint: Joint) -> None:
        W = self.queries(joint)
        if not (W - W[:, :1]).any():
            raise ParameterError(
                f"queries must ask for what differs between values; those of '{self.full_name}' are the same for all. "
                "Name others."
            )

    def queries(self, joint: Joint) -> FloatArray:
        """W, a row per query."""
        if self.weights and (self.columns or self.workload is not None):
            raise ParameterError("weights are for all shares; margins or queries were named too. Weigh the queries.")
        W, labels = self._unweighted_queries(joint), [" & ".join(value) for value in joint.values]
        for label, weight in self.weights:
            if label not in labels:
                raise ColumnError(
                    f"weights may name published values only; '{label}' is none.{suggest_name(label, labels)}"
                )
            W[labels.index(label)] *= np.sqrt(check_positive(f"the weight of '{label}'", weight))
        return W

    def _unweighted_queries(self, joint: Joint) -> FloatArray:
        if self.workload is not None:
            return self.workload.query_matrix(joint)
        if not self.columns:
            return np.eye(joint.a)
        names = [attribute.name for attribute in joint.attributes]
        rows = []
        for column in self.columns:
            if column not in names:
                raise ColumnError(
                    f"statistics may name published columns only; '{column}' is none.{suggest_name(column, names)}"
                )
            codes = joint.combos[:, names.index(column)]
            rows.append(codes == np.unique(codes)[:, None])
        return np.concatenate(rows).astype(np.float64)

    def factor(self, joint: Joint) -> FloatArray:
        """F = P W_cᵀ: a column per query."""
        return centre_queries(self.queries(joint), joint.p_x)

    def constant(self, joint: Joint) -> float:
        """What sampling adds to the population's error, and is not there for the table's own shares."""
        return 0.0 if self.population else float((self.factor(joint) ** 2 / joint.p_x[:, None]).sum())

    def value(self, joint: Joint, protocol: Protocol) -> float:
        """n × total squared error; infinite where outputs do not tell apart what a query asks."""
        p_xy = protocol.joint_with_values(joint)
        p_xy = p_xy[:, p_xy.sum(axis=0) > 0]
        p_y, F, root = p_xy.sum(axis=0), self.factor(joint), np.sqrt(joint.p_x)
        U = p_xy / np.sqrt(p_y) / root[:, None]
        size, vectors = np.linalg.eigh(U @ U.T)
        kept = size > len(size) * UNIT * size[-1]
        scaled = F / root[:, None]
        if np.linalg.norm(vectors[:, ~kept].T @ scaled) > REACHED * np.linalg.norm(scaled):
            return float("inf")
        solved = vectors[:, kept] @ ((vectors[:, kept].T @ scaled) / size[kept, None])
        whole = float(np.einsum("ij,ij->", scaled, solved))
        if protocol.sees_secret and not self.population:
            return max(whole - self._fixed_pair_error(joint, protocol, p_xy, solved / root[:, None]), 0.0)
        return max(whole - self.constant(joint), 0.0)

    def _fixed_pair_error(self, joint: Joint, protocol: Protocol, p_xy: FloatArray, solved: FloatArray) -> float:
        """Rows (s, x) are fixed and draws depend on both: Σ p(s,x) ‖what a row adds to the estimate on average‖²."""
        channel = protocol.channel[:, protocol.joint_with_values(joint).sum(axis=0) > 0]
        posteriors = (p_xy / p_xy.sum(axis=0)).T
        return float(joint.p_sx.ravel() @ ((channel @ (posteriors @ solved)) ** 2).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Balanced(Use):
    """Least error of statistics among the protocols that keep at least a share of the best information."""

    kept: float = KEPT
    statistics: Statistics = field(default_factory=Statistics)
    name: ClassVar[str] = "balanced"
    finest: ClassVar[float] = FINEST

    def __post_init__(self) -> None:
        if not 0 < self.kept < 1:
            raise ParameterError(
                f"balanced keeps a share of the best information above 0 and below 1; not {self.kept}."
            )

    @property
    def full_name(self) -> str:
        return self.name if self.kept == KEPT else f"{self.name}:{self.kept:g}"

    @property
    def unit(self) -> str:
        return self.statistics.unit

    @property
    def ignores_promise(self) -> bool:
        return False  # its share is one of what the promise allows

    def refuse(self, joint: Joint) -> None:
        self.statistics.refuse(joint)

    def value(self, joint: Joint, protocol: Protocol) -> float:
        return self.statistics.value(joint, protocol)


def centre_queries(queries: FloatArray, p: FloatArray) -> FloatArray:
    """P W_cᵀ: queries less what they are on average, since shares sum to 1."""
    return np.asarray((queries - (queries @ p)[:, None]).T * p[:, None])


def parse_statistics(text: str) -> Statistics:
    """What stands behind `statistics:`: columns whose margins count, or a CSV file of queries or of weights, or
    `population`."""
    parts = [word.strip() for word in split_names(text) if word.strip()]
    population = POPULATION in parts
    parts = [word for word in parts if word != POPULATION]
    files = [word for word in parts if word.lower().endswith(".csv")]
    if files and len(parts) > 1:
        raise ParameterError(
            f"statistics are of columns, or of one file of queries or weights; {len(parts)} were named. Name one."
        )
    if files:
        return replace(read_workload(files[0]), population=population)
    return Statistics(columns=tuple(parts), population=population)


def parse_balanced(text: str) -> Balanced:
    """What stands behind `balanced:`: the share of the best information to keep, such as 0.97 or 97%."""
    if not text:
        return Balanced()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ParameterError(f"balanced is asked for as 'balanced' or 'balanced:0.97'; not as '{text}'.") from None
    return Balanced(share)


def read_workload(path: str) -> Statistics:
    """The queries in a CSV file: first column their names, header the values, cells the coefficients.

    A file with the header `value,weight` says how much the share of each value counts; those that it does not name
    count 1.
    """
    lines, values, cells = read_table(path, "query", "coefficients of queries")
    if values != (WEIGHT,):
        return Statistics(workload=Workload(path, values, cells))
    if len(set(lines)) < len(lines):
        raise ColumnError(f"a value has one weight; some in '{path}' have several. Correct it.")
    weights = tuple((value, cell) for value, (cell,) in zip(lines, cells, strict=True))
    return Statistics(weights=weights, weights_name=path)


def population_statistics(use: Statistics) -> Statistics:
    """The same for the population's shares."""
    return replace(use, population=True)
