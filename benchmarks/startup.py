"""How long `privacyfunnel --help` takes to start, against an interpreter that does nothing."""

import subprocess
import sys
import time

RUNS = 10
GOAL = 0.3


def best(command: list[str]) -> float:
    """The shortest of some runs, in seconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the table."""
    nothing = best([sys.executable, "-c", "pass"])
    for name, words in [("--help", ["--help"]), ("sanitise --help", ["sanitise", "--help"])]:
        seconds = best([sys.executable, "-m", "privacyfunnel", *words])
        print(
            f"privacyfunnel {name:<18} {seconds:.3f} s   {seconds / nothing:.0f} × an interpreter that does nothing"
            f"   goal {GOAL} s   {'reached' if seconds < GOAL else 'missed'}"
        )


if __name__ == "__main__":
    main()
