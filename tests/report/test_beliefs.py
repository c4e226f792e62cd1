"""What an attacker may come to believe: within what is promised, sharp, and never rounded to the better side."""

from __future__ import annotations

import html
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.formatting import format_factor, format_percent
from privacyfunnel.model.comparisons import factor_bounds, odds_bounds
from privacyfunnel.model.promises import LIP
from privacyfunnel.report.attacker import AttackerView, Belief, attacker_view, beliefs_bars, worst_sentence
from privacyfunnel.report.release_page import owner_page
from tests.report.released import KINDS, OCCASION, page, released


def test_beliefs_lie_within_what_the_promise_allows_and_are_those_of_every_output() -> None:
    for kind in ("one column", "several", "three", "odds", "seeing the secret"):
        release = released(*KINDS[kind])
        sealed, joint = release.sealed, release.joint
        assert joint is not None
        found = attacker_view(joint, sealed)
        assert found.has_limit
        prior = dict(zip(joint.secrets, joint.p_s.tolist(), strict=True))
        for b in found.beliefs:
            assert b.prior == pytest.approx(prior[b.secret], abs=1e-12)
            assert b.lowest is not None
            assert b.highest is not None
            assert b.least - 1e-12 <= b.lowest <= b.prior + 1e-12
            assert b.prior - 1e-12 <= b.highest <= b.most + 1e-12
            assert 0 <= b.least <= b.most <= 1
        (guess,) = found.guessing
        assert guess.blind - 1e-12 <= guess.published <= guess.original + 1e-12 or sealed.sees_secret
        assert f"{format_percent(found.worst.top, up=True)} sure" in html.unescape(page(kind))


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=5), st.floats(0, 3), st.data())
def test_the_allowed_beliefs_are_sharp(weights: list[float], epsilon: float, data: st.DataObject) -> None:
    prior = np.array(weights) / sum(weights)
    chances = [data.draw(st.floats(math.exp(-epsilon), math.exp(epsilon))) for _ in weights]
    likely = np.array(chances)
    posterior = prior * likely / float(prior @ likely)
    odds = math.log(likely.max() / likely.min())
    size = max(abs(math.log(v / p)) for v, p in zip(posterior, prior, strict=True))
    for p, v in zip(prior.tolist(), posterior.tolist(), strict=True):
        for allowed, leak in ((factor_bounds, size), (odds_bounds, odds)):
            least, most = allowed(p, leak)
            assert least - 1e-9 <= v <= most + 1e-9
    # Two secrets: both ends are reached, by a factor for the one that moves furthest.
    p = float(prior[0])
    for allowed, other in ((odds_bounds, math.exp(-epsilon)), (odds_bounds, math.exp(epsilon))):
        v = p / (p + (1 - p) * other)
        assert min(abs(v - end) for end in allowed(p, epsilon)) < 1e-9
    top = factor_bounds(p, epsilon)[1]
    moved = max(abs(math.log(top / p)), abs(math.log((1 - top) / (1 - p))) if top < 1 else 0.0)
    assert moved == pytest.approx(epsilon, abs=1e-6)


def test_an_upper_limit_is_never_rounded_down_and_nothing_runs_past_the_whole() -> None:
    belief = Belief("x", 0.000301, 0.0001107, 0.00081801, 0.0002, 0.00081801)
    assert "at most 0.082 % sure" in worst_sentence(AttackerView((belief,), ()), "job", "knows")
    assert format_percent(0.12301, up=True) == "12.4 %"
    assert format_percent(0.9999, up=True) == "99.99 %"
    sure = AttackerView((Belief("x", 0.9, *factor_bounds(0.9, 3.0), 0.5, 0.95),), ())
    assert all(mark.end <= 1 for row in beliefs_bars(sure, "job").rows for mark in row.marks)
    assert factor_bounds(0.9, 3.0)[1] < 1
    assert "e^1e+09" in owner_page(released(LIP(1e9), ("city",)), OCCASION)


def test_factors_are_never_rounded_down_and_huge_ones_are_powers() -> None:
    assert [format_factor(epsilon) for epsilon in (0.0, 1.0, 9.0, 12.1)] == ["1", "2.72", "8110", "e^12.1"]


def test_of_several_secrets_the_worst_case_names_the_column_with_its_value() -> None:
    belief = Belief("health = ill", 0.000301, 0.0001107, 0.00081801, 0.0002, 0.00081801)
    said = worst_sentence(AttackerView((belief,), ()), "each of health and creed", "knows", several=True)
    assert "sure that they have health = ill." in said
