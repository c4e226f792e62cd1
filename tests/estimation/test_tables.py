"""Estimation from tables: what an analyst does with a sanitised table and its protocol."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.estimation import combine, estimate, impute, posterior
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.spec import ReleaseSpec

ROWS = 6000
METHODS = ["randomised-response", "conditional-reporting"]


def people() -> pl.DataFrame:
    """Illness depends on colour and size, the region on size."""
    rng = np.random.default_rng(1)
    colour = rng.choice(["red", "green", "blue"], p=[0.5, 0.3, 0.2], size=ROWS)
    size = rng.choice(["large", "small"], p=[0.4, 0.6], size=ROWS)
    ill = np.where(rng.random(ROWS) < 0.3 + 0.3 * (colour == "red") + 0.2 * (size == "small"), "yes", "no")
    region = np.where(rng.random(ROWS) < np.where(size == "small", 0.8, 0.3), "north", "south")
    return pl.DataFrame({"ill": ill, "colour": colour, "size": size, "region": region})


PEOPLE = people()


def shares(frame: pl.DataFrame, *columns: str) -> dict[tuple[str, ...], float]:
    return {row[:-1]: row[-1] / len(frame) for row in frame.group_by(columns).len().rows()}


def surely_near(table: Any, truth: dict[tuple[str, ...], float]) -> None:
    """Every share within 5 standard errors: a false alarm once in 10⁶ per cell."""
    assert {cell.labels for cell in table} == set(truth)
    for cell in table:
        assert cell.lower <= cell.share <= cell.upper
        assert abs(cell.share - truth[cell.labels]) <= 5 * cell.standard_error + 1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", ["ml", "projection", "inversion"])
def test_shares_of_the_original_column_come_back(method: str, how: str) -> None:
    release = sanitise(
        PEOPLE, ReleaseSpec(prior="table", secret="ill", publish="colour", promise=LIP(0.2), method=method, seed=1)
    )
    found = estimate(release.sealed, release.table, method=how)
    surely_near(found.table("colour"), shares(PEOPLE, "colour"))
    assert found.method == how
    assert sum(cell.share or 0 for cell in found.table("colour")) == pytest.approx(1, abs=1e-6)


def test_contingency_tables_and_margins_agree() -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish=["colour", "size"],
            promise=LIP(0.2),
            method="randomised-response",
            seed=2,
        ),
    )
    found = estimate(release.sealed, release.table, columns=["colour", ("size", "colour")])
    both, one = found.table("size", "colour"), found.table("colour")
    surely_near(both, shares(PEOPLE, "size", "colour"))
    surely_near(one, shares(PEOPLE, "colour"))
    for cell in one:
        parts = [part.share for part in both if part.labels[1] == cell.labels[0]]
        assert sum(part or 0 for part in parts) == pytest.approx(cell.share)
    assert [table.columns for table in estimate(release.sealed, release.table)] == [("colour",), ("size",)]


def test_groups_of_a_kept_column_are_estimated_each_by_itself() -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="size",
            keep="region",
            accept_kept=True,
            promise=LIP(0.02),
            method="randomised-response",
            seed=3,
        ),
    )
    found = estimate(release.sealed, release.table, by="region")
    for region in ("north", "south"):
        part = PEOPLE.filter(pl.col("region") == region)
        table = found.table("size", group=(region,))
        assert table.rows == len(part)
        assert table.group == (("region", region),)
        surely_near(table, shares(part, "size"))


def test_groups_of_a_protocol_that_sees_the_secret_get_bounds_that_hold_the_truth() -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="colour",
            keep="region",
            accept_kept=True,
            promise=LIP(0.2),
            method="conditional-reporting",
            seed=3,
        ),
    )
    found = estimate(release.sealed, release.table, by="region")
    assert "looks at the secret" in found.notes[0]
    for region in ("north", "south"):
        truth = shares(PEOPLE.filter(pl.col("region") == region), "colour")
        for cell in found.table("colour", group=(region,)):
            assert not cell.identified
            assert cell.lower <= truth[cell.labels] <= cell.upper


def blurred() -> tuple[SealedProtocol, pl.DataFrame]:
    """A protocol that tells green and blue apart from red only."""
    joint = Joint.from_counts([[5, 3, 2], [5, 3, 2]], values=["red", "green", "blue"], names=["colour"])
    channel = np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    sealed = seal(Protocol(channel, (("warm",), ("cold",))), LIP(1), joint)
    return sealed, pl.DataFrame({"colour": ["warm"] * 500 + ["cold"] * 500})


def test_what_is_not_identified_gets_bounds_and_words_and_its_sum_a_number() -> None:
    sealed, frame = blurred()
    found = estimate(sealed, frame)
    table = found.table("colour")
    assert table.cell("red").share == pytest.approx(0.5)
    for label in ("green", "blue"):
        cell = table.cell(label)
        assert (cell.share, cell.standard_error) == (None, None)
        assert cell.lower == pytest.approx(0, abs=1e-9)
        assert 0.5 < cell.upper < 0.65
    ((members, both),) = table.sums
    assert set(members) == {("green",), ("blue",)}
    assert both.share == pytest.approx(0.5)
    assert "does not identify 2 of 3" in table.notes[0]
    assert "sum of green and blue" in table.notes[1] or "sum of blue and green" in table.notes[1]
    content = found.to_dict()["tables"][0]
    assert [cell["share"] is None for cell in content["cells"]].count(True) == 2
    assert found.to_frame()["share"].null_count() == 2


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_every_kind_of_frame_gives_the_same_numbers_and_comes_back_as_itself(make: Any) -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="colour",
            keep="region",
            accept_kept=True,
            promise=LIP(0.2),
            method="randomised-response",
            seed=4,
        ),
    )
    expected = estimate(release.sealed, release.table).to_dict()
    frame = make(release.table.to_dict(as_series=False))
    assert estimate(release.sealed, frame).to_dict() == expected
    completed = impute(release.sealed, frame, m=2, seed=1)
    assert all(type(table) is type(frame) for table in completed)
    assert [list(table.columns) if make is not pa.table else table.column_names for table in completed] == [
        ["colour", "region"]
    ] * 2


def test_files_give_what_frames_give(tmp_path: Path) -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table", secret="ill", publish="colour", promise=LIP(0.2), method="randomised-response", seed=4
        ),
    )
    release.sealed.save(tmp_path / "protocol.json")
    release.table.write_csv(tmp_path / "sanitised.csv")
    found = estimate(tmp_path / "protocol.json", tmp_path / "sanitised.csv")
    assert found.to_dict()["tables"] == estimate(release.sealed, release.table).to_dict()["tables"]


def test_a_small_group_is_named_small_and_its_intervals_say_little() -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="colour",
            keep="region",
            accept_kept=True,
            promise=LIP(0.2),
            method="randomised-response",
            seed=5,
        ),
    )
    table = estimate(release.sealed, release.table.head(3), by="region").tables[0]
    assert f"only {table.rows} rows" in table.notes[-1]
    for cell in table:
        assert cell.share is not None
        assert cell.upper - cell.lower > 0.8


# -- bad input -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release() -> Any:
    return sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="colour",
            keep="region",
            accept_kept=True,
            promise=LIP(0.2),
            method="randomised-response",
            seed=5,
        ),
    )


def test_a_table_without_the_published_column_is_refused(release: Any) -> None:
    with pytest.raises(ColumnError, match="published column 'colour'"):
        estimate(release.sealed, release.table.drop("colour"))


def test_labels_that_the_protocol_does_not_publish_are_refused(release: Any) -> None:
    with pytest.raises(TableError, match="must hold only what the protocol publishes"):
        estimate(release.sealed, release.table.with_columns(colour=pl.lit("mauve")))


def test_no_rows_are_refused(release: Any) -> None:
    with pytest.raises(TableError, match="must have rows"):
        estimate(release.sealed, release.table.head(0))


def test_a_group_that_is_no_column_or_was_published_is_refused(release: Any) -> None:
    with pytest.raises(ColumnError, match="Did you mean 'region'"):
        estimate(release.sealed, release.table, by="regoin")
    with pytest.raises(ColumnError, match="was published by the protocol"):
        estimate(release.sealed, release.table, by="colour")


def test_a_table_of_columns_that_the_protocol_does_not_know_is_refused(release: Any) -> None:
    with pytest.raises(ColumnError, match="Did you mean 'colour'"):
        estimate(release.sealed, release.table, columns=["color"])


def test_a_protocol_without_a_channel_is_refused(release: Any) -> None:
    sees = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table", secret="ill", publish="colour", promise=LIP(0.2), method="conditional-reporting", seed=5
        ),
    )
    with pytest.raises(ParameterError, match="must state the channel"):
        estimate(replace(sees.sealed, induced=None), sees.table)


# -- records -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_posterior_of_a_record_is_bayes_rule_and_averages_to_the_prior(method: str) -> None:
    release = sanitise(
        PEOPLE, ReleaseSpec(prior="table", secret="ill", publish="colour", promise=LIP(0.2), method=method, seed=6)
    )
    found = posterior(release.sealed, release.table)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    weights = found.outputs["rows"].to_numpy() / ROWS
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ found.probabilities, found.prior, atol=0.02)
    assert found.to_frame().columns[-3:] == [f"P({label})" for (label,) in found.values]
    if method == "randomised-response":
        law = release.sealed.mechanism
        assert isinstance(law, ChannelMechanism)
        y = [law.outputs.index((label,)) for label in found.outputs["colour"]]
        joint = found.prior[:, None] * law.channel
        np.testing.assert_allclose(found.probabilities, (joint / joint.sum(axis=0)).T[y])


@pytest.mark.parametrize("method", METHODS)
def test_completed_tables_combine_to_the_truth(method: str) -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="colour",
            keep="region",
            accept_kept=True,
            promise=LIP(0.2),
            method=method,
            seed=7,
        ),
    )
    completed = impute(release.sealed, release.table, m=20, seed=1)
    assert completed[0]["region"].to_list() == release.table["region"].to_list()
    truth = shares(PEOPLE, "colour")[("red",)]
    found = combine([shares(table, "colour")[("red",)] for table in completed])
    cell = estimate(release.sealed, release.table).table("colour").cell("red")
    assert cell.standard_error is not None
    assert abs(found.estimate - truth) <= 5 * found.standard_error
    # The variance between 20 tables has a relative error of about 1/3; four of these both ways.
    assert 0.4 < found.standard_error / cell.standard_error < 1.7
    again = impute(release.sealed, release.table, m=1, seed=1)[0]
    assert again["colour"].to_list() == impute(release.sealed, release.table, m=1, seed=1)[0]["colour"].to_list()


def test_completed_tables_keep_a_relation_to_a_kept_column_if_asked() -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="size",
            keep="region",
            accept_kept=True,
            promise=LIP(0.02),
            method="randomised-response",
            seed=8,
        ),
    )
    north = PEOPLE.filter(pl.col("region") == "north")
    truth = shares(north, "size")[("small",)]
    tables = impute(release.sealed, release.table, m=5, seed=1, by="region")
    parts = [table.filter(pl.col("region") == "north") for table in tables]
    found = combine([shares(part, "size")[("small",)] for part in parts])
    assert abs(found.estimate - truth) <= 8 * found.standard_error


def test_records_are_not_invented_where_shares_are_not_identified() -> None:
    sealed, frame = blurred()
    for ask in (lambda: impute(sealed, frame), lambda: posterior(sealed, frame)):
        with pytest.raises(ParameterError, match="hides 1 of 3 dimensions"):
            ask()


def test_records_of_a_protocol_that_sees_the_secret_are_not_completed_by_group() -> None:
    release = sanitise(
        PEOPLE,
        ReleaseSpec(
            prior="table",
            secret="ill",
            publish="colour",
            keep="region",
            accept_kept=True,
            promise=LIP(0.2),
            method="conditional-reporting",
            seed=9,
        ),
    )
    with pytest.raises(ParameterError, match="looks at the secret"):
        impute(release.sealed, release.table, by="region")


def test_rubins_rules_add_what_is_uncertain_within_and_between() -> None:
    found = combine([1.0, 2.0, 3.0], [0.4, 0.5, 0.6])
    assert found.estimate == 2
    assert found.standard_error**2 == pytest.approx(0.5 + (1 + 1 / 3) * 1)
    assert found.degrees == pytest.approx(2 * (found.standard_error**2 / (4 / 3)) ** 2)
    assert found.lower < 1
    assert found.upper > 3
    assert combine([1.0, 1.0], 0.25).upper == pytest.approx(1 + 1.959964 * 0.5)
    with pytest.raises(ParameterError, match="at least 2"):
        combine([1.0])
