"""How the columns of a table are read as the domain of a protocol states them, and its rows counted by a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.model.each_secret import APART
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.published.each_model import EachModel
from privacyfunnel.model.published.table_model import PublishedModel
from privacyfunnel.tables.coding.bins import Bins, Grouping
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Contingency, Variable
from privacyfunnel.tables.coding.grouping_rules import parse_grouping
from privacyfunnel.tables.coding.merges import Merge, MergeOthers


def published_variable(domain: Domain) -> Variable:
    """The published columns with their labels: entries of any table become codes of these."""
    groupings = _groupings(domain)
    codings = []
    for at in domain.attributes:
        missing, rest = domain.missing.get(at.name), domain.rest.get(at.name)
        codings.append(
            Coding(
                at.name,
                at.labels,
                missing=None if missing is None else at.labels.index(missing),
                edges=tuple(domain.bins.get(at.name, ())),
                rest=None if rest is None else at.labels.index(rest),
                how=groupings.get(at.name),
            )
        )
    return Variable(tuple(codings), domain.combos)


def column_bins(domain: Domain) -> tuple[Bins, ...]:
    """The bins of each published column; those without edges or a rule keep every value as it is."""
    groupings = _groupings(domain)
    return tuple(
        Bins(at.name, edges=tuple(domain.bins.get(at.name, ())), how=groupings.get(at.name)) for at in domain.attributes
    )


def rest_merges(domain: Domain) -> tuple[Merge, ...]:
    """The merges by which every value that a column does not list becomes its label for the rest."""
    return tuple(
        MergeOthers(at.name, frozenset(at.labels), domain.rest[at.name])
        for at in domain.attributes
        if at.name in domain.rest
    )


def _groupings(domain: Domain) -> dict[str, Grouping]:
    try:
        return {column: parse_grouping(rule) for column, rule in domain.groupings.items()}
    except ParameterError as error:
        raise ProtocolFileError(f"{error} The file was altered or written by another program: make it again.") from None


def group_table(table: Contingency, model: PublishedModel) -> tuple[Joint, IntArray]:
    """A table's own counts by the groups of a model that list secrets, and which of its values occur in them."""
    shown = Joint.from_contingency(replace(table, weights=np.ones_like(table.weights)))
    if isinstance(model, EachModel):
        rows: dict[str, IntArray] = {}
        name = APART.join(model.parts)
        for j, (column, part) in enumerate(model.parts.items()):
            one = table.select_secret(j)
            mine = part.group_counts(one.secret_labels, one.weights)
            rows |= {f"{column} = {label}": row for label, row in mine.items()}
    else:
        rows, name = model.group_counts(table.secret_labels, table.weights), shown.secret_name
    weights = np.array(list(rows.values()))
    x = np.flatnonzero(weights.sum(axis=0))
    return Joint(weights[:, x], tuple(rows), shown.attributes, table.combos[x], name), x
