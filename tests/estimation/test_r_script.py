"""docs/estimate.R reads a public folder in R and gives the shares that `estimate` gives."""

from __future__ import annotations

import subprocess
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privacyfunnel import estimate, sanitise

SCRIPT = Path(__file__).parents[2] / "docs" / "estimate.R"


def _people(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    illness = rng.integers(0, 2, rows)
    age = np.clip(illness + rng.integers(0, 4, rows), 0, 4)
    town = np.where(rng.random(rows) < 0.3, illness, rng.integers(0, 3, rows))
    columns = {"illness": illness, "age": age, "the town": town}
    return pl.DataFrame({name: [f"{name[0]}{code}, {code}" for code in codes] for name, codes in columns.items()})


@pytest.mark.parametrize("publish", [("age",), ("age", "the town")])
def test_r_gives_the_same_shares(publish: tuple[str, ...], tmp_path: Path) -> None:
    release = sanitise(_people(20_000), secret="illness", publish=list(publish), epsilon=0.5)
    public = release.save(tmp_path / "out") / "public"
    told = subprocess.run(["Rscript", SCRIPT, public], capture_output=True, text=True, check=True).stdout
    in_r, here = pl.read_csv(StringIO(told)), estimate(public / "protocol.json", public / "sanitised.csv").to_tidy()
    assert in_r.select("column", "value").rows() == here.select("column", "value").rows()
    assert here["share"].to_numpy() == pytest.approx(in_r["share"].to_numpy(), abs=1e-6)
    assert (in_r["to"] - in_r["from"]).to_numpy() == pytest.approx((here["to"] - here["from"]).to_numpy(), abs=2e-3)
