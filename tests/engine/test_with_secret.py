"""Pricers for protocols that see S: bounds against brute force, atoms against the promise, whole solves."""

import math
import time
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.problem import Splitting
from privacyfunnel.engine.with_secret import WithSecret, pricer_with_secret
from privacyfunnel.engine.with_secret_box import cheapest_in_box
from privacyfunnel.engine.with_secret_branching import entropy_terms, marginals, reduced_costs
from privacyfunnel.engine.with_secret_lip import SecretLip, sees_secret_lip
from privacyfunnel.engine.with_secret_rows import SecretRows
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.tables.adult import adult_counts

FAR = math.inf


def splitting(counts: IntArray, promise: Promise) -> Splitting:
    """The problem of a protocol that sees (s, x), over the pairs that occur."""
    joint = Joint.from_counts(counts)
    N, D = promise.rows(joint, sees_secret=True)
    occurs = np.flatnonzero(joint.p_sx.ravel() > 0)
    return Splitting(joint.p_sx.ravel()[occurs], occurs % joint.a, N[:, occurs], D[:, occurs], promise.epsilon)


@st.composite
def tables(draw: st.DrawFn, largest: int) -> IntArray:
    """Counts without empty rows or columns, often with empty cells, of at most `largest` cells."""
    c = draw(st.integers(2, largest // 2))
    a = draw(st.integers(1, largest // c))
    cell = st.one_of(st.just(0), st.integers(1, 9), st.integers(1, 2000))
    counts = np.array(draw(st.lists(st.lists(cell, min_size=a, max_size=a), min_size=c, max_size=c)), dtype=np.int64)
    counts[np.arange(c), np.arange(c) % a] += counts.sum(axis=1) == 0
    counts[np.arange(a) % c, np.arange(a)] += counts.sum(axis=0) == 0
    return counts


epsilons = st.one_of(st.just(0.0), st.floats(0.01, 3))


@st.composite
def prices(draw: st.DrawFn, inputs: int) -> FloatArray:
    size = draw(st.sampled_from([0.1, 1.0, 5.0, 1e4]))
    return size * np.array(draw(st.lists(st.floats(-1, 1), min_size=inputs, max_size=inputs)))


def lip_corners(counts: IntArray, epsilon: float) -> FloatArray:
    """Every corner: all z_s but one at an end of their range, and one value that occurs for each secret."""
    p_s = counts.sum(axis=1) / counts.sum()
    c = p_s.size
    low, high = math.exp(-epsilon) * p_s, math.exp(epsilon) * p_s
    index = np.cumsum(counts.ravel() > 0).reshape(counts.shape) - 1
    choices = [np.flatnonzero(row) for row in counts]
    corners = []
    for free in range(c):
        for ends in product(*[(low[s], high[s]) for s in range(c) if s != free]):
            z = np.insert(np.array(ends), free, 1 - sum(ends))
            if low[free] - 1e-12 <= z[free] <= high[free] + 1e-12:
                for values in product(*choices):
                    v = np.zeros(int((counts > 0).sum()))
                    v[index[np.arange(c), list(values)]] = z
                    corners.append(v)
    return np.array(corners)


def inequalities(problem: Splitting) -> FloatArray:
    """A with A v >= 0 for allowed v, as the engine's contract states them, scaled to largest entry 1."""
    N, D = csr_array(problem.numerators).toarray(), csr_array(problem.denominators).toarray()
    loud = math.exp(problem.epsilon)
    A = np.concatenate([loud * D - N, loud * N - D, np.eye(problem.prior.size)])
    A = A[np.abs(A).max(axis=1) > 1e-12]
    scaled: FloatArray = A / np.abs(A).max(axis=1, keepdims=True)
    return scaled


def corners_of(problem: Splitting) -> FloatArray:
    """Every corner of the polytope, from every choice of d - 1 inequalities that hold with equality."""
    A = inequalities(problem)
    d = problem.prior.size
    choices = np.array(list(combinations(range(A.shape[0]), d - 1)), dtype=np.int64).reshape(-1, d - 1)
    systems = np.concatenate([A[choices], np.ones((choices.shape[0], 1, d))], axis=1)
    systems = systems[np.abs(np.linalg.det(systems)) > 1e-10]
    v = np.linalg.solve(systems, np.eye(d)[:, -1:])[:, :, 0]
    feasible = np.maximum(v[(v @ A.T >= -1e-11).all(axis=1)], 0.0)
    return np.asarray(feasible / feasible.sum(axis=1, keepdims=True))


def assert_allowed(problem: Splitting, atoms: FloatArray) -> None:
    assert np.abs(atoms.sum(axis=1) - 1).max(initial=0) <= 1e-12
    assert atoms.min(initial=0) >= 0
    assert (atoms @ inequalities(problem).T).min(initial=0) >= -1e-9


def assert_prices_right(
    pricer: WithSecret, problem: Splitting, corners: FloatArray, price: FloatArray, blur: float = 0.0
) -> None:
    """Whether bounds and atoms agree with the corners, whose own reduced costs are known up to `blur`."""
    least = reduced_costs(corners, pricer.corners.group, price).min() + blur
    close = 1e-9 * (1 + np.abs(price).max()) + blur
    for target in (-least + 1e-3, -least - 1e-3, 1e-3):
        proof = pricer.prove(price, target, FAR)
        assert proof.bound <= least
        assert_allowed(problem, proof.atoms)
        refuted = reduced_costs(proof.atoms, pricer.corners.group, price).min(initial=np.inf) < -target
        assert proof.bound >= -target or refuted
    assert pricer.prove(price, -least, time.monotonic() - 1).bound <= least
    found = pricer.search(price)
    assert_allowed(problem, found)
    assert reduced_costs(found, pricer.corners.group, price).min() >= least - close


@given(data=st.data(), counts=tables(largest=9), epsilon=epsilons)
@settings(max_examples=40, deadline=None)
def test_under_lip_bounds_never_exceed_the_cheapest_corner(
    data: st.DataObject, counts: IntArray, epsilon: float
) -> None:
    problem = splitting(counts, LIP(epsilon))
    pricer = pricer_with_secret(problem)
    assert isinstance(pricer.corners, SecretLip)
    price = data.draw(prices(problem.prior.size))
    assert_prices_right(pricer, problem, lip_corners(counts, epsilon), price)


@pytest.mark.parametrize("promise", [LIP, SRLIP, LDP])
@given(data=st.data(), counts=tables(largest=6), epsilon=epsilons)
@settings(max_examples=12, deadline=None)
def test_under_any_promise_bounds_never_exceed_the_cheapest_corner(
    promise: type[Promise], data: st.DataObject, counts: IntArray, epsilon: float
) -> None:
    problem = splitting(counts, promise(epsilon))
    price = data.draw(prices(problem.prior.size))
    corners = corners_of(problem)
    blur = 1e-9 * (1 + np.abs(price).max())  # of corners that come out of a linear solver
    assert_prices_right(WithSecret(SecretRows(problem), starts=4, steadiness=0.0), problem, corners, price, blur)
    assert_prices_right(pricer_with_secret(problem), problem, corners, price, blur)


@given(data=st.data(), counts=tables(largest=12), epsilon=st.floats(0.01, 3))
@settings(max_examples=40, deadline=None)
def test_multipliers_of_any_quality_give_a_bound_that_holds(
    data: st.DataObject, counts: IntArray, epsilon: float
) -> None:
    problem = splitting(counts, SRLIP(epsilon))
    rows = SecretRows(problem)
    price = data.draw(prices(problem.prior.size))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    above, below = random.exponential(size=(2, 50, problem.numerators.shape[0])) * random.random((50, 1)) ** 4
    least = (rows.minimise(price[None]).atoms @ price).item()
    assert rows.bound(np.tile(price, (50, 1)), above, below).max() <= least + 1e-9 * (1 + np.abs(price).max())


@given(data=st.data(), counts=tables(largest=24), epsilon=st.floats(0.01, 3))
@settings(max_examples=40, deadline=None)
def test_closed_form_and_linear_solver_agree_on_lip(data: st.DataObject, counts: IntArray, epsilon: float) -> None:
    problem = splitting(counts, LIP(epsilon))
    box = sees_secret_lip(problem)
    assert box is not None
    cost = data.draw(prices(problem.prior.size))[None]
    one, other = box.minimise(cost), SecretRows(problem).minimise(cost)
    close = 1e-7 * (1 + np.abs(cost).max())
    assert abs(one.lower.item() - other.lower.item()) <= close
    for cheapest in (one, other):
        assert abs((cheapest.atoms @ cost[0]).item() - cheapest.lower.item()) <= close


@given(data=st.data(), n=st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_cheapest_point_of_a_box_is_that_of_a_linear_programme(data: st.DataObject, n: int) -> None:
    share = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n)))
    share /= share.sum()
    low, high = share * data.draw(st.floats(0, 1)), share * data.draw(st.floats(1, 4))
    cost = data.draw(prices(n))
    lower, z = cheapest_in_box(cost[None], low, high)
    programme = linprog(
        cost, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=list(zip(low, high, strict=True)), method="highs"
    )
    exact = float(cost @ np.array(programme.x))
    size = 1 + np.abs(cost).max()
    assert lower.item() <= exact + 1e-9 * size
    assert lower.item() <= z[0] @ cost
    assert lower.item() >= exact - 1e-7 * size
    assert abs(z.sum() - 1) <= 1e-12


COUNTS = np.array([[5, 3, 0], [2, 7, 4], [1, 1, 8]])


def test_lip_is_recognised_in_any_order_at_any_scale_and_with_repeats() -> None:
    problem = splitting(COUNTS, LIP(0.7))
    N, D = csr_array(problem.numerators), csr_array(problem.denominators)
    order = np.array([2, 0, 1, 0])
    scale = csr_array(np.diag([2.0, 0.5, 3.0, 1.0]))
    other = Splitting(problem.prior, problem.group + 5, scale @ N[order], scale @ D[order], problem.epsilon)
    one, two = sees_secret_lip(problem), sees_secret_lip(other)
    assert one is not None
    assert two is not None
    cost = np.random.default_rng(0).normal(size=(20, problem.prior.size))
    np.testing.assert_allclose(one.minimise(cost).atoms, two.minimise(cost).atoms, atol=1e-14)
    p_s = COUNTS.sum(axis=1) / COUNTS.sum()
    np.testing.assert_allclose(one.low, math.exp(-0.7) * p_s, rtol=1e-14)
    np.testing.assert_allclose(one.high, math.exp(0.7) * p_s, rtol=1e-14)


@pytest.mark.parametrize(
    "promise",
    [LDP(0.7), SRLIP(0.7), LIP(0.7).for_priors([Joint.from_counts(np.array([[1, 3, 0], [2, 7, 9], [1, 1, 8]]))])],
)
def test_anything_but_lip_for_one_prior_is_not_taken_for_it(promise: Promise) -> None:
    assert sees_secret_lip(splitting(COUNTS, promise)) is None


def test_rows_that_miss_a_secret_or_see_values_only_are_not_taken_for_lip() -> None:
    problem = splitting(COUNTS, LIP(0.7))
    N, D = csr_array(problem.numerators), csr_array(problem.denominators)
    assert sees_secret_lip(Splitting(problem.prior, problem.group, N[1:], D[1:], 0.7)) is None
    joint = Joint.from_counts(COUNTS)
    N, D = LIP(0.7).rows(joint)
    assert sees_secret_lip(Splitting(joint.p_x, np.arange(3), N, D, 0.7)) is None


def test_two_inputs_of_one_secret_and_value_are_left_to_the_general_pricer() -> None:
    problem = splitting(COUNTS, LIP(0.7))
    one_value = Splitting(
        problem.prior, np.zeros_like(problem.group), problem.numerators, problem.denominators, problem.epsilon
    )
    assert sees_secret_lip(one_value) is None


def test_lip_for_two_priors_is_priced_within_both() -> None:
    other = Joint.from_counts(np.array([[1, 3, 0], [2, 7, 9], [1, 1, 8]]))
    problem = splitting(COUNTS, LIP(0.3).for_priors([other]))
    N, D = SRLIP(0.3).rows(Joint.from_counts(COUNTS), sees_secret=True)
    occurs = np.flatnonzero(COUNTS.ravel())
    both = Splitting(
        problem.prior,
        problem.group,
        vstack([csr_array(problem.numerators), N[:, occurs]], format="csr"),
        vstack([csr_array(problem.denominators), D[:, occurs]], format="csr"),
        0.3,
    )
    price = np.random.default_rng(3).normal(size=problem.prior.size)
    wide, narrow = pricer_with_secret(problem), pricer_with_secret(both)
    assert_allowed(both, narrow.search(price))
    least = [pricer.prove(price, 5.0, FAR).bound for pricer in (wide, narrow)]
    best = [reduced_costs(pricer.search(price), pricer.corners.group, price).min() for pricer in (wide, narrow)]
    assert least[0] <= best[0] <= best[1] + 1e-9


def test_start_gives_every_input_as_much_as_any_atom_does() -> None:
    for promise in (LIP(0.5), SRLIP(0.5)):
        problem = splitting(COUNTS, promise)
        pricer = pricer_with_secret(problem)
        atoms = pricer.start()
        assert_allowed(problem, atoms)
        most = -pricer.corners.minimise(-np.eye(problem.prior.size)).lower
        np.testing.assert_allclose(np.diag(atoms), most, atol=1e-9)


def solved(problem: Splitting, gap: float) -> tuple[float, float]:
    """I(X;Y) of the best protocol found by plain column generation, and its upper bound."""
    pricer = pricer_with_secret(problem)
    group, p = pricer.corners.group, problem.prior
    atoms = np.concatenate([p[None], pricer.start()])
    bound = -np.inf
    while True:
        cost = entropy_terms(marginals(atoms, group)).sum(axis=1)
        scaled = atoms.T / p[:, None]
        master = linprog(cost, A_eq=scaled, b_eq=np.ones(p.size), method="highs-ds")
        price = master.eqlin.marginals / p
        new = pricer.search(price)
        new = new[reduced_costs(new, group, price) < -gap / 4]
        if not new.shape[0]:
            proof = pricer.prove(price, gap / 2, FAR)
            bound = max(bound, float(price @ p) + proof.bound)
            new = proof.atoms
        value = float(cost @ master.x)
        if value - bound <= gap:
            entropy = float(entropy_terms(marginals(p[None], group)).sum())
            return entropy - value, entropy - bound
        atoms = np.concatenate([atoms, new])


@pytest.mark.parametrize(
    ("secret", "value", "promise", "expected"),
    [
        ("marital-status", "sex", LIP(0.5), 0.4891),
        ("marital-status", "relationship", LIP(0.5), 0.8133),
        ("occupation", "sex", LIP(0.5), 0.4840),
        ("marital-status", "sex", SRLIP(0.5), 0.2885),
        ("occupation", "sex", SRLIP(0.5), 0.2022),
    ],
)
def test_whole_solves_on_adult_reach_the_reference_values(
    secret: str, value: str, promise: Promise, expected: float
) -> None:
    counts, _ = adult_counts(secret, value)
    utility, bound = solved(splitting(counts, promise), gap=1e-5)
    assert utility == pytest.approx(expected, abs=6e-5)
    assert utility - 1e-9 <= bound <= utility + 1e-5


def test_a_fair_coin_that_is_the_secret_itself_is_flipped_with_the_known_probability() -> None:
    utility, bound = solved(splitting(np.array([[1, 0], [0, 1]]), LIP(0.5)), gap=1e-9)
    flip = math.exp(-0.5) / 2
    expected = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
    assert utility == pytest.approx(expected, abs=1e-9)
    assert bound == pytest.approx(expected, abs=2e-9)
