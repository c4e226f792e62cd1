"""Generalised rows by ANJANA. Arguments: table, output, {"model", "level", "secret", "hierarchies", "suppress"}.

The output has the column `row_number`, by which its rows are linked with those of the table; rows that are missing were
suppressed.
"""

import json
import sys

import numpy as np
import pandas as pd
from anjana.anonymity import basic_beta_likeness, delta_disclosure, l_diversity, t_closeness

MODELS = {
    "delta-disclosure": (delta_disclosure, "delta"),
    "beta-likeness": (basic_beta_likeness, "beta"),
    "t-closeness": (t_closeness, "t"),
    "l-diversity": (l_diversity, "l_div"),
}


def main(table: str, output: str, options: str) -> None:
    asked = json.loads(options)
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    published = [name for name in rows if name != asked["secret"]]
    rows["row_number"] = np.arange(len(rows)).astype(str)
    hierarchies = {}
    for name in published:
        own = rows[name].unique()
        levels = {0: own}
        for number, level in enumerate(asked["hierarchies"][name], 1):
            levels[number] = np.array([level[label] for label in own])
        hierarchies[name] = levels
    anonymise, parameter = MODELS[asked["model"]]
    found = anonymise(
        rows,
        ident=[],
        quasi_ident=published,
        sens_att=asked["secret"],
        k=2,
        supp_level=asked["suppress"],
        hierarchies=hierarchies,
        **{parameter: asked["level"]},
    )
    if not len(found):
        found = pd.DataFrame(columns=rows.columns)
    found.to_csv(output, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
