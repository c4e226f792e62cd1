"""Groups of rare secrets that were read off the table: all of them are counted, whatever the population."""

from fractions import Fraction
from itertools import product
from math import factorial, prod

import numpy as np
import pytest

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.credal import sample_rule
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.sample_rule import SampleRule, choose_limit, grouping_share, rare_group, smallest_limit
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP

CHANCE = Fraction(1, 20)


def totals(rows: int, parts: int) -> list[tuple[int, ...]]:
    """All ways to divide so many rows."""
    return [each for each in product(range(rows + 1), repeat=parts) if sum(each) == rows]


def chance_of(counts: tuple[int, ...], shares: IntArray) -> Fraction:
    """Of a multinomial draw with such shares, exactly."""
    whole, ways = int(shares.sum()), factorial(sum(counts))
    for n in counts:
        ways //= factorial(n)
    return ways * prod((Fraction(int(p), whole) ** n for p, n in zip(shares, counts, strict=True)), start=Fraction(1))


def is_near(counts: tuple[int, ...], shares: IntArray) -> bool:
    """Whether every total is near its mean."""
    n, means = np.array(counts, dtype=float), sum(counts) * shares / shares.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(n > 0, n * np.log(n / means), 0.0)
    return bool((terms - n + means <= np.log(4 * sum(counts) / (float(CHANCE) * means))).all())


@pytest.mark.parametrize("shares", [(1, 2, 3), (1, 1, 20), (5, 6, 7), (1, 5, 30)])
def test_every_grouping_of_totals_near_the_means_has_its_part_whichever_was_seen(
    shares: tuple[int, ...],
) -> None:
    p = np.array(shares)
    near = [counts for counts in totals(30, 3) if is_near(counts, p)]
    far = 1 - sum((chance_of(counts, p) for counts in near), start=Fraction(0))
    assert far <= CHANCE
    largest = dict[tuple[int, ...], Fraction]()  # the largest part that each grouping ever gets near these means
    for counts in near:
        group = tuple(sorted(rare_group(np.array(counts), 6).tolist()))
        largest[group] = max(largest.get(group, Fraction(0)), grouping_share(np.array(counts), 6, CHANCE))
    assert sum(largest.values()) <= 1


@pytest.mark.parametrize("shares", [(1, 2, 3), (1, 1, 20), (1, 5, 30)])
def test_every_limit_and_grouping_of_totals_near_the_means_has_its_part_whichever_was_seen(
    shares: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_rule, "LIMITS", (6, 9, 12, 2))
    monkeypatch.setattr(sample_rule, "USUAL", Fraction(1, 2))
    monkeypatch.setattr(sample_rule, "smallest_limit", lambda total, chance: 0)
    p, taken = np.array(shares), set[int]()
    largest = dict[tuple[int, ...], Fraction]()
    for counts in filter(lambda counts: is_near(counts, p), totals(30, 3)):
        rows = np.array(counts)
        limit = choose_limit(rows, CHANCE)
        taken.add(limit)
        group = (limit, *sorted(rare_group(rows, limit).tolist()))
        largest[group] = max(largest.get(group, Fraction(0)), grouping_share(rows, limit, CHANCE))
    assert len(taken) > 1
    assert sum(largest.values()) <= 1


def test_the_limit_is_200_unless_totals_are_crowded_there() -> None:
    assert choose_limit(np.array([37, 628, 1518, 16117]), CHANCE / 100) == 200
    assert choose_limit(np.array([15, 242, 983, 1446, 5504]), CHANCE / 100) == 200
    assert choose_limit(np.array([60, 70, 80]), CHANCE / 100) == 200  # too few rows for any promise
    crowded = np.array([*range(20, 220, 5), 43832])
    limit = choose_limit(crowded, CHANCE / 100)
    assert limit > 200
    assert grouping_share(crowded, limit, CHANCE / 100) > 1000 * grouping_share(crowded, 200, CHANCE / 100)
    assert choose_limit(np.array([200] * 50), CHANCE / 100) == 200  # each alone is the likeliest grouping


def test_totals_far_from_the_limit_leave_one_grouping() -> None:
    assert grouping_share(np.array([37, 628, 1518, 16117]), 199, CHANCE / 100) == 1
    assert grouping_share(np.array([150, 628, 1518, 16117]), 199, CHANCE / 100) < 1


def test_many_secrets_near_the_limit_are_bounded_without_listing() -> None:
    part = grouping_share(np.array([10_000, *[190] * 30]), 200, CHANCE / 100)
    assert Fraction(1, 10**30) < part < Fraction(1, 2**10)


@pytest.mark.parametrize("shares", [((1, 4), (4, 2), (9, 9))])
def test_over_all_tables_the_sets_of_the_groups_that_were_read_off_fail_as_rarely_as_they_say(
    shares: tuple[tuple[int, ...], ...],
) -> None:
    p, failed = np.array(shares), Fraction(0)
    promise = LIP(1.0)
    for counts in totals(5, 6):
        table = np.array(counts).reshape(3, 2)
        rows = table.sum(axis=1)
        if len(rare_group(rows, 2)) == 3 or not table.sum(axis=0).all() or not rows.all():
            continue  # refused, or fewer labels than there are
        joint = Joint.from_counts(table)
        sets = SampleRule(Fraction(6, 10), rare=2).credal_sets(lambda c: promise.group_pairs(c, 1, False), joint, False)
        truth = np.array([p[mask].sum(axis=0) / p[mask].sum() for mask in sets.secrets]) * SCALE
        if not ((sets.low <= truth + 1) & (truth <= sets.high + 1)).all():
            failed += chance_of(counts, p.ravel())
    assert failed <= Fraction(4, 10)


COMMON = np.array([[0.30, 0.16], [0.16, 0.30]])
SCARCE = np.repeat([0.002, 0.00002], [20, 2000])  # rare secrets: some that every sample shows, many that few do
FIRST = np.repeat([True, False], [20, 2000])  # the first kind has the first value, the other kind the other one


def missed_pools(samples: int) -> tuple[int, int]:
    """In how many samples the box of the pool misses P(x | not common), and P(x | rare and seen)."""
    draw, of_all, of_seen = np.random.default_rng(5), 0, 0
    for _ in range(samples):
        counts = draw.multinomial(5000, np.concatenate([COMMON.ravel(), SCARCE]))
        rare = counts[4:]
        seen = rare > 0
        joint = Joint.from_counts(
            np.concatenate([counts[:4].reshape(2, 2), np.stack([rare * FIRST, rare * ~FIRST], axis=1)[seen]])
        )
        sets = LIP(1.0).for_population(joint).credal_sets(joint)
        pool = int(np.flatnonzero(~sets.secrets[:, :2].any(axis=1))[0])
        low, high = sets.low[pool, 0] / SCALE, sets.high[pool, 0] / SCALE
        of_all += not low <= SCARCE[FIRST].sum() / SCARCE.sum() <= high
        of_seen += not low <= SCARCE[FIRST & seen].sum() / SCARCE[seen].sum() <= high
    return of_all, of_seen


def test_the_pool_holds_secrets_that_no_row_has() -> None:
    """At 95 % more than 7 misses in 25 have a chance below 1 in 10,000; a pool of the seen ones is always missed."""
    of_all, of_seen = missed_pools(25)
    assert of_all <= 7
    assert of_seen == 25


def test_the_number_of_secrets_in_the_population_does_not_count_since_their_means_sum_to_the_rows() -> None:
    """Where no secret is rare, one that no row has may yet join the smallest common one: that has its part too."""
    assert grouping_share(np.array([5000, 9000]), 201, CHANCE / 100) < 1
    assert grouping_share(np.array([60, 628, 1518, 16117]), 199, CHANCE / 100) == 1


@pytest.mark.parametrize("rows", [100, 3000, 10**7])
def test_a_limit_below_which_an_unseen_secret_might_be_common_is_refused(rows: int) -> None:
    least = smallest_limit(rows, CHANCE / 100)
    assert 20 < least < 200
    rule = SampleRule(1 - CHANCE, rare=least)
    assert rule.check_limit(rows) is rule
    with pytest.raises(ParameterError, match=f"rare must be 0 or at least {least} for a sample of"):
        SampleRule(1 - CHANCE, rare=least - 1).check_limit(rows)
