"""Coefficients that an analyst computes from a release, with the intervals that ordinary software gives for them.

Logistic and linear regression on indicators of labels, with weights, and standard errors that are robust against the
wrong variance (sandwich). Everything depends on a record by its cell, so that sums over cells are all that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.comparison.tables import Analysis, Case, Codes
from privacyfunnel.arrays import FloatArray

LEAST_SHARE = 0.05  # of the table, for a label to have a coefficient; the commonest has none
Z = 1.959964


@dataclass(frozen=True)
class Coefficients:
    """Without the intercepts: of the logistic and of the linear regression."""

    values: FloatArray
    errors: FloatArray

    def conclusions(self) -> FloatArray:
        """What a paper would print: more, less, or no difference at the level of 5 %."""
        return np.where(np.abs(self.values) > Z * self.errors, np.sign(self.values), 0.0)


def regress(
    case: Case, analysis: Analysis, codes: Codes, weights: FloatArray, covariance: FloatArray | None = None
) -> Coefficients:
    """Of records with weights; with a covariance of the weights, if what was published is not rows."""
    event, label = analysis.event
    numbers = analysis.number[1]
    outcome = np.array([numbers[name] for name in case.labels[analysis.number[0]]])
    place = case.columns.index
    whether = codes[:, place(event)] == case.labels[event].index(label)
    both = []
    for logistic, column, y in (
        (True, event, whether.astype(float)),
        (False, analysis.number[0], outcome[codes[:, place(analysis.number[0])]]),
    ):
        cells, x = _indicators(case, codes, [name for name in analysis.predictors if name != column])
        both.append(_fit(x, cells, y, weights, covariance, logistic=logistic))
    values, errors = zip(*both, strict=True)
    return Coefficients(np.concatenate(values), np.concatenate(errors))


def _indicators(case: Case, codes: Codes, predictors: list[str]) -> tuple[Codes, FloatArray]:
    """The cell of every record, and of every cell the row of the design matrix."""
    places = [case.columns.index(name) for name in predictors]
    shape = tuple(case.coded.sizes[j] for j in places)
    cells = np.ravel_multi_index(tuple(codes[:, j] for j in places), shape)
    of_cells = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    columns = [np.ones(int(np.prod(shape)))]
    for j, values in zip(places, of_cells, strict=True):
        shares = np.bincount(case.coded.codes[:, j], minlength=case.coded.sizes[j]) / case.coded.rows
        for code in np.flatnonzero(shares >= LEAST_SHARE):
            if code != shares.argmax():
                columns.append((values == code).astype(float))
    return np.asarray(cells), np.column_stack(columns)


def _fit(
    x: FloatArray, cells: Codes, y: FloatArray, w: FloatArray, covariance: FloatArray | None, *, logistic: bool
) -> tuple[FloatArray, FloatArray]:
    def add(summands: FloatArray) -> FloatArray:
        return np.bincount(cells, summands, len(x)).astype(float)

    total, sums = np.maximum(add(w), 0.0), add(w * y)
    if logistic:
        sums = np.clip(sums, 0.0, total)
    beta = np.zeros(x.shape[1])
    for _ in range(25 if logistic else 1):
        fitted = _expected(x @ beta, logistic=logistic)
        slope = fitted * (1 - fitted) if logistic else np.ones(len(x))
        information = x.T @ ((total * slope)[:, None] * x) + 1e-9 * np.eye(len(beta))
        step = np.linalg.lstsq(information, x.T @ (sums - total * fitted), rcond=None)[0]
        beta = beta + np.clip(step, -5, 5) if logistic else beta + step
    residual = y - _expected(x @ beta, logistic=logistic)[cells]
    if covariance is None:
        meat = x.T @ (add((w * residual) ** 2)[:, None] * x)
    else:
        scores = residual[:, None] * x[cells]
        meat = scores.T @ covariance @ scores
    inverse = np.linalg.pinv(information)
    errors = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse), 0.0))
    return beta[1:], np.maximum(errors[1:], 1e-12)


def _expected(scores: FloatArray, *, logistic: bool) -> Any:
    return 1 / (1 + np.exp(-np.clip(scores, -30, 30))) if logistic else scores
