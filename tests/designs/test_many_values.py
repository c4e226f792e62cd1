"""Tables too large for the best protocol for statistics: promise kept, and said to be unproved."""

import numpy as np
import pytest

from privacyfunnel.arrays import dense
from privacyfunnel.designs import method_selection
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.forced_response_design import forced_response, total_squared_error
from privacyfunnel.designs.method_selection import Choice, apply_default_use, choose_method, make_design
from privacyfunnel.designs.methods import Options, find_method
from privacyfunnel.designs.optimal import problem_conversion, statistics_solver
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.optimal.problem_conversion import build_problem, thin
from privacyfunnel.engine import split
from privacyfunnel.mechanisms.sealing import exact_worst_leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information


def joint(secrets: int, values: int) -> Joint:
    random = np.random.default_rng(values)
    shares = random.dirichlet(np.full(values, 0.8), size=secrets) * random.dirichlet(np.full(secrets, 2.0))[:, None]
    return Joint.from_counts(np.maximum(np.round(20_000 * shares), 1).astype(np.int64))


@pytest.mark.parametrize("promise", [LIP(0.7), LDP(1.0)])
def test_too_many_values_get_a_forced_response_with_the_most_truth(
    promise: Promise, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = joint(3, 12)
    best = optimal(few, promise, Statistics())
    monkeypatch.setattr(statistics_solver, "CONDITIONED_AT_ALL", 5)
    other = optimal(few, promise, Statistics())
    assert other.sealed is not None
    assert not exact_worst_leak(other.sealed.mechanism, promise, few).exceeds(promise.epsilon)
    assert other.value == pytest.approx(total_squared_error(few, forced_response(few, promise), Statistics()), rel=1e-6)
    assert best.value <= other.value < Statistics().value(few, randomised_response(few, promise))
    assert other.bound == 0.0


def test_where_nobody_says_what_for_statistics_are_served_if_they_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, few = Choice("optimal", ""), joint(3, 12)
    assert apply_default_use(chosen, few, LIP(1.0), Options())[1].use == Statistics()
    for other in (Options(as_values=True), Options(average=0.1)):
        assert apply_default_use(chosen, few, LIP(1.0), other) == (chosen, other)
    assert apply_default_use(Choice("chain", ""), few, LIP(1.0), Options())[1].use == Information()
    for promise, options, why in (
        (LIP(1e-9), Options(), "so small an ε"),
        (LIP(1.0), Options(sees_secret=True), "at most 64 pairs"),
    ):
        told, asked = apply_default_use(chosen, joint(8, 12), promise, options)
        assert asked.use == Information()
        assert why in told.reason
    many = joint(2, 310)
    assert apply_default_use(chosen, many, LIP(1.0), Options(), named=True)[0] == chosen
    monkeypatch.setattr(method_selection, "CONDITIONED_AT_ALL", 300)
    assert "not sought" in apply_default_use(chosen, many, LIP(1.0), Options(), named=True)[0].reason
    assert apply_default_use(chosen, many, LIP(1.0), Options())[0].method == "forced-response"
    assert apply_default_use(chosen, many, LIP(1.0), Options(sees_secret=True))[0].method == "optimal"


def test_of_two_methods_the_one_that_keeps_more_information_is_taken_and_the_reason_says_so() -> None:
    few = joint(3, 12)
    forced = find_method("forced-response").design(few, LIP(0.7)).information
    for name in ("optimal", "randomised-response"):
        alone = find_method(name).design(few, LIP(0.7)).information
        taken, found = make_design(Choice(name, "a reason", alternative="forced-response"), few, LIP(0.7), Options())
        assert found.information == pytest.approx(max(alone, forced), abs=1e-6)
        assert taken.method == (name if alone >= forced else "forced-response")
        assert (taken.reason == "a reason") == (alone >= forced)
        if alone < forced:
            assert f"{forced:.2f} nats instead of {alone:.2f}" in taken.reason


def test_beside_a_chain_that_nobody_asked_for_a_forced_response_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method_selection, "SOLVED_WELL", 10)
    table = Joint.from_counts(np.arange(1, 37).reshape(3, 4, 3), names=["u", "v"])
    assert choose_method(table, LIP(1.0)) == Choice("chain", choose_method(table, LIP(1.0)).reason, "forced-response")
    assert not choose_method(table, SRLIP(1.0)).alternative


def test_a_split_of_too_many_entries_for_a_file_is_thinned_and_keeps_the_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = joint(4, 30)
    problem, _, _ = build_problem(table, LIP(0.5), False)
    found = split(problem, gap=1e-2)
    assert thin(found) is found
    entries = int(np.count_nonzero(dense(found.atoms)))
    monkeypatch.setattr(problem_conversion, "MOST_ENTRIES", entries // 2)
    few = thin(found)
    atoms = dense(few.atoms)
    assert np.count_nonzero(atoms) <= entries // 2 + table.a
    assert 1 < len(few.weights) < len(found.weights)
    assert problem.is_feasible(atoms).all()
    np.testing.assert_allclose(few.weights @ atoms, problem.prior)
    best = optimal(table, LIP(0.5), gap=1e-2)
    assert best.sealed is not None
    assert best.sealed.epsilon <= 0.5
    assert best.utility <= best.bound
