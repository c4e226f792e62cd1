"""A tree of several secrets: what one person changes, what is named because of one person, and what it says of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from privacyfunnel.errors import DistributionError
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published import measurement, wide_fit
from privacyfunnel.model.published.measurement import CodedTable, score_pairs
from privacyfunnel.model.published.noise import NoiseSource, OwnNoise
from privacyfunnel.model.published.table_model import DELTA, LabelTests
from privacyfunnel.model.published.wide_fit import GIVEN, fit_wide_model, stack_tables
from privacyfunnel.model.published.wide_model import WideEachModel, read_wide_model
from privacyfunnel.release.wide_design import FittedWideModel
from privacyfunnel.spec import ReleaseSpec

NAMES = "health", "creed", "union"


def people(rows: list[tuple[int, ...]], secrets: int) -> list[CodedTable]:
    """A table for each secret: `secrets` columns of two values, then two of three that are published."""
    each = np.array(rows)
    shown = tuple(Attribute(name, ("0", "1", "2")) for name in "xy")
    return [
        CodedTable(Attribute(NAMES[j], ("no", "yes")), shown, each[:, j], each[:, secrets:]) for j in range(secrets)
    ]


@dataclass
class Counted:
    """What got noise, at which rate; no noise is added."""

    tables: list[tuple[Fraction, Any]] = field(default_factory=list)

    def add(self, counts: Any, noise: NoiseSource) -> Any:
        self.tables.append((noise.rate, counts.copy()))
        return counts

    @property
    def source(self) -> Callable[[Fraction], NoiseSource]:
        return lambda rate: OwnNoise(rate, Random(0).randrange)


@pytest.mark.parametrize("secrets", [2, 3])
def test_one_person_costs_epsilon_in_the_tables_of_all_secrets_together(
    monkeypatch: pytest.MonkeyPatch, secrets: int
) -> None:
    epsilon, random, largest = Fraction(2), Random(secrets), Fraction(0)
    monkeypatch.setattr(measurement, "ROWS_PER_EDGE", 1)
    for _ in range(40):
        rows = [tuple(random.randrange(2 if j < secrets else 3) for j in range(secrets + 2)) for _ in range(400)]
        other = tuple(random.randrange(2 if j < secrets else 3) for j in range(secrets + 2))
        found = []
        for table in (rows, [other, *rows[1:]]):
            counted, each = Counted(), people(table, secrets)
            monkeypatch.setattr(measurement, "add_noise", counted.add)
            monkeypatch.setattr(wide_fit, "add_noise", counted.add)
            fit_wide_model(
                stack_tables(each),
                epsilon,
                2 * epsilon,
                counted.source,
                (True, [GIVEN, GIVEN]),
                secrets=[one.secret for one in each],
            )
            found.append(counted.tables)
        cost = Fraction(0)
        for (rate, one), (_, two) in zip(*found, strict=True):
            if one.ndim > 1 or len(one) == 2 * secrets:  # a table
                cost += rate * int(np.abs(one - two).sum())
            else:  # scores, of which one is chosen: noise of the chosen moves by twice the change
                cost += 2 * rate * 2 * secrets
                margins = [np.full(3, len(rows) * secrets / 3)] * 2  # what came before is the same
                stacked = [stack_tables(people(table, secrets)) for table in (rows, [other, *rows[1:]])]
                scores = [score_pairs(table, [(0, 1)], margins) for table in stacked]
                assert np.abs(scores[0] - scores[1]).max() <= 2 * secrets
        assert cost <= epsilon
        largest = max(largest, cost)
    assert largest > Fraction(9, 10) * epsilon


def test_a_sum_of_labels_in_which_one_person_is_several_times_must_be_larger_by_that() -> None:
    for rate in (Fraction(1, 100), Fraction(1, 2)):
        one, three = (LabelTests(rate, Fraction(1), DELTA, most) for most in (1, 3))
        assert [three.threshold(n) - one.threshold(n) for n in (1, 2, 3, 10, 60)] == [0, 1, 2, 2, 2]


def made(secrets: tuple[str, ...] = NAMES[:2]) -> FittedWideModel:
    """The model of a release of 20,000 people, without much noise."""
    from privacyfunnel.release.design import count_table
    from privacyfunnel.release.wide_design import fit_wide
    from privacyfunnel.tables.readers.eager_frames import frame_table

    rng = np.random.default_rng(0)
    health, creed = rng.integers(0, 3, 20_000), rng.integers(0, 2, 20_000)
    frame: dict[str, Any] = {"health": [f"h{s}" for s in health], "creed": [f"c{s}" for s in creed]}
    for name, of, share in (("x", health, 0.6), ("y", creed, 0.7), ("z", health + creed, 0.5)):
        frame[name] = [f"{v}" for v in np.where(rng.random(20_000) < share, of, rng.integers(0, 3, 20_000))]
    import polars as pl

    spec = ReleaseSpec(secret=secrets, publish=("x", "y", "z"), epsilon=4.0, seed=1, prior="model")
    return fit_wide(count_table(frame_table(pl.DataFrame(frame)), spec).contingency, spec, lambda *_: None)


def test_the_tree_says_of_each_secret_what_the_table_does_and_is_read_as_it_was_written() -> None:
    fitted = made()
    model = fitted.model
    assert isinstance(model, WideEachModel)
    values = {"health": ("h0", "h1", "h2", "other"), "creed": ("c0", "c1", "other")}
    assert model.secrets == tuple(f"{column} = {label}" for column, labels in values.items() for label in labels)
    joint, mass = fitted.joint, model.tree.marginal([0]).astype(np.float64)
    own = np.zeros((joint.c, len(joint.attributes[0].labels)))
    np.add.at(own.T, joint.combos[:, 0], joint.p_sx.T)
    given = {label: row / row.sum() for label, row in zip(joint.secrets, own, strict=True)}
    for label, row in zip(model.secrets, mass, strict=True):
        if label in given:
            assert np.abs(row / row.sum() - given[label]).max() < 0.03, label
    assert sum(part.epsilon for part in model.parts.values()) == model.epsilon
    again = read_wide_model(model.to_json(), ("health", "creed"), model.tree.attributes)
    assert again.to_json() == model.to_json()
    halved = {**model.to_json(), "epsilon": str(model.epsilon / 2)}
    with pytest.raises(DistributionError, match="must be those of the model"):
        read_wide_model(halved, ("health", "creed"), model.tree.attributes)
    assert not fitted.quality.is_too_poor
    assert "which grows with the columns and secrets" in fitted.quality_statement
