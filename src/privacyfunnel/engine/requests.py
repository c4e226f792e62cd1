"""What is asked of the engine, and the shapes of problems by which the plan chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.driver import ColumnGeneration
from privacyfunnel.engine.masters.mixture import Moment
from privacyfunnel.engine.problem import EntropyFloor, Problem
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What is minimised: an entropy, or where given a second moment or an entropy under an average constraint."""

    problem: Problem
    moment: Moment | None = None
    absolute_gap: float = 0.0  # of a moment
    average: EntropyFloor | None = None
    bound_average: EntropyFloor | None = None  # the bound holds for this floor, a little below
    clock: Clock = FOREVER  # by which a moment's run ends


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a kind of request is solved: its name, when it is chosen, and what builds the run."""

    name: str
    when: Callable[[Request], bool]
    build: Callable[[Request, str], ColumnGeneration]


def has_compact_constraints(problem: Problem) -> bool:
    """One or two constraints per secret, whatever the size of the table."""
    return problem.constraints.compares_with_everybody or problem.constraints.mutual_functionals is not None


def has_very_many_secrets(problem: Problem) -> bool:
    return has_compact_constraints(problem) and problem.constraints.share.shape[1] > SETTINGS.plan.very_many_secrets


def has_very_many_constraints(problem: Problem, most: int) -> bool:
    return not has_compact_constraints(problem) and len(problem.inequalities) > most


def needs_blocks(problem: Problem) -> bool:
    """Whether inputs are too many for one master, and blocks of them are the same problem."""
    one_dimensional = problem.constraints.is_one_dimensional
    most = SETTINGS.plan.most_interval if one_dimensional else SETTINGS.plan.most_branched
    return has_compact_constraints(problem) and problem.size > most and not has_very_many_secrets(problem)


def needs_programmes(problem: Problem) -> bool:
    """Whether the polytope of a moment has too many constraints to invert its bases."""
    most = SETTINGS.plan.very_many_secrets
    return has_very_many_secrets(problem) or has_very_many_constraints(problem, most)


def has_few_constraints(problem: Problem) -> bool:
    """Few enough for boxes of entries, and each input a value of its own."""
    few = problem.size <= SETTINGS.plan.most_boxed and len(problem.inequalities) <= SETTINGS.plan.few_constraints
    return problem.objective.is_identity and few


def for_moment(when: Callable[[Problem], bool]) -> Callable[[Request], bool]:
    return lambda request: request.moment is not None and when(request.problem)


def for_entropy(when: Callable[[Problem], bool]) -> Callable[[Request], bool]:
    return lambda request: when(request.problem)


def is_small(problem: Problem) -> bool:
    return problem.size <= SETTINGS.plan.most_multiplied
