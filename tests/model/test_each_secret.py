"""Several secrets, each by itself: what is promised of each, recomputed in fractions, and what is not of the pair."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.certificate import promise_from_json, promise_to_json
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.each_secret import Each
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP, find_promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.linear_use import Values
from tests.enumeration import best_over_posteriors

PAIRS = ["a & x", "a & y", "b & x", "b & y"]


def table(rng: np.random.Generator) -> Joint:
    counts = rng.integers(0, 9, (4, 3)) + np.eye(4, 3, dtype=np.int64)
    counts[3, 0] += 1
    return Joint.from_counts(counts, secret=PAIRS, secret_name="first & second")


def leaks(joint: Joint, rows: list[list[Fraction]]) -> tuple[float, float]:
    """The ε of LIP about each column by itself, by its definition."""
    found = []
    everybody = [int(n) for n in joint.weights.sum(axis=0)]
    for column in (0, 1):
        worst = 0.0
        for value in {label.split(" & ")[column] for label in joint.secrets}:
            mine = [s for s, label in enumerate(joint.secrets) if label.split(" & ")[column] == value]
            counts = [int(n) for n in joint.weights[mine].sum(axis=0)]
            for y in range(len(rows[0])):
                one = sum(n * row[y] for n, row in zip(counts, rows, strict=True)) / sum(counts)
                other = sum(n * row[y] for n, row in zip(everybody, rows, strict=True)) / sum(everybody)
                if one != other:
                    worst = max(worst, abs(math.log(one / other)) if one and other else math.inf)
        found.append(worst)
    return found[0], found[1]


def test_certificates_of_200_tables_are_those_of_fractions() -> None:
    rng = np.random.default_rng(31)
    for _ in range(200):
        joint = table(rng)
        rows = rng.dirichlet(np.ones(3), joint.a)
        # As loud as may be for (1, 0.5), found by halving; the certificate is what the definition says.
        promise = Each(1.0, "lip", (("second", 0.5),))
        share = 1.0
        while promise.leakage(joint, Protocol(share * rows + (1 - share) / 3)) > 1.0:
            share /= 2
        sealed = seal(Protocol(share * rows + (1 - share) / 3), promise, joint)
        numbers = sealed.mechanism
        assert isinstance(numbers, ChannelMechanism)
        columns = [numbers.column(y) for y in range(3)]
        first, second = leaks(joint, [[Fraction(int(column[x]), 2**64) for column in columns] for x in range(joint.a)])
        assert first <= 1.0
        assert second <= 0.5
        assert sealed.epsilon == pytest.approx(max(first, second / 0.5), rel=1e-9)


def test_the_optimum_is_that_of_enumeration_and_keeps_more_than_both_as_one_secret() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        joint = table(rng)
        for promise in (Each(0.5), Each(0.8, "ldp", (("first", 0.4),)), Each(0.6, "pml")):
            best = optimal(joint, promise)
            assert best.bound - best.utility <= 1e-6
            assert best.utility == pytest.approx(best_over_posteriors(joint, promise), abs=2e-6)
        together = optimal(joint, LIP(0.5), Values())
        assert optimal(joint, Each(0.5), Values()).value <= together.value + 1e-6


def test_of_the_pair_nothing_is_promised() -> None:
    # X is whether both are the same: it says nothing about either, and everything about whether they agree.
    joint = Joint.from_counts([[1, 0], [0, 1], [0, 1], [1, 0]], secret=PAIRS, secret_name="first & second")
    shown = Protocol(np.eye(2))
    assert Each(1.0).leakage(joint, shown) == 0.0
    assert LIP(1.0).leakage(joint, shown) == math.inf
    assert "together is not bounded" in Each(1.0).meaning


def test_a_protocol_too_loud_about_one_of_them_is_refused() -> None:
    joint = Joint.from_counts([[3, 1], [1, 3], [3, 1], [1, 3]], secret=PAIRS, secret_name="first & second")
    shown = Protocol(np.eye(2))  # says nothing about the first, and ln 2 about the second
    assert seal(shown, Each(0.7), joint).epsilon == pytest.approx(math.log(2))
    with pytest.raises(GuaranteeError):
        seal(shown, Each(0.7, "lip", (("second", 0.6),)), joint)
    assert seal(shown, Each(0.7, "lip", (("first", 0.1),)), joint).epsilon == pytest.approx(math.log(2))


def test_texts_and_files_say_the_same_and_nonsense_is_refused() -> None:
    joint = Joint.from_counts([[3, 1], [1, 3]])
    domain = Domain.from_joint(joint, False)
    for text, promise in (
        ("each", Each(1.0)),
        ("each:ldp", Each(1.0, "ldp")),
        ("each:health=0.5", Each(1.0, "lip", (("health", 0.5),))),
        ("each:srlip,a=0.5,b=0.25", Each(1.0, "srlip", (("a", 0.5), ("b", 0.25)))),
    ):
        assert find_promise(text, 1.0) == find_promise(promise.text, 1.0) == promise
        assert promise_from_json(json.loads(json.dumps(promise_to_json(promise))), domain) == promise
    for text, said in (("each:a=2", "at most"), ("each:a=x", "asked for as"), ("each:events", "each is about")):
        with pytest.raises(ParameterError, match=said):
            find_promise(text, 1.0)
    with pytest.raises(ParameterError, match="several secret columns; there is one"):
        Each(1.0).constraints(joint)
    glued = Joint.from_counts([[3, 1], [1, 3]], secret=["a & x", "other"], secret_name="first & second")
    with pytest.raises(ParameterError, match="merged"):
        Each(1.0).constraints(glued)
