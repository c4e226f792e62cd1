"""Optimised unary encoding by multi-freq-ldpy. Options: labels, epsilons (of every column). Bits have no seed.

Every person answers about one column, drawn at random, as in the library's SMP solution. The output has the column and
the bits of every row of the table; the facts have the estimated shares.
"""

from typing import Any

import numpy as np
import pandas as pd
from harness import run_draws
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client


def answer(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    names = list(options["labels"])
    asked = np.random.default_rng(seed).integers(0, len(names), len(rows))
    bits, shares = np.empty(len(rows), dtype=object), {}
    for j, name in enumerate(names):
        labels, epsilon = options["labels"][name], options["epsilons"][name]
        place = {label: i for i, label in enumerate(labels)}
        people = np.flatnonzero(asked == j)
        values = rows[name].to_numpy()[people]
        reports = [UE_Client(place[value], len(labels), epsilon, True) for value in values]
        bits[people] = ["".join("1" if bit else "0" for bit in report) for report in reports]
        shares[name] = UE_Aggregator_MI(reports, epsilon, True).tolist()
    return pd.DataFrame({"column": np.array(names)[asked], "bits": bits}), {
        "shares": shares,
        "epsilons": options["epsilons"],
    }


if __name__ == "__main__":
    run_draws(answer)
