"""Synthetic rows by dpmm: MST, AIM or PrivBayes. Options: model, epsilon, delta."""

from typing import Any

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from harness import run_draws

PIPELINES = {"MST": MSTPipeline, "AIM": AIMPipeline, "PrivBayes": PrivBayesPipeline}


def synthesise(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> pd.DataFrame:
    rows = rows.astype("category")
    domain = {name: {"categories": sorted(rows[name].cat.categories)} for name in rows}
    pipeline = PIPELINES[options["model"]](
        epsilon=options["epsilon"], delta=options["delta"], proc_epsilon=None, n_jobs=1
    )  # all columns are categories with public labels: nothing is spent on bins
    pipeline.fit(rows, domain=domain, random_state=seed)
    return pipeline.generate(n_records=len(rows), random_state=seed + 1)


if __name__ == "__main__":
    run_draws(synthesise)
