"""PRAM: the transition matrix of a protocol as a CSV file, to and from software such as sdcMicro.

The first column holds the original values, the header the outputs, each cell the chance of that output for that value.
Labels of several columns are joined by ` & `.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.errors import ColumnError, DistributionError, GuaranteeError, ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify
from privacyfunnel.model.comparisons import Leak
from privacyfunnel.model.contingency_csv import open_csv
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import YARDSTICKS, Promise
from privacyfunnel.model.protocols.channel_protocol import Labels, Protocol
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect

SEPARATOR = " & "
ROUNDING = 1e-5  # a matrix written with few digits may miss 1 by this much; its rows are then divided by their sums
DIGITS = 17  # behind the point: as many as a double has


def write_matrix(sealed: SealedProtocol, path: str | Path, *, force: bool = False) -> None:
    """Write q(y | x) as a CSV transition matrix with 17 digits behind the point, every row summing to exactly 1.

    Like the protocol file it can be read by its owner only, unless the counts of the design were noisy.
    For a protocol that sees the secret this is the channel that it induces from values to outputs.
    """
    table = sealed.mechanism.table_protocol
    if table is None:
        raise ParameterError(
            "A transition matrix needs a protocol with one channel for the whole record; "
            f"{sealed.mechanism.no_table_reason}. Use randomised-response or optimal."
        )
    channel = table.channel if sealed.induced is None else np.asarray(sealed.induced)
    domain = sealed.domain
    values = map(SEPARATOR.join, domain.values)
    with ExitStack() as stack:
        beside = stack.enter_context(atomic_file(path, force=force, owner_only=not sealed.has_noisy_design))
        file = stack.enter_context(beside.open("w", encoding="utf-8", newline=""))
        writer = csv.writer(file, lineterminator="\n")
        name = SEPARATOR.join(at.name for at in domain.attributes)
        writer.writerow([name, *(SEPARATOR.join(labels) for labels in table.outputs)])
        writer.writerows([value, *decimals(row)] for value, row in zip(values, channel, strict=True))


def read_matrix(path: str | Path, joint: Joint | None = None) -> Protocol:
    """The protocol of a CSV transition matrix; its rows ordered as the values of `joint`, if one is given.

    Rows may miss a sum of 1 by rounding, up to 1e-5. With a joint, values of the matrix that never occur are left out,
    and every value that occurs must have a row.
    """
    name, values, outputs, channel = _parse(Path(path))
    if joint is None:
        return Protocol(channel, tuple((label,) for label in outputs))
    place = {label: row for row, label in enumerate(values)}
    wanted = [SEPARATOR.join(labels) for labels in joint.values]
    unknown = sum(label not in place for label in wanted)
    if unknown:
        columns = SEPARATOR.join(at.name for at in joint.attributes)
        raise TableError(
            f"Every value of {columns} must have a row in '{path}'; {unknown} of {len(wanted)} have none. "
            f"The matrix has {len(values)} rows for '{name}': use the same labels in both."
        )
    return Protocol(channel[[place[label] for label in wanted]], _output_labels(outputs, joint))


def matrix_columns(path: str | Path) -> tuple[str, ...]:
    """The columns that the corner of a CSV transition matrix names; none if it is empty."""
    name = _parse(Path(path))[0].strip()
    return tuple(name.split(SEPARATOR)) if name else ()


def decimals(row: FloatArray) -> list[str]:
    """The entries of a distribution as decimals of 17 digits behind the point that sum to exactly 1.

    >>> decimals(np.array([0.25, 0.75]))
    ['0.25000000000000000', '0.75000000000000000']
    """
    unit = 10**DIGITS
    total = sum(map(Fraction, row.tolist()))
    exact = [Fraction(q) / total * unit for q in row.tolist()]
    whole = [math.floor(q) for q in exact]
    # What rounding down left over goes to the entries that lost most by it.
    for y in sorted(range(len(exact)), key=lambda y: whole[y] - exact[y])[: unit - sum(whole)]:
        whole[y] += 1
    return [f"{Decimal(n).scaleb(-DIGITS):.{DIGITS}f}" for n in whole]


def _output_labels(outputs: list[str], joint: Joint) -> tuple[Labels, ...]:
    """Outputs that are combinations of the joint's labels are split into their columns; others keep one label."""
    split = {SEPARATOR.join(labels): labels for labels in joint.values}
    if all(label in split for label in outputs):
        return tuple(split[label] for label in outputs)
    return tuple((label,) * joint.m for label in outputs)


def _parse(path: Path) -> tuple[str, list[str], list[str], FloatArray]:
    with open_csv(path) as file:
        lines = [line for line in csv.reader(file, strict=True) if line]
    if len(lines) < 2 or len(lines[0]) < 2:
        raise TableError(
            f"'{path}' must hold a header of outputs and a line per original value; it has {len(lines)} lines. "
            "Put the original values in the first column."
        )
    header, body = lines[0], lines[1:]
    if len(body[0]) == len(header) + 1:  # R writes no name above the row names
        header = ["", *header]
    ragged = sum(len(line) != len(header) for line in body)
    if ragged:
        raise TableError(f"Every line of '{path}' must have {len(header)} fields; {ragged} have not. Correct them.")
    values, outputs = [line[0] for line in body], header[1:]
    for what, labels in (("original values", values), ("outputs", outputs)):
        if len(set(labels)) != len(labels):
            raise TableError(f"The {what} in '{path}' must differ; some repeat. Rename or merge them.")
    try:
        channel = np.array([[float(cell) for cell in line[1:]] for line in body])
    except ValueError:
        raise DistributionError(f"Every cell of '{path}' must be a probability; some are no numbers.") from None
    if not np.isfinite(channel).all() or (channel < 0).any():
        raise DistributionError(f"Every cell of '{path}' must be a probability; some are negative or not finite.")
    sums = channel.sum(axis=1)
    off = int((np.abs(sums - 1) > ROUNDING).sum())
    if off:
        turned = channel.shape[0] == channel.shape[1] and bool((np.abs(channel.sum(axis=0) - 1) <= ROUNDING).all())
        advice = "Its columns do: transpose it." if turned else "Original values are rows, outputs are columns."
        raise DistributionError(f"Every row of '{path}' must sum to 1; {off} of {len(sums)} do not. {advice}")
    return header[0], values, outputs, channel / sums[:, None]


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
        raise ColumnError(f"a matrix is measured against a secret; none was named. Add {hint('secret', 'COLUMN')}.")
    people = open_table(table, dialect)
    columns = tuple(publish) or matrix_columns(matrix)
    if not columns:
        raise ColumnError(
            f"the corner of '{matrix}' must name the column it is for; it is empty. Add {hint('publish', 'COLUMN')}."
        )
    counted = encode(people, secret=tuple(secret), publish=columns, bins=bins)
    joint = check_joint(counted.contingency)
    protocol = read_matrix(matrix, joint)
    certified = None if promise is None else _certify(protocol, promise, joint)
    leaks = {name: kind(0).worst(joint, protocol) for name, kind in YARDSTICKS.items()}
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
