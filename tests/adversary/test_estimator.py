"""The estimator is right about protocols of known leakage: an honest one passes, a slightly louder one is found."""

import json
from hashlib import sha256
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from privacyfunnel import ReleaseSpec, design
from tests.adversary.estimator import MOST_VIEWS, chance_at_least, lower_chance, measure
from tests.adversary.tables import draw_table
from tests.adversary.wide_files import worst_ratio

EPSILON = 0.5
RNG = np.random.default_rng(7)


def respond(epsilon: float, records: int, share: float = 0.5) -> tuple[list[int], list[int]]:
    """Randomised response about a coin: secrets, and what is published."""
    secrets = (np.arange(records) < share * records).astype(int)
    honest = RNG.random(records) < exp(epsilon) / (1 + exp(epsilon))
    return secrets.tolist(), np.where(honest, secrets, 1 - secrets).tolist()


def lip(epsilon: float, share: float) -> float:
    """The LIP leakage of randomised response."""
    q = exp(epsilon) / (1 + exp(epsilon))
    of = {(s, y): q if s == y else 1 - q for s in (0, 1) for y in (0, 1)}
    total = [share * of[1, y] + (1 - share) * of[0, y] for y in (0, 1)]
    return max(abs(log(of[s, y] / total[y])) for s in (0, 1) for y in (0, 1))


@pytest.mark.parametrize("promise", ["lip", "ldp", "srlip"])
def test_honest_randomised_response_at_its_very_epsilon_passes_200_times(promise: str) -> None:
    share = 0.3
    allowed = EPSILON if promise == "ldp" else lip(EPSILON, share)
    for _ in range(200):
        secrets, views = respond(EPSILON, 2_000, share)
        found = measure(secrets, views, promise=promise, error=1e-6, known=[["same"] * 2_000])
        assert found.lower <= allowed


def test_bounds_that_may_often_be_wrong_are_wrong_about_as_often() -> None:
    """With a large error the bound is above the truth now and then: it is not merely loose."""
    above = sum(
        measure(*respond(EPSILON, 2_000), promise="ldp", error=2.0 * MOST_VIEWS).lower > EPSILON for _ in range(60)
    )
    assert 5 < above < 55


@pytest.mark.parametrize(("more", "records"), [(1.1, 250_000), (1.05, 1_000_000)])
def test_a_leak_of_five_or_ten_percent_more_is_found(more: float, records: int) -> None:
    assert measure(*respond(EPSILON * more, records), promise="ldp", error=1e-6).lower > EPSILON


def test_lip_is_measured_against_the_prior_and_ldp_between_secrets() -> None:
    secrets, views = respond(2.0, 200_000, 0.2)
    assert lip(2.0, 0.2) - 0.1 < measure(secrets, views, promise="lip", error=1e-6).lower < lip(2.0, 0.2)
    assert 1.9 < measure(secrets, views, promise="ldp", error=1e-6).lower < 2.0


def test_srlip_finds_what_only_those_learn_who_know_a_value() -> None:
    """y = x xor s: y alone says nothing, and everything to whoever knows x."""
    s, x = RNG.integers(0, 2, 4_000), RNG.integers(0, 2, 4_000)
    views, known = (s ^ x).tolist(), [x.tolist()]
    assert measure(s.tolist(), views, promise="lip", error=1e-6).lower < 0.05
    assert measure(s.tolist(), views, promise="srlip", error=1e-6, known=known).lower > 2


def test_a_view_that_one_secret_alone_has_leaks_more_with_every_record() -> None:
    bounds = [measure([0] * n + [1] * n, [0] * n + [1] * n, promise="ldp", error=1e-6).lower for n in (50, 500, 5_000)]
    assert bounds[0] < bounds[1] - 1 < bounds[2] - 2


def test_too_many_views_are_refused() -> None:
    n = MOST_VIEWS + 1
    with pytest.raises(ValueError, match="coarser"):
        measure([0, 1] * n, list(range(2 * n)), promise="lip", error=1e-6)


def test_chances_of_counts_are_those_of_the_binomial_distribution() -> None:
    assert chance_at_least(9, 12, 0.05) == pytest.approx(220 * 0.05**9 * 0.95**3, rel=0.05)
    assert chance_at_least(0, 12, 0.05) == 1
    assert lower_chance(40, 40, 1e-8) == pytest.approx(1e-8 ** (1 / 40))
    assert lower_chance(0, 40, 1e-8) == 0


def test_a_wide_file_whose_slacks_are_larger_than_proved_is_found(tmp_path: Path) -> None:
    path, larger = tmp_path / "protocol.json", tmp_path / "larger.json"
    rows = draw_table(np.random.default_rng(5), 8_000, secrets=3, rare=False).rows
    spec = ReleaseSpec(secret="s", publish=["x", "z", "k"], epsilon=1.0, method="real-or-synthetic", seed=3)
    design(rows, spec).save(path)
    worst, allowed = worst_ratio(path)
    assert 1 < worst <= allowed
    content = json.loads(path.read_text(encoding="utf-8"))
    content["law"] |= {
        "slacks": [[2 * n for n in row] for row in content["law"]["slacks"]],
        "largest": [1 << 32] * len(content["law"]["largest"]),
    }
    del content["digest"]
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    larger.write_text(json.dumps(content | {"digest": sha256(canonical.encode()).hexdigest()}), encoding="utf-8")
    worst, allowed = worst_ratio(larger)
    assert worst > allowed
