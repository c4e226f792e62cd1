"""Regressions on the original values: right without noise, covering with it, refused where noise decides."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from privacyfunnel import ReleaseSpec, apply, design, estimate, impute, regress, sanitise
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.estimation import choose_groups
from privacyfunnel.estimation.linear import LinearEstimator
from privacyfunnel.estimation.observation import ChannelModel
from privacyfunnel.estimation.regression import ListedSums, parse_formula, solve_regression

ROWS = 4000


def _people(rows: int = ROWS) -> pl.DataFrame:
    """y follows x and the kept column; the secret follows both; weights are larger where the kept column is 1."""
    rng = np.random.default_rng(2)
    x, kept = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    y = rng.random(rows) < 1 / (1 + np.exp(1.0 - 0.8 * x - kept))
    secret = (rng.random(rows) < 0.2 + 0.1 * x + 0.4 * y).astype(int)
    columns = {"secret": secret, "x": x, "y": y.astype(int), "kept": kept}
    return pl.DataFrame({name: [str(entry) for entry in column] for name, column in columns.items()}).with_columns(
        w=pl.Series(1.0 + kept)
    )


def _logit(people: pl.DataFrame, names: list[str], weights: np.ndarray | float = 1.0) -> np.ndarray:
    F = np.stack([np.ones(len(people)), *(people[name].cast(pl.Float64).to_numpy() for name in names)], axis=1)
    y, beta = people["y"].cast(pl.Float64).to_numpy(), np.zeros(F.shape[1])
    for _ in range(30):
        mean = 1 / (1 + np.exp(-F @ beta))
        beta = beta + np.linalg.solve((F.T * (weights * mean * (1 - mean))) @ F, F.T @ (weights * (y - mean)))
    return np.asarray(beta)


def test_without_noise_it_is_the_regression_of_the_table() -> None:
    people = _people()
    sealed = design(people, ReleaseSpec(secret="secret", publish=("x", "y"), epsilon=8, prior="table"))
    drawn = apply(sealed, people, ReleaseSpec(seed=1, keep=("kept", "w"), accept_kept=True)).table
    alone = regress(sealed, "y=1 ~ x", drawn, family="logistic", target="table")
    assert [q.value for q in alone.terms.values()] == pytest.approx(_logit(people, ["x"]), abs=1e-6)
    assert list(alone.terms) == ["(intercept)", "x"]
    assert alone["x"].standard_error < 1e-5
    both = regress(sealed, "y=1 ~ x + kept", drawn, family="logistic", weights="w")
    weights = people["w"].to_numpy()
    assert [q.value for q in both.terms.values()] == pytest.approx(_logit(people, ["x", "kept"], weights), abs=1e-6)
    assert both["x"].standard_error > 0.02  # for the population; a sandwich, as for any regression with weights
    labels = regress(sealed, "y ~ x", drawn, scores={"x": {"0": 0, "1": 1, "2": 4}})
    assert labels["x"].value == pytest.approx(
        np.polyfit(people["x"].replace({"2": "4"}).cast(pl.Float64), people["y"].cast(pl.Float64), 1)[0], abs=1e-6
    )


def test_intervals_hold_with_noise_for_the_table_and_its_population() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.25, 0.05, 0.2, 0.1, 0.1, 0.3])  # of x = 0, 0, 1, 1, 2, 2 with y = 0, 1, 0, 1, 0, 1
    channel = 0.5 * np.eye(6) + 0.5 / 6
    F = np.stack([np.ones(6), np.repeat([0.0, 1.0, 2.0], 2)], axis=1)
    y, lines, one = np.tile([0.0, 1.0], 3), pl.DataFrame({"y": range(6)}), np.ones(6)
    truth = np.linalg.solve((F.T * shares) @ F, F.T @ (shares * y))
    model, held = ChannelModel(channel), []
    for i in range(400):
        fixed = i % 2 == 0
        own = (shares * ROWS).astype(int) if fixed else rng.multinomial(ROWS, shares)
        seen = model.observe(rng.multinomial(own, channel).sum(axis=0))
        sums = ListedSums(LinearEstimator.from_observed(model, seen), lines)
        beta, covariance = solve_regression(sums, F, y, one, False, fixed)
        held.append(np.abs(beta - truth) <= 1.96 * np.sqrt(np.diag(covariance)))
    covered = np.mean(held, axis=0)
    assert (covered > 0.92).all()
    assert (covered < 0.98).all()


def test_real_or_synthetic_records_are_regressed_by_weights() -> None:
    people = _people(30_000)
    release = sanitise(people, secret="secret", publish=["x", "y", "kept"], epsilon=0.6)
    found = release.regress("y=1 ~ x + kept", family="logistic", target="table")
    off = [q.value - beta for q, beta in zip(found.terms.values(), _logit(people, ["x", "kept"]), strict=True)]
    errors = [q.standard_error for q in found.terms.values()]
    assert max(errors) < 0.3
    assert all(abs(each) < 6 * error + 1e-6 for each, error in zip(off, errors, strict=True))


def test_what_noise_does_not_determine_is_refused() -> None:
    spec = ReleaseSpec(secret="secret", publish=("x", "y"), epsilon=0.1, prior="table", method="randomised-response")
    people = _people(300)
    sealed = design(people, spec)
    drawn = apply(sealed, people, ReleaseSpec(seed=1)).table
    with pytest.raises(ParameterError, match="surely tell apart"):
        regress(sealed, "y ~ x", drawn)
    for formula in ("y", "y ~ x + x", "~ x", "y ~ y"):
        with pytest.raises(ParameterError, match="A formula reads"):
            parse_formula(formula)
    with pytest.raises(ColumnError, match="'7' must be a label of y"):
        regress(sealed, "y=7 ~ x", drawn)
    with pytest.raises(ColumnError, match="'town'"):
        regress(sealed, "y ~ town", drawn)


def test_completed_records_keep_their_relation_to_kept_columns_unless_told_otherwise() -> None:
    people = _people().with_columns(number=pl.Series(map(str, range(ROWS))))
    sealed = design(people, ReleaseSpec(secret="secret", publish="y", epsilon=0.4, prior="table"))
    drawn = apply(sealed, people, ReleaseSpec(seed=3, keep=("kept",), accept_kept=True)).table
    assert choose_groups(sealed, drawn) == (("kept",), "")

    def gap(frame: pl.DataFrame) -> float:
        means = frame.group_by("kept").agg(pl.col("y").cast(pl.Float64).mean()).sort("kept")["y"]
        return float(means[1] - means[0])

    completed = [np.mean([gap(each) for each in impute(sealed, drawn, 5, by=by)]) for by in (None, ())]
    assert abs(completed[0] - gap(people)) < 0.08
    assert completed[1] < 0.6 * gap(people)
    wide = apply(sealed, people, ReleaseSpec(seed=3, keep=("kept", "number"), accept_kept=True)).table
    with pytest.warns(UserWarning, match="without number"):
        impute(sealed, wide, 1)


def test_survey_weights_weigh_shares_and_rows() -> None:
    people = _people()
    sealed = design(people, ReleaseSpec(secret="secret", publish="y", epsilon=0.4, prior="table"))
    drawn = apply(sealed, people, ReleaseSpec(seed=3, keep=("w",), accept_kept=True)).table
    (found,) = estimate(sealed, drawn, weights="w")
    weights = people["w"].to_numpy()
    truth = float(weights @ people["y"].cast(pl.Float64).to_numpy() / weights.sum())
    cell = found.cell("1")
    assert cell.standard_error is not None
    assert cell.share == pytest.approx(truth, abs=5 * cell.standard_error)
    assert found.rows == round(weights.sum() ** 2 / (weights**2).sum())
    assert abs(truth - float(people["y"].cast(pl.Float64).to_numpy().mean())) > 0.02
    same = estimate(sealed, drawn.with_columns(w=pl.lit(2.5)), weights="w")["y"].cell("1")
    plain = estimate(sealed, drawn)["y"].cell("1")
    assert (same.share, same.lower, same.upper) == pytest.approx((plain.share, plain.lower, plain.upper), abs=1e-9)
    with pytest.raises(ColumnError, match="numbers of at least 0"):
        estimate(sealed, drawn.with_columns(w=pl.lit("much")), weights="w")
