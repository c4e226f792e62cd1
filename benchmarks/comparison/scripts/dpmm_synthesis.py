"""Synthetic rows by dpmm: MST, AIM or PrivBayes. Options: model, epsilon, delta, rho, steps.

`rho` is the part of MST's ρ that is spent, 1 for all; `steps` is how many steps of mirror descent a fit may take.
"""

from typing import Any

import pandas as pd
from dpmm.models.base.mbi import FactoredInference
from dpmm.models.base.mechanisms.cdp2adp import cdp_eps, cdp_rho
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from harness import run_draws

PIPELINES = {"MST": MSTPipeline, "AIM": AIMPipeline, "PrivBayes": PrivBayesPipeline}


def synthesise(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> pd.DataFrame:
    rows = rows.astype("category")
    domain = {name: {"categories": sorted(rows[name].cat.categories)} for name in rows}
    epsilon, delta = options["epsilon"], options["delta"]
    if options["rho"] != 1:
        epsilon = cdp_eps(options["rho"] * cdp_rho(epsilon, delta), delta)
    FactoredInference.mirror_descent = limit_steps(options["steps"])
    pipeline = PIPELINES[options["model"]](
        epsilon=epsilon, delta=delta, proc_epsilon=None, n_jobs=1
    )  # all columns are categories with public labels: nothing is spent on bins
    pipeline.fit(rows, domain=domain, random_state=seed)
    return pipeline.generate(n_records=len(rows), random_state=seed + 1)


def limit_steps(steps: int) -> Any:
    def descend(self: Any, *measured: Any, **how: Any) -> Any:
        self.iters = min(self.iters, steps)
        return DESCENT(self, *measured, **how)

    return descend


DESCENT = FactoredInference.mirror_descent

if __name__ == "__main__":
    run_draws(synthesise)
