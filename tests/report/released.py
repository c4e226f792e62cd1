"""One release of each kind, and its page, for all tests of the report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from privacyfunnel.designs.methods import Effort
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.report.release_page import Occasion, owner_page, readme_page
from privacyfunnel.spec import ReleaseSpec

HOSTILE = "<script>alert('pwned')</script>"
DOLLARS = "$\\frac{1}{0}$ & <b>"
OCCASION = Occasion(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "people.csv", "privacyfunnel sanitise people.csv")
QUICK = Effort(gap=1e-2)
AGES = ("under 10", "10–19", "20–29", "30+")


@cache
def people() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    job = rng.choice(["clerk", "miner", HOSTILE], p=[0.6, 0.3, 0.1], size=4000)
    city = np.where(rng.random(4000) < 0.5, job, rng.choice(["A", DOLLARS, "Ünïcode"], size=4000))
    city = np.where(city == "clerk", "A", np.where(city == "miner", "Ünïcode", city))
    age = np.where(rng.random(4000) < 0.7, (job == "miner") * 1 + 1, rng.integers(0, 4, size=4000))
    return pl.DataFrame(
        {"job": job, "city": city, "sex": rng.choice(["f", "m"], size=4000), "age": np.array(AGES)[age]}
    )


@cache
def released(
    promise: Promise, publish: tuple[str, ...], method: str = "optimal", sees: bool = False, as_: str = "outcomes"
) -> Release:
    """One release of each kind, for all tests."""
    return sanitise(
        people(),
        ReleaseSpec(
            prior="table",
            secret="job",
            publish=publish,
            promise=promise,
            method=method,
            sees_secret=sees,
            as_=as_,
            seed=1,
            gap=QUICK.gap,
            time_limit=QUICK.time_limit,
        ),
    )


KINDS = {
    "one column": (LIP(0.5), ("city",)),
    "several": (LIP(0.5), ("city", "sex")),
    "three": (LIP(2), ("city", "sex", "age"), "optimal"),
    "odds": (LDP(0.5), ("city",)),
    "side channels": (SRLIP(0.5), ("city", "sex")),
    "seeing the secret": (LIP(0.5), ("city",), "optimal", True),
    "values": (LIP(0.5), ("city",), "optimal", False, "values"),
    "nothing to hide": (LIP(5), ("sex",)),
}


@cache
def page(kind: str) -> str:
    return owner_page(released(*KINDS[kind]), OCCASION)


def readme(release: Release) -> str:
    """The page for everybody, as beside an empty table."""
    with TemporaryDirectory() as name:
        table = Path(name) / "sanitised.csv"
        table.touch()
        return readme_page(replace(release, table=table), table.parent, OCCASION)
