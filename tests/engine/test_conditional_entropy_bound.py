"""Side channels are asked as far as there is time, parts gone on with where it counts, and never claim too much."""

from collections.abc import Callable
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.bounds.side_channels import ConditionalEntropyBound, PartRun, Run, SideChannels
from privacyfunnel.engine.problem import InputPart
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.promises import SRLIP
from tests.engine.problems import SEEDS, begun, by_vertices, problem_of, random_joint, with_loans

SHAPES = st.sampled_from([(2, 2, 3), (3, 2, 2), (2, 2, 2, 2), (2, 2, 2, 3)])


def channels_of(problem: Problem) -> SideChannels:
    found = SideChannels.from_problem(problem)
    assert found is not None
    return found


class Known:
    """A run of which the answer is known, reached after some turns."""

    def __init__(self, cost: float, turns: int) -> None:
        self.value, self.bound, self.turns = cost, 0.0, 0
        self._needed = turns

    def run(self, gap: float, time_limit: float | None = None) -> None:
        assert time_limit is not None
        assert time_limit > 0
        self.turns += 1
        if self.turns >= self._needed:
            self.bound = self.value - gap


class Made:
    """Makes runs of known answers, half of what each problem is worth; some cost nearly all, and are never solved."""

    def __init__(self, hopeless: Callable[[Problem], bool] = lambda _: False) -> None:
        self.hopeless, self.runs = hopeless, list[tuple[Problem, Known]]()

    def __call__(self, problem: Problem) -> Run:
        cost, turns = (0.9, 10**9) if self.hopeless(problem) else (0.5, 2)
        self.runs.append((problem, Known(cost * problem.prior_cost, turns)))
        return self.runs[-1][1]


@given(seed=SEEDS, shape=SHAPES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=10, deadline=None)
def test_no_bound_is_above_what_the_best_split_costs(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    problem = problem_of(random_joint(seed, shape), SRLIP(epsilon))
    best = split(problem, gap=1e-5)
    said = list(ConditionalEntropyBound(channels_of(problem), begun).bounds(np.inf))
    assert (np.diff(said) >= -1e-12).all()
    assert said[-1] <= best.value + 1e-9


def halves(channels: SideChannels, solved: Callable[[Problem], bool]) -> float:
    """What half of what each part is worth proves, where it is solved."""
    exact = np.zeros((len(channels.divisions),) * 2)
    for each in channels.division_pairs():
        half = sum(part.mass * 0.5 * part.problem.prior_cost for part in channels.parts(each) if solved(part.problem))
        exact[each.indices] = max(exact[each.indices], half)
    return channels.combine_bounds(exact)[0]


def test_everything_is_asked_and_solved_where_there_is_time() -> None:
    channels = channels_of(problem_of(random_joint(4, (2, 2, 2, 3)), SRLIP(0.4)))
    made = Made()
    said = list(ConditionalEntropyBound(channels, made).bounds(np.inf))
    assert len(made.runs) == sum(len(channels.parts(each)) for each in channels.division_pairs())
    bound = halves(channels, lambda problem: True)
    assert bound - 4 * SETTINGS.bounds.part_closest * channels.problem.prior_cost <= said[-1] <= bound + 1e-12


def test_a_part_that_is_never_solved_leaves_the_others_their_turns() -> None:
    channels = channels_of(problem_of(random_joint(4, (2, 2, 2, 3)), SRLIP(0.4)))
    largest = max(
        part.problem.size for each in channels.division_pairs() if each.all_constraints for part in channels.parts(each)
    )
    made = Made(lambda problem: problem.size == largest)
    said = list(ConditionalEntropyBound(channels, made).bounds(np.inf))
    assert max(run.turns for problem, run in made.runs if problem.size == largest) > 2
    bound = halves(channels, lambda problem: problem.size < largest)
    assert bound > 0.1 * channels.problem.prior_cost
    assert bound - 4 * SETTINGS.bounds.part_closest * channels.problem.prior_cost <= said[-1]


def test_finer_side_channels_bound_a_part_before_it_is_begun() -> None:
    problem = problem_of(random_joint(3, (2, 2, 2, 3)), SRLIP(0.3))
    channels = channels_of(problem)
    left_open = ConditionalEntropyBound(channels, begun)
    finer_first = channels.division_pairs()
    for asked in finer_first[:-1]:
        left_open._start_parts(asked, np.inf)
    floors = 0
    for asked in (each for each in finer_first if each.all_constraints and each.finer == len(channels.divisions) - 1):
        for part in channels.parts(asked):
            floor = left_open._initial_bound(asked, part)
            exact = split(part.problem, gap=1e-6)
            assert floor <= exact.value + 1e-9
            floors += floor > 0.1 * exact.value
    assert floors > 0


def test_a_part_is_forgotten_once_it_is_as_close_as_it_ever_gets() -> None:
    problem = problem_of(random_joint(1, (2, 2, 3)), SRLIP(0.5))
    made = Made()
    part = PartRun(InputPart(np.arange(problem.size), 0.5, problem), made, 0.0)
    gains = [part.gain]
    while part.gain > 0:
        part.advance(np.inf)
        gains.append(part.gain)
        assert len(gains) < 10
    assert gains[0] == pytest.approx(0.5 * problem.prior_cost)
    assert part.value - part.lower_bound <= SETTINGS.bounds.part_closest * problem.prior_cost
    assert len(made.runs) == 1


def test_late_nothing_is_begun() -> None:
    problem = problem_of(random_joint(1, (2, 2, 3)), SRLIP(0.5))
    made = Made()
    part = PartRun(InputPart(np.arange(problem.size), 1.0, problem), made, 0.1)
    part.advance(-np.inf)
    assert not made.runs
    assert part.lower_bound == 0.1


def test_a_run_goes_on_from_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun anew, it would solve its first programmes again, one per input."""
    problem = problem_of(random_joint(1, (3, 2, 3)), SRLIP(0.7))
    run = with_loans(problem, *by_vertices(problem))
    run.run(0.2)
    first, begun_again = run.bound, Mock(wraps=run.master.begin)
    monkeypatch.setattr(run.master, "begin", begun_again)
    run.run(1e-5)
    assert not begun_again.called
    assert run.bound >= first
    assert run.value - run.bound <= 1e-5
