"""One-way tables of all columns by OpenDP, with Laplace noise for ε together. Options: epsilon, labels. No seed."""

from typing import Any

import opendp.prelude as dp
import pandas as pd
from harness import run_draws


def count(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> pd.DataFrame:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    found = []
    for name, labels in options["labels"].items():
        counts = dp.t.make_count_by_categories(*space, categories=labels, MO="L1Distance<i32>", null_category=False)
        noisy = counts >> dp.m.then_laplace(scale=len(options["labels"]) / options["epsilon"])
        assert noisy.map(1) <= options["epsilon"] / len(options["labels"]) * (1 + 1e-9)
        found += [(name, *cell) for cell in zip(labels, noisy(rows[name].tolist()), strict=True)]
    return pd.DataFrame(found, columns=["column", "label", "count"])


if __name__ == "__main__":
    run_draws(count)
