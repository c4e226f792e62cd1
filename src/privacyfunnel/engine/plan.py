"""The plan: the only place that chooses how a problem is solved.

A strategy is an oracle, a search, a proof and the pace of the loop (driver.py). The first line of `PLAN` that fits a
request wins, and the answer carries its name. Every threshold stands in settings.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.bounds.dual_bounds import ProofBound, Prover, RelaxationBound
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.driver import ColumnGeneration, DualBound, Pace
from privacyfunnel.engine.masters.average import AverageMaster
from privacyfunnel.engine.masters.blocks import BlockMaster, SingleBlockMaster
from privacyfunnel.engine.masters.mixture import Moment
from privacyfunnel.engine.masters.moment import MomentBound, MomentMaster
from privacyfunnel.engine.masters.restricted_master import PenalisedMaster, ResidualMaster
from privacyfunnel.engine.objective import Objective
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.oracles.credal_batch import CredalBatchOracle
from privacyfunnel.engine.oracles.oracle import IntervalOracle, is_secret_box, secret_box
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.problem import EntropyFloor, Problem
from privacyfunnel.engine.proofs.branch_and_bound import BranchAndBound, Relaxation
from privacyfunnel.engine.proofs.chords import BoxedChords, ImageChords, SquaredChords
from privacyfunnel.engine.proofs.class_cones import ClassRelaxation, class_cones
from privacyfunnel.engine.proofs.products import CredalProductCuts, ProductRelaxation, build_constraint_cone
from privacyfunnel.engine.reductions import MergeEqual, group_secrets
from privacyfunnel.engine.search.subspace import SubspaceSearch
from privacyfunnel.engine.search.tangent import ObjectiveSearch, Search, TangentSearch
from privacyfunnel.engine.search.vertices import VertexSearch
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


def choose(request: Request) -> ColumnGeneration:
    """The run of the first strategy that fits."""
    strategy = next(strategy for strategy in PLAN if strategy.when(request))
    return strategy.build(request, strategy.name)


def choose_generation(problem: Problem) -> ColumnGeneration:
    """The run for an entropy."""
    return choose(Request(problem))


# -- entropies -------------------------------------------------------------------------------------------------------


def _build_interval(request: Request, name: str) -> ColumnGeneration:
    interval = IntervalOracle(request.problem)
    return _build_penalised(request.problem, name, interval, interval)


def _build_secret_box(request: Request, name: str) -> ColumnGeneration:
    problem = request.problem
    oracle = secret_box(problem)
    search = TangentSearch(oracle, problem, SETTINGS.search.closed_form_starts)
    proof = _proof(problem, ImageChords(oracle, problem.objective), search)
    return _build_penalised(problem, name, search, proof, Pace(SETTINGS.driver.secret_box_damping))


def _build_linear_programmes(request: Request, name: str) -> ColumnGeneration:
    problem = request.problem
    oracle = ConstraintOracle(problem)
    search = TangentSearch(oracle, problem, SETTINGS.search.programme_starts)
    proof = _proof(problem, ImageChords(oracle, problem.objective), search)
    if problem.objective.is_identity and problem.size > SETTINGS.plan.many_inputs:
        return _build_residual(problem, name, search, proof)
    return _build_penalised(problem, name, search, proof)


def _build_credal(request: Request, name: str) -> ColumnGeneration:
    problem = request.problem
    few = problem.size <= SETTINGS.plan.few_credal_inputs
    oracle: CredalBatchOracle | ConstraintOracle = CredalBatchOracle(problem) if few else ConstraintOracle(problem)
    starts = SETTINGS.search.credal_starts if few else SETTINGS.search.wide_credal_starts
    search = TangentSearch(oracle, problem, starts)
    relaxation: Relaxation = ImageChords(oracle, problem.objective)
    if problem.objective.is_identity:
        relaxation = BoxedChords(oracle, problem.objective, resumes=True)
    pace = Pace(patience=SETTINGS.driver.credal_patience)
    return _build_penalised(problem, name, search, _proof(problem, relaxation, search), pace)


def _build_search_only(request: Request, name: str) -> ColumnGeneration:
    return _build_residual(request.problem, name, _subspace_search(request.problem), None)


def _build_vertices(request: Request, name: str) -> ColumnGeneration:
    """Vertices of the polytope, or subspaces where it is large; proofs by class cones if any, else by boxes."""
    problem = request.problem
    polytope = build_polytope(problem)
    large = not has_compact_constraints(problem) and len(polytope.matrix) > SETTINGS.plan.many_constraints
    search: Search = _subspace_search(problem) if large else VertexSearch(polytope, problem.objective)
    cones = class_cones(problem.constraints, polytope)
    relaxation: Relaxation = BoxedChords(polytope, problem.objective)
    if cones is not None:
        relaxation = ClassRelaxation(cones, problem.objective)
    proof = _proof(problem, relaxation, search)
    if large or (problem.size > SETTINGS.plan.many_inputs and cones is None):
        return _build_residual(problem, name, search, proof)
    return _build_penalised(problem, name, search, proof)


def _build_blocks(request: Request, name: str) -> ColumnGeneration:
    """Splits within blocks of inputs, bounded by one secret at a time."""
    bound = RelaxationBound(request.problem, None, _start_relaxation, one_secret=True)
    master = BlockMaster(request.problem, _block_generation, SETTINGS.slack.largest_block)
    return ColumnGeneration(master, bound, _PLAIN, name)


def _block_generation(problem: Problem) -> ColumnGeneration:
    search = (
        IntervalOracle(problem)
        if problem.constraints.is_one_dimensional
        else VertexSearch(build_polytope(problem), problem.objective)
    )
    return ColumnGeneration(SingleBlockMaster(problem, search), DualBound(), Pace(patience=search.patience))


def _subspace_search(problem: Problem) -> SubspaceSearch:
    return SubspaceSearch(problem, SETTINGS.search.neighbours, SETTINGS.search.first_neighbours)


def _proof(problem: Problem, relaxation: Relaxation, search: Search) -> BranchAndBound:
    return BranchAndBound(relaxation, problem.objective, search.polish)


_PLAIN = Pace()


def _build_penalised(
    problem: Problem, name: str, search: Search, proof: Prover, pace: Pace = _PLAIN
) -> ColumnGeneration:
    return ColumnGeneration(PenalisedMaster(problem, search), ProofBound(problem.prior, proof), pace, name)


def _build_residual(problem: Problem, name: str, search: Search, proof: Prover | None) -> ColumnGeneration:
    driver = SETTINGS.driver
    patience = search.patience if proof is not None else max(driver.patience, search.patience)
    pace = Pace(patience=patience, closest=np.inf if proof is not None else driver.sought * problem.prior_cost)
    bound = RelaxationBound(problem, proof, _start_relaxation)
    return ColumnGeneration(ResidualMaster(problem, search, patience), bound, pace, name)


def _start_relaxation(problem: Problem) -> ColumnGeneration:
    """A run on a relaxation, which is not relaxed further."""
    run = choose_generation(MergeEqual().apply(problem).problem)  # inputs that only dropped constraints distinguished
    run.dual_bound.disable_relaxations()
    return run


# -- averages --------------------------------------------------------------------------------------------------------


def _build_average(request: Request, name: str) -> ColumnGeneration:
    assert request.average is not None
    master = AverageMaster(request.problem, request.average)
    floor = (request.bound_average or request.average).least
    pace = Pace(SETTINGS.averages.damping, early=SETTINGS.averages.early)
    bound = ProofBound(np.append(request.problem.prior, floor), master, share=0.0)
    return ColumnGeneration(master, bound, pace, name)


# -- second moments --------------------------------------------------------------------------------------------------


def _moment_run(
    request: Request,
    name: str,
    search: ObjectiveSearch,
    prover: Callable[[Objective], Prover] | None,
    relaxation_bound: Callable[[float], float] = lambda seconds: 0.0,
    search_share: float | None = None,
) -> ColumnGeneration:
    assert request.moment is not None
    moments = SETTINGS.moments
    master = MomentMaster(request.problem, request.moment, search, request.absolute_gap)
    bound = MomentBound(master, prover, relaxation_bound, search_share)
    pace = Pace(
        early=None if prover is None else moments.early,
        early_share=moments.early_share,
        fruitless=moments.fruitless if prover is not None else 1,
        stalled=moments.stalled_rounds,
    )
    return ColumnGeneration(master, bound, pace, name)


def _build_moment_interval(request: Request, name: str) -> ColumnGeneration:
    interval = IntervalOracle(request.problem)

    def prover(objective: Objective) -> Prover:
        interval.set_objective(objective)
        return interval

    return _moment_run(request, name, interval, prover)


def _branching_prover(
    search: TangentSearch | VertexSearch,
    reach: Callable[[], FloatArray],
    relax: Callable[[Objective, FloatArray], Relaxation],
) -> Callable[[Objective], Prover]:
    """Branch and bound for each objective; how far entries reach is computed for the first."""
    known = list[FloatArray]()

    def prover(objective: Objective) -> Prover:
        known.extend([] if known else [reach()])
        search.set_objective(objective)
        return BranchAndBound(relax(objective, known[0]), objective, search.polish)

    return prover


def _build_moment_products(request: Request, name: str) -> ColumnGeneration:
    polytope, cone = build_polytope(request.problem), build_constraint_cone(request.problem)
    search = VertexSearch(polytope, request.problem.objective)
    prover = _branching_prover(
        search,
        lambda: np.minimum(cone.image @ polytope.reach(request.clock.deadline), 1.0),
        lambda objective, reach: ProductRelaxation(cone, objective, reach),
    )
    return _moment_run(request, name, search, prover)


def _build_moment_chords(request: Request, name: str) -> ColumnGeneration:
    """Few secrets, so that atoms have few entries: boxes of these, and chords of squares."""
    polytope = build_polytope(request.problem)
    search = VertexSearch(polytope, request.problem.objective)
    prover = _branching_prover(
        search,
        lambda: polytope.reach(request.clock.deadline),
        lambda objective, reach: SquaredChords(polytope, objective, reach),
    )
    return _moment_run(request, name, search, prover, search_share=SETTINGS.moments.long_search_share)


def _build_moment_groups(request: Request, name: str) -> ColumnGeneration:
    """Vertices; bounded by each secret against all others, which is proved at once (Theorem 7a)."""
    search = VertexSearch(build_polytope(request.problem), request.problem.objective)
    return _moment_run(request, name, search, None, _single_secret_bound(request))


def _build_moment_programmes(request: Request, name: str) -> ColumnGeneration:
    """The same by linear programmes: bases are too large to be inverted."""
    return _moment_run(request, name, _wide_search(request.problem), None, _single_secret_bound(request))


def _build_moment_credal(request: Request, name: str) -> ColumnGeneration:
    """Products of constraints; those of the credal sets are added where a proof misses them."""
    problem, moment, clock = request.problem, request.moment, request.clock
    assert moment is not None
    oracle, missing = ConstraintOracle(problem), CredalProductCuts(problem)
    search = TangentSearch(oracle, problem, SETTINGS.search.wide_credal_starts)
    beyond = (problem.objective.image_index >= len(moment.factor)).astype(np.float64)
    most = -float(oracle.minimise(-beyond[None, :], clock.deadline).lower[0]) if beyond.any() else 0.0
    cone = build_constraint_cone(problem, most)
    prover = _branching_prover(
        search,
        lambda: np.minimum(cone.image @ oracle.reach(clock.deadline), 1.0),
        lambda objective, reach: ProductRelaxation(cone, objective, reach, missing),
    )
    return _moment_run(request, name, search, prover, _table_bound(request))


def _build_moment_credal_search(request: Request, name: str) -> ColumnGeneration:
    """The same search; bounded by the table's own constraints."""
    return _moment_run(request, name, _wide_search(request.problem), None, _table_bound(request))


def _wide_search(problem: Problem) -> TangentSearch:
    return TangentSearch(ConstraintOracle(problem), problem, SETTINGS.search.wide_credal_starts)


def _moment_lower_bound(problem: Problem, request: Request, clock: Clock) -> float:
    """Lower bound of a relaxation, as far as time allows."""
    run = choose(replace(request, problem=problem, clock=clock))
    run.run(SETTINGS.moments.relaxation_gap, clock.time_limit)
    return run.bound


def _single_secret_bound(request: Request) -> Callable[[float], float]:
    """A bound by each secret against all others."""
    groups = group_secrets(request.problem)

    def relaxation_bound(seconds: float) -> float:
        clock, best = Clock.from_limit(seconds), 0.0
        for s in range(0 if groups is None else groups.count):
            easier = None if groups is None or clock.late else groups.single_out([s])
            if easier is not None:
                best = max(best, _moment_lower_bound(easier, request, clock))
        return best

    return relaxation_bound


def _table_bound(request: Request) -> Callable[[float], float]:
    """A bound by the table's own constraints: the table is a member of its credal sets."""

    def relaxation_bound(seconds: float) -> float:
        return _moment_lower_bound(_restrict_to_table(request), request, Clock.from_limit(seconds))

    return relaxation_bound


def _restrict_to_table(request: Request) -> Problem:
    """Without credal sets, and without inputs that the table lacks: its constraints do not concern these."""
    problem, moment = request.problem, request.moment
    assert moment is not None
    inputs = np.flatnonzero(problem.objective.image_index < len(moment.factor))
    if len(inputs) == problem.size:
        return replace(problem, credal_sets=None)
    part, seen = problem.restrict(inputs), float(problem.prior[inputs].sum())
    rows = replace(part.constraints, functionals=part.constraints.functionals * seen, even=problem.constraints.even)
    return replace(part, prior=part.prior / seen, constraints=rows)


# -- the table -----------------------------------------------------------------------------------------------------

PLAN = (
    Strategy("average leakage, entropic boxes", lambda request: request.average is not None, _build_average),
    Strategy(
        "statistics: credal sets, products of constraints",
        for_moment(lambda p: p.credal_sets is not None and is_small(p)),
        _build_moment_credal,
    ),
    Strategy(
        "statistics: credal sets, bounded by the table's own constraints",
        for_moment(lambda p: p.credal_sets is not None),
        _build_moment_credal_search,
    ),
    Strategy(
        "statistics: one dimension, table of all vertices",
        for_moment(lambda p: p.objective.is_identity and p.constraints.is_one_dimensional),
        _build_moment_interval,
    ),
    Strategy(
        "statistics: very many constraints, linear programmes", for_moment(needs_programmes), _build_moment_programmes
    ),
    Strategy("statistics: vertices, products of constraints", for_moment(is_small), _build_moment_products),
    Strategy("statistics: vertices, chords of squares", for_moment(has_few_constraints), _build_moment_chords),
    Strategy("statistics: vertices, bounded by groups of secrets", for_moment(lambda p: True), _build_moment_groups),
    Strategy("credal sets, linear programmes", for_entropy(lambda p: p.credal_sets is not None), _build_credal),
    Strategy("secret seen, closed form", for_entropy(is_secret_box), _build_secret_box),
    Strategy(
        "secret seen, linear programmes", for_entropy(lambda p: not p.objective.is_identity), _build_linear_programmes
    ),
    Strategy("very many inputs, blocks", for_entropy(needs_blocks), _build_blocks),
    Strategy(
        "one dimension, table of all vertices",
        for_entropy(lambda p: p.constraints.is_one_dimensional),
        _build_interval,
    ),
    Strategy("very many secrets, linear programmes", for_entropy(has_very_many_secrets), _build_linear_programmes),
    Strategy(
        "very many constraints, search without branching",
        for_entropy(lambda p: has_very_many_constraints(p, SETTINGS.plan.most_proved)),
        _build_search_only,
    ),
    Strategy("vertices of the polytope", for_entropy(lambda p: True), _build_vertices),
)
