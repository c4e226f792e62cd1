"""Black-box audit: run the command, look at its published rows only, and test whether they keep the promise.

Copies of the table, with a random number per row, are written into a folder that only its owner can read. `sanitise`
runs on them as a separate process and keeps that number, which pairs published rows with original ones. This tests
everything in between: reading, solving, sealing, sampling, writing and row order. It tests the program and not a file.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privacyfunnel.atomic_files import PUBLIC
from privacyfunnel.audits.black_box_tests import FALSE_ALARM, PublishedRows, Verdict, format_verdict, judge_rows
from privacyfunnel.errors import GuaranteeError, SolverError
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, SealedProtocol
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.joint import Joint
from privacyfunnel.names import unique_label
from privacyfunnel.release.domain_coding import column_bins
from privacyfunnel.release.output_layout import detect_layout
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.text_forms import command_words
from privacyfunnel.tables.coding.bin_syntax import format_bins
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.readers.column_selection import drop_name
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect
from privacyfunnel.tables.readers.table_files import TableSource, open_table, resolve_source

PROGRAM = (sys.executable, "-m", "privacyfunnel")


@dataclass(frozen=True, slots=True)
class BlackBoxAudit:
    """The verdicts of both tests; neither rejects."""

    draws: int
    method: str
    intervals: Verdict
    classifier: Verdict

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "rows": self.draws,
            "method": self.method,
            "intervals": {"sure_of": self.intervals.epsilon_lower_bound, "sets": self.intervals.sets},
            "classifier": {"sure_of": self.classifier.epsilon_lower_bound, "sets": self.classifier.sets},
            "promised": self.intervals.epsilon,
            "false_alarm": FALSE_ALARM,
        }

    def facts(self) -> list[tuple[str, str]]:
        """Lines of a summary."""
        alarm = f"(a build that keeps its promise is rejected once in {1 / FALSE_ALARM:,.0f} audits)"
        return [
            ("from outside", f"{self.draws:,} rows were drawn by {self.method}, and no test finds the promise broken"),
            ("intervals", f"{format_verdict(self.intervals)} {alarm}"),
            ("classifier", f"{format_verdict(self.classifier)} {alarm}"),
        ]


def audit_black_box(
    sealed: SealedProtocol,
    table: str | Path | TableSource,
    draws: int,
    *,
    bins: Sequence[Bins] = (),
    dialect: Dialect = AUTO_DETECT,
    program: Sequence[str] = PROGRAM,
    method: str | None = None,
    seed: int | None = None,
) -> BlackBoxAudit:
    """Draw at least `draws` rows by running the program with the options of the protocol, and test them.

    `seed` is for the random halves of the tests, never for the draw.

    Raises
    ------
    GuaranteeError
        If the published rows leak more about the secret than was promised.
    """
    lot = np.random.default_rng(seed)
    method = method or _channel_method(sealed)
    joint, rows = draw_black_box(
        sealed, table, draws, method=method, lot=lot, bins=bins, dialect=dialect, program=program
    )
    epsilon = max(sealed.promise.epsilon, SMALLEST_EPSILON)
    intervals, classifier = judge_rows(rows, compared_events(sealed, joint), epsilon, lot)
    against = [name for name, found in (("intervals", intervals), ("a classifier", classifier)) if found.rejects]
    if against:
        promise, sure_of = sealed.promise, max(intervals.epsilon_lower_bound, classifier.epsilon_lower_bound)
        raise GuaranteeError(
            f"{promise.name} ε = {promise.epsilon:g} must hold for what sanitise publishes; {' and '.join(against)} of "
            f"{len(rows.inputs):,} rows show at least ε = {sure_of:.3g}, but for a chance of {FALSE_ALARM:g}. "
            "Publish nothing that this program made, and report it."
        )
    return BlackBoxAudit(len(rows.inputs), method, intervals, classifier)


def compared_events(sealed: SealedProtocol, joint: Joint) -> Iterator[Comparisons]:
    """The pairs of events that the promise compares on this table."""
    # The command makes no promise for other priors than the table's own.
    promise = sealed.promise if sealed.promise.components is None else sealed.promise.components[0]
    return promise.comparisons(joint, True)


def draw_black_box(
    sealed: SealedProtocol,
    table: str | Path | TableSource,
    draws: int,
    *,
    method: str,
    lot: np.random.Generator,
    bins: Sequence[Bins] = (),
    dialect: Dialect = AUTO_DETECT,
    program: Sequence[str] = PROGRAM,
) -> tuple[Joint, PublishedRows]:
    """At least `draws` rows that the program publishes from copies of the table, paired with their originals."""
    people = resolve_source(table).open(dialect)
    domain = sealed.domain
    columns = [*domain.secret_columns, *(at.name for at in domain.attributes)]
    once = pl.concat(list(people.batches(columns)))
    rows = pl.concat([once] * -(-draws // max(1, len(once))))
    number = unique_label("row", columns)
    numbers = lot.permutation(len(rows))  # not sorted: a kept column must not give the row order
    with tempfile.TemporaryDirectory(prefix="privacyfunnel-") as folder:
        path, into = Path(folder) / "table.parquet", Path(folder) / "out"
        rows.with_columns(pl.Series(number, numbers)).write_parquet(path)
        _run([*program, *_arguments(sealed, path, into, number, method, [*column_bins(domain), *bins])])
        return _pair_rows(path, into, number, numbers, sealed, [*column_bins(domain), *bins])


def _channel_method(sealed: SealedProtocol) -> str:
    if sealed.bound is not None:
        return "optimal"
    return "conditional-reporting" if sealed.sees_secret else "randomised-response"


def _arguments(
    sealed: SealedProtocol, path: Path, into: Path, number: str, method: str, bins: Sequence[Bins]
) -> list[str]:
    """The command that makes a release like the one of the protocol."""
    return command_words(
        ReleaseSpec(
            table=path,
            secret=sealed.domain.secret_columns,
            publish=[at.name for at in sealed.domain.attributes],
            keep=number,
            accept_kept=True,  # a number for every row, which pairs them
            prior="table",
            promise=sealed.promise.name.lower(),
            epsilon=sealed.promise.epsilon,
            method=method,
            sees_secret=sealed.sees_secret and method == "optimal",
            bins={each.column: format_bins(each) for each in bins},
            into=into,
            report=False,
        )
    )


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise SolverError(
            f"sanitise must run to be judged from outside; it ended with: {said[-1] if said else 'nothing'}"
        )


def _pair_rows(
    path: Path, into: Path, number: str, numbers: np.ndarray[Any, Any], sealed: SealedProtocol, bins: Sequence[Bins]
) -> tuple[Joint, PublishedRows]:
    """Published rows paired with their originals by row number."""
    domain = sealed.domain
    publish = tuple(at.name for at in domain.attributes)
    encoding = encode(open_table(path), secret=domain.secret_columns, publish=publish, bins=bins)
    joint = Joint.from_contingency(encoding.contingency)
    inputs = np.concatenate([chunk.secret * joint.a + chunk.published for chunk in encoding.chunks()])
    by_number = np.empty(len(inputs), dtype=np.int64)
    by_number[numbers] = inputs
    published = open_table(into / PUBLIC / "sanitised.parquet")
    way = detect_layout(SealedProtocol.load(into), published.columns, published.name)
    shown, kept = [], []
    for batch in published.batches([*way.names, number]):
        for piece in batch.iter_slices(way.rows_at_once):
            shown.append(way.recover_codes(piece))
            kept.append(drop_name(piece[number]).cast(pl.Int64).to_numpy())
    which = np.concatenate(kept)
    if not np.array_equal(np.sort(which), np.arange(len(inputs))):
        raise GuaranteeError("every row that goes into sanitise must come out once; some do not. Report it.")
    return joint, PublishedRows(by_number[which], np.concatenate(shown), np.arange(len(which)))
