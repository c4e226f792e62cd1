"""Where the owner publishes the shares of single columns: estimates are calibrated to them, and nothing else is."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.errors import GuaranteeError, ProtocolFileError
from privacyfunnel.estimation import estimate, impute
from privacyfunnel.estimation.calibration import KnownMargins, calibrate_groups
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.inversion import covariance, unbiased_weights
from privacyfunnel.estimation.output_reader import OutputReader
from privacyfunnel.estimation.share_estimates import EstimationSettings, Fit, calibrate_fits
from privacyfunnel.mechanisms.input_domain import ColumnShares
from privacyfunnel.mechanisms.protocol_file import to_text
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.uses.use import Information
from privacyfunnel.release.apply import apply
from privacyfunnel.release.design import design
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.spec import ReleaseSpec
from tests.commands import refused, told
from tests.estimation.test_tables import PEOPLE, shares

BOTH = ("colour", "size")


@pytest.fixture(scope="module")
def release() -> Release:
    return sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish=BOTH,
            epsilon=0.2,
            keep="region",
            accept_kept=True,
            use=Information(),
            with_shares=True,
            seed=1,
        ),
    )


def test_a_column_whose_shares_are_published_is_told_exactly(release: Release) -> None:
    truth = shares(PEOPLE, "colour")
    for cell in estimate(release).table("colour"):
        assert cell.share == cell.lower == cell.upper == pytest.approx(truth[cell.labels], abs=1e-15)
        assert cell.standard_error == 0


def test_cross_tables_have_the_published_margins_and_come_nearer(release: Release) -> None:
    truth = shares(PEOPLE, *BOTH)
    found, alone = (estimate(release, columns=[BOTH], shares=used).table(*BOTH) for used in (True, False))
    of_colour = shares(PEOPLE, "colour")
    for colour in ("red", "green", "blue"):
        together = sum(cell.share or 0.0 for cell in found if cell.labels[0] == colour)
        assert together == pytest.approx(of_colour[(colour,)], abs=2e-4)
    for cell, before in zip(found, alone, strict=True):
        assert (cell.standard_error or 0.0) <= (before.standard_error or 0.0) + 1e-12
        assert abs((cell.share or 0.0) - truth[cell.labels]) <= 5 * (cell.standard_error or 0.0) + 1e-3
    assert sum(c.upper - c.lower for c in found) < 0.9 * sum(c.upper - c.lower for c in alone)


@pytest.mark.parametrize("seed", range(3))
def test_a_cross_table_is_a_distribution_with_the_published_margins_however_rough_the_draw(
    adult: Path, seed: int
) -> None:
    """400 people and ε = 0.1: what outputs alone say of husbands is off by a third of all rows. Covariances that were
    taken there and not where the margins are explained more variance than there was: cells seemed to be certain, and
    added up to 1.07."""
    people = pl.read_csv(adult, n_rows=400)
    both = ("relationship", "sex")
    drawn = sanitise(
        people, ReleaseSpec(prior="table", secret="income", publish=both, epsilon=0.1, with_shares=True, seed=seed)
    )
    found = estimate(drawn, columns=[both]).table(*both)
    assert sum(cell.share or 0.0 for cell in found) == pytest.approx(1, abs=1e-6)
    for j, column in enumerate(both):
        for label, share in shares(people, column).items():
            together = sum(cell.share or 0.0 for cell in found if cell.labels[j] == label[0])
            assert together == pytest.approx(share, abs=1e-6)
    certain = [cell for cell in found if cell.lower == cell.upper]
    assert {cell.labels for cell in certain} == {("Husband", "Male"), ("Wife", "Female")}  # which margins imply


def test_groups_have_the_published_shares_together(release: Release) -> None:
    found = estimate(release, by="region", columns="colour")
    of_colour = shares(PEOPLE, "colour")
    for j, colour in enumerate(sorted(of_colour)):
        rows = sum(table.rows * (table.cells[j].share or 0.0) for table in found)
        assert rows / len(PEOPLE) == pytest.approx(of_colour[colour], abs=2e-3)
        assert all(table.cells[j].labels == colour for table in found)


def test_completed_tables_have_the_published_shares_on_average(release: Release) -> None:
    tables = impute(release.sealed, release.table, m=20)
    for label, share in shares(PEOPLE, "colour").items():
        drawn = [(table["colour"] == label[0]).mean() for table in tables]
        assert np.mean(drawn) == pytest.approx(share, abs=0.01)
        # Without them the prior, and with it the completed column, is known to a percent or two only.
        assert np.std(drawn) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_the_calibrated_estimate_is_the_best_of_all_linear_ones(seed: int) -> None:
    """Gauss and Markov: no estimate g'·h + β·t that is unbiased where margins are t has a smaller variance."""
    rng = np.random.default_rng(seed)
    sealed = design(
        PEOPLE, ReleaseSpec(prior="table", secret="ill", publish=BOTH, epsilon=0.3, use=Information(), with_shares=True)
    )
    reading = OutputReader.from_protocol(sealed)
    model, space = reading.model, RowSpace.from_means(reading.model.means)
    margins = KnownMargins.from_reader(reading)
    assert margins is not None
    p = np.array([shares(PEOPLE, *BOTH)[value] for value in reading.values])
    observed = model.simulate(p, len(PEOPLE), rng, fixed=True)
    fit = Fit.from_observed(model, space, observed, EstimationSettings("ml"))
    found = calibrate_groups(margins, space, model, {(): (observed, fit.p)})
    assert found is not None
    w = np.eye(model.inputs)[:, :1]
    g = unbiased_weights(model, space, w, fit.p)
    _, spread = found[()].estimate(model, g, observed, fit.p)
    told = margins.select_identified(space)
    for _ in range(20):
        other = w + told.functions @ rng.normal(scale=0.5, size=(told.shares.size, 1))
        variance = covariance(model, unbiased_weights(model, space, other, fit.p), fit.p, observed.rows, fixed=True)
        assert spread.variance[0] <= variance[0, 0] * (1 + 1e-6)


def test_intervals_of_a_calibrated_cross_table_cover() -> None:
    sealed = design(
        PEOPLE, ReleaseSpec(prior="table", secret="ill", publish=BOTH, epsilon=0.3, use=Information(), with_shares=True)
    )
    reading = OutputReader.from_protocol(sealed)
    model, space, rng = reading.model, RowSpace.from_means(reading.model.means), np.random.default_rng(0)
    cells = reading.cells(BOTH)
    labels, functions = cells.labels, cells.functions
    p = np.array([shares(PEOPLE, *BOTH)[value] for value in reading.values])
    tables, covered = 12, np.zeros(len(labels))
    for _ in range(tables):
        observed = model.simulate(p, len(PEOPLE), rng, fixed=True)
        fits, said = calibrate_fits(
            {(): Fit.from_observed(model, space, observed, EstimationSettings("ml"))},
            KnownMargins.from_reader(reading),
            len(PEOPLE),
        )
        assert any("Calibrated" in note for note in said)
        found = fits[()].shares(functions, np.ones(len(labels), dtype=np.bool_))
        covered += (found.lower <= p @ functions + 1e-12) & (p @ functions <= found.upper + 1e-12)
    assert covered.min() >= 7  # 95 % of 12 are 11.4; fewer than 7 have a chance of 1e-5


def test_other_rows_are_not_calibrated_by_old_shares(release: Release) -> None:
    half = apply(
        release.sealed,
        PEOPLE[: len(PEOPLE) // 2],
        ReleaseSpec(seed=3, keep="region", accept_kept=True, accept_drift=True),
    ).table
    found = estimate(release.sealed, half, columns="colour")
    assert any("other rows" in note for note in found.notes)
    assert all((cell.standard_error or 0.0) > 0 for cell in found.table("colour"))
    # As many rows, but others: the outputs themselves say so.
    changed = PEOPLE.with_columns(colour=pl.lit("blue"))
    found = estimate(
        release.sealed,
        apply(release.sealed, changed, ReleaseSpec(seed=3, keep="region", accept_kept=True, accept_drift=True)).table,
        columns="colour",
    )
    assert any("do not fit these rows" in note for note in found.notes)


def test_a_population_is_not_calibrated_by_the_shares_of_a_sample(release: Release) -> None:
    found = estimate(release, columns="colour", target="population")
    assert any("not used" in note for note in found.notes)
    assert all(cell.lower < cell.upper for cell in found.table("colour"))


def test_shares_survive_the_file_and_false_ones_are_found(release: Release, tmp_path: Path) -> None:
    path, table = tmp_path / "protocol.json", tmp_path / "people.csv"
    PEOPLE.write_csv(table)
    release.sealed.save(path)
    known = SealedProtocol.load(path).shares
    assert known is not None
    assert release.joint is not None
    assert known.equals(ColumnShares.from_joint(release.joint))
    assert audit(path, table).rows == len(PEOPLE)
    counts = known.counts[0].copy()
    counts[:2] += [1, -1]
    replace(release.sealed, shares=ColumnShares((counts, *known.counts[1:]))).save(path, force=True)
    with pytest.raises(GuaranteeError, match="it states others"):
        audit(path, table)


@pytest.mark.parametrize("shares", [[[1, 2]], [[1, 2, 3], [3, 4]], [[0, 0, 0], [0, 0]], [[6, 0, 0], [3, 3], [6]]])
def test_shares_that_fit_no_table_are_refused(release: Release, shares: list[list[int]]) -> None:
    content = json.loads(release.sealed.to_text())
    for name in ("digest", "format", "version", "made_with"):
        del content[name]
    with pytest.raises(ProtocolFileError, match="shares must be a number of rows for every label"):
        SealedProtocol.from_text(to_text({**content, "shares": shares}))


def test_a_private_design_publishes_no_exact_shares(tmp_path: Path) -> None:
    table, domain = tmp_path / "people.csv", tmp_path / "domain.json"
    PEOPLE.write_csv(table)
    told("scan", table, "--secret", "ill", "--domain", domain)
    private = ("--domain", domain, "--into", tmp_path / "out")
    asked = ["sanitise", table, "-s", "ill", "-p", "colour", "-e", 1, *private, "--with-shares"]
    refused(asked, "ParameterError", "exact shares would undo that")
    assert not (tmp_path / "out").exists()


def test_without_being_asked_no_count_is_published() -> None:
    sealed = design(PEOPLE, prior="table", secret="ill", publish="colour", epsilon=0.3, use=Information())
    assert sealed.shares is None
    assert "shares" not in json.loads(sealed.to_text())


def test_known_shares_tell_the_last_person_and_what_their_value_says_about_the_secret() -> None:
    """Theorem 56: counts less those of everybody else are one person's value; belief then is p(s|x), whatever ε is."""
    sealed = design(
        PEOPLE,
        ReleaseSpec(prior="table", secret="ill", publish="colour", epsilon=0.01, use=Information(), with_shares=True),
    )
    assert sealed.shares is not None
    for last in range(0, len(PEOPLE), 997):
        others = np.delete(np.arange(len(PEOPLE)), last)
        left = sealed.shares.counts[0] - [
            int((PEOPLE["colour"].gather(others) == label).sum()) for label in sealed.domain.attributes[0].labels
        ]
        assert sealed.domain.attributes[0].labels[int(np.argmax(left))] == PEOPLE["colour"][last]
        assert left.sum() == 1
