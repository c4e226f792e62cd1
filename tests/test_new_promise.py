"""A new promise is one class: "s against everyone else" goes everywhere without another line being touched.

Its class says which groups of secrets are compared, and nothing else. It is measured, optimised with proof, sealed,
released, audited from the public file and estimated from.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.designs.baselines import BASELINES
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.estimation import estimate
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.comparisons import Comparisons, compare_groups
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, PROMISES, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.spec import ReleaseSpec
from tests.enumeration import best_over_posteriors
from tests.strategies import joints, protocols_for


class EveryoneElse(Promise, named=False):
    """e^-ε <= P(y | S = s) / P(y | S ≠ s) <= e^ε."""

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        c = joint.c
        if c > 1:
            one = np.eye(c, dtype=bool)
            yield compare_groups(joint, sees_secret, np.concatenate([one, ~one]), [[s, c + s] for s in range(c)])


@pytest.fixture(autouse=True)
def _known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROMISES, "everyoneelse", EveryoneElse)


def leaks(joint: Joint, chance: dict[tuple[int, tuple[int, ...]], Fraction], outputs: list[tuple[int, ...]]) -> float:
    """The largest |ln P(y|s)/P(y|not s)| by its definition, in fractions; `chance` is P(y | x)."""
    worst = 0.0
    w = joint.weights
    for y in outputs:
        for s in range(joint.c):
            sums = []
            for mine in ([s], [t for t in range(joint.c) if t != s]):
                total = int(w[mine].sum())
                sums.append(sum(int(w[mine, x].sum()) * chance[x, y] for x in range(joint.a)) / total)
            if (sums[0] == 0) != (sums[1] == 0):
                return math.inf
            if sums[0]:
                worst = max(worst, abs(math.log(sums[0] / sums[1])))
    return worst


@given(data=st.data(), joint=joints(max_c=4, max_a=4, min_c=2))
@settings(max_examples=40)
def test_it_is_measured_as_it_is_defined(data: st.DataObject, joint: Joint) -> None:
    protocol = data.draw(protocols_for(joint))
    outputs: list[tuple[int, ...]] = [(y,) for y in range(protocol.channel.shape[1])]
    chance = {(x, y): Fraction(protocol.channel[x, y[0]]) for x in range(joint.a) for y in outputs}
    assert EveryoneElse(1).leakage(joint, protocol) == pytest.approx(leaks(joint, chance, outputs), rel=1e-9, abs=1e-12)


@given(joint=joints(max_c=4, max_a=4, min_c=2, min_a=2), epsilon=st.floats(0.1, 2.0))
@settings(max_examples=25)
def test_the_optimum_is_that_of_enumeration_with_its_proof(joint: Joint, epsilon: float) -> None:
    promise = EveryoneElse(epsilon)
    best = optimal(joint, promise)
    assert promise.leakage(joint, best.protocol) <= epsilon
    assert best.bound - best.utility <= 1e-6
    assert best.utility == pytest.approx(best_over_posteriors(joint, promise), abs=2e-6)
    # It lies between two promises that imply each other: s against each other one implies it.
    assert best.bound >= optimal(joint, LDP(epsilon)).utility - 1e-9


@given(joint=joints(max_c=3, max_a=3, min_c=2, min_a=2), epsilon=st.floats(0.1, 2.0))
@settings(max_examples=15)
def test_protocols_that_see_the_secret_keep_it_too(joint: Joint, epsilon: float) -> None:
    best = optimal(joint, EveryoneElse(epsilon), sees_secret=True, gap=1e-5)
    assert EveryoneElse(epsilon).leakage(joint, best.protocol) <= epsilon
    assert best.bound - best.utility <= 1.01e-5
    assert best.bound >= optimal(joint, EveryoneElse(epsilon), gap=1e-5).utility - 1e-9


@pytest.mark.parametrize("name", BASELINES)
def test_explicit_protocols_are_calibrated_to_it(name: str) -> None:
    joint = Joint.from_counts([[9, 1, 4], [2, 7, 5], [3, 3, 3]])
    sealed = seal(BASELINES[name](joint, EveryoneElse(0.5)), EveryoneElse(0.5), joint)
    assert 0.4999 < sealed.epsilon <= 0.5


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two columns that follow a secret of three values, with some noise."""
    rng = np.random.default_rng(3)
    s = rng.integers(0, 3, 1500)
    a = np.where(rng.random(1500) < 0.5, s, rng.integers(0, 3, 1500))
    b = np.where(rng.random(1500) < 0.4, s, rng.integers(0, 4, 1500))
    path = tmp_path_factory.mktemp("people") / "people.csv"
    pl.DataFrame({"s": [f"s{i}" for i in s], "a": [f"a{i}" for i in a], "b": [f"b{i}" for i in b]}).write_csv(path)
    return path


@pytest.mark.parametrize("method", ["optimal", "randomised-response"])
def test_it_is_released_audited_and_estimated_from(method: str, people: Path, tmp_path: Path) -> None:
    promise = EveryoneElse(1.0)
    order = ReleaseSpec(prior="table", secret=("s",), publish=("a", "b"), promise=promise, method=method)
    done = sanitise_file(people, replace(order, into=tmp_path / "out"))
    protocol, table = tmp_path / "out" / "owner" / "protocol.json", tmp_path / "out" / "public" / "sanitised.csv"
    assert 0 < done.sealed.epsilon <= 1.0
    assert json.loads(protocol.read_text(encoding="utf-8"))["promise"] == {"name": "EveryoneElse", "epsilon": 1.0}
    assert SealedProtocol.load(protocol).promise == promise
    found = audit(protocol, people, sanitised=table)
    assert found.certified == pytest.approx(done.sealed.epsilon, abs=1e-9)
    assert found.draw is not None
    assert found.people is done.findings.people is None  # groups of this promise are not priced for a population
    assert estimate(protocol, table, columns=["a"]).tables


def test_a_release_that_breaks_it_is_caught_by_an_audit(people: Path, tmp_path: Path) -> None:
    """The promise is what is certified, not one of the usual ones: at a smaller size the same integers are refused."""
    sanitise_file(
        people,
        replace(
            ReleaseSpec(prior="table", secret=("s",), publish=("a",), promise=EveryoneElse(1.0), method="optimal"),
            into=tmp_path / "out",
        ),
    )
    sealed = SealedProtocol.load(tmp_path / "out" / "owner" / "protocol.json")
    joint = Joint.from_table(pl.read_csv(people), secret="s", publish="a")
    law = sealed.mechanism
    worst = max(law.worst(block).leak.epsilon for block in EveryoneElse(1.0).comparisons(joint, False))
    assert worst == pytest.approx(sealed.epsilon, abs=1e-9)
    exact = [law.worst(block) for block in EveryoneElse(1.0).comparisons(joint, False)]
    assert not any(leak.exceeds(1.0) for leak in exact)
    assert any(leak.exceeds(worst - 1e-6) for leak in exact)


def test_its_worst_leak_is_told_in_words() -> None:
    joint = Joint.from_counts([[90, 10], [50, 50], [50, 50]], secret=["u", "v", "w"], values=["a", "b"])
    words = EveryoneElse(1).worst(joint, Protocol(np.eye(2))).describe(joint, "b")
    assert words == "someone who knows nothing else, for output b, about S = u rather than anything else"
