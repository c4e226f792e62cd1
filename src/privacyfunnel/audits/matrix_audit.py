"""A transition matrix from elsewhere, measured on a table: what it says about the secret, and what promise it keeps.

The matrix is judged as it is: nothing is mixed in and nothing is forgiven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privacyfunnel.audits.pram import SEPARATOR, matrix_columns, read_matrix
from privacyfunnel.errors import ColumnError, GuaranteeError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import certify
from privacyfunnel.model.comparisons import Leak
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import PROMISES, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect


@dataclass(frozen=True, slots=True, eq=False)
class MatrixAudit:
    """What a matrix does to a table."""

    joint: Joint
    protocol: Protocol
    rows: int
    leaks: Mapping[str, Leak]  # under lip, ldp and srlip: how much, and where it is worst
    certified: float | None  # ε of the promise that was asked about, in exact arithmetic; None where none was

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return mutual_information(self.joint, self.protocol)

    @property
    def entropy(self) -> float:
        """H(X) in nats."""
        return entropy(self.joint.p_x)

    def describe_leak(self, promise: str) -> str:
        """In words, who learns most from which output."""
        leak = self.leaks[promise]
        output = None if leak.output is None else SEPARATOR.join(dict.fromkeys(self.protocol.outputs[leak.output]))
        return leak.describe(self.joint, output)


def audit_matrix(
    matrix: str | Path,
    table: str | Path,
    *,
    secret: Sequence[str],
    publish: Sequence[str] = (),
    promise: Promise | None = None,
    bins: Sequence[Bins] = (),
    dialect: Dialect = AUTO_DETECT,
) -> MatrixAudit:
    """Measure a PRAM transition matrix on the table it is meant for; `publish` left out, its corner names the columns.

    Raises
    ------
    GuaranteeError
        If a promise is given and the matrix, rounded to multiples of 2⁻⁶⁴, does not keep it exactly.
    """
    from privacyfunnel.release.design import check_joint
    from privacyfunnel.tables.coding.encoding import encode
    from privacyfunnel.tables.readers.table_files import open_table

    if not secret:
        raise ColumnError("a matrix is measured against a secret; none was named. Add --secret COLUMN.")
    people = open_table(table, dialect)
    columns = tuple(publish) or matrix_columns(matrix)
    if not columns:
        raise ColumnError(
            f"the corner of '{matrix}' must name the column it is for; it is empty. Add --publish COLUMN."
        )
    counted = encode(people, secret=tuple(secret), publish=columns, bins=bins)
    joint = check_joint(counted.contingency)
    protocol = read_matrix(matrix, joint)
    certified = None if promise is None else _certify(protocol, promise, joint)
    leaks = {name: kind(0).worst(joint, protocol) for name, kind in PROMISES.items()}
    return MatrixAudit(joint, protocol, counted.rows, leaks, certified)


def _certify(protocol: Protocol, promise: Promise, joint: Joint) -> float:
    try:
        return certify(ChannelMechanism.from_protocol(protocol), promise, joint)
    except GuaranteeError:
        leakage = promise.leakage(joint, protocol)
        if math.isinf(leakage):
            found, advice = "leaks without bound", "Give every secret a chance of every output"
        else:
            found = f"leaks {max(leakage - promise.epsilon, 0.0):.2g} more"
            advice = f"It keeps ε = {_round_up(leakage):g}"
        raise GuaranteeError(
            f"{promise.name} ε = {promise.epsilon:g} must hold for the matrix as it is; it {found}. {advice}."
        ) from None


def _round_up(epsilon: float) -> float:
    """A little more than ε, in six digits."""
    digits = 5 - math.floor(math.log10(epsilon)) if epsilon > 0 else 12
    return (math.floor(epsilon * 10.0**digits) + 1) / 10.0**digits
