"""Kept columns are part of what is published: designed for, measured in fractions, refused where ε cannot be kept."""

from dataclasses import replace
from fractions import Fraction
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import LDP, LIP, SRLIP, audit, sanitise, sanitise_file
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.model.promises import Promise
from privacyfunnel.release.kept_counts import count_rows
from privacyfunnel.spec import ReleaseSpec
from tests.commands import turned_down

RNG = np.random.default_rng(8)
N = 3000
S = RNG.choice(3, N, p=[0.5, 0.3, 0.2])
X = (S + RNG.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])) % 4
PEOPLE = pl.DataFrame(
    {
        "job": np.array(["cook", "clerk", "nurse"])[S],
        "town": np.array(["k", "l", "m", "n"])[X],
        "hint": np.where(RNG.random(N) < 0.08, S, RNG.choice(3, N)),
        "coin": RNG.choice(2, N),
        "group": (S == 1).astype(np.int64),
        "id": np.arange(N),
    }
)


def chances(law: Mechanism) -> list[list[Fraction]]:
    """q(y | input) of the integers that are drawn."""
    assert isinstance(law, ChannelMechanism)
    columns = [law.column(y) for y in range(len(law.outputs))]
    return [[Fraction(column[z], 2**64) for column in columns] for z in range(law.inputs)]


def leak_of_both(law: Mechanism, kept: list[str], promise: Promise, among: np.ndarray | None = None) -> float:
    """max |ln P(y, k | s) / P(y, k | …)| by fractions, over all records or those `among` whom somebody looks."""
    rows = np.arange(N) if among is None else np.flatnonzero(among)
    q, values = chances(law), len(np.unique(X))
    k = [tuple(row) for row in PEOPLE.select(kept).rows()]
    counts: dict[tuple[int, int, Any], int] = {}
    for i in rows.tolist():
        key = int(S[i]), int(X[i]), k[i]
        counts[key] = counts.get(key, 0) + 1
    both: dict[tuple[int, Any], list[Fraction]] = {}
    for (s, x, each), n in counts.items():
        z = s * values + x if law.sees_secret else x
        total = both.setdefault((s, each), [Fraction(0)] * len(q[0]))
        both[s, each] = [a + n * b for a, b in zip(total, q[z], strict=True)]
    size = [int((S[rows] == s).sum()) for s in range(3)]
    there = [s for s in range(3) if size[s]]
    worst = 0.0
    for each in {key[2] for key in counts}:
        for y in range(len(q[0])):
            mass = {s: both[s, each][y] if (s, each) in both else Fraction(0) for s in there}
            given = [mass[s] / size[s] for s in there]
            pairs = [(a, b) for a in given for b in given] if promise.name == "LDP" else []
            everybody = sum(mass.values(), Fraction(0)) / sum(size)
            pairs = pairs or [(a, everybody) for a in given]
            for a, b in pairs:
                if a or b:
                    worst = max(worst, abs(log(a / b)) if a and b else inf)
    return worst


@pytest.mark.parametrize(
    "more",
    [
        {"use": "information"},
        {"use": "statistics"},
        {"use": "values"},
        {"use": "information", "sees_secret": True},
        {"method": "randomised-response"},
        {"method": "conditional-reporting"},
    ],
)
@pytest.mark.parametrize("promise", [LIP(0.6), LDP(0.9), SRLIP(1.2)])
@pytest.mark.parametrize("keep", [["hint"], ["hint", "coin"]])
def test_a_design_beside_kept_columns_keeps_the_promise_for_both_by_fractions(
    more: dict[str, Any], promise: Promise, keep: list[str]
) -> None:
    spec = ReleaseSpec(prior="table", secret="job", publish="town", promise=promise, keep=keep, time_limit=5.0, **more)
    release = sanitise(PEOPLE, spec)
    law = release.sealed.mechanism
    measured = leak_of_both(_in_order_of_secrets(law), keep, promise)
    assert measured <= promise.epsilon * (1 + 1e-12)
    assert measured <= release.sealed.epsilon * (1 + 1e-12)
    if promise.name == "SRLIP":
        for value in range(3):  # of those whose kept column somebody knows
            known = PEOPLE["hint"].to_numpy() == value
            assert leak_of_both(_in_order_of_secrets(law), keep, promise, known) <= promise.epsilon * (1 + 1e-12)
    alone = sanitise(
        PEOPLE, ReleaseSpec(prior="table", secret="job", publish="town", promise=promise, time_limit=5.0, **more)
    )
    assert leak_of_both(_in_order_of_secrets(alone.sealed.mechanism), keep, promise) > promise.epsilon
    assert "ε is about them and what is published together" in " ".join(release.not_promised)


def _in_order_of_secrets(law: Mechanism) -> Mechanism:
    """The mechanism by the numbers of S here: cook, clerk, nurse, where it looks at the secret."""
    if not law.sees_secret:
        return law
    return law.restrict_inputs(np.array([place * 4 + x for place in (1, 0, 2) for x in range(4)]))


def test_an_independent_kept_column_costs_nothing() -> None:
    twice = pl.concat([PEOPLE.with_columns(side=pl.lit("left")), PEOPLE.with_columns(side=pl.lit("right"))])
    spec = ReleaseSpec(prior="table", secret="job", publish="town", promise=LIP(0.4), use="information")
    with_it, without = (sanitise(twice, replace(spec, keep=keep)).sealed for keep in (["side"], []))
    assert with_it.information == pytest.approx(without.information, abs=1e-5)


@pytest.mark.parametrize(
    ("keep", "found"),
    [
        (["group"], "the kept column group alone leaks without bound"),
        (["coin", "group"], "the kept column group alone leaks without bound"),
        (["id"], "the kept column id alone leaks without bound"),
        (["hint", "coin"], "the kept columns hint, coin alone leak up to ε = 0."),
    ],
)
def test_kept_columns_that_break_the_promise_alone_are_named_before_anything_is_solved(
    keep: list[str], found: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("privacyfunnel.release.design.make_design", None)
    spec = ReleaseSpec(prior="table", secret="job", publish="town", epsilon=ALONE if "hint" in keep else 0.5, keep=keep)
    with pytest.raises(GuaranteeError, match=f"about job must hold for all that is published of a record; {found}"):
        sanitise(PEOPLE, spec)
    PEOPLE.write_csv(tmp_path / "people.csv")
    with pytest.raises(GuaranteeError, match=found):
        sanitise_file(tmp_path / "people.csv", ReleaseSpec.from_mapping({**vars_of(spec), "into": tmp_path / "out"}))
    assert not (tmp_path / "out").exists()


def leak_alone(keep: list[str]) -> float:
    """What kept columns leak by themselves."""
    constant = sanitise(
        PEOPLE, ReleaseSpec(prior="table", secret="job", publish="town", epsilon=0, method="randomised-response")
    ).sealed.mechanism
    return leak_of_both(constant, keep, LIP(0))


ALONE = (leak_alone(["hint", "coin"]) + max(leak_alone(["hint"]), leak_alone(["coin"]))) / 2


def vars_of(spec: ReleaseSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in ("prior", "secret", "publish", "epsilon", "keep")}


def test_a_method_that_is_blind_to_kept_columns_is_measured_and_refused(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privacyfunnel.release.design.BESIDE_KEPT", ())  # as methods of other packages are
    both: dict[str, Any] = {
        "prior": "table",
        "secret": "job",
        "publish": ["town", "coin"],
        "keep": ["hint"],
        "method": "randomised-response",
    }
    with pytest.raises(
        GuaranteeError, match=r"what is published leaks together with the kept column hint up to ε = \d"
    ):
        sanitise(PEOPLE, ReleaseSpec(**both, epsilon=0.6))
    assert sanitise(PEOPLE, ReleaseSpec(**both, epsilon=3.0)).sealed.epsilon <= 3.0
    PEOPLE.write_csv(tmp_path / "people.csv")
    words = [
        "sanitise",
        "--prior=table",
        tmp_path / "people.csv",
        "-s",
        "job",
        "-p",
        "town",
        "--keep",
        "group",
        "-e",
        0.5,
    ]
    assert "--accept-kept keeps it unjudged" in turned_down(capsys, *words, "--into", tmp_path / "out")


@pytest.mark.parametrize("more", [{"population": 0.95}, {"average": 0.1}, {"prior": "population"}])
def test_kept_columns_are_not_judged_beyond_the_counts_of_the_table(more: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"prior": "table", "secret": "job", "publish": "town", "epsilon": 1, "keep": "coin"} | more
    with pytest.raises(ParameterError, match="Kept columns are judged together with what is published"):
        ReleaseSpec(**asked)
    assert ReleaseSpec(**asked, accept_kept=True).judged_columns == ()


def test_where_it_is_open_the_people_are_promised_nothing_beside_kept_columns() -> None:
    release = sanitise(
        PEOPLE, ReleaseSpec(prior="table", secret="job", publish="town", epsilon=1, keep="coin", population="auto")
    )
    assert release.not_for_people == "kept columns are judged on these rows only"


def test_an_unjudged_id_is_kept_and_nothing_is_promised_with_it() -> None:
    release = sanitise(
        PEOPLE, ReleaseSpec(prior="table", secret="job", publish="town", epsilon=1, keep="id", accept_kept=True)
    )
    assert release.table["id"].n_unique() == N
    assert "Kept as they are: id; the promise does not cover them" in " ".join(release.not_promised)


def test_an_audit_finds_what_was_certified_for_output_and_kept_columns(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    spec = ReleaseSpec(
        prior="table", secret="job", publish="town", epsilon=0.6, keep=["hint", "coin"], into=tmp_path / "out"
    )
    release = sanitise_file(tmp_path / "people.csv", spec)
    found = audit(
        tmp_path / "out" / "protocol.json",
        tmp_path / "people.csv",
        sanitised=tmp_path / "out" / "sanitised.csv",
        keep=["hint", "coin"],
    )
    assert found.kept is not None
    assert found.kept.epsilon == release.sealed.epsilon
    assert found.kept.combinations == 6


def test_the_order_of_the_rows_does_not_change_how_they_are_counted() -> None:
    kept = PEOPLE.select(pl.col("hint").cast(pl.String), "coin")
    counted = count_rows(S, X, kept)
    assert counted.codes is not None
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(N)
        again = count_rows(S[order], X[order], kept[order])
        assert (again.cells == counted.cells).all()
        assert (again.weights == counted.weights).all()
        assert again.codes is not None
        assert np.array_equal(again.codes, counted.codes)
