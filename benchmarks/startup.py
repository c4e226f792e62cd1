"""How long `privacyfunnel --help` and a small release take, against an interpreter that does nothing."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from privacyfunnel.tables.readers.adult import write_adult_csv

RUNS = 10
GOALS = {"--help": 0.3, "sanitise --help": 0.3, "sanitise --no-report": 0.8, "sanitise": 2.5}  # seconds, quiet machine


def best(command: list[str]) -> tuple[float, float]:
    """The shortest of some runs: seconds, and seconds of processor, which other programs disturb less."""
    runs = []
    for _ in range(RUNS):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        runs.append((time.perf_counter() - start, usage.ru_utime + usage.ru_stime))
    return min(seconds for seconds, _ in runs), min(processor for _, processor in runs)


def main() -> None:
    """Print the table."""
    nothing, _ = best([sys.executable, "-c", "pass"])
    with tempfile.TemporaryDirectory() as folder:
        people = Path(folder) / "adult.csv"
        write_adult_csv(people)
        release = [people, "--secret", "occupation", "--publish", "education", "-e", 1, "--into", folder, "--force"]
        for name, goal in GOALS.items():
            words = [*name.split(), *([] if "help" in name else map(str, release))]
            seconds, processor = best([sys.executable, "-m", "privacyfunnel", *words])
            print(
                f"privacyfunnel {name:<22} {seconds:6.3f} s, {seconds / nothing:5.1f} × an interpreter that does "
                f"nothing   processor {processor:6.3f} s   goal {goal} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
