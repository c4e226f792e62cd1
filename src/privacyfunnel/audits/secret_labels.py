"""How the secrets of a private design are called: by its public domain, for the protocol file numbers them.

No label of a secret stands in a protocol file, and the table may lack some that the domain lists: numbers would be
taken for the wrong ones if they were looked up there.
"""

from __future__ import annotations

from privacyfunnel.errors import ParameterError
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import join_labels
from privacyfunnel.tables.coding.domain_file import DomainFile


def secret_labels(sealed: SealedProtocol, domain: DomainFile) -> tuple[str, ...]:
    """The labels of the secrets, in the order of the file; refused where this cannot be the domain of the design."""
    population = sealed.promise.population
    counts = None if population is None else population.rule.table
    if counts is None:
        raise ParameterError(
            "A domain says how the secrets of a private design are called; this protocol was made from the table "
            "itself, which says so. Leave out --domain."
        )
    labels = domain.variable(sealed.domain.secret_columns).labels
    listed = domain.variable([at.name for at in sealed.domain.attributes]).labels
    if len(labels) != len(counts) or set(listed) != set(join_labels(sealed.domain.values)):
        raise ParameterError(
            f"{domain.name} must be the domain that the private design was made for; it lists other secrets or values. "
            "Name that one, or leave out --domain."
        )
    return labels
