"""Product protocols: what the whole says, measured against brute force, and what budgets may be kept."""

import math
from fractions import Fraction
from itertools import product as every
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.product.budgets import Product, product_protocol
from privacyfunnel.designs.product.product_factors import Factors
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.product import ProductMechanism
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol, exact_worst_leak, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.product_protocol import ProductProtocol, worst_leak
from privacyfunnel.tables.readers.adult import adult_counts
from tests.strategies import joints


def random_product(joint: Joint, seed: int) -> ProductProtocol:
    rng = np.random.default_rng(seed)
    factors = []
    for attribute in joint.attributes:
        channel = rng.random((len(attribute.labels), int(rng.integers(2, 4)))) + 0.05
        factors.append(Protocol(channel / channel.sum(axis=1, keepdims=True)))
    return ProductProtocol(tuple(factors), joint.combos)


def as_one_table(product: ProductProtocol) -> Protocol:
    """The product as a plain protocol: a column per combination of outputs."""
    rows = []
    for combo in product.combos:
        row = np.ones(1)
        for channel, x in zip(product.channels, combo, strict=True):
            row = np.outer(row, channel[x]).ravel()
        rows.append(row)
    return Protocol(np.array(rows))


@pytest.mark.parametrize("promise", [LIP(0), LDP(0), SRLIP(0)])
@settings(max_examples=15, deadline=None)
@given(joint=joints(max_c=3, max_a=3, attributes=3), seed=st.integers(0, 99))
def test_a_product_is_measured_like_the_table_it_stands_for(promise: Promise, joint: Joint, seed: int) -> None:
    product = random_product(joint, seed)
    whole = as_one_table(product)
    assert worst_leak(joint, promise, product).epsilon == pytest.approx(promise.leakage(joint, whole), abs=1e-12)
    assert promise.leakage(joint, product) == pytest.approx(promise.leakage(joint, whole), abs=1e-12)
    assert product.mutual_information(joint) == pytest.approx(whole.mutual_information(joint), abs=1e-12)


@settings(max_examples=8, deadline=None)
@given(joint=joints(max_c=3, max_a=2, attributes=3), seed=st.integers(0, 99))
def test_the_exact_check_of_a_product_agrees_with_fractions_over_all_outputs(joint: Joint, seed: int) -> None:
    product = random_product(joint, seed)
    law = ProductMechanism.from_protocol(product)
    numerators = [_table(factor) for factor in law.factors]
    largest = Fraction(1)
    for block in SRLIP(0).comparisons(joint, False):
        for e, f in block.pairs:
            for y in every(*(range(len(factor.outputs)) for factor in law.factors)):
                p = []
                for event in (e, f):
                    mine = np.flatnonzero(block.event == event)
                    mass = sum(
                        int(block.weight[k])
                        * math.prod(
                            numerators[j][int(joint.combos[block.input[k], j])][y[j]] for j in range(len(law.factors))
                        )
                        for k in mine
                    )
                    p.append(Fraction(mass, int(block.weight[mine].sum())))
                largest = max(largest, p[0] / p[1], p[1] / p[0])
    assert exact_worst_leak(law, SRLIP(0), joint).ratio == largest


def _table(factor: ChannelMechanism) -> list[list[int]]:
    table = [[0] * len(factor.outputs) for _ in range(factor.inputs)]
    for x in range(factor.inputs):
        for k in range(factor.indptr[x], factor.indptr[x + 1]):
            table[x][factor.output[k]] = int(factor.numerator[k])
    return table


# -- the theorem "budget" does not hold ----------------------------------------------------------------------------


def symmetric(flip: float) -> Protocol:
    return Protocol(np.array([[1 - flip, flip], [flip, 1 - flip]]))


def test_two_copies_of_a_fair_bit_leak_ln_5_where_the_theorem_says_ln_4() -> None:
    counts = np.zeros((2, 2, 2), dtype=int)
    counts[0, 0, 0] = counts[1, 1, 1] = 1
    joint = Joint.from_counts(counts)
    product = ProductProtocol((symmetric(1 / 4), symmetric(1 / 4)), joint.combos)
    assert worst_leak(joint, SRLIP(0), product).epsilon == pytest.approx(math.log(5), abs=1e-12)
    assert exact_worst_leak(ProductMechanism.from_protocol(product), SRLIP(0), joint).ratio == 5
    with pytest.raises(GuaranteeError, match=r"promised ε = 1\.386.*leaks 0\.22 more"):
        seal(product, SRLIP(math.log(4)), joint)


def test_two_bits_whose_budgets_are_nothing_reveal_their_xor() -> None:
    counts = np.zeros((2, 4, 4), dtype=int)
    for b1, b2 in every((0, 1), (0, 1)):
        counts[b1 ^ b2, 2 * b1 + b2, 2 * b1 + b2] = 1
    joint = Joint.from_counts(counts)
    first = Protocol(np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))
    second = Protocol(np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]]))
    for alone in (first, second):
        assert LIP(0).leakage(Joint.from_counts(counts.sum(axis=1)), alone) == 0
    product = ProductProtocol((first, second), joint.combos)
    assert worst_leak(joint, SRLIP(0), product).epsilon == math.inf
    assert exact_worst_leak(ProductMechanism.from_protocol(product), SRLIP(0), joint).ratio is None


def test_two_copies_of_a_rare_value_leak_three_times_what_the_theorem_says() -> None:
    # P(X = 0) = π = 1/100; X = 0 forces S = 1, X = 1 makes S fair.
    counts = np.zeros((2, 2, 2), dtype=int)
    counts[1, 0, 0], counts[0, 1, 1], counts[1, 1, 1] = 2, 99, 99
    joint = Joint.from_counts(counts)
    q = Protocol(np.array([[1.0, 0.0], [0.01, 0.99]]))
    product = ProductProtocol((q, q), joint.combos)
    pi = 0.01
    bound = 2 * math.log(2 - pi)
    truth = worst_leak(joint, SRLIP(0), product).epsilon
    assert bound == pytest.approx(1.376, abs=1e-3)
    assert truth == pytest.approx(math.log((1 + pi - pi**2) / pi), abs=1e-9)


def test_the_papers_recipe_breaks_its_promise_on_adult_says_by_how_much_and_is_refused() -> None:
    counts, labels = adult_counts("income", "relationship", "sex")
    joint = Joint.from_counts(counts, labels[0], labels[1:], names=["relationship", "sex"], secret_name="income")
    made = product_protocol(joint, SRLIP(0.25), "paper")
    assert made.leak.epsilon == pytest.approx(0.263, abs=1e-3)
    assert made.excess == pytest.approx(0.013, abs=1e-3)
    assert "someone who knows" in made.leak.describe(joint)
    with pytest.raises(GuaranteeError, match="no row was sanitised"):
        seal(made.protocol, SRLIP(0.25), joint)


# -- budgets that are measured -------------------------------------------------------------------------------------


def near_duplicates(seed: int) -> Joint:
    rng = np.random.default_rng(seed)
    p = rng.random((2, 3))[:, :, None] * (np.eye(3) + 0.05 * rng.random((3, 3)))[None]
    return Joint.from_probabilities(p / p.sum())


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), epsilon=st.sampled_from([0.3, 1.0]))
def test_a_product_keeps_its_promise_on_near_duplicates_and_the_joint_optimum_is_never_below(
    seed: int, epsilon: float
) -> None:
    joint = near_duplicates(seed)
    made = product_protocol(joint, SRLIP(epsilon), seconds=1.0)
    assert made.excess == 0
    sealed = seal(made.protocol, SRLIP(epsilon), joint)
    assert sealed.epsilon <= epsilon
    assert optimal(joint, SRLIP(epsilon), gap=1e-4).bound >= sealed.information
    assert optimal(joint, LIP(epsilon), gap=1e-4).bound >= sealed.information


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_factors_chosen_after_one_another_keep_the_sum_of_their_budgets(seed: int, data: st.DataObject) -> None:
    joint = near_duplicates(seed)
    order = data.draw(st.permutations(range(joint.m)))
    budgets = {j: data.draw(st.sampled_from([0.1, 0.4, 1.0])) for j in order}
    factors = Factors(joint, SRLIP(sum(budgets.values())))
    chosen: dict[int, Protocol] = {}
    for j in order:
        chosen[j] = factors.solve_after(j, chosen, budgets[j])
    product = factors.product(tuple(chosen[j] for j in range(joint.m)))
    assert seal(product, factors.promise, joint).epsilon <= sum(budgets.values())


def test_where_the_sum_fails_for_factors_alone_it_holds_for_factors_after_one_another() -> None:
    joint = Joint.from_counts([[[1, 0], [0, 0]], [[0, 0], [0, 1]]])  # one fair bit, three times
    budget = math.log(2)
    factors = Factors(joint, SRLIP(2 * budget))
    alone = factors.product((factors.solve_alone(0, budget), factors.solve_alone(1, budget)))
    assert worst_leak(joint, SRLIP(0), alone).epsilon > 2 * budget + 0.2
    first = factors.solve_alone(0, budget)
    after = factors.product((first, factors.solve_after(1, {0: first}, budget)))
    assert worst_leak(joint, SRLIP(0), after).epsilon <= 2 * budget
    assert after.mutual_information(joint) > 0


def test_sound_budgets_mend_the_recipe_where_it_breaks_its_promise() -> None:
    counts, labels = adult_counts("income", "relationship", "sex")
    joint = Joint.from_counts(counts, labels[0], labels[1:], names=["relationship", "sex"], secret_name="income")
    sound = product_protocol(joint, SRLIP(0.25), "sound")
    assert sum(sound.budgets) == pytest.approx(0.25)
    assert sound.excess == 0
    assert seal(sound.protocol, SRLIP(0.25), joint).information == pytest.approx(sound.information, abs=1e-6)
    assert 0 < sound.information <= product_protocol(joint, SRLIP(0.25)).information + 1e-3


def test_scaled_budgets_keep_far_more_than_the_papers_recipe() -> None:
    p = np.random.default_rng(3).random((2, 3, 3, 2))
    joint = Joint.from_probabilities(p / p.sum())
    paper, searched = (product_protocol(joint, SRLIP(1.0), budgets) for budgets in ("paper", None))
    assert paper.excess == searched.excess == 0
    assert searched.information > 2 * paper.information


def test_a_sealed_product_draws_each_column_and_survives_its_file(tmp_path: Path) -> None:
    joint = Joint.from_counts([[[3, 1, 2], [1, 4, 0]], [[1, 1, 1], [2, 0, 5]]])
    product = random_product(joint, 1)
    sealed = seal(product, SRLIP(5.0), joint)
    sealed.save(tmp_path / "protocol.json")
    again = SealedProtocol.load(tmp_path / "protocol.json")
    codes = np.random.default_rng(0).integers(0, joint.a, 4000)
    drawn = sealed.sample(codes, KeyStream.from_seed(7))
    assert (again.sample(codes, KeyStream.from_seed(7)) == drawn).all()
    assert (
        exact_worst_leak(again.mechanism, SRLIP(0), joint).ratio
        == exact_worst_leak(sealed.mechanism, SRLIP(0), joint).ratio
    )
    for j, channel in enumerate(product.channels):
        for x in range(len(channel)):
            mine = drawn[joint.combos[codes, j] == x, j]
            share = np.bincount(mine, minlength=channel.shape[1]) / len(mine)
            # Five standard deviations: a false alarm in about one of a million runs, and the seed is fixed.
            assert np.abs(share - channel[x]).max() < 5 * 0.5 / math.sqrt(len(mine))


def test_budgets_must_be_one_per_column() -> None:
    joint = near_duplicates(0)
    with pytest.raises(ParameterError, match="one ε per published column; there are 1 for 2"):
        product_protocol(joint, SRLIP(1.0), [0.5])
    with pytest.raises(ParameterError, match="'half'"):
        product_protocol(joint, SRLIP(1.0), "half")
    assert isinstance(product_protocol(joint, SRLIP(1.0), [0.5, 0.1]), Product)
