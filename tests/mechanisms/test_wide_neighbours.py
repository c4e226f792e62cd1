"""Real or synthetic records for neighbours, and without what nobody can be: brute force in fractions."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from privacyfunnel.designs.wide.real_or_synthetic_design import design_real_or_synthetic
from privacyfunnel.designs.wide.real_share_bound import bound_real_share
from privacyfunnel.errors import ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.certificate import promise_from_json, promise_to_json
from privacyfunnel.mechanisms.decoy_slacks import check_slacks
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic, reveal_known
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.neighbours import NeighbourPromise
from privacyfunnel.model.promises import LDP, LIP, RobustPromise
from privacyfunnel.model.published.impossible import ImpossibleRecords
from privacyfunnel.model.published.tree_model import UNIT
from tests.mechanisms.test_real_or_synthetic import (
    ODDS,
    all_records,
    exact_channel,
    keeps,
    neighbour_model,
    promise_number,
    worst_beliefs,
)
from tests.model.test_tree_model import likelihood, random_model

NO_DOMAIN = Domain((), np.zeros((0, 0), dtype=np.int64), ("s",))


@pytest.mark.parametrize("block", range(2))
def test_neighbours_who_know_columns_are_covered_in_fractions(block: int) -> None:
    """P(y | s, x_B) against P(y | x_B), or another secret, for every part B of what is known."""
    real, plain_breaks = [], 0
    for number in range(block, 24, 2):
        tree, known = neighbour_model(number)
        plain = promise_number(number)
        promise = NeighbourPromise(plain, tuple(tree.attributes[j].name for j in known))
        design = design_real_or_synthetic(reveal_known(tree, promise), promise)
        real.append(design.real_share)
        assert keeps_for_neighbours(design.mechanism, known)
        alone = design_real_or_synthetic(tree, plain).mechanism
        plain_breaks += not keeps_for_neighbours(alone, known)
        content = json.loads(json.dumps(design.mechanism.to_json()))
        again = RealOrSynthetic.restore(content, tree, promise)
        assert (again.model.shares == design.mechanism.model.shares).all()
        check_slacks(again, KeyStream.from_seed(0), 0)
    assert plain_breaks > 6
    assert sum(0.1 < share < 0.999 for share in real) > 6


def keeps_for_neighbours(mechanism: RealOrSynthetic, known: list[int], odds: OddsRange | None = None) -> bool:
    odds = odds or mechanism.promise.odds or OddsRange.parse("1")
    model, channel, records = mechanism.model, exact_channel(mechanism), all_records(mechanism.model).tolist()
    size = len(model.shares) // 2
    mass = [[Fraction(0)] * len(records) for _ in range(2)]  # p̃(s, x), whatever the model takes for its secrets
    for number, share in enumerate(model.shares.tolist()):
        for x, record in enumerate(records):
            mass[number // size][x] += Fraction(share, UNIT) * likelihood(model, number, tuple(record))
    limit = exp_below(mechanism.promise.epsilon)
    for part in (some for number in range(len(known) + 1) for some in combinations(known, number)):
        for values in {tuple(record[j] for j in part) for record in records}:
            inside = [x for x, record in enumerate(records) if tuple(record[j] for j in part) == values]
            held = [sum((row[x] for x in inside), Fraction(0)) for row in mass]
            total = [(mass[0][x] + mass[1][x]) / sum(held) for x in inside]
            for y in range(len(records)):
                chances = [channel[x][y] for x in inside]
                given = [
                    worst_beliefs([row[x] / h for x in inside], total, h / sum(held), chances, odds)
                    for row, h in zip(mass, held, strict=True)
                ]
                mean = sum((p * q for p, q in zip(total, chances, strict=True)), Fraction(0))
                against = given[::-1] if isinstance(mechanism.promise.table_promise, LDP) else [(mean, mean)] * 2
                for (low, high), (least, most) in zip(given, against, strict=True):
                    if high > limit * least or most > limit * low:
                        return False
    return True


@pytest.mark.parametrize("block", range(2))
def test_neighbours_whose_odds_differ_are_covered_in_fractions(block: int) -> None:
    """Both together, among those who share what is known; neither of them alone covers that."""
    real, alone_breaks = [], 0
    for number in range(block, 16, 2):
        tree, known = neighbour_model(number)
        odds, names = OddsRange.parse(ODDS[number // 2 % 4]), tuple(tree.attributes[j].name for j in known)
        robust = RobustPromise(promise_number(number), odds)
        promise = NeighbourPromise(robust, names)
        design = design_real_or_synthetic(reveal_known(tree, promise), promise)
        assert keeps_for_neighbours(design.mechanism, known)
        real.append(design.real_share)
        assert design.real_share <= bound_real_share(design.mechanism) + 1e-9
        assert promise_from_json(promise_to_json(promise), NO_DOMAIN) == promise
        alone_breaks += not keeps_for_neighbours(design_real_or_synthetic(tree, robust).mechanism, known)
        knowing = NeighbourPromise(promise_number(number), names)
        plain = design_real_or_synthetic(reveal_known(tree, knowing), knowing).mechanism
        alone_breaks += not keeps_for_neighbours(plain, known, odds)
    assert alone_breaks > 8
    assert sum(0.05 < share < 0.999 for share in real) > 3


@cache
def impossible_number(number: int) -> RealOrSynthetic:
    """A design under which some combinations of two or three labels are never published; every other one robust."""
    rng = np.random.default_rng(number)
    sizes = rng.integers(2, 4, 3).tolist()
    model = random_model(rng, int(rng.integers(2, 4)), sizes, zeros=0.1 * (number % 2), skew=[0.5, 2.0][number % 2])
    patterns = [[int(code) for code in rng.integers(0, sizes)] for _ in range(1 + number % 3)]
    if number % 4 == 0:
        patterns[0][int(rng.integers(3))] = -1
    plain = promise_number(number)
    promise = plain if number % 2 else RobustPromise(plain, OddsRange.parse(ODDS[number // 2 % 4]))
    impossible = ImpossibleRecords(np.array(patterns, dtype=np.int64))
    return design_real_or_synthetic(model, promise, impossible=impossible).mechanism


@pytest.mark.parametrize("block", range(2))
def test_impossible_combinations_are_never_published_and_the_promise_is_kept_in_fractions(block: int) -> None:
    real, met = [], 0
    for number in range(block, 40, 2):
        mechanism = impossible_number(number)
        assert mechanism.impossible is not None
        content = json.loads(json.dumps(mechanism.to_json()))
        mechanism = RealOrSynthetic.restore(content, mechanism.model, mechanism.promise)
        check_slacks(mechanism, KeyStream.from_seed(0), 0)
        assert keeps(mechanism)
        records, patterns = all_records(mechanism.model), content["impossible"]
        strange = [
            any(all(p in (-1, at) for p, at in zip(z, x, strict=True)) for z in patterns) for x in records.tolist()
        ]
        for row in exact_channel(mechanism):
            assert not any(p for p, of_impossible in zip(row, strange, strict=True) if of_impossible)
        met += sum(strange)
        real.append(float(mechanism.keep_probabilities(records[~np.array(strange)]).mean()))
        unknown = np.full((2000, 3), -1)
        drawn = mechanism.draw(
            np.concatenate([unknown, records]), KeyStream.from_seed(number).rows(0, 2000 + len(records))
        )
        assert mechanism.impossible is not None
        assert not mechanism.impossible.match(drawn).any()
    assert met > 30
    assert sum(share > 0.05 for share in real) > len(real) / 2


def test_a_mechanism_that_would_publish_impossible_records_is_refused() -> None:
    mechanism = impossible_number(1)
    with pytest.raises(ParameterError, match="Impossible records must not be published"):
        replace(mechanism, largest=np.maximum(mechanism.largest, 1))
    with pytest.raises(ParameterError, match="Impossible records must not be published"):
        replace(mechanism, acceptance=np.maximum(mechanism.acceptance, 1))
    for patterns in ([], [[0]], [[-1, -1, 0]], [[0, 0, 9]], [[0, -2, 0]]):
        with pytest.raises(ProtocolFileError):
            RealOrSynthetic.restore({**mechanism.to_json(), "impossible": patterns}, mechanism.model, mechanism.promise)


def test_combinations_that_rule_out_nearly_all_records_are_refused() -> None:
    model = random_model(np.random.default_rng(1), 2, [2, 2, 2], skew=4.0)
    every = ImpossibleRecords(np.array(list(product(range(2), repeat=3))))
    with pytest.raises(ParameterError, match="leave less than 1%"):
        design_real_or_synthetic(model, LIP(1.0), impossible=every)
