"""How the columns of a table are read as the domain of a protocol states them."""

from __future__ import annotations

from privacyfunnel.errors import ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.tables.coding.bins import Bins, Grouping
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Variable
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
