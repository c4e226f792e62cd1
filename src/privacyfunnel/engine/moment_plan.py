"""The plan where the second moment of a split counts: the only place that chooses how such a problem is solved.

Every threshold stands here, with its reason; the first line of `MOMENT_PLAN` that fits wins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.best_first import BestFirst
from privacyfunnel.engine.bounding import Prover
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.conditioning import Conditioning, Tools
from privacyfunnel.engine.curved import Curved
from privacyfunnel.engine.generation import Progress
from privacyfunnel.engine.hull_products import MissingRows
from privacyfunnel.engine.hulls import HullOracle
from privacyfunnel.engine.interval import Interval
from privacyfunnel.engine.moments import Moment
from privacyfunnel.engine.polytope import Polytope, polytope_of
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.product_programme import BestProducts, ProductProgramme
from privacyfunnel.engine.products import Products, cone_of
from privacyfunnel.engine.programme import RowsOracle
from privacyfunnel.engine.reductions import grouped_secrets
from privacyfunnel.engine.search import VertexSearch
from privacyfunnel.engine.sparse_products import SparseProgramme
from privacyfunnel.engine.squared_chords import EverCloser, SquaredChords
from privacyfunnel.engine.tangent_walks import TangentWalks
from privacyfunnel.engine.twos import WithTwos

MOST_MULTIPLIED = 64  # inputs; with more, products of rows have too many entries for a box to be bounded in time
MOST_PAIRED = 2000  # inputs; with more, a table of all pairs and a form of all entries no longer fit
SIMPLER_GAP = 0.01  # of its value: how well a simpler problem is solved where the second moment counts
MOST_MULTIPLIED_ROWS = 130  # beyond, walks over vertices take longer than what they find is worth
FEW_ROWS = 20  # of five secrets under LDP; atoms then have so few entries that boxes of entries close
SEARCHED_LONG = 0.6  # of a time limit, where a proof is quick once prices are right, and says little before
ENDING = 0.05  # of a time limit: for the last mixture, without atoms of no weight
WALKS_BY_TANGENTS = 8  # at once, where each step is a linear programme
VERY_MANY_ROWS = 250  # of the polytope; beyond, inverting its bases takes seconds a step, and gigabytes


def conditioned(
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
    clock = Clock.of(time_limit)
    run = conditioning_for(problem, moment, clock)
    run.run(gap, clock.part(1 - ENDING).remaining, progress, start, absolute=absolute)
    return run.best(clock)


def conditioning_for(problem: Problem, moment: Moment, clock: Clock = FOREVER) -> Conditioning:
    """The run that suits the problem where its second moment counts; it must end by the clock."""
    way = next(way for way in MOMENT_PLAN if way.when(problem))
    return Conditioning(problem, moment, way.made(problem, moment, clock), way.name)


@dataclass(frozen=True, slots=True)
class MomentWay:
    """How a kind of problem is solved: its name, when it is chosen, and what seeks and proves."""

    name: str
    when: Callable[[Problem], bool]
    made: Callable[[Problem, Moment, Clock], Tools]


def _pairs(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    interval = Interval(problem)

    def charged(objective: Curved) -> Prover:
        interval.charge(objective)
        return interval

    return Tools(interval, charged)


def _by_products(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    polytope = polytope_of(problem)
    search = VertexSearch(polytope, problem.objective)
    return Tools(search, _multiplied(problem, polytope, search, ProductProgramme, clock))


def _by_some_products(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    """The same where entries and pairs are many: all atoms over two inputs in a table, and few entries looked at."""
    polytope = polytope_of(problem)
    search = WithTwos(VertexSearch(polytope, problem.objective), problem)
    return Tools(search, _multiplied(problem, polytope, search, SparseProgramme, clock))


def _by_chords(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    """The same where secrets are few, so that atoms have few entries: boxes of these, and chords of squares."""
    polytope = polytope_of(problem)
    search, reach = WithTwos(VertexSearch(polytope, problem.objective), problem), list[FloatArray]()

    def charged(objective: Curved) -> Prover:
        if not reach:
            reach.append(polytope.reach(clock.deadline))
        search.charge(objective)
        return EverCloser(SquaredChords(polytope, objective, reach[0]), search.polished)

    return Tools(search, charged, share=SEARCHED_LONG)


def _multiplied(
    problem: Problem,
    polytope: Polytope,
    search: VertexSearch | WithTwos,
    best_products: type[BestProducts],
    clock: Clock,
) -> Callable[[Curved], Prover]:
    """Proofs by products of rows."""
    cone, reach = cone_of(problem), list[FloatArray]()

    def charged(objective: Curved) -> Prover:
        if not reach:
            reach.append(np.minimum(cone.image @ polytope.reach(clock.deadline), 1.0))
        search.charge(objective)
        return BestFirst(Products(cone, objective, reach[0], None, best_products), objective, search.polished)

    return charged


def _by_groups(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    """Searched as before; bounded by each secret against all others, which is proved at once (Theorem 7a)."""
    return Tools(VertexSearch(polytope_of(problem), problem.objective), None, _one_by_one(problem, moment))


def _by_programmes(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    """Bounded in the same way; a step of a walk is a linear programme, for bases are too large to be inverted."""
    search = TangentWalks(RowsOracle(problem), problem, WALKS_BY_TANGENTS)
    return Tools(search, None, _one_by_one(problem, moment))


def _one_by_one(problem: Problem, moment: Moment) -> Callable[[float], float]:
    """A bound by each secret against all others."""
    groups = grouped_secrets(problem)

    def simpler(seconds: float) -> float:
        clock, best = Clock.of(seconds), 0.0
        for s in range(0 if groups is None else groups.count):
            easier = None if groups is None or clock.late else groups.singled_out([s])
            if easier is not None:
                run = conditioning_for(easier, moment, clock)
                run.run(SIMPLER_GAP, clock.remaining)
                best = max(best, run.bound)
        return best

    return simpler


def _has_sets(problem: Problem) -> bool:
    return problem.sets is not None


def _has_pairs(problem: Problem) -> bool:
    """Few enough inputs for a table of all pairs of them, and each a value of its own."""
    return problem.objective.plain and problem.size <= MOST_PAIRED and len(problem.inequalities) <= MOST_MULTIPLIED_ROWS


def _has_few_rows(problem: Problem) -> bool:
    return _has_pairs(problem) and len(problem.inequalities) <= FEW_ROWS


def _has_very_many_rows(problem: Problem) -> bool:
    """Rows of its polytope: one per secret where all are compared with everybody, or with each other."""
    rows = problem.rows
    compact = rows.against_everybody or rows.each_other is not None
    return (rows.share.shape[1] if compact else len(problem.inequalities)) > VERY_MANY_ROWS


def _is_small(problem: Problem) -> bool:
    return problem.size <= MOST_MULTIPLIED


def _products_over_sets(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    """Walks by tangents, and products of rows; those that sets ask for arrive where a proof misses them."""
    oracle, missing = HullOracle(problem), MissingRows(problem)
    beyond = (problem.objective.value >= len(moment.factor)).astype(np.float64)
    cone = cone_of(problem, -float(oracle.minimise(-beyond[None, :], clock.deadline).lower[0]) if beyond.any() else 0.0)
    search = TangentWalks(oracle, problem, WALKS_BY_TANGENTS)
    reach: list[FloatArray] = []

    def charged(objective: Curved) -> Prover:
        if not reach:
            reach.append(np.minimum(cone.image @ oracle.reach(clock.deadline), 1.0))
        return BestFirst(Products(cone, objective, reach[0], missing), objective, search.polished)

    return Tools(search, charged, _by_the_table(problem, moment))


def _over_sets_without_proof(problem: Problem, moment: Moment, clock: Clock) -> Tools:
    """The same walks, without a proof of their own."""
    search = TangentWalks(HullOracle(problem), problem, WALKS_BY_TANGENTS)
    return Tools(search, None, _by_the_table(problem, moment))


def _by_the_table(problem: Problem, moment: Moment) -> Callable[[float], float]:
    """A bound by what the table's own rows allow: the table is a member of its sets."""

    def simpler(seconds: float) -> float:
        clock = Clock.of(seconds)
        run = conditioning_for(_in_the_table(problem, moment), moment, clock)
        run.run(SIMPLER_GAP, clock.remaining)
        return run.bound

    return simpler


def _in_the_table(problem: Problem, moment: Moment) -> Problem:
    """The same without sets, and without inputs that the table lacks: its rows do not speak of these."""
    inputs = np.flatnonzero(problem.objective.value < len(moment.factor))
    if len(inputs) == problem.size:
        return replace(problem, sets=None)
    part, seen = problem.among(inputs), float(problem.prior[inputs].sum())
    rows = replace(part.rows, functionals=part.rows.functionals * seen, even=problem.rows.even)
    return replace(part, prior=part.prior / seen, rows=rows)


MOMENT_PLAN = (
    MomentWay("sets of priors, products of rows", lambda p: _has_sets(p) and _is_small(p), _products_over_sets),
    MomentWay("sets of priors, bounded by the table's own rows", _has_sets, _over_sets_without_proof),
    MomentWay("one number, all vertices in a table", lambda p: p.objective.plain and p.rows.of_two, _pairs),
    MomentWay("very many rows, linear programmes", _has_very_many_rows, _by_programmes),
    MomentWay("vertices of the polytope, products of rows", _is_small, _by_products),
    MomentWay("vertices of the polytope, chords of squares", _has_few_rows, _by_chords),
    MomentWay("vertices of the polytope, some products of rows", _has_pairs, _by_some_products),
    MomentWay("vertices of the polytope, bounded by groups of secrets", lambda problem: True, _by_groups),
)
