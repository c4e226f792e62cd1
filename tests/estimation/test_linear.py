"""Linear estimates: they are the best there are, cover where values are many per row, and use noisy counts."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.coverage import Case

from privacyfunnel import Information, Release, ReleaseSpec, design, estimate, impute, sanitise
from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.linear import LinearEstimator, NoisyShares
from privacyfunnel.estimation.observation import ChannelModel, normalise
from privacyfunnel.estimation.results import Cell, Estimates, ShareTable
from privacyfunnel.estimation.share_estimates import EstimationSettings, Fit
from privacyfunnel.tables.coding.domain_file import domain_from_text
from privacyfunnel.tables.readers.adult import write_adult_csv

ROWS = 2000
LABELS = {"ill": ["no", "yes"], "town": ["Bruges", "Ghent", "Lier", "Mol"], "age": ["old", "young"]}
DOMAIN = domain_from_text(
    json.dumps(
        {
            "format": "privacyfunnel domain",
            "version": 1,
            "columns": {name: {"labels": labels, "missing": False} for name, labels in LABELS.items()},
        }
    )
)


def randomised(values: int, truth: float) -> ChannelModel:
    """Randomised response of so many values, and the share of rows that tell the truth on purpose."""
    return ChannelModel(truth * np.eye(values) + (1 - truth) / values)


def noisy_shares(own: FloatArray, sd: float, rng: np.random.Generator) -> NoisyShares:
    variance = np.full(own.size, sd**2)
    return NoisyShares.from_counts(
        own + rng.laplace(0, sd / np.sqrt(2), own.size), variance, own + 1, ROWS, complete=True
    )


def test_the_estimate_is_that_of_generalised_least_squares() -> None:
    """Beside the textbook: both parts stacked, each with its covariance."""
    rng = np.random.default_rng(3)
    channel = rng.dirichlet(np.ones(6), 4)
    model, own = ChannelModel(channel), np.array([700.0, 600.0, 500.0, 200.0])
    observed = model.observe(own @ channel)  # no luckier than they should be: no wider than at the reference
    noisy = noisy_shares(own, 30.0, rng)
    found = LinearEstimator.from_observed(model, observed, noisy)
    estimate, covariance = found.covariance(np.eye(4), fixed=True)
    p = found.p
    V = (np.diag(p @ channel) - (channel.T * p) @ channel) / ROWS
    design = np.vstack([channel.T, np.eye(4)])
    both = np.block([[V, np.zeros((6, 4))], [np.zeros((4, 6)), np.diag(noisy.variance)]])
    precision = np.linalg.pinv(both + 1e-13 * np.diag(np.r_[np.ones(6), np.zeros(4)]))
    textbook = np.linalg.inv(design.T @ precision @ design)
    assert estimate == pytest.approx(
        textbook @ design.T @ precision @ np.r_[observed.statistics, noisy.shares], abs=1e-5
    )
    assert covariance == pytest.approx(textbook, rel=1e-2, abs=1e-9)
    alone, apart = LinearEstimator.from_observed(model, observed).covariance(np.eye(4), fixed=True)
    assert (np.diag(covariance) < np.diag(apart)).all()
    assert alone != pytest.approx(estimate, abs=1e-4)


@pytest.mark.parametrize(("truth", "with_counts"), [(0.1, False), (0.3, False), (0.1, True)])
def test_sparse_values_are_covered(truth: float, with_counts: bool) -> None:
    """120 values, most of them rare, in tables of 2,000 rows: margins of ten and of twelve cells."""
    rng = np.random.default_rng(5)
    own = rng.multinomial(ROWS, rng.dirichlet(np.full(120, 0.2)))
    functions = np.hstack([np.kron(np.eye(10), np.ones((12, 1))), np.kron(np.ones((10, 1)), np.eye(12))])
    model, true = randomised(120, truth), own @ functions / ROWS
    space, covered, errors = RowSpace.from_means(model.means), np.zeros(22), []
    for _ in range(100):
        observed = model.observe(rng.multinomial(own, model.channel).sum(axis=0))
        noisy = noisy_shares(own.astype(np.float64), 8.0, rng) if with_counts else None
        shares = Fit.from_observed(model, space, observed, EstimationSettings("linear"), noisy).shares(
            functions, np.ones(22, dtype=np.bool_)
        )
        assert (shares.lower <= shares.share).all()
        assert (shares.share <= shares.upper).all()
        covered += (shares.lower <= true) & (true <= shares.upper)
        errors.append(shares.share - true)
    assert 0.93 <= covered.mean() / 100 <= 0.985
    assert covered.min() / 100 >= 0.86
    if with_counts:
        assert np.sqrt(np.mean(np.square(errors))) < 0.015


def test_what_is_not_identified_is_bounded() -> None:
    model = ChannelModel(np.array([[0.8, 0.2], [0.3, 0.7], [0.3, 0.7]]))
    observed = model.observe(np.array([550, 450]))
    found = LinearEstimator.from_observed(model, observed).estimate(np.eye(3), 0.95, fixed=True)
    assert found.upper[1] - found.lower[1] > 0.4
    assert found.lower[0] < 0.5 < found.upper[0]
    assert found.upper[0] - found.lower[0] < 0.2


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    ill = rng.random(6000) < 0.3
    return pl.DataFrame(
        {
            "ill": np.where(ill, "yes", "no"),
            "town": rng.choice(["Bruges", "Ghent", "Lier", "Mol"], 6000, p=[0.4, 0.3, 0.2, 0.1]),
            "age": np.where(rng.random(6000) < np.where(ill, 0.9, 0.1), "old", "young"),
        }
    )


@pytest.fixture(scope="module")
def release(people: pl.DataFrame) -> Release:
    asked = ReleaseSpec(
        secret="ill", publish=("town", "age"), epsilon=0.4, prior="model", use=Information(), domain=DOMAIN, seed=1
    )
    return sanitise(people, asked)


def test_a_published_model_is_used_and_said_to_be(release: Release, people: pl.DataFrame) -> None:
    found = estimate(release)
    assert found.methods == ("linear",)
    (note,) = found.table("town").notes
    assert note.startswith("From the rows and from noisy counts")
    for label, share in people["town"].value_counts(normalize=True).iter_rows():
        cell = found.table("town").cell(label)
        assert cell.lower - 1e-12 <= share <= cell.upper + 1e-12
    alone = estimate(release, shares=False).table("town")
    widths = [[cell.upper - cell.lower for cell in table] for table in (found.table("town"), alone)]
    assert sum(widths[0]) < sum(widths[1])


def test_counts_of_other_rows_are_not_used(release: Release) -> None:
    fewer = estimate(release.sealed, release.table.head(5000))
    assert any("of 6,000 rows; here are 5,000" in note for note in fewer.notes)
    others = release.table.with_columns(
        release.table.filter(pl.col("town") != "Ghent").sample(6000, with_replacement=True, seed=1)
    )
    assert any("do not fit these rows" in note for note in estimate(release.sealed, others).notes)


def test_completed_tables_have_the_combined_shares(release: Release) -> None:
    share = estimate(release).table("age").cell("old").share
    assert share is not None
    drawn = [frame["age"].eq("old").mean() for frame in impute(release.sealed, release.table, 5)]
    assert np.mean(drawn) == pytest.approx(share, abs=0.03)


def test_sums_differences_and_ratios_cover() -> None:
    """300 draws of a column of four values: means, differences and ratios, with the covariance of the shares."""
    rng, own, scores = np.random.default_rng(8), np.array([800, 600, 400, 200]), np.array([1.0, 2.0, 3.0, 4.0])
    model, labels, held = randomised(4, 0.4), [("a",), ("b",), ("c",), ("d",)], np.zeros(3)
    p = own / own.sum()
    true = np.array([scores @ p, p[0] - p[1], p[2] / p[0]])
    for _ in range(300):
        observed = model.observe(rng.multinomial(own, model.channel).sum(axis=0))
        shares, covariance = LinearEstimator.from_observed(model, observed).covariance(np.eye(4), fixed=True)
        cells = tuple(Cell(each, None, None, 0.0, 1.0) for each in labels)
        table = ShareTable(("x",), (), ROWS, cells, (), (), "linear", shares, covariance)
        found = (table.mean(dict(zip("abcd", scores, strict=True))), table.difference("a", "b"), table.ratio("c", "a"))
        held += [each.lower <= value <= each.upper for each, value in zip(found, true, strict=True)]
    assert (held / 300 > 0.91).all()
    assert (held / 300 < 0.985).all()
    with pytest.raises(ParameterError, match="a number for every label"):
        table.mean({"a": 1.0})
    with pytest.raises(ColumnError, match="'z' is none of them"):
        table.difference("a", "z")


def linear_table(
    columns: tuple[str, ...],
    labels: Sequence[tuple[str, ...]],
    model: ChannelModel,
    own: IntArray,
    rng: np.random.Generator,
    *,
    fixed: bool,
) -> ShareTable:
    """The table of all values of a model, from one draw of these rows."""
    observed = model.observe(rng.multinomial(own, model.channel).sum(axis=0))
    found = LinearEstimator.from_observed(model, observed).covariance(np.eye(len(labels)), fixed=fixed)
    cells = tuple(Cell(each, None, None, 0.0, 1.0) for each in labels)
    return ShareTable(columns, (), int(own.sum()), cells, (), (), "linear", *found)


def test_quantiles_cover_and_follow_the_order() -> None:
    rng, labels, draws = np.random.default_rng(9), [(each,) for each in "abcdefgh"], 200
    own = np.array([250, 240, 260, 250, 255, 245, 250, 250])  # the median lies in d, next to its end
    held = np.zeros(3)
    for _ in range(draws):
        table = linear_table(("x",), labels, randomised(8, 0.3), own, rng, fixed=True)
        for k, (q, true) in enumerate(((0.25, "c"), (0.5, "d"), (0.9, "h"))):
            found = table.quantile(q)
            assert found.lower <= found.label <= found.upper
            held[k] += found.lower <= true <= found.upper
    assert (held / draws > 0.92).all()
    assert table.quantile(0.01).upper < "h"
    assert table.quantile(0.9, order="hgfedcba").label < "d"
    with pytest.raises(ParameterError, match="order of all of its 8 labels"):
        table.quantile(0.5, order="abc")
    with pytest.raises(ParameterError, match="between 0 and 1"):
        table.quantile(50)


def test_the_test_of_independence_keeps_its_level_and_finds_dependence() -> None:
    """400 populations' samples, 3 × 4 cells: a level of 5 % within four standard errors."""
    rng, draws = np.random.default_rng(10), 400
    rows, columns = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
    labels = [(a, b) for a in "abc" for b in "wxyz"]
    independent = np.outer(rows, columns).ravel()
    dependent = independent + 0.05 * np.kron([1, -1, 0], [1, -1, 0, 0])
    rejected = []
    for p in (independent, dependent):
        found = [
            Estimates(
                (linear_table(("r", "c"), labels, randomised(12, 0.5), rng.multinomial(ROWS, p), rng, fixed=False),),
                0.95,
                "population",
                (),
            ).independence("r", "c")
            for _ in range(draws)
        ]
        assert {each.degrees for each in found} == {6}
        rejected.append(float(np.mean([each.p_value < 0.05 for each in found])))
    assert abs(rejected[0] - 0.05) < 4 * np.sqrt(0.05 * 0.95 / draws), rejected
    assert rejected[1] > 0.8


def test_independence_is_not_tested_where_combinations_are_missing(people: pl.DataFrame) -> None:
    """A combination that nobody of the table has, but people of the population may."""
    some = people.filter((pl.col("town") != "Mol") | (pl.col("age") == "old"))
    release = sanitise(some, secret="ill", publish=["town", "age"], epsilon=1, prior="table")
    found = estimate(release, columns=[("town", "age")], target="population")
    with pytest.raises(ParameterError, match="needs all 8 combinations of town and age; the protocol lists 7"):
        found.independence("town", "age")


def test_independence_is_not_tested_in_a_table(release: Release) -> None:
    with pytest.raises(ParameterError, match="tested in a population"):
        estimate(release, columns=[("town", "age")]).independence("town", "age")
    found = estimate(release, columns=[("town", "age")], target="population").independence("town", "age")
    assert found.degrees == 3
    assert 0 <= found.p_value <= 1


def test_a_release_has_means_with_intervals(release: Release, people: pl.DataFrame) -> None:
    found = estimate(release)["age"].mean({"old": 1.0, "young": 0.0})
    assert found.lower <= len(people.filter(pl.col("age") == "old")) / len(people) <= found.upper
    assert set(estimate(release).to_tidy().columns) == {"column", "value", "share", "from", "to"}


def test_shares_whose_error_is_larger_than_they_are_are_covered(tmp_path: Path) -> None:
    """252 combinations of 6,000 rows for information: with a slope the least value covered .85."""
    write_adult_csv(tmp_path / "adult.csv")
    columns = ("education", "relationship", "race")
    people = pl.read_csv(tmp_path / "adult.csv").sample(6000, seed=1).select("income", *columns)
    asked = ReleaseSpec(secret="income", publish=columns, epsilon=0.3, prior="table", use="information", seed=1)
    case = Case.match(people, design(people, asked))
    model = case.reading.model
    assert isinstance(model, ChannelModel)
    functions = np.hstack([dense(case.reading.cells((name,)).functions) for name in columns])
    truth, chances, rng = (
        case.own @ functions / case.own.sum(),
        normalise(dense(model.channel)),
        np.random.default_rng(0),
    )
    held = []
    for _ in range(40):
        seen = model.observe(rng.multinomial(case.own, chances).sum(axis=0))
        told = LinearEstimator.from_observed(model, seen).estimate(functions, 0.95, fixed=True)
        held.append((told.lower <= truth) & (truth <= told.upper))
    assert np.mean(held) > 0.95  # seeded; .93 with the slope


def test_records_are_not_completed_where_shares_of_combinations_are_mostly_noise(tmp_path: Path) -> None:
    write_adult_csv(tmp_path / "adult.csv")
    people = pl.read_csv(tmp_path / "adult.csv").sample(1000, seed=1).select("income", "education", "relationship")
    for use, refused in (("information", True), ("statistics", False)):
        asked = ReleaseSpec(secret="income", publish=people.columns[1:], epsilon=1, prior="table", use=use, seed=1)
        release = sanitise(people, asked)
        if refused:
            with pytest.raises(ParameterError, match=r"Use estimate or regress"):
                impute(release, 2)
        else:
            assert len(impute(release, 2)) == 2
