"""Estimates over many values by one factorisation: unbiased, as wide as they should be, silent on what is hidden."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.estimation import front
from privacyfunnel.estimation.identification import RowSpace, identify
from privacyfunnel.estimation.intervals import spread
from privacyfunnel.estimation.inversion import unbiased_weights
from privacyfunnel.estimation.many_values import _likely, _Weights, shares_of_many
from privacyfunnel.estimation.models import ChannelModel
from privacyfunnel.model.promises import LIP
from privacyfunnel.release.sanitise import sanitise


@given(seed=st.integers(0, 10**6), a=st.integers(2, 6), more=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_estimates_are_those_of_least_variance_and_what_is_not_identified_is_not_told(
    seed: int, a: int, more: int
) -> None:
    random = np.random.default_rng(seed)
    channel = random.dirichlet(np.ones(a + more), a) * random.choice([0.0, 1.0], size=(a, a + more), p=[0.3, 0.7])
    channel[:, 0] += 0.1
    if random.random() < 0.5:
        channel[-1] = channel[0]  # nothing tells these two apart
    channel /= channel.sum(axis=1, keepdims=True)
    model = ChannelModel(channel)
    chances = random.dirichlet(np.ones(a)) @ channel
    seen = model.observed(random.multinomial(5000, chances / np.nextafter(chances.sum(), 2)))
    found = shares_of_many(model, seen, np.eye(a), 0.95, fixed=True)
    space = RowSpace.of(channel)
    known = identify(space, np.eye(a)).identified
    assert not (found.identified & ~known).any()
    # The other way round rounding may hide what is all but hidden.
    clear = known & (np.linalg.svd(channel)[1].min() > 1e-3 if space.complete else False)
    assert found.identified[clear].all()
    p = _likely(channel, seen)
    g = unbiased_weights(model, space, np.eye(a)[:, found.identified], p)
    expected = np.sqrt(spread(model, g, p, seen.rows, fixed=True).variance)
    assert found.error[found.identified] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert (found.lower <= found.upper).all()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_weights_that_are_called_unbiased_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    channel = random.dirichlet(np.full(6, 0.5), 5)
    g, told = _Weights.at(channel, np.full(5, 0.2)).of(np.eye(5))
    assert np.abs(channel @ g - np.eye(5))[:, told].max(initial=0.0) <= 1e-6


def test_a_table_of_many_values_is_told_by_one_factorisation_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    job = random.choice(["a", "b"], size=3000)
    city = np.where(random.random(3000) < 0.5, np.where(job == "a", "u", "v"), random.choice(list("uvw"), size=3000))
    frame = pl.DataFrame({"job": job, "city": city})
    release = sanitise(frame, secret="job", publish="city", promise=LIP(0.5), seed=1)
    usual = front.estimate(release).table("city")
    monkeypatch.setattr(front, "MOST_ALGEBRA", 0)
    found = front.estimate(release).table("city")
    assert "unbiased estimate by itself" in found.notes[0]
    for one, other in zip(found.cells, usual.cells, strict=True):
        if one.share is not None and other.share is not None:
            assert one.share == pytest.approx(other.share, abs=0.02)
            assert one.lower <= other.share <= one.upper
