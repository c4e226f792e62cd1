"""The short form: every option in some pair, all kinds of frames and files, and what was broken once."""

import pytest

from tests.adversary.__main__ import attack_once
from tests.adversary.candidates import by_candidates, kinds
from tests.adversary.cases import CASES, ONCE_BROKEN, OPTIONS, SHORT


@pytest.mark.parametrize("name", SHORT)
def test_no_more_leaks_than_was_promised(name: str) -> None:
    found = attack_once(SHORT[name], 0, seed=33, rows=2_000, releases=1)
    assert not found.refusal
    assert not found.broken, f"at least {found.lower:.3f} nats leak, {found.allowed:g} are allowed; {found.worst}"


@pytest.mark.parametrize("name", ONCE_BROKEN)
def test_what_was_broken_once_holds_or_is_refused(name: str) -> None:
    found = attack_once(CASES[name], 0, seed=33, rows=6_000, releases=3)
    assert not found.broken, f"at least {found.lower:.3f} nats leak, {found.allowed:g} are allowed; {found.worst}"


def test_codes_by_the_tables_own_counts_tell_the_last_person_as_the_limits_say() -> None:
    """Not promised: docs/limits.md says so, and that a published model mends it."""
    by_codes = by_candidates("sanitised.csv", kinds)
    assert attack_once(by_codes, 0, seed=33, rows=0, releases=3).broken


def test_every_option_is_attacked_alone_and_most_in_pairs() -> None:
    assert set(OPTIONS) <= set(CASES)
    for name in OPTIONS:
        assert any(name in short for short in SHORT)
        assert sum(f"{name} + " in case or case.endswith(f" + {name}") for case in CASES) >= len(OPTIONS) // 2
