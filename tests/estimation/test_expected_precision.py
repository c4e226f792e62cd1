"""What an analyst will get, told beforehand: as repeated draws show, and as outputs guarantee."""

import gc
import weakref
from functools import cache

import numpy as np
import polars as pl
import pytest

from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.estimation.expected_precision import expected_precision, expected_precision_by_column
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.output_reader import OutputReader
from privacyfunnel.estimation.share_estimates import fit_shares
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.spec import ReleaseSpec

ROWS, DRAWS = 2000, 100


def people() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    colour = rng.choice(["red", "green", "blue"], p=[0.5, 0.3, 0.2], size=ROWS)
    size = np.where(rng.random(ROWS) < np.where(colour == "red", 0.7, 0.4), "large", "small")
    ill = np.where(rng.random(ROWS) < 0.3 + 0.3 * (colour == "red") + 0.2 * (size == "small"), "yes", "no")
    return pl.DataFrame({"ill": ill, "colour": colour, "size": size})


PEOPLE = people()


@cache
def released(method: str, publish: tuple[str, ...]) -> Release:
    return sanitise(
        PEOPLE, ReleaseSpec(prior="table", secret="ill", publish=publish, promise=LIP(0.1), method=method, seed=1)
    )


@pytest.mark.parametrize(
    ("method", "publish", "tabulated"),
    [
        ("randomised-response", ("colour",), ("colour",)),
        ("conditional-reporting", ("colour",), ("colour",)),
        ("randomised-response", ("colour", "size"), ("colour", "size")),
    ],
)
def test_estimates_are_as_near_as_expected(method: str, publish: tuple[str, ...], tabulated: tuple[str, ...]) -> None:
    """Of 100 tables at least 88 where 95 are told, and a tenth more than half as far off: it is not told too wide."""
    release, random = released(method, publish), np.random.default_rng(5)
    assert release.joint is not None
    told = expected_precision(release.sealed, release.joint, ROWS, tabulated)
    reading = OutputReader.from_protocol(release.sealed, columns=tabulated)
    space = RowSpace.from_means(reading.model.means)
    functions = reading.cells(tabulated).functions
    p = release.joint.project(list(reading.attributes)).p_x
    assert told.shares == pytest.approx(p @ functions)
    off = []
    for _ in range(DRAWS):
        drawn = reading.model.simulate(p, ROWS, random, fixed=True)
        off.append(np.abs(fit_shares(reading.model, space, drawn, "projection") @ functions - told.shares))
    relative = np.array(off) / told.half_widths
    assert (relative <= 1).mean(axis=0).min() >= 0.88
    assert (relative > 0.5).mean() >= 0.1


def test_what_outputs_guarantee_is_not_forgotten() -> None:
    """Half of the rows of a show a itself, b and c are never told apart."""
    joint = Joint.from_counts([[100, 50, 30], [100, 50, 70]], values=["a", "b", "c"])
    blurred = Protocol(np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]]), (("a",), ("a | b | c",)))
    (told,) = expected_precision_by_column(seal(blurred, LIP(3.0), joint), joint, 400)
    assert told.shares == pytest.approx([0.5, 0.25, 0.25])
    assert told.half_widths[0] == pytest.approx(1.96 * np.sqrt(0.5 / 400), rel=0.01)  # n a / 2 of a binomial, doubled
    assert told.half_widths[1:] == pytest.approx([0.5, 0.5])  # all that the second output may be
    assert str(told) == "each share of X within ±35.7 points on average; worst: b ±50.0"


def test_what_is_published_as_it_is_is_simply_counted() -> None:
    joint = Joint.from_counts([[30, 10], [30, 10]])
    (told,) = expected_precision_by_column(seal(Protocol(np.eye(2)), LIP(0.1), joint), joint, 80)
    assert told.half_widths.max() == 0
    assert str(told) == "each share of X exact"


def test_what_was_measured_of_a_table_is_forgotten_with_it() -> None:
    joint = Joint.from_counts([[[30, 10], [20, 40]], [[15, 25], [35, 5]]], names=["x", "y"])
    sealed = seal(randomised_response(joint, LIP(0.5)), LIP(0.5), joint)
    assert expected_precision_by_column(sealed, joint, 400) is expected_precision_by_column(sealed, joint, 400)
    there = weakref.ref(joint)
    del joint
    gc.collect()
    assert there() is None
