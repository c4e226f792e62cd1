"""What every script does around its rival: read a table, draw once for each seed, write the draws and their cost."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd


def peak_memory() -> float:
    """The most memory that this process has had, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def run_draws(draw: Callable[[pd.DataFrame, dict[str, Any], int], Any]) -> None:
    """Call draw(rows, options, seed) for every output that is asked for; it gives a frame, and facts if it has some.

    Arguments of the script: table, {"options": …, "outputs": {seed: path}}. Beside every output is written what it
    took: processor seconds of this draw alone, and the largest memory of the process so far.
    """
    rows = pd.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
    asked = json.loads(sys.argv[2])
    for seed, path in asked["outputs"].items():
        start = time.process_time()
        found = draw(rows.copy(), asked["options"], int(seed))
        frame, facts = found if isinstance(found, tuple) else (found, {})
        seconds = time.process_time() - start
        frame.to_csv(path, index=False)
        Path(path).with_suffix(".json").write_text(json.dumps({"seconds": seconds, "memory": peak_memory(), **facts}))
