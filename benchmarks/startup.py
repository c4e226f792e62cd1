"""How long `privacyfunnel --help` takes to start, against an interpreter that does nothing."""

import os
import subprocess
import sys
import time

RUNS = 10
GOAL = 0.3


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
    for name in ("--help", "sanitise --help"):
        seconds, processor = best([sys.executable, "-m", "privacyfunnel", *name.split()])
        print(
            f"privacyfunnel {name:<16} {seconds:6.3f} s, {seconds / nothing:4.1f} × an interpreter that does nothing"
            f"   processor {processor:6.3f} s   goal {GOAL} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
