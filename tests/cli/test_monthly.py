"""The monthly job of the documents runs as it is written."""

import random
import re
from pathlib import Path

import polars as pl

from privacyfunnel import SealedProtocol
from tests.commands import run

PAGE = Path(__file__).parents[2] / "docs" / "monthly.md"


def register(first: int, n: int, seed: int) -> pl.DataFrame:
    draw = random.Random(seed)
    ids = range(first, first + n)
    town = [draw.choice("klmn") for _ in ids]
    job = [draw.choice(["cook", "clerk", "nurse"] + ["cook"] * (2 * (t == "k"))) for t in town]
    return pl.DataFrame({"id": ids, "town": town, "age": [draw.choice(["young", "old"]) for _ in ids], "job": job})


def test_the_monthly_job_runs_as_it_is_written(tmp_path: Path) -> None:
    may = register(0, 2000, 1)
    june = pl.concat([may[200:], register(2000, 300, 2)])
    strange = june.with_columns(town=pl.when(pl.col("id") == 2100).then(pl.lit("q")).otherwise("town"))
    may.write_csv(tmp_path / "may.csv")
    strange.write_csv(tmp_path / "june.csv")
    said = ""
    for words in re.findall(r"^\$ privacyfunnel (.*)$", PAGE.read_text(), re.MULTILINE):
        done = run(*words.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        said += done.stdout
    shown = PAGE.read_text().split("```text\n")[1].split("```")[0].strip()
    assert shown in said
    assert SealedProtocol.load(tmp_path / "job" / "protocol.json").promise.epsilon == 0.3
    assert pl.read_csv(tmp_path / "june" / "sanitised.csv").height == june.height
