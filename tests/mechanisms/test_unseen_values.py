"""The row for anything else: people of a population who have a value that no row of the table has."""

import json
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import DistributionError, ProtocolFileError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.mechanism import UNIT
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol, exact_worst_leak, seal
from privacyfunnel.model.credal.clopper_pearson import SCALE, exact_upper_bound
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.linear_use import Distance, Values
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics
from privacyfunnel.model.uses.use import Use

COUNTS = [[900, 300, 100], [200, 500, 700]]
JOINT = Joint.from_counts(COUNTS)
SEVERAL = Joint.from_counts([[[500, 300], [200, 400]], [[300, 100], [250, 700]]])


def law_of(sealed: SealedProtocol | None) -> ChannelMechanism:
    assert sealed is not None
    assert isinstance(sealed.mechanism, ChannelMechanism)
    return sealed.mechanism


def test_anything_else_is_a_cell_of_every_event_that_no_row_is_in() -> None:
    closed = LDP(1.0).for_population(JOINT)
    sets = closed.cover_anything_else().credal_sets(JOINT)
    assert sets.inputs == 4
    assert closed.credal_sets(JOINT).inputs == 3
    assert (sets.low[:, 3] == 0).all()
    for rows, high in zip(JOINT.weights.sum(axis=1).tolist(), sets.high[:, 3].tolist(), strict=True):
        # a sixth of what is its own of 5 %, over 2 · 4 bounds, and what groupings and the simplex leave
        assert 0 < high <= exact_upper_bound(0, rows, Fraction(1, 600))
        assert high >= exact_upper_bound(0, rows, Fraction(1, 100))


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from((LIP, LDP)))
def test_people_with_a_value_never_seen_are_kept_the_promise_by_fractions(seed: int, kind: type[Promise]) -> None:
    random = np.random.default_rng(seed)
    joint = Joint.from_counts(random.integers(200, 900, (2, 3)))
    promise = kind(1.0).for_population(joint).cover_anything_else()
    rows = 0.9 / 3 + 0.1 * random.dirichlet(np.ones(3), size=4)
    law = law_of(seal(Protocol(rows[:3], elsewhere=rows[3]), promise, joint))
    sets, place = promise.credal_sets(joint), law.anything_else
    assert place == 3
    worst = Fraction(1)
    for y in range(len(law.outputs)):
        column = law.column(y)
        ends = []
        for low, high in zip(sets.low.tolist(), sets.high.tolist(), strict=True):
            both = []
            for sign in (-1, 1):  # the most first, then the least
                left, whole = SCALE - sum(low), sum(p * n for p, n in zip(low, column, strict=True))
                for z in sorted(range(4), key=lambda z: sign * column[z]):
                    more = min(left, high[z] - low[z])
                    left, whole = left - more, whole + more * column[z]
                both.append(Fraction(whole, SCALE * UNIT))
            ends.append(both)
        for (e, f), share in zip(sets.pairs.tolist(), sets.share.tolist(), strict=True):
            pi, ((top, low_e), (other, low_f)) = Fraction(share, SCALE), (ends[e], ends[f])
            worst = max(worst, top / (pi * top + (1 - pi) * low_f), (pi * low_e + (1 - pi) * other) / low_e)
    found = exact_worst_leak(law, promise, joint).ratio
    assert found is not None
    assert worst <= found <= exp_below(1.0)  # the table's own events are compared as well
    # all of those who have something else may have one secret: as much as the sets allow
    most = sets.high[0, 3] / SCALE
    truth = np.vstack([joint.p_x_given_s.T * [1 - most, 1], [most, 0]])
    p_y = truth.T @ law.table.all_rows
    assert float(np.abs(np.log(p_y[0] / p_y[1])).max()) <= (1.0 if kind is LDP else 2.0)


@pytest.mark.parametrize("kind", [LIP, LDP, SRLIP])
@pytest.mark.parametrize("design", [randomised_response, conditional_reporting])
def test_explicit_protocols_are_calibrated_with_a_row_for_anything_else(kind: type[Promise], design: object) -> None:
    if kind is SRLIP and design is conditional_reporting:
        return  # leaks at every α
    joint = SEVERAL if kind is SRLIP else JOINT
    promise = kind(1.0).for_population(joint).cover_anything_else()
    protocol = design(joint, promise)  # type: ignore[operator]
    assert protocol.elsewhere is not None
    assert 1 - 1e-9 < promise.leakage(joint, protocol) <= 1.0
    assert law_of(seal(protocol, promise, joint)).anything_else == protocol.channel.shape[0]


def test_the_optimum_has_a_row_for_anything_else_whatever_it_looks_at() -> None:
    for joint, promise, sees_secret in (
        (JOINT, LIP(1.0), True),
        (SEVERAL, SRLIP(1.0), False),
    ):
        asked = promise.for_population(joint).cover_anything_else()
        best = optimal(joint, asked, sees_secret=sees_secret, gap=0.1)
        law = law_of(best.sealed)
        assert law.anything_else == law.inputs == joint.a * (joint.c if sees_secret else 1)
        ratio = exact_worst_leak(law, asked, joint).ratio
        assert ratio is not None
        assert ratio <= exp_below(1.0)
    closed = optimal(JOINT, LIP(1.0).for_population(JOINT), gap=1e-3)
    opened = optimal(JOINT, LIP(1.0).for_population(JOINT).cover_anything_else(), gap=1e-3)
    assert closed.utility - 0.02 < opened.utility <= closed.bound  # what covers more keeps less, by little


@pytest.mark.parametrize("use", [Statistics(), Balanced(0.9), Values(), Distance("squared")])
def test_every_use_has_a_row_for_anything_else_that_is_certified_and_costs_little(use: Use) -> None:
    closed = LDP(1.0).for_population(JOINT)
    promise = closed.cover_anything_else()
    best = optimal(JOINT, promise, use, gap=1e-3)
    law = law_of(best.sealed)
    assert law.anything_else == JOINT.a
    ratio = exact_worst_leak(law, promise, JOINT).ratio
    assert ratio is not None
    assert ratio <= exp_below(1.0)
    assert 0.95 * best.value <= best.bound <= best.value
    listed = best.protocol.channel / best.protocol.channel.sum(axis=0)
    far = np.abs(listed[:, :, None] - listed[:, None, :]).max(axis=0)
    assert far[~np.eye(len(far), dtype=bool)].min() > 1e-9  # no two outputs for what they say of anything else alone
    without = optimal(JOINT, closed, use, gap=1e-3)
    assert without.bound <= best.value <= 1.2 * without.value


@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from((LIP, LDP)), kept=st.sampled_from((None, 0.9)))
def test_no_share_that_anything_else_is_given_makes_a_bound_say_too_much(
    seed: int, kind: type[Promise], kept: float | None
) -> None:
    joint = Joint.from_counts(np.random.default_rng(seed).integers(200, 900, (3, 3)))
    promise = kind(1.0).for_population(joint).cover_anything_else()
    use = Statistics() if kept is None else Balanced(kept)
    best = optimal(joint, promise, use, gap=1e-4)
    for share in (1e-4, 1e-3, 1e-2):
        with patch("privacyfunnel.designs.optimal.solvers.UNSEEN_BESIDE", share):
            rough = optimal(joint, promise, use, gap=1e-4)
        assert rough.bound <= best.value
        assert rough.value >= best.bound
    assert best.value - best.bound <= 5e-3 * best.value + 1e-4


def test_a_protocol_without_such_a_row_is_not_sealed_for_anything_else() -> None:
    promise = LIP(1.0).for_population(JOINT).cover_anything_else()
    with pytest.raises(DistributionError, match="row per input"):
        seal(Protocol(np.full((3, 2), 0.5)), promise, JOINT)


def test_records_with_a_value_never_seen_are_drawn_from_their_row_and_from_no_other() -> None:
    promise = LIP(1.0).for_population(JOINT).cover_anything_else()
    rows = np.array([[0.5, 0.5, 0, 0], [0.4, 0.6, 0, 0], [0.6, 0.4, 0, 0]])
    with_row = Protocol(rows[:, :2], elsewhere=np.array([0.25, 0.75]))
    law = law_of(seal(with_row, promise, JOINT))
    place = law.anything_else
    assert place is not None
    drawn = law.draw(np.full(40_000, place), KeyStream.from_seed(4).rows(0, 40_000))[:, 0]
    assert abs(drawn.mean() - 0.75) < 6 * (0.75 * 0.25 / 40_000) ** 0.5  # false alarm 2e-9
    few = law.restrict_inputs(np.array([2, 0]))
    assert (few.inputs, few.anything_else) == (2, 2)
    assert few.column(0) == [law.column(0)[z] for z in (2, 0, 3)]
    assert law.table.mix_constant(np.array([0.5, 0.5]), 0.5).all_rows[-1].tolist() == [0.375, 0.625]


def test_the_file_states_the_row_and_that_the_promise_covers_it_or_neither() -> None:
    promise = LIP(1.0).for_population(JOINT).cover_anything_else()
    sealed = optimal(JOINT, promise, gap=1e-2).sealed
    assert sealed is not None
    again = SealedProtocol.from_text(sealed.to_text())
    assert again.promise == promise
    assert again.promise.anything_else
    assert law_of(again).anything_else == 3
    assert law_of(again).column(0) == law_of(sealed).column(0)
    assert exact_worst_leak(again.mechanism, again.promise, JOINT) == exact_worst_leak(sealed.mechanism, promise, JOINT)
    content = json.loads(sealed.to_text())
    assert sum(int(n) for _, n in content["law"]["anything_else"]) == UNIT
    without_row = {**content, "law": {key: law for key, law in content["law"].items() if key != "anything_else"}}
    with pytest.raises(ProtocolFileError, match="row for anything else exactly where"):
        SealedProtocol.from_json(without_row)
    population = {key: said for key, said in content["promise"]["population"].items() if key != "anything_else"}
    uncovered = {**content, "promise": {**content["promise"], "population": population}}
    with pytest.raises(ProtocolFileError, match="row for anything else exactly where"):
        SealedProtocol.from_json(uncovered)
