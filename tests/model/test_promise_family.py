"""One-sided, asymmetric and graded promises, named events and priors with a floor: defined, optimised, sealed, refused.

What is promised is written down again here, as fractions by their definitions, and shares no line with the package.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import sparse
from privacyfunnel.designs.baselines import BASELINES, randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, InputError, ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.certificate import promise_from_json, promise_to_json
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below, log_above
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.labelled_promises import Events, GradedLDP, InteriorPML
from privacyfunnel.model.promises import ALIP, LDP, LIP, PML, SRLIP, Promise, find_promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.model.uses.linear_use import Values
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.spec import ReleaseSpec
from tests.enumeration import best_over_posteriors
from tests.strategies import joints, protocols_for


def family(joint: Joint, epsilon: float) -> list[Promise]:
    """One of each, about the secrets of this table."""
    labels = joint.secrets
    sizes = [(a, b, epsilon * (1 + (i % 3) / 2)) for i, (a, b) in enumerate(combinations(labels, 2))]
    found: list[Promise] = [
        PML(epsilon),
        ALIP(epsilon, epsilon / 2),
        ALIP(epsilon / 3, epsilon),
        InteriorPML(epsilon, 0.1),
        GradedLDP.from_sizes(sizes),
    ]
    if joint.c > 2:
        found.append(Events(epsilon, (("some", labels[:1]), ("more", labels[1:2]))))
    return found


def sides(promise: Promise, joint: Joint) -> Iterator[tuple[list[Fraction], list[Fraction], float]]:
    """What is promised: Σ a_s P(y|s) at most e^limit Σ b_s P(y|s), by the definitions."""
    c, total = joint.c, joint.weights.sum()
    p = [Fraction(int(w), int(total)) for w in joint.weights.sum(axis=1)]
    one = [[Fraction(int(s == t)) for t in range(c)] for s in range(c)]
    match promise:
        case PML():
            yield from ((one[s], p, promise.epsilon) for s in range(c))
        case ALIP():
            for s in range(c):
                yield one[s], p, promise.upper
                yield p, one[s], promise.lower
        case InteriorPML():
            floor = Fraction(str(promise.floor))
            for s in range(c):
                for t in range(c):
                    yield one[s], [floor + (1 - c * floor) * (u == t) for u in range(c)], promise.epsilon
        case GradedLDP():
            length = {frozenset(pair): size for *pair, size in promise.sizes}
            for s, t in combinations(range(c), 2):
                # Among three or four values a shortest path has at most two steps between.
                named = frozenset((joint.secrets[s], joint.secrets[t]))
                size = length.get(named, math.inf)
                yield one[s], one[t], size
                yield one[t], one[s], size
        case Events():
            for _, values in promise.events:
                mine = [label in values for label in joint.secrets]
                inside, outside = (
                    [
                        p[s] * (mine[s] is held) / sum(q for q, m in zip(p, mine, strict=True) if m is held)
                        for s in range(c)
                    ]
                    for held in (True, False)
                )
                yield inside, outside, promise.epsilon
                yield outside, inside, promise.epsilon


def worst_excess(promise: Promise, joint: Joint, rows: list[list[Fraction]]) -> float:
    """By how much the largest log-ratio exceeds what was promised; `rows` are P(y | x)."""
    given = [
        [
            sum(int(joint.weights[s, x]) * rows[x][y] for x in range(joint.a)) / int(joint.weights[s].sum())
            for y in range(len(rows[0]))
        ]
        for s in range(joint.c)
    ]
    worst = -math.inf
    for one, other, limit in sides(promise, joint):
        for y in range(len(rows[0])):
            above = sum(a * given[s][y] for s, a in enumerate(one))
            below = sum(b * given[s][y] for s, b in enumerate(other))
            if above:
                worst = max(worst, (math.log(above / below) if below else math.inf) - limit)
    return worst


@given(data=st.data(), joint=joints(max_c=4, max_a=4, min_c=2), epsilon=st.floats(0.1, 2))
@settings(max_examples=40, deadline=None)
def test_each_is_measured_as_it_is_defined(data: st.DataObject, joint: Joint, epsilon: float) -> None:
    protocol = data.draw(protocols_for(joint))
    rows = [[Fraction(q) for q in row] for row in protocol.channel.tolist()]
    for promise in family(joint, epsilon):
        leak = promise.leakage(joint, protocol)
        if math.isinf(leak):
            assert worst_excess(promise, joint, rows) == math.inf
        else:
            # At the ε that was measured, nothing is left; a little below it, something is.
            assert worst_excess(promise.with_epsilon(leak * (1 + 1e-9) + 1e-12), joint, rows) <= 1e-9
            if leak > 1e-6:
                assert worst_excess(promise.with_epsilon(leak * 0.999), joint, rows) > 0


@given(joint=joints(max_c=4, max_a=4, min_c=2, min_a=2), epsilon=st.floats(0.1, 2))
@settings(max_examples=6, deadline=None)
def test_each_optimum_is_that_of_enumeration_with_its_proof_and_is_sealed(joint: Joint, epsilon: float) -> None:
    for promise in family(joint, epsilon):
        best = optimal(joint, promise)
        assert best.bound - best.utility <= 1e-6
        assert best.utility == pytest.approx(best_over_posteriors(joint, promise), abs=2e-6)
        sealed = seal(best.protocol, promise, joint)
        numbers = sealed.mechanism
        assert isinstance(numbers, ChannelMechanism)
        columns = [numbers.column(y) for y in range(len(numbers.outputs))]
        rows = [[Fraction(int(column[x]), 2**64) for column in columns] for x in range(joint.a)]
        assert worst_excess(promise, joint, rows) <= 1e-12


@pytest.mark.parametrize("name", BASELINES)
def test_explicit_protocols_are_calibrated_to_each(name: str) -> None:
    joint = Joint.from_counts([[9, 1, 4], [2, 7, 5], [3, 3, 3]])
    for promise in family(joint, 0.5):
        sealed = seal(BASELINES[name](joint, promise), promise, joint)
        assert promise.epsilon * 0.9999 < sealed.epsilon <= promise.epsilon


def test_every_kind_of_protocol_measures_the_same_leak() -> None:
    rng = np.random.default_rng(5)
    joint = Joint.from_counts(rng.integers(1, 60, (3, 3, 2)))
    table = Protocol(rng.dirichlet(np.ones(4), joint.a))
    for promise in family(joint, 0.7):
        sealed = seal(randomised_response(joint, promise), promise, joint)
        assert promise.epsilon * 0.999 < sealed.epsilon <= promise.epsilon
        listed = sealed.mechanism.explicit_protocol(10**6)
        assert listed is not None
        assert promise.leakage(joint, listed) == pytest.approx(sealed.epsilon, rel=1e-9)
        whole = promise.leakage(joint, table)
        assert promise.leakage(joint, SparseProtocol(sparse.csr_array(table.channel))) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("use", [Statistics(), Values()])
def test_each_serves_other_uses_and_protocols_that_see_the_secret(use: Statistics | Values) -> None:
    joint = Joint.from_counts([[9, 1, 4], [2, 7, 5], [3, 3, 3]])
    for promise in family(joint, 0.8):
        best = optimal(joint, promise, use)
        assert promise.leakage(joint, best.protocol) <= promise.epsilon
        assert abs(best.bound - best.value) <= 1e-3 * (1 + abs(best.value))
        seeing = optimal(joint, promise, sees_secret=True, gap=1e-4)
        assert promise.leakage(joint, seeing.protocol) <= promise.epsilon
        assert seeing.bound >= optimal(joint, promise).utility - 1e-6


@given(joint=joints(max_c=4, max_a=4, min_c=2, min_a=2), epsilon=st.floats(0.2, 1.5))
@settings(max_examples=5, deadline=None)
def test_what_they_have_in_common_with_lip_and_ldp(joint: Joint, epsilon: float) -> None:
    def utility(promise: Promise) -> float:
        return optimal(joint, promise).utility

    lip, ldp, pml = utility(LIP(epsilon)), utility(LDP(epsilon)), utility(PML(epsilon))
    assert utility(ALIP(epsilon, epsilon)) == pytest.approx(lip, abs=2e-6)
    assert utility(InteriorPML(epsilon, 0.0)) == pytest.approx(ldp, abs=2e-6)
    assert ldp - 2e-6 <= lip <= pml + 2e-6
    floors = [utility(InteriorPML(epsilon, floor)) for floor in (0.0, 0.1, 0.2)]
    assert floors == sorted(floors) or max(np.diff(floors) * -1) < 2e-6


# -- closed forms -----------------------------------------------------------------------------------------------------


def itself(p: list[int]) -> Joint:
    """The secret is what is published."""
    return Joint.from_counts(np.diag(p))


@given(p=st.lists(st.integers(1, 20), min_size=2, max_size=5), share=st.floats(0.05, 0.95))
@settings(max_examples=8, deadline=None)
def test_pml_at_high_privacy_is_the_closed_form_of_grosse_saeidian_and_oechtering(p: list[int], share: float) -> None:
    # For e^ε at most 1/(1 − p_min): q(y_j | x_i) = e^ε p_j for i ≠ j, and 1 − e^ε (1 − p_i) for i = j.
    joint = itself(p)
    epsilon = share * -math.log(1 - joint.p_x.min())
    e = math.exp(epsilon)
    channel = np.tile(e * joint.p_x, (joint.a, 1))
    np.fill_diagonal(channel, 1 - e * (1 - joint.p_x))
    closed = Protocol(channel / channel.sum(axis=1, keepdims=True))
    best = optimal(joint, PML(epsilon))
    assert best.utility == pytest.approx(closed.mutual_information(joint), abs=2e-6)


@given(one=st.integers(1, 20), more=st.integers(0, 20), share=st.floats(0.05, 0.95))
@settings(max_examples=8, deadline=None)
def test_pml_of_a_binary_value_is_its_closed_form(one: int, more: int, share: float) -> None:
    # Above e^ε = 1/p_max only the rarer value is held back: H(X) − e^-ε h(e^ε p_min).
    joint = itself([one, one + more])
    rare, frequent = sorted(joint.p_x)
    epsilon = -math.log(frequent) + share * (math.log(frequent) - math.log(rare))
    known = math.exp(epsilon) * rare
    best = optimal(joint, PML(epsilon))
    assert best.utility == pytest.approx(
        entropy([rare, frequent]) - rare / known * entropy([known, 1 - known]), abs=2e-6
    )


@given(n=st.integers(2, 6), share=st.floats(0.05, 0.95))
@settings(max_examples=8, deadline=None)
def test_pml_at_an_even_prior_is_its_closed_form(n: int, share: float) -> None:
    # Posteriors have as many entries of e^ε / n as fit, and one with the rest.
    epsilon = share * math.log(n)
    full = math.floor(n / math.exp(epsilon))
    largest = math.exp(epsilon) / n
    posterior = [largest] * full + [1 - full * largest]
    assert optimal(itself([1] * n), PML(epsilon)).utility == pytest.approx(math.log(n) - entropy(posterior), abs=2e-6)


@given(epsilon=st.floats(0.1, 3))
@settings(max_examples=5, deadline=None)
def test_graded_ldp_of_two_values_is_randomised_response(epsilon: float) -> None:
    # Acharya, Bonawitz, Kairouz, Ramage and Sun, context-aware LDP with two values.
    stays = 1 / (1 + math.exp(-epsilon))
    joint = itself([1, 1])
    best = optimal(joint, GradedLDP.from_sizes([(joint.secrets[0], joint.secrets[1], epsilon)]))
    assert best.utility == pytest.approx(math.log(2) - entropy([stays, 1 - stays]), abs=2e-6)


def test_ldp_on_a_line_is_that_of_neighbours_and_bounds_every_pair() -> None:
    joint = Joint.from_counts(np.diag([3, 4, 5, 6]) + 1, secret=["10", "0", "1", "2.5"])
    promise = GradedLDP(0.4)
    best = optimal(joint, promise)
    given_s = best.protocol.joint_with_secret(joint) / joint.p_s[:, None]
    place = [10.0, 0.0, 1.0, 2.5]
    for s, t in combinations(range(4), 2):
        largest = np.abs(np.log(given_s[s] / given_s[t])).max()
        assert largest <= 0.4 * abs(place[s] - place[t]) + 1e-9
    assert best.utility > optimal(joint, LDP(0.4)).utility


def test_a_graded_pair_is_tightened_by_the_shortest_path() -> None:
    found = GradedLDP.from_sizes([("a", "b", 0.5), ("b", "c", 0.5), ("a", "c", 4.0)])
    assert (found.epsilon, found.sizes, found.tightened) == (1.0, (("a", "b", 0.5), ("b", "c", 0.5)), 1)
    # A value that nobody has still lies on a path.
    some = Joint.from_counts([[3, 1], [1, 3]], secret=["a", "c"])
    protocol = optimal(some, found).protocol
    given_s = protocol.joint_with_secret(some) / some.p_s[:, None]
    assert np.abs(np.log(given_s[0] / given_s[1])).max() == pytest.approx(1.0, abs=1e-6)


# -- exact arithmetic -------------------------------------------------------------------------------------------------


@given(epsilon=st.floats(1e-6, 5), scale=st.floats(0.01, 20))
@settings(max_examples=50, deadline=None)
def test_powers_are_rounded_to_the_safe_side(epsilon: float, scale: float) -> None:
    below = exp_below(epsilon, scale)
    assert below <= math.exp(epsilon * scale) * (1 + 1e-12)
    assert below >= math.exp(epsilon * scale) * (1 - 1e-12)
    assert Fraction(log_above(below, scale)) >= Fraction(log_above(below)) / Fraction(scale) * (1 - Fraction(1, 10**15))


def test_a_protocol_one_percent_too_loud_one_way_is_refused() -> None:
    joint = itself([1, 1])
    loud = math.exp(0.5) / 2 * 1.01
    # A belief in the first value rises by 1 % too much; the second one's stays within the promise.
    channel = np.array([[loud, 1 - loud], [1 - loud, loud]])
    for promise in (PML(0.5), ALIP(3.0, 0.5), InteriorPML(0.5, 0.5)):
        with pytest.raises(GuaranteeError, match="promised ε"):
            seal(Protocol(channel), promise, joint)
    falls = np.array([[1.0, 0.0], [1 - 1 / 1.2, 1 / 1.2]])  # one output rules a value out
    assert seal(Protocol(falls), PML(0.7), joint).epsilon <= 0.7
    with pytest.raises(GuaranteeError, match="without bound"):
        seal(Protocol(falls), ALIP(3.0, 0.7), joint)


# -- texts, files and what is refused ---------------------------------------------------------------------------------


def test_texts_and_files_say_the_same_promise(tmp_path: Path) -> None:
    pairs, groups = tmp_path / "graded.csv", tmp_path / "events.csv"
    pairs.write_text("value,other,epsilon\na,b,0.5\nb,c,1\n", encoding="utf-8")
    groups.write_text("value,event\na,first\nb,first\nc,second\n", encoding="utf-8")
    texts = {
        "pml": PML(0.5),
        "alip:0.5,1": ALIP(0.5, 1),
        "pml:floor=0.05": InteriorPML(0.5, 0.05),
        "ldp:line": GradedLDP(0.5),
        f"ldp:{pairs}": GradedLDP.from_sizes([("a", "b", 0.5), ("b", "c", 1.0)]),
        f"events:{groups}": Events(0.5, (("first", ("a", "b")), ("second", ("c",)))),
    }
    domain = Domain.from_joint(itself([1, 1]), False)
    for text, promise in texts.items():
        own = text.startswith("alip") or text.endswith("graded.csv")
        spec = ReleaseSpec(promise=text, epsilon=None if own else 0.5)
        assert spec.promise_value == promise
        stated = json.loads(json.dumps(promise_to_json(promise)))
        assert promise_from_json(stated, domain) == promise
        assert promise_from_json(stated, domain).meaning == promise.meaning
        if own:
            with pytest.raises(ParameterError, match="already fixes ε"):
                ReleaseSpec(promise=text, epsilon=1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alip", "needs two sizes"),
        ("alip:1", "needs two sizes"),
        ("alip:0,1", "above 0"),
        ("pml:0.5", "pml:floor=0.05"),
        ("pml:floor=0.7", "floor of priors"),
        ("lip:1", "nothing behind its name"),
        ("ldp:none.csv", "Cannot read"),
        ("events", "needs a file"),
    ],
)
def test_texts_that_say_nothing_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        _ = ReleaseSpec(promise=text, epsilon=None if text.startswith(("alip", "ldp:")) else 1.0).promise_value


def test_files_that_say_nothing_are_refused(tmp_path: Path) -> None:
    path, joint = tmp_path / "file.csv", Joint.from_counts([[3, 1], [1, 3], [2, 2]], secret=["a", "b", "c"])
    for kind, content, said in (
        ("events", "a,x\na,y\n", "share no value"),
        ("events", "a\n", "needs a value"),
        ("events", "z,x\n", "holds no values"),
        ("events", "a,x\nb,x\nc,x\n", "holds all values"),
        ("ldp", "a,b,0.5\n", "1 of 3 have none"),
        ("ldp", "a,b,0.5\nc,d,0.5\n", "a path of pairs"),
        ("ldp", "a,b,0\n", "one ε above 0"),
        ("ldp", "a,b,x\n", "is no number"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ParameterError, match=said):
            find_promise(f"{kind}:{path}", 1.0 if kind == "events" else None).constraints(joint)
    with pytest.raises(ParameterError, match="values are numbers"):
        GradedLDP(1.0).constraints(joint)
    with pytest.raises(ParameterError, match="at most 1/3"):
        InteriorPML(1.0, 0.4).constraints(joint)


def test_populations_and_other_odds_are_refused_where_sides_differ() -> None:
    joint = Joint.from_counts([[300, 100], [100, 300]])
    with pytest.raises(ParameterError, match="symmetric"):
        PML(1.0).for_population(joint).credal_sets(joint)
    with pytest.raises(ParameterError, match="must say which groups"):
        InteriorPML(1.0, 0.1).for_population(joint)


def test_a_file_whose_sizes_contradict_each_other_is_refused() -> None:
    domain = Domain.from_joint(itself([1, 1]), False)
    with pytest.raises((ParameterError, ProtocolFileError)):
        promise_from_json({"name": "ALIP", "epsilon": 0.1, "parameters": {"lower": 0.5, "upper": 1.0}}, domain)
    with pytest.raises(ParameterError, match="no parameters"):
        promise_from_json({"name": "SRLIP", "epsilon": 0.1, "parameters": {"lower": 0.5}}, domain)
    assert promise_from_json({"name": "SRLIP", "epsilon": 0.1}, domain) == SRLIP(0.1)


def test_a_file_with_parameters_is_read_again(tmp_path: Path) -> None:
    joint = Joint.from_counts([[9, 1, 4], [2, 7, 5], [3, 3, 3]])
    for promise in family(joint, 0.5):
        sealed = seal(optimal(joint, promise).protocol, promise, joint)
        path = tmp_path / "protocol.json"
        sealed.save(path, force=True)
        assert SealedProtocol.load(path).promise == replace_tightened(promise)


def replace_tightened(promise: Promise) -> Promise:
    """A file does not say how many pairs were tightened."""
    return replace(promise, tightened=0) if isinstance(promise, GradedLDP) else promise
