"""Several secrets, each by itself: what is promised of each, recomputed in fractions, and what is not of the pair."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest

from privacyfunnel import sanitise
from privacyfunnel.designs.curve import curve
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.certificate import promise_from_json, promise_to_json
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.leak_profile import leak_profiles
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.each_secret import Each, split_columns, stack_joints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import ALIP, LDP, LIP, find_promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.linear_use import Values
from privacyfunnel.spec import ReleaseSpec
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
    for promise in (Each(1.0), Each(1.0, "ldp"), Each(1.0, "srlip", (("a", 0.5), ("b", 0.25)))):
        assert promise_from_json(json.loads(json.dumps(promise_to_json(promise))), domain) == promise
    assert find_promise("each", 1.0) == Each(1.0)
    assert Each.of_columns(LDP(1.0), {"a": None, "b": 0.5}) == Each(1.0, "ldp", (("b", 0.5),))
    assert Each.of_columns(LIP(1.0), {"a": 2.0, "b": None}) == Each(2.0, "lip", (("b", 1.0),))
    with pytest.raises(ParameterError, match="lip, pml, ldp or srlip; ALIP was asked for"):
        Each.of_columns(ALIP(1.0, 0.5), {"a": None, "b": None})
    with pytest.raises(ParameterError, match="several secret columns; there is one"):
        Each(1.0).constraints(joint)
    glued = Joint.from_counts([[3, 1], [1, 3]], secret=["a & x", "other"], secret_name="first & second")
    with pytest.raises(ParameterError, match="merged"):
        Each(1.0).constraints(glued)


def test_certificates_at_a_model_of_each_secret_are_those_of_fractions() -> None:
    rng = np.random.default_rng(76)
    promise = Each(1.0, "lip", (("second", 0.5),))
    for _ in range(200):
        tables = [rng.integers(1, 9, (c, 3)) for c in (2, 3)]
        joints = {
            name: Joint.from_counts(table, secret=["other", "x", "y"][: len(table)], secret_name=name)
            for name, table in zip(("first", "second"), tables, strict=True)
        }
        joint, rows = stack_joints(joints), rng.dirichlet(np.ones(3), 3)
        share = 1.0
        while promise.leakage(joint, Protocol(share * rows + (1 - share) / 3)) > 1.0:
            share /= 2
        sealed = seal(Protocol(share * rows + (1 - share) / 3), promise, joint)
        numbers = sealed.mechanism
        assert isinstance(numbers, ChannelMechanism)
        columns = [numbers.column(y) for y in range(3)]
        leak = [0.0, 0.0]
        for j, table in enumerate(tables):  # the definition, at p̃(s_j, x) alone
            for held, column in product(table.tolist(), columns):
                one = Fraction(sum(n * int(q) for n, q in zip(held, column, strict=True)), sum(held))
                everybody = table.sum(axis=0).tolist()
                other = Fraction(sum(n * int(q) for n, q in zip(everybody, column, strict=True)), sum(everybody))
                leak[j] = max(leak[j], abs(math.log(one / other)))
        assert leak[0] <= 1.0
        assert leak[1] <= 0.5
        assert sealed.epsilon == pytest.approx(max(leak[0], leak[1] / 0.5), rel=1e-9)


def test_columns_that_cannot_be_told_apart_by_name_are_refused() -> None:
    one = Joint.from_counts([[3, 1], [1, 3]], secret=["x", "y"])
    assert list(split_columns(stack_joints({"a": one, "b": one}))) == ["a", "b"]
    with pytest.raises(ParameterError, match="must name the one column"):
        split_columns(stack_joints({"a": one, "a = x": one}))


def test_the_whole_leak_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(3)
    for sees_secret in (False, True):
        joint = Joint.from_counts(rng.integers(1, 9, (3, 4)))
        rows = rng.dirichlet(np.ones(5), 12 if sees_secret else 4)
        sealed = seal(Protocol(rows, sees_secret=sees_secret), LIP(9.0), joint)
        (found,) = leak_profiles(sealed.mechanism, LIP(9.0), joint)
        given = rows.reshape(3, 4, 5) if sees_secret else np.broadcast_to(rows, (3, 4, 5))
        p = np.einsum("sx,sxy->sy", joint.p_sx, given)
        moves = np.abs(np.log(p / p.sum(axis=0) / p.sum(axis=1, keepdims=True))).max(axis=0)
        assert found.quantiles[-1] == pytest.approx(moves.max())
        apart, secrets = p / p.sum(axis=0) - p.sum(axis=1, keepdims=True), p.sum(axis=1, keepdims=True)
        measures = {"l": 3, "t": np.abs(apart).sum(axis=0).max() / 2, "beta": (apart / secrets).max()}
        assert found.others == pytest.approx({**measures, "delta": moves.max()})
        half = min(size for size in moves if p.sum(axis=0)[moves <= size].sum() >= 0.5)
        assert found.quantiles[0] == pytest.approx(half)
        assert found.before == Fraction(int(joint.weights.sum(axis=1).max()), joint.total)
        assert float(found.after) == pytest.approx(p.max(axis=0).sum())
        by_secret = p / p.sum(axis=1, keepdims=True)
        apart = max(np.abs(one - other).sum() / 2 for one in by_secret for other in by_secret)
        assert float(found.security) == pytest.approx(1 - apart)
        s, t = (joint.secrets.index(label) for label in found.pair)
        for alpha, beta in found.trade_off:  # no test, of all 2^5 sets of outputs, is better
            for accepted in product((0.0, 1.0), repeat=5):
                wrong, missed = by_secret[s] @ accepted, 1 - by_secret[t] @ accepted
                assert wrong > float(alpha) + 1e-9 or missed >= float(beta) - 1e-9
    both = Joint.from_counts([[3, 1], [1, 3], [3, 1], [1, 3]], secret=PAIRS, secret_name="first & second")
    first, second = leak_profiles(seal(Protocol(np.eye(2)), Each(0.7), both).mechanism, Each(0.7), both)
    assert (first.secret, first.security, first.after) == ("first", Fraction(1), Fraction(1, 2))
    assert (second.pair, second.security, second.after) == (("x", "y"), Fraction(1, 2), Fraction(3, 4))


def test_a_curve_of_several_secrets_is_about_each_and_of_one_made_of_both_about_both() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    rows = pl.DataFrame(
        {"a": one.astype(str), "b": other.astype(str), "x": ((one ^ other) + rng.integers(0, 2, 400)).astype(str)}
    )
    each, both = (
        curve(rows, secret=secret, publish="x", epsilons=[0.05], methods=["optimal"])
        for secret in (["a", "b"], [["a", "b"]])
    )
    assert (each.points[0].utility or 0) > 3 * (both.points[0].utility or 0)  # whether they agree is not promised


def test_the_model_of_secrets_with_unlike_epsilons_leaves_something_of_each() -> None:
    """It took up to half of the largest, and was refused after its noise was drawn."""
    rng = np.random.default_rng(4)
    columns = {name: rng.choice(list("uv"), 8000) for name in ("a", "b", "x")}
    spec = ReleaseSpec(secret={"a": 0.3, "b": 3.0}, publish="x", seed=1, anyway=True)
    for public in ((), ("a", "b", "x")):
        found = sanitise(pl.DataFrame(columns), replace(spec, public_labels=public)).sealed
        assert found.model is not None
        assert float(found.model.epsilon) <= 0.15
        assert found.secret_sizes == {"a": 0.3, "b": 3.0}
    with pytest.raises(ParameterError, match=r"part of the whole ε = 0\.3"):
        sanitise(pl.DataFrame(columns), replace(spec, design_epsilon=0.4))
