"""People before a court, made up: what such tables look like, without anybody in them.

The columns and how they hang together follow what was published about COMPAS (ages, prior offences, scores that rise
with both, and groups of people who differ in them); every row is drawn from a seed.
"""

import numpy as np
import polars as pl

AGES = ("under 25", "25 to 45", "over 45")
PRIORS = ("0", "1", "2 to 4", "5 or more")
GROUPS = ("African-American", "Caucasian", "Hispanic", "Other")


def courts(rows: int = 6000, seed: int = 7) -> pl.DataFrame:
    """So many people: age, sex, charge, prior offences, score, group, and whether they were charged again."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, size=rows, p=[0.5, 0.35, 0.09, 0.06])
    age = (rng.random(rows) + 0.12 * (group == 1) > 0.25).astype(int) + (rng.random(rows) > 0.75)
    more = 0.9 * (group == 0) - 0.4 * (age == 0) + rng.gumbel(size=rows)
    priors = np.digitize(more, [-0.1, 0.7, 1.7])
    score = np.clip(np.round(2.5 + 1.4 * priors - 1.0 * age + rng.normal(size=rows)), 1, 10).astype(int)
    chance = 1 / (1 + np.exp(1.2 - 0.45 * priors + 0.35 * age))
    return pl.DataFrame(
        {
            "age": np.array(AGES)[age],
            "sex": np.where(rng.random(rows) < 0.8, "male", "female"),
            "charge": np.where(rng.random(rows) < 0.64, "felony", "misdemeanour"),
            "priors": np.array(PRIORS)[priors],
            "score": score,
            "group": np.array(GROUPS)[group],
            "again": np.where(rng.random(rows) < chance, "yes", "no"),
        }
    )
