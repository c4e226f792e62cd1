"""Linear uses: proved best, equal to what a programme over all vertices finds, and to the figures that are known."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import InputError, ParameterError, SizeError
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.linear_use import CostTable, Distance, LinearUse, Values, resolve_value_use
from privacyfunnel.model.uses.ordinal_scale import check_orders, range_labels, scale_positions
from privacyfunnel.model.uses.use import Information
from privacyfunnel.tables.readers.adult import adult_counts
from tests.enumeration import cheapest_split, posteriors
from tests.strategies import identity, joints, protocols_for

EPSILONS = st.floats(0.05, 3)
PROMISES = st.sampled_from([LIP, LDP, SRLIP])
USES = st.sampled_from([Values(), Distance(), Distance("squared")])
SCHOOLS = (
    "Preschool,1st-4th,5th-6th,7th-8th,9th,10th,11th,12th,HS-grad,Some-college,Assoc-voc,Assoc-acdm,Bachelors,Masters,"
    "Prof-school,Doctorate"
)
PAIRS = [
    (secret, publish)
    for secret in ("marital-status", "occupation")
    for publish in ("sex", "race", "relationship", "education")
]


def adult(secret: str, publish: str) -> Joint:
    """Adult, education by its place in the order of schools."""
    counts, (secrets, values) = adult_counts(secret, publish)
    if publish != "education":
        return Joint.from_counts(counts, secrets, values)
    order = [values.index(school) for school in SCHOOLS.split(",")]
    return Joint.from_counts(counts[:, order], secrets, [str(n + 1) for n in range(len(order))])


@given(joint=joints(), kind=PROMISES, epsilon=EPSILONS, use=USES, margin=st.booleans(), sees=st.booleans())
# Values tie here, so that actions came and went without end.
@example(Joint.from_counts(np.eye(4, dtype=np.int64)), LDP, 1.75, Distance("squared"), False, False)
@settings(max_examples=80, deadline=None)
def test_the_optimum_keeps_its_promise_is_proved_and_is_what_is_measured(
    joint: Joint, kind: type[Promise], epsilon: float, use: LinearUse, margin: bool, sees: bool
) -> None:
    use = Values(margin=True) if margin else use
    best = optimal(joint, kind(epsilon), use, sees_secret=sees)
    largest = float(use.costs(joint).max())
    assert kind(epsilon).leakage(joint, best.protocol) <= epsilon
    assert best.value == use.value(joint, best.protocol)
    assert best.utility == pytest.approx(best.protocol.mutual_information(joint), abs=1e-12)
    assert best.bound <= best.value <= best.bound + 1e-7 * (1 + largest)
    if margin:
        assert best.protocol.outputs == joint.values
        assert best.protocol.joint_with_values(joint).sum(axis=0) == pytest.approx(joint.p_x, abs=1e-7)


@given(joint=joints(max_c=3, max_a=4), kind=PROMISES, epsilon=EPSILONS, use=st.sampled_from([Values(), Distance()]))
@settings(max_examples=30, deadline=None)
def test_it_equals_the_best_split_into_vertices_of_the_polytope(
    joint: Joint, kind: type[Promise], epsilon: float, use: LinearUse
) -> None:
    atoms = posteriors(joint, kind(epsilon))
    reference = cheapest_split(atoms, (atoms @ use.costs(joint)).min(axis=1), joint.p_x)
    best = optimal(joint, kind(epsilon), use)
    assert best.value == pytest.approx(reference, abs=1e-7)
    assert best.bound <= reference + 1e-8


@given(joint=joints(max_a=4), epsilon=EPSILONS, data=st.data(), use=USES)
@settings(max_examples=40, deadline=None)
def test_no_protocol_that_keeps_the_promise_beats_the_bound(
    joint: Joint, epsilon: float, data: st.DataObject, use: LinearUse
) -> None:
    other = data.draw(protocols_for(joint))
    flat = other.mix_constant(other.joint_with_values(joint).sum(axis=0), 0.5)
    for protocol in (flat, randomised_response(joint, LIP(epsilon)), other):
        leak = LIP(0).leakage(joint, protocol)
        if leak < 10:
            assert use.value(joint, protocol) >= optimal(joint, LIP(leak), use).bound - 1e-9


@pytest.mark.parametrize(
    ("secret", "promise", "use", "known"),
    [
        ("occupation", LIP(1), Values(), 0.0809),
        ("occupation", LIP(1), Values(margin=True), 0.1033),
        ("occupation", LIP(1), Distance(), 0.5136),
        ("occupation", LIP(1), Distance(margin=True), 0.5974),
        ("occupation", LIP(1), Distance("squared"), 2.210),
        ("occupation", LDP(1), Values(), 0.1748),
        ("occupation", LDP(1), Values(margin=True), 0.2169),
        ("marital-status", LIP(1), Values(), 0.0472),
        ("marital-status", LIP(1), Values(margin=True), 0.0673),
        ("marital-status", LIP(1), Distance("squared"), 0.2219),
    ],
)
def test_adult_has_the_values_that_another_implementation_found(
    secret: str, promise: Promise, use: LinearUse, known: float
) -> None:
    best = optimal(adult(secret, "education"), promise, use)
    assert best.value == pytest.approx(known, rel=6e-4, abs=6e-5)
    assert best.value - best.bound < 1e-9


@pytest.mark.parametrize(("secret", "publish"), PAIRS)
def test_every_pair_of_the_paper_is_solved_for_values_whether_or_not_the_secret_is_seen(
    secret: str, publish: str
) -> None:
    joint = adult(secret, publish)
    blind = optimal(joint, LIP(0.5), Values())
    assert blind.value - blind.bound < 1e-8
    if publish != "education":
        seeing = optimal(joint, LIP(0.5), Values(), sees_secret=True)
        assert seeing.value - seeing.bound < 1e-8
        assert seeing.value <= blind.value + 1e-9


@given(values=st.integers(2, 6), epsilon=EPSILONS)
@settings(max_examples=20, deadline=None)
def test_a_secret_published_itself_is_right_as_often_as_by_randomised_response(values: int, epsilon: float) -> None:
    """S = X, uniform, LDP: the chance to guess right is at most e^ε / (e^ε + k − 1), and GRR attains it."""
    joint = Joint.from_counts(np.eye(values, dtype=np.int64))
    best = optimal(joint, LDP(epsilon), Values())
    assert 1 - best.value == pytest.approx(np.exp(epsilon) / (np.exp(epsilon) + values - 1), abs=1e-7)


def test_a_table_of_costs_is_read_by_labels_and_may_charge_one_side_more() -> None:
    joint = Joint.from_counts([[5, 3, 1], [2, 2, 9]], values=["low", "mid", "high"])
    cells = ((0.0, 1.0, 9.0), (2.0, 0.0, 1.0), (9.0, 2.0, 0.0))
    costs = CostTable("costs", ("high", "mid", "low"), ("high", "mid", "low"), cells)
    assert costs.align(joint).tolist() == [[0, 2, 9], [1, 0, 2], [9, 1, 0]]
    best = optimal(joint, LIP(0.4), Distance("costs", costs))
    assert best.value - best.bound < 1e-9
    nothing = Protocol(np.ones((3, 1)))
    assert best.value < best.use.value(joint, nothing) == pytest.approx((joint.p_x @ costs.align(joint)).min())


@pytest.mark.parametrize("cell", [-1.0, np.inf, np.nan])
def test_costs_below_nothing_or_without_end_are_refused(cell: float) -> None:
    with pytest.raises(ParameterError, match="costs must be finite and at least 0"):
        CostTable("costs", ("a", "b"), ("a", "b"), ((0.0, cell), (1.0, 0.0)))


def test_costs_of_the_wrong_shape_and_distances_between_words_are_refused() -> None:
    joint = Joint.from_counts([[5, 3], [2, 9]], values=["low", "high"])
    with pytest.raises(InputError, match="a line and a column for each value, once; 'costs' has 1 lines and 2 columns"):
        CostTable("costs", ("low",), ("low", "high"), ((0.0, 1.0),))
    three = CostTable("costs", tuple("abc"), tuple("abc"), tuple(product([1.0], repeat=3)) * 3)
    with pytest.raises(InputError, match="each of the 2 values of 'X' and no others; 'costs' has 3, 0 of them"):
        optimal(joint, LIP(1), Distance("costs", three))
    with pytest.raises(InputError, match="values that are numbers; some of 'X' are none"):
        optimal(joint, LIP(1), Distance())
    two = Joint.from_counts([[[5, 3], [1, 1]], [[2, 9], [1, 1]]])
    with pytest.raises(InputError, match="squared distance is for one column; 2 are published"):
        optimal(two, LIP(1), Distance("squared"))
    assert optimal(two, LIP(0.2), Distance()).value > 0  # absolute ones add up


def test_more_values_than_a_programme_holds_are_refused_at_once() -> None:
    joint = Joint.from_counts(np.arange(1, 801).reshape(2, 400))
    with pytest.raises(SizeError, match=r"at most 99,856 pairs .* are 400 × 400"):
        optimal(joint, LIP(0.01), Values())


def test_published_values_serve_their_use_and_others_keep_the_margin() -> None:
    joint, schools = adult("marital-status", "race"), adult("marital-status", "education")
    assert resolve_value_use(Information(), joint) == Values(margin=True)
    near = resolve_value_use(Information(), schools)
    assert near == Distance("nearby", margin=True)  # numbers stand on a line
    assert near.costs(schools)[0, :3] == pytest.approx([0, 1.02, 1.04])
    by_value, by_place = (optimal(schools, LIP(1), use).protocol for use in (Values(margin=True), near))
    right, off = Values(margin=True), Distance(margin=True)
    assert right.value(schools, by_place) == pytest.approx(right.value(schools, by_value), abs=1e-3)
    assert off.value(schools, by_place) < 0.9 * off.value(schools, by_value)
    assert resolve_value_use(Values(), schools) == Values(published=True)
    squared = resolve_value_use(Distance("squared"), schools)
    assert squared == Distance("squared", published=True)
    assert squared.value(schools, identity(schools)) == 0
    best = optimal(joint, LIP(0.5), Values(published=True))
    assert best.protocol.outputs == joint.values
    assert best.value == pytest.approx(optimal(joint, LIP(0.5), Values()).value, abs=1e-9)
    assert best.value <= optimal(joint, LIP(0.5), Values(margin=True)).value


def test_columns_that_stand_on_a_line_are_ordered_by_numbers_by_bins_or_as_the_owner_says() -> None:
    def joint(*labels: str) -> Joint:
        return Joint.from_counts([[9, 5, 3, 1], [1, 2, 6, 9]], values=labels, names=["size"])

    tens, bins, words = joint("10", "1", "3", "2"), joint("[2, 3)", "< 2", ">= 4", "[3, 4)"), joint("L", "S", "XL", "M")
    use = Distance(orders=(("size", ("S", "M", "L", "XL")),))
    expected = [[0, 2, 1, 1], [2, 0, 3, 1], [1, 3, 0, 2], [1, 1, 2, 0]]
    assert use.costs(words).tolist() == expected
    assert Distance().costs(bins).tolist() == [[0, 1, 2, 1], [1, 0, 3, 2], [2, 3, 0, 1], [1, 2, 1, 0]]
    assert Distance().costs(tens)[0].tolist() == [0, 9, 7, 8]
    with pytest.raises(InputError, match=r"some of 'size' are none\. Give their order"):
        Distance().refuse(words)
    gone = Joint.from_counts([[4, 3, 2], [1, 2, 3]], values=["9,5", "10,5", "(missing)"], names=["age"])
    with pytest.raises(InputError, match="missing or merged ones of 'age' are none"):
        Distance().refuse(gone)
    commas = Joint.from_counts([[4, 3], [1, 2]], values=["9,5", "10,5"])
    assert Distance().costs(commas)[0].tolist() == [0, 1]
    for order in (("S", "M", "L"), ("S", "M", "L", "L"), ("S", "M", "L", "XXL")):
        with pytest.raises(InputError, match="each of the 4 values of 'size' once"):
            check_orders((("size", order),), words)
    with pytest.raises(InputError, match=r"'sise' is none\. Did you mean 'size'"):
        check_orders((("sise", ()),), words)
    with pytest.raises(InputError, match="have an order of their own; some of 'size' are neither"):
        check_orders((("size", ()),), words)
    with pytest.raises(InputError, match="each of the 4 values of 'size' once"):
        Distance(orders=(("size", ("S", "M")),)).refuse(words)


def test_outputs_that_hold_neighbours_are_called_by_their_range() -> None:
    joint = Joint.from_counts([[40, 30, 2, 1], [1, 2, 30, 40]], values=["20", "30", "40", "50"])
    called = [label for (label,) in optimal(joint, LIP(0.3), Distance()).protocol.outputs]
    assert any("–" in label for label in called)
    age = Attribute("age", ("under 18", "18–29", "30–64", "65+"))
    held = [np.array(values) for values in ([0, 1], [1, 2], [2, 3], [0, 1, 2, 3], [0, 2])]
    where = scale_positions(age)
    assert where is not None
    assert range_labels(age, where, held) == ["under 30", "18–64", "30+", "all", None]


@pytest.mark.parametrize("use", [Values(), Values(margin=True), Distance("squared")], ids=lambda use: use.full_name)
def test_when_time_is_up_before_a_programme_ends_there_is_a_protocol_and_a_bound_all_the_same(use: LinearUse) -> None:
    joint = adult("marital-status", "education")
    best, proved = optimal(joint, LIP(1.0), use, time_limit=1e-6), optimal(joint, LIP(1.0), use)
    assert LIP(1.0).leakage(joint, best.protocol) <= 1.0
    drawn_blindly = Protocol(np.tile(joint.p_x, (joint.a, 1)), joint.values)
    assert best.bound <= proved.value < best.value < use.value(joint, drawn_blindly)
    if use.keeps_margin:
        assert joint.p_x @ best.protocol.channel == pytest.approx(joint.p_x, abs=1e-9)
