"""Non-private synthetic rows by classification trees, column after column."""

from typing import Any

import numpy as np
import pandas as pd
from harness import run_draws
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier


def grow(rows: pd.DataFrame, options: dict[str, Any], seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    encoder = OrdinalEncoder()
    codes = encoder.fit_transform(rows).astype(int)
    made = np.empty_like(codes)
    made[:, 0] = rng.choice(codes[:, 0], len(codes))
    for j in range(1, codes.shape[1]):
        tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=int(rng.integers(2**31)))
        tree.fit(codes[:, :j], codes[:, j])
        chances = tree.predict_proba(made[:, :j]).cumsum(axis=1)
        drawn = (rng.random((len(codes), 1)) > chances).sum(axis=1).clip(max=chances.shape[1] - 1)
        made[:, j] = tree.classes_[drawn]
    return pd.DataFrame(encoder.inverse_transform(made), columns=rows.columns)


if __name__ == "__main__":
    run_draws(grow)
