"""The verdict on a release before it is drawn: good, coarse or useless for its use, and what would help."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privacyfunnel.errors import ParameterError, PrivacyFunnelError
from privacyfunnel.estimation.expected_precision import consequences, counting_error, expected_precision_by_column
from privacyfunnel.formatting import format_number, format_percent, format_points
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.design import DesignResult
from privacyfunnel.release.findings.sparseness import smaller_tables
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.fields import MODEL

GOOD, COARSE, USELESS = "good", "coarse", "useless"
GOOD_ERROR, MOST_ERROR = 0.02, 0.2  # of a share, on average: from ±20 points on, shares say nothing
MOST_PUBLIC_ERROR = 0.05  # where everybody gets the files, and nobody can ask
FEWEST_REAL = 0.05  # of the rows that show their own values
TELLS_SECRET, COMMONEST_SECRET = 0.98, 0.95  # of the rows; where nearly all have one secret, any column tells it
MOST_MERGED = 0.1  # of the rows whose label is not named
LEAST_INFORMATION, LITTLE_KEPT, MUCH_KEPT = 0.001, 0.02, 0.5  # of H(X); the first is as good as nothing
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0)  # that are tried as advice
SECONDS = 2.0  # for each trial
MOST_TRIALS = 4  # smaller tables that are tried
SAFE = 0.8  # of the largest error: what advice must stay below, since a release is drawn from another noise


@dataclass(frozen=True, slots=True)
class Verdict:
    """How good a release will be for its use."""

    error: float | None  # of a share, on average; None where that is not known, or shares are not its use
    real: float | None  # of the rows that show their own values; None where sets of values are published
    kept: float  # of the information
    merged: float = 0.0  # of the rows, whose label in some column is published as another one
    most_error: float = MOST_ERROR
    copy: str = ""  # a published column that tells the secret by itself: little of it can be published

    @property
    def grade(self) -> str:
        """Good, coarse or useless."""
        if self.kept < LEAST_INFORMATION and (self.error is None or self.error > GOOD_ERROR):
            return USELESS
        if self.error is not None:
            unreal = self.real is not None and self.real < FEWEST_REAL and self.error > GOOD_ERROR
            if self.error > self.most_error or unreal:
                return USELESS
            return GOOD if self.error <= GOOD_ERROR and self.merged <= MOST_MERGED and not self.copy else COARSE
        if self.kept < LITTLE_KEPT:
            return USELESS
        return GOOD if self.kept >= MUCH_KEPT and self.merged <= MOST_MERGED and not self.copy else COARSE

    @property
    def text(self) -> str:
        """The grade, and why where figures of errors do not show it."""
        if self.grade == COARSE and self.copy:
            return f"{self.grade}, as {self.copy} tells the secret by itself, and little of that can be published"
        if self.grade != COARSE or self.merged <= MOST_MERGED:
            return self.grade
        return f"{self.grade}, as {format_percent(self.merged, up=True)} of rows have a merged value"

    def __str__(self) -> str:
        """What is expected.

        >>> str(Verdict(0.44, 0.025, 0.001))
        'shares off by ±44.0 points on average, 2.5 % of rows with their own values'
        """
        error = "" if self.error is None else f"shares off by ±{format_points(self.error)} points on average"
        real = "" if self.real is None else f"{format_percent(self.real)} of rows with their own values"
        return ", ".join(filter(None, (error, real))) or f"{format_percent(self.kept)} of the information"


def judge(found: DesignResult, real: float | None, spec: ReleaseSpec) -> Verdict:
    """The verdict on a design whose rows show their own values with a probability of `real`."""
    sealed, joint, use = found.sealed, found.joint, found.worth.use
    error = None
    if spec.use is None or use.name in {"statistics", "balanced"}:
        counted = counting_error(sealed, joint, found.rows)
        columns = set(getattr(use, "columns", ()) or ())
        precisions = expected_precision_by_column(sealed, joint, found.rows)
        shares = [each.average for each in precisions if not columns or columns & {*each.columns}]
        errors = [float(np.mean(shares))] if shares else []
        error = min([*errors, *([] if counted is None else [counted.most])], default=None)
    kept = sealed.information / sealed.entropy if sealed.entropy else 1.0
    most = MOST_PUBLIC_ERROR if spec.for_whom == "everybody" else MOST_ERROR
    merged = max((each.share for each in found.merged), default=0.0)
    return Verdict(error, None if real is None or math.isnan(real) else real, kept, merged, most, _copy(found))


def _copy(found: DesignResult) -> str:
    """The first column that tells the secret of almost every row of the table."""
    table = found.joint if found.fitted is None else found.fitted.contingency
    if table.weights.sum(axis=1).max() > COMMONEST_SECRET * table.weights.sum():
        return ""
    for at, codes in zip(found.joint.attributes, table.combos.T, strict=True):
        cells = np.zeros((codes.max() + 1, len(table.weights)))
        np.add.at(cells, codes, table.weights.T)
        if cells.max(axis=1).sum() >= TELLS_SECRET * cells.sum():
            return at.name
    return ""


def refuse_useless(found: DesignResult, real: float | None, spec: ReleaseSpec) -> None:
    """Refuse a release that would say nothing, with what would help; not one that is asked for anyway, or a test."""
    if spec.anyway or spec.try_ or spec.seed is not None:
        return
    verdict = judge(found, real, spec)
    if verdict.grade != USELESS:
        return
    advice = list(_advice(found, verdict, spec))
    helps = f"What would help: {'; '.join(advice)}." if advice else "A smaller table, or more rows, would help."
    raise ParameterError(
        f"This release would be useless: {verdict}. Nothing was written. {helps} {hint('anyway')} publishes it "
        "all the same."
    )


def _advice(found: DesignResult, verdict: Verdict, spec: ReleaseSpec) -> Iterator[str]:
    """What makes it good enough, each tried on the counts of this table."""
    joint, promise, rows = found.joint, found.sealed.promise, found.rows
    size = found.sealed.total_epsilon
    shared = 2.0 if spec.prior == MODEL else 1.0  # of which a model takes a part
    for epsilon in (each for each in EPSILONS if each > size):
        error = _error_of(joint, rows, found, epsilon / shared)
        if error is not None and error <= SAFE * verdict.most_error:
            yield f"{hint('epsilon', format_number(epsilon))} (about ±{format_points(error)} points)"
            break
    tables = sorted(smaller_tables(joint, found.sealed.domain.bins), key=lambda table: table.joint.a)
    for table in tables[:MOST_TRIALS]:
        error = _error_of(table.joint, rows, found, promise.epsilon)
        if error is not None and error <= SAFE * verdict.most_error and table.joint.a > 1:
            yield f"{table.change} (about ±{format_points(error)} points)"
            break
    if verdict.error is not None and verdict.kept >= LEAST_INFORMATION:
        more = math.ceil(rows * (verdict.error / (SAFE * verdict.most_error)) ** 2)
        more = int(float(f"{1.05 * more:.2g}"))  # which is more, also as rounded
        error = _error_of(joint, more, found, promise.epsilon) if rows < more <= 1000 * rows else None
        if error is not None and error <= verdict.most_error:  # else more rows tell no more
            yield f"about {more:,} rows"


def _error_of(joint: Joint, rows: int, found: DesignResult, epsilon: float) -> float | None:
    """The average error of shares that such a release would have; None where that is not quickly known."""
    try:
        (tried,) = consequences(joint, rows, found.sealed.promise.table_promise, [epsilon], SECONDS)
    except PrivacyFunnelError:
        return None
    return float(np.mean([share.average for share in tried.shares])) if tried.shares else None
