"""The front doors of the engine: a problem in, the best split and its bound out."""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, sparse
from privacyfunnel.engine.clock import Clock, clock_for
from privacyfunnel.engine.driver import Progress
from privacyfunnel.engine.masters.mixture import Moment
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints, credal_cone_constraints
from privacyfunnel.engine.oracles.oracle import Oracle
from privacyfunnel.engine.plan import Request, choose, choose_generation
from privacyfunnel.engine.problem import EntropyFloor, Problem, Split
from privacyfunnel.engine.reductions import MergeEqual
from privacyfunnel.engine.settings import SETTINGS


def split(
    problem: Problem,
    *,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: FloatArray | None = None,
    most_atoms: int | None = None,
) -> Split:
    """The split of least entropy up to `gap`. At the time limit: the best so far, with its bound.

    `start` are feasible atoms that are known already; the split is never worse than the best one of these. Inputs that
    the promise cannot distinguish are told apart at the end, as far as `most_atoms` allow.
    """
    small = MergeEqual().apply(problem)
    with clock_for(time_limit):
        clock = Clock.from_limit(time_limit)
        run = choose_generation(small.problem)
        run.run(gap, time_limit, progress, None if start is None else small.aggregate(start))
        found = run.best(_refinement_clock(clock))
    return small.invert(found, most_atoms)


def _refinement_clock(clock: Clock) -> Clock:
    """Time to refine the best split, beyond the limit too."""
    length = clock.deadline - clock.start
    extra = max(SETTINGS.driver.refining_share * length, SETTINGS.driver.refining_seconds)
    return Clock(clock.start, clock.deadline + extra)


def split_by_moment(
    problem: Problem,
    moment: Moment,
    *,
    gap: float = 1e-3,
    absolute: float = 0.0,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: FloatArray | None = None,
) -> Split:
    """The split of least tr(F Fᵀ M⁻¹), up to `gap` times that value less what nobody can avoid, or an absolute gap.

    Inputs that the promise cannot distinguish stay apart: which of them are named together counts here.
    """
    with clock_for(time_limit):
        clock = Clock.from_limit(time_limit)
        run = choose(Request(problem, moment, absolute, clock=clock))
        run.run(gap, clock.part(1 - SETTINGS.moments.ending_share).time_limit, progress, start)
        return run.best(clock)


def split_on_average(
    problem: Problem,
    average: EntropyFloor,
    *,
    bound_average: EntropyFloor | None = None,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: FloatArray | None = None,
) -> Split:
    """The split of least entropy that keeps the floor, up to `gap`; at the time limit the best so far, with its bound.

    The bound holds for `bound_average`, a floor that may be a little lower; `start` are feasible known atoms.
    """
    run = choose(Request(problem, average=average, bound_average=bound_average))
    with clock_for(time_limit):
        run.run(gap, time_limit, progress, start)
        return run.best()


def cone_constraints(problem: Problem) -> sparse.csr_array:
    """Constraints of one linear programme over multiples of feasible atoms."""
    if problem.credal_sets is None:
        return problem.cone()
    rules = CredalConstraints.from_problem(problem)
    return credal_cone_constraints(rules, problem.prior, np.arange(len(rules.one)))


def linear_oracle(problem: Problem) -> Oracle:
    """Minimises linear costs over the feasible atoms, with a proof of each minimum."""
    return ConstraintOracle(problem)
