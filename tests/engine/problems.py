"""Problems for tests of the engine, their vertices by enumeration, and ways to solve them that no plan chose."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray, entropy_terms
from privacyfunnel.engine import Problem
from privacyfunnel.engine.bounds.dual_bounds import ProofBound, Prover, RelaxationBound
from privacyfunnel.engine.driver import ColumnGeneration, Pace
from privacyfunnel.engine.masters.restricted_master import PenalisedMaster, ResidualMaster
from privacyfunnel.engine.objective import Objective, reduced_costs
from privacyfunnel.engine.oracles.oracle import IntervalOracle, Oracle
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.plan import choose_generation
from privacyfunnel.engine.proofs.branch_and_bound import BranchAndBound
from privacyfunnel.engine.proofs.chords import BoxedChords, ImageChords
from privacyfunnel.engine.proofs.class_cones import ClassRelaxation, class_cones
from privacyfunnel.engine.reductions import MergeEqual
from privacyfunnel.engine.search.subspace import SubspaceSearch
from privacyfunnel.engine.search.tangent import Search, TangentSearch
from privacyfunnel.engine.search.vertices import VertexSearch
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise, pairs_with_everybody, secret_pairs
from tests.enumeration import best_split, corners

SEEDS = st.integers(0, 10**6)
SMALL = st.sampled_from([(2, 2, 2), (2, 2, 3), (3, 2, 2)])
SHAPES = st.sampled_from([(2, 2, 2), (2, 2, 3), (3, 2, 2), (3, 2, 3), (2, 3, 3)])
KINDS = st.sampled_from([LIP, LDP])


def random_joint(seed: int, shape: Sequence[int], concentration: float = 1.0) -> Joint:
    """Secrets × values, each probability drawn at random and none of them 0."""
    p = np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), concentration)).reshape(shape) + 1e-9
    return Joint.from_probabilities(p / p.sum())


def problem_of(joint: Joint, promise: Promise, *, sees_secret: bool = False) -> Problem:
    """What the engine is asked for a joint and a promise."""
    rows = promise.constraints(joint, sees_secret)
    if not sees_secret:
        return Problem.from_values(joint.p_x, rows, promise.epsilon)
    p_z = joint.p_sx.ravel()
    inputs = np.flatnonzero(p_z)
    return Problem(p_z[inputs], rows, promise.epsilon, Objective.from_groups(inputs % joint.a), inputs // joint.a)


def lip(seed: int, c: int, a: int, epsilon: float) -> Problem:
    """LIP on a random table with c secrets and a values."""
    return problem_of(random_joint(seed, (c, a), 0.5), LIP(epsilon))


def ldp(seed: int, c: int, a: int, epsilon: float) -> Problem:
    """LDP on the same table."""
    return problem_of(random_joint(seed, (c, a), 0.5), LDP(epsilon))


def made(kind: type[Promise], seed: int, c: int, a: int, epsilon: float) -> Problem:
    """LIP or LDP."""
    return problem_of(random_joint(seed, (c, a), 0.5), kind(epsilon))


def about(ratio: FloatArray, prior: FloatArray, epsilon: float, *, pairs: bool = False) -> Problem:
    """LIP, or LDP, of secrets given by P(s|z)/P(s) for every input."""
    c = len(ratio)
    share = np.full(c, 1 / c)
    rows = LinearConstraints.from_groups(ratio, share, *(secret_pairs(c) if pairs else pairs_with_everybody(c)))
    return Problem.from_values(prior, rows, epsilon)


def signed(problem: Problem) -> FloatArray:
    """Every inequality as G with G v <= 0, as the contract states them, without those that say nothing."""
    n, d = problem.constraints.dense
    e = np.exp(problem.epsilon)
    G = np.concatenate([n - e * d, d - e * n])
    return np.asarray(G[G.max(axis=1) > 0])


def excess(problem: Problem, atoms: FloatArray) -> float:
    """By how much the worst row is broken."""
    G = signed(problem)
    return float((G @ atoms.T).max(initial=-np.inf))


def vertices_of(problem: Problem) -> FloatArray:
    """Every vertex, by enumeration."""
    return corners(signed(problem))


def entropies(atoms: FloatArray) -> FloatArray:
    """H of every row."""
    return np.asarray(entropy_terms(atoms).sum(axis=1))


def cheapest(problem: Problem) -> float:
    """The value of the cheapest split, over all vertices of the polytope."""
    return best_split(vertices_of(problem), problem.prior)


def least_reduced(problem: Problem, prices: FloatArray) -> float:
    """The least reduced cost of any vertex."""
    return float(reduced_costs(problem.objective, vertices_of(problem), prices).min())


# -- ways ------------------------------------------------------------------------------------------------------------


def by_vertices(problem: Problem) -> tuple[VertexSearch, BranchAndBound]:
    """Walks over vertices, proofs by boxes of entries: fits every problem of few rows whose inputs are values."""
    polytope = build_polytope(problem)
    search = VertexSearch(polytope, problem.objective)
    return search, BranchAndBound(BoxedChords(polytope, problem.objective), problem.objective, search.polish)


def by_oracle(problem: Problem, oracle: Oracle, starts: int) -> tuple[TangentSearch, BranchAndBound]:
    """Walks by tangents, proofs by open chords, over any oracle."""
    search = TangentSearch(oracle, problem, starts)
    return search, BranchAndBound(ImageChords(oracle, problem.objective), problem.objective, search.polish)


def every_way(problem: Problem) -> list[tuple[Search, Prover]]:
    """Search and proof by vertices, and by whatever else the structure of the rows allows."""
    search, proof = by_vertices(problem)
    ways: list[tuple[Search, Prover]] = [(search, proof)]
    if problem.constraints.is_one_dimensional:
        interval = IntervalOracle(problem)
        ways.append((interval, interval))
    cones = class_cones(problem.constraints, build_polytope(problem))
    if cones is not None:
        objective = problem.objective
        ways.append((search, BranchAndBound(ClassRelaxation(cones, objective), objective, search.polish)))
    return ways


def with_loans(problem: Problem, search: Search, prover: Prover) -> ColumnGeneration:
    """The plain loop."""
    return ColumnGeneration(PenalisedMaster(problem, search), ProofBound(problem.prior, prover), Pace())


def begun(problem: Problem) -> ColumnGeneration:
    """A run on a simpler problem."""
    return choose_generation(MergeEqual().apply(problem).problem)


def with_rest(problem: Problem, search: Search, prover: Prover | None) -> ColumnGeneration:
    """The loop whose slack is one atom more, however small the problem is."""
    patience = max(1 if prover is not None else 8, search.patience)
    supply = ResidualMaster(problem, search, patience)
    return ColumnGeneration(supply, RelaxationBound(problem, prover, begun), Pace(0.8, patience))


def by_programmes(problem: Problem) -> ColumnGeneration:
    """What very many rows would get, however few there are."""
    return with_rest(problem, SubspaceSearch(problem, 128, 128), None)
