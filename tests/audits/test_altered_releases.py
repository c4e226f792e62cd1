"""What was done to the files of a release, and what an audit says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from privacyfunnel.audits.draw_agreement import chi_square
from privacyfunnel.audits.output_margins import SecretTallies, bernstein
from privacyfunnel.cli import main
from privacyfunnel.mechanisms.mechanism import PooledCounts
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.release.ledger.ledger_file import ledger_path
from tests.commands import found_by, said, turned_down
from tests.mechanisms.kinds import JOINT, MAKERS, SECRETS, codes_for, sealed_of
from tests.mechanisms.test_protocol_file import redigested

METHODS = ["randomised-response", "optimal", "conditional-reporting"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight thousand people: an illness, a town that it depends on, a street in the town, and a coin."""
    rng = np.random.default_rng(8)
    n = 8000
    ill = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    town = (ill + rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])) % 4
    street = town * 40 + rng.integers(0, 40, n)
    frame = pl.DataFrame({"ill": ill, "town": town, "street": street, "coin": rng.integers(0, 2, n)})
    path = tmp_path_factory.mktemp("people") / "people.csv"
    frame.select(pl.all().cast(pl.String).str.replace("^", "v")).write_csv(path)
    return path


def released(people: Path, into: Path, *more: object, publish: str = "town", method: str = METHODS[0]) -> Path:
    words = [
        "sanitise",
        "--prior=table",
        people,
        "-s",
        "ill",
        "-p",
        publish,
        "-e",
        0.7,
        "--method",
        method,
        "--into",
        into,
    ]
    assert (
        main([str(word) for word in [*words, "--no-report", "--keep-order", "--again", "--as", "labels", *more]]) == 0
    )
    return into


@pytest.fixture(scope="module")
def out(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(people, tmp_path_factory.mktemp("out") / "out")


def audit_of(people: Path, out: Path, table: str = "public/sanitised.csv", *more: object) -> list[object]:
    return ["audit", out / "owner" / "protocol.json", people, "--sanitised", out / table, "--keep-order", *more]


def rewritten(out: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    content = json.loads((out / "owner" / "protocol.json").read_text(encoding="utf-8"))
    change(content)
    path = out / "altered.json"
    path.write_text(redigested(content), encoding="utf-8")
    return path


def columns(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


# Columns beside the published ones.


def test_a_table_that_holds_the_secret_itself_is_found_out(
    people: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns(out / "public" / "sanitised.csv").with_columns(columns(people)["ill"]).write_csv(out / "bare.csv")
    for more in ([], ["--keep", "ill"]):
        sentence = turned_down(capsys, *audit_of(people, out, "bare.csv", *more))
        assert sentence.startswith("GuaranteeError: ")
        assert "must not hold the secret; it holds 'ill' as it is" in sentence


def test_columns_that_are_neither_published_nor_kept_on_purpose_are_named(
    people: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = columns(people)
    table = columns(out / "public" / "sanitised.csv").with_columns(other["ill"].alias("notes"), other["coin"])
    table.write_csv(out / "more.csv")
    sentence = turned_down(capsys, *audit_of(people, out, "more.csv"))
    assert "'notes', 'coin' are neither" in sentence
    assert "'notes' is neither" in turned_down(capsys, *audit_of(people, out, "more.csv", "--keep", "coin"))
    assert "'notes' is not" in turned_down(capsys, *audit_of(people, out, "more.csv", "--keep", "coin,notes"))
    table.drop("notes").write_csv(out / "more.csv")
    # The protocol spends all of its ε, so that even a coin, which says a little by chance, is too much beside it.
    assert "leaks together with the kept column coin up to" in turned_down(
        capsys, *audit_of(people, out, "more.csv", "--keep", "coin")
    )


# Values permuted among rows with equal x.


def following(people: Path, out: Path, x: str, turned: bool = False) -> None:
    """The same outputs for each x, in the order of the secret; for every second x in the reverse order if `turned`."""
    frame = columns(people).with_columns(
        columns(out / "public" / "sanitised.csv").select(pl.all().alias("y")), row=pl.int_range(pl.len())
    )
    code = pl.col("ill").str.slice(1).cast(pl.Int64)
    parity = pl.col(x).str.slice(1).cast(pl.Int64) % 2
    key = pl.when(parity == 1).then(-code).otherwise(code) if turned else code
    by_secret = frame.with_columns(key=key).sort(x, "key", "row")
    by_output = frame.sort(x, "y", "row")
    moved = by_secret.with_columns(by_output["y"].alias("y")).sort("row")
    moved.select(pl.col("y").alias(x)).write_csv(out / "following.csv")


@pytest.mark.parametrize(("method", "turned"), [*((method, False) for method in METHODS), (METHODS[0], True)])
def test_outputs_that_follow_the_secret_are_found_out_though_each_value_became_what_it_should(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, turned: bool
) -> None:
    out = released(people, tmp_path / "out", method=method)
    assert found_by(capsys, *audit_of(people, out))["draw"]["follows_secret"]["p_value"] > 1e-6
    following(people, out, "town", turned)
    sentence = turned_down(capsys, *audit_of(people, out, "following.csv"))
    sees = method == "conditional-reporting"  # then the law itself says what (s, x) becomes
    assert ("must look drawn" if sees else "must not depend on ill beyond what the protocol allows") in sentence


def test_they_are_found_out_where_every_value_is_rare(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = released(people, tmp_path / "out", publish="street")
    assert found_by(capsys, *audit_of(people, out))["draw"]["follows_secret"]["p_value"] > 1e-6
    following(people, out, "street")
    assert "must not depend on ill" in turned_down(capsys, *audit_of(people, out, "following.csv"))


@pytest.mark.parametrize("kind", MAKERS)
def test_true_draws_are_called_false_no_more_often_than_stated(kind: str) -> None:
    law = sealed_of(kind).mechanism
    inputs, tally, small, runs = codes_for(law), law.tally(), 0, 60
    for seed in range(runs):
        drawn = law.draw(inputs, KeyStream.from_seed(100 + seed).rows(0, len(inputs)))
        counts = SecretTallies(tally, np.bincount(SECRETS, minlength=JOINT.c))
        counts.add(SECRETS, inputs, drawn)
        small += counts.judge(chi_square).p_value < 0.05
    assert binom.sf(small - 1, runs, 0.05) > 1e-6


def test_bernsteins_bound_holds_for_rare_outputs() -> None:
    rng = np.random.default_rng(3)
    chance = rng.uniform(0, 0.02, 300)
    draws = (rng.random((4000, 300)) < chance).sum(axis=1)
    variance = np.array([(chance * (1 - chance)).sum()])
    called = np.array([bernstein([PooledCounts(np.array([d - chance.sum()]), variance)])[0] for d in draws])
    for level in (0.1, 0.01):
        assert binom.sf((called < np.log(level)).sum() - 1, len(draws), level) > 1e-6


def test_secrets_are_counted_together_only_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = sealed_of("channel").mechanism.tally()
    monkeypatch.setattr("privacyfunnel.audits.output_margins.MOST_COUNTS", 3 * tally.size)
    assert len(SecretTallies(tally, np.array([5, 9, 1, 7, 2]))._tallies) == 3
    assert SecretTallies(tally, np.array([5, 9, 1, 7, 2]))._group.tolist() == [2, 0, 2, 1, 2]


# Another secret, a seed, a bound.


def test_the_verdict_names_the_secret_and_says_who_named_it(
    people: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    altered = rewritten(out, lambda c: (c["secret"].update(columns=["coin"]), c["certificate"].update(epsilon=0.7)))
    found = found_by(capsys, "audit", altered, people)
    assert (found["secret"], found["secret_named_by"]) == (["coin"], "the protocol file alone")
    _, told, _ = said(capsys, "audit", altered, people)
    assert "coin, as the protocol file states; name the secret column with --secret" in told
    assert told.startswith("verdict     LIP ε = 0.7 (×2.02) about coin holds\n")
    assert told.count("\n") <= 10
    assert "nats" not in told
    sentence = turned_down(capsys, "audit", altered, people, "--secret", "ill")
    assert "the protocol protects coin; --secret names ill" in sentence
    assert (
        found_by(capsys, "audit", out / "owner" / "protocol.json", people, "-s", "ill")["secret_named_by"]
        == "the auditor"
    )


@pytest.mark.parametrize(("method", "publish"), [("optimal", "town"), ("randomised-response", "town,coin")])
def test_a_seeded_release_that_says_it_is_for_publication_is_found_out(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, publish: str
) -> None:
    out = released(people, tmp_path / "out", "--seed", 42, method=method, publish=publish)
    found = found_by(capsys, *audit_of(people, out))
    assert (found["for_publication"], found["draw"]["no_guessed_seed"]) == (False, None)
    altered = rewritten(out, lambda c: c.update(for_publication=True))
    sentence = turned_down(
        capsys, "audit", altered, people, "--keep-order", "--sanitised", out / "public" / "sanitised.csv"
    )
    assert "it was drawn from a seed that anybody can guess" in sentence
    assert "42" not in sentence.replace(str(out), "")
    fresh = released(people, tmp_path / "fresh", method=method, publish=publish)
    assert found_by(capsys, *audit_of(people, fresh))["draw"]["no_guessed_seed"] is True


@pytest.mark.parametrize("order", [[], ["--keep-order"]])
def test_a_seed_is_found_out_by_whoever_does_not_know_the_order(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], order: list[str]
) -> None:
    words = [
        "sanitise",
        "--prior=table",
        people,
        "-s",
        "ill",
        "-p",
        "town",
        "-e",
        0.7,
        "--no-report",
        "--again",
        *order,
    ]
    found_by(capsys, *words, "--seed", 42, "--into", tmp_path / "out")
    altered = rewritten(tmp_path / "out", lambda c: c.update(for_publication=True))
    ledger_path(people).unlink()
    table = tmp_path / "out" / "public" / "sanitised.csv"
    sentence = turned_down(capsys, "audit", altered, people, "--sanitised", table)
    assert "it was drawn from a seed that anybody can guess" in sentence
    found_by(capsys, *words, "--into", tmp_path / "fresh")
    fresh = [
        "audit",
        tmp_path / "fresh" / "owner" / "protocol.json",
        people,
        "--sanitised",
        tmp_path / "fresh" / "public" / "sanitised.csv",
    ]
    ledger_path(people).unlink()
    draw = found_by(capsys, *fresh)["draw"]
    assert (draw["row_by_row"], draw["no_guessed_seed"]) == (False, True)


def test_a_bound_that_was_not_proved_is_found_out(
    people: Path, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claimed = rewritten(out, lambda c: c["certificate"].update(bound_nats=c["certificate"]["information_nats"]))
    assert "states that no protocol keeps more than" in turned_down(capsys, "audit", claimed, people)
    more = rewritten(out, lambda c: c["certificate"].update(information_nats=c["certificate"]["entropy_nats"]))
    assert "must state how much is kept of this table" in turned_down(capsys, "audit", more, people)
    found = found_by(capsys, "audit", out / "owner" / "protocol.json", people)["claims"]
    assert (found["information_measured"], found["bound_nats"], found["bound_confirmed"]) == (True, None, False)
    best = released(people, tmp_path / "best", "--for", "information", method="optimal")
    mean = {"information_nats": 1.3, "information_error_nats": 1e-4, "bound_nats": 1.31}  # which is not measured again
    beyond = rewritten(best, lambda c: c["certificate"].update(mean))
    assert "no protocol that keeps the promise keeps more than" in turned_down(capsys, "audit", beyond, people)
    assert found_by(capsys, "audit", best / "owner" / "protocol.json", people)["claims"]["bound_confirmed"]
    _, told, _ = said(capsys, "audit", best / "owner" / "protocol.json", people, "--details")
    assert "measured again; no protocol keeps more than" in told
    assert "proved again" in told


def test_claims_about_other_rows_are_said_to_be_unchecked(
    people: Path, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = columns(people)
    pl.concat([frame, frame.filter(pl.col("town") == "v1").head(800).with_columns(town=pl.lit("v0"))]).write_csv(
        tmp_path / "other.csv"
    )
    altered = rewritten(out, lambda c: (c["promise"].update(epsilon=9.0), c["certificate"].update(epsilon=9.0)))
    _, told, _ = said(capsys, "audit", altered, tmp_path / "other.csv", "--details")
    assert "nats are kept: stated, not checked (the file was made for other rows)" in told


def test_an_audit_tries_thousands_of_seeds() -> None:
    """In a process of its own: those of the tests try few."""
    loaded = "from privacyfunnel.audits.draw_agreement import guessable_seeds as g"
    code = f"{loaded}; print({{0, 42, 1234, 4999, 12345}} <= set(g()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
