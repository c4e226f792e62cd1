"""The plan: the only place that chooses how a problem is solved. Every threshold stands here, with its reason.

A way is an oracle, a search, a proof and how they are run. The first line of `PLAN` that fits wins. Where the second
moment of a split counts, moment_plan.py is the same.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, sparse
from privacyfunnel.engine.bounds.dual_bounds import NoBound, ProofBound, Prover, RelaxationBound
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.driver import ColumnGeneration, Pace, Progress
from privacyfunnel.engine.masters.blocks import BlockMaster, SingleBlockMaster
from privacyfunnel.engine.masters.slack_masters import CoarseStart, PenalisedMaster, ResidualMaster
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.oracles.credal import CredalOracle
from privacyfunnel.engine.oracles.credal_batch import CredalBatchOracle
from privacyfunnel.engine.oracles.credal_cone import credal_cone_constraints
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.interval import IntervalOracle
from privacyfunnel.engine.oracles.oracle import Oracle, is_secret_box, secret_box
from privacyfunnel.engine.oracles.polytope import Polytope, build_polytope
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.proofs.branch_and_bound import BranchAndBound, Relaxation
from privacyfunnel.engine.proofs.chords import BoxedChords, ImageChords
from privacyfunnel.engine.proofs.class_cones import ClassRelaxation, class_cones
from privacyfunnel.engine.proofs.credal_chords import CredalChords
from privacyfunnel.engine.reductions.reduced_problems import merge_equal
from privacyfunnel.engine.search.base import Search
from privacyfunnel.engine.search.subspace import SubspaceSearch
from privacyfunnel.engine.search.tangent import TangentSearch
from privacyfunnel.engine.search.vertices import VertexSearch
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a kind of problem is solved: its name, when it is chosen, and what makes the run."""

    name: str
    when: Callable[[Problem], bool]
    build: Callable[[Problem, str], ColumnGeneration]


def choose_generation(problem: Problem) -> ColumnGeneration:
    """The column generation that suits the problem."""
    way = next(way for way in PLAN if way.when(problem))
    return way.build(problem, way.name)


def split(
    problem: Problem,
    *,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: FloatArray | None = None,
    most_atoms: int | None = None,
) -> Split:
    """The cheapest split up to `gap`. At the time limit: the best so far, with its bound.

    `start` are allowed atoms that are known already; the split is never worse than the best one of these.
    Inputs that the promise cannot tell apart are told apart as far as `most_atoms` allow, in the end.
    """
    clock = Clock.from_limit(time_limit)
    small = merge_equal(problem)
    generation = choose_generation(small.problem)
    generation.run(gap, time_limit, progress, None if start is None else small.aggregate(start))
    return small.refine(generation.best(_refinement_clock(clock)), most_atoms)


def _refinement_clock(clock: Clock) -> Clock:
    """What may pass until the best split is refined, beyond the limit too."""
    return Clock(
        clock.start,
        clock.deadline
        + max(SETTINGS.driver.refining_share * (clock.deadline - clock.start), SETTINGS.driver.refining_seconds),
    )


def cone_constraints(problem: Problem) -> sparse.csr_array:
    """Rows of one linear programme over multiples of allowed atoms."""
    if problem.credal_sets is None:
        return problem.cone()
    rules = CredalConstraints.from_problem(problem)
    return credal_cone_constraints(rules, problem.prior, np.arange(len(rules.one)))


def linear_oracle(problem: Problem) -> Oracle:
    """What minimises linear costs over the allowed atoms, with a proof of each minimum."""
    return ConstraintOracle(problem) if problem.credal_sets is None else CredalOracle(problem)


# -- the ways ------------------------------------------------------------------------------------------------------


def _build_interval(problem: Problem, name: str) -> ColumnGeneration:
    interval = IntervalOracle(problem)
    return _build_penalised(problem, name, interval, interval, 0.0)


def _build_secret_box(problem: Problem, name: str) -> ColumnGeneration:
    oracle = secret_box(problem)
    search = TangentSearch(oracle, problem, SETTINGS.search.closed_form_starts)
    return _build_penalised(
        problem,
        name,
        search,
        _proof(problem, ImageChords(oracle, problem.objective), search),
        SETTINGS.driver.secret_box_damping,
    )


def _build_secret_view(problem: Problem, name: str) -> ColumnGeneration:
    oracle = ConstraintOracle(problem)
    search = TangentSearch(oracle, problem, SETTINGS.search.programme_starts)
    return _build_penalised(problem, name, search, _proof(problem, ImageChords(oracle, problem.objective), search), 0.0)


def _build_linear_programmes(problem: Problem, name: str) -> ColumnGeneration:
    oracle = ConstraintOracle(problem)
    search = TangentSearch(oracle, problem, SETTINGS.search.programme_starts)
    proof = _proof(problem, ImageChords(oracle, problem.objective), search)
    if problem.size > SETTINGS.plan.many_inputs:
        return _build_residual(problem, name, search, proof)
    return _build_penalised(problem, name, search, proof, 0.0)


def _has_very_many_secrets(problem: Problem) -> bool:
    return _has_compact_constraints(problem) and problem.constraints.share.shape[1] > SETTINGS.plan.very_many_secrets


def _build_credal(problem: Problem, name: str) -> ColumnGeneration:
    few = problem.size <= SETTINGS.plan.few_credal_inputs
    oracle: CredalBatchOracle | CredalOracle = (
        CredalBatchOracle(problem, SETTINGS.lp.pivots_per_box) if few else CredalOracle(problem)
    )
    search = TangentSearch(
        oracle, problem, SETTINGS.search.credal_starts if few else SETTINGS.search.wide_credal_starts
    )
    relaxation: Relaxation = ImageChords(oracle, problem.objective)
    if problem.objective.is_identity:
        relaxation = CredalChords(oracle, problem.objective)
    bounding = ProofBound(problem, _proof(problem, relaxation, search))
    return ColumnGeneration(
        problem, PenalisedMaster(problem, search), bounding, Pace(0.0, SETTINGS.driver.credal_patience), name
    )


def _build_search_only(problem: Problem, name: str) -> ColumnGeneration:
    return _build_residual(
        problem, name, SubspaceSearch(problem, SETTINGS.search.neighbours, SETTINGS.search.first_neighbours), None
    )


def _build_vertices(problem: Problem, name: str) -> ColumnGeneration:
    """Vertices of the polytope, or what finds more in time; proofs by classes where there are any, else by boxes."""
    polytope = build_polytope(problem)
    search = _search(problem, polytope)
    cones = class_cones(problem.constraints, polytope)
    relaxation: Relaxation = BoxedChords(polytope, problem.objective)
    if cones is not None:
        relaxation = ClassRelaxation(cones, problem.objective)
    proof = _proof(problem, relaxation, search)
    if _steps_are_programmes(problem, polytope) or (problem.size > SETTINGS.plan.many_inputs and cones is None):
        return _build_residual(problem, name, search, proof)
    return _build_penalised(problem, name, search, proof, 0.0)


def _build_blocks(problem: Problem, name: str) -> ColumnGeneration:
    """Splits within blocks of inputs, which are joined; proofs where one block can hold all inputs."""
    supply = BlockMaster(problem, _block_generation, SETTINGS.slack.first_block, SETTINGS.slack.largest_block)
    proof = None
    if problem.size <= SETTINGS.slack.largest_block:
        polytope = build_polytope(problem)
        proof = _proof(problem, BoxedChords(polytope, problem.objective), VertexSearch(polytope, problem.objective))
    blocks = -(-problem.size // SETTINGS.slack.first_block)
    bounding = RelaxationBound(problem, proof, _start_relaxation, one_secret=True)
    return ColumnGeneration(problem, supply, bounding, Pace(0.0, blocks), name)


def _block_generation(problem: Problem) -> ColumnGeneration:
    search = (
        IntervalOracle(problem)
        if problem.constraints.is_one_dimensional
        else VertexSearch(build_polytope(problem), problem.objective, in_turn=True)
    )
    return ColumnGeneration(problem, SingleBlockMaster(problem, search), NoBound(), Pace(0.0, search.patience))


def _needs_blocks(problem: Problem) -> bool:
    """Whether inputs are too many for one master, and blocks of them are the same problem."""
    most = SETTINGS.plan.most_interval if problem.constraints.is_one_dimensional else SETTINGS.plan.most_branched
    return _has_compact_constraints(problem) and problem.size > most and not _has_very_many_secrets(problem)


def _search(problem: Problem, polytope: Polytope) -> Search:
    if _steps_are_programmes(problem, polytope):
        return SubspaceSearch(problem, SETTINGS.search.neighbours, SETTINGS.search.first_neighbours)
    return VertexSearch(polytope, problem.objective)


def _steps_are_programmes(problem: Problem, polytope: Polytope) -> bool:
    return not _has_compact_constraints(problem) and polytope.matrix.shape[0] > SETTINGS.plan.many_constraints


def _has_compact_constraints(problem: Problem) -> bool:
    """A row or two per secret, whatever the size of the table."""
    return problem.constraints.compares_with_everybody or problem.constraints.mutual_functionals is not None


def _proof(problem: Problem, relaxation: Relaxation, search: Search) -> BranchAndBound:
    return BranchAndBound(relaxation, problem.objective, search.polish)


def _build_penalised(problem: Problem, name: str, search: Search, proof: Prover, steadiness: float) -> ColumnGeneration:
    return ColumnGeneration(
        problem, PenalisedMaster(problem, search), ProofBound(problem, proof), Pace(steadiness, 1), name
    )


def _build_residual(problem: Problem, name: str, search: Search, proof: Prover | None) -> ColumnGeneration:
    patience = search.patience if proof is not None else max(SETTINGS.driver.patience, search.patience)
    share = SETTINGS.slack.short_coarse_share if proof is None else SETTINGS.slack.coarse_share
    # Parts of alike inputs would lie across the classes that rows look at.
    beginning = CoarseStart(
        choose_generation, share, problem.size > SETTINGS.plan.many_inputs and not problem.constraints.is_local
    )
    supply = ResidualMaster(problem, search, beginning, patience)
    pace = Pace(0.0, patience, np.inf if proof is not None else SETTINGS.driver.sought * problem.prior_cost)
    return ColumnGeneration(problem, supply, RelaxationBound(problem, proof, _start_relaxation), pace, name)


def _start_relaxation(problem: Problem) -> ColumnGeneration:
    """A run on a simpler problem, which is not relaxed further."""
    run = choose_generation(merge_equal(problem).problem)  # what only other rows told apart is alike now
    run.dual_bound.disable_relaxations()
    return run


def _has_very_many_constraints(problem: Problem) -> bool:
    return not _has_compact_constraints(problem) and len(problem.inequalities) > SETTINGS.plan.most_proved


PLAN = (
    Strategy("sets of priors, linear programmes", lambda problem: problem.credal_sets is not None, _build_credal),
    Strategy("seeing the secret, closed form", is_secret_box, _build_secret_box),
    Strategy(
        "seeing the secret, linear programmes", lambda problem: not problem.objective.is_identity, _build_secret_view
    ),
    Strategy("very many inputs, by blocks of them", _needs_blocks, _build_blocks),
    Strategy(
        "one number, all vertices in a table", lambda problem: problem.constraints.is_one_dimensional, _build_interval
    ),
    Strategy("very many secrets, linear programmes", _has_very_many_secrets, _build_linear_programmes),
    Strategy("very many rows, searched without branching", _has_very_many_constraints, _build_search_only),
    Strategy("vertices of the polytope", lambda problem: True, _build_vertices),
)
