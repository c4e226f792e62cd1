"""All attacks, long: a line each with what was measured, and what is allowed.

`python -m tests.adversary [--rows N] [--releases N] [--seed N] [--only WORDS]`; exits with 1 if a case is broken.
"""

import argparse
import sys
import tempfile
import time
from math import inf
from pathlib import Path

import numpy as np

from tests.adversary.attacks import Attack, Setting, Verdict
from tests.adversary.cases import CASES, FAMILY_ERROR

LINE = "{:<64} {:>8} {:>6} {:>9} {:>8} {:>8}  {:<13} {:>6}  {}"


def attack_once(attack: Attack, number: int, *, seed: int, rows: int, releases: int) -> Verdict:
    """One attack in a folder of its own, with random numbers of its own."""
    error = FAMILY_ERROR / len(CASES)
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng([seed, number])
        return attack(Setting(Path(folder), rng, rows, releases, error))


def judge(verdict: Verdict) -> str:
    """One word."""
    if verdict.broken:
        return "BROKEN"
    return "refused" if verdict.refusal else "holds"


def main() -> int:
    """Run them all."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--only", default="", help="cases whose name has these words")
    asked = parser.parse_args()
    print(f"A false alarm in any line has a probability of at most {FAMILY_ERROR:g}; leakage in nats.")
    print(LINE.format("case", "releases", "views", "records", "leak >", "allowed", "verdict", "s", "where"))
    wrong = 0
    for number, (name, attack) in enumerate(CASES.items()):
        if asked.only in name:
            begin = time.monotonic()
            try:
                found = attack_once(attack, number, seed=asked.seed, rows=asked.rows, releases=asked.releases)
            except Exception as error:  # one line of the table must not cost all others
                found = Verdict(0, 0, 0, inf, 0.0, f"the attack failed: {error!r}")
            word = judge(found)
            wrong += found.broken
            line = LINE.format(
                name[:64],
                *(found.releases, found.views, found.records, f"{found.lower:.3f}", f"{found.allowed:g}"),
                *(word, f"{time.monotonic() - begin:.1f}", (found.refusal or found.worst)[:90]),
            )
            print(line.rstrip(), flush=True)
    print("nothing is broken" if not wrong else f"{wrong} cases are broken")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
