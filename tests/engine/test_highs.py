"""An interrupt is obeyed in the midst of a long linear programme, also where the solver calls nobody back."""

import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from privacyfunnel.engine.lp import highs
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.settings import SETTINGS

LONG = """
import numpy as np
from privacyfunnel.engine.lp.highs import INF, Programme

random, rows, columns = np.random.default_rng(0), 900, 1800
A = random.random((columns, rows)) * (random.random((columns, rows)) < 0.5)
column, row = np.nonzero(A)
programme = Programme()
programme.add_rows(1 + random.random(rows), np.full(rows, INF))
starts = np.searchsorted(column, np.arange(columns))
programme.add_columns(A.sum(axis=1) + 5 * random.random(columns), starts, row, A[column, row])
try:
    print("solving", flush=True)
    programme.run()
except KeyboardInterrupt:
    print("interrupted", programme.status)
"""


def test_an_interrupt_ends_a_programme_before_it_is_solved() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "solving\n"
        time.sleep(0.5)  # until it is in the midst of it
        child.send_signal(signal.SIGINT)
        said = child.stdout.read()
    assert said.startswith("interrupted")
    assert "kOptimal" not in said


def test_an_interrupt_does_not_wait_for_a_solver_that_calls_nobody_back() -> None:
    presolved, abandoned, solved = threading.Event(), threading.Event(), threading.Event()

    def solve() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        presolved.wait()
        solved.set()

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)  # as Ctrl-C is answered
    try:
        with pytest.raises(KeyboardInterrupt):
            highs._run_in_thread(solve, abandoned)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not solved.is_set()
    assert abandoned.is_set()  # so that the solver ends when it next looks up
    presolved.set()


def test_a_solver_for_which_nobody_waits_is_told_to_end() -> None:
    abandoned, answer = threading.Event(), SimpleNamespace(user_interrupt=False)
    highs._stop_if_abandoned(None, None, None, answer, abandoned)
    assert not answer.user_interrupt
    abandoned.set()
    highs._stop_if_abandoned(None, None, None, answer, abandoned)
    assert answer.user_interrupt


def test_what_fails_in_the_thread_of_a_solver_fails_here() -> None:
    def solve() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        highs._run_in_thread(solve, threading.Event())


@pytest.mark.parametrize("large", [False, True])
def test_a_large_programme_has_a_thread_of_its_own_and_the_same_answer(
    large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    monkeypatch.setitem(vars(SETTINGS.lp), "large", 3 if large else 4)
    monkeypatch.setattr(
        highs, "_stop_if_abandoned", lambda *_: threads.append(threading.current_thread() is threading.main_thread())
    )
    programme = Programme()
    programme.add_rows(np.array([1.0, 2.0]), np.array([INF, INF]))
    entries = np.array([1.0, 1.0, 0.0, 2.0])
    programme.add_columns(np.array([1.0, 3.0]), np.array([0, 2]), np.array([0, 1, 0, 1]), entries)
    assert programme.run()
    assert programme.solution.tolist() == [2.0, 0.0]
    assert threads
    assert not any(threads) if large else all(threads)
