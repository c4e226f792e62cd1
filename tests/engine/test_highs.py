"""An interrupt is obeyed in the midst of a long linear programme."""

import signal
import subprocess
import sys
import time

LONG = """
import numpy as np
from privacyfunnel.engine.highs import INF, Programme

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
