"""`sanitise` on a large CSV file, against polars merely reading the needed columns and writing the output columns;
and `apply` of a protocol for eight columns, whose records are real or synthetic, against polars copying these columns.

python -m benchmarks release              10⁷ rows
ROWS=100000000 python -m benchmarks release    10⁸ rows, for the peak of memory
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from privacyfunnel.tables.readers.adult import write_adult_csv

ROWS = int(os.environ.get("ROWS", "10000000"))
SECRET, PUBLISH = "occupation", "education"
RUNS = 3 if ROWS <= 10**7 else 1
GOAL, MOST_MEMORY = 1.5, 1.0
# As an installed program, which is not compiled anew every time.
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

POLARS = f"""
import sys, polars as pl
people = pl.read_csv(sys.argv[1], columns=["{PUBLISH}", "{SECRET}"], infer_schema=False)
people.select("{PUBLISH}").write_csv(sys.argv[2])
"""
WIDE = "workclass", "education", "marital-status", "relationship", "race", "sex", "native-country"
COPY = """
import sys, polars as pl
columns = sys.argv[3].split(",")
pl.read_csv(sys.argv[1], columns=columns, infer_schema=False).select(columns).write_csv(sys.argv[2])
"""


def apart(work: Callable[[Path], None], folder: Path) -> None:
    """Do the work in a process of its own: what this one ever held would count as memory of those that it starts."""
    process = get_context("spawn").Process(target=work, args=(folder,))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(process.exitcode)


def large_csv(folder: Path) -> None:
    """Adult, repeated until it has ROWS rows: people.csv."""
    write_adult_csv(folder / "adult.csv")
    header, *rows = (folder / "adult.csv").read_bytes().splitlines(keepends=True)
    whole = b"".join(rows)
    with (folder / "people.csv").open("wb") as file:
        file.write(header)
        for _ in range(ROWS // len(rows)):
            file.write(whole)
        file.write(b"".join(rows[: ROWS % len(rows)]))


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    processor: float  # seconds of all cores; other programs disturb it less
    memory: float  # gigabytes


def run(command: list[str]) -> Cost:
    """The cost of a command in a process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=COMPILED)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)


def best(command: list[str]) -> Cost:
    """The least time of some runs, and the most memory."""
    seconds, processor, memory = zip(*(run(command) for _ in range(RUNS)), strict=True)
    return Cost(min(seconds), min(processor), max(memory))


def told(what: str, cost: Cost, base: Cost) -> None:
    """Print a line."""
    print(
        f"{what:<42}{cost.seconds:7.2f} s {cost.seconds / base.seconds:5.2f} ×   processor {cost.processor:6.2f} s "
        f"{cost.processor / base.processor:5.2f} ×   {cost.memory:5.2f} GB",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people = folder / "people.csv"
        apart(large_csv, folder)
        print(f"{ROWS:,} rows, {people.stat().st_size / 1e9:.2f} GB of CSV; goals {GOAL} × and {MOST_MEMORY} GB")
        base = best([sys.executable, "-c", POLARS, str(people), str(folder / "copy.csv")])
        told("polars: read 2 columns, write 1", base, base)
        for method in ("randomised-response", "conditional-reporting", "optimal"):
            command = [sys.executable, "-m", "privacyfunnel", "sanitise", str(people), "--no-report"]
            command += ["--secret", SECRET, "--publish", PUBLISH, "--epsilon", "1", "--method", method]
            command += ["--ledger", str(folder / f"{method}.ledger"), "--into", str(folder / method), "--force"]
            told(f"sanitise --method {method}", best(command), base)
        eight_columns(folder, people)


def eight_columns(folder: Path, people: Path) -> None:
    """Rows of eight columns drawn by a protocol that was designed before, on the table that is repeated."""
    program = [sys.executable, "-m", "privacyfunnel"]
    for secret, other in (("income", "occupation"), ("occupation", "income")):
        columns, ledger = ",".join((*WIDE, other)), ["--ledger", str(folder / f"{secret}.ledger")]
        base = best([sys.executable, "-c", COPY, str(people), str(folder / "copy.csv"), columns])
        told(f"polars: copy {len(WIDE) + 1} columns", base, base)
        protocol, into = str(folder / f"{secret}.json"), str(folder / f"{secret}.csv")
        asked = ["--secret", secret, "--publish", columns, "--public-labels", f"{secret},{columns}", "-e", "1"]
        run([*program, "design", str(folder / "adult.csv"), *asked, "--into", protocol, *ledger])
        command = [*program, "apply", protocol, str(people), "--into", into, "--force", "--again", *ledger]
        told(f"apply, real or synthetic, {secret} secret", best(command), base)


if __name__ == "__main__":
    main()
