"""Forged private designs: stated noise that these counts cannot have had is found out."""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from privacyfunnel import LIP, Joint, design
from privacyfunnel.audits import noise_audit
from privacyfunnel.audits.matched_table import MatchedTable
from privacyfunnel.audits.noise_audit import _assign_rows, _test_cells, _test_sums, _test_total, audit_model_noise
from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.errors import DistributionError, GuaranteeError
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.credal.noisy_sample_rule import NoisySampleRule
from privacyfunnel.model.promises import Population, PopulationPromise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.published.noise import OwnNoise, noise_variance
from privacyfunnel.model.published.noisy_counts import NoisyCounts
from privacyfunnel.model.published.table_model import MeasuredCounts, TableModel, fit_groups
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.domain_file import DomainFile, domain_from_text
from privacyfunnel.tables.readers.table_files import open_table

COUNTS = np.array([[900, 420, 180], [250, 600, 650]])


def domain() -> DomainFile:
    labels = {"illness": ["flu", "none"], "town": ["Bruges", "Ghent", "Ostend"]}
    columns = {name: {"labels": some, "missing": False} for name, some in labels.items()}
    return domain_from_text(json.dumps({"format": "privacyfunnel domain", "version": 1, "columns": columns}))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    s, x = np.divmod(np.repeat(np.arange(6), COUNTS.reshape(-1)), 3)
    towns = pl.Series(["Bruges", "Ghent", "Ostend"])
    frame = pl.DataFrame({"illness": pl.Series(["flu", "none"]).gather(s), "town": towns.gather(x)})
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def honest(table: Path) -> SealedProtocol:
    spec = ReleaseSpec(
        secret="illness", publish="town", epsilon=2, prior="population", design_epsilon=1, domain=domain()
    )
    return design(pl.read_csv(table), spec)


def forged(cells: np.ndarray) -> SealedProtocol:
    """Towns as they are, certified on counts of the forger's choice."""
    counts = NoisyCounts(cells, cells.sum(axis=1), int(COUNTS.sum()), Fraction(1), Fraction(9, 20), Fraction(1, 20))
    joint = Joint.from_counts(
        counts.weights, ["flu", "none"], ["Bruges", "Ghent", "Ostend"], names=["town"], secret_name="illness"
    )
    rule = NoisySampleRule(counts, Fraction(95, 100))
    promise = PopulationPromise(LIP(0.5), Population(rule, counts.rows), joint)
    return seal(Protocol(np.eye(3), joint.values), promise, joint)


def test_a_forged_private_design_is_refused_with_the_owners_table(table: Path, tmp_path: Path) -> None:
    independent = np.outer(COUNTS.sum(axis=1), COUNTS.sum(axis=0)) // COUNTS.sum()
    forged(independent).save(tmp_path / "forged.json")
    choices: list[dict[str, Any]] = [{}, {"domain": domain()}]
    for more in choices:
        with pytest.raises(GuaranteeError, match="with the noise they state"):
            audit(tmp_path / "forged.json", table, **more)


def test_an_honest_private_design_is_accepted_with_and_without_its_domain(table: Path, tmp_path: Path) -> None:
    honest(table).save(tmp_path / "protocol.json")
    choices: list[tuple[dict[str, Any], bool]] = [({}, False), ({"domain": domain()}, True)]
    for more, by_label in choices:
        found = audit(tmp_path / "protocol.json", table, **more)
        assert found.noise is not None
        assert found.noise.by_label is by_label
        assert ("noise", str(found.noise)) in found.file_facts


def test_a_private_design_is_audited_with_the_table_it_was_made_for(table: Path, tmp_path: Path) -> None:
    honest(table).save(tmp_path / "protocol.json")
    pl.read_csv(table).head(-1).write_csv(tmp_path / "fewer.csv")
    with pytest.raises(GuaranteeError, match="states noisy counts of 3,000 rows; this table has 2,999"):
        audit(tmp_path / "protocol.json", tmp_path / "fewer.csv")


def test_honest_noise_is_called_implausible_no_more_often_than_stated() -> None:
    rng, runs, level = np.random.default_rng(9), 400, 0.05
    alarms = np.zeros(2, dtype=int)
    for _ in range(runs):
        counts = rng.multinomial(500, rng.dirichlet(np.ones(12))).reshape(4, 3)
        stated = NoisyCounts.draw(counts, Fraction(1, 2), OwnNoise)
        log_p, tests = _test_cells(stated, counts)
        alarms[0] += log_p + np.log(tests) < np.log(level)
        total = _test_total(stated, _assign_rows(counts, stated), float(np.log(24)))
        alarms[1] += total + np.log(2) < np.log(level)
    assert (binom.sf(alarms - 1, runs, level) > 1e-6).all()


@pytest.mark.parametrize("shift", [np.full((4, 50), 6), np.eye(4, 50, dtype=int) * 100, np.zeros((4, 50), dtype=int)])
def test_a_shift_a_single_cell_and_no_noise_at_all_are_implausible(shift: np.ndarray) -> None:
    counts = np.random.default_rng(2).integers(50, 500, (4, 50))
    stated = NoisyCounts.draw(counts, Fraction(1), OwnNoise)
    log_p, tests = _test_cells(stated, counts)
    assert log_p + np.log(tests) > np.log(noise_audit.FALSE_ALARM)
    cells = counts if not shift.any() else stated.cells + shift
    altered = NoisyCounts(cells, stated.totals, stated.rows, stated.epsilon, stated.cell_rate, stated.total_rate)
    log_p, tests = _test_cells(altered, counts)
    assert log_p + np.log(tests) < np.log(noise_audit.FALSE_ALARM)


def model_file(table: Path, path: Path, **change: Any) -> Path:
    """The file of a design by a published model, with parts of the model exchanged."""
    spec = ReleaseSpec(
        secret="illness", publish="town", promise=LIP(1.0), prior="model", design_epsilon=0.5, domain=domain()
    )
    design(pl.read_csv(table), spec).save(path)
    content = json.loads(path.read_text())
    content["model"].update(change)
    path.write_text(json.dumps(content))
    return path


def test_noise_of_an_honest_model_is_plausible_and_that_of_other_rows_is_not_checked(
    table: Path, tmp_path: Path
) -> None:
    path = model_file(table, tmp_path / "protocol.json")
    found = audit(path, table)
    assert found.noise is not None
    assert "cell by cell" in dict(found.file_facts)["noise"]
    pl.read_csv(table)[:-1].write_csv(tmp_path / "july.csv")
    assert (
        "Audit with the table that it was designed for"
        in dict(audit(path, tmp_path / "july.csv").file_facts)["not checked"]
    )


def test_a_forged_model_is_refused_with_the_owners_table(table: Path, tmp_path: Path) -> None:
    """Towns as they are, certified by a model in which they say nothing, or by counts that state much noise."""
    independent = np.outer(COUNTS.sum(axis=1), COUNTS.sum(axis=0)) // COUNTS.sum()
    wide = json.loads(model_file(table, tmp_path / "honest.json").read_text())["model"]["noise_variance"]
    variance = np.array(wide)
    for cells, spread in ((independent, variance), (independent, 1e4 * variance)):
        stated = MeasuredCounts(cells, spread)
        told = {"counts": cells.tolist(), "noise_variance": spread.tolist()}
        told["weights"] = fit_groups(stated, None).tolist()
        model = TableModel.from_json({**json.loads((tmp_path / "honest.json").read_text())["model"], **told})
        found = MatchedTable.match(open_table(table), SealedProtocol.load(tmp_path / "honest.json"), ())
        with pytest.raises(GuaranteeError, match="with the noise they state"):
            audit_model_noise(model, found)


def test_weights_that_do_not_follow_from_the_noisy_counts_are_refused_on_reading(table: Path, tmp_path: Path) -> None:
    path = model_file(table, tmp_path / "forged.json", weights=[[1, 1, 1], [1, 1, 1]])
    with pytest.raises(DistributionError, match="what its noisy counts make of it"):
        TableModel.from_json(json.loads(path.read_text())["model"])


def test_bounds_of_summed_noise_hold_for_drawn_noise() -> None:
    """Sums of two noises, and single ones, of the stated variance: refused at a level of 1 in 20 less often."""
    rate, draws = Fraction(1, 5), 400
    one = noise_variance(rate)
    variance = np.array([[one, 2 * one, one + noise_variance(rate / 4)]])
    source, slow = OwnNoise(rate, random.Random(1).randrange), OwnNoise(rate / 4, random.Random(2).randrange)
    below = 0
    for _ in range(draws):
        z = np.array([[*source.draw(1), sum(source.draw(2)), source.draw(1)[0] + slow.draw(1)[0]]])
        below += _test_sums(MeasuredCounts(z, variance), np.abs(z)) + np.log(5) < np.log(0.05)
    assert below <= 0.05 * draws
    none = MeasuredCounts(np.zeros((5, 6), dtype=np.int64), np.full((5, 6), one))
    assert _test_sums(none, none.cells) < np.log(1e-9)  # no noise at all
