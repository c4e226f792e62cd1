"""Small files that ask for much: refused in a sentence, in a process that may not take much memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import LDP, LIP, Joint, Protocol
from privacyfunnel.errors import SizeError
from privacyfunnel.mechanisms import exact_arithmetic, protocol_file
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import exact_worst_leak
from tests.mechanisms.kinds import sealed_of
from tests.mechanisms.test_protocol_file import redigested

ADDRESSES = 6 << 30  # bytes that the process may reserve; each file asked for 8 GB or more, or was measured at 1.4
RESIDENT = 900_000  # kB that it may use; numpy, polars and a refusal take some 200,000
MANY = 20_000
BEGUN = {"privacyfunnel": "0", "python": "3"}


def content_with(law: Any, labels: list[str], **changed: Any) -> str:
    """A protocol file of one column with that law."""
    content: dict[str, Any] = {
        "format": protocol_file.FORMAT,
        "version": 1,
        "made_with": BEGUN,
        "promise": {"name": "LIP", "epsilon": 1.0},
        "certificate": {"epsilon": 1.0, "information_nats": 0.0, "entropy_nats": 1.0, "bound_nats": None},
        "secret": {"columns": ["s"], "labels": []},
        "publish": [{"column": "x", "labels": labels, "bins": None}],
        "combinations": None,
        "for_publication": True,
        "sees_secret": False,
        "kind": "channel",
        "law": law,
        "induced": None,
    }
    return redigested({**content, **changed})


def identity(n: int) -> dict[str, Any]:
    rows = [[[x, str(1 << 64)]] for x in range(n)]
    return {"outputs": [[f"v{x}"] for x in range(n)], "bits": 64, "rows": rows}


def channel() -> str:
    return content_with(identity(MANY), [f"v{x}" for x in range(MANY)])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every value of x with both values of s, so that x says nothing about s; and a secret of its own in every row."""
    path = tmp_path_factory.mktemp("many") / "many.csv"
    rows = np.arange(2 * MANY)
    some = {f"x{j}": [f"v{i}" for i in rows % 6000] for j in range(4)}
    columns = {"s": rows % 2, "x": [f"v{i}" for i in rows // 2], "own": [f"s{i}" for i in rows % MANY], "few": rows % 3}
    frame = pl.DataFrame({**columns, **some})
    frame.write_csv(path)
    frame.select("x").write_csv(path.with_name("x.csv"))
    return path


LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv = ["privacyfunnel", *sys.argv[2:]]
runpy.run_module("privacyfunnel", run_name="__main__")
"""

# Started by a small process of its own: until it is replaced, a child counts with the memory of its parent.
MEASURED = """
import os, subprocess, sys
process = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def frugal(*words: object) -> tuple[int, str, int]:
    """The command in a process that may not reserve much: its exit code, its sentence, and kB it used at most."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, LIMITED, str(ADDRESSES), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return done.returncode, done.stderr, int(done.stdout)


Words = Callable[[Path, Path], list[object]]


def audited(protocol: Path, table: Path) -> list[object]:
    return ["audit", protocol, table, "--sanitised", table.with_name("x.csv")]


def estimated(protocol: Path, table: Path) -> list[object]:
    return ["estimate", protocol, table]


def sanitised(_: Path, table: Path) -> list[object]:
    return [
        *("sanitise", "--prior=table", table, "-s", "own", "-p", "few", "-e", 1, "--promise", "ldp"),
        *("--method", "randomised-response", "--no-report", "--into", table.parent / "out"),
    ]


FILES: dict[str, tuple[Callable[[], str], Words, str]] = {
    "an identity, estimated": (channel, estimated, "channels of at most"),
    "an identity, audited": (channel, audited, "has at most"),
    "LDP for many secrets, audited": (
        lambda: content_with(
            {"outputs": [["a"]], "bits": 64, "rows": [[[0, str(1 << 64)]]] * 3},
            ["0", "1", "2"],
            promise={"name": "LDP", "epsilon": 1.0},
            secret={"columns": ["own"], "labels": []},
            publish=[{"column": "few", "labels": ["0", "1", "2"], "bins": None}],
        ),
        lambda protocol, table: ["audit", protocol, table],
        "A promise compares at most",
    ),
    "LDP for many secrets, sanitised": (channel, sanitised, "A promise compares at most"),
}


@pytest.mark.parametrize("what", FILES)
def test_what_asks_for_much_is_refused_before_it_gets_it(what: str, table: Path, tmp_path: Path) -> None:
    make, words, part = FILES[what]
    path = tmp_path / "protocol.json"
    path.write_text(make(), encoding="utf-8")
    code, sentence, used = frugal(*words(path, table))
    assert (code, sentence.count("\n")) == (2, 1), sentence
    assert part in sentence
    assert used < RESIDENT, f"{used:,} kB"


def test_a_file_too_long_to_be_read_is_not(tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    with path.open("wb") as hollow:
        hollow.truncate(8 << 30)
    code, sentence, used = frugal("estimate", path, path)
    assert code == 2
    assert "must have at most 67,108,864 bytes" in sentence
    assert used < RESIDENT


def test_what_nobody_could_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_file, "MOST_BYTES", 1000)
    with pytest.raises(SizeError, match="at most 1,000 bytes"):
        sealed_of("optimum").to_text()


@pytest.mark.parametrize("promise", [LIP(1), LDP(1)])
def test_the_exact_check_is_the_same_some_at_a_time(promise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    joint = Joint.from_counts(rng.integers(1, 50, (6, 7)))
    chances = rng.dirichlet(np.ones(9), size=7)
    law = ChannelMechanism.from_protocol(Protocol(chances))
    whole = exact_worst_leak(law, promise, joint)
    for at_once in (1, 5, 20):
        monkeypatch.setattr(exact_arithmetic, "WORKED_ON", at_once)
        monkeypatch.setattr("privacyfunnel.mechanisms.channel.WORKED_ON", at_once)
        again = exact_worst_leak(law, promise, joint)
        assert (again.ratio, again.leak) == (whole.ratio, whole.leak)
