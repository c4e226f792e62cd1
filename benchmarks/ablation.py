"""What each strategy of the engine is worth: every instance solved with every strategy switched off.

python -m benchmarks.ablation                               every instance and strategy: some hours
python -m benchmarks.ablation --quick                       the instances that take few seconds
python -m benchmarks.ablation --only interval,product_proofs --instances lip,census
python -m benchmarks.ablation --table                       print the table of what was measured, measure nothing
python -m benchmarks.ablation --fresh                       measure again what is known
python -m benchmarks.ablation --check                       compare the engine as it is with the rows on file

A strategy is in the engine because some row of this table needs it. A row is defended where, without the strategy, the
value is worse, the gap wider or the work longer than the limits below allow; "better without" is the opposite. A
strategy that no row defends can be deleted.

Each pair runs in a process of its own. Its clock is the processor's, so that other programs disturb neither limits nor
seconds, and its work is counted: linear programmes and their iterations (HiGHS), pivots of programmes that are solved
in batches, boxes of branch and bound, and atoms that masters learned. A first run of each instance notes which
functions of the engine it enters: strategies of which it enters none are "unused" there, and not measured.

Results are kept in a CSV file, which a later run goes on from. Seconds differ by some per cent from run to run; "again"
measures the engine as it is a second time, and so shows how much.
"""

import argparse
import csv
import inspect
import math
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

from benchmarks.attributes import FOUR, adult_joint
from benchmarks.goals.zipf import zipf
from privacyfunnel.arrays import dense
from privacyfunnel.designs.methods import Effort, Options, find_method
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.optimal.privacy_funnel import optimal_on_average
from privacyfunnel.engine import plan, reductions
from privacyfunnel.engine.bounds import dual_bounds, side_channels
from privacyfunnel.engine.clock import WORK
from privacyfunnel.engine.driver import ColumnGeneration, DualBound, Pace
from privacyfunnel.engine.masters import actions, blocks, moment, restricted_master
from privacyfunnel.engine.masters import average as average_master
from privacyfunnel.engine.objective import Objective
from privacyfunnel.engine.oracles import constraint_oracle, credal_batch, oracle, polytope
from privacyfunnel.engine.plan import Request
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.proofs import (
    branch_and_bound,
    chords,
    class_cones,
    products,
)
from privacyfunnel.engine.reductions import PartsProblem
from privacyfunnel.engine.search import subspace, tangent, vertices
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.information import entropy, information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.uses.use import Information

FILE = Path(__file__).parent / "goals" / "ablation.csv"
WORSE_VALUE = 0.005  # of the scale of an instance: a value that is worse by more defends a strategy …
WORSE_GAP = 0.005  # … and so does a gap that is wider by more
MOST_WORSE = 0.02  # the same for --check, which compares the engine with what it was
WORSE_WORK = 0.10  # … and counted work that is longer by this share, on runs that came to their end
WORSE_TIME, LEAST_SECONDS = 0.4, 0.3  # the same for processor time, which a busy machine changes by a third
QUICK = 4.0  # seconds: instances of --quick have no more
NEARLY_ALL = 0.8  # of its limit: a run that took more was ended by the clock
PATIENCE = 8.0  # times its limit, by the clock: a process that takes longer is ended
BASE, AGAIN = "base", "again"
THREADS = "OPENBLAS_NUM_THREADS"
TINY = 1e-12  # what a scale of 0 is taken for
UNUSED, PENDING, FAILED = "unused", "pending", "failed"


# -- what is solved --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an instance; scale is what differences of value and bound are divided by."""

    value: float
    bound: float
    scale: float
    outputs: int = 0
    upwards: bool = True  # whether more is better


@dataclass(frozen=True, slots=True)
class Instance:
    """A table and what is asked of it, with the processor seconds it may take. Making the table does not count."""

    name: str
    seconds: float
    table: Callable[[], Joint]
    solve: Callable[[Joint, float], Answer]


def ask(
    promise: Callable[[Joint], Promise], use: str = Information.name, gap: float = 1e-3, *, sees_secret: bool = False
) -> Callable[[Joint, float], Answer]:
    """The best protocol for a use; the gap is a share of H(X) for information, else in the use's own unit."""

    def solve(joint: Joint, seconds: float) -> Answer:
        about = use == Information.name
        h_x = entropy(joint.p_x)
        asked = gap * h_x if about else gap
        best = optimal(joint, promise(joint), use, sees_secret=sees_secret, gap=asked, time_limit=seconds)
        return Answer(best.value, best.bound, h_x if about else abs(best.value), len(best.made.outputs), about)

    return solve


def average(share: float, promise: Promise | None = None) -> Callable[[Joint, float], Answer]:
    """The classical funnel: so much of I(S;X) may be told on average."""

    def solve(joint: Joint, seconds: float) -> Answer:
        most = share * information(joint.p_sx)
        best = optimal_on_average(joint, most, promise, gap=1e-4, time_limit=seconds)
        return Answer(best.utility, best.bound, entropy(joint.p_x), len(best.protocol.outputs))

    return solve


def by_method(name: str, promise: Promise) -> Callable[[Joint, float], Answer]:
    """A method that solves many small problems; nothing bounds what it keeps but H(X)."""

    def solve(joint: Joint, seconds: float) -> Answer:
        made = find_method(name).design(joint, promise, Options(effort=Effort(1e-4, seconds)))
        return Answer(made.information, made.information, entropy(joint.p_x))

    return solve


@cache
def dirichlet(*shape: int) -> Joint:
    """p ~ Dirichlet(½), with integer counts."""
    p = np.random.default_rng(0).dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)
    return Joint.from_probabilities(p)


@cache
def uniform(*shape: int) -> Joint:
    """Uniform random p."""
    p = np.random.default_rng(0).random(shape)
    return Joint.from_probabilities(p / p.sum())


@cache
def skewed(secrets: int, values: int) -> Joint:
    """Values of Zipf's sizes."""
    return zipf(secrets, values, 0)


@cache
def sparse_counts(secrets: int, values: int) -> Joint:
    """Counts of 0 to 2: many values have the same distribution of the secret."""
    counts = np.random.default_rng(0).integers(0, 3, (secrets, values))
    return Joint.from_counts(counts[:, counts.sum(axis=0) > 0])


@cache
def sample(rows: int, secrets: int, values: int) -> Joint:
    """A table of few records, which sets of priors are wide for."""
    counts = np.random.default_rng(0).multinomial(rows, skewed(secrets, values).p_sx.ravel())
    counts = counts.reshape(secrets, -1)
    return Joint.from_counts(counts[:, counts.sum(axis=0) > 0])


def always(promise: Promise) -> Callable[[Joint], Promise]:
    """The same promise, whatever the table."""
    return lambda joint: promise


def for_people(kind: type[Promise]) -> Callable[[Joint], Promise]:
    """ε = 1 for the population that the table is a sample of."""
    return lambda joint: kind(1.0).for_population(joint, 0.95)


def instances() -> Iterator[Instance]:
    """Every promise, use and size class."""
    yield from about_information()
    yield from about_attributes()
    yield from about_statistics()
    yield from about_others()


def census() -> Joint:
    """15 secrets, 16 values."""
    return adult_joint("occupation", "education")


def about_information() -> Iterator[Instance]:
    """LIP and LDP, by the size of the table."""
    lip, ldp = always(LIP(1.0)), always(LDP(1.0))
    yield Instance("lip-2x1000", 4, partial(skewed, 2, 1000), ask(lip, gap=1e-5))
    yield Instance("lip-2x4000", 8, partial(skewed, 2, 4000), ask(lip))
    yield Instance("lip-5x16", 4, partial(dirichlet, 5, 16), ask(lip, gap=1e-6))
    yield Instance("ldp-5x16", 4, partial(dirichlet, 5, 16), ask(ldp, gap=1e-6))
    yield Instance("lip-census", 4, census, ask(lip, gap=1e-6))
    yield Instance("ldp-census", 6, census, ask(always(LDP(0.5)), gap=1e-5))
    yield Instance("lip-10x50", 4, partial(skewed, 10, 50), ask(lip, gap=1e-5))
    yield Instance("ldp-10x50", 6, partial(skewed, 10, 50), ask(ldp, gap=1e-4))
    yield Instance("lip-10x200", 8, partial(skewed, 10, 200), ask(lip))
    yield Instance("ldp-10x200", 10, partial(skewed, 10, 200), ask(ldp))
    yield Instance("lip-10x300", 10, partial(dirichlet, 10, 300), ask(lip))
    yield Instance("lip-10x600", 12, partial(skewed, 10, 600), ask(lip))
    yield Instance("lip-10x1000", 12, partial(skewed, 10, 1000), ask(lip))
    yield Instance("ldp-10x1000", 12, partial(skewed, 10, 1000), ask(ldp))
    yield Instance("lip-10x4000", 40, partial(skewed, 10, 4000), ask(lip))
    yield Instance("lip-300x30", 8, partial(uniform, 300, 30), ask(lip))
    yield Instance("lip-300x200", 10, partial(uniform, 300, 200), ask(lip))
    yield Instance("lip-alike-3x400", 4, partial(sparse_counts, 3, 400), ask(lip))


def about_attributes() -> Iterator[Instance]:
    """SRLIP of several columns, protocols that see the secret, and sets of priors."""
    lip, ldp, srlip = always(LIP(1.0)), always(LDP(1.0)), always(SRLIP(1.0))
    yield Instance("srlip-2-columns", 6, partial(uniform, 3, 5, 6), ask(srlip))
    yield Instance("srlip-3-columns", 8, partial(uniform, 2, 3, 3, 4), ask(srlip))
    yield Instance("srlip-3-skewed", 8, partial(dirichlet, 3, 3, 3, 3), ask(always(SRLIP(0.5))))
    three = partial(adult_joint, "income", "relationship", "race", "sex")
    yield Instance("srlip-3-census", 10, three, ask(srlip))
    yield Instance("srlip-3-occupation", 20, partial(adult_joint, "occupation", *FOUR[1:]), ask(srlip))
    yield Instance("srlip-4-census", 30, partial(adult_joint, "income", *FOUR), ask(srlip))
    yield Instance("sees-lip", 6, partial(adult_joint, "occupation", "race"), ask(lip, gap=1e-4, sees_secret=True))
    sees = partial(adult_joint, "marital-status", "relationship")
    yield Instance("sees-ldp", 6, sees, ask(ldp, gap=1e-4, sees_secret=True))
    yield Instance("sees-srlip", 6, sees, ask(srlip, gap=1e-4, sees_secret=True))
    few = partial(adult_joint, "income", "education")
    people = for_people(LIP)
    yield Instance("population-lip", 10, few, ask(people))
    yield Instance("population-ldp", 10, partial(sample, 5000, 4, 12), ask(for_people(LDP)))
    yield Instance("population-5x60", 15, partial(sample, 50_000, 5, 60), ask(people))


def about_statistics() -> Iterator[Instance]:
    """The error of all shares."""
    lip, ldp, srlip, people = always(LIP(1.0)), always(LDP(1.0)), always(SRLIP(1.0)), for_people(LIP)
    sees = partial(adult_joint, "marital-status", "relationship")
    few = partial(adult_joint, "income", "education")
    yield Instance("statistics-2x60", 4, partial(dirichlet, 2, 60), ask(lip, "statistics"))
    yield Instance("statistics-lip-census", 8, census, ask(lip, "statistics"))
    yield Instance("statistics-ldp-census", 10, census, ask(ldp, "statistics"))
    yield Instance("statistics-lip-5x100", 10, partial(skewed, 5, 100), ask(lip, "statistics"))
    yield Instance("statistics-ldp-5x100", 12, partial(skewed, 5, 100), ask(ldp, "statistics"))
    yield Instance("statistics-lip-15x100", 12, partial(skewed, 15, 100), ask(lip, "statistics"))
    yield Instance("statistics-300x30", 10, partial(uniform, 300, 30), ask(lip, "statistics"))
    yield Instance("statistics-srlip", 8, partial(uniform, 2, 4, 5), ask(srlip, "statistics"))
    yield Instance("statistics-sees", 8, sees, ask(lip, "statistics", sees_secret=True))
    yield Instance("statistics-population", 12, few, ask(people, "statistics"))
    yield Instance("statistics-population-5x80", 12, partial(sample, 50_000, 5, 80), ask(people, "statistics"))
    yield Instance("balanced-census", 12, census, ask(lip, "balanced"))


def about_others() -> Iterator[Instance]:
    """Linear uses, averages, and methods that solve many small problems."""
    lip, ldp = always(LIP(1.0)), always(LDP(1.0))
    yield Instance("values-census", 4, census, ask(lip, "values", gap=1e-6))
    yield Instance("distance-census", 8, partial(dirichlet, 5, 16), ask(ldp, "distance:squared", gap=1e-6))
    yield Instance("average-5x16", 8, partial(dirichlet, 5, 16), average(0.25))
    yield Instance("average-lip-5x12", 8, partial(dirichlet, 5, 12), average(0.25, LIP(1.0)))


# -- what is switched off --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strategy:
    """A part of the engine: what it consists of, and how a process does without it."""

    name: str
    instead: str  # what is done in its place
    parts: tuple[object, ...]  # modules, classes and functions
    entered: tuple[object, ...]  # those of which one is entered wherever the strategy counts
    switch_off: Callable[[], None]

    @property
    def lines(self) -> int:
        """Lines of source, with their comments."""
        return sum(len(inspect.getsourcelines(cast(Any, part))[0]) for part in self.parts)

    @property
    def codes(self) -> set[CodeType]:
        """The code of its functions; making an object is no use of it yet."""
        return {code for part in self.entered for code in codes_of(part) if code.co_name != "__init__"}


STRATEGIES: dict[str, Strategy] = {}


def without(*parts: object, entered: object = None) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter a strategy, called as its function is; the function's docstring says what is done in its place."""

    def enter(switch_off: Callable[[], None]) -> Callable[[], None]:
        name = switch_off.__name__
        met = parts if entered is None else (entered,)
        STRATEGIES[name] = Strategy(name, (switch_off.__doc__ or "").strip(), parts, met, switch_off)
        return switch_off

    return enter


def codes_of(part: object) -> Iterator[CodeType]:
    """The code of a function, or of all functions of a class or a module."""
    if isinstance(part, FunctionType):
        yield part.__code__
    elif isinstance(part, property) and isinstance(part.fget, FunctionType):
        yield part.fget.__code__
    elif isinstance(part, staticmethod | classmethod):
        yield from codes_of(part.__func__)
    elif isinstance(part, type | ModuleType):
        own = part.__name__ if isinstance(part, ModuleType) else part.__module__
        for each in vars(part).values():
            if getattr(each, "__module__", own) == own and not isinstance(each, ModuleType):
                yield from codes_of(each)


def put(holder: object, thing: Any, other: object) -> None:
    """Have another thing stand in a module or class where this one does."""
    if not hasattr(holder, thing.__name__):
        raise LookupError(f"A strategy can be replaced where it is used; {holder} does not use {thing.__name__}.")
    setattr(holder, thing.__name__, other)


def replace_way(made: object, other: Callable[[Request, str], ColumnGeneration] | None = None) -> None:
    """Solve another way what these lines of the plan would: the next that fits, where none is named."""

    def chosen(request: Request) -> ColumnGeneration:
        way = next(way for way in plan.PLAN if way.when(request) and (way.build is not made or other is not None))
        return other(request, way.name) if other is not None and way.build is made else way.build(request, way.name)

    put(plan, plan.choose, chosen)


def drop_ways(*made: object) -> None:
    """Solve with the next line of the plan that fits."""

    def chosen(request: Request) -> ColumnGeneration:
        way = next(way for way in plan.PLAN if way.when(request) and way.build not in made)
        return way.build(request, way.name)

    put(plan, plan.choose, chosen)


def nothing_simpler(*_: object) -> Callable[[float], float]:
    """No bound by a simpler problem."""
    return lambda seconds: 0.0


class PolytopeWalks(tangent.TangentSearch):
    """Descents by tangents over a polytope, in place of walks over its vertices."""

    def __init__(self, polytope: polytope.Polytope, objective: Objective) -> None:
        shape = SimpleNamespace(objective=objective, size=polytope.inputs)
        super().__init__(polytope, cast(Problem, shape), vertices.VertexSearch.starts)


# Those in doubt come first: this is the order in which they are measured.


@without(class_cones, entered=class_cones.ClassRelaxation)
def class_cone_boxes() -> None:
    """SRLIP: chords over boxes of entries prove, as they do elsewhere"""
    put(plan, class_cones.class_cones, lambda rows, polytope: None)


@without(
    restricted_master.ResidualMaster,
    restricted_master.repair_split,
    restricted_master.ResidualSlack,
    entered=restricted_master.ResidualMaster,
)
def rest_master() -> None:
    """a master with loans, however many inputs there are, and proofs at its prices"""

    def with_loans(problem: Problem, name: str, search: Any, proof: Any) -> ColumnGeneration:
        if proof is not None:
            return plan._build_penalised(problem, name, search, proof)
        bound, pace = (
            dual_bounds.RelaxationBound(problem, None, plan._start_relaxation),
            Pace(patience=SETTINGS.driver.patience, closest=SETTINGS.driver.sought * problem.prior_cost),
        )
        return ColumnGeneration(restricted_master.PenalisedMaster(problem, search), bound, pace, name)

    put(plan, plan._build_residual, with_loans)


@without(reductions.PartsProblem, reductions.refine_merged, entered=reductions.refine_merged)
def alike_inputs_apart() -> None:
    """inputs that no row tells apart stay mixed in every atom"""

    def invert(self: PartsProblem, split: Split, most_atoms: int | None = None) -> Split:
        atoms = dense(split.atoms)[:, self.part_of] * self.share
        return replace(split, atoms=atoms, value=float(split.weights @ self.original.costs(atoms)))

    put(PartsProblem, PartsProblem.invert, invert)


@without(reductions.MergeEqual, entered=reductions.refine_merged)
def alike_inputs_merged() -> None:
    """inputs that no row tells apart are inputs of their own"""

    put(reductions.MergeEqual, reductions.MergeEqual.accepts, lambda self, problem: False)


@without(moment.DirectionMaster)
def steepest_rounds() -> None:
    """statistics: one programme and one search, in place of turns until nothing is found"""
    vars(SETTINGS.moments)["direction_rounds"] = 1


def image_chords(oracle: Any, objective: Objective, *, resumes: bool = False) -> chords.ImageChords:
    """Chords over the whole polytope in place of boxes."""
    return chords.ImageChords(oracle, objective)


@without(chords.BoxedChords)
def boxed_chords() -> None:
    """chords over the whole polytope (ImageChords), not over boxes"""
    put(plan, chords.BoxedChords, image_chords)


@without(credal_batch)
def credal_simplex_kernel() -> None:
    """sets of priors over few inputs: one programme of HiGHS after the other, as over many"""
    vars(SETTINGS.plan)["few_credal_inputs"] = 0


@without(products, entered=plan._build_moment_products)
def product_proofs() -> None:
    """statistics of few values: chords of squares, or groups of secrets"""
    drop_ways(plan._build_moment_products)


@without(chords.SquaredChords)
def squared_chord_proofs() -> None:
    """statistics of many values and few secrets: bounded by groups of secrets"""
    drop_ways(plan._build_moment_chords)


@without(products.CredalProductCuts)
def credal_product_rows() -> None:
    """statistics over sets of priors: proofs by the table's own rows"""
    put(plan, products.CredalProductCuts, lambda problem: None)


@without(plan._build_moment_credal, products.CredalProductCuts)
def credal_product_proofs() -> None:
    """statistics over sets of priors: bounded by the table's own rows alone"""
    drop_ways(plan._build_moment_credal)


@without(plan._table_bound)
def bound_by_the_table() -> None:
    """statistics over sets of priors: no bound by the table's own rows"""
    put(plan, plan._table_bound, nothing_simpler)


@without(plan._single_secret_bound)
def moment_bound_by_groups() -> None:
    """statistics: no bound by one secret against the others"""
    put(plan, plan._single_secret_bound, nothing_simpler)


@without(average_master.GibbsBoxes._bounds)
def gibbs_steps() -> None:
    """average: one linear bound of a box, at the place of the box it came from"""
    vars(SETTINGS.proofs)["entropic_steps"] = 1


@without(average_master.AverageDescent)
def funnel_walks() -> None:
    """average: mixtures of known atoms and chance ones as they are"""
    put(average_master.AverageDescent, average_master.AverageDescent.descend, lambda self, v, prices, mu, steps: v)


@without(actions.LineMaster)
def number_line() -> None:
    """squared distance: one programme, with the values themselves as actions"""
    vars(SETTINGS.averages)["line_rounds"] = 1


@without(subspace)
def subspace_search() -> None:
    """SRLIP of many rows: descents over all inputs, not among neighbours"""

    def over_all(problem: Problem, together: int, at_first: int) -> tangent.TangentSearch:
        return tangent.TangentSearch(
            constraint_oracle.ConstraintOracle(problem), problem, SETTINGS.search.programme_starts
        )

    put(plan, subspace.SubspaceSearch, over_all)


@without(dual_bounds.RelaxationBound._bound_single_secrets)
def one_secret_bounds() -> None:
    """no bound by each secret against the others"""
    put(dual_bounds.RelaxationBound, dual_bounds.RelaxationBound._bound_single_secrets, lambda self, clock: [])


@without(side_channels, entered=side_channels.ConditionalEntropyBound)
def side_channel_bounds() -> None:
    """SRLIP: no bound by what side channels leave open"""
    put(dual_bounds.RelaxationBound, dual_bounds.RelaxationBound._side_channel_bounds, lambda self, deadline: iter(()))


@without(side_channels.ConditionalEntropyBound._initial_bound)
def finer_side_channels() -> None:
    """SRLIP: parts of side channels begin from no bound"""
    put(
        side_channels.ConditionalEntropyBound,
        side_channels.ConditionalEntropyBound._initial_bound,
        lambda self, asked, part: 0.0,
    )


@without(dual_bounds.RelaxationBound)
def simpler_problems() -> None:
    """proofs at prices alone, wherever there is something that proves"""

    def by_proof(problem: Problem, prover: Any, begin: Any, one_secret: bool = False) -> object:
        return DualBound() if prover is None else dual_bounds.ProofBound(problem.prior, prover)

    put(plan, dual_bounds.RelaxationBound, by_proof)


@without(blocks)
def input_blocks() -> None:
    """very many inputs: one master of all, as for hundreds"""
    replace_way(plan._build_blocks, plan._build_vertices)


@without(oracle.IntervalOracle)
def interval_table() -> None:
    """two secrets: vertices of the polytope, as for more"""
    drop_ways(plan._build_interval, plan._build_moment_interval)


@without(oracle.SecretBox)
def secret_box() -> None:
    """seeing the secret under LIP: linear programmes, not the closed form"""
    replace_way(plan._build_secret_box)


@without(vertices.VertexSearch)
def vertex_search() -> None:
    """walks by tangents over the same polytope, never from vertex to vertex"""
    put(plan, vertices.VertexSearch, PolytopeWalks)


@without(plan._build_vertices)
def batched_simplex_kernel() -> None:
    """the polytope's programmes by HiGHS, one after the other"""
    replace_way(plan._build_vertices, plan._build_linear_programmes)


@without(plan._build_linear_programmes)
def very_many_secrets() -> None:
    """hundreds of secrets: vertices of the polytope, as for fewer (VERY_MANY_SECRETS, VERY_MANY_ROWS)"""
    vars(SETTINGS.plan)["very_many_secrets"] = 10**9


@without(plan._build_search_only)
def most_proved() -> None:
    """SRLIP of very many rows: branched all the same (MOST_PROVED)"""
    vars(SETTINGS.plan)["most_proved"] = 10**9


@without(subspace)
def many_rows() -> None:
    """SRLIP of many rows: walks over vertices, as for few (MANY_ROWS)"""
    vars(SETTINGS.plan)["many_constraints"] = 10**9
    vars(SETTINGS.plan)["most_proved"] = 10**9


@without(plan._build_blocks)
def most_branched_at_1500() -> None:
    """blocks from 1,500 inputs on (MOST_BRANCHED)"""
    vars(SETTINGS.plan)["most_branched"] = 1500


@without(polytope._floors)
def compact_floor() -> None:
    """LDP: a row for every pair of secrets, no floor"""

    def in_full(problem: Problem) -> polytope.Polytope:
        if problem.constraints.mutual_functionals is None:
            return polytope.build_polytope(problem)
        A = problem.inequalities
        none = np.zeros(A.shape[0])
        return polytope._assemble(A, none, A.max(axis=1, initial=0.0), problem.prior, problem.size)

    put(plan, polytope.build_polytope, in_full)


@without(chords.trim_boxes)
def trimmed_boxes() -> None:
    """boxes are cut, and never trimmed by reduced costs"""
    put(chords, chords.trim_boxes, lambda low, high, reduced, room: (low, high))


@without(branch_and_bound.BranchAndBound._select_atoms)
def polished_solutions() -> None:
    """proofs hand back no atoms that walks from a relaxation's solutions find"""
    put(
        plan,
        plan._proof,
        lambda problem, relaxation, search: branch_and_bound.BranchAndBound(
            relaxation, problem.objective, lambda atoms, prices: atoms[:0]
        ),
    )


@without(vertices.VertexSearch._cheapest)
def vertex_pool() -> None:
    """walks over vertices begin by chance alone, never at vertices that were met"""
    put(
        vertices.VertexSearch,
        vertices.VertexSearch._cheapest,
        lambda self, prices: self._pool[np.empty(0, dtype=np.int64)],
    )


@without(plan._build_secret_box)
def steady_prices() -> None:
    """searches at the master's own prices, not at a running average (STEADY)"""
    vars(SETTINGS.driver)["secret_box_damping"] = 0.0


# -- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of an instance without a strategy."""

    instance: str
    strategy: str
    outcome: str = ""  # empty where it was solved
    value: float = math.nan
    bound: float = math.nan
    scale: float = math.nan
    upwards: bool = True
    seconds: float = math.nan  # of the processor
    outputs: int = 0
    programmes: int = 0  # of HiGHS
    iterations: int = 0
    pivots: int = 0  # of programmes in batches
    boxes: int = 0
    atoms: int = 0

    @property
    def gap(self) -> float:
        """Between value and bound, a share."""
        return abs(self.bound - self.value) / max(self.scale, TINY)

    @property
    def steps(self) -> int:
        """Counted work: steps of programmes, and boxes."""
        return self.iterations + self.pivots + self.boxes

    @property
    def measured(self) -> bool:
        """Whether there are numbers."""
        return not self.outcome


def measure(instance: Instance, joint: Joint, strategy: Strategy | None, name: str) -> Row:
    """One row; called in a process of its own."""
    if strategy is not None:
        strategy.switch_off()
    begun = time.process_time()
    found = instance.solve(joint, instance.seconds)
    seconds = time.process_time() - begun
    return Row(
        instance.name,
        name,
        "",
        found.value,
        found.bound,
        found.scale,
        found.upwards,
        seconds,
        found.outputs,
        **{name: getattr(WORK, name) for name in ("programmes", "iterations", "pivots", "boxes", "atoms")},
    )


def entered(instance: Instance, joint: Joint) -> set[str]:
    """The strategies that an instance comes by; called in a process of its own."""
    met: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            met.add(frame.f_code)

    sys.setprofile(note)
    try:
        instance.solve(joint, instance.seconds)
    finally:
        sys.setprofile(None)
    return {name for name, strategy in STRATEGIES.items() if strategy.codes & met}


def alone(work: Callable[[], object], seconds: float) -> object:
    """What the work answers in a process of its own, by the processor's clock; a text where it fails."""
    processes = multiprocessing.get_context("fork")
    mine, theirs = processes.Pipe(duplex=False)

    def run(answer: Connection) -> None:
        most = int(PATIENCE * seconds) + 60
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        put(time, time.monotonic, time.process_time)
        try:
            answer.send(work())
        except LookupError:  # a switch that finds nothing to switch off is a mistake of this file
            raise
        except Exception as error:  # whatever it is, it is what came of it
            answer.send(f"{type(error).__name__}: {error}"[:200])

    child = processes.Process(target=run, args=(theirs,))
    child.start()
    theirs.close()
    try:
        return mine.recv() if mine.poll(3 * PATIENCE * seconds + 180) else "no answer in time"
    except EOFError:
        return "ended without an answer"
    finally:
        child.terminate()
        child.join()


class Results:
    """Rows by instance and strategy, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[str, str], Row] = {}
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                for line in csv.DictReader(file):
                    row = _read(line)
                    self.rows[row.instance, row.strategy] = row

    def put(self, *rows: Row) -> None:
        """Have these, and write all."""
        self.rows |= {(row.instance, row.strategy): row for row in rows}
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Row)])
            writer.writerows([_written(value) for value in asdict(row).values()] for row in self.rows.values())

    def missing(self, instance: str, strategy: str) -> bool:
        """Whether it is to be measured."""
        row = self.rows.get((instance, strategy))
        return row is None or row.outcome == PENDING


def _written(value: object) -> object:
    return f"{value:.7g}" if isinstance(value, float) else value


def _read(line: Mapping[str, str]) -> Row:
    kinds: dict[str, Callable[[str], object]] = {"float": float, "int": int, "bool": str(True).__eq__, "str": str}
    values: dict[str, Any] = {}
    for field in fields(Row):
        kind = field.type if isinstance(field.type, str) else field.type.__name__
        values[field.name] = kinds[kind](line[field.name])
    return Row(**values)


def measure_all(results: Results, chosen: Sequence[Instance], names: Sequence[str]) -> None:
    """Measure what is missing: all instances as they are, strategy by strategy, and all instances again."""
    for instance in chosen:
        if results.missing(instance.name, BASE):
            results.put(_row(instance, BASE))
        if any((instance.name, name) not in results.rows for name in names):
            joint, half = instance.table(), replace(instance, seconds=instance.seconds / 2)
            used = alone(partial(entered, half, joint), instance.seconds)
            met = used if isinstance(used, set) else set(STRATEGIES)
            new = [name for name in STRATEGIES if (instance.name, name) not in results.rows]
            results.put(*(Row(instance.name, name, PENDING if name in met else UNUSED) for name in new))
    for name in (*names, AGAIN):
        for instance in chosen:
            if results.missing(instance.name, name):
                results.put(_row(instance, name))


def _row(instance: Instance, name: str) -> Row:
    joint, begun = instance.table(), time.perf_counter()
    found = alone(partial(measure, instance, joint, STRATEGIES.get(name), name), instance.seconds)
    row = found if isinstance(found, Row) else Row(instance.name, name, f"{FAILED}: {found}")
    said = f"{row.seconds:.1f} s, gap {row.gap:.2%}" if row.measured else row.outcome
    print(
        f"{instance.name:<28} {name:<26} {said} ({time.perf_counter() - begun:.0f} s by the clock)",
        file=sys.stderr,
        flush=True,
    )
    return row


# -- what is said of it ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """What became of an instance without a strategy: shares of its scale, and of its seconds."""

    instance: str
    value: float  # by how much the value is worse
    gap: float  # by how much the gap is wider
    time: float  # by what share it took longer
    steps: float  # by what share more steps were counted; 0 where time ended them
    failed: str = ""

    @property
    def worse(self) -> bool:
        """Whether the strategy is needed here."""
        return bool(self.failed) or self.value > WORSE_VALUE or self.gap > WORSE_GAP or self._slower

    @property
    def better(self) -> bool:
        """Whether the strategy does harm here."""
        if self.failed or self.worse:
            return False
        quicker = self.time < -WORSE_TIME or (self.steps < -WORSE_WORK and self.time < WORSE_WORK)
        return self.value < -WORSE_VALUE or self.gap < -WORSE_GAP or quicker

    @property
    def _slower(self) -> bool:
        longer = self.time > WORSE_TIME or (self.steps > WORSE_WORK and self.time > -WORSE_WORK)
        return longer and self.gap > -WORSE_GAP

    def __str__(self) -> str:
        if self.failed:
            return f"{self.instance} ({self.failed})"
        work = f"time {self.time:+.0%}, steps {self.steps:+.0%}"
        return f"{self.instance} (value {-self.value:+.2%}, gap {self.gap:+.2%}, {work})"


def change(base: Sequence[Row], row: Row, seconds: float) -> Change | None:
    """How a row differs from the runs with all strategies in that limit; None where nothing was measured."""
    if row.outcome.startswith(FAILED):
        return Change(row.instance, math.nan, math.nan, math.nan, math.nan, row.outcome)
    if not row.measured or not base:
        return None
    sign = 1.0 if row.upwards else -1.0
    scale = max(base[0].scale, TINY)

    def from_one(one: Row) -> tuple[float, float, float, float]:
        took = row.seconds - one.seconds
        share = took / one.seconds if abs(took) > LEAST_SECONDS else 0.0
        ended = max(row.seconds, one.seconds) < NEARLY_ALL * seconds
        steps = row.steps / max(one.steps, 1) - 1 if ended else 0.0
        return sign * (one.value - row.value) / scale, row.gap - one.gap, share, steps

    # Of two runs the one that is nearer: what lies between them is chance.
    differences = zip(*(from_one(one) for one in base), strict=True)
    return Change(row.instance, *(min(several, key=abs) for several in differences))


def check(results: Results, chosen: Sequence[Instance]) -> bool:
    """Solve every instance once and compare with the row on file, without writing; whether none is worse."""
    fine = True
    for instance in chosen:
        row = _row(instance, BASE)
        base = [one for name in (BASE, AGAIN) if (one := results.rows.get((instance.name, name))) and one.measured]
        found = change(base, row, instance.seconds)
        if found is None:
            print(f"{instance.name:<28} nothing on file; {row.outcome or f'value {row.value:.6g}, gap {row.gap:.3%}'}")
            continue
        worse = bool(found.failed) or max(found.value, found.gap) > MOST_WORSE or found.steps > WORSE_WORK
        fine = fine and not worse
        print(f"{'WORSE' if worse else 'fine':<6} {found}", flush=True)
    return fine


def print_table(results: Results, chosen: Iterable[Instance], names: Iterable[str]) -> None:
    """Every instance as the engine solves it; then every strategy, with the instances that need it."""
    asked = list(chosen)
    print(f"{'instance':<28} {'value':>10} {'bound':>10} {'gap':>8} {'seconds':>8}  counted work")
    for instance in asked:
        row = results.rows.get((instance.name, BASE))
        if row is None or not row.measured:
            print(f"{instance.name:<28} {'not measured' if row is None else row.outcome}")
            continue
        print(
            f"{row.instance:<28} {row.value:>10.5g} {row.bound:>10.5g} {row.gap:>8.2%} {row.seconds:>8.2f}  "
            f"{row.programmes:,} programmes, {row.iterations:,} iterations, {row.pivots:,} pivots, "
            f"{row.boxes:,} boxes, {row.atoms:,} atoms"
        )
    for name in names:
        print(verdict(results, asked, STRATEGIES[name]), flush=True)


def verdict(results: Results, chosen: Sequence[Instance], strategy: Strategy) -> str:
    """Lines about one strategy."""
    found = []
    unused = pending = 0
    for instance in chosen:
        row = results.rows.get((instance.name, strategy.name))
        base = [results.rows.get((instance.name, name)) for name in (BASE, AGAIN)]
        unused += row is not None and row.outcome == UNUSED
        pending += row is None or row.outcome == PENDING
        one = (
            None
            if row is None
            else change([each for each in base if each is not None and each.measured], row, instance.seconds)
        )
        if one is not None:
            found.append(one)
    worse, better = [one for one in found if one.worse], [one for one in found if one.better]
    said = "not defended" if not worse else "defended by: " + ", ".join(one.instance for one in worse)
    if pending and not worse:
        said = "not defended so far"
    lines = [
        f"\n{strategy.name}: {strategy.lines} lines; without: {strategy.instead}",
        f"  {said}  [{len(found)} measured, {unused} unused, {pending} to be measured]",
    ]
    lines += [f"    worse without   {one}" for one in worse]
    lines += [f"    better without  {one}" for one in better]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    """Measure what is asked for, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description="What each strategy is worth.")
    parser.add_argument("--quick", action="store_true", help=f"instances of at most {QUICK:g} s")
    parser.add_argument("--only", help="strategies, by their names with commas between")
    parser.add_argument("--instances", help="those whose name has one of these words, with commas between")
    parser.add_argument("--file", type=Path, default=FILE, help="where results are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--check", action="store_true", help="compare the engine with the rows on file, write nothing")
    parser.add_argument("--fresh", action="store_true", help="measure again what is known")
    asked = parser.parse_args(words)
    names = asked.only.split(",") if asked.only else list(STRATEGIES)
    unknown = [name for name in names if name not in STRATEGIES]
    if unknown:
        sys.exit(f"There is no strategy '{unknown[0]}'. There are: {', '.join(STRATEGIES)}.")
    chosen = [each for each in instances() if not asked.quick or each.seconds <= QUICK]
    if asked.instances:
        chosen = [each for each in chosen if any(word in each.name for word in asked.instances.split(","))]
    results = Results(asked.file)
    if asked.check:
        sys.exit(0 if check(results, chosen) else 1)
    if asked.fresh:
        for each in chosen:
            for name in (BASE, AGAIN, *names):
                results.rows.pop((each.name, name), None)
    if not asked.table:
        with suppress(KeyboardInterrupt):
            measure_all(results, chosen, names)
    print_table(results, chosen, names)


if __name__ == "__main__":
    if os.environ.get(THREADS) != "1":  # threads would count as work
        os.execve(
            sys.executable, [sys.executable, "-m", "benchmarks.ablation", *sys.argv[1:]], os.environ | {THREADS: "1"}
        )
    main(sys.argv[1:])
