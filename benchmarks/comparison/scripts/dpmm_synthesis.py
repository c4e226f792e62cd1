"""Synthetic rows by dpmm: MST, AIM or PrivBayes. Arguments: table, output, {"model", "epsilon", "delta", "seed"}."""

import json
import sys

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

PIPELINES = {"MST": MSTPipeline, "AIM": AIMPipeline, "PrivBayes": PrivBayesPipeline}


def main(table: str, output: str, options: str) -> None:
    asked = json.loads(options)
    rows = pd.read_csv(table, dtype=str, keep_default_na=False).astype("category")
    domain = {name: {"categories": sorted(rows[name].cat.categories)} for name in rows}
    pipeline = PIPELINES[asked["model"]](
        epsilon=asked["epsilon"], delta=asked["delta"], proc_epsilon=None, n_jobs=1
    )  # all columns are categories with public labels: nothing is spent on bins
    pipeline.fit(rows, domain=domain, random_state=asked["seed"])
    pipeline.generate(n_records=len(rows), random_state=asked["seed"] + 1).to_csv(output, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
