"""Tables too large for the best protocol for statistics: promise kept, and said to be unproved."""

import numpy as np
import pytest

from privacyfunnel.arrays import dense
from privacyfunnel.designs import methods
from privacyfunnel.designs.methods import Choice, Options, apply_default_use
from privacyfunnel.designs.optimal import problem_conversion, solvers
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.optimal.problem_conversion import build_problem, thin
from privacyfunnel.engine import split
from privacyfunnel.errors import SizeError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information


def joint(secrets: int, values: int) -> Joint:
    random = np.random.default_rng(values)
    shares = random.dirichlet(np.full(values, 0.8), size=secrets) * random.dirichlet(np.full(secrets, 2.0))[:, None]
    return Joint.from_counts(np.maximum(np.round(20_000 * shares), 1).astype(np.int64))


def test_statistics_of_too_many_values_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "CONDITIONED_AT_ALL", 5)
    with pytest.raises(SizeError, match=r"at most 5 values; this table has 12\. Publish fewer columns, use coarser"):
        optimal(joint(3, 12), LIP(0.7), Statistics())


def test_where_nobody_says_what_for_statistics_are_served_if_they_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, few = Choice("optimal", ""), joint(3, 12)
    assert apply_default_use(chosen, few, LIP(1.0), Options())[1].use == Statistics()
    for other in (Options(as_values=True), Options(average=0.1)):
        assert apply_default_use(chosen, few, LIP(1.0), other) == (chosen, other)
    assert apply_default_use(Choice("randomised-response"), few, LIP(1.0), Options())[1].use == Information()
    for promise, options, why in (
        (LIP(1e-9), Options(), "so small an ε"),
        (LIP(1.0), Options(sees_secret=True), "at most 64 pairs"),
    ):
        told, asked = apply_default_use(chosen, joint(8, 12), promise, options)
        assert asked.use == Information()
        assert why in told.reason
    monkeypatch.setattr(methods, "CONDITIONED_AT_ALL", 5)
    told, asked = apply_default_use(chosen, few, LIP(1.0), Options())
    assert (told.method, asked.use) == ("optimal", Information())
    assert "at most 5 values; 12 occur" in told.reason


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
