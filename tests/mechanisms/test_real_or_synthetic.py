"""Real or synthetic records: the law against brute force in fractions, its proof, its draws."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import chi2

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.wide.real_or_synthetic_design import WideDesign, design_real_or_synthetic
from privacyfunnel.errors import GuaranteeError, ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.decoy_slacks import check_slacks, listed_slacks, simulated_slacks
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.published.tree_model import UNIT, CodeArray, TreeModel
from tests.model.test_tree_model import likelihood, random_model

MODELS = 200
FALSE_ALARM = 1e-6


def model_number(number: int) -> TreeModel:
    rng = np.random.default_rng(number)
    sizes = rng.integers(2, 5, rng.integers(1, 4)).tolist()
    return random_model(rng, int(rng.integers(2, 5)), sizes, zeros=0.2 * (number % 3), skew=[0.3, 1.0, 4.0][number % 3])


def promise_number(number: int) -> Promise:
    epsilon = [0.1, 0.5, 1.0, 2.0][number % 4]
    return LDP(epsilon) if number % 5 == 0 else LIP(epsilon)


@cache
def design_number(number: int) -> WideDesign:
    return design_real_or_synthetic(
        model_number(number), promise_number(number), classes=[60, 5, 3, 2][number // 3 % 4]
    )


def all_records(model: TreeModel) -> IntArray:
    return np.array(list(product(*(range(len(attribute.labels)) for attribute in model.attributes))), dtype=np.int64)


def exact_channel(mechanism: RealOrSynthetic) -> list[list[Fraction]]:
    """P(y | x) for all records, from the integers that are drawn and from nothing else."""
    model, codes = mechanism.model, all_records(mechanism.model)
    ratios = model.ratios(codes)
    of_class = mechanism.classify(ratios).tolist()
    keep = [Fraction(int(numerator), 2**63) for numerator in mechanism.keep_numerators(ratios, np.array(of_class))]
    shares = [Fraction(int(share), UNIT) for share in model.shares]
    total = [
        sum((share * likelihood(model, s, tuple(x)) for s, share in enumerate(shares)), Fraction(0))
        for x in codes.tolist()
    ]
    synthetic = []
    for row in mechanism.acceptance.tolist():
        accepted = [Fraction(row[k], UNIT) * p for k, p in zip(of_class, total, strict=True)]
        synthetic.append([p / sum(accepted) for p in accepted])
    return [
        [keep[x] * (x == y) + (1 - keep[x]) * synthetic[of_class[x]][y] for y in range(len(codes))]
        for x in range(len(codes))
    ]


def exact_law(mechanism: RealOrSynthetic) -> list[list[Fraction]]:
    """P(y | s) for every record y and secret s."""
    model, channel = mechanism.model, exact_channel(mechanism)
    records = all_records(model).tolist()
    given = [[likelihood(model, s, tuple(x)) for x in records] for s in range(len(model.shares))]
    return [
        [sum((p * row[y] for p, row in zip(of_secret, channel, strict=True) if p), Fraction(0)) for of_secret in given]
        for y in range(len(records))
    ]


def keeps(mechanism: RealOrSynthetic) -> bool:
    """Whether every output keeps the promise, in exact arithmetic."""
    limit, law = exp_below(mechanism.promise.epsilon), exact_law(mechanism)
    shares = [Fraction(int(share), UNIT) for share in mechanism.model.shares]
    assert all(sum(column) == 1 for column in zip(*law, strict=True))
    for row in law:
        mean = sum((share * p for share, p in zip(shares, row, strict=True)), Fraction(0))
        against = row if isinstance(mechanism.promise, LDP) else [mean]
        if any(p > limit * other or other > limit * p for p in row for other in against):
            return False
    return True


@pytest.mark.parametrize("block", range(10))
def test_every_output_keeps_the_promise_in_fractions(block: int) -> None:
    for number in range(block, MODELS, 10):
        assert keeps(design_number(number).mechanism), number


def test_some_records_are_real_and_some_are_not() -> None:
    shares = [design_number(number).real_share for number in range(MODELS)]
    assert sum(0.2 < share < 0.999 for share in shares) > MODELS / 3


def test_slacks_that_say_more_than_is_true_are_refused_and_would_break_the_promise() -> None:
    broken = 0
    for number in range(60):
        mechanism = design_number(number).mechanism
        check_slacks(mechanism, KeyStream.from_seed(0), 1000)
        louder = replace(mechanism, slacks=mechanism.slacks * 21 // 20 + 1)
        assert not listed_slacks(louder).fit(louder)
        with pytest.raises(GuaranteeError, match="not proved"):
            check_slacks(louder, KeyStream.from_seed(0), 1000)
        broken += not keeps(replace(mechanism, slacks=mechanism.slacks * 2))
    assert broken > 10


def test_a_simulation_says_no_more_than_a_list_and_nearly_as_much() -> None:
    for number in range(12):
        mechanism = design_number(number).mechanism
        listed = listed_slacks(mechanism).low
        simulated = simulated_slacks(mechanism, KeyStream.from_seed(number), 1 << 17).low
        assert (simulated <= listed).all()
        assert np.quantile(listed - simulated, 0.5) < 0.2


def test_draws_follow_the_law_and_a_leak_of_five_percent_is_seen() -> None:
    n, leaks = 50_000, 0
    for number in (1, 2, 4, 7):
        mechanism = design_number(number).mechanism
        for x, chances in zip(all_records(mechanism.model)[:8], exact_channel(mechanism)[:8], strict=True):
            drawn = mechanism.draw(np.tile(x, (n, 1)), KeyStream.from_seed(number).rows(0, n))
            expected = [float(chance) for chance in chances]
            assert p_value(mechanism.model, drawn, expected) > FALSE_ALARM
            if (drawn != x).any(axis=1).mean() > 0.3:
                drawn[np.random.default_rng(number).random(n) < 0.05] = x
                assert p_value(mechanism.model, drawn, expected) < FALSE_ALARM
                leaks += 1
    assert leaks > 5


def p_value(model: TreeModel, drawn: CodeArray, expected: list[float]) -> float:
    """Of the chi-square test; records that must not occur make it 0."""
    found = Counter(map(tuple, drawn.tolist()))
    counts = np.array([found[tuple(x)] for x in all_records(model).tolist()])
    want = np.array(expected) * len(drawn)
    if counts[want == 0].any():
        return 0.0
    often = want >= 10
    observed = np.append(counts[often], counts[~often].sum())
    wanted = np.append(want[often], max(want[~often].sum(), 1e-9))
    if wanted[-1] < 10:
        observed, wanted = observed[:-1], wanted[:-1]
    return float(chi2.sf(((observed - wanted) ** 2 / wanted).sum(), max(len(wanted) - 1, 1)))


def test_a_draw_depends_on_a_records_own_values_and_words_alone() -> None:
    mechanism = design_number(2).mechanism
    stream, n = KeyStream.from_seed(3), 5000
    words = np.stack([KeyStream.from_seed(4).words(0, n, draw=d) for d in range(mechanism.model.words_per_record)])
    codes = mechanism.model.sample(words)
    whole = mechanism.draw(codes, stream.rows(0, n))
    assert (whole != codes).any()
    for low, high in pairwise([0, 1, 1, 17, 2501, n]):
        np.testing.assert_array_equal(mechanism.draw(codes[low:high], stream.rows(low, high - low)), whole[low:high])


@pytest.mark.parametrize(("secrets", "columns", "promise"), [(2, 200, LIP(1.0)), (3, 40, LDP(1.0))])
def test_hundreds_of_columns_are_released_and_anybody_repeats_the_proof(
    secrets: int, columns: int, promise: Promise
) -> None:
    model = random_model(np.random.default_rng(1), secrets, [3] * columns, skew=40.0)
    design = design_real_or_synthetic(model, promise, classes=12, proof_records=1 << 16)
    assert 0.3 < design.real_share < 0.95
    check_slacks(design.mechanism, KeyStream.from_seed(99), 1 << 17)
    louder = replace(design.mechanism, slacks=design.mechanism.slacks * 3 // 2)
    assert not simulated_slacks(louder, KeyStream.from_seed(99), 1 << 16).fit(louder)


def test_a_record_that_the_model_rules_out_is_always_replaced() -> None:
    for number in range(2, 30, 3):
        mechanism = design_number(number).mechanism
        codes = all_records(mechanism.model)
        impossible = codes[~np.isfinite(mechanism.model.ratios(codes)[:, 0])]
        if len(impossible):
            drawn = mechanism.draw(
                np.repeat(impossible, 100, axis=0), KeyStream.from_seed(1).rows(0, 100 * len(impossible))
            )
            assert np.isfinite(mechanism.model.ratios(drawn)).all()


def test_a_mechanism_is_read_as_it_was_written() -> None:
    mechanism = design_number(3).mechanism
    content = json.loads(json.dumps(mechanism.to_json()))
    stated = json.loads(json.dumps(mechanism.model.to_json()))
    model = TreeModel.from_json(stated, mechanism.model.secret, mechanism.model.attributes)
    again = RealOrSynthetic.restore(content, model, mechanism.promise)
    codes = all_records(model)
    rows = KeyStream.from_seed(1).rows(0, len(codes))
    np.testing.assert_array_equal(again.draw(codes, rows), mechanism.draw(codes, rows))
    with pytest.raises(ProtocolFileError, match="tables of integers"):
        RealOrSynthetic.restore({**content, "slacks": "none"}, model, mechanism.promise)
    with pytest.raises(ParameterError, match="negative"):
        replace(mechanism, slacks=mechanism.slacks - UNIT * 10)


def test_a_promise_against_those_who_know_columns_is_refused() -> None:
    with pytest.raises(ParameterError, match="SRLIP is about more"):
        design_real_or_synthetic(random_model(np.random.default_rng(0), 2, [2, 2]), SRLIP(1.0))
