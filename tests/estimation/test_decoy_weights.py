"""Weights of real or synthetic records and of decoys: unbiased by brute force, with the stated error."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privacyfunnel.arrays import FloatArray
from privacyfunnel.estimation.decoy_weights import KnownRecords, WeightedRelease
from privacyfunnel.mechanisms.sampling import KeyStream
from tests.mechanisms.test_real_or_synthetic import all_records, design_number, exact_channel

STREAM = KeyStream.from_seed(1)


def usable_designs() -> list[int]:
    """Models in which every possible record is sometimes published as it is, and some are replaced."""
    found = []
    for number in range(40):
        mechanism = design_number(number).mechanism
        codes = all_records(mechanism.model)
        possible = np.isfinite(mechanism.model.ratios(codes)[:, 0])
        keep = KnownRecords.find(mechanism, codes).keep[possible]
        if keep.min() > 0.01 and keep.min() < 0.9:
            found.append(number)
    return found


def test_every_rows_contribution_has_the_mean_of_its_original_record() -> None:
    numbers = usable_designs()
    assert len(numbers) >= 10
    for number in numbers:
        mechanism, rng = design_number(number).mechanism, np.random.default_rng(number)
        codes = all_records(mechanism.model)
        possible = np.isfinite(mechanism.model.ratios(codes)[:, 0])
        channel = np.array([[float(p) for p in row] for row in exact_channel(mechanism)])[np.ix_(possible, possible)]
        release = WeightedRelease.weigh(mechanism, codes[possible], STREAM, 100)
        np.testing.assert_array_equal(release.decoys.codes, codes[possible])
        for f in rng.normal(size=(5, len(channel))):
            np.testing.assert_allclose(channel @ release.contributions(f, f), f, rtol=0, atol=1e-8)


def estimate_sum(release: WeightedRelease, of_rows: FloatArray, of_decoys: FloatArray) -> tuple[float, float]:
    """The sum of a function over the original rows, given its values at rows and decoys, and its standard error."""
    found = release.contributions(of_rows, of_decoys)
    squares = release.contributions(of_rows**2, of_decoys**2)
    return float(found.sum()), math.sqrt(max(float((found**2).sum() - squares.sum()), 0.0))


def test_weights_add_up_to_what_contributions_add_up_to_and_decoys_count_negatively() -> None:
    for number in usable_designs()[:6]:
        mechanism = design_number(number).mechanism
        rows = np.repeat(all_records(mechanism.model), 50, axis=0)
        drawn = mechanism.draw(rows, STREAM.rows(0, len(rows)))
        release = WeightedRelease.weigh(mechanism, drawn, STREAM, 100)
        f, g = (np.random.default_rng(3).normal(size=100)[codes.sum(axis=1)] for codes in (drawn, release.decoys.codes))
        weighted = release.row_weights @ f + release.decoy_weights @ g
        assert estimate_sum(release, f, g)[0] == pytest.approx(weighted, rel=1e-9)
        assert release.decoy_weights.sum() < 0
        total, error = estimate_sum(release, np.ones(len(drawn)), np.ones(len(release.shares)))
        assert abs(total - len(rows)) <= 6 * error + 1e-6


def test_the_standard_error_is_what_estimates_scatter_by() -> None:
    number = usable_designs()[0]
    mechanism = design_number(number).mechanism
    codes = all_records(mechanism.model)
    codes = np.repeat(codes[np.isfinite(mechanism.model.ratios(codes)[:, 0])], 30, axis=0)
    scores = []
    for repeat in range(400):
        drawn = mechanism.draw(codes, KeyStream.from_seed(100 + repeat).rows(0, len(codes)))
        release = WeightedRelease.weigh(mechanism, drawn, STREAM, 100)
        first = drawn[:, 0].astype(float), release.decoys.codes[:, 0].astype(float)
        value, error = estimate_sum(release, *first)
        scores.append((value - codes[:, 0].sum()) / error)
    assert abs(np.mean(scores)) < 5 / np.sqrt(400)
    assert 0.75 < np.mean(np.square(scores)) < 1.3


def test_records_that_are_never_published_are_said_to_be_uncounted() -> None:
    mechanism = design_number(usable_designs()[0]).mechanism
    codes = all_records(mechanism.model)[:1]
    assert WeightedRelease.weigh(mechanism, codes, STREAM, 10).uncounted_share == 0
    silent = replace(mechanism, largest=mechanism.largest * 0)
    assert WeightedRelease.weigh(silent, codes, STREAM, 10).uncounted_share == pytest.approx(1)
