r"""Composition: what several releases of the same rows say about the secret together.

Draws are independent given the record, not given the secret, so nothing follows from the sizes of the promises alone
(docs/theory.md, Theorems 24 to 27). For given protocols and counts it is a sum:

.. math:: P(y_1, …, y_k \mid E) = \sum_x P(x \mid E) \prod_i q_i(y_i \mid x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, sparse
from privacyfunnel.errors import ColumnError, DistributionError, SizeError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.comparisons import Leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.names import current_label
from privacyfunnel.release.kept_counts import column_bins, rest_merges
from privacyfunnel.tables.coding.bins import Bins, refuse_bins
from privacyfunnel.tables.coding.merges import Merge

if TYPE_CHECKING:
    from privacyfunnel.tables.readers.formats import Table

MOST_CHANCES = 2**21  # pairs of a record and what it can become in all releases together that are gone through
MOST_LOOKS = 2**26  # chances gone through for all sets of columns that someone may know: a minute or two
ROUNDING = 2.0**-53  # of a float, relative
SMALLEST = 2.0**-900  # a smaller chance comes near those that floats cannot hold


@dataclass(frozen=True, slots=True)
class CompositionLeak:
    """What releases say together: a number that no log-ratio of the promise exceeds, and where it is largest."""

    epsilon: float  # rounded outward
    description: str


@dataclass(frozen=True, slots=True)
class ReleaseComposition:
    """What the releases of one table say about the secret, under the promise of the first."""

    promise: Promise
    rows: int
    secret: str
    alone: tuple[CompositionLeak, ...]  # each by itself
    composed: CompositionLeak


def composition_leak(joint: Joint, promise: Promise, laws: Sequence[Mechanism]) -> CompositionLeak:
    r"""The leak under a promise of all these laws' outputs seen together, each drawn with a key of its own.

    Every law has an input for each value of the joint, or for each pair (s, x) where it sees the secret. All terms of
    P(y|E) are positive, so a float sum of n terms with f factors each is off by a factor of at most
    :math:`(1 + 2^{-53})^{n + 2f + 4}`; ε is widened by that, twice.

    Raises
    ------
    SizeError
        If there is too much to go through. Nothing is estimated.
    """
    sees = any(law.sees_secret for law in laws)
    first, *others = [_list_outputs(joint, law, sees) for law in laws]
    together = first
    for other in others:
        both = together.combine(other, MOST_CHANCES)
        if both is None or both.channel.data.min() < SMALLEST:
            raise _size_error("there are too many, or some are too rare for floats")
        together = both
    worst, looks = Leak(0.0), 0
    for block in promise.comparisons(joint, sees):
        looks += together.channel.nnz
        if looks > MOST_LOOKS:
            raise _size_error(f"{promise.name} asks for more, for everyone who knows some of {joint.m} columns")
        found, _ = together.measure(block)
        if found.output is not None and (worst.output is None or found.epsilon > worst.epsilon):
            worst = found
    if worst.output is None:
        return CompositionLeak(0.0, worst.describe(joint))
    inputs, factors = together.channel.shape[0], sum(len(law.columns) for law in laws)
    # What taking the logarithm of a quotient rounds off is within the 8 units of its size.
    error = (2 * (inputs + 2 * factors + 8) + 8 * worst.epsilon) * ROUNDING
    return CompositionLeak(worst.epsilon + error, together.describe(worst, joint))


def _list_outputs(joint: Joint, law: Mechanism, sees_secret: bool) -> SparseProtocol:
    """The law as a list of outputs, with a row for each pair (s, x) where some law sees the secret."""
    if law.inputs != joint.a * (joint.c if law.sees_secret else 1):
        raise DistributionError(f"A law must have a row per input; one has {law.inputs} for {joint.a} values.")
    one = law.explicit_protocol(MOST_CHANCES)
    if one is None:
        raise _size_error(law.no_table_reason or "there are too many")
    if sees_secret and not law.sees_secret:
        return SparseProtocol(sparse.csr_array(one.channel[np.tile(np.arange(joint.a), joint.c)]), one.outputs)
    return one


def compose_releases(
    sealed: Sequence[tuple[str, SealedProtocol]], table: Table, bins: Sequence[Bins] = (), merges: Sequence[Merge] = ()
) -> ReleaseComposition:
    """What protocols, each with its name, say together about the secret of the first, under its promise.

    The columns of all protocols are counted together from the table. `bins` are those of the secret.
    """
    from privacyfunnel.tables.coding.encoding import encode

    first = sealed[0][1]
    first.domain.check_secrets(merges)
    protected = first.domain.secret_columns
    for name, other in sealed:
        if not other.mechanism.lists_inputs:
            raise SizeError(
                f"the leak of several releases is a sum over a list of all outputs, and {name} has none: its records "
                "are real or synthetic. Treat what several such releases leak together as unbounded."
            )
        if other.sees_secret and other.domain.secret_columns != protected:
            raise ColumnError(
                f"a protocol that sees the secret must see {' & '.join(protected)}; {name} sees "
                f"{' & '.join(other.domain.secret_columns)}. Leave it out."
            )
    stated = _stated_bins([one for _, one in sealed])
    refuse_bins(bins, stated)
    agreed = _shared_merges([one for _, one in sealed], first.promise)
    counted = encode(
        table,
        secret=protected,
        publish=tuple(stated),
        bins=[*stated.values(), *bins],
        merges=[*agreed, *merges],
    )
    joint = Joint.from_contingency(counted.contingency)
    laws = [_align_mechanism(joint, one) for _, one in sealed]
    promise = first.promise if first.promise.composable is None else first.promise.table_promise
    alone = tuple(composition_leak(joint, promise, [law]) for law in laws)
    return ReleaseComposition(promise, counted.rows, joint.secret_name, alone, composition_leak(joint, promise, laws))


def _stated_bins(sealed: Sequence[SealedProtocol]) -> dict[str, Bins]:
    """The published columns of all protocols, each with its edges, on which they must agree."""
    stated: dict[str, Bins] = {}
    for one in sealed:
        for mine in column_bins(one.domain):
            if stated.setdefault(mine.column, mine) != mine:
                raise ColumnError(
                    f"protocols that are composed must cut '{mine.column}' into the same bins; these do not. "
                    f"Make one of them again with the other's {hint('bins')}."
                )
    return stated


def _shared_merges(sealed: Sequence[SealedProtocol], promise: Promise) -> tuple[Merge, ...]:
    """How the values of each column are merged where all protocols that have it agree; else they are counted apart."""
    stated: dict[str, set[Merge | None]] = {}
    for one in sealed:
        mine = {rule.column: rule for rule in rest_merges(one.domain)}
        for at in one.domain.attributes:
            stated.setdefault(at.name, set()).add(mine.get(at.name))
    unlike = [name for name, rules in stated.items() if len(rules) > 1]
    if unlike and promise.guards_known_attributes:
        raise ColumnError(
            f"protocols that are composed under {promise.name} must merge the same values of '{unlike[0]}', which "
            f"somebody may know; these do not. Make one of them again with the other's {hint('merge_rare')}."
        )
    return tuple(rule for rules in stated.values() if len(rules) == 1 for rule in rules if rule is not None)


def _align_mechanism(joint: Joint, sealed: SealedProtocol) -> Mechanism:
    """The law with an input for each value of the joint, whose attributes are those of all protocols."""
    domain = sealed.domain
    names = [at.name for at in joint.attributes]
    columns = [names.index(at.name) for at in domain.attributes]
    values = [domain.input_labels([value[j] for j in columns]) for value in joint.values]
    x = look_up_labels(values, domain.values, joint.weights.sum(axis=0), [at.name for at in domain.attributes])
    if not sealed.sees_secret:
        return sealed.mechanism.restrict_inputs(x)
    s = look_up_labels(joint.secrets, domain.secrets, joint.weights.sum(axis=1), domain.secret_columns)
    inputs: IntArray = (s[:, None] * len(domain.values) + x[None, :]).reshape(-1)
    return sealed.mechanism.restrict_inputs(inputs)


def look_up_labels(wanted: Sequence[Any], known: Sequence[Any], rows: NDArray[Any], columns: Sequence[str]) -> IntArray:
    """The place of each wanted label among the known ones."""
    now = [tuple(map(current_label, label)) if isinstance(label, tuple) else current_label(label) for label in known]
    place = {label: code for labels in (now, known) for code, label in enumerate(labels)}  # a file's own spelling wins
    strange = [i for i, label in enumerate(wanted) if label not in place]
    if strange:
        raise TableError(
            f"{' & '.join(columns)} must hold only values the protocol knows; {int(rows[strange].sum()):,} rows hold "
            f"{len(strange)} others. Use the table and bins the protocol was made for."
        )
    return np.array([place[label] for label in wanted], dtype=np.int64)


def _size_error(why: str) -> SizeError:
    return SizeError(
        f"Joint leakage is computed from a list of all outputs, at most {MOST_CHANCES:,} chances; {why}. "
        "Compose fewer releases, or protocols with fewer outputs."
    )
