"""Design for many columns: a published tree of them, and records that are real or synthetic (docs/theory.md).

The whole ε is shared between the tree and the records. Labels come from a domain file, or they are found through the
noise of the tree's own tables; those that few rows have become `other`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.interface import CONDITIONED_WELL
from privacyfunnel.designs.methods import AUTO, REAL_OR_SYNTHETIC
from privacyfunnel.designs.wide.real_or_synthetic_design import (
    WideDesign,
    design_real_or_synthetic,
    measure_information,
)
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.formatting import format_number
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.real_or_synthetic import compare_secrets, reveal_known
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.each_secret import stack_joints
from privacyfunnel.model.joint import Attribute, Joint, merge_secrets
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.impossible import ImpossibleRecords
from privacyfunnel.model.published.measurement import MOST_LABELS, CodedTable
from privacyfunnel.model.published.model_quality import ModelQuality, measure_quality
from privacyfunnel.model.published.noise import BeforeNoise, NoNoise
from privacyfunnel.model.published.table_model import FewRowsError, PublishedModel
from privacyfunnel.model.published.tree_model import check_known
from privacyfunnel.model.published.wide_fit import (
    BINNED,
    FOUND,
    GIVEN,
    FoundColumn,
    WideFit,
    fit_wide_model,
    stack_tables,
)
from privacyfunnel.model.published.wide_model import WideEachModel, WideModel, stack_values
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information
from privacyfunnel.release.private_design import Noise, fit_or_advise, fixed_part, refuse_large, refuse_merged
from privacyfunnel.tables.coding.contingency import Contingency, Variable, distinct_rows

if TYPE_CHECKING:
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.coding.coders import Coding

LEAST_SHARE, LARGEST_SHARE = Fraction(1, 5), Fraction(1, 2)  # of the whole ε that the model gets …
ROWS_TO_MODEL = 5000  # … and within these so much: rows · ε_c
MOST_FOUND = 2000  # labels of a column among which some are found through noise
MOST_COLUMNS = 200
MOST_LISTED_COLUMNS = 2  # whose combinations are listed where labels are found through noise
ENOUGH = Fraction(10**6)  # ε for all edges, where counts have no noise


def is_wide(spec: ReleaseSpec) -> bool:
    """Whether records of a published model are real or synthetic: if asked for, or with too many columns for a list.

    The spec alone decides, and never what the table holds: with labels in a domain file by how many combinations they
    have, else from three columns on.
    """
    if spec.method not in (AUTO, REAL_OR_SYNTHETIC):
        return False
    if spec.method == REAL_OR_SYNTHETIC or spec.impossible_combinations or spec.model_table is not None or spec.known:
        return True
    if spec.domain is None and len(spec.publish) <= MOST_LISTED_COLUMNS:
        return False
    options = spec.options()
    needs_list = spec.average is not None or spec.merge_rare is not None
    other_use = not isinstance(options.use, Information | Statistics)
    if (
        needs_list
        or other_use
        or spec.promise_value.guards_known_attributes
        or spec.promise_value.components is not None
    ):
        return False
    if spec.domain_file is None:
        return True
    labels = [len(spec.domain_file.codings[at].labels) for at in spec.publish if at in spec.domain_file.codings]
    return len(labels) > 1 and math.prod(labels) > CONDITIONED_WELL


@dataclass(frozen=True, eq=False)
class FittedWideModel:
    """A tree, the table by the labels that it publishes, and the promise that is left for the records."""

    contingency: Contingency
    model: WideModel
    fit: WideFit
    coded: CodedTable  # by the labels of the tree: the owner's own
    promise: Promise
    impossible: ImpossibleRecords | None = None

    @cached_property
    def joint(self) -> Joint:
        """The table's own counts, by the groups of secrets of the model: the owner's own."""
        if not isinstance(self.model, WideEachModel):
            joint = Joint.from_contingency(self.contingency)
            return merge_secrets(joint, self.model.group_of(joint.secrets))
        joints = {}
        for j, (column, part) in enumerate(self.model.parts.items()):
            one = Joint.from_contingency(self.contingency.select_secret(j))
            joints[column] = merge_secrets(one, part.group_of(one.secrets))
        return stack_joints(joints)

    @cached_property
    def quality(self) -> ModelQuality:
        """How well the tree describes the table: the owner's own."""
        return measure_quality(self.model.tree, self.coded)

    @property
    def quality_statement(self) -> str:
        """The same in words."""
        found = self.quality
        named = f"; a value needs about {self.fit.few:,} rows to be named" if self.fit.few else ""
        return (
            f"shares of the published model are off by {100 * found.one_way:.2f} points, its tables of two columns by "
            f"{100 * found.two_way:.1f} % (each count has noise of ±{1.96 * self.fit.noise:,.0f} rows, which grows "
            f"with the columns and secrets){named}"
        )

    @property
    def warning(self) -> str:
        """That the model is too poor for its ε, or that rows have what it rules out, where it is so."""
        ruled_out = 0 if self.impossible is None else int(self.impossible.match(self.coded.codes).sum())
        if ruled_out:
            return (
                f"{ruled_out:,} rows have a combination that {hint('zeros')} calls impossible: they are "
                "always replaced, and no estimate counts them. Correct the rows, or that file"
            )
        if not self.quality.is_too_poor:
            return ""
        return (
            "the published model guesses the secret no better than its shares do: whoever knows the real relation is "
            f"not covered. More rows or a larger {hint('epsilon')} help, and so do fewer columns"
        )


def check_wide(table: Contingency, spec: ReleaseSpec) -> None:
    """Refuse a table that no tree is made of, before any noise is drawn."""
    promise, codings = spec.promise_value, table.published.codings
    if promise.composable is not None:
        raise ParameterError(
            f"{hint('composable')} is kept by mechanisms that list their outputs. Publish one or two columns, or use "
            f"{hint('method', 'optimal')} where combinations are few."
        )
    each = [_secret_attribute(table.select_secret(j)) for j in range(len(table.secret.columns))]
    stacked = stack_values({at.name: at.labels for at in each}) if promise.by_column else _secret_attribute(table)
    if all(len(at.labels) > 1 for at in each):
        compare_secrets(promise, stacked)
    if len(codings) > MOST_COLUMNS:
        raise ParameterError(
            f"At most {MOST_COLUMNS} columns are published together; these are {len(codings)}. The ε of the model is "
            "shared by all of them, so that noise grows with their number. Publish those that are needed."
        )
    given = {*spec.public_labels} if spec.domain_file is None else {*spec.secret, *spec.publish}
    refuse_large(Fraction(str(promise.epsilon)), labels_given=given >= {*spec.secret, *spec.publish})
    for coding in (*table.secret.codings, *codings):
        _refuse_many_labels(Attribute(coding.column, coding.labels), coding.column in given)
    attributes = [Attribute(coding.column, coding.labels) for coding in codings]
    named = [at for at in attributes if at.name in spec.known]
    check_known(named, 2 * math.prod(len(at.labels) if at.name in given else 1 for at in named))
    ImpossibleRecords.find(attributes, spec.impossible_combinations)


def fit_wide(table: Contingency, spec: ReleaseSpec, before_noise: BeforeNoise) -> FittedWideModel:
    """The tree of a table, and the promise for records with respect to it."""
    check_wide(table, spec)
    if spec.model_table is not None:  # its noise was drawn by somebody else, and counts
        before_noise()
    return fit_or_advise(partial(_fit_wide, table), spec, int(table.weights.sum()), before_noise)


def _fit_wide(table: Contingency, spec: ReleaseSpec, source: Noise) -> FittedWideModel:
    from privacyfunnel.tables.coding.domain_file import fill_table

    promise, given = spec.promise_value, spec.domain_file is not None
    total, rows = Fraction(str(promise.epsilon)), int(table.weights.sum())
    secrets = len(table.secret.columns) if promise.by_column else 1
    least = [total * Fraction(promise.smallest_scale(table.secret_labels))]
    least += [Fraction(str(size)) for size in promise.own_sizes.values()]
    epsilon = _model_epsilon(spec, min(least), Fraction(rows, secrets))
    table = table if given else fill_table(table)
    coded = code_table(table, promise.by_column)
    kinds = [
        GIVEN
        if given or (coding.column in spec.public_labels and not coding.edges)
        else BINNED
        if coding.edges
        else FOUND
        for coding in table.published.codings
    ]
    secrets_given = given or {*spec.secret} <= {*spec.public_labels}
    measured, spent = coded, epsilon
    if spec.model_table is not None:
        measured, spent, source = _read_model_table(spec), ENOUGH, lambda _: NoNoise()
    each = [_secret_attribute(table.select_secret(j)) for j in range(secrets)] if promise.by_column else []
    fit = fit_wide_model(measured, spent, total, source, (secrets_given, kinds), spec.known, each)
    facts: dict[str, Any] = {"rows": rows, "epsilon": epsilon / secrets, "delta": fit.delta / secrets, "total": total}
    rests = [groups.index(()) if () in groups else None for groups in fit.groups]
    if promise.by_column:
        named = zip(table.secret.columns, fit.groups, rests, strict=True)
        parts = {at: PublishedModel(groups=groups, rest=rest, **facts) for at, groups, rest in named}
        model: WideModel = WideEachModel.of_parts(parts, tree=fit.tree)
    else:
        model = WideModel(tree=fit.tree, groups=fit.groups[0], rest=rests[0], **facts)
        refuse_merged(promise, model.groups, (*table.secret.columns, *(at.column for at in table.published.codings)))
    shown = _recode(table, fit.columns)
    left = promise.reduce(epsilon, fit.tree.secret.labels)
    impossible = ImpossibleRecords.find(fit.tree.attributes, spec.impossible_combinations)
    beside = impossible if len(impossible.patterns) else None
    return FittedWideModel(shown, model, fit, fit.recode(coded), left, beside)


def _read_model_table(spec: ReleaseSpec) -> CodedTable:
    """The rows of a differentially private table, by the labels of the domain file."""
    from privacyfunnel.tables.readers.table_files import open_table

    assert spec.domain_file is not None  # the spec was checked
    table = open_table(spec.model_table, spec.dialect)
    found = spec.domain_file.encode(table, secret=spec.secret, publish=spec.publish, unlisted=True)
    return code_table(found.contingency, spec.promise_value.by_column)


def seal_wide(fitted: FittedWideModel) -> tuple[SealedProtocol, WideDesign]:
    """The mechanism for a tree, its slacks proved, and what it keeps."""
    tree = reveal_known(fitted.model.tree, fitted.promise)
    found = design_real_or_synthetic(tree, fitted.promise, impossible=fitted.impossible)
    information = measure_information(found.mechanism)
    attributes = fitted.model.tree.attributes
    sealed = SealedProtocol(
        mechanism=found.mechanism,
        promise=fitted.promise,
        epsilon=fitted.promise.epsilon,
        domain=Domain(attributes, np.zeros((0, len(attributes)), dtype=np.int64), fitted.contingency.secret.columns),
        information=information.information,
        information_error=information.error,
        entropy=information.entropy,
        model=fitted.model,
    )
    return sealed, found


def code_table(table: Contingency, each: bool = False) -> CodedTable:
    """The rows of a table that was counted, as codes; with `each` secret column by itself, once for each of them."""
    if each:
        return stack_tables([code_table(table.select_secret(j)) for j in range(len(table.secret.columns))])
    s, x = np.nonzero(table.weights)
    times = table.weights[s, x]
    attributes = tuple(Attribute(coding.column, coding.labels) for coding in table.published.codings)
    codes = np.repeat(table.combos[x].astype(np.int32), times, axis=0)
    return CodedTable(_secret_attribute(table), attributes, np.repeat(s, times), codes)


def _secret_attribute(table: Contingency) -> Attribute:
    return Attribute(" & ".join(table.secret.columns), table.secret_labels)


def _model_epsilon(spec: ReleaseSpec, total: Fraction, rows: Fraction) -> Fraction:
    fixed = fixed_part(spec, total)
    if fixed is not None:
        return fixed
    share = max(total * LEAST_SHARE, min(total * LARGEST_SHARE, ROWS_TO_MODEL / rows))
    epsilon = Fraction(f"{float(share):.3g}")
    if epsilon < Fraction(1, 1000):
        raise FewRowsError(f"ε = {format_number(float(total))} leaves no ε for a model")
    return epsilon


def _refuse_many_labels(attribute: Attribute, given: bool) -> None:
    most, size = MOST_LABELS if given else MOST_FOUND, len(attribute.labels)
    if size > most:
        raise ColumnError(
            f"column '{attribute.name}' has {size:,} different values; a model takes at most {most:,}, and few of them "
            f"would have the rows to be named. Leave it out, publish a part of it "
            f"({hint('bins', f'{attribute.name}=prefix:3')}), or map values to groups "
            f"({hint('bins', f'{attribute.name}=map:groups.csv')})."
        )


def _recode(table: Contingency, columns: Sequence[FoundColumn]) -> Contingency:
    """The table by the labels that were found."""
    codings = []
    for coding, column in zip(table.published.codings, columns, strict=True):
        missing = coding.missing
        if missing is not None:
            missing = int(column.code_of[missing]) if column.found[missing] or coding.edges else None
        rest = None if coding.edges else column.rest
        codings.append(replace(coding, labels=column.labels, missing=missing, rest=rest))
    return _map_labels(table, codings, [column.code_of for column in columns])


def _map_labels(table: Contingency, codings: Sequence[Coding], becomes: Sequence[IntArray]) -> Contingency:
    codes = np.column_stack([new[column] for new, column in zip(becomes, table.combos.T, strict=True)])
    combos, place = distinct_rows(codes)
    weights = np.zeros((len(table.weights), len(combos)), dtype=np.int64)
    np.add.at(weights.T, place, table.weights.T)
    return Contingency(weights, table.secret, Variable(tuple(codings), combos))
