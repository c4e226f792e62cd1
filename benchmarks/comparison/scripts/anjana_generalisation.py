"""Generalised rows by ANJANA. Options: model, level, secret, hierarchies, suppress.

The output has the column `row_number`, by which its rows are linked with those of the table; rows that are missing were
suppressed.
"""

from typing import Any

import numpy as np
import pandas as pd
from anjana.anonymity import basic_beta_likeness, delta_disclosure, l_diversity, t_closeness
from harness import run_draws

MODELS = {
    "delta-disclosure": (delta_disclosure, "delta"),
    "beta-likeness": (basic_beta_likeness, "beta"),
    "t-closeness": (t_closeness, "t"),
    "l-diversity": (l_diversity, "l_div"),
}


def generalise(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> pd.DataFrame:
    published = [name for name in rows if name != options["secret"]]
    rows["row_number"] = np.arange(len(rows)).astype(str)
    hierarchies = {}
    for name in published:
        own = rows[name].unique()
        levels = {0: own}
        for number, level in enumerate(options["hierarchies"][name], 1):
            levels[number] = np.array([level[label] for label in own])
        hierarchies[name] = levels
    anonymise, parameter = MODELS[options["model"]]
    found = anonymise(
        rows,
        ident=[],
        quasi_ident=published,
        sens_att=options["secret"],
        k=2,
        supp_level=options["suppress"],
        hierarchies=hierarchies,
        **{parameter: options["level"]},
    )
    return found if len(found) else pd.DataFrame(columns=rows.columns)


if __name__ == "__main__":
    run_draws(generalise)
