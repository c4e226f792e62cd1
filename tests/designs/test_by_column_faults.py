"""Faults that releases of several columns once had, each found by an attack: none of them comes back unnoticed."""

import csv
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel.cli import text_format
from privacyfunnel.designs.chain import step_order
from privacyfunnel.designs.chain.step_order import chain_protocol
from privacyfunnel.engine.lp.batched_simplex import Programmes, solve
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.spec import ReleaseSpec
from tests.commands import LONGEST, found_by, refused, run, several

# Linear programmes whose basis rounding has made singular.


def test_one_singular_basis_leaves_the_other_programmes_their_answers() -> None:
    # min c·x with x_0 + x_1 + x_2 = 1, x_0 − x_1 = x_3 and 0 ≤ x ≤ 2, −1 ≤ x_3 ≤ 1, for five costs
    matrix = np.array([[[1.0, 1.0, 1.0, 0.0], [1.0, -1.0, 0.0, -1.0]]])
    costs = np.array([[c, 1.0, 2.0, 0.0] for c in (0.5, 0.7, 0.9, 1.5, 3.0)])
    low, high = np.tile([0.0, 0.0, 0.0, -1.0], (5, 1)), np.tile([2.0, 2.0, 2.0, 1.0], (5, 1))
    good = np.tile([0, 3], (5, 1))
    bad = good.copy()
    bad[2] = [2, 2]  # the same column twice

    def solved(basis: Any) -> Any:
        which = np.zeros(5, dtype=np.int64)
        return solve(Programmes(matrix, np.array([[1.0, 0.0]]), costs, low, high, basis, which))

    whole, answers = solved(good), solved(bad)
    assert whole.optimal.all()
    assert answers.optimal.tolist() == [True, True, False, True, True]
    others = [0, 1, 3, 4]
    np.testing.assert_allclose(answers.x[others], whole.x[others])
    np.testing.assert_allclose(answers.x[0], [1, 0, 0, 1], atol=1e-12)


@pytest.mark.parametrize(
    ("first", "rows", "publish"),
    [
        (399, 20, ["relationship", "race", "education"]),
        (588, 40, ["workclass", "education"]),
        (2702, 40, ["relationship", "workclass", "race"]),
    ],
)
def test_small_tables_whose_bases_became_singular_are_released(
    adult: Path, first: int, rows: int, publish: list[str]
) -> None:
    people = pl.read_csv(adult)
    few = people.gather_every(people.height // rows, first).head(rows)
    joint = Joint.from_table(few, secret="occupation", publish=publish)
    chain = chain_protocol(joint, LIP(0.2), order=publish, first=1.0)
    sealed = chain.seal()
    assert 0 < sealed.epsilon <= 0.2
    assert sealed.information > 0


# Labels.


def test_outputs_of_a_chain_differ_although_a_value_is_called_like_one_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two outputs may both stand for a, then b; the second would be called like the third value."""
    counts = {("a", 0): 600, ("a", 1): 400, ("b", 0): 12, ("b", 1): 212, ("a | b #2", 0): 500, ("a | b #2", 1): 500}
    table = tmp_path / "table.csv"
    people = [[s, x, "uv"[i % 2]] for (x, s), n in counts.items() for i in range(n)]
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["S", "X", "Y"], *people])
    into = tmp_path / "out"
    chosen = ["--method", "chain", "--order", "X,Y", "--seed", 3]
    found_by(capsys, *several(table, into, "X,Y", *chosen, secret="S", epsilon=0.1))
    content = json.loads((into / "owner" / "protocol.json").read_text(encoding="utf-8"))
    assert "a | b" in content["law"]["columns"][0]
    for line in itertools.chain.from_iterable(step["contexts"] for step in content["law"]["steps"]):
        labels = line.split(" ")[1].split(",")
        assert len(set(labels)) == len(labels)
    drawn = into / "public" / "sanitised.csv"
    assert found_by(capsys, "audit", into / "owner" / "protocol.json", table, "--sanitised", drawn)["draw"][
        "consistent"
    ]
    told = found_by(capsys, "estimate", into / "owner" / "protocol.json", drawn, "--columns", "X", "--level", 0.9999)
    truth = Counter(x for _, x, _ in people)
    for cell in told["tables"][0]["cells"]:
        (label,) = cell["labels"]
        assert cell["lower"] <= truth[label] / len(people) <= cell["upper"]


# Sizes and times.


@pytest.mark.parametrize("promise", ["lip", "ldp"])
@pytest.mark.parametrize("epsilon", ["20", "30", "700", "1e300"])
def test_a_chain_under_a_large_epsilon_keeps_nearly_everything(
    some: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], epsilon: str, promise: str
) -> None:
    chosen = ["--method", "chain", "--order", "relationship,race,sex", "--promise", promise]
    found = found_by(capsys, *several(some, tmp_path / "out", "relationship,race,sex", *chosen, epsilon=epsilon))
    assert found["share_kept"] > 0.95
    assert found["certified"] <= float(epsilon)


MOST = "workclass,education,marital-status,relationship,race"


@pytest.mark.parametrize(
    ("publish", "more", "parts"),
    [
        (MOST, ["--promise", "srlip", "--method", "optimal"], ["2,500", "42,729", "2,693 combinations", "chain"]),
        (MOST, ["--promise", "srlip"], ["2,693", "fewer columns", "coarser bins"]),
    ],
)
def test_what_would_take_hours_is_refused_with_its_size_and_what_to_do(
    adult: Path, tmp_path: Path, publish: str, more: list[str], parts: list[str]
) -> None:
    into = tmp_path / "out"
    refused(several(adult, into, publish, *more), "SizeError", *parts)
    assert not into.exists()


def test_a_time_limit_is_handed_to_the_search_for_a_chain(
    some: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    search = step_order.chain_protocol

    def noted(*words: Any, seconds: float, **more: Any) -> Any:
        given.append(seconds)
        return search(*words, seconds=seconds, **more)

    monkeypatch.setattr(step_order, "chain_protocol", noted)
    chosen = ["--method", "chain", "--time-limit", 0.75]
    found_by(capsys, *several(some, tmp_path / "out", "race,sex", *chosen, secret="income", epsilon=0.5))
    assert given[0] == 0.75


# Workers of a chain whose parent is gone.


def workers_of(parent: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()]


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or (os.cpu_count() or 1) < 2, reason="needs /proc and more than one core"
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_only_their_parent_is_killed_and_nothing_is_left(
    adult: Path, tmp_path: Path, number: signal.Signals
) -> None:
    publish = "education,workclass,relationship,marital-status,race,sex"
    into = tmp_path / "out"
    command = [*several(adult, into, publish, "--method", "chain", "--order", publish)]
    with subprocess.Popen(
        [sys.executable, "-m", "privacyfunnel", *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as parent:
        workers: list[int] = []
        try:
            deadline = time.monotonic() + LONGEST
            while not workers and parent.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
                workers = workers_of(parent.pid) if parent.poll() is None else []
            assert workers, "no worker was started"
            parent.send_signal(number)
            parent.wait(LONGEST)
            deadline = time.monotonic() + LONGEST
            while any(map(alive, workers)) and time.monotonic() < deadline:
                time.sleep(0.1)
            assert not [worker for worker in workers if alive(worker)]
        finally:
            for process in (parent.pid, *workers):
                if alive(process):
                    os.kill(process, signal.SIGKILL)
    assert not into.exists() or not list(into.iterdir())


# Words.


def test_an_epsilon_just_below_a_power_of_ten_is_never_written_as_less() -> None:
    assert text_format.format_epsilon(9.9991e-7) == "1e-06"
    assert text_format.format_epsilon(9.999e-7) == "9.999e-07"
    assert text_format.format_epsilon(9.99e-7) == "9.99e-07"
    assert float(text_format.format_epsilon(9.9901e-5)) >= 9.9901e-5


def test_a_method_that_does_not_exist_is_answered_with_all_that_do(some: Path, tmp_path: Path) -> None:
    done = run(*several(some, tmp_path / "out", "race,sex", "--method", "autp"))
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("auto", "optimal", "chain"))
    with pytest.raises(ParameterError, match=r"one of auto, .*none called 'autp'.*Did you mean 'auto'\?"):
        ReleaseSpec(prior="table", secret="occupation", publish=("race", "sex"), promise=LIP(1), method="autp")
