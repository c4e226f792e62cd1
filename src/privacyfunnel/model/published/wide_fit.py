r"""A tree model whose labels are found through the noise of its own tables, unless they are given.

1. n(s) with noise of rate r. A secret is found where its count is not zero and reaches T₁ with noise; those with few
   rows are one group, and so are all that were not found.
2. n(g, x_j) of groups and every label of column j, with noise of rate r. A label is found where one of its counts
   reaches T₁, or all of them together T_k; all others are `other`, whose counts are what is left of n(g).
3. Edges and their tables (`measurement.py`), by the labels that were found.

Labels that one person alone brings about pass up to two tests a column and one of the secret, each with probability
λ = δ / (2m + 1)(1 + e^ε) at most; but for that everything is ε_c-differentially private (docs/theory.md, Theorem 68).
Of k secrets a person is in k rows, measured with ε_c / k each, and passes up to k + m(k + 1) tests (Theorem 83).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.measurement import CodedTable, NoisePlan, TreeMeasurement, add_noise, measure_edges
from privacyfunnel.model.published.noise import NoiseSource, noise_variance
from privacyfunnel.model.published.table_model import (
    DELTA,
    TESTS,
    FewRowsError,
    LabelTests,
    few_rows,
    name_groups,
    pool_secrets,
)
from privacyfunnel.model.published.tree_fit import smooth_tree
from privacyfunnel.model.published.tree_model import TreeModel
from privacyfunnel.model.published.wide_model import stack_values
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
    groups: tuple[tuple[tuple[str, ...], ...], ...]  # of each secret column; the last () where it stands for the rest
    of_secret: IntArray  # the secret of the tree that each of the table is
    delta: Fraction
    few: int  # rows that a label needs about, to be found; 0 where labels were given
    noise: float  # in rows: the standard deviation of that in every count

    def recode(self, table: CodedTable) -> CodedTable:
        """The rows by the labels and groups of the model: for their owner alone."""
        return _recode(table, self.of_secret, self.tree.secret, self.columns, self.tree.attributes)


def stack_tables(tables: Sequence[CodedTable]) -> CodedTable:
    """The rows of a table once for each of several secrets, whose values stand one below the other."""
    first, sizes = tables[0], [len(table.secret.labels) for table in tables]
    return CodedTable(
        stack_values({table.secret.name: table.secret.labels for table in tables}),
        first.attributes,
        np.concatenate([table.secrets + start for table, start in zip(tables, np.cumsum([0, *sizes]), strict=False)]),
        np.concatenate([table.codes for table in tables]),
    )


def fit_wide_model(
    table: CodedTable,
    epsilon: Fraction,
    total: Fraction,
    source: Callable[[Fraction], NoiseSource],
    given: tuple[bool, Sequence[str]],
    known: Sequence[str] = (),
    secrets: Sequence[Attribute] = (),
) -> WideFit:
    """The model of a table for ε_c out of the whole ε.

    `given` says whether all labels of the secret are public, and of each column whether they are `GIVEN`, `BINNED` (the
    last is that of a missing number, of which it is not known whether any occurs), or to be `FOUND`. Columns that are
    `known` come before all others in their tree, one after the other. Of several `secrets` the table has
    the rows once for each (`stack_tables`).
    """
    secrets = secrets or [table.secret]
    k = len(secrets)
    m, n = len(table.attributes), table.rows // k
    first = tuple(next(j for j, at in enumerate(table.attributes) if at.name == name) for name in known)
    fixed = tuple((min(i, j), max(i, j)) for i, j in pairwise(first))
    plan = NoisePlan.divide(epsilon / k, n, m, len(fixed), totals=1)
    noise = source(plan.rate)
    variance, few = noise_variance(noise.rate), k * few_rows(n)  # of the rows of all secrets
    tests = LabelTests(noise.rate, total, DELTA * TESTS / (k + m * (k + 1)), k)
    counts = np.bincount(table.secrets, minlength=len(table.secret.labels)).astype(np.int64)
    groups = _group_secrets(secrets, counts, add_noise(counts, noise), tests, given[0], variance)
    secret = stack_values({own.name: name_groups(named) for own, named in zip(secrets, groups.named, strict=True)})
    secret = secret if k > 1 else Attribute(secrets[0].name, name_groups(groups.named[0]))
    grouped = replace(table, secret=secret, secrets=groups.of_secret[table.secrets])
    pairs, columns = [], []
    for j, attribute in enumerate(table.attributes):
        pair = grouped.count([j], by_secret=True)
        noisy = add_noise(pair, noise)
        found = tests.find(pair, noisy, (True, given[1][j] != FOUND))[1]
        if given[1][j] == BINNED:
            spread = SURE_OF_OTHERS * math.sqrt(variance * len(noisy))
            found[-1] = noisy[:, -1].sum() >= max(few, spread)
        column, both = _show_column(attribute, found, noisy, (groups.totals, few), variance, given[1][j])
        columns.append(column)
        pairs.append(both)
    empty = [at.name for at, column in zip(table.attributes, columns, strict=True) if not column.found.any()]
    if empty:
        why = f"no value of {', '.join(empty)} has the {tests.threshold(1):,} rows that name it"
        raise FewRowsError(why, empty)
    attributes = tuple(Attribute(at.name, col.labels) for at, col in zip(table.attributes, columns, strict=True))
    coded = _recode(table, groups.of_secret, secret, columns, attributes)
    measured = measure_edges(coded, tuple(pairs), plan, epsilon / k, source, fixed, groups.totals, first)
    tree = _smooth(measured, secret, attributes, groups.rests, few / k)
    delta = Fraction(0) if given[0] and FOUND not in given[1] else DELTA
    needed = tests.threshold(1) if delta else 0
    return WideFit(tree, tuple(columns), groups.named, groups.of_secret, delta, needed, math.sqrt(variance))


class _SecretGroups(NamedTuple):
    """The secrets of a tree: rare ones together, and where labels are found, one for all others of each column."""

    named: tuple[tuple[tuple[str, ...], ...], ...]
    of_secret: IntArray
    totals: IntArray  # noisy
    rests: tuple[int, ...]


def _group_secrets(
    secrets: Sequence[Attribute], counts: IntArray, seen: IntArray, tests: LabelTests, given: bool, variance: float
) -> _SecretGroups:
    """The groups of every secret column, by counts with and without noise of all of their values."""
    found = np.full(len(counts), given) | ((counts > 0) & (seen >= tests.threshold(1)))
    rows = int(counts.sum()) // len(secrets)
    named, totals, rests, of_secret, start = list[Any](), list[int](), list[int](), np.zeros_like(counts), 0
    for own in secrets:
        mine = slice(start, start + len(own.labels))
        listed, start = start + np.flatnonzero(found[mine]), mine.stop
        noisy, spread = seen[listed].astype(np.float64), np.full(len(listed), variance)
        pools = pool_secrets(noisy, spread, rows) if len(listed) else []
        if len(pools) < 2:
            raise FewRowsError(f"all values of {own.name} are rare, or all but one", [own.name])
        sums = [int(seen[listed[pool]].sum()) for pool in pools]
        of_secret[mine] = len(totals) + len(pools)  # what was not found is a group of its own
        for g, pool in enumerate(pools):
            of_secret[listed[pool]] = len(totals) + g
        groups = [tuple(own.labels[listed[s] - mine.start] for s in pool) for pool in pools]
        if not given:  # n is public: this costs nothing
            rests.append(len(totals) + len(pools))
            groups, sums = [*groups, ()], [*sums, rows - sum(sums)]
        named.append(tuple(groups))
        totals += sums
    return _SecretGroups(tuple(named), of_secret, np.array(totals, dtype=np.int64), tuple(rests))


def _show_column(
    attribute: Attribute, found: BoolArray, noisy: IntArray, whole: tuple[IntArray, float], variance: float, given: str
) -> tuple[FoundColumn, IntArray]:
    """The labels that a column publishes, and its counts by these.

    Whether there is an `other` follows from noisy counts alone, also where every label of the table was found: that
    some row has a label which was not may be one person's secret.
    """
    own = tuple(label for label, there in zip(attribute.labels, found, strict=True) if there)
    shown, (totals, few) = noisy[:, found], whole
    if given == GIVEN or (given == BINNED and found.all()) or not own:
        return FoundColumn(found, own, None), shown
    left = totals - shown.sum(axis=1)
    spread = math.sqrt(variance * len(totals) * (shown.shape[1] + 1))
    if given == BINNED or left.sum() < max(few, SURE_OF_OTHERS * spread):
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
    rests: Sequence[int],
    few: float,
) -> TreeModel:
    """The tree. Secrets that were not found go with values as everybody does where they have few rows together."""
    assert seen.totals is not None
    spread = math.sqrt(noise_variance(seen.rate) * len(seen.totals))
    unlisted = [g for g in rests if seen.totals[g] < max(few, SURE_OF_REST * spread)]
    measured = replace(
        seen,
        pairs=tuple(np.delete(table, unlisted, axis=0) for table in seen.pairs),
        triples=tuple(np.delete(table, unlisted, axis=0) for table in seen.triples),
        totals=np.delete(seen.totals, unlisted),
    )
    return smooth_tree(measured, secret, attributes, unlisted, few)
