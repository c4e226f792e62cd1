"""Whole outputs of chains: what follows contexts alone is what listing every output says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.designs.chain.chain_design import make_chain
from privacyfunnel.mechanisms import chain as chain_law
from privacyfunnel.mechanisms import chain_measures
from privacyfunnel.mechanisms.chain import ChainMechanism
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import certify
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from tests.strategies import joints


@settings(max_examples=30, deadline=None)
@given(
    joint=joints(max_c=3, max_a=3, attributes=3, min_c=2),
    rows=st.sampled_from([1.0, 3.0, 9.0, 1e9]),
    as_values=st.booleans(),
)
def test_a_chain_of_few_contexts_is_whole_and_keeps_its_promise_on_every_output(
    joint: Joint, rows: float, as_values: bool
) -> None:
    law = make_chain(joint, LIP(0.7), ((0,), (1,), (2,)), 0.6, as_values=as_values).grow(rows).mechanism
    shown, paths = law.whole_outputs()
    chances = paths.toarray().T
    assert chances.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert len(np.unique(shown, axis=0)) == len(shown)
    p_sy = joint.p_sx @ chances
    ratio = p_sy / joint.p_s[:, None] / p_sy.sum(axis=0)
    assert np.abs(np.log(ratio)).max() <= certify(law, LIP(0.7), joint) + 1e-12
    # Whatever rows come, they are drawn, and what they show is found again: as the law and as nothing else.
    codes = np.tile(np.arange(joint.a), 200)
    drawn = law.draw(codes, KeyStream.from_seed(1).rows(0, len(codes)))
    output = law.observation_codes(drawn)[:, 0]
    assert (output >= 0).all()
    assert (shown[output] == drawn).all()
    assert (chances[codes, output] > 0).all()
    tally = law.tally()
    tally.add(codes, drawn)
    assert tally.impossible == 0
    # What is measured along contexts alone is what whole outputs say.
    p_xy = joint.p_x[:, None] * chances
    information = float((p_xy * np.log(chances / (joint.p_x @ chances), where=chances > 0, out=0 * p_xy)).sum())
    assert law.protocol.mutual_information(joint) == pytest.approx(information, abs=1e-12)
    for j, (values, with_labels) in enumerate(law.value_joint(joint)):
        expected = np.zeros_like(with_labels)
        np.add.at(expected, (joint.combos[:, j, None], shown[None, :, j]), p_xy)
        np.testing.assert_allclose(with_labels, expected, atol=1e-12)
        assert (values[:, 0] == np.arange(len(joint.attributes[j].labels))).all()
    random = np.random.default_rng(joint.total)
    told = [
        random.integers(len(at.labels), size=(len(labels), 1))
        for at, labels in zip(joint.attributes, law.columns, strict=True)
    ]
    guesses = np.column_stack([label[shown[:, j], 0] for j, label in enumerate(told)])
    right = (guesses[None] == joint.combos[:, None]).all(axis=2)
    assert law.likely_probability(told, joint) == pytest.approx(float(p_xy[right].sum()), abs=1e-12)
    own = shown[random.integers(len(shown), size=joint.a)]
    own[0] = -1  # a value that has no label
    alike = (shown[None] == own[:, None]).all(axis=2)
    assert law.unchanged_probability(own, joint) == pytest.approx(float(p_xy[alike].sum()), abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(joint=joints(max_c=3, max_a=3, attributes=3, min_c=2), rows=st.sampled_from([3.0, 1e9]), seed=st.integers(0, 99))
def test_a_chain_says_the_same_whatever_is_looked_at_at_a_time_and_in_whatever_order_contexts_stand(
    joint: Joint, rows: float, seed: int
) -> None:
    law = make_chain(joint, LIP(0.7), ((0,), (1,), (2,)), 0.6).grow(rows).mechanism
    other, with_labels = shuffled(law, seed), law.value_joint(joint)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain_law, "AT_ONCE", 3)
        patch.setattr(chain_measures, "AT_ONCE", 3)
        for mine in (law, other):
            assert certify(mine, LIP(0.7), joint) == pytest.approx(certify(law, LIP(0.7), joint), abs=1e-12)
            assert mine.protocol.mutual_information(joint) == pytest.approx(law.protocol.mutual_information(joint))
            for (_, one), (_, two) in zip(mine.value_joint(joint), with_labels, strict=True):
                np.testing.assert_allclose(one, two, atol=1e-12)
            by_output = [
                dict(zip(map(tuple, shown.tolist()), chances.toarray(), strict=True))
                for shown, chances in (mine.whole_outputs(), law.whole_outputs())
            ]
            assert by_output[0].keys() == by_output[1].keys()
            for labels, chances in by_output[0].items():
                np.testing.assert_allclose(chances, by_output[1][labels], atol=1e-12)


def shuffled(law: ChainMechanism, seed: int) -> ChainMechanism:
    """The same law with the contexts of its last step in another order."""
    step = law.steps[-1]
    order = np.random.default_rng(seed).permutation(len(step.parent_output))
    outputs = np.argsort(np.argsort(order)[step.context_of_output], kind="stable")
    entries = np.lexsort((np.argsort(outputs)[step.output], step.value, np.argsort(order)[step.context]))
    moved = replace(
        step,
        parent_output=step.parent_output[order],
        context_of_output=np.argsort(order)[step.context_of_output][outputs],
        labels=step.labels[outputs],
        value=step.value[entries],
        output=np.argsort(outputs)[step.output][entries],
        numerator=step.numerator[entries],
    )
    return replace(law, steps=(*law.steps[:-1], moved))
