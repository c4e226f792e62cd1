"""Discrete Laplace noise: what is drawn, what its sums are, and the bounds of shares that are seen through it."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import comb, exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.noisy_sample_rule import NoisyClopperPearson
from privacyfunnel.model.published.noise import NOISES, NoiseSource, NoiseSum, OpenDPNoise, _bernoulli_exp

FALSE_ALARM = 1e-9  # of each judgement of a sampler
RATES = [Fraction(1, 4), Fraction(3, 20), Fraction(7, 5)]


def chances(rate: Fraction, reach: int) -> np.ndarray:
    """Pr[Z = k] of one draw for |k| ≤ reach, in floats."""
    t = exp(-float(rate))
    return np.asarray((1 - t) / (1 + t) * t ** np.abs(np.arange(-reach, reach + 1)))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("source", sorted(NOISES))
def test_draws_are_discrete_laplace(source: str, rate: Fraction) -> None:
    noise: NoiseSource = NOISES[source](rate)
    assert noise.rate <= rate
    assert noise.rate >= rate * (1 - Fraction(1, 2**50))
    draws = Counter(noise.draw(8000))
    reach = next(k for k in range(200) if 8000 * chances(rate, 200)[200 + k :].sum() < 10) - 1
    seen = [draws[k] for k in range(-reach, reach + 1)]
    seen += [sum(n for k, n in draws.items() if k > reach), sum(n for k, n in draws.items() if k < -reach)]
    expected = chances(rate, reach)
    rest = (1 - expected.sum()) / 2
    assert stats.chisquare(seen, 8000 * np.array([*expected, rest, rest])).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 3), (1, 3), (2, 3), (1, 1)])
def test_a_coin_of_chance_one_over_e_to_a_fraction_is_exact(numerator: int, denominator: int) -> None:
    """All that `below` may answer in six calls, each answer as likely as any other: the series of e^{−γ} to γ⁶/6!."""
    heads = Fraction(0)
    for flips in product([True, False], repeat=6):
        chance, asked = Fraction(1), 0

        def below(size: int, flips: tuple[bool, ...] = flips) -> int:
            nonlocal chance, asked
            yes = asked < 6 and flips[asked]
            chance *= Fraction(numerator, size) if yes else 1 - Fraction(numerator, size)
            asked += 1
            return 0 if yes else size - 1

        came = _bernoulli_exp(numerator, denominator, below)
        if not any(flips[asked:]):  # each way through the coin once
            heads += chance * came
    gamma = numerator / denominator
    assert float(heads) == pytest.approx(exp(-gamma), abs=gamma**6 / 720 + 1e-15)


def test_opendp_is_never_asked_for_less_noise_than_was_ordered() -> None:
    for part in range(1, 60):
        assert OpenDPNoise(Fraction(part, 37)).rate <= Fraction(part, 37)


@pytest.mark.parametrize("terms", [0, 1, 2, 7])
@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(2)])
def test_sums_are_convolutions(terms: int, rate: Fraction) -> None:
    far = 500
    one, all_ = chances(rate, far), np.zeros(2 * far + 1)
    all_[far] = 1.0
    for _ in range(terms):
        all_ = np.convolve(all_, one)[far:-far]
    noise = NoiseSum(rate, terms)
    found = [float(noise.chances[abs(k)]) for k in range(-noise.reach, noise.reach + 1)]
    assert np.allclose(found, all_[far - noise.reach : far + noise.reach + 1], atol=1e-15)
    assert all_[far + noise.reach + 1 :].sum() <= float(noise.remainder) + 1e-30
    assert np.allclose([float(p) for p in noise.cdf_bounds], all_.cumsum()[far - noise.reach : far + noise.reach + 1])
    level = Fraction(1, 1000)
    width = noise.width(level)
    assert all_[far + width + 1 :].sum() <= 1e-3 < all_[far + width :].sum()


def exact_tail(seen: int, trials: int, share: Fraction, rate: Fraction) -> Fraction:
    """Pr[Bin + Z ≤ seen] for one draw of noise, to 1e-40: the chances as fractions, e^{−r} to fifty digits."""
    import decimal

    with decimal.localcontext() as context:
        context.prec = 50
        t = Fraction((-Decimal(rate.numerator) / rate.denominator).exp())
    total = Fraction(0)
    for j in range(trials + 1):
        k = seen - j
        noise = t ** (-k) / (1 + t) if k < 0 else 1 - t ** (k + 1) / (1 + t)  # Pr[Z ≤ k]
        total += comb(trials, j) * share**j * (1 - share) ** (trials - j) * noise
    return total


@settings(max_examples=40)
@given(
    trials=st.integers(1, 25),
    seen=st.integers(-5, 30),
    level=st.fractions(Fraction(1, 10**5), Fraction(2, 5), max_denominator=10**5),
    rate=st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(3)]),
)
def test_bounds_through_noise_are_proved_and_tight(trials: int, seen: int, level: Fraction, rate: Fraction) -> None:
    shares = NoisyClopperPearson(NoiseSum(rate, 1), level)
    high, low, tiny = shares.upper(seen, trials), shares.lower(seen, trials), Fraction(1, 10**40)
    if high < SCALE:
        assert exact_tail(max(seen, 0), trials, Fraction(high, SCALE), rate) <= level + tiny
        nearly = Fraction(high, SCALE) * (1 - Fraction(1, 10**6))
        assert exact_tail(max(seen, 0), trials, nearly, rate) > level
    elif seen < trials:
        assert exact_tail(max(seen, 0), trials, 1 - Fraction(1, 10**7), rate) > level
    assert low == SCALE - shares.upper(trials - seen, trials)
    assert low <= high


@pytest.mark.parametrize(("seen", "trials"), [(2500, 48_842), (120, 6_000), (4_999_000, 10_000_000)])
def test_bounds_of_large_counts_agree_with_a_convolution(seen: int, trials: int) -> None:
    shares = NoisyClopperPearson(NoiseSum(Fraction(1, 4), 3), Fraction(1, 500))
    p = shares.upper(seen, trials) / SCALE
    reach = 200
    noise = [float(shares.noise.chances[abs(k)]) for k in range(-reach, reach + 1)]
    tails = stats.binom.cdf(seen - np.arange(-reach, reach + 1), trials, p)
    assert float(noise @ tails) == pytest.approx(1 / 500, rel=1e-4)


def test_fewer_trials_never_bring_the_bounds_closer_together_on_their_side() -> None:
    shares = NoisyClopperPearson(NoiseSum(Fraction(1, 2), 2), Fraction(1, 100))
    assert shares.upper(30, 95) > shares.upper(30, 100) > shares.upper(30, 105)
    assert shares.lower(30, 95) > shares.lower(30, 100) > shares.lower(30, 105)


def test_without_noise_they_are_clopper_and_pearsons() -> None:
    from privacyfunnel.model.credal.clopper_pearson import exact_lower_bound, exact_upper_bound

    shares = NoisyClopperPearson(NoiseSum(Fraction(1), 0), Fraction(1, 100))
    assert (shares.lower(3, 50), shares.upper(3, 50)) == (
        exact_lower_bound(3, 50, shares.level),
        exact_upper_bound(3, 50, shares.level),
    )
