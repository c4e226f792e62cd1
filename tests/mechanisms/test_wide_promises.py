"""Real or synthetic records under promises about several secrets, one-sided ones and named events, in fractions."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from privacyfunnel.designs.wide.real_or_synthetic_design import WideDesign, design_real_or_synthetic
from privacyfunnel.designs.wide.real_share_bound import bound_real_share
from privacyfunnel.errors import ParameterError
from privacyfunnel.mechanisms.decoy_slacks import listed_slacks, simulated_slacks
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.promises import (
    ALIP,
    LIP,
    PML,
    ComposablePromise,
    Each,
    Events,
    GradedLDP,
    InteriorPML,
    Promise,
    RobustPromise,
)
from privacyfunnel.model.published.tree_model import UNIT, TreeModel
from privacyfunnel.model.published.wide_model import stack_values
from tests.mechanisms.test_real_or_synthetic import exact_law
from tests.model.test_tree_model import random_model

MODELS = 200
LIMITS: dict[str, dict[str, Fraction]] = {}


def several_model(number: int) -> TreeModel:
    """Two or three secret columns whose values stand one below the other."""
    rng = np.random.default_rng(number)
    columns = {
        name: tuple("abc")[: int(rng.integers(2, 4))] for name in ["health", "income", "creed"][: 2 + number % 2]
    }
    secret = stack_values(columns)
    sizes = rng.integers(2, 4, rng.integers(1, 4)).tolist()
    made = random_model(rng, len(secret.labels), sizes, zeros=0.2 * (number % 3), skew=[0.3, 1.0, 4.0][number % 3])
    return replace(made, secret=secret)


def each_promise(number: int) -> Each:
    size = [0.2, 0.5, 1.0][number % 3]
    sizes = (("health", size / 2),) if number % 2 else ()
    return Each(size, ["lip", "lip", "ldp", "pml"][number % 4], sizes)


@cache
def several_number(number: int) -> WideDesign:
    return design_real_or_synthetic(several_model(number), each_promise(number), classes=[60, 5, 2][number // 3 % 3])


def keeps_each(mechanism: RealOrSynthetic) -> bool:
    """Whether every output keeps the promise about every column, by its definition and from the integers drawn."""
    model, promise, law = mechanism.model, mechanism.promise, exact_law(mechanism)
    assert isinstance(promise, Each)
    for column in model.secret.name.split(" | "):
        mine = [s for s, label in enumerate(model.secret.labels) if label.startswith(f"{column} = ")]
        shares = [Fraction(int(model.shares[s]), UNIT) for s in mine]
        limit = exp_below(dict(promise.sizes).get(column, promise.epsilon))
        for row in law:
            chances = [row[s] for s in mine]
            mean = sum((p * q for p, q in zip(shares, chances, strict=True)), Fraction(0)) / sum(shares)
            against = chances if promise.kind == "ldp" else [mean]
            if any(p > limit * other for p in chances for other in against):
                return False
            if promise.kind != "pml" and any(other > limit * p for p in chances for other in against):
                return False
    return True


@pytest.mark.parametrize("block", range(10))
def test_each_of_several_secrets_is_kept_by_every_output_in_fractions(block: int) -> None:
    for number in range(block, MODELS, 10):
        assert keeps_each(several_number(number).mechanism), number


def test_many_rows_stay_real_and_no_more_than_the_bound() -> None:
    designs = [several_number(number) for number in range(40)]
    assert sum(0.1 < design.real_share < 0.999 for design in designs) > 20
    assert all(design.real_share <= bound_real_share(design.mechanism) + 1e-9 for design in designs)


def test_a_guard_of_one_secret_alone_breaks_the_promise_about_another() -> None:
    broken = 0
    for number in range(24):
        mechanism = several_number(number).mechanism
        listed = listed_slacks(mechanism)
        louder = replace(mechanism, slacks=mechanism.slacks * 21 // 20 + 1)
        assert listed.fit(mechanism)
        assert not listed_slacks(louder).fit(louder)
        events, slacks = mechanism.events, mechanism.slacks.copy()
        first = [label.startswith("health = ") for label in mechanism.model.secret.labels]
        others = ~events.members[events.pairs[:, 0]][:, first].any(axis=1)
        slacks[:, others] = 8 * UNIT  # as if nothing were promised about the others
        deaf = replace(mechanism, slacks=slacks)
        assert not listed_slacks(deaf).fit(deaf)
        broken += not keeps_each(deaf)
    assert broken > 5


def test_a_simulation_of_several_secrets_says_no_more_than_a_list() -> None:
    for number in range(6):
        mechanism = several_number(number).mechanism
        listed = listed_slacks(mechanism).low
        simulated = simulated_slacks(mechanism, KeyStream.from_seed(number), 1 << 16).low
        assert (simulated <= listed).all()
        assert np.quantile(listed - simulated, 0.5) < 0.3


def labelled_model(number: int) -> TreeModel:
    rng = np.random.default_rng(1000 + number)
    made = random_model(rng, 3, rng.integers(2, 4, 2).tolist(), skew=[0.5, 2.0][number % 2])
    return replace(made, secret=Attribute("s", ("0", "1", "3")))


OTHERS: tuple[Promise, ...] = (
    PML(0.5),
    ALIP(0.3, 0.8),
    GradedLDP(0.4),
    GradedLDP.from_sizes([("0", "1", 0.3), ("1", "3", 0.9)]),
    Events(0.5, (("some", ("1", "3")),)),
)


def allowed(promise: Promise) -> list[tuple[tuple[int, ...], tuple[int, ...], float]]:
    """Which event may be more likely than which by what ε, by the definitions."""
    everybody, alone = (0, 1, 2), [(0,), (1,), (2,)]
    if isinstance(promise, PML):
        return [(s, everybody, promise.epsilon) for s in alone]
    if isinstance(promise, ALIP):
        return [*((s, everybody, promise.upper) for s in alone), *((everybody, s, promise.lower) for s in alone)]
    if isinstance(promise, Events):
        return [((1, 2), (0,), promise.epsilon), ((0,), (1, 2), promise.epsilon)]
    if promise.parameters["sizes"]:
        apart = {(0, 1): 0.3, (1, 2): 0.9, (0, 2): 1.2}
    else:
        apart = {(0, 1): promise.epsilon, (1, 2): 2 * promise.epsilon, (0, 2): 3 * promise.epsilon}
    return [((a,), (b,), size) for (s, t), size in apart.items() for a, b in ((s, t), (t, s))]


@pytest.mark.parametrize("promise", OTHERS, ids=lambda promise: promise.name)
def test_one_sided_graded_and_named_promises_are_kept_in_fractions(promise: Promise) -> None:
    tight = 0
    for number in range(12):
        mechanism = design_real_or_synthetic(labelled_model(number), promise, classes=20).mechanism
        shares = [Fraction(int(share), UNIT) for share in mechanism.model.shares]
        worst = Fraction(0)
        for row in exact_law(mechanism):
            for one, other, size in allowed(promise):
                held = [sum((shares[s] for s in at), Fraction(0)) for at in (one, other)]
                p, q = (
                    sum((shares[s] * row[s] for s in at), Fraction(0)) / share
                    for at, share in zip((one, other), held, strict=True)
                )
                limit = exp_below(size + 1e-12)
                assert p <= limit * q
                worst = max(worst, p / (limit * q) if q else Fraction(0))
        tight += worst > Fraction(9, 10)
    assert tight > 4


def test_what_these_records_cannot_promise_is_refused_with_what_to_do() -> None:
    model = several_model(1)
    for promise, asked in (
        (RobustPromise(Each(1.0), OddsRange.parse("1.5")), "Promise one of them"),
        (InteriorPML(1.0, 0.1), "Promise one of them"),
        (ComposablePromise(LIP(1.0), 2.0), "Promise one of them"),
    ):
        with pytest.raises(ParameterError, match=asked):
            design_real_or_synthetic(model, promise)
