"""Chain protocols: exact checks along every path, draws, files, and what they keep."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import IntArray, entropy_terms
from privacyfunnel.designs import workers
from privacyfunnel.designs.chain import growth
from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.chain_design import make_chain, parse_steps
from privacyfunnel.designs.chain.context_channel import lump_rare, round_channel
from privacyfunnel.designs.chain.contexts import split_contexts, split_in_two
from privacyfunnel.designs.chain.first_step import first_attributes, first_channel
from privacyfunnel.designs.chain.step_order import chain_protocol
from privacyfunnel.designs.method_selection import choose_method
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError, ProtocolFileError, SizeError
from privacyfunnel.mechanisms.chain import ChainMechanism
from privacyfunnel.mechanisms.chain_step import UNIT, next_contexts
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.tables.readers.adult import adult_counts
from tests.strategies import joints


def rows_of(joint: Joint, at_most: int = 400) -> IntArray:
    """Every combination as often as it counts, within reason."""
    codes = np.repeat(np.arange(joint.a), np.minimum(joint.weights.sum(axis=0), 50).astype(np.int64))
    return np.random.default_rng(0).permutation(codes)[:at_most]


def largest_ratio_published(
    law: ChainMechanism, joint: Joint, codes: IntArray, seed: int, *, two_secrets: bool = False
) -> Fraction:
    """max P(y|s)/P(y) or its inverse, or P(y|s)/P(y|s'), over the outputs that were published, in fractions.

    Where an output leads to no context that is listed, nothing more is said.
    """
    largest = Fraction(1)
    stream = KeyStream.from_seed(seed)
    node, values = np.zeros(len(codes), dtype=np.int64), [law.values_of(number) for number in range(len(law.steps))]
    paths: list[list[tuple[int, int]]] = [[] for _ in codes]
    on = np.arange(len(codes))
    for number, step in enumerate(law.steps):
        words = stream.words(0, len(codes), draw=number)[on]
        output = step.draw(step.row_numbers(node, values[number][codes[on]]), words)
        for i, o in zip(on.tolist(), output.tolist(), strict=True):
            paths[i].append((number, o))
        if number + 1 < len(law.steps):
            node = next_contexts(law.steps[number + 1].parent_output, output)
            on, node = on[node >= 0], node[node >= 0]
    for published in {tuple(path) for path in paths}:
        mass = [Fraction(0)] * joint.c
        for x in range(joint.a):
            chance = Fraction(1)
            for number, o in published:
                step = law.steps[number]
                entry = np.flatnonzero((step.output == o) & (step.value == values[number][x]))
                chance *= Fraction(int(step.numerator[entry].sum()), UNIT)
            for s in range(joint.c):
                mass[s] += chance * int(joint.weights[s, x])
        p_y_given_s = [mass[s] / int(joint.weights[s].sum()) for s in range(joint.c)]
        others = p_y_given_s if two_secrets else [sum(mass, Fraction(0)) / joint.total]
        for one, other in itertools.product(p_y_given_s, others):
            largest = max(largest, max(one, other) / min(one, other) if one and other else Fraction(10**9))
    return largest


@settings(max_examples=40, deadline=None)
@given(
    joint=joints(max_c=3, max_a=3, attributes=3, min_c=2),
    epsilon=st.sampled_from([0.1, 0.7, 2.0]),
    kind=st.sampled_from([LIP, LDP]),
    as_values=st.booleans(),
)
@example(Joint.from_counts([[[[1]], [[0]]], [[[0]], [[1]]]]), 0.1, LIP, False)  # an output is no context, by rounding
def test_a_chain_keeps_its_promise_exactly_on_every_published_path_and_never_beats_the_optimum(
    joint: Joint, epsilon: float, kind: type[Promise], as_values: bool
) -> None:
    codes, promise = rows_of(joint), kind(epsilon)
    chain = make_chain(joint, promise, ((0,), (1, 2)), 0.7, as_values=as_values)
    found = chain.solve()
    sealed, grown = found.seal(), found.growth
    assert (sealed.promise, sealed.epsilon <= epsilon) == (promise, True)
    assert largest_ratio_published(grown.mechanism, joint, codes, 3, two_secrets=kind is LDP) <= exp_below(
        sealed.epsilon
    )
    reached = grown.mechanism.protocol.mutual_information(joint)
    assert reached <= optimal(joint, promise, gap=1e-4).bound + 1e-9
    assert reached == pytest.approx(grown.nats, abs=1e-9)


def test_a_chain_of_identities_is_refused_where_the_table_tells_the_secret() -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 30, size=(2, 3, 3)))
    loud = make_chain(joint, LIP(9.0), ((0,), (1,)), 1.0).grow()
    assert loud.nats == pytest.approx(entropy(joint.p_x), abs=1e-9)
    assert certify(loud.mechanism, LIP(9.0), joint) == pytest.approx(
        float(np.abs(np.log(joint.p_s_given_x / joint.p_s[:, None])).max()), abs=1e-9
    )
    with pytest.raises(GuaranteeError, match=r"promised ε = 0\.1"):
        certify(loud.mechanism, LIP(0.1), joint)


def adult(secret: str, *columns: str) -> Joint:
    counts, labels = adult_counts(secret, *columns)
    return Joint.from_counts(counts, labels[0], labels[1:], names=columns, secret_name=secret)


@pytest.mark.parametrize("promise", [LIP(1.0), LDP(1.0)], ids=str)
@pytest.mark.parametrize("column", ["relationship", "sex"])
def test_one_step_of_a_chain_is_the_optimum_of_one_column(promise: Promise, column: str) -> None:
    joint = adult("occupation", column)
    grown = make_chain(joint, promise, ((0,),), 1.0).grow()
    assert grown.nats == pytest.approx(optimal(joint, promise).utility, abs=4e-3)


def test_a_chain_under_ldp_keeps_more_than_one_of_half_its_size_under_lip_which_would_keep_the_promise_too() -> None:
    joint = adult("occupation", "relationship", "race", "sex")
    steps = ((0,), (1, 2))
    half, whole = (make_chain(joint, promise, steps, 0.7).grow() for promise in (LIP(0.5), LDP(1.0)))
    assert certify(half.mechanism, LDP(1.0), joint) <= 1.0
    assert certify(whole.mechanism, LDP(1.0), joint) == pytest.approx(1.0, abs=1e-6)
    assert whole.nats > 1.02 * half.nats
    with pytest.raises(GuaranteeError, match=r"LIP promised ε = 0\.5"):
        certify(whole.mechanism, LIP(0.5), joint)


def test_a_chain_for_lip_is_refused_where_ldp_of_its_size_was_promised() -> None:
    joint = adult("occupation", "relationship", "sex")
    grown = make_chain(joint, LIP(1.0), ((0,), (1,)), 0.8).grow()
    assert certify(grown.mechanism, LIP(1.0), joint) <= 1.0
    with pytest.raises(GuaranteeError, match=r"LDP promised ε = 1; this protocol leaks 0\.\d+ more"):
        certify(grown.mechanism, LDP(1.0), joint)


def test_a_chain_on_adult_is_certified_shared_out_in_columns_and_survives_its_file(tmp_path: Path) -> None:
    joint = adult("occupation", "education", "relationship", "sex")
    codes = rows_of(joint, 2000)
    chain = make_chain(joint, LIP(1.0), parse_steps(joint, ["education", ["relationship", "sex"]]), 0.6)
    found = chain.solve()
    sealed, grown = found.seal(), found.growth
    assert 0.5 < sealed.epsilon <= 1.0
    assert 0.6 * entropy(joint.p_x) < grown.nats < entropy(joint.p_x)
    sealed.save(tmp_path / "protocol.json")
    again = SealedProtocol.load(tmp_path / "protocol.json")
    assert (again.sample(codes, KeyStream.from_seed(5)) == sealed.sample(codes, KeyStream.from_seed(5))).all()
    assert certify(again.mechanism, LIP(1.0), joint) == sealed.epsilon
    assert len(again.mechanism.columns) == 3


def test_a_chain_of_values_publishes_values_as_often_as_they_are() -> None:
    joint = adult("income", "relationship", "sex")
    codes = np.repeat(np.arange(joint.a), joint.weights.sum(axis=0).astype(np.int64))
    groups, values = (make_chain(joint, LIP(0.5), ((0,), (1,)), 0.7, as_values=how).seal() for how in (False, True))
    for attribute, labels in zip(joint.attributes, values.mechanism.columns, strict=True):
        assert set(labels) <= set(attribute.labels)
    assert 0 < values.information < groups.information
    drawn = values.sample(codes, KeyStream.from_seed(2))
    shares = np.bincount(drawn[:, 0], minlength=6) / len(codes)
    labels = values.mechanism.columns[0]
    wanted = joint.project([0]).p_x[[joint.attributes[0].labels.index(label) for label in labels]]
    # Five standard deviations; the seed is fixed.
    assert np.abs(shares - wanted).max() < 5 * 0.5 / math.sqrt(len(codes))


@pytest.mark.parametrize("promise", [LIP(1.0), LDP(1.0)], ids=str)
def test_a_large_first_step_keeps_its_promise_and_more_than_small_ones(promise: Promise) -> None:
    joint = adult("occupation", "relationship", "race", "sex")
    codes = rows_of(joint, 2000)
    small = make_chain(joint, promise, ((0,), (1,), (2,)), 0.6).grow()
    whole = make_chain(joint, promise, ((0, 1, 2),), 1.0)
    whole = replace(whole, first=first_channel(joint, (0, 1, 2), whole.bands[0], seconds=60.0))
    found = whole.solve()
    sealed, grown = found.seal(), found.growth
    assert grown.nats > small.nats
    two_secrets = isinstance(promise, LDP)
    assert largest_ratio_published(grown.mechanism, joint, codes[:50], 1, two_secrets=two_secrets) <= exp_below(1.0)
    assert sealed.epsilon <= 1.0


def test_a_large_first_step_uses_all_of_ldp_where_the_secret_has_two_values() -> None:
    joint = adult("income", "relationship", "race", "sex")
    found = chain_protocol(joint, LDP(1.0), seconds=60.0).solve()
    sealed, grown = found.seal(), found.growth
    assert len(grown.mechanism.steps) == 1
    assert sealed.epsilon == pytest.approx(1.0, abs=1e-5)
    best = optimal(joint, LDP(1.0)).utility
    assert 0.99 * best < grown.nats <= best + 1e-6


def test_as_many_columns_go_first_as_are_solved_together() -> None:
    joint = adult("occupation", "education", "relationship", "race", "sex", "income")
    first = first_attributes(joint)
    assert 40 < joint.project(first).a <= 650
    for j in set(range(joint.m)) - set(first):
        assert joint.project([*first, j]).a > 650
    assert first_attributes(adult("income", "relationship", "sex")) == (0, 1)


def test_outputs_that_integers_cannot_follow_join_others() -> None:
    table = np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5]])  # p(x), then p(s|x)/p(s) for two secrets
    faint = 2.0**-41  # below what is drawn: the output would stand for the first value alone
    chances = np.array([[0.5, 0.5 - faint, faint], [0.5, 0.5 - 2 * faint, 2 * faint]])
    channel, outputs = round_channel(table, chances, Band(math.log(1.2)))
    assert outputs.tolist() == [0, 1]
    assert sum(channel.numerator.tolist()) == 2 * UNIT
    assert round_channel(table, np.eye(2), Band(math.log(1.2)))[0].numerator.tolist() == [
        UNIT,
        UNIT,
    ]  # silent: none allowed


def test_a_chain_follows_from_counts_alone_and_few_contexts_keep_little_less() -> None:
    joint = adult("occupation", "education", "relationship", "sex")
    chain = make_chain(joint, LIP(1.0), ((0,), (1,), (2,)), 0.6)
    one, other = chain.seal(), chain.seal()
    assert one.to_text() == other.to_text()
    few = chain.grow(200)
    assert few.contexts < chain.grow().contexts
    assert 0.9 * one.information < few.nats < one.information
    assert certify(few.mechanism, LIP(1.0), joint) <= 1.0


def test_when_time_is_up_the_rarest_contexts_say_nothing_and_the_promise_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a clock on which every look takes a second."""
    joint = adult("occupation", "education", "relationship", "sex")
    whole = make_chain(joint, LIP(1.0), ((0,), (1,), (2,)), 0.6)
    ticks = itertools.count()

    class Clock:
        monotonic = staticmethod(lambda: float(next(ticks)))

    monkeypatch.setattr(growth, "time", Clock)
    monkeypatch.setattr(workers, "time", Clock)
    monkeypatch.setattr(workers.Workers, "_open_pool", lambda self, jobs: None)  # in this process, one after the other
    kept, contexts = [], []
    for deadline in (0.0, 3.0, 6.0, 12.0, math.inf):
        ticks = itertools.count()
        found = replace(whole, deadline=deadline).solve()
        assert found.seal().epsilon <= 1.0
        kept.append(found.information)
        contexts.append(found.growth.contexts)
        assert found.worth.stopped == ("time" if math.isfinite(deadline) else "nothing left to try")
    assert 0 < kept[0] < kept[-1]  # the first step is always solved
    assert kept == sorted(kept)
    assert contexts == sorted(contexts)  # none are listed for which there is no time
    assert contexts[0] < contexts[2] < contexts[-1]
    assert kept[-1] == pytest.approx(whole.grow().nats)


def test_altered_integers_are_noticed() -> None:
    joint = adult("occupation", "relationship", "sex")
    grown = make_chain(joint, LIP(1.0), ((0,), (1,)), 0.8).grow()
    step = grown.mechanism.steps[0]
    lighter = step.numerator.copy()
    lighter[0] -= 1
    with pytest.raises(ProtocolFileError, match=r"sum to 2\^62; 1 of"):
        replace(step, numerator=lighter)
    moved = step.value.copy()
    moved[0] = len(step.values)
    with pytest.raises(ProtocolFileError, match="within bounds"):
        replace(step, value=moved)
    # A context without a row for a value that it may hold says nothing about that value: refused, not ignored.
    last = grown.mechanism.steps[1]
    kept = last.cell != last.cell[-1]
    hole = replace(last, value=last.value[kept], output=last.output[kept], numerator=last.numerator[kept])
    with pytest.raises(ProtocolFileError, match="a row for every value"):
        certify(ChainMechanism((step, hole), grown.mechanism.columns, grown.mechanism.combos), LIP(1.0), joint)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), epsilon=st.sampled_from([0.1, 0.5, 1.0]), slides=st.booleans())
def test_two_values_are_split_alike_by_interval_and_by_columns(seed: int, epsilon: float, slides: bool) -> None:
    rng = np.random.default_rng(seed)
    p_sx = rng.random((3, 2))
    p_sx /= p_sx.sum()
    p_x, p_s = p_sx.sum(axis=0), p_sx.sum(axis=1)
    table = np.vstack([p_x, p_sx / p_x / p_s[:, None]])[None]
    padded = np.concatenate([table, np.zeros((1, 4, 1))], axis=2)
    band = Band(epsilon, slides)
    (q, v), (r, w) = split_in_two(table, band)[0], split_contexts(padded, band)[0]
    assert q @ v == pytest.approx(p_x)
    assert r @ w[:, :2] == pytest.approx(p_x)
    assert q @ entropy_terms(v).sum(axis=1) == pytest.approx(r @ entropy_terms(w).sum(axis=1), abs=1e-6)


def test_lumping_keeps_the_likeliest_values_and_every_total() -> None:
    table = np.vstack([[0.1, 0.4, 0.2, 0.3], [1.0, 0.5, 2.0, 1.0]])
    small, group = lump_rare(table, 3)
    assert group.tolist() == [2, 0, 2, 1]
    assert small[0] == pytest.approx([0.4, 0.3, 0.3])
    assert small[1] @ small[0] == pytest.approx(table[1] @ table[0])


def test_an_order_names_every_column_once() -> None:
    joint = adult("income", "relationship", "sex", "race")
    with pytest.raises(ParameterError, match="misses race"):
        chain_protocol(joint, LIP(1.0), order=["sex", "relationship"])
    with pytest.raises(ParameterError, match="'sex' is named 2 times"):
        chain_protocol(joint, LIP(1.0), order=["sex", "relationship", ["race", "sex"]])
    with pytest.raises(ParameterError, match="'age' is none of"):
        chain_protocol(joint, LIP(1.0), order=["age", "relationship"])
    with pytest.raises(ParameterError, match="A chain keeps LIP or LDP; SRLIP was asked"):
        chain_protocol(joint, SRLIP(1.0))


def test_the_chosen_order_names_every_column_once() -> None:
    joint = adult("income", "relationship", "sex", "race")
    chain = chain_protocol(joint, LIP(0.5), seconds=1e-3)
    assert sorted(j for step in chain.steps for j in step) == [0, 1, 2]
    assert chain.bands[-1].epsilon <= 0.5


def test_the_choice_is_joint_while_small_and_chain_beyond_and_says_why() -> None:
    small = choose_method(adult("occupation", "relationship", "sex"), LIP(1.0))
    assert (small.method, "12 combinations of 2 columns" in small.reason) == ("optimal", True)
    large = adult("occupation", "education", "relationship", "race", "sex", "income")
    for promise in (LIP(1.0), LDP(1.0)):
        assert choose_method(large, promise).method == "chain"
        assert f"{large.a} combinations" in choose_method(large, promise).reason
    assert choose_method(large, SRLIP(1.0)).method == "optimal"
    wide = Joint(
        np.ones((3, 6000), dtype=np.int64),
        ("a", "b", "c"),
        adult("income", "sex", "race").attributes,
        np.zeros((6000, 2), dtype=np.int64),
    )
    assert choose_method(wide, LDP(1.0)).method == "chain"
    with pytest.raises(SizeError, match=r"6,000 combinations.*LIP or LDP with the method chain"):
        choose_method(wide, SRLIP(1.0))


def test_a_chain_fits_only_its_own_table() -> None:
    joint = adult("income", "relationship", "sex")
    grown = make_chain(joint, LIP(1.0), ((0,), (1,)), 0.8).grow()
    with pytest.raises(ProtocolFileError, match="a row per input"):
        certify(grown.mechanism, LIP(1.0), adult("income", "sex"))
