r"""Linear and logistic regression on the original values, from a sanitised table and its protocol.

Coefficients solve :math:`\sum_i \psi(x_i, k_i; \beta) = 0` over the original rows, with published values x, kept values
k and :math:`\psi = f\,(y - \mu(f \cdot \beta))`. For any function of (x, k) rows and protocol give an unbiased estimate
of its sum: by the linear estimate of the shares of x, with noisy counts where they are public; by
:math:`\sum_x g_x(y_i)\, \psi(x, k_i)` with weights :math:`E[g_x(Y) \mid x'] = [x = x']` where kept columns take part;
by weights of rows and decoys where records are real or synthetic. With :math:`A = -\partial \sum \psi / \partial \beta`
the estimate :math:`\hat\beta` errs by :math:`A^{-1} \sum \psi`, so its covariance is that of an estimated sum of
:math:`A^{-1} \psi`. Nothing is completed or projected: no bias comes from many combinations. Where noise could make A
singular there is no such estimate, and none is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any
from typing import Protocol as Shape

import numpy as np
import polars as pl

from privacyfunnel.arrays import BoolArray, FloatArray, one_blas_thread
from privacyfunnel.errors import ColumnError, ParameterError, SizeError
from privacyfunnel.estimation.decoy_weights import MOST_LISTED, WeightedRelease
from privacyfunnel.estimation.inversion import project_on_simplex
from privacyfunnel.estimation.linear import TAUS, LinearEstimator, NoisyShares
from privacyfunnel.estimation.output_reader import OutputReader, load_published
from privacyfunnel.estimation.results import Quantity, convert_rows
from privacyfunnel.estimation.share_estimates import EstimationSettings, check_noisy
from privacyfunnel.estimation.wide_estimates import DECOYS, is_weighted, read_codes, weigh_codes
from privacyfunnel.formatting import ShowsFacts
from privacyfunnel.mechanisms.decoy_slacks import can_list
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import validate_columns
from privacyfunnel.release.published_table import PublishedTable
from privacyfunnel.tables.readers.formats import POLARS, frame_kind
from privacyfunnel.tables.readers.table_files import open_source

FAMILIES = ("linear", "logistic")
Scores = Mapping[str, Mapping[str, float]]
MOST_LINES = 1 << 21  # combinations of published and kept values
SURE = 4.0  # standard errors that the least determined direction must be away from nothing
UNBIASED = 1e-6  # of a function's largest value: how far weights may be off
STEPS, CLOSE = 50, 1e-10  # of Newton's method; the last one


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regression(ShowsFacts):
    """Coefficients of a regression on the original values, with intervals."""

    outcome: str
    family: str
    target: str  # table or population
    level: float
    rows: int
    terms: dict[str, Quantity]
    covariance: FloatArray  # of all terms, in their order
    notes: tuple[str, ...]
    kind: str = POLARS  # of the frame that was given

    def __getitem__(self, term: str) -> Quantity:
        return self.terms[term]

    def _facts(self) -> list[tuple[str, str]]:
        whose = "in the original table" if self.target == "table" else "in the population"
        facts = [(name, f"{q.value:.4g} ({q.lower:.4g} to {q.upper:.4g})") for name, q in self.terms.items()]
        head = ("outcome", f"{self.outcome}, {self.family}, {whose}, {self.rows:,} rows, {100 * self.level:g} %")
        return [head, *((f"{name} ", text) for name, text in facts), *(("note", note) for note in self.notes)]

    def to_frame(self) -> Any:
        """A line per term: estimate, standard error, interval; a frame of the kind that was given."""
        return convert_rows(pl.DataFrame(self._lines()), self.kind)

    def _lines(self) -> list[dict[str, Any]]:
        return [
            {"term": name, "estimate": q.value, "standard_error": q.standard_error, "from": q.lower, "to": q.upper}
            for name, q in self.terms.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        kind = {name: getattr(self, name) for name in ("outcome", "family", "target", "level", "rows")}
        return {**kind, "terms": self._lines(), "notes": list(self.notes)}


class Sums(Shape):
    """Estimated means over the original rows, of functions that are known on a list of lines."""

    @property
    def rows(self) -> int:
        """How many there are."""

    @property
    def lines(self) -> pl.DataFrame:
        """Original and kept values."""

    def shares(self) -> FloatArray:
        """What each line stands for; it may be below 0."""

    def likely_shares(self) -> FloatArray:
        """About the same, never below 0: what is sure is judged by these, so that luck does not decide it."""

    def covariance(self, functions: FloatArray, *, fixed: bool) -> FloatArray:
        """Of the means of functions (lines × r), in the table or in a population."""


@one_blas_thread()
def regress(
    protocol: SealedProtocol | PublishedTable | str | Path,
    formula: str,
    frame: Any = None,
    *,
    family: str = "linear",
    scores: Scores | None = None,
    weights: str | None = None,
    level: float = 0.95,
    target: str = "population",
    shares: bool = True,
) -> Regression:
    """Regress an original column on others: `regress(release, "visits=9+ ~ disease + plan", family="logistic")`.

    The outcome is a column of numbers, or `column=label`, which is 1 for that label and 0 for others. Columns are
    published or kept ones. Labels that all are numbers count as these; `scores` gives numbers for labels (the middle of
    a bin, say); else every label but the first is a term. `weights` names a kept column of survey weights. Intervals
    are for the population that the rows were drawn from, or for the table (`target="table"`), of which only the
    randomisation makes them uncertain.

    Raises
    ------
    ParameterError
        If the protocol does not identify what the regression needs, or too few rows determine it.
    """
    sealed, frame = load_published(protocol, frame)
    if family not in FAMILIES:
        raise ParameterError(f"A family is one of {', '.join(FAMILIES)}; there is none called '{family}'.")
    settings = EstimationSettings("linear", level, target)
    outcome, label, names = parse_formula(formula)
    table = open_source(frame)
    original = [at.name for at in sealed.domain.attributes]
    used = list(dict.fromkeys([outcome, *names, *([weights] if weights else [])]))
    validate_columns(used, tuple(dict.fromkeys([*original, *table.columns])), "named in the formula")
    kept = [name for name in used if name not in original]
    sums, notes = _read_sums(sealed, frame, [name for name in used if name in original], kept, settings, shares)
    numbers = _Numbers(scores or {}, sums.likely_shares() > 0)
    design, terms = _design(sums.lines, names, sealed.domain.label_orders, numbers)
    y = _outcome(sums.lines[outcome], outcome, label, numbers, family)
    weight = np.ones(len(y)) if weights is None else numbers.read(sums.lines[weights], weights)
    beta, covariance = solve_regression(sums, design, y, weight, family == "logistic", settings.fixed)
    half = NormalDist().inv_cdf((1 + level) / 2)
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    found = zip(terms, beta.tolist(), error.tolist(), strict=True)
    estimates = {term: Quantity(value, se, value - half * se, value + half * se) for term, value, se in found}
    named = outcome if label is None else f"{outcome}={label}"
    return Regression(named, family, target, level, sums.rows, estimates, covariance, notes, frame_kind(frame))


def parse_formula(formula: str) -> tuple[str, str | None, list[str]]:
    """The outcome, its label where one is meant, and the other columns.

    >>> parse_formula("visits=9+ ~ disease + plan")
    ('visits', '9+', ['disease', 'plan'])
    >>> parse_formula("visits~disease+plan")
    ('visits', None, ['disease', 'plan'])
    """
    left, tilde, right = formula.partition("~")
    names = [name.strip() for name in right.split(" + " if " + " in right else "+")] if right.strip() else []
    column, _, label = (part.strip() for part in left.partition("="))
    if not tilde or not column or not all(names) or column in names or len(set(names)) < len(names):
        raise ParameterError(f"A formula reads 'outcome ~ column + column', each once; it reads '{formula}'.")
    return column, label or None, names


def solve_regression(
    sums: Sums, F: FloatArray, y: FloatArray, weight: FloatArray, logistic: bool, fixed: bool
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and their covariance, for a design F (lines × terms)."""
    share, likely = sums.shares() * weight, sums.likely_shares() * weight
    scale = np.sqrt(np.maximum(np.abs(share) @ F**2, 1e-300))
    F, beta = F / scale, np.zeros(F.shape[1])
    for _ in range(STEPS):
        mean = 1 / (1 + np.exp(-np.clip(F @ beta, -40, 40))) if logistic else F @ beta
        slope = mean * (1 - mean) if logistic else np.ones(len(y))
        A = (F.T * (share * slope)) @ F
        _require_sure(sums, (F.T * (likely * slope)) @ F, F, slope * weight)
        step = np.linalg.solve(A, F.T @ (share * (y - mean)))
        beta = beta + step * min(1.0, 5.0 / max(float(np.abs(step / scale).max()), 1e-300) if logistic else 1.0)
        if not logistic or float(np.abs(step).max()) <= CLOSE * (1 + float(np.abs(beta).max())):
            break
    else:
        raise _unsure_error()
    mean = 1 / (1 + np.exp(-np.clip(F @ beta, -40, 40))) if logistic else F @ beta
    influence = np.linalg.solve(A, (F * ((y - mean) * weight)[:, None]).T).T.astype(np.float64)
    return beta / scale, sums.covariance(influence, fixed=fixed) / np.outer(scale, scale)


def _require_sure(sums: Sums, A: FloatArray, F: FloatArray, weight: FloatArray) -> None:
    """Refuse where noise could make A, given at likely shares, singular: a ratio to what may be 0 has no interval."""
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    least: FloatArray = np.asarray((F @ vectors[:, 0]) ** 2 * weight, dtype=np.float64)
    error = math.sqrt(max(float(sums.covariance(least[:, None], fixed=True)[0, 0]), 0.0))
    if values[0] <= max(SURE * error, 1e-12 * abs(values[-1])):
        raise _unsure_error()


def _unsure_error() -> ParameterError:
    return ParameterError(
        "A regression needs terms that the published rows surely tell apart; some of these may be a combination of "
        "others, as far as the noise lets see. Ask for fewer terms or coarser labels."
    )


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What labels count as; those that only decoys have, as good as none, count as 0."""

    scores: Scores
    present: BoolArray  # of the lines

    def are_numbers(self, entries: pl.Series, name: str) -> bool:
        numbers = entries.filter(self.present).cast(pl.Float64, strict=False)
        return name in self.scores or not numbers.has_nulls()

    def read(self, entries: pl.Series, name: str) -> FloatArray:
        given, found = self.scores.get(name), entries
        if given is not None:
            found = entries.cast(pl.String).replace_strict(list(given), list(given.values()), default=None)
        values = found.cast(pl.Float64, strict=False)
        missing = values.is_null() & pl.Series(self.present)
        if missing.any():
            raise ParameterError(
                f"'{name}' must have a number for every label; '{entries.filter(missing)[0]}' has none. Give them "
                f"(scores={{'{name}': …}}), or name one label, '{name}=LABEL'."
            )
        return values.fill_null(0.0).to_numpy()


def _design(
    lines: pl.DataFrame, names: Sequence[str], orders: Mapping[str, Sequence[str]], numbers: _Numbers
) -> tuple[FloatArray, list[str]]:
    """A column of ones, and those of each name: its numbers, or 0 and 1 for every label but the first."""
    columns, terms = [np.ones(len(lines))], ["(intercept)"]
    for name in names:
        if numbers.are_numbers(lines[name], name):
            columns.append(numbers.read(lines[name], name))
            terms.append(name)
            continue
        text = lines[name].cast(pl.String).fill_null("")
        there = set(text.filter(numbers.present))
        labels = [label for label in orders.get(name, sorted(there)) if label in there]
        columns += [(text == label).to_numpy().astype(np.float64) for label in labels[1:]]
        terms += [f"{name}={label}" for label in labels[1:]]
    return np.stack(columns, axis=1), terms


def _outcome(entries: pl.Series, name: str, label: str | None, numbers: _Numbers, family: str) -> FloatArray:
    if label is None:
        y = numbers.read(entries, name)
    else:
        y = (entries.cast(pl.String) == label).fill_null(False).to_numpy().astype(np.float64)
        if not y.any():
            raise ColumnError(f"'{label}' must be a label of {name}; it is none. See estimate for its labels.")
    if family == "logistic" and not set(np.unique(y).tolist()) <= {0.0, 1.0}:
        raise ParameterError(f"A logistic regression needs an outcome of 0 and 1; write '{name}=LABEL ~ …'.")
    return y


def _read_sums(
    sealed: SealedProtocol, frame: Any, columns: Sequence[str], kept: Sequence[str], settings: Any, shares: bool
) -> tuple[Sums, tuple[str, ...]]:
    if is_weighted(sealed):
        if kept:
            raise ParameterError("Real or synthetic records are regressed on published columns alone.")
        found = _WeightedSums.from_release(sealed, weigh_codes(sealed, read_codes(sealed, frame, ())[()], DECOYS))
        return found, ()
    reading = OutputReader.from_protocol(sealed, columns=columns or None, grouped=bool(kept))
    if reading.model.is_large:
        raise SizeError(
            f"A regression works with some thousand combinations; here are {reading.model.inputs:,}. Publish coarser "
            "values, or fewer columns."
        )
    if kept and sealed.sees_secret:
        raise ParameterError("A protocol that looks at the secret tells nothing certain about kept columns.")
    if kept:
        return _KeptSums.from_table(reading, frame, kept), ()
    seen = reading.observe(frame)
    noisy, notes = check_noisy(NoisyShares.from_reader(reading) if shares else None, seen, settings, reading.model)
    return ListedSums(LinearEstimator.from_observed(reading.model, seen[()], noisy), _lines(reading)), tuple(notes)


def _lines(reading: OutputReader) -> pl.DataFrame:
    names = [reading.sealed.domain.attributes[j].name for j in reading.attributes]
    return pl.DataFrame(reading.values, schema=dict.fromkeys(names, pl.String), orient="row")


def _require_unbiased(bias: FloatArray, functions: FloatArray) -> None:
    if np.abs(bias).max() > UNBIASED * max(float(np.abs(functions).max()), 1e-300):
        raise ParameterError(
            "A regression needs shares that the protocol identifies; it hides some of what this one needs. Ask for "
            "fewer columns, or have the owner publish for statistics."
        )


@dataclass(frozen=True, slots=True, eq=False)
class ListedSums:
    """From the linear estimate of all shares."""

    linear: LinearEstimator
    lines: pl.DataFrame

    @property
    def rows(self) -> int:
        return self.linear.observed.rows

    def shares(self) -> FloatArray:
        return self.linear.covariance(np.eye(len(self.lines)), fixed=True)[0]

    def likely_shares(self) -> FloatArray:
        return self.linear.p

    def covariance(self, functions: FloatArray, *, fixed: bool) -> FloatArray:
        _require_unbiased(self.linear.weights(functions, TAUS[0])[2], functions)
        return self.linear.covariance(functions, fixed=fixed)[1]


@dataclass(frozen=True, slots=True, eq=False)
class _KeptSums:
    """From unbiased weights of every row; a line is an original value beside one combination of kept values."""

    rows: int
    lines: pl.DataFrame
    counts: FloatArray  # outputs × kept combinations
    weights: FloatArray  # g, outputs × values
    bias: FloatArray  # values × values

    @classmethod
    def from_table(cls, reading: OutputReader, frame: Any, kept: Sequence[str]) -> _KeptSums:
        table = open_source(frame)
        way = reading.layout(table, kept)
        rows = pl.concat(list(table.batches([*way.names, *kept])))
        groups = rows.select(kept).unique(maintain_order=True)
        a, every = reading.model.inputs, groups.with_row_index("#")
        if a * len(groups) > MOST_LINES:
            raise SizeError(
                f"A regression works with {MOST_LINES:,} combinations of published and kept values; here are "
                f"{a * len(groups):,}. Ask for fewer columns, or round the kept ones."
            )
        member = rows.select(kept).join(every, on=kept, how="left", nulls_equal=True, maintain_order="left")["#"]
        outputs = np.concatenate([reading.decode(way, piece) for piece in rows.iter_slices(way.rows_at_once)])
        k, groups_n = reading.model.statistics, len(groups)
        counts = np.bincount(outputs * groups_n + member.to_numpy(), minlength=k * groups_n).reshape(k, groups_n)
        linear = LinearEstimator.from_observed(reading.model, reading.model.observe(counts.sum(axis=1)))
        g, _, d = linear.weights(np.eye(a), TAUS[0])
        lines = _lines(reading).join(groups, how="cross")
        return cls(len(rows), lines, counts.astype(np.float64), g, d)

    def shares(self) -> FloatArray:
        return np.asarray((self.weights.T @ self.counts).ravel() / self.rows)

    def likely_shares(self) -> FloatArray:
        return project_on_simplex(self.shares())

    def covariance(self, functions: FloatArray, *, fixed: bool) -> FloatArray:
        a, r = self.weights.shape[1], functions.shape[1]
        by_group = functions.reshape(a, -1, r)
        _require_unbiased(np.tensordot(self.bias.T, by_group, 1), functions)
        second, mean = np.zeros((r, r)), np.zeros(r)
        for k in range(by_group.shape[1]):
            z, n = self.weights @ by_group[:, k], self.counts[:, k]
            second, mean = second + (z.T * n) @ z, mean + n @ z
        less = (functions.T * self.shares()) @ functions if fixed else np.outer(mean, mean) / self.rows**2
        return (second / self.rows - less) / self.rows


@dataclass(frozen=True, slots=True, eq=False)
class _WeightedSums:
    """From weights of real or synthetic records; lines are the rows, then the decoys."""

    release: WeightedRelease
    lines: pl.DataFrame

    @classmethod
    def from_release(cls, sealed: SealedProtocol, release: WeightedRelease) -> _WeightedSums:
        codes = np.concatenate([release.rows.codes, release.decoys.codes])
        attributes = sealed.domain.attributes
        columns = {at.name: pl.Series(at.labels).gather(codes[:, j]) for j, at in enumerate(attributes)}
        return cls(release, pl.DataFrame(columns))

    @property
    def rows(self) -> int:
        return len(self.release.rows.codes)

    def shares(self) -> FloatArray:
        return np.concatenate([self.release.row_weights, self.release.decoy_weights]) / self.rows

    def likely_shares(self) -> FloatArray:
        return np.repeat([1 / self.rows, 0.0], [self.rows, len(self.release.decoys.codes)])

    def covariance(self, functions: FloatArray, *, fixed: bool) -> FloatArray:
        n, release = self.rows, self.release
        z = np.stack([release.contributions(each[:n], each[n:]) for each in functions.T], axis=1)
        less = (functions.T * self.shares()) @ functions if fixed else np.outer(z.mean(axis=0), z.mean(axis=0))
        found: FloatArray = (z.T @ z / n - less) / n
        if not can_list(release.mechanism.model, MOST_LISTED):
            own = functions[n:] * release.decoy_weights[:, None]
            found += (own.T @ own - np.outer(own.sum(axis=0), own.sum(axis=0)) / len(own)) / n**2
        return found
