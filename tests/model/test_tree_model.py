"""The published tree model: ratios, drawing and marginals against brute force in fractions."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from privacyfunnel.arrays import WordArray
from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.published.tree_model import UNIT, TreeModel, round_to_unit


def named(name: str, size: int) -> Attribute:
    return Attribute(name, tuple(map(str, range(size))))


def random_model(
    rng: np.random.Generator, c: int, sizes: list[int], *, zeros: float = 0.0, skew: float = 1.0
) -> TreeModel:
    """A tree at random in a random order of its columns, with cells of probability 0 where asked."""
    m = len(sizes)
    order = rng.permutation(m)
    parents: list[int | None] = [None] * m
    for place, j in enumerate(order):
        if place and rng.random() < 0.8:
            parents[j] = int(order[rng.integers(place)])
    tables = []
    for size, parent in zip(sizes, parents, strict=True):
        table = rng.dirichlet(np.full(size, skew), (c, 1 if parent is None else sizes[parent])) + 1e-12
        table[..., 1:][rng.random(table[..., 1:].shape) < zeros] = 0
        tables.append(table)
    attributes = [named(f"x{j}", size) for j, size in enumerate(sizes)]
    return TreeModel.from_weights(named("s", c), attributes, rng.dirichlet(np.ones(c)) + 1e-9, parents, tables)


def likelihood(model: TreeModel, s: int, x: tuple[int, ...]) -> Fraction:
    return prod(
        (
            Fraction(int(table[s, 0 if parent is None else x[parent], label]), UNIT)
            for table, parent, label in zip(model.tables, model.parents, x, strict=True)
        ),
        start=Fraction(1),
    )


def exact_ratios(model: TreeModel, x: tuple[int, ...]) -> list[Fraction] | None:
    given = [likelihood(model, s, x) for s in range(len(model.shares))]
    total = sum((p * Fraction(int(share), UNIT) for p, share in zip(given, model.shares, strict=True)), Fraction(0))
    return [p / total for p in given] if total else None


def assert_within_its_error(model: TreeModel, found: float, exact: Fraction) -> None:
    allowed = exact * Fraction(model.RELATIVE_ERROR)
    if exact < Fraction(1, 2**900):
        allowed += Fraction(model.TINY)
    assert abs(Fraction(found) - exact) <= allowed


def random_words(rng: np.random.Generator, model: TreeModel, n: int) -> WordArray:
    return rng.integers(0, 2**64, (model.words_per_record, n), dtype=np.uint64)


SMALL_MODELS = [
    (seed, c, sizes, zeros)
    for seed, (c, sizes, zeros) in enumerate(
        list(product((1, 2, 3, 5), ([2], [3, 2], [2, 1, 3], [2, 2, 2, 3], [4, 3, 2]), (0.0, 0.3))) * 6
    )
]


def test_ratios_of_240_small_models_are_within_their_error_of_the_fractions() -> None:
    ruled_out = 0
    for seed, c, sizes, zeros in SMALL_MODELS:
        model = random_model(np.random.default_rng(seed), c, sizes, zeros=zeros, skew=0.3)
        codes = np.array(list(product(*map(range, sizes))))
        for x, found in zip(codes.tolist(), model.ratios(codes), strict=True):
            exact = exact_ratios(model, tuple(x))
            if exact is None:
                assert np.isposinf(found).all()
                ruled_out += 1
                continue
            for value, ratio in zip(found.tolist(), exact, strict=True):
                assert_within_its_error(model, value, ratio)
    assert ruled_out > 20


def test_marginals_of_small_models_are_the_fractions() -> None:
    for seed, c, sizes, zeros in SMALL_MODELS[:80]:
        rng = np.random.default_rng(seed)
        model = random_model(rng, c, sizes, zeros=zeros)
        columns = rng.permutation(len(sizes))[: rng.integers(len(sizes) + 1)].tolist()
        found = model.marginal(columns)
        total = int(found.sum())
        expected: dict[tuple[int, ...], Fraction] = {}
        for s, *x in product(range(c), *map(range, sizes)):
            key = (s, *(x[j] for j in columns))
            mass = Fraction(int(model.shares[s]), UNIT) * likelihood(model, s, tuple(x))
            expected[key] = expected.get(key, Fraction(0)) + mass
        assert found.shape == (c, *(sizes[j] for j in columns))
        assert all(Fraction(int(found[key]), total) == mass for key, mass in expected.items())


def test_a_marginal_is_a_joint_as_it_is() -> None:
    model = random_model(np.random.default_rng(1), 3, [2, 3, 4])
    joint = Joint.from_counts(model.marginal([2, 0]))
    assert (joint.c, joint.m) == (3, 2)
    assert np.abs(joint.p_s - model.shares / UNIT).max() < 1e-15


def test_two_hundred_columns_neither_underflow_nor_lose_a_secret_that_comes_back() -> None:
    """Against a secret speak the first 60 columns, each by 2^-32, for it the next 60: a double alone forgets it."""
    m = 200
    strong = np.array([[[1, UNIT - 1]], [[UNIT - 1, 1]]])
    even = np.array([[[UNIT // 2, UNIT // 2]]] * 2)
    for against, for_it in ((60, 60), (60, 61), (60, 59), (60, 30), (100, 100)):
        tables = [strong] * against + [strong[::-1]] * for_it
        tables += [even] * (m - len(tables))
        attributes = tuple(named(f"x{j}", 2) for j in range(m))
        model = TreeModel(named("s", 2), attributes, np.array([1, UNIT - 1]), (None,) * m, tuple(tables))
        codes = np.zeros((3, m), dtype=np.int8)
        codes[1, ::2] = 1
        codes[2] = 1
        for x, found in zip(codes.tolist(), model.ratios(codes), strict=True):
            exact = exact_ratios(model, tuple(x))
            assert exact is not None
            for value, ratio in zip(found.tolist(), exact, strict=True):
                assert_within_its_error(model, value, ratio)


def test_random_models_of_many_columns_are_within_their_error() -> None:
    rng = np.random.default_rng(2)
    for m, c in ((29, 4), (31, 3), (64, 2), (200, 5)):
        model = random_model(rng, c, rng.integers(1, 5, m).tolist(), skew=0.05)
        codes = model.sample(random_words(rng, model, 20))
        for x, found in zip(codes.tolist(), model.ratios(codes), strict=True):
            exact = exact_ratios(model, tuple(x))
            assert exact is not None
            for value, ratio in zip(found.tolist(), exact, strict=True):
                assert_within_its_error(model, value, ratio)


def test_ratios_do_not_depend_on_the_records_around_them() -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng, 3, [3, 4, 2])
    codes = model.sample(random_words(rng, model, 20_000))
    whole = model.ratios(codes)
    parts = np.concatenate([model.ratios(np.ascontiguousarray(part)) for part in np.array_split(codes, 7)])
    assert (whole == parts).all()
    assert model.ratios(codes[:0]).shape == (0, 3)


def test_all_half_words_draw_exactly_the_model() -> None:
    """Weights in eighths: the first three bits of a half word settle a draw, so that all words can be counted."""
    rng = np.random.default_rng(4)
    for trial in range(20):
        sizes = [3, 4, 2]
        shape = random_model(rng, 2, sizes)
        eighth = UNIT // 8
        model = TreeModel(
            shape.secret,
            shape.attributes,
            rng.permutation([3, 5]) * eighth,
            shape.parents,
            tuple(rng.multinomial(8, table / UNIT) * eighth for table in shape.tables),
        )
        bits = np.array(list(product(range(8), repeat=4)), dtype=np.uint64)
        halves = (bits << np.uint64(29)) | rng.integers(0, 2**29, bits.shape, dtype=np.uint64)
        words = np.stack(
            [halves[:, 0] | (halves[:, 1] << np.uint64(32)), halves[:, 2] | (halves[:, 3] << np.uint64(32))]
        )
        seen = np.zeros((2, *sizes), dtype=np.int64)
        np.add.at(seen, (model.sample_secrets(words), *model.sample(words).T), 1)
        for s, *x in product(range(2), *map(range, sizes)):
            mass = Fraction(int(model.shares[s]), UNIT) * likelihood(model, s, tuple(x))
            assert Fraction(int(seen[(s, *x)]), len(bits)) == mass, trial


def test_a_label_is_drawn_by_an_interval_of_as_many_half_words_as_its_weight() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        model = random_model(rng, 3, [6], zeros=0.3, skew=0.3)
        for s, weights in enumerate(model.tables[0][:, 0]):
            ends = np.cumsum(weights)
            for label in np.flatnonzero(weights).tolist():
                half = np.array([ends[label] - weights[label], ends[label] - 1], dtype=np.uint64)
                assert model.sample_given(s, half[None] << np.uint64(32)).tolist() == [[label], [label]]
        ends = np.cumsum(model.shares)
        half = np.stack([ends - model.shares, ends - 1]).astype(np.uint64)
        assert model.sample_secrets(half.reshape(1, -1)).tolist() == [0, 1, 2] * 2


def test_a_label_may_end_anywhere_within_the_half_words_that_share_their_first_bits() -> None:
    for end in (1, 2**24 - 1, 2**24, 2**24 + 1, 2**31 - 1, UNIT - 1):
        weights = np.array([[[end, UNIT - end]]])
        model = TreeModel(named("s", 1), (named("x", 2),), np.array([UNIT]), (None,), (weights,))
        half = np.array([0, end - 1, end, UNIT - 1], dtype=np.uint64)
        assert model.sample(half[None] << np.uint64(32))[:, 0].tolist() == [0, 0, 1, 1]


def test_a_record_and_its_secret_are_drawn_by_the_same_words() -> None:
    rng = np.random.default_rng(6)
    model = random_model(rng, 3, [2, 3, 2], skew=2.0)
    words = random_words(rng, model, 1000)
    codes, secrets = model.sample(words), model.sample_secrets(words)
    assert (model.sample_given(secrets, words) == codes).all()
    assert (model.sample_given(2, words)[secrets == 2] == codes[secrets == 2]).all()


def test_a_column_of_one_label_and_a_secret_of_one_value_say_nothing() -> None:
    model = random_model(np.random.default_rng(6), 1, [1, 3, 1])
    codes = np.array([[0, 1, 0], [0, 2, 0]])
    assert model.ratios(codes).tolist() == [[1.0], [1.0]]


def test_a_model_is_read_back_as_it_was_written() -> None:
    model = random_model(np.random.default_rng(7), 2, [2, 3, 4], zeros=0.2)
    content = model.to_json()
    again = TreeModel.from_json(content, model.secret, model.attributes)
    assert again.to_json() == content
    assert again.order == model.order


def test_what_is_no_model_is_refused() -> None:
    model = random_model(np.random.default_rng(8), 2, [2, 3])
    content = model.to_json()
    shares = content["shares"]
    for change in (
        {"shares": [UNIT, 0]},
        {"shares": [shares[0] + 1, shares[1]]},
        {"parents": [1, 0]},
        {"parents": [0, None]},
        {"parents": [None, 5]},
        {"parents": [None]},
        {"tables": content["tables"][::-1]},
        {"tables": [[[[UNIT + 1, -1]], [[0, UNIT]]], content["tables"][1]]},
        {"tables": "none"},
    ):
        with pytest.raises(DistributionError):
            TreeModel.from_json({**content, **change}, model.secret, model.attributes)


def test_records_words_and_marginals_outside_of_the_model_are_refused() -> None:
    rng = np.random.default_rng(9)
    model = random_model(rng, 2, [2, 3])
    for codes in (np.array([[0, 3]]), np.array([[-1, 0]]), np.array([[0]]), np.array([[0.0, 1.0]])):
        with pytest.raises(DistributionError, match=r"Codes of|Records must be"):
            model.ratios(codes)
    with pytest.raises(DistributionError, match="drawn with 2 words"):
        model.sample(np.zeros((3, 5), dtype=np.uint64))
    with pytest.raises(DistributionError, match="Codes of secrets"):
        model.sample_given(2, random_words(rng, model, 4))
    with pytest.raises(DistributionError, match="must differ"):
        model.marginal([0, 0])
    wide = random_model(rng, 2, [4] * 12)
    with pytest.raises(SizeError, match="Ask for fewer"):
        wide.marginal(range(12))


def test_rounding_keeps_what_is_possible_and_sums_exactly() -> None:
    rng = np.random.default_rng(10)
    weights = rng.dirichlet(np.full(40, 0.02), (5, 7)) + 0.0
    weights[weights < 1e-30] = 0
    rounded = round_to_unit(weights)
    assert (rounded.sum(axis=-1) == UNIT).all()
    assert ((rounded > 0) == (weights > 0)).all()
    with pytest.raises(DistributionError, match="above 0 somewhere"):
        round_to_unit(np.zeros((2, 3)))
