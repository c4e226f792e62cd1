"""Groups of rare secrets that were read off the table: all of them are counted, whatever the population."""

from fractions import Fraction
from itertools import product
from math import factorial, log, prod

import numpy as np
import pytest

from privacyfunnel.arrays import IntArray
from privacyfunnel.model.credal import rare_secrets
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.rare_secrets import choose_limit, grouping_share, rare_group
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
    return bool((terms - n + means <= log(2 * len(counts) / float(CHANCE))).all())


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
    monkeypatch.setattr(rare_secrets, "LIMITS", (6, 9, 12, 2))
    monkeypatch.setattr(rare_secrets, "USUAL", Fraction(1, 2))
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
    assert choose_limit(np.array([200] * 50), CHANCE / 100) == 50  # each alone rather than who knows which together


def test_totals_far_from_the_limit_leave_one_grouping() -> None:
    assert grouping_share(np.array([37, 628, 1518, 16117]), 199, CHANCE / 100) == 1
    assert grouping_share(np.array([150, 628, 1518, 16117]), 199, CHANCE / 100) < 1


def test_many_secrets_near_the_limit_are_bounded_without_listing() -> None:
    part = grouping_share(np.array([10_000, *[190] * 30]), 200, CHANCE / 100)
    assert Fraction(1, 2**32) < part < Fraction(1, 2**10)


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
        sets = promise.for_population(joint, 0.6, rare=2).credal_sets(joint, False)
        assert sets is not None
        truth = np.array([p[mask].sum(axis=0) / p[mask].sum() for mask in sets.secrets]) * SCALE
        if not ((sets.low <= truth + 1) & (truth <= sets.high + 1)).all():
            failed += chance_of(counts, p.ravel())
    assert failed <= Fraction(4, 10)
