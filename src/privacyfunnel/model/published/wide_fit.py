r"""A tree model whose labels are found through the noise of its own tables, unless they are given.

1. n(s) with noise of rate r. A secret is found where its count is not zero and reaches T₁ with noise; those with few
   rows are one group, and so are all that were not found.
2. n(g, x_j) of groups and every label of column j, with noise of rate r. A label is found where one of its counts
   reaches T₁, or all of them together T_k; all others are `other`, whose counts are what is left of n(g).
3. Edges and their tables (`measurement.py`), by the labels that were found.

Labels that one person alone brings about pass up to two tests a column and one of the secret, each with probability
λ = δ / (2m + 1)(1 + e^ε) at most; but for that everything is ε_c-differentially private (docs/theory.md, Theorem 68).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.measurement import CodedTable, NoisePlan, TreeMeasurement, add_noise, measure_edges
from privacyfunnel.model.published.noise import NoiseSource, noise_variance
from privacyfunnel.model.published.table_model import DELTA, TESTS, LabelTests, few_rows, pool_secrets
from privacyfunnel.model.published.tree_fit import (
    Label,
    Zeros,
    check_zeros,
    published_zeros,
    smooth_tree,
    tabulate_zeros,
)
from privacyfunnel.model.published.tree_model import TreeModel
from privacyfunnel.names import OTHER, unique_label

GIVEN, BINNED, FOUND = "given", "binned", "found"
SURE_OF_REST = 4  # and secrets that were not found, to be measured as one
SURE_OF_OTHERS = 2  # standard deviations of noise that `other` must have to be a label of the model


@dataclass(frozen=True, eq=False)
class FoundColumn:
    """Labels of a column that are published: some of its own, and perhaps `other` after them."""

    found: BoolArray  # of its own labels
    labels: tuple[str, ...]
    rest: int | None  # what all others are read as; None where all were given

    @property
    def code_of(self) -> IntArray:
        """What each of its own labels becomes."""
        return np.where(self.found, np.cumsum(self.found) - 1, -1 if self.rest is None else self.rest)


@dataclass(frozen=True, eq=False)
class WideFit:
    """A tree, and what its labels and secrets stand for."""

    tree: TreeModel
    columns: tuple[FoundColumn, ...]
    groups: tuple[tuple[str, ...], ...]
    rest: int | None
    delta: Fraction
    few: int  # rows that a label needs about, to be found; 0 where labels were given
    noise: float  # in rows: the standard deviation of that in every count

    def recode(self, table: CodedTable) -> CodedTable:
        """The rows by the labels and groups of the model: for their owner alone."""
        place = {label: g for g, group in enumerate(self.groups) for label in group}
        of_secret = np.array([place.get(label, self.rest or 0) for label in table.secret.labels])
        return _recode(table, of_secret, self.tree.secret, self.columns, self.tree.attributes)


def fit_wide_model(
    table: CodedTable,
    epsilon: Fraction,
    total: Fraction,
    source: Callable[[Fraction], NoiseSource],
    given: tuple[bool, Sequence[str]],
    zeros: Sequence[tuple[Label, Label]] = (),
    known: Sequence[str] = (),
) -> WideFit:
    """The model of a table for ε_c out of the whole ε.

    `given` says whether all labels of the secret are public, and of each column whether they are `GIVEN`, `BINNED` (the
    last is that of a missing number, of which it is not known whether any occurs), or to be `FOUND`. Pairs of labels in
    `zeros` never occur together, as far as both are published; their columns are made parent and child. Columns that
    are `known` come before all others in their tree, one after the other.
    """
    m, n = len(table.attributes), table.rows
    first = tuple(next(j for j, at in enumerate(table.attributes) if at.name == name) for name in known)
    fixed = check_zeros(table.attributes, zeros, first)
    plan = NoisePlan.divide(epsilon, n, m, len(fixed), totals=1)
    noise = source(plan.rate)
    variance = noise_variance(noise.rate)
    tests = LabelTests(noise.rate, total, DELTA * TESTS / (2 * m + 1))
    counts = np.bincount(table.secrets, minlength=len(table.secret.labels)).astype(np.int64)
    seen = add_noise(counts, noise)
    listed = np.arange(len(counts)) if given[0] else np.flatnonzero((counts > 0) & (seen >= tests.threshold(1)))
    pools = pool_secrets(seen[listed].astype(np.float64), np.full(len(listed), variance), n) if len(listed) else []
    groups = [tuple(table.secret.labels[listed[s]] for s in pool) for pool in pools]
    of_secret = np.full(len(counts), len(pools))  # what was not found is a group of its own
    for g, pool in enumerate(pools):
        of_secret[listed[pool]] = g
    named = [*groups, *([] if given[0] else [()])]
    secret = Attribute(table.secret.name, tuple(str(g) for g in range(len(named))))
    totals = np.array([seen[listed[pool]].sum() for pool in pools], dtype=np.int64)
    grouped = replace(table, secret=secret, secrets=of_secret[table.secrets]) if len(named) > 1 else None
    if len(pools) < 2 or grouped is None:
        needed = tests.threshold(1) / max(float(np.sort(seen)[-2:].min()), 1.0)  # the noisy count of the second
        raise FewRowsError(f"all values of {table.secret.name} are rare, or all but one", [table.secret.name], needed)
    if not given[0]:
        totals = np.append(totals, n - totals.sum())  # n is public: this costs nothing
    pairs, columns = [], []
    for j, attribute in enumerate(table.attributes):
        pair = grouped.count([j], by_secret=True)
        noisy = add_noise(pair, noise)
        found = tests.find(pair, noisy, (True, given[1][j] != FOUND))[1]
        if given[1][j] == BINNED:
            spread = SURE_OF_OTHERS * math.sqrt(variance * len(noisy))
            found[-1] = noisy[:, -1].sum() >= max(few_rows(n), spread)
        column, both = _show_column(attribute, found, noisy, totals, variance, given[1][j])
        columns.append(column)
        pairs.append(both)
    empty = [at.name for at, column in zip(table.attributes, columns, strict=True) if not column.found.any()]
    if empty:
        needed = tests.threshold(1) / max(min(float(both.sum(axis=0).max(initial=0)) for both in pairs), 1.0)
        why = f"no value of {', '.join(empty)} has the {tests.threshold(1):,} rows that name it"
        raise FewRowsError(why, empty, needed)
    attributes = tuple(Attribute(at.name, col.labels) for at, col in zip(table.attributes, columns, strict=True))
    coded = _recode(table, of_secret, secret, columns, attributes)
    impossible = tabulate_zeros(attributes, published_zeros(attributes, zeros))
    measured = measure_edges(coded, tuple(pairs), plan, epsilon, source, fixed, totals, first)
    tree, rest = _smooth(measured, secret, attributes, None if given[0] else len(pools), impossible)
    delta = Fraction(0) if given[0] and FOUND not in given[1] else DELTA
    return WideFit(
        tree, tuple(columns), tuple(named), rest, delta, tests.threshold(1) if delta else 0, math.sqrt(variance)
    )


class FewRowsError(Exception):
    """Too few rows, or too small an ε, for a model: why, in which columns, and about how many times the ε would do."""

    def __init__(self, why: str, columns: Sequence[str], needed: float) -> None:
        super().__init__(why)
        self.columns, self.needed = columns, needed


def _show_column(
    attribute: Attribute, found: BoolArray, noisy: IntArray, totals: IntArray, variance: float, given: str
) -> tuple[FoundColumn, IntArray]:
    """The labels that a column publishes, and its counts by these.

    Whether there is an `other` follows from noisy counts alone, also where every label of the table was found: that
    some row has a label which was not may be one person's secret.
    """
    own = tuple(label for label, there in zip(attribute.labels, found, strict=True) if there)
    shown = noisy[:, found]
    if given == GIVEN or (given == BINNED and found.all()) or not own:
        return FoundColumn(found, own, None), shown
    left = totals - shown.sum(axis=1)
    spread = math.sqrt(variance * len(totals) * (shown.shape[1] + 1))
    if given == BINNED or left.sum() < max(few_rows(int(totals.sum())), SURE_OF_OTHERS * spread):
        return FoundColumn(found, own, int(shown.sum(axis=0).argmax())), shown
    labels = (*own, unique_label(OTHER, own))
    return FoundColumn(found, labels, len(own)), np.column_stack([shown, left])


def _recode(
    table: CodedTable,
    of_secret: IntArray,
    secret: Attribute,
    columns: Sequence[FoundColumn],
    attributes: tuple[Attribute, ...],
) -> CodedTable:
    codes = np.column_stack([column.code_of[table.codes[:, j]] for j, column in enumerate(columns)])
    return CodedTable(secret, attributes, of_secret[table.secrets], codes)


def _smooth(
    seen: TreeMeasurement,
    secret: Attribute,
    attributes: tuple[Attribute, ...],
    unlisted: int | None,
    impossible: Zeros,
) -> tuple[TreeModel, int | None]:
    """The tree. Secrets that were not found go with values as everybody does where they have few rows together."""
    few = few_rows(seen.rows)
    assert seen.totals is not None
    spread = math.sqrt(noise_variance(seen.rate) * len(seen.totals))
    if unlisted is None or seen.totals[unlisted] >= max(few, SURE_OF_REST * spread):
        return smooth_tree(seen, secret, attributes, impossible), unlisted
    measured = replace(
        seen,
        pairs=tuple(table[:unlisted] for table in seen.pairs),
        triples=tuple(table[:unlisted] for table in seen.triples),
        totals=seen.totals[:unlisted],
    )
    return smooth_tree(measured, secret, attributes, impossible, unlisted_rows=few), unlisted
