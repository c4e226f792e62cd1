"""Experiments that are ended do not wait for what their workers have begun."""

import subprocess
import sys

from tests.commands import LONGEST

ENDED = """
import os, signal, threading, time
from functools import partial
from multiprocessing import active_children
from privacyfunnel.experiments.experiment import Experiment, run_experiments

def end():
    while not active_children():
        time.sleep(0.01)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGTERM, signal.default_int_handler)
threading.Thread(target=end, daemon=True).start()
try:
    run_experiments([Experiment("x", 1, "", "", lambda quick: [partial(time.sleep, 600)] * 3, None, {})], quick=True)
except KeyboardInterrupt:
    print("ended")
"""


def test_workers_end_with_the_process_that_is_told_to() -> None:
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True, timeout=LONGEST, check=False)
    assert done.stdout == "ended\n", done.stderr
