"""Methods are lines of one table: a new one is released and drawn as a curve without touching anything else."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import plugins
from privacyfunnel.designs import curve as curve_room
from privacyfunnel.designs import methods
from privacyfunnel.designs.curve import Point, curve, enforce_monotonicity
from privacyfunnel.designs.methods import AUTO, METHODS, Effort, Method, Options, RecordDesign
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.design import design
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.fields import METHODS as NAMED

PUBLISH = ("relationship", "sex")


@pytest.fixture(scope="module")
def people(adult: Path) -> pl.DataFrame:
    return pl.read_csv(adult, infer_schema=False).head(3000)


def likeliest_only(joint: Joint, promise: Promise, options: Options) -> RecordDesign:
    """A method of this test: whoever you are, the likeliest value is published."""
    channel = np.zeros((joint.a, joint.a))
    channel[:, joint.p_x.argmax()] = 1.0
    return RecordDesign(joint, promise, Protocol(channel, joint.values), outputs=1)


def as_it_is(joint: Joint, promise: Promise, options: Options) -> RecordDesign:
    """Another: everything is published, whatever was promised."""
    return RecordDesign(joint, promise, Protocol(np.eye(joint.a), joint.values), outputs=joint.a)


@pytest.fixture
def more_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = (Method("likeliest-only", likeliest_only), Method("as-it-is", as_it_is))
    monkeypatch.setattr(methods, "METHODS", {**METHODS, **{method.name: method for method in mine}})
    monkeypatch.setattr(plugins, "_loaded", {(plugins.METHODS, method.name): method for method in mine})


@pytest.mark.usefixtures("more_methods")
def test_a_new_method_is_a_line_in_the_table(people: pl.DataFrame) -> None:
    release = sanitise(
        people, ReleaseSpec(prior="table", secret="income", publish=PUBLISH, promise=LIP(0.5), method="likeliest-only")
    )
    assert release.method == "likeliest-only"
    assert release.table.n_unique() == 1
    assert release.sealed.epsilon == 0
    likeliest = max(people.group_by(PUBLISH).len()["len"].to_list())
    assert release.unchanged == pytest.approx(likeliest / len(people))
    assert release.unchanged_expected == pytest.approx(release.unchanged)
    with pytest.raises(GuaranteeError, match="leaks without bound"):
        sanitise(
            people, ReleaseSpec(prior="table", secret="income", publish=PUBLISH, promise=LIP(0.5), method="as-it-is")
        )
    joint = Joint.from_table(people, secret="income", publish="sex")
    lines = dict(curve(joint, epsilons=[0.5]).lines())
    assert lines["likeliest-only"] == (Point("likeliest-only", 0.5, 0.0, None),)
    assert lines["as-it-is"][0].utility == pytest.approx(entropy(joint.p_x))
    with pytest.raises(ParameterError, match=r"one of auto, optimal, .*; there is none called 'likeliest'"):
        sanitise(
            people, ReleaseSpec(prior="table", secret="income", publish=PUBLISH, promise=LIP(0.5), method="likeliest")
        )


def test_the_spec_names_every_method() -> None:
    assert set(NAMED) == {AUTO, *METHODS}


def test_every_method_answers_the_same_call(people: pl.DataFrame) -> None:
    joint = Joint.from_table(people, secret="income", publish=PUBLISH)
    options = Options(effort=Effort(1e-2, 1.0))
    for name, method in METHODS.items():
        if name == "real-or-synthetic":
            with pytest.raises(ParameterError, match="from a published model; there is none"):
                method.design(joint, LIP(0.5), options)
            continue
        found = method.design(joint, LIP(0.5), options)
        sealed = found.seal()
        assert sealed.epsilon <= 0.5
        assert sealed.information == pytest.approx(found.information, abs=1e-9)
        assert sealed.bound == found.bound
        assert LIP(0).leakage(joint, found.protocol) <= 0.5 + 1e-9
        assert found.outputs >= 2


def test_an_option_that_a_method_cannot_follow_is_refused_by_the_table() -> None:
    joint = Joint.from_counts([[3, 1], [1, 3]])
    for method in METHODS.values():
        if "sees_secret" not in method.follows:
            with pytest.raises(ParameterError, match="never looks at the secret"):
                method.design(joint, LIP(1), Options(sees_secret=True))


def test_a_design_needs_counts_only_and_draws_what_a_release_draws(people: pl.DataFrame) -> None:
    ask: dict[str, Any] = {"prior": "table", "secret": "income", "publish": PUBLISH, "promise": SRLIP(0.5)}
    apart = design(people.sample(fraction=1.0, shuffle=True, seed=1), ReleaseSpec(**ask))
    together = sanitise(people, ReleaseSpec(**ask, seed=2))
    assert apart.for_publication
    assert apart.mechanism.to_json() == together.sealed.mechanism.to_json()
    assert apart.domain.secret_columns == ("income",)


def test_points_are_the_same_on_all_cores() -> None:
    joint = Joint.from_counts([[30, 10, 5], [10, 30, 15]])
    here, there = (curve(joint, epsilons=[0.2, 0.5, 1.0], cores=cores) for cores in (1, 2))
    assert here == there


def test_a_curve_never_falls_and_its_bounds_never_rise_towards_smaller_promises() -> None:
    cut_short = [Point("optimal", 0.5, 0.4, 0.9), Point("optimal", 1.0, 0.3, 0.8)]
    found = enforce_monotonicity(cut_short)
    assert [(point.utility, point.bound) for point in found] == [(0.4, 0.8), (0.4, 0.8)]


def test_points_of_a_curve_share_the_time_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {}

    def noted(joint: Joint, promise: Promise, method: str, options: Options) -> Point:
        given[method, promise.epsilon] = options.effort.time_limit
        return Point(curve_room.line_name(method, options.sees_secret), promise.epsilon, None, None)

    monkeypatch.setattr(curve_room, "_point", noted)
    curve(Joint.from_counts([[5, 1], [1, 5]]), epsilons=[0.5, 1.0, 2.0], within=6.0)
    assert given["optimal", 0.5] == given["optimal", 1.0] == given["optimal", 2.0] == 2.0
    assert curve_room._seconds_per_search(6.0, 3, 2, Effort()) == 3.0  # two at a time, then one
    assert curve_room._seconds_per_search(6.0, 3, 2, Effort(time_limit=1.0)) == 1.0
    assert curve_room._seconds_per_search(math.inf, 3, 2, Effort()) is None
