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

MANY_INPUTS = 350  # below, atoms are few enough to be searched for in the polytope itself, and prices soon right
MANY_ROWS = 130  # beyond, inverting bases of so many rows takes longer than linear programmes one by one
MOST_PROVED = 500  # rows; with more, a box takes so long to bound that branching says nothing in time
MOST_BRANCHED = 700  # inputs; with more, first prices are far from right, and blocks are solved first
MANY_OF_TWO = 1500  # inputs of one number; with more, tables of all pairs are long to price
FIRST_BLOCK = 64  # inputs of the first blocks: a tenth of a second each
LARGEST_BLOCK = 1200  # inputs; the atoms that a master of more knows fill hundreds of megabytes, and nothing is proved
NEIGHBOURS = 128  # inputs of one walk where a step is a linear programme: those who share the smallest classes
FIRST_NEIGHBOURS = 256  # the same for the first atoms: rare inputs that nobody hides cost most, and more can hide them
WALKS_IN_CLOSED_FORM, WALKS_BY_PROGRAMME = 96, 3  # at once: what a step costs differs a thousandfold
WALKS_OVER_SETS, PATIENCE_OVER_SETS = 24, 4  # a proof takes so much longer than walks that they come first …
FEW_INPUTS = 32  # with more, sets of priors have too many rows that matter to bring them in one by one, …
WALKS_OVER_WIDE_SETS = 8  # … and a step of a walk is a linear programme of its own
PIVOTS_PER_BOX = 8  # over sets: a box that needs more is cut first, and its halves go on; few would hold up the rest
STEADY = 0.8  # weight of past prices where many splits cost the same; 0 where an atom is sought at its very prices
PATIENCE = 8  # searches in vain where no proof says that there is nothing to be found …
SOUGHT = 3e-4  # … worth this much of what the prior costs, however wide the gap: while it is open, prices are rough
COARSE_SHARE, SHORT_COARSE_SHARE = 0.6, 0.3  # of the time to search, for the smaller problem; less where none is proved
REFINING_SHARE, REFINING_SECONDS = 0.1, 0.5  # of a time limit, and at least so many, to make a split exact in the end
VERY_MANY_SECRETS = 250  # rows of LIP and LDP beyond which inverting their bases takes seconds a step


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
    return Clock(clock.start, clock.deadline + max(REFINING_SHARE * (clock.deadline - clock.start), REFINING_SECONDS))


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
    search = TangentSearch(oracle, problem, WALKS_IN_CLOSED_FORM)
    return _build_penalised(
        problem, name, search, _proof(problem, ImageChords(oracle, problem.objective), search), STEADY
    )


def _build_secret_view(problem: Problem, name: str) -> ColumnGeneration:
    oracle = ConstraintOracle(problem)
    search = TangentSearch(oracle, problem, WALKS_BY_PROGRAMME)
    return _build_penalised(problem, name, search, _proof(problem, ImageChords(oracle, problem.objective), search), 0.0)


def _build_linear_programmes(problem: Problem, name: str) -> ColumnGeneration:
    oracle = ConstraintOracle(problem)
    search = TangentSearch(oracle, problem, WALKS_BY_PROGRAMME)
    proof = _proof(problem, ImageChords(oracle, problem.objective), search)
    if problem.size > MANY_INPUTS:
        return _build_residual(problem, name, search, proof)
    return _build_penalised(problem, name, search, proof, 0.0)


def _has_very_many_secrets(problem: Problem) -> bool:
    return _has_compact_constraints(problem) and problem.constraints.share.shape[1] > VERY_MANY_SECRETS


def _build_credal(problem: Problem, name: str) -> ColumnGeneration:
    few = problem.size <= FEW_INPUTS
    oracle: CredalBatchOracle | CredalOracle = (
        CredalBatchOracle(problem, PIVOTS_PER_BOX) if few else CredalOracle(problem)
    )
    search = TangentSearch(oracle, problem, WALKS_OVER_SETS if few else WALKS_OVER_WIDE_SETS)
    relaxation: Relaxation = ImageChords(oracle, problem.objective)
    if problem.objective.is_identity:
        relaxation = CredalChords(oracle, problem.objective)
    bounding = ProofBound(problem, _proof(problem, relaxation, search))
    return ColumnGeneration(problem, PenalisedMaster(problem, search), bounding, Pace(0.0, PATIENCE_OVER_SETS), name)


def _build_search_only(problem: Problem, name: str) -> ColumnGeneration:
    return _build_residual(problem, name, SubspaceSearch(problem, NEIGHBOURS, FIRST_NEIGHBOURS), None)


def _build_vertices(problem: Problem, name: str) -> ColumnGeneration:
    """Vertices of the polytope, or what finds more in time; proofs by classes where there are any, else by boxes."""
    polytope = build_polytope(problem)
    search = _search(problem, polytope)
    cones = class_cones(problem.constraints, polytope)
    relaxation: Relaxation = BoxedChords(polytope, problem.objective)
    if cones is not None:
        relaxation = ClassRelaxation(cones, problem.objective)
    proof = _proof(problem, relaxation, search)
    if _steps_are_programmes(problem, polytope) or (problem.size > MANY_INPUTS and cones is None):
        return _build_residual(problem, name, search, proof)
    return _build_penalised(problem, name, search, proof, 0.0)


def _build_blocks(problem: Problem, name: str) -> ColumnGeneration:
    """Splits within blocks of inputs, which are joined; proofs where one block can hold all inputs."""
    supply = BlockMaster(problem, _block_generation, FIRST_BLOCK, LARGEST_BLOCK)
    proof = None
    if problem.size <= LARGEST_BLOCK:
        polytope = build_polytope(problem)
        proof = _proof(problem, BoxedChords(polytope, problem.objective), VertexSearch(polytope, problem.objective))
    blocks = -(-problem.size // FIRST_BLOCK)
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
    most = MANY_OF_TWO if problem.constraints.is_one_dimensional else MOST_BRANCHED
    return _has_compact_constraints(problem) and problem.size > most and not _has_very_many_secrets(problem)


def _search(problem: Problem, polytope: Polytope) -> Search:
    if _steps_are_programmes(problem, polytope):
        return SubspaceSearch(problem, NEIGHBOURS, FIRST_NEIGHBOURS)
    return VertexSearch(polytope, problem.objective)


def _steps_are_programmes(problem: Problem, polytope: Polytope) -> bool:
    return not _has_compact_constraints(problem) and polytope.matrix.shape[0] > MANY_ROWS


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
    patience = search.patience if proof is not None else max(PATIENCE, search.patience)
    share = SHORT_COARSE_SHARE if proof is None else COARSE_SHARE
    # Parts of alike inputs would lie across the classes that rows look at.
    beginning = CoarseStart(choose_generation, share, problem.size > MANY_INPUTS and not problem.constraints.is_local)
    supply = ResidualMaster(problem, search, beginning, patience)
    pace = Pace(0.0, patience, np.inf if proof is not None else SOUGHT * problem.prior_cost)
    return ColumnGeneration(problem, supply, RelaxationBound(problem, proof, _start_relaxation), pace, name)


def _start_relaxation(problem: Problem) -> ColumnGeneration:
    """A run on a simpler problem, which is not relaxed further."""
    run = choose_generation(merge_equal(problem).problem)  # what only other rows told apart is alike now
    run.dual_bound.disable_relaxations()
    return run


def _has_very_many_constraints(problem: Problem) -> bool:
    return not _has_compact_constraints(problem) and len(problem.inequalities) > MOST_PROVED


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
