"""The program judged from outside: honest builds are accepted, and one with a leak of five percent is not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from privacyfunnel import LDP, LIP, Joint
from privacyfunnel.audits import black_box_audit
from privacyfunnel.audits.black_box_audit import PublishedRows, judge_rows, lower_end, upper_end
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.model.promises import Promise
from tests.commands import refused, run, told

JOINT = Joint.from_counts([[60, 25, 10, 5], [5, 10, 25, 60]])
LEAK = 0.05
DRAWS = 300_000


def rows_of(
    promise: Promise, n: int, rng: np.random.Generator, leak: float = 0.0, *, sorted_by_secret: bool = False
) -> PublishedRows:
    """Rows of the least private protocol that keeps the promise, some of them telling their secret."""
    q = randomised_response(JOINT, promise).channel
    inputs = rng.choice(JOINT.c * JOINT.a, size=n, p=JOINT.p_sx.reshape(-1))
    s, x = np.divmod(inputs, JOINT.a)
    y = (rng.random(n)[:, None] > np.cumsum(q, axis=1)[x]).sum(axis=1)
    y = np.where(rng.random(n) < leak, 3 * s, np.minimum(y, 3))
    place = rng.permutation(n)
    if sorted_by_secret:
        place[np.argsort(s, kind="stable")] = np.arange(n)
    return PublishedRows(inputs, y[:, None], place)


@pytest.mark.parametrize("promise", [LIP(0.3), LDP(1)])
def test_both_tests_accept_the_least_private_honest_rows_and_reject_a_leak_of_five_percent(promise: Promise) -> None:
    rng = np.random.default_rng(6)
    for leak in (0.0, LEAK):
        rows = rows_of(promise, DRAWS, rng, leak)
        found = judge_rows(rows, promise.comparisons(JOINT, True), promise.epsilon, rng)
        assert [verdict.rejects for verdict in found] == [bool(leak)] * 2


def test_the_classifier_finds_an_order_that_tells_and_what_is_spread_over_columns() -> None:
    rng = np.random.default_rng(7)
    sorted_rows = rows_of(LDP(1), 20_000, rng, sorted_by_secret=True)
    intervals, classifier = judge_rows(sorted_rows, LDP(1).comparisons(JOINT, True), 1.0, rng)
    assert (intervals.rejects, classifier.rejects) == (False, True)
    # Thirty columns that say a little each: no output occurs twice, and none of the columns breaks the promise.
    inputs = rng.integers(0, 8, 20_000)
    many = (rng.random((20_000, 30)) < np.where(inputs < 4, 0.4, 0.6)[:, None]).astype(np.int64)
    spread = PublishedRows(inputs, many, rng.permutation(20_000))
    intervals, classifier = judge_rows(spread, LDP(1).comparisons(JOINT, True), 1.0, rng)
    assert (intervals.rejects, classifier.rejects) == (False, True)


def test_honest_rows_are_rejected_no_more_often_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(black_box_audit, "FALSE_ALARM", 0.1)
    rng, runs = np.random.default_rng(8), 60
    found = [judge_rows(rows_of(LDP(1), 4000, rng), LDP(1).comparisons(JOINT, True), 1.0, rng) for _ in range(runs)]
    for verdicts in zip(*found, strict=True):
        assert binom.sf(sum(verdict.rejects for verdict in verdicts) - 1, runs, 0.1) > 1e-6


def test_the_intervals_are_those_of_clopper_and_pearson() -> None:
    n = 40
    k = np.arange(n + 1, dtype=np.float64)
    low, high = lower_end(k, n, 0.01), upper_end(k, n, 0.01)
    np.testing.assert_allclose(binom.sf(k[1:] - 1, n, low[1:]), 0.01, rtol=1e-6)
    np.testing.assert_allclose(binom.cdf(k[:-1], n, high[:-1]), 0.01, rtol=1e-6)
    assert (low[0], high[-1]) == (0, 1)


# Through the command: the table is drawn by real processes.

PLANTED = f"""
import sys
if "sanitise" in sys.orig_argv:
    import numpy as np, polars as pl
    from privacyfunnel.tables.writers import table_writer as writing
    table = pl.read_parquet(sys.orig_argv[sys.orig_argv.index("sanitise") + 1]).sort("row")
    tells = table.select(pl.when(pl.col("ill") == "yes").then(pl.lit("a")).otherwise(pl.lit("d"))).to_series()
    honest = writing.write_batches
    def leaking(path, suffix, batches, **more):
        def with_leak(rows):
            told = pl.Series(np.random.default_rng().random(len(rows)) < {LEAK})
            return rows.with_columns(town=pl.when(told).then(tells.gather(rows["row"])).otherwise(rows["town"]))
        return honest(path, suffix, map(with_leak, batches), **more)
    writing.write_batches = leaking
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table in no order, and a release of it."""
    folder = tmp_path_factory.mktemp("build")
    s, x = np.divmod(np.repeat(np.arange(8), JOINT.weights.reshape(-1) * 20), 4)
    frame = pl.DataFrame({"ill": np.array(["yes", "no"])[s], "town": np.array(list("abcd"))[x]})
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_csv(folder / "people.csv")
    words = ["--secret", "ill", "--publish", "town", "--epsilon", 1, "--promise", "ldp", "--into", folder / "out"]
    told("sanitise", "--prior=table", folder / "people.csv", *words, "--method", "randomised-response", "--no-report")
    return folder / "out" / "owner" / "protocol.json", folder / "people.csv"


def test_an_honest_build_is_accepted_from_outside(files: tuple[Path, Path]) -> None:
    found = told("audit", *files, "--secret", "ill", "--draws", DRAWS)["draws"]
    assert found["rows"] >= DRAWS
    assert found["promised"] == 1
    assert 0.7 < found["intervals"]["sure_of"] < 1
    assert 0.7 < found["classifier"]["sure_of"] < 1


def test_a_build_with_a_leak_of_five_percent_is_rejected_from_outside(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    words = ["audit", *files, "--secret", "ill", "--draws", DRAWS]
    refused(words, "GuaranteeError", "LDP ε = 1 must hold for what sanitise publishes; intervals and a classifier of")


def test_a_build_that_does_not_run_is_not_called_honest(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text('import sys\nif "sanitise" in sys.orig_argv: raise SystemExit("gone")\n')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    done = run("audit", *files, "--draws", 10)
    assert done.returncode == 1
    assert "sanitise must run to be judged from outside" in done.stderr
