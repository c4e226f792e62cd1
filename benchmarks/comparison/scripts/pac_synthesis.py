"""Synthetic rows by PAC-Synth, with its defaults but for ε. Options: epsilon. The noise has no seed."""

from typing import Any

import pandas as pd
from harness import run_draws
from pacsynth import Dataset, DpAggregateSeededParametersBuilder, DpAggregateSeededSynthesizer, set_number_of_threads


def synthesise(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> pd.DataFrame:
    dataset = Dataset.from_data_frame(rows, sensitive_zeros=list(rows))  # a zero is a value like any other
    builder = DpAggregateSeededParametersBuilder().epsilon(options["epsilon"])
    synthesiser = DpAggregateSeededSynthesizer(builder.build())
    synthesiser.fit(dataset)
    made = Dataset.raw_data_to_data_frame(synthesiser.sample(len(rows)))
    return made.reindex(columns=list(rows), fill_value="")


if __name__ == "__main__":
    set_number_of_threads(1)
    run_draws(synthesise)
