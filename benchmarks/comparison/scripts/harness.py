"""What every script does around its rival: read a table, draw once for each seed, write the draws and their cost."""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd


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
        seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        frame.to_csv(path, index=False)
        Path(path).with_suffix(".json").write_text(json.dumps({"seconds": seconds, "megabytes": peak, **facts}))
