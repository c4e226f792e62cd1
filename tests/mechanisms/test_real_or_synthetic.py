"""Real or synthetic records: the law against brute force in fractions, its proof, its draws."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chi2

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.wide.real_or_synthetic_design import WideDesign, design_real_or_synthetic
from privacyfunnel.designs.wide.real_share_bound import bound_real_share
from privacyfunnel.errors import GuaranteeError, ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.decoy_slacks import check_slacks, listed_slacks, simulated_slacks
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic, reveal_known
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.neighbours import NeighbourPromise
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise, RobustPromise
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
    of_class = mechanism.classify(ratios, codes).tolist()
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


ODDS = ("1.1", "1.5", "3", "any")


@cache
def robust_number(number: int) -> WideDesign:
    plain = promise_number(number)
    return design_real_or_synthetic(
        model_number(number),
        RobustPromise(plain, OddsRange.parse(ODDS[number % 4])),
        classes=[60, 5, 3, 2][number // 3 % 4],
    )


def worst_beliefs(
    given: list[Fraction], total: list[Fraction], share: Fraction, chances: list[Fraction], odds: OddsRange
) -> tuple[Fraction, Fraction]:
    """The least and the largest P′(y | E) over all beliefs with odds in this range, by greed, in fractions."""
    low, high = [], []
    for p_e, p in zip(given, total, strict=True):
        held = p_e * share / p if p else Fraction(0)  # p(E | x)
        least, most = odds.conditional_bounds(held.numerator, held.denominator)
        low.append(p * least / share)
        high.append(p * most / share)
    found = []
    for sign in (1, -1):
        left, value = 1 - sum(low), sum((a * q for a, q in zip(low, chances, strict=True)), Fraction(0))
        for x in sorted(range(len(low)), key=lambda x: sign * chances[x]):
            more = min(high[x] - low[x], left)
            left, value = left - more, value + more * chances[x]
        assert left == 0
        found.append(value)
    return found[0], found[1]


@pytest.mark.parametrize("block", range(4))
def test_odds_near_the_models_are_covered_in_fractions(block: int) -> None:
    """Every secret and output, at the beliefs that make most of it."""
    real = []
    for number in range(block, 32, 4):
        mechanism = robust_number(number).mechanism
        model, odds, limit = mechanism.model, mechanism.promise.odds, exp_below(mechanism.promise.epsilon)
        assert odds is not None
        channel, records = exact_channel(mechanism), all_records(model).tolist()
        shares = [Fraction(int(share), UNIT) for share in model.shares]
        given = [[likelihood(model, s, tuple(x)) for x in records] for s in range(len(shares))]
        total = [sum((p * g[x] for p, g in zip(shares, given, strict=True)), Fraction(0)) for x in range(len(records))]
        for y in range(len(records)):
            chances = [row[y] for row in channel]
            bounds = [worst_beliefs(g, total, p, chances, odds) for g, p in zip(given, shares, strict=True)]
            mean = sum((p * q for p, q in zip(total, chances, strict=True)), Fraction(0))
            least = [low for low, _ in bounds] if isinstance(mechanism.promise.table_promise, LDP) else [mean]
            most = [high for _, high in bounds] if isinstance(mechanism.promise.table_promise, LDP) else [mean]
            for s, (low, high) in enumerate(bounds):
                assert all(high <= limit * other for t, other in enumerate(least) if len(least) == 1 or t != s)
                assert all(other <= limit * low for t, other in enumerate(most) if len(most) == 1 or t != s)
        real.append(robust_number(number).real_share)
    assert sum(0.05 < share < 0.999 for share in real) > len(real) / 3


def test_a_design_without_other_odds_would_not_cover_them() -> None:
    """And slacks that say more than is true are refused under other odds, too."""
    broken = 0
    for number in range(24):
        mechanism = design_number(number).mechanism
        robust = RobustPromise(mechanism.promise, OddsRange.parse("1.5"))
        broken += not listed_slacks(other := replace(mechanism, promise=robust)).fit(other)
        mine = robust_number(number).mechanism
        louder = replace(mine, slacks=mine.slacks * 21 // 20 + 1)
        assert not listed_slacks(louder).fit(louder)
    assert broken > 12


def test_a_simulation_of_other_odds_says_no_more_than_a_list_and_nearly_as_much() -> None:
    for number in range(8):
        mechanism = robust_number(number).mechanism
        listed = listed_slacks(mechanism).low
        simulated = simulated_slacks(mechanism, KeyStream.from_seed(number), 1 << 17).low
        assert (simulated <= listed).all()
        assert np.quantile((listed - simulated) / (np.abs(listed) + 0.1), 0.5) < 0.5


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
    tree, known = neighbour_model(3)
    promise = NeighbourPromise(LIP(0.5), tuple(tree.attributes[j].name for j in known))
    covered = design_real_or_synthetic(reveal_known(tree, promise), promise)
    designs = [*(design_number(each) for each in (1, 2, 4, 7)), robust_number(1), robust_number(5), covered]
    for number, mechanism in enumerate(design.mechanism for design in designs):
        for x, chances in zip(all_records(mechanism.model)[:8], exact_channel(mechanism)[:8], strict=True):
            drawn = mechanism.draw(np.tile(x, (n, 1)), KeyStream.from_seed(number).rows(0, n))
            expected = [float(chance) for chance in chances]
            assert p_value(mechanism.model, drawn, expected) > FALSE_ALARM
            if (drawn != x).any(axis=1).mean() > 0.3:
                drawn[np.random.default_rng(number).random(n) < 0.05] = x
                assert p_value(mechanism.model, drawn, expected) < FALSE_ALARM
                leaks += 1
    assert leaks > 12


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


def best_real_share(model: TreeModel, promise: Promise) -> float:
    """The largest P(Y = X) of any channel that keeps LIP, by a linear programme over all of its chances."""
    records = all_records(model).tolist()
    given = np.array([[float(likelihood(model, s, tuple(x))) for x in records] for s in range(len(model.shares))])
    p_x, n = model.shares / UNIT @ given, len(records)
    limit = float(exp_below(promise.epsilon))
    told = np.concatenate([given - limit * p_x, p_x - limit * given])  # times q(y | ·): at most 0
    rows = np.kron(np.eye(n), told)  # q(· | ·) by outputs
    sums = np.kron(np.ones(n), np.eye(n))
    found = linprog(-np.diag(p_x).ravel(), rows, np.zeros(len(rows)), sums, np.ones(n))
    assert found.fun is not None
    return -float(found.fun)


def test_no_channel_publishes_more_records_as_they_are_than_the_bound_says() -> None:
    gaps = []
    for number in (n for n in range(45) if len(all_records(model_number(n))) < 25 and n % 5):
        design = design_number(number)
        best, bound = best_real_share(model_number(number), promise_number(number)), bound_real_share(design.mechanism)
        assert design.real_share - 1e-9 <= best <= bound + 1e-7
        gaps.append(bound - best)
    assert len(gaps) > 12
    assert np.median(gaps) < 1e-4  # classes are single records here
    assert np.mean(gaps) < 0.01


def test_a_bound_from_a_sample_is_above_that_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [bound_real_share(design_number(number).mechanism) for number in range(6)]
    monkeypatch.setattr("privacyfunnel.designs.wide.real_share_bound.can_list", lambda model: False)
    sampled = [bound_real_share(design_number(number).mechanism) for number in range(6)]
    assert all(one <= two for one, two in zip(listed, sampled, strict=True))
    assert np.median(np.array(sampled) - listed) < 0.05


def neighbour_model(number: int) -> tuple[TreeModel, list[int]]:
    """A model whose first one or two columns are known, and depend on nothing else."""
    rng = np.random.default_rng(number)
    known = 1 + number % 2
    sizes = [2, 3, 2][: known + 1 + number // 2 % 2]
    parents = [None, 0 if known == 2 else None, *(int(j) for j in rng.integers(0, 2, 4))][: len(sizes)]
    tables = [
        rng.dirichlet(np.full(size, [0.5, 2.0][number % 2]), (2, 1 if parent is None else sizes[parent])) + 1e-3
        for size, parent in zip(sizes, parents, strict=True)
    ]
    names = [Attribute(f"x{j}", tuple(map(str, range(size)))) for j, size in enumerate(sizes)]
    shares = rng.dirichlet(np.ones(2)) + 0.05
    model = TreeModel.from_weights(Attribute("s", ("0", "1")), names, shares, parents, tables)
    return model, list(range(known))


@pytest.mark.parametrize("places", [20, 3])  # so few that nearly all records share theirs with another
def test_likely_records_are_drawn_as_if_nothing_were_known_of_them(
    monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    monkeypatch.setattr("privacyfunnel.mechanisms.likely_records.PLACES", places)
    monkeypatch.setattr("privacyfunnel.mechanisms.likely_records.SAMPLE", 200)
    model = random_model(np.random.default_rng(5), 3, [4, 5, 6, 7, 3], zeros=0.1)
    mechanism = design_real_or_synthetic(model, LIP(0.5), classes=8).mechanism
    rng, n = np.random.default_rng(6), 3000
    codes = np.stack([rng.integers(-1 if rng.random() < 0.5 else 0, size, n) for size in (4, 5, 6, 7, 3)], axis=1)
    rows = KeyStream.from_seed(7).rows(0, n)
    plain = mechanism.draw(codes, rows)
    monkeypatch.setattr("privacyfunnel.mechanisms.real_or_synthetic.MANY", 1)
    np.testing.assert_array_equal(mechanism.draw(codes, rows), plain)
    assert 0 < (plain != codes).any(axis=1).mean() < 1
