"""Many columns: real files through the real command line, from a table to its public folder and back."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import ReleaseSpec, apply
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.mechanisms.protocol_file import to_text
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify_at_model
from privacyfunnel.model.published.wide_model import WideModel
from privacyfunnel.report.summary_lines import _neighbours_text
from privacyfunnel.tables.readers.adult import write_adult_csv
from tests.commands import run, told

COLUMNS = ["workclass", "education", "marital-status", "relationship", "race", "sex"]
ROWS = 6000
VERIFY = Path(__file__).parents[2] / "docs" / "verify.py"


@cache
def people() -> pl.DataFrame:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        write_adult_csv(path)
        return pl.read_csv(path).sample(ROWS, seed=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A release of six columns about the income of some people, and what the command said of it."""
    folder = tmp_path_factory.mktemp("wide")
    people().write_csv(folder / "people.csv")
    words = ["--secret", "income", "--publish", ",".join(COLUMNS), "-e", "3", "--prior", "model"]
    return folder, told("sanitise", folder / "people.csv", *words, "--into", folder / "out")


def load(folder: Path) -> tuple[SealedProtocol, RealOrSynthetic, WideModel]:
    sealed = SealedProtocol.load(folder / "out")
    assert isinstance(sealed.mechanism, RealOrSynthetic)
    assert isinstance(sealed.model, WideModel)
    return sealed, sealed.mechanism, sealed.model


def test_rows_are_real_or_synthetic_and_look_like_rows_of_the_table(made: tuple[Path, dict[str, Any]]) -> None:
    folder, said = made
    sealed, mechanism, model = load(folder)
    assert said["method"] == "real-or-synthetic"
    assert sorted(path.name for path in (folder / "out" / "public").iterdir()) == [
        "README.html",
        "croissant.json",
        "dcat.jsonld",
        "protocol.json",
        "sanitised.csv",
    ]
    published = pl.read_csv(folder / "out" / "public" / "sanitised.csv")
    assert published.columns == COLUMNS
    assert published.height == ROWS
    for attribute in model.tree.attributes:
        assert set(published[attribute.name]) <= set(attribute.labels)
        assert set(attribute.labels) <= {*people()[attribute.name], "other"}
    assert sealed.domain.lists_combinations is False
    assert float(model.total) == 3
    assert model.epsilon > 0
    assert sealed.promise.epsilon <= 3 - model.epsilon
    assert abs(said["unchanged"] - said["unchanged_expected"]) < 0.05
    assert said["unchanged"] > 0.5
    readme = (folder / "out" / "public" / "README.html").read_text()
    assert "by construction for every record there can be, from all combinations of labels" in readme
    assert mechanism.proof_records == 0


def test_anybody_can_check_it_from_the_public_files(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = made
    checked = run("audit", folder / "out" / "public")
    assert checked.returncode == 0, checked.stderr
    assert "LIP ε = 3 about income holds for whoever believes the published model" in checked.stdout
    alone = subprocess.run(
        [sys.executable, VERIFY, folder / "out" / "public" / "protocol.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 2
    assert "real-or-synthetic" in alone.stdout
    assert "privacyfunnel audit" in alone.stdout


def test_no_table_is_compared_with_it_and_no_promise_is_advised_that_it_cannot_keep(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = made
    people().write_csv(tmp_path / "people.csv")
    refused = run("audit", folder / "out" / "public", tmp_path / "people.csv")
    assert refused.returncode == 2
    assert "Leave out the table" in refused.stderr
    assert _neighbours_text(load(folder)[0]).endswith("NOT covered")


def test_slacks_that_are_not_proved_are_refused(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    sealed, _, _ = load(made[0])
    content = sealed.to_json()
    content["law"]["slacks"] = (np.array(content["law"]["slacks"]) + 2**26).tolist()
    altered = SealedProtocol.from_text(to_text(content))
    with pytest.raises(GuaranteeError, match="slacks are not proved"):
        certify_at_model(altered)
    assert certify_at_model(sealed) == sealed.epsilon


def test_next_month_has_records_that_were_never_seen(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """All combinations of labels, and labels that nobody had, which are `other`."""
    folder, _ = made
    _, _, model = load(folder)
    labels = [at.labels for at in model.tree.attributes]
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({name: rng.choice(of, 3000) for name, of in zip(COLUMNS, labels, strict=True)})
    rows = rows.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.lit("new")).otherwise("race").alias("race")
    )
    assert len(rows.unique().join(people().select(COLUMNS), on=COLUMNS, how="anti")) > 500
    rows.write_csv(tmp_path / "next.csv")
    done = told(
        "apply", folder / "out" / "public" / "protocol.json", tmp_path / "next.csv", "--into", tmp_path / "y.csv"
    )
    assert done["rows"] == 3000
    published = pl.read_csv(tmp_path / "y.csv")
    assert "new" not in set(published["race"])


def test_rows_are_drawn_alike_in_any_order_and_in_parts(made: tuple[Path, dict[str, Any]]) -> None:
    """By id and key: whatever the parts, the order and who else is there; and another record is another draw."""
    sealed, _, _ = load(made[0])
    rows = people().select(COLUMNS).with_row_index("id")
    one = ReleaseSpec(row_id="id", key_file=RowKey.generate(), keep="id", keep_order=True, accept_kept=True)
    whole = apply(sealed, rows, one).table
    mixed = rows.sample(ROWS, shuffle=True, seed=3)
    parts = [apply(sealed, mixed[start : start + 1700], one).table for start in range(0, ROWS, 1700)]
    assert pl.concat(parts).sort("id").equals(whole)
    changed = rows.with_columns(sex=pl.lit("Male"))
    other = apply(sealed, changed, one).table
    same = (rows["sex"] == "Male").to_numpy()
    assert other.filter(same).equals(whole.filter(same))
    assert not other.filter(~same).equals(whole.filter(~same))
