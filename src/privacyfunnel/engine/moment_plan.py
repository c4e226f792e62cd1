"""The plan where the second moment of a split counts: the only place that chooses how such a problem is solved.

Every threshold stands here, with its reason; the first line of `MOMENT_PLAN` that fits wins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.bounds.dual_bounds import Prover
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.driver import Progress
from privacyfunnel.engine.masters.moment import Moment
from privacyfunnel.engine.masters.moment_objective import MomentObjective
from privacyfunnel.engine.moment_driver import MomentGeneration, MomentTools
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.oracles.credal import CredalOracle
from privacyfunnel.engine.oracles.interval import IntervalOracle
from privacyfunnel.engine.oracles.polytope import Polytope, build_polytope
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.proofs.branch_and_bound import BranchAndBound
from privacyfunnel.engine.proofs.credal_products import CredalProductCuts
from privacyfunnel.engine.proofs.products import ProductRelaxation, build_constraint_cone
from privacyfunnel.engine.proofs.squared_chords import SquaredChords
from privacyfunnel.engine.reductions.reduced_problems import group_secrets
from privacyfunnel.engine.search.tangent import TangentSearch
from privacyfunnel.engine.search.vertices import VertexSearch
from privacyfunnel.engine.settings import SETTINGS


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

    Inputs that the promise cannot tell apart stay apart: which of them are named together counts here.
    """
    clock = Clock.from_limit(time_limit)
    run = choose_moment_generation(problem, moment, clock)
    run.run(gap, clock.part(1 - SETTINGS.moments.ending_share).time_limit, progress, start, absolute=absolute)
    return run.best(clock)


def choose_moment_generation(problem: Problem, moment: Moment, clock: Clock = FOREVER) -> MomentGeneration:
    """The run that suits the problem where its second moment counts; it must end by the clock."""
    way = next(way for way in MOMENT_PLAN if way.when(problem))
    return MomentGeneration(problem, moment, way.build(problem, moment, clock), way.name)


@dataclass(frozen=True, slots=True)
class MomentStrategy:
    """How a kind of problem is solved: its name, when it is chosen, and what seeks and proves."""

    name: str
    when: Callable[[Problem], bool]
    build: Callable[[Problem, Moment, Clock], MomentTools]


def _build_interval(problem: Problem, moment: Moment, clock: Clock) -> MomentTools:
    interval = IntervalOracle(problem)

    def build_prover(objective: MomentObjective) -> Prover:
        interval.set_objective(objective)
        return interval

    return MomentTools(interval, build_prover)


def _build_products(problem: Problem, moment: Moment, clock: Clock) -> MomentTools:
    polytope = build_polytope(problem)
    search = VertexSearch(polytope, problem.objective)
    return MomentTools(search, _product_prover(problem, polytope, search, clock))


def _build_chords(problem: Problem, moment: Moment, clock: Clock) -> MomentTools:
    """The same where secrets are few, so that atoms have few entries: boxes of these, and chords of squares."""
    polytope = build_polytope(problem)
    search, reach = VertexSearch(polytope, problem.objective), list[FloatArray]()

    def build_prover(objective: MomentObjective) -> Prover:
        if not reach:
            reach.append(polytope.reach(clock.deadline))
        search.set_objective(objective)
        return BranchAndBound(SquaredChords(polytope, objective, reach[0]), objective, search.polish)

    return MomentTools(search, build_prover, share=SETTINGS.moments.long_search_share)


def _product_prover(
    problem: Problem,
    polytope: Polytope,
    search: VertexSearch,
    clock: Clock,
) -> Callable[[MomentObjective], Prover]:
    """Proofs by products of rows."""
    cone, reach = build_constraint_cone(problem), list[FloatArray]()

    def build_prover(objective: MomentObjective) -> Prover:
        if not reach:
            reach.append(np.minimum(cone.image @ polytope.reach(clock.deadline), 1.0))
        search.set_objective(objective)
        return BranchAndBound(ProductRelaxation(cone, objective, reach[0]), objective, search.polish)

    return build_prover


def _build_groups(problem: Problem, moment: Moment, clock: Clock) -> MomentTools:
    """Searched as before; bounded by each secret against all others, which is proved at once (Theorem 7a)."""
    return MomentTools(
        VertexSearch(build_polytope(problem), problem.objective), None, _single_secret_bound(problem, moment)
    )


def _build_linear_programmes(problem: Problem, moment: Moment, clock: Clock) -> MomentTools:
    """Bounded in the same way; a step of a walk is a linear programme, for bases are too large to be inverted."""
    search = TangentSearch(ConstraintOracle(problem), problem, SETTINGS.search.wide_credal_starts)
    return MomentTools(search, None, _single_secret_bound(problem, moment))


def _single_secret_bound(problem: Problem, moment: Moment) -> Callable[[float], float]:
    """A bound by each secret against all others."""
    groups = group_secrets(problem)

    def relaxation_bound(seconds: float) -> float:
        clock, best = Clock.from_limit(seconds), 0.0
        for s in range(0 if groups is None else groups.count):
            easier = None if groups is None or clock.late else groups.single_out([s])
            if easier is not None:
                run = choose_moment_generation(easier, moment, clock)
                run.run(SETTINGS.moments.relaxation_gap, clock.time_limit)
                best = max(best, run.bound)
        return best

    return relaxation_bound


def _has_credal_sets(problem: Problem) -> bool:
    return problem.credal_sets is not None


def _has_few_constraints(problem: Problem) -> bool:
    """Few enough for boxes of entries, and each input a value of its own."""
    return (
        problem.objective.is_identity
        and problem.size <= SETTINGS.plan.most_boxed
        and len(problem.inequalities) <= SETTINGS.plan.few_constraints
    )


def _has_very_many_constraints(problem: Problem) -> bool:
    """Rows of its polytope: one per secret where all are compared with everybody, or with each other."""
    rows = problem.constraints
    compact = rows.compares_with_everybody or rows.mutual_functionals is not None
    return (rows.share.shape[1] if compact else len(problem.inequalities)) > SETTINGS.plan.very_many_secrets


def _is_small(problem: Problem) -> bool:
    return problem.size <= SETTINGS.plan.most_multiplied


def _build_credal_products(problem: Problem, moment: Moment, clock: Clock) -> MomentTools:
    """Walks by tangents, and products of rows; those that sets ask for arrive where a proof misses them."""
    oracle, missing = CredalOracle(problem), CredalProductCuts(problem)
    beyond = (problem.objective.image_index >= len(moment.factor)).astype(np.float64)
    cone = build_constraint_cone(
        problem, -float(oracle.minimise(-beyond[None, :], clock.deadline).lower[0]) if beyond.any() else 0.0
    )
    search = TangentSearch(oracle, problem, SETTINGS.search.wide_credal_starts)
    reach: list[FloatArray] = []

    def build_prover(objective: MomentObjective) -> Prover:
        if not reach:
            reach.append(np.minimum(cone.image @ oracle.reach(clock.deadline), 1.0))
        return BranchAndBound(ProductRelaxation(cone, objective, reach[0], missing), objective, search.polish)

    return MomentTools(search, build_prover, _table_bound(problem, moment))


def _build_credal_search(problem: Problem, moment: Moment, clock: Clock) -> MomentTools:
    """The same walks, without a proof of their own."""
    search = TangentSearch(CredalOracle(problem), problem, SETTINGS.search.wide_credal_starts)
    return MomentTools(search, None, _table_bound(problem, moment))


def _table_bound(problem: Problem, moment: Moment) -> Callable[[float], float]:
    """A bound by what the table's own rows allow: the table is a member of its sets."""

    def relaxation_bound(seconds: float) -> float:
        clock = Clock.from_limit(seconds)
        run = choose_moment_generation(_restrict_to_table(problem, moment), moment, clock)
        run.run(SETTINGS.moments.relaxation_gap, clock.time_limit)
        return run.bound

    return relaxation_bound


def _restrict_to_table(problem: Problem, moment: Moment) -> Problem:
    """The same without sets, and without inputs that the table lacks: its rows do not speak of these."""
    inputs = np.flatnonzero(problem.objective.image_index < len(moment.factor))
    if len(inputs) == problem.size:
        return replace(problem, credal_sets=None)
    part, seen = problem.restrict(inputs), float(problem.prior[inputs].sum())
    rows = replace(part.constraints, functionals=part.constraints.functionals * seen, even=problem.constraints.even)
    return replace(part, prior=part.prior / seen, constraints=rows)


MOMENT_PLAN = (
    MomentStrategy(
        "sets of priors, products of rows", lambda p: _has_credal_sets(p) and _is_small(p), _build_credal_products
    ),
    MomentStrategy("sets of priors, bounded by the table's own rows", _has_credal_sets, _build_credal_search),
    MomentStrategy(
        "one number, all vertices in a table",
        lambda p: p.objective.is_identity and p.constraints.is_one_dimensional,
        _build_interval,
    ),
    MomentStrategy("very many rows, linear programmes", _has_very_many_constraints, _build_linear_programmes),
    MomentStrategy("vertices of the polytope, products of rows", _is_small, _build_products),
    MomentStrategy("vertices of the polytope, chords of squares", _has_few_constraints, _build_chords),
    MomentStrategy("vertices of the polytope, bounded by groups of secrets", lambda problem: True, _build_groups),
)
