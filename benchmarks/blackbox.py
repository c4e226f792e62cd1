"""The program judged from outside, method by method: what both tests are sure of, and how small a leak they find.

Only the command is run and only what it publishes is looked at (`privacyfunnel audit --draws` does the same for one
release). For each method the census data are drawn some times over; then the same rows are made to tell their secret
by lot, in the given share of rows, as a faulty build would.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from privacyfunnel import SealedProtocol
from privacyfunnel.audits.black_box_audit import (
    FALSE_ALARM,
    PublishedRows,
    Verdict,
    compared_events,
    draw_black_box,
    judge_rows,
)
from privacyfunnel.tables.readers.adult import write_adult_csv

DRAWS = 300_000
LEAKS = (0.0, 0.01, 0.02, 0.05, 0.1)
RELEASES = (
    # method, promise, ε, secret, publish
    ("optimal", "lip", 0.5, "occupation", "education"),
    ("randomised-response", "lip", 0.5, "occupation", "education"),
    ("randomised-response", "ldp", 1.0, "sex", "education"),
    ("conditional-reporting", "lip", 0.5, "occupation", "education"),
    ("optimal", "lip", 0.5, "occupation", "race,sex"),
)


def leaking(rows: PublishedRows, values: int, share: float, lot: np.random.Generator) -> PublishedRows:
    """The same rows, some of which show an output that their secret alone decides."""
    outputs = np.unique(rows.shown, axis=0)
    told = lot.random(len(rows.inputs)) < share
    shown = np.where(told[:, None], outputs[(rows.inputs // values) % len(outputs)], rows.shown)
    return PublishedRows(rows.inputs, shown, rows.place)


def shown(verdict: Verdict) -> str:
    """What a test is sure of, marked where that breaks the promise."""
    return f"{verdict.epsilon_lower_bound:.3f}{'!' if verdict.rejects else ' '}"


def main() -> None:
    """Print the table."""
    lot = np.random.default_rng(1)
    print(f"{DRAWS:,} rows or more each; each test rejects an honest build with a chance of at most {FALSE_ALARM:g}")
    with tempfile.TemporaryDirectory() as folder:
        people = Path(folder) / "adult.csv"
        write_adult_csv(people)
        for number, (method, promise, epsilon, secret, publish) in enumerate(RELEASES):
            into = Path(folder) / str(number)
            words = ["--secret", secret, "--publish", publish, "--epsilon", str(epsilon), "--promise", promise]
            command = [sys.executable, "-m", "privacyfunnel", "sanitise", str(people), *words, "--method", method]
            made = subprocess.run(
                [*command, "--into", str(into), "--no-report", "--json"], check=True, capture_output=True, text=True
            )
            sealed = SealedProtocol.load(into / "owner" / "protocol.json")
            begun = time.process_time()
            joint, rows = draw_black_box(sealed, people, DRAWS, method=method, lot=lot)
            blocks = list(compared_events(sealed, joint))
            found = [
                judge_rows(leaking(rows, joint.a, leak, lot), blocks, sealed.promise.epsilon, lot) for leak in LEAKS
            ]
            line = "  ".join(
                f"{leak:.0%} {shown(one)}/{shown(other)}" for leak, (one, other) in zip(LEAKS, found, strict=True)
            )
            seconds = time.process_time() - begun
            certified = json.loads(made.stdout)["certified"]
            print(f"{method:<22} {promise:<5} ε = {certified:.3f}   {line}   {seconds:.1f} s", flush=True)
    print("leak: what intervals / classifier are sure of; ! where the promise is called broken")


if __name__ == "__main__":
    main()
