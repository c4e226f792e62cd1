r"""A published model of one table: p̃(s, x) in integers, made from counts with noise and from nothing else of the rows.

Each noisy count M_{s,x} is drawn towards what independence would make of it, the more the noisier its secret is
(James and Stein's rule, per secret): with b_{s,x} = R_s C_x / n from the sums of the M,

.. math:: \tilde n_{s,x} = \max\bigl(b_{s,x} + \lambda_s (M_{s,x} - b_{s,x}),\ b_{s,x} / 50\bigr), \qquad
   \lambda_s = \max\Bigl(0, 1 - \frac{\sum_x \mathrm{Var}\,Z_{s,x}}{\sum_x (M_{s,x} - b_{s,x})^2}\Bigr),

each row scaled to R_s; λ_s is taken apart over columns with more noise. Secrets whose noisy total is small are one
group, about which the model says something; about each of them alone the noise says nothing. Secrets that are not
listed go with values as everybody does. The M themselves are published too, summed over each group: of the table's
shares they tell what p̃ blurs, and whoever estimates shares weighs them by their noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.model.each_secret import stack_joints
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promise_base import Promise
from privacyfunnel.model.published.noise import noise_sum, noise_variance
from privacyfunnel.names import OTHER, unique_label

UNIT = 1 << 32  # the integers of a model sum to about this
LEAST = Fraction(1, 50)  # of what independence says: no pair of secret and value is impossible
STANDARD_DEVIATIONS = 4  # of the noise in a secret's total: with less, secrets are promised as one group …
RARE, RARE_SHARE = 200, 50  # … and with fewer rows than this, and than one in so many
DELTA = Fraction(1, 10**9)  # the chance that a label appears in the file because of one person
ROUNDING = 1 + 1e-9  # by which floats of one formula may differ
MOST_TERMS = 40  # of a sum of noise whose chances are listed
TESTS = 3  # by which one person could bring a label about


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
        """What each group is called."""
        return name_groups(self.groups)

    @property
    def base(self) -> PublishedModel:
        """The model that counts were made into; itself, unless it is that of a release after others."""
        return self

    @property
    def weights_by_input(self) -> NDArray[Any]:
        """p̃ up to scale, a row per secret and a column per input, where inputs are listed."""
        raise SizeError("A joint distribution lists all values of a model; this one has too many. Draw from it.")

    @property
    def unit(self) -> int:
        """What its weights are times those of the base."""
        return 1

    def bind_promise(self, promise: Promise) -> Promise:
        """The promise as it is checked at this model, of records and of what was published before them."""
        return promise

    def joint(self, attributes: tuple[Attribute, ...], combos: IntArray, secret_name: str) -> Joint:
        """p̃ over these values."""
        raise SizeError("A joint distribution lists all values of a model; this one has too many. Draw from it.")

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

    def group_counts(self, labels: Sequence[str], counts: IntArray) -> dict[str, IntArray]:
        """The counts, a row per label, of each group that lists secrets, by what it is called."""
        listed = {label for group in self.groups for label in group}
        used = [s for s, at in enumerate(labels) if (self.rest is None or at in listed) and counts[s].any()]
        rows: dict[str, IntArray] = {}
        for s, name in zip(used, self.group_of([labels[s] for s in used]), strict=True):
            rows[name] = rows.get(name, 0) + counts[s]
        return rows

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


def name_groups(groups: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What groups of secrets are called: each its secret, or `other` where it stands for several."""
    taken = [group[0] for group in groups if len(group) == 1]
    called: list[str] = []
    for group in groups:
        called.append(group[0] if len(group) == 1 else unique_label(OTHER, [*taken, *called]))
    return tuple(called)


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


@dataclass(frozen=True, eq=False)
class MeasuredCounts:
    """Counts with noise of the secrets that a model lists: a row per group of them, a column per value."""

    cells: IntArray
    variance: FloatArray  # of the noise in each

    def __post_init__(self) -> None:
        if self.cells.ndim != 2 or self.cells.shape != self.variance.shape or not (self.variance > 0).all():
            raise DistributionError("Every noisy count must have the variance of its noise; some have not.")


@dataclass(frozen=True, eq=False, kw_only=True)
class TableModel(PublishedModel):
    """p̃(s, x) as it stands in a protocol file: integers, what their rows stand for, and what ε was spent on them."""

    weights: IntArray  # groups of secrets × values, each at least 1
    counts: MeasuredCounts | None = None  # the M that p̃ was made from; None in files of earlier versions

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights.ndim != 2 or len(self.weights) != len(self.groups) or self.weights.shape[1] < 2:
            raise DistributionError("A model must have a row of integers for each group of secrets; this one has not.")
        if (self.weights < 1).any():
            raise DistributionError("Every secret of a model must be able to go with every value; some cannot.")
        listed = (sum(map(bool, self.groups)), self.weights.shape[1])
        if self.counts is not None and self.counts.cells.shape != listed:
            raise DistributionError("A model must have noisy counts for each group that it lists; this one has not.")
        if self.counts is not None and self.counts.variance.min() * ROUNDING < noise_variance(self.epsilon / 2):
            raise DistributionError(
                "The noise of a model must be as large as its ε asks for; the variance that is stated is smaller."
            )
        if self.counts is not None and not self._follows_counts:
            raise DistributionError("A model must be what its noisy counts make of it; this one is another.")

    @property
    def _follows_counts(self) -> bool:
        """Whether the weights are those that the noisy counts make, but for the last bit of floats."""
        assert self.counts is not None
        fitted = fit_groups(self.counts, self.rows if () in self.groups else None)
        return fitted.shape == self.weights.shape and bool(
            (np.abs(fitted - self.weights) <= 1 + (ROUNDING - 1) * fitted).all()
        )

    @property
    def noise(self) -> float:
        """The variance of the noise in all its counts; infinite where they are not stated."""
        return math.inf if self.counts is None else float(self.counts.variance.sum())

    @property
    def weights_by_input(self) -> NDArray[Any]:
        return self.weights

    def joint(self, attributes: tuple[Attribute, ...], combos: IntArray, secret_name: str) -> Joint:
        return Joint(self.weights, self.secrets, attributes, combos, secret_name)

    def to_json(self) -> dict[str, Any]:
        noisy = self.counts
        measured = {} if noisy is None else {"counts": noisy.cells.tolist(), "noise_variance": noisy.variance.tolist()}
        return {**super().to_json(), "weights": self.weights.tolist(), **measured}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TableModel:
        """The model that a protocol file states."""
        counts = None
        if "counts" in content:
            counts = MeasuredCounts(_rectangle(content["counts"], np.int64), _rectangle(content["noise_variance"]))
        return cls(weights=np.array(content["weights"], dtype=np.int64), counts=counts, **facts_from_json(content))


def _rectangle(rows: Sequence[Sequence[float]], dtype: type[Any] = np.float64) -> NDArray[Any]:
    """Rows of one length as an array."""
    if len(set(map(len, rows))) != 1:
        raise DistributionError("The noisy counts of a model must fill a table; these do not.")
    return np.array(rows, dtype=dtype)


def noise_rate(variance: float) -> float:
    """The rate of discrete Laplace noise of this variance: cosh r = 1 + 1 / Var Z."""
    return math.acosh(1 + 1 / variance)


def fit_weights(cells: FloatArray, variance: FloatArray) -> IntArray:
    """p̃ in integers from noisy counts c × a, whose noise has these variances."""
    row, column = (np.maximum(cells.sum(axis=axis), 1.0) for axis in (1, 0))
    independent = np.outer(row / row.sum(), column / column.sum()) * row.sum()
    beside = cells - independent
    kept = np.zeros_like(cells)
    for level in np.unique(variance[0]):
        alike = variance[0] == level
        noise, seen = variance[:, alike].sum(axis=1), (beside[:, alike] ** 2).sum(axis=1)
        kept[:, alike] = np.maximum(0.0, 1 - noise / np.maximum(seen, 1e-9))[:, None]
    fitted = np.maximum(independent + kept * beside, float(LEAST) * independent)
    fitted *= (row / fitted.sum(axis=1))[:, None]
    weights: IntArray = np.maximum(1, np.rint(fitted * (UNIT / fitted.sum()))).astype(np.int64)
    return weights


def fit_groups(counts: MeasuredCounts, rows: int | None) -> IntArray:
    """p̃ of the groups that were counted and, where n is given, of the secrets that are not listed: as everybody."""
    cells, variance = counts.cells.astype(np.float64), counts.variance
    if rows is not None:  # as many as n leaves
        share = max(rows - float(cells.sum()), few_rows(rows)) / max(float(cells.sum()), 1.0)
        cells, variance = np.vstack([cells, share * cells.sum(axis=0)]), np.vstack([variance, variance[:1]])
    return fit_weights(cells, variance)


def few_rows(rows: int) -> float:
    """How few of so many rows are not worth a secret or a value of their own in a model."""
    return min(RARE, rows / RARE_SHARE)


def pool_secrets(totals: FloatArray, variance: FloatArray, rows: int) -> list[list[int]]:
    """Groups of secrets by noisy totals, whose noise has these variances: those with few rows are one, the last.

    Where they have few rows together, the next rarest joins them. Where one group would be left, secrets that stand out
    of the noise are not rare. Fewer than two groups are left where none does, or one.

    >>> pool_secrets(np.array([900.0, 50.0, 500.0, 230.0]), np.full(4, 100.0), 10_000)
    [[0], [2], [1, 3]]
    >>> pool_secrets(np.array([9900.0, 100.0]), np.full(2, 100.0), 10_000)
    [[0], [1]]
    """
    found = _pool(totals, variance, few_rows(rows))
    return found if len(found) > 1 else _pool(totals, variance, 0.0)


def _pool(totals: FloatArray, variance: FloatArray, least: float) -> list[list[int]]:
    few = np.maximum(least, STANDARD_DEVIATIONS * np.sqrt(variance))
    order = np.argsort(totals, kind="stable").tolist()
    pool = [s for s in order if totals[s] < few[s]]
    for s in order:
        together = max(least, STANDARD_DEVIATIONS * math.sqrt(variance[pool].sum()))
        if not pool or totals[pool].sum() >= together:
            break
        if s not in pool:
            pool.append(s)
    alone = [[s] for s in range(len(totals)) if s not in pool]
    return [*alone, sorted(pool)] if pool else alone


class FewRowsError(Exception):
    """Too few rows, or too small an ε, for a model: why, and columns whose labels would help if they were public."""

    def __init__(self, why: str, columns: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.columns = columns


@dataclass(frozen=True, slots=True)
class LabelTests:
    r"""Which labels of a table of noisy counts may be published: those that some test says many rows have.

    A label is found where a count that is not zero reaches T₁ with its noise, or where its counts over the labels of
    the other side that were found before reach T_k together. Pr[1 + Z_1 + … + Z_k ≥ T_k] ≤ δ / 3(1 + e^ε), so that
    labels which appear because of one person cost δ at most beside the whole ε (docs/theory.md, Theorem 61).
    """

    rate: Fraction
    total: Fraction  # the whole ε
    delta: Fraction = DELTA
    most: int = 1  # counts of a sum in which one person may be: one of each of several secrets

    @property
    def level(self) -> Fraction:
        """The chance at which one row alone passes a test."""
        return self.delta / math.ceil(TESTS * (1 + math.exp(float(self.total))))

    def threshold(self, terms: int) -> int:
        """T_k: what a sum of so many noisy counts must reach; by Chernoff's bound where they are many."""
        alone = min(terms, self.most)
        if terms <= MOST_TERMS:
            return 1 + alone + noise_sum(self.rate, terms).width(self.level)
        t, r = math.exp(-float(self.rate)), float(self.rate)
        tilts = [r * step / 200 for step in range(1, 200)]
        moments = [math.log((1 - t) ** 2 / ((1 - t * math.exp(tilt)) * (1 - t * math.exp(-tilt)))) for tilt in tilts]
        least = min((terms * m - math.log(self.level)) / tilt for m, tilt in zip(moments, tilts, strict=True))
        return 2 + alone + math.ceil(least)  # one more than needed: floats

    def find(
        self, counts: IntArray, noisy: IntArray, given: tuple[bool, bool] = (False, False)
    ) -> tuple[BoolArray, BoolArray]:
        """The labels of rows and columns that were found; those of a side that is given are all there."""
        large = (counts > 0) & (noisy >= self.threshold(1))
        rows: BoolArray = np.logical_or(large.any(axis=1), given[0])
        columns: BoolArray = np.logical_or(large.any(axis=0), given[1])
        occurs = counts.sum(axis=1) > 0, counts.sum(axis=0) > 0
        if rows.any():
            columns |= occurs[1] & (noisy[rows].sum(axis=0) >= self.threshold(int(rows.sum())))
        if columns.any():
            rows |= occurs[0] & (noisy[:, columns].sum(axis=1) >= self.threshold(int(columns.sum())))
        return rows, columns


@dataclass(frozen=True, eq=False, kw_only=True)
class SecretModels(PublishedModel):
    """A model of every secret column over the same values; ε, δ and the noise are those of all together."""

    parts: Mapping[str, PublishedModel]  # by column

    @classmethod
    def of_parts(cls, parts: Mapping[str, PublishedModel], **more: Any) -> Self:
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
            **more,
        )

    def __post_init__(self) -> None:
        parts = self.parts.values()
        if len(parts) < 2 or {(part.rows, part.total) for part in parts} != {(self.rows, self.total)}:
            raise DistributionError("The tables of several secrets must be of the same rows and ε; these are not.")
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

    def to_json(self) -> dict[str, Any]:
        facts = super().to_json()
        del facts["secrets"], facts["rest"]
        return {**facts, "each": [part.to_json() for part in self.parts.values()]}

    @classmethod
    def read_parts(
        cls, content: Mapping[str, Any], columns: tuple[str, ...], parts: Sequence[PublishedModel], **more: Any
    ) -> Self:
        """The model that a protocol file states, of these secret columns and a part for each."""
        if len(columns) != len(parts):
            raise DistributionError("A model must have a table for each secret column; this one has not.")
        made = cls.of_parts(dict(zip(columns, parts, strict=True)), **more)
        if {**made.to_json(), "each": None} != {**content, "each": None}:
            raise DistributionError("The ε, δ and rows of several tables must be those of the model; they are not.")
        return made


@dataclass(frozen=True, eq=False, kw_only=True)
class EachModel(SecretModels):
    """p̃(s_j, x) of every secret column in tables of their own."""

    parts: Mapping[str, TableModel]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({part.weights.shape[1] for part in self.parts.values()}) > 1:
            raise DistributionError("The tables of several secrets must have the same values; these do not.")

    @property
    def weights_by_input(self) -> NDArray[Any]:
        return np.vstack([part.weights for part in self.parts.values()])

    def joint(self, attributes: tuple[Attribute, ...], combos: IntArray, secret_name: str) -> Joint:
        return stack_joints({column: part.joint(attributes, combos, column) for column, part in self.parts.items()})

    @classmethod
    def from_json(cls, content: Mapping[str, Any], columns: tuple[str, ...]) -> EachModel:
        """The model that a protocol file states, a table for each of these secret columns."""
        return cls.read_parts(content, columns, [*map(TableModel.from_json, content["each"])])
