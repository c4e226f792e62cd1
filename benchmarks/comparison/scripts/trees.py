"""Non-private synthetic rows by classification trees, column after column. Arguments: table, output, {"seed"}."""

import json
import sys

import numpy as np
import pandas as pd
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier


def main(table: str, output: str, options: str) -> None:
    rng = np.random.default_rng(json.loads(options)["seed"])
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
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
    pd.DataFrame(encoder.inverse_transform(made), columns=rows.columns).to_csv(output, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
