"""What integers leak over sets of priors, checked again in fractions by another way."""

import json
from fractions import Fraction
from itertools import product as every
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import GuaranteeError, ProtocolFileError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.sealing import SealedProtocol, exact_worst_leak, seal
from privacyfunnel.model.credal.clopper_pearson import SCALE, exact_lower_bound, exact_upper_bound
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.credal.sample_rule import grouping_share
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol

UNIT = 2**64


def random_sets(random: np.random.Generator, inputs: int, secrets: int) -> CredalSets:
    """Boxes around chance distributions, each against all the others."""
    centre = random.dirichlet(np.full(inputs, 0.7), size=secrets)
    low = np.floor(centre * random.uniform(0, 1, centre.shape) * SCALE).astype(np.int64)
    high = np.minimum(np.ceil(centre * (1 + random.exponential(0.5, centre.shape)) * SCALE), SCALE).astype(np.int64)
    high[high.sum(axis=1) < SCALE] = SCALE
    pairs = np.array([(e, f) for e in range(secrets) for f in range(secrets) if e != f])
    share = random.integers(0, SCALE // 2, len(pairs)) * random.integers(0, 2, len(pairs))
    return CredalSets(low, high, np.eye(secrets, dtype=bool), ((),) * secrets, pairs, share)


def vertices(low: list[Fraction], high: list[Fraction]) -> list[list[Fraction]]:
    """All vertices of a box cut by the simplex: every entry but one is at an end."""
    found = []
    for free in range(len(low)):
        others = [i for i in range(len(low)) if i != free]
        for ends in every((0, 1), repeat=len(others)):
            point = [Fraction(0)] * len(low)
            for i, end in zip(others, ends, strict=True):
                point[i] = (low, high)[end][i]
            point[free] = Fraction(1 - sum(point))
            if low[free] <= point[free] <= high[free]:
                found.append(point)
    return found


def by_vertices(sets: CredalSets, columns: list[list[int]]) -> Fraction | None:
    """The largest ratio over all outputs, pairs and vertices, as defined; None is infinite."""
    corners = [
        vertices([Fraction(int(x), SCALE) for x in low], [Fraction(int(x), SCALE) for x in high])
        for low, high in zip(sets.low, sets.high, strict=True)
    ]
    worst = Fraction(1)
    for column in columns:
        chances = [[sum(p * n for p, n in zip(P, column, strict=True)) for P in points] for points in corners]
        for (e, f), share in zip(sets.pairs.tolist(), sets.share.tolist(), strict=True):
            pi = Fraction(share, SCALE)
            for one in (min(chances[e]), max(chances[e])):
                for other in (min(chances[f]), max(chances[f])):
                    mixed = pi * one + (1 - pi) * other
                    if (one == 0) != (mixed == 0):
                        return None
                    if one:
                        worst = max(worst, one / mixed, mixed / one)
    return worst


@pytest.mark.parametrize("seed", range(200))
def test_the_certificate_is_what_fractions_over_all_vertices_say(seed: int) -> None:
    random = np.random.default_rng(seed)
    inputs, outputs = int(random.integers(2, 5)), int(random.integers(1, 4))
    sets = random_sets(random, inputs, int(random.integers(2, 4)))
    channel = random.dirichlet(np.full(outputs, 0.5), size=inputs)
    channel = np.where(random.random(channel.shape) < 0.1, 0.0, channel) + 1e-9 * (random.random() < 0.8)
    channel[:, 0] += channel.sum(axis=1) == 0
    law = ChannelMechanism.from_protocol(Protocol(channel / channel.sum(axis=1, keepdims=True)))
    assert law.worst_credal_leak(sets).ratio == by_vertices(sets, [law.column(y) for y in range(outputs)])


def fractions_say(joint: Joint, kind: type[Promise], law: ChannelMechanism, groups: list[list[int]]) -> Fraction:
    """LIP or LDP at 95 % by the notes' own formulas, from counts, over groups that are compared."""
    columns = [law.column(y) for y in range(len(law.outputs))]
    rows = [[int(n) for n in joint.weights[group].sum(axis=0)] for group in groups]
    rest = [[int(n) for n in joint.weights.sum(axis=0) - joint.weights[group].sum(axis=0)] for group in groups]
    c, beta, lip = len(groups), Fraction(1, 20), kind is LIP
    # Other groups might have been read off the table, of two secrets too: the pool may hold secrets without a row.
    beta = (beta - beta / 100) * grouping_share(joint.weights.sum(axis=1), 200, beta / 100)

    def floor(level: Fraction) -> Fraction:
        return Fraction(level.numerator * 2**60 // level.denominator, 2**60)

    def greedy(counts: list[int], part: Fraction, column: list[int], most: bool) -> Fraction:
        cells, n = len(counts), sum(counts)
        level = floor(part / (2 if cells == 2 else 2 * cells))
        low, high = [exact_lower_bound(k, n, level) for k in counts], [exact_upper_bound(k, n, level) for k in counts]
        if cells == 2:
            low[1], high[1] = SCALE - high[0], SCALE - low[0]
        left, point = SCALE - sum(low), list(low)
        for x in sorted(range(cells), key=lambda x: -column[x] if most else column[x]):
            more = min(left, high[x] - low[x])
            point[x] += more
            left -= more
        assert left == 0
        return Fraction(sum(p * n for p, n in zip(point, column, strict=True)), SCALE)

    own = beta * (Fraction(60, 100) if lip and c > 2 else Fraction(98, 100) if lip else 1)
    weights = [isqrt(2**60 // sum(counts)) for counts in rows]
    parts = [floor(own * w / sum(weights)) for w in weights]
    worst = Fraction(1)
    for column in columns:
        top = [greedy(counts, part, column, True) for counts, part in zip(rows, parts, strict=True)]
        low = [greedy(counts, part, column, False) for counts, part in zip(rows, parts, strict=True)]
        if not lip:
            worst = max(worst, *(top[s] / low[t] for s in range(c) for t in range(c) if s != t))
            continue
        for s in range(c):
            if c == 2:
                rest_top, rest_low = top[1 - s], low[1 - s]
            else:
                part = beta * Fraction(38, 100) / c
                rest_top, rest_low = greedy(rest[s], part, column, True), greedy(rest[s], part, column, False)
            pi = Fraction(exact_lower_bound(sum(rows[s]), joint.total, floor(beta * Fraction(2, 100) / c)), SCALE)
            worst = max(
                worst, top[s] / (pi * top[s] + (1 - pi) * rest_low), (pi * low[s] + (1 - pi) * rest_top) / low[s]
            )
    return worst


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from((LIP, LDP)), c=st.integers(2, 4))
def test_a_sealed_protocol_keeps_its_promise_by_fractions_from_the_counts(
    seed: int, kind: type[Promise], c: int
) -> None:
    random = np.random.default_rng(seed)
    joint = Joint.from_counts(random.integers(60, 900, (c, 3)))
    rows = joint.weights.sum(axis=1)
    promise = kind(1.0).for_population(joint)
    channel = 0.9 / 3 + 0.1 * random.dirichlet(np.ones(3), size=3)
    sealed = seal(Protocol(channel), promise, joint)
    order = np.argsort(rows, kind="stable").tolist()
    together = int((rows < 200).sum())
    while together and rows[order[:together]].sum() < 200:
        together += 1
    groups = [sorted(order[:together])] * (together > 0) + [[s] for s in sorted(order[together:])]
    law = sealed.mechanism
    assert isinstance(law, ChannelMechanism)  # whose integers are read above
    found = exact_worst_leak(law, promise, joint).ratio
    on_the_table = exact_worst_leak(law, kind(1.0), joint).ratio
    assert found is not None
    assert on_the_table is not None
    assert found == max(on_the_table, fractions_say(joint, kind, law, groups))
    assert found <= exp_below(1.0)


COUNTS = [[900, 300, 100], [200, 500, 700], [30, 10, 5]]


@pytest.mark.parametrize("kind", [LIP, LDP, SRLIP])
def test_sealing_refuses_what_breaks_the_promise_for_the_population_alone(kind: type[Promise]) -> None:
    joint = Joint.from_counts(COUNTS[:2])
    alpha = next(
        a for a in np.arange(0.1, 5, 0.1) if kind(1.0).leakage(joint, response(3, a + 0.1)) > 1.0
    )  # the last that the table allows
    seal(response(3, alpha), kind(1.0), joint)
    with pytest.raises(GuaranteeError, match="promised ε = 1"):
        seal(response(3, alpha), kind(1.0).for_population(joint), joint)


def response(a: int, alpha: float) -> Protocol:
    table = 1 + np.expm1(alpha) * np.eye(a)
    return Protocol(table / table.sum(axis=1, keepdims=True))


def test_a_promise_for_a_population_survives_save_and_load_and_states_no_count() -> None:
    joint = Joint.from_counts(COUNTS)
    promise = LIP(1.0).for_population(joint, 0.9, rare=100)
    sealed = seal(response(3, 0.3), promise, joint)
    again = SealedProtocol.from_text(sealed.to_text())
    assert again.promise == promise
    assert again.promise.population == promise.population
    assert exact_worst_leak(again.mechanism, again.promise, joint) == exact_worst_leak(sealed.mechanism, promise, joint)
    stated = json.loads(sealed.to_text())["promise"]
    assert stated == {
        "name": "LIP",
        "epsilon": 1.0,
        "population": {
            "confidence": "9/10",
            "rule": "Clopper-Pearson boxes 60/38/2, pool of all but the common secrets",
            "rare_below": 100,
            "rows": 2745,
        },
    }


def test_a_promise_for_priors_that_is_one_for_a_population_survives_too() -> None:
    joint = Joint.from_counts(COUNTS)
    prior = Joint.from_counts(np.array(COUNTS) + 7)
    promise = LIP(1.0).for_population(joint).for_priors([prior])
    again = SealedProtocol.from_text(seal(response(3, 0.3), promise, joint).to_text()).promise
    assert again.population == promise.population
    assert again.leakage(joint, response(3, 0.3)) == promise.leakage(joint, response(3, 0.3))
    assert len(list(again.comparisons(joint, False))) == 2


def test_sets_by_another_rule_are_refused() -> None:
    joint = Joint.from_counts(COUNTS)
    sealed = seal(response(3, 0.3), LIP(1.0).for_population(joint), joint)
    content = sealed.to_json()
    content["promise"]["population"]["rule"] = "guesswork"
    with pytest.raises(ProtocolFileError, match="follows another"):
        SealedProtocol.from_json(content)
