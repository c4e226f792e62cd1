"""The plan: the only place that chooses how a problem is solved. Every threshold stands here, with its reason.

A way is an oracle, a search, a proof and how they are run. The first line of `PLAN` that fits wins. Where the second
moment of a split counts, moment_plan.py is the same.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, sparse
from privacyfunnel.engine.best_first import BestFirst, Relaxation
from privacyfunnel.engine.blocks import ByBlocks, WithinBlock
from privacyfunnel.engine.bounding import ByProof, ByRelaxations, NoProof, Prover
from privacyfunnel.engine.chords import BoxedChords, OpenChords
from privacyfunnel.engine.classes import ByClasses, class_cones
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.generation import Generation, Pace, Progress
from privacyfunnel.engine.hull_chords import HullChords
from privacyfunnel.engine.hull_cone import extended_cone
from privacyfunnel.engine.hull_corners import HullCorners
from privacyfunnel.engine.hulls import HullOracle
from privacyfunnel.engine.interval import Interval
from privacyfunnel.engine.neighbours import NeighbourSearch
from privacyfunnel.engine.oracle import Oracle, is_secret_box, secret_box
from privacyfunnel.engine.polytope import Polytope, boxed, polytope_of
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.programme import RowsOracle
from privacyfunnel.engine.reductions import merged
from privacyfunnel.engine.rules import Rules
from privacyfunnel.engine.search import InputsInTurn, InTurn, Search, TangentSearch, VertexSearch
from privacyfunnel.engine.some_inputs import SomeInputsSearch
from privacyfunnel.engine.supply import Beginning, WithLoans, WithRest

MANY_INPUTS = 150  # below, atoms are few enough to be searched for in the polytope itself, and prices soon right
MANY_ROWS = 130  # beyond, inverting bases of so many rows takes longer than linear programmes one by one
MOST_PROVED = 500  # rows; with more, a box takes so long to bound that branching says nothing in time
MOST_BRANCHED = 700  # inputs; with more, first prices are far from right, and blocks are solved first
MANY_OF_TWO = 1500  # inputs of one number; with more, tables of all pairs are long to price
FIRST_BLOCK = 64  # inputs of the first blocks: a tenth of a second each
LARGEST_BLOCK = 1200  # inputs; the atoms that a master of more knows fill hundreds of megabytes, and nothing is proved
TOGETHER = 128  # inputs of one walk where a step is a linear programme
NEIGHBOURS = 128  # the same where rows look at classes: those who share the smallest ones are enough to hide an input
FIRST_NEIGHBOURS = 256  # the same for the first atoms: rare inputs that nobody hides cost most, and more can hide them
BOXES = (0.5, 0.35, 0.65, 0.45, 0.55)  # places of a box within ε under LDP, the most useful first
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
class Way:
    """How a kind of problem is solved: its name, when it is chosen, and what makes the run."""

    name: str
    when: Callable[[Problem], bool]
    made: Callable[[Problem, str], Generation]


def generation_for(problem: Problem) -> Generation:
    """The column generation that suits the problem."""
    way = next(way for way in PLAN if way.when(problem))
    return way.made(problem, way.name)


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
    clock = Clock.of(time_limit)
    small = merged(problem)
    generation = generation_for(small.problem)
    generation.run(gap, time_limit, progress, None if start is None else small.lifted(start))
    return small.told_apart(generation.best(_afterwards(clock)), most_atoms)


def _afterwards(clock: Clock) -> Clock:
    """What may pass until the best split is refined, beyond the limit too."""
    return Clock(clock.begun, clock.deadline + max(REFINING_SHARE * (clock.deadline - clock.begun), REFINING_SECONDS))


def cone_rows(problem: Problem) -> sparse.csr_array:
    """Rows of one linear programme over multiples of allowed atoms."""
    if problem.sets is None:
        return problem.cone()
    rules = Rules.of(problem)
    return extended_cone(rules, problem.prior, np.arange(len(rules.one)))


def linear_oracle(problem: Problem) -> Oracle:
    """What minimises linear costs over the allowed atoms, with a proof of each minimum."""
    return RowsOracle(problem) if problem.sets is None else HullOracle(problem)


# -- the ways ------------------------------------------------------------------------------------------------------


def _by_interval(problem: Problem, name: str) -> Generation:
    interval = Interval(problem)
    return _with_loans(problem, name, interval, interval, 0.0)


def _seeing_secret_in_a_box(problem: Problem, name: str) -> Generation:
    oracle = secret_box(problem)
    search = TangentSearch(oracle, problem, WALKS_IN_CLOSED_FORM)
    return _with_loans(problem, name, search, _proof(problem, OpenChords(oracle, problem.objective), search), STEADY)


def _seeing_secret(problem: Problem, name: str) -> Generation:
    oracle = RowsOracle(problem)
    search = TangentSearch(oracle, problem, WALKS_BY_PROGRAMME)
    return _with_loans(problem, name, search, _proof(problem, OpenChords(oracle, problem.objective), search), 0.0)


def _by_programmes(problem: Problem, name: str) -> Generation:
    oracle = RowsOracle(problem)
    search = TangentSearch(oracle, problem, WALKS_BY_PROGRAMME)
    proof = _proof(problem, OpenChords(oracle, problem.objective), search)
    if problem.size > MANY_INPUTS:
        return _with_rest(problem, name, SomeInputsSearch(problem, TOGETHER), proof)
    return _with_loans(problem, name, search, proof, 0.0)


def _has_very_many_secrets(problem: Problem) -> bool:
    return _has_few_rows(problem) and problem.rows.share.shape[1] > VERY_MANY_SECRETS


def _over_sets(problem: Problem, name: str) -> Generation:
    few = problem.size <= FEW_INPUTS
    oracle: HullCorners | HullOracle = HullCorners(problem, PIVOTS_PER_BOX) if few else HullOracle(problem)
    search = TangentSearch(oracle, problem, WALKS_OVER_SETS if few else WALKS_OVER_WIDE_SETS)
    relaxation: Relaxation = OpenChords(oracle, problem.objective)
    if problem.objective.plain:
        relaxation = HullChords(oracle, problem.objective)
    bounding = ByProof(problem, _proof(problem, relaxation, search))
    return Generation(problem, WithLoans(problem, search), bounding, Pace(0.0, PATIENCE_OVER_SETS), name)


def _without_proof(problem: Problem, name: str) -> Generation:
    return _with_rest(problem, name, _by_steps(problem), None)


def _by_steps(problem: Problem) -> Search:
    """Walks each step of which is a programme over some inputs."""
    if problem.rows.local:
        return NeighbourSearch(problem, NEIGHBOURS, FIRST_NEIGHBOURS)
    return SomeInputsSearch(problem, TOGETHER)


def _by_vertices(problem: Problem, name: str) -> Generation:
    """Vertices of the polytope, or what finds more in time; proofs by classes where there are any, else by boxes."""
    polytope = polytope_of(problem)
    search = _search(problem, polytope)
    cones = class_cones(problem.rows, polytope)
    relaxation: Relaxation = BoxedChords(polytope, problem.objective)
    if cones is not None:
        relaxation = ByClasses(cones, problem.objective)
    proof = _proof(problem, relaxation, search)
    if _steps_are_programmes(problem, polytope) or (problem.size > MANY_INPUTS and cones is None):
        return _with_rest(problem, name, search, proof)
    return _with_loans(problem, name, search, proof, 0.0)


def _by_blocks(problem: Problem, name: str) -> Generation:
    """Splits within blocks of inputs, which are joined; proofs where one block can hold all inputs."""
    supply = ByBlocks(problem, _within_a_block, FIRST_BLOCK, LARGEST_BLOCK)
    proof = None
    if problem.size <= LARGEST_BLOCK:
        polytope = polytope_of(problem)
        proof = _proof(problem, BoxedChords(polytope, problem.objective), VertexSearch(polytope, problem.objective))
    blocks = -(-problem.size // FIRST_BLOCK)
    bounding = ByRelaxations(problem, proof, _begun, one_secret=True)
    return Generation(problem, supply, bounding, Pace(0.0, blocks), name)


def _within_a_block(problem: Problem) -> Generation:
    search = Interval(problem) if problem.rows.of_two else InputsInTurn(polytope_of(problem), problem.objective)
    return Generation(problem, WithinBlock(problem, search), NoProof(), Pace(0.0, search.patience))


def _is_divided(problem: Problem) -> bool:
    """Whether inputs are too many for one master, and blocks of them are the same problem."""
    most = MANY_OF_TWO if problem.rows.of_two else MOST_BRANCHED
    return _has_few_rows(problem) and problem.size > most and not _has_very_many_secrets(problem)


def _search(problem: Problem, polytope: Polytope) -> Search:
    rows = problem.rows
    if _steps_are_programmes(problem, polytope):
        return _by_steps(problem)
    own = VertexSearch(polytope, problem.objective)
    if rows.each_other is not None and problem.size > MANY_INPUTS:
        boxes = [
            boxed(problem.prior, rows.each_other, -place * problem.epsilon, (1 - place) * problem.epsilon)
            for place in BOXES
        ]
        return InTurn([*(VertexSearch(box, problem.objective) for box in boxes), own])
    return own


def _steps_are_programmes(problem: Problem, polytope: Polytope) -> bool:
    return not _has_few_rows(problem) and polytope.matrix.shape[0] > MANY_ROWS


def _has_few_rows(problem: Problem) -> bool:
    """A row or two per secret, whatever the size of the table."""
    return problem.rows.against_everybody or problem.rows.each_other is not None


def _proof(problem: Problem, relaxation: Relaxation, search: Search) -> BestFirst:
    return BestFirst(relaxation, problem.objective, search.polished)


def _with_loans(problem: Problem, name: str, search: Search, proof: Prover, steadiness: float) -> Generation:
    return Generation(problem, WithLoans(problem, search), ByProof(problem, proof), Pace(steadiness, 1), name)


def _with_rest(problem: Problem, name: str, search: Search, proof: Prover | None) -> Generation:
    patience = search.patience if proof is not None else max(PATIENCE, search.patience)
    share = SHORT_COARSE_SHARE if proof is None else COARSE_SHARE
    # Parts of alike inputs would lie across the classes that rows look at.
    beginning = Beginning(generation_for, share, problem.size > MANY_INPUTS and not problem.rows.local)
    supply = WithRest(problem, search, beginning, patience)
    pace = Pace(STEADY, patience, np.inf if proof is not None else SOUGHT * problem.worth)
    return Generation(problem, supply, ByRelaxations(problem, proof, _begun), pace, name)


def _begun(problem: Problem) -> Generation:
    """A run on a simpler problem, which is not relaxed further."""
    run = generation_for(merged(problem).problem)  # what only other rows told apart is alike now
    run.bounding.relax_no_further()
    return run


def _has_very_many_rows(problem: Problem) -> bool:
    return not _has_few_rows(problem) and len(problem.inequalities) > MOST_PROVED


PLAN = (
    Way("sets of priors, linear programmes", lambda problem: problem.sets is not None, _over_sets),
    Way("seeing the secret, closed form", is_secret_box, _seeing_secret_in_a_box),
    Way("seeing the secret, linear programmes", lambda problem: not problem.objective.plain, _seeing_secret),
    Way("very many inputs, by blocks of them", _is_divided, _by_blocks),
    Way("one number, all vertices in a table", lambda problem: problem.rows.of_two, _by_interval),
    Way("very many secrets, linear programmes", _has_very_many_secrets, _by_programmes),
    Way("very many rows, searched without branching", _has_very_many_rows, _without_proof),
    Way("vertices of the polytope", lambda problem: True, _by_vertices),
)
