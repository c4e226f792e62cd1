"""Gradient boosting: learn one column from others on a release, and name it on the true rows.

Arguments: release, output, {"truth": path, "column", "from": [columns]}. The output has one column: what was named for
every true row. A column `weight` of the release weighs its rows.
"""

import json
import sys

import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import OrdinalEncoder


def main(release: str, output: str, options: str) -> None:
    asked = json.loads(options)
    rows = pd.read_csv(release, dtype=str, keep_default_na=False)
    truth = pd.read_csv(asked["truth"], dtype=str, keep_default_na=False)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(
        pd.concat([rows[asked["from"]], truth[asked["from"]]])
    )
    features = list(range(len(asked["from"])))
    learner = HistGradientBoostingClassifier(categorical_features=features, random_state=0, max_iter=100)
    weights = rows["weight"].astype(float) if "weight" in rows else None
    learner.fit(encoder.transform(rows[asked["from"]]), rows[asked["column"]], sample_weight=weights)
    named = learner.predict(encoder.transform(truth[asked["from"]]))
    pd.DataFrame({asked["column"]: named}).to_csv(output, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
