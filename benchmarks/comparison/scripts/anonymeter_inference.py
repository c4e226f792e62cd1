"""Inference attack by anonymeter with its control group. Options: secret, inside, control (tables), attacks. No seed.

The table is what was published; the output has the shares of right guesses among people who are in it (`inside`) and
among people who are not (`control`).
"""

from typing import Any

import pandas as pd
from anonymeter.evaluators import InferenceEvaluator
from harness import run_draws


def attack(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> pd.DataFrame:
    inside, control = (pd.read_csv(options[name], dtype=str, keep_default_na=False) for name in ("inside", "control"))
    known = [name for name in rows if name != options["secret"]]
    evaluator = InferenceEvaluator(
        ori=inside, syn=rows, control=control, aux_cols=known, secret=options["secret"], n_attacks=options["attacks"]
    )
    found = evaluator.evaluate(n_jobs=1).results()
    return pd.DataFrame({"inside": [found.attack_rate.value], "control": [found.control_rate.value]})


if __name__ == "__main__":
    run_draws(attack)
