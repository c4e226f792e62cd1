"""All attacks, long: a line each with what was measured, and what is allowed.

`python -m tests.adversary [--rows N] [--releases N] [--seed N] [--only WORDS]`; exits with 1 if a case that must hold
is broken, or one that is known to be broken is not.
"""

import argparse
import sys
import tempfile
import time
from math import inf
from pathlib import Path

import numpy as np

from tests.adversary.attacks import Attack, Setting, Verdict
from tests.adversary.cases import CASES, FAMILY_ERROR, KNOWN_BROKEN

LINE = "{:<64} {:>8} {:>6} {:>9} {:>8} {:>8}  {:<13} {:>6}  {}"


def attack_once(attack: Attack, number: int, *, seed: int, rows: int, releases: int) -> Verdict:
    """One attack in a folder of its own, with random numbers of its own."""
    error = FAMILY_ERROR / (len(CASES) + len(KNOWN_BROKEN))
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng([seed, number])
        return attack(Setting(Path(folder), rng, rows, releases, error))


def judge(verdict: Verdict, *, known: bool) -> str:
    """One word or two."""
    if verdict.broken:
        return "known broken" if known else "BROKEN"
    if known:
        return "MENDED: move"
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
    for number, (name, attack) in enumerate([*CASES.items(), *KNOWN_BROKEN.items()]):
        if asked.only in name:
            begin, known = time.monotonic(), name in KNOWN_BROKEN
            try:
                found = attack_once(attack, number, seed=asked.seed, rows=asked.rows, releases=asked.releases)
            except Exception as error:  # one line of the table must not cost all others
                found = Verdict(0, 0, 0, inf, 0.0, f"the attack failed: {error!r}")
            word = judge(found, known=known)
            wrong += word in ("BROKEN", "MENDED: move")
            line = LINE.format(
                name[:64],
                *(found.releases, found.views, found.records, f"{found.lower:.3f}", f"{found.allowed:g}"),
                *(word, f"{time.monotonic() - begin:.1f}", (found.refusal or found.worst)[:90]),
            )
            print(line.rstrip(), flush=True)
    print("nothing is broken that is not known" if not wrong else f"{wrong} lines are not as they should be")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
