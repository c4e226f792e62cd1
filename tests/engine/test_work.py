"""Counted work: it is the clock where no time limit was asked for, and the same whenever the same is solved."""

import time

import numpy as np
import pytest

from privacyfunnel.engine import Split, split
from privacyfunnel.engine.clock import WORK, Clock, clock_for, now
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.promises import SRLIP
from tests.engine.problems import lip, problem_of, random_joint


def test_without_a_time_limit_the_clock_counts_steps_and_with_one_seconds() -> None:
    with clock_for(None):
        before, clock = now(), Clock.from_limit(SETTINGS.work.pivot * 10)
        assert now() == before
        WORK.pivots += 9
        assert not clock.late
        WORK.iterations += 2
        assert clock.late
        with clock_for(1.0):
            assert now() == WORK.seconds  # the outer run has no limit
    with clock_for(1.0):
        assert now() == pytest.approx(time.monotonic(), abs=1.0)


def test_the_same_problem_takes_the_same_steps_to_the_same_split_however_slow_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = problem_of(random_joint(3, (2, 3, 3, 3)), SRLIP(0.7))

    def solved() -> tuple[Split, int]:
        before = WORK.steps
        return split(problem, gap=1e-3), WORK.steps - before

    one, steps = solved()
    slow = iter(range(0, 10**9, 30))  # every look at the wall clock takes half a minute
    monkeypatch.setattr(time, "monotonic", lambda: float(next(slow)))
    other, again = solved()
    assert steps == again > 0
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.atoms, other.atoms)


def test_a_split_names_its_strategy() -> None:
    assert split(lip(0, 2, 6, 0.5)).strategy == "one dimension, table of all vertices"
    assert split(lip(0, 3, 6, 0.5)).strategy == "vertices of the polytope"
