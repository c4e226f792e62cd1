"""Design by a published model: counts get noise once, p̃ is made from them, and the protocol from p̃ alone.

Labels come from a domain file, or they are found through the noise: those that few rows have become `other`, so that
none appears because of one person. The whole ε is shared between p̃ and the records (docs/theory.md, Theorem 61).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError, SizeError
from privacyfunnel.formatting import format_number
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import float_below
from privacyfunnel.model.credal.noisy_sample_rule import NoisySampleRule
from privacyfunnel.model.credal.sample_rule import check_confidence
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Population, PopulationPromise, Promise
from privacyfunnel.model.published.noise import BeforeNoise, NoiseSource, noise_variance
from privacyfunnel.model.published.noisy_counts import NoisyCounts
from privacyfunnel.model.published.table_model import (
    DELTA,
    EachModel,
    FewRowsError,
    LabelTests,
    MeasuredCounts,
    PublishedModel,
    TableModel,
    few_rows,
    fit_groups,
    pool_secrets,
)
from privacyfunnel.names import OTHER, unique_label
from privacyfunnel.release.kept_counts import group_table
from privacyfunnel.release.private_design import (
    Noise,
    fit_or_advise,
    fixed_part,
    noise_source,
    refuse_large,
    refuse_merged,
)
from privacyfunnel.spec.kinds import ALL_COLUMNS

if TYPE_CHECKING:
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.coding.coders import Coding
    from privacyfunnel.tables.coding.contingency import Contingency, Variable

LEAST_SHARE, LARGEST_SHARE = Fraction(1, 20), Fraction(1, 2)  # of the whole ε that p̃ gets …
LEAST_SHARE_TO_FIND_LABELS = Fraction(3, 40)  # … where it finds labels …
NOISE_A_CELL = 20  # … and within these so much that the noise is a tenth of the rows: 2 / ε_c a cell; …
NOISE_A_SECRET = 113  # … and that a secret of n / 10 rows is no rare one: 4 standard deviations, 8 √(2 values) / ε_c; …
MOST_FOR_CELLS = Fraction(1, 3)  # … no more than this unless it would be half of them (benchmarks one_column)
ROWS_TO_FIND_LABELS = 2000  # over n: the ε_c at which a count of n / 50 shows that its label is no one's
FOR_LABELS, MOST_FOR_LABELS = Fraction(1, 20), Fraction(1, 4)  # of the whole ε, where those of several are found …
FOR_OTHERS = Fraction(1, 5)  # … and of ε_c, for what became `other`, where those of one are
SURE_OF_OTHERS = 2  # standard deviations of noise that `other` must have to be a value of the model
FOR_POPULATION = Fraction(1, 3)  # of the whole ε, for the counts by which a population is promised
CONFIDENCE = 0.95  # unless another was asked for
MOST_CELLS = 1 << 16  # of counts that get noise: a second or two of exact draws
MOST_NOISE = 1  # of the rows: with more of it p̃ says nothing


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model, the table by the labels that it publishes, and the promise that is left for the records."""

    contingency: Contingency
    model: PublishedModel
    joint: Joint  # p̃
    promise: Promise

    @property
    def table_joint(self) -> tuple[Joint, IntArray]:
        """The table's own counts by the secrets that the model lists, and the numbers of the values that occur."""
        return group_table(self.contingency, self.model)


@dataclass(frozen=True, eq=False)
class _NoisyTable:
    """Counts with noise over labels that are public."""

    contingency: Contingency
    cells: IntArray  # c × a, each with all that is shown as its label
    variance: FloatArray
    secrets: tuple[str, ...]  # the label of each row; others may not be listed, unless δ is 0
    epsilon: Fraction
    delta: Fraction

    def count_groups(self, groups: list[list[int]]) -> MeasuredCounts:
        """The noisy counts of groups of secrets, from which p̃ is made."""
        cells = np.stack([self.cells[group].sum(axis=0) for group in groups])
        return MeasuredCounts(cells, np.stack([self.variance[group].sum(axis=0) for group in groups]))


def fit_model(table: Contingency, spec: ReleaseSpec, before_noise: BeforeNoise) -> FittedModel:
    """The model of a table, and the promise for records with respect to it."""
    return fit_or_advise(partial(_fit_model, table), spec, int(table.weights.sum()), before_noise)


def _fit_model(table: Contingency, spec: ReleaseSpec, noise: Noise) -> FittedModel:
    promise, budget = spec.promise_value, _make_budget(table, spec)
    fewest = _fewest_rows(spec)
    if spec.domain_file is None:
        from privacyfunnel.tables.coding.domain_file import fill_table

        table = fill_table(table)
    if promise.by_column:
        columns, budget = table.secret.columns, replace(budget, parts=len(table.secret.columns))
        noisy = _count(table.select_secret(0), spec, budget, noise, fewest)
        table = table.recode(noisy.contingency.published)
        others = [_count_secrets(table.select_secret(j), spec, budget, noise) for j in range(1, len(columns))]
        parts = {at: _fit_table(each, budget, at) for at, each in zip(columns, [noisy, *others], strict=True)}
        model: TableModel | EachModel = EachModel.of_parts(parts)
    else:
        noisy = _count(table, spec, budget, noise, fewest)
        table, model = noisy.contingency, _fit_table(noisy, budget, ",".join(noisy.contingency.secret.columns))
        refuse_merged(promise, model.groups, (*table.secret.columns, *(at.column for at in table.published.codings)))
    shown = Joint.from_contingency(replace(table, weights=np.ones_like(table.weights)))
    joint = model.joint(shown.attributes, shown.combos, shown.secret_name)
    return FittedModel(table, model, joint, promise.reduce(model.epsilon, joint.secrets))


def _count(
    table: Contingency, spec: ReleaseSpec, budget: _Budget, noise: Noise, fewest: Mapping[str, int]
) -> _NoisyTable:
    """Counts with noise over labels that are given, or that noise finds."""
    codings = list(table.published.codings)
    if spec.domain_file is not None:
        return _count_given(table, budget, noise)
    if all(budget.names_all(coding) and not coding.edges for coding in (*table.secret.codings, *codings)):
        return _count_given(table.recode(_product(codings)), budget, noise)
    return (_find_one if len(codings) == 1 else _find_several)(table, budget, noise, fewest)


def _count_secrets(table: Contingency, spec: ReleaseSpec, budget: _Budget, noise: Noise) -> _NoisyTable:
    """The same where the published labels are known by now, and those of the secret are given or to be found."""
    if spec.domain_file is not None or all(map(budget.names_all, table.secret.codings)):
        return _count_given(table, budget, noise)
    epsilon = budget.for_counts_and_labels
    source = noise(epsilon / 2)
    counted, variance = _noisy(table.weights, source, None)
    rows, _ = LabelTests(source.rate, budget.total, budget.delta).find(table.weights, counted, (False, True))
    _refuse_noise(counted[rows].size, source.rate, budget)
    return _NoisyTable(table, counted[rows], variance[rows], _labels(table, rows), epsilon, budget.delta)


def _fit_table(noisy: _NoisyTable, budget: _Budget, secret: str) -> TableModel:
    """p̃ of one secret from its counts with noise; rare values are one group."""
    groups = pool_secrets(noisy.cells.sum(axis=1), noisy.variance.sum(axis=1), budget.rows)
    if len(groups) < 2:
        raise FewRowsError(f"all values of {secret} are rare, or all but one", secret.split(","))
    counts = noisy.count_groups(groups)
    return TableModel(
        weights=fit_groups(counts, budget.rows if noisy.delta else None),
        groups=tuple([tuple(noisy.secrets[s] for s in group) for group in groups] + [()] * bool(noisy.delta)),
        rest=len(groups) if noisy.delta else None,
        rows=budget.rows,
        epsilon=noisy.epsilon,
        delta=noisy.delta,
        total=budget.total,
        counts=counts,
    )


def fit_population(table: Contingency, spec: ReleaseSpec, before_noise: BeforeNoise) -> tuple[Joint, Promise]:
    """Noisy counts of a domain that is given, to design for, and the promise about the people as far as they tell."""
    for role, size in zip(("secret", "published"), table.weights.shape, strict=True):
        if size < 2:
            raise ColumnError(
                f"what is {role} must have at least two labels; the domain lists one. List others that anybody might "
                "have, or name another column."
            )
    _refuse_size(table.weights)
    budget = _make_budget(table, spec)
    epsilon = budget.fixed or budget.total * FOR_POPULATION
    counts = NoisyCounts.draw(table.weights, epsilon, noise_source(spec, before_noise))
    joint = Joint.from_contingency(replace(table, weights=counts.weights))
    rule = NoisySampleRule(counts, check_confidence(spec.confidence or CONFIDENCE)).pool_behind_noise(joint)
    promise = spec.promise_value.with_epsilon(float_below(budget.total - epsilon))
    return joint, PopulationPromise(promise, Population(rule, counts.rows), joint)


def _make_budget(table: Contingency, spec: ReleaseSpec) -> _Budget:
    """What there is to share: the whole ε, of which the owner may have fixed the part for counts."""
    promise = spec.promise_value
    scale = Fraction(promise.smallest_scale(table.secret_labels))
    total = Fraction(str(promise.epsilon))
    refuse_large(total, labels_given=spec.domain_file is not None)
    least = min([total * scale, *(Fraction(str(size)) for size in promise.own_sizes.values())])
    fixed = fixed_part(spec, least)
    if least / 2 < Fraction(1, 1000):
        raise FewRowsError(f"ε = {format_number(float(least))} leaves no ε for a model")
    return _Budget(total, int(table.weights.sum()), fixed, least, spec.public_labels)


@dataclass(frozen=True, slots=True)
class _Budget:
    """How the whole ε is shared: what the owner fixed for the model, or what n and the number of cells ask for."""

    total: Fraction
    rows: int
    fixed: Fraction | None
    least: Fraction  # the smallest ε of a pair or a secret, of which the model takes a part like of all others
    public: tuple[str, ...] = ()  # columns of which it is public which labels occur
    parts: int = 1  # tables that share it, one for each of several secrets

    @property
    def delta(self) -> Fraction:
        """The chance that a label of one table appears because of one person."""
        return DELTA / self.parts

    def names_all(self, coding: Coding) -> bool:
        """Whether all labels of a column are public."""
        return bool(coding.edges) or coding.column in self.public

    def for_cells(self, secrets: int, values: int, spent: Fraction = Fraction(0)) -> Fraction:
        """ε for the counts of so many secrets and values, whose labels are public."""
        cells = secrets * values
        if self.fixed is not None:
            return self.fixed / self.parts - spent
        most = max(MOST_FOR_CELLS, min(LARGEST_SHARE, Fraction(4 * cells, self.rows) / (self.least / self.parts)))
        wanted = max(NOISE_A_CELL * cells, math.ceil(NOISE_A_SECRET * math.sqrt(values)))
        return self._between(LEAST_SHARE, Fraction(wanted, self.rows), most)

    @property
    def for_counts_and_labels(self) -> Fraction:
        """ε_c where the counts themselves say which labels are public."""
        fixed = None if self.fixed is None else self.fixed / self.parts
        return fixed or self._between(LEAST_SHARE_TO_FIND_LABELS, Fraction(ROWS_TO_FIND_LABELS, self.rows))

    def for_labels(self, columns: int) -> Fraction:
        """ε by which the labels of several columns are found: as sure of each as if it were the only one."""
        if self.fixed is not None:
            return self.fixed / self.parts / 4
        wanted = columns * (1 - FOR_OTHERS) * Fraction(ROWS_TO_FIND_LABELS, self.rows)
        return self._between(FOR_LABELS, wanted, MOST_FOR_LABELS)

    def _between(self, least: Fraction, wanted: Fraction, most: Fraction = LARGEST_SHARE) -> Fraction:
        whole = self.least / self.parts
        share = max(whole * least, min(whole * most, wanted))
        return Fraction(f"{float(share):.3g}")


def _count_given(table: Contingency, budget: _Budget, noise: Noise) -> _NoisyTable:
    """Noise on every cell of a domain that is given."""
    epsilon = budget.for_cells(len(table.weights), table.weights.shape[1])
    cells, variance = _noisy(table.weights, noise(epsilon / 2), budget)
    return _NoisyTable(table, cells, variance, table.secret_labels, epsilon, Fraction(0))


def _find_one(table: Contingency, budget: _Budget, noise: Noise, fewest: Mapping[str, int]) -> _NoisyTable:
    """The counts of one column, which say themselves which labels are public; all others are counted as one."""
    epsilon, coding = budget.for_counts_and_labels, table.published.codings[0]
    for_others = Fraction(0) if budget.names_all(coding) else epsilon * FOR_OTHERS
    inner = noise((epsilon - for_others) / 2)
    counted, _ = _noisy(table.weights, inner, None)
    given = all(map(budget.names_all, table.secret.codings)), budget.names_all(coding)
    rows, columns = LabelTests(inner.rate, budget.total, budget.delta).find(table.weights, counted, given)
    columns &= _enough_rows(coding, counted[rows].sum(axis=0), fewest)
    others, variance = np.zeros((int(rows.sum()), 0), dtype=np.int64), np.zeros((int(rows.sum()), 0))
    if for_others:
        outside = table.weights[np.ix_(rows, ~columns)].sum(axis=1, keepdims=True)
        others, variance = _noisy(outside, noise(for_others / 2), None)
    few = max(few_rows(budget.rows), SURE_OF_OTHERS * math.sqrt(variance.sum()))
    alone = bool(for_others) and bool(others.sum() >= few)
    shown, named = _show(coding, columns, counted[rows].sum(axis=0), alone, budget, [coding.column])
    cells = counted[np.ix_(rows, named)]
    _refuse_noise(cells.size, inner.rate, budget)
    variances = np.full(cells.shape, noise_variance(inner.rate))
    if alone:
        cells, variances = np.hstack([cells, others]), np.hstack([variances, variance])
    if for_others and not alone and shown.rest is not None:  # they are shown as another label, and counted with it
        cells[:, shown.rest] += others[:, 0]
        variances[:, shown.rest] += variance[:, 0]
    if named.sum() < columns.sum() and shown.missing is not None:  # missing numbers likewise
        cells[:, shown.missing] += counted[rows, -1]
        variances[:, shown.missing] *= 2
    found = table.recode(_product([shown]))
    return _NoisyTable(found, cells, variances, _labels(table, rows), epsilon, budget.delta)


def _find_several(table: Contingency, budget: _Budget, noise: Noise, fewest: Mapping[str, int]) -> _NoisyTable:
    """Labels from counts of the secret with each column, then counts of all combinations of those that were found."""
    variable = table.published
    for_labels = budget.for_labels(len(variable.codings))
    source = noise(for_labels / 2 / len(variable.codings))
    tests = LabelTests(source.rate, budget.total, budget.delta / len(variable.codings))
    rows = np.zeros(len(table.weights), dtype=bool)
    secrets_given = all(map(budget.names_all, table.secret.codings))
    codings, names = [], [coding.column for coding in variable.codings if not coding.edges]
    for j, coding in enumerate(variable.codings):
        pair = np.zeros((len(rows), len(coding.labels)), dtype=np.int64)
        np.add.at(pair.T, variable.combos[:, j], table.weights.T)
        counted, _ = _noisy(pair, source, None)
        found, columns = tests.find(pair, counted, (secrets_given, budget.names_all(coding)))
        columns &= _enough_rows(coding, counted[found].sum(axis=0), fewest)
        left = budget.rows - int(counted[np.ix_(found, columns)].sum())
        noise_left = math.sqrt(found.sum() * columns.sum() * noise_variance(source.rate))
        others = not budget.names_all(coding) and left >= max(few_rows(budget.rows), SURE_OF_OTHERS * noise_left)
        codings.append(_show(coding, columns, counted[found].sum(axis=0), others, budget, names)[0])
        rows |= found
    coarse = table.recode(_product(codings))
    epsilon = budget.for_cells(int(rows.sum()), coarse.weights.shape[1], for_labels)
    cells, variance = _noisy(coarse.weights[rows], noise(epsilon / 2), budget)
    spent = epsilon + for_labels
    return _NoisyTable(coarse, cells, variance, _labels(table, rows), spent, budget.delta)


def _refuse_noise(cells: int, rate: Fraction, budget: _Budget) -> None:
    """Refuse a model that noise would drown."""
    if cells / float(rate) > MOST_NOISE * budget.rows:
        raise FewRowsError(f"rows are too few for a model of {cells:,} pairs of a secret and a value")


def _noisy(counts: IntArray, source: NoiseSource, budget: _Budget | None) -> tuple[IntArray, FloatArray]:
    """Counts with noise, and its variance."""
    _refuse_size(counts)
    if budget is not None:
        _refuse_noise(counts.size, source.rate, budget)
    drawn = np.array(source.draw(counts.size), dtype=np.int64).reshape(counts.shape)
    return counts + drawn, np.full(counts.shape, noise_variance(source.rate))


def _refuse_size(counts: IntArray) -> None:
    """Refuse more counts than get noise in a second or two."""
    if counts.size > MOST_CELLS:
        raise SizeError(
            f"a published model counts at most {MOST_CELLS:,} pairs of a secret and a value; this table has "
            f"{counts.size:,}. Publish fewer columns, use coarser bins ({hint('bins', 'NAME=prefix:3')}), or use "
            f"{hint('prior', 'table')}, whose mechanism is for your eyes only."
        )


def _fewest_rows(spec: ReleaseSpec) -> Mapping[str, int]:
    """How many rows a value of each published column must have by noisy counts, where the owner said so."""
    rare: Any = spec.merge_rare
    if rare is None:
        return {}
    named: Mapping[str, int] = rare if isinstance(rare, Mapping) else {ALL_COLUMNS: rare}
    strange = [column for column in named if column not in (*spec.publish, ALL_COLUMNS)]
    if strange:
        raise ParameterError(
            f"{hint('merge_rare')} names '{strange[0]}', which is not published. Rare values of the secret are one "
            "group in a published model. Leave it out."
        )
    return {column: named.get(column, named.get(ALL_COLUMNS, 0)) for column in spec.publish}


def _enough_rows(coding: Coding, totals: IntArray, fewest: Mapping[str, int]) -> BoolArray:
    """Which values have as many rows as the owner asks for; bins, which are public, all have."""
    return np.array(totals >= (-np.inf if coding.edges else fewest.get(coding.column, -np.inf)), dtype=bool)


def _labels(table: Contingency, rows: BoolArray) -> tuple[str, ...]:
    return tuple(label for label, found in zip(table.secret_labels, rows, strict=True) if found)


def _show(
    coding: Coding, kept: BoolArray, totals: IntArray, others: bool, budget: _Budget, names: Sequence[str]
) -> tuple[Coding, BoolArray]:
    """The labels of a column that are published, by noisy totals, and which of its own they are.

    Where there are too few, those of the columns `names` may be public knowledge.

    What is left is `other`, or counts as the commonest label where `others` are hardly anything: a value of the
    model that no row has could hide others in the model and nowhere else. A missing number likewise.
    """
    if coding.edges:
        last = len(coding.labels) - 1
        if coding.missing != last or totals[last] >= few_rows(budget.rows):
            return coding, kept
        shown = replace(coding, labels=coding.labels[:last], missing=int(totals[:last].argmax()))
        return shown, np.arange(last + 1) < last
    labels = tuple(label for label, stays in zip(coding.labels, kept, strict=True) if stays)
    if len(labels) + others < 2:
        raise FewRowsError(f"no values of '{coding.column}' have enough rows to be named through noise", names)
    missing = None
    if coding.missing is not None and kept[coding.missing]:
        missing = labels.index(coding.labels[coding.missing])
    rest = None if budget.names_all(coding) else len(labels) if others else int(totals[kept].argmax())
    shown = replace(coding, labels=(*labels, *([unique_label(OTHER, labels)] * others)), missing=missing, rest=rest)
    return shown, kept


def _product(codings: list[Coding]) -> Variable:
    from privacyfunnel.tables.coding.domain_file import DomainFile

    domain = DomainFile({coding.column: coding for coding in codings})
    return domain.variable([coding.column for coding in codings])
