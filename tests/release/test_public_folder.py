"""Two tables with the same noisy counts and the same draws make the same public folder: every name, every byte."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from privacyfunnel import Release, ReleaseSpec, estimate, sanitise_file
from privacyfunnel.release import model_design
from privacyfunnel.report import release_page, statements
from tests.report.released import OCCASION

ROWS = 3000
TOWN = [("k", "l", "m", "n")[i * i % 7 % 4] for i in range(ROWS)]
SECRETS = {
    "as towns go": ["flu" if (town in "kl") != (i % 5 == 0) else "cold" for i, town in enumerate(TOWN)],
    "by chance": [("flu", "cold", "flu")[i % 3] for i in range(ROWS)],
}
ASKED: dict[str, Any] = {"secret": "illness", "publish": "town", "epsilon": 1}


class Today:
    """The day on which both were made."""

    @staticmethod
    def now() -> Any:
        return OCCASION.when


@pytest.fixture
def one_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noisy counts of the first table are those of the next one, too: the noise made up for what differs."""
    drawn: list[Any] = []
    place, noisy = 0, model_design._noisy

    def recorded(*given: Any, **more: Any) -> Any:
        nonlocal place
        if len(drawn) == place:
            drawn.append(noisy(*given, **more))
        place += 1
        counts, variance = drawn[place - 1]
        return counts.copy(), variance.copy()

    def begin(*given: Any, **more: Any) -> Any:
        nonlocal place
        place = 0
        return fit_model(*given, **more)

    fit_model = model_design.fit_model
    monkeypatch.setattr(model_design, "_noisy", recorded)
    monkeypatch.setattr("privacyfunnel.release.design.fit_model", begin)
    monkeypatch.setattr(release_page, "datetime", Today)


def folders(folder: Path, **more: Any) -> list[dict[str, tuple[int, bytes]]]:
    """The names, modes and bytes in the public folders of two tables that differ in their secrets."""
    found = []
    for number, secrets in enumerate(SECRETS.values()):
        place = folder / str(number)
        place.mkdir(parents=True)
        rows = {"illness": secrets, "town": TOWN, "sex": ["f", "m", "m"] * (ROWS // 3)}
        pl.DataFrame(rows).write_csv(place / "people.csv")
        asked = ReleaseSpec(**ASKED, **more, prior="model", seed=1, into=place / "out", report=False)
        release = sanitise_file(place / "people.csv", asked)
        assert release.joint.total == release.joint.weights.sum()
        public = place / "out" / "public"
        found.append({path.name: (path.stat().st_mode, path.read_bytes()) for path in public.iterdir()})
    return found


@pytest.mark.usefixtures("one_noise")
@pytest.mark.parametrize("format_", ["csv", "csv.gz", "parquet", "arrow"])
@pytest.mark.parametrize("more", [{}, {"as_": "values", "method": "randomised-response"}, {"use": "information"}])
def test_nothing_public_depends_on_the_rows_but_through_the_noisy_counts_and_the_draw(
    tmp_path: Path, format_: str, more: dict[str, Any]
) -> None:
    one, other = folders(tmp_path, format=format_, **more)
    assert {
        "README.html",
        "croissant.json",
        "dcat.jsonld",
        "protocol.json",
        "estimates.csv",
        f"sanitised.{format_}",
    } <= set(one)
    assert set(one) == set(other)
    assert [name for name in one if one[name] != other[name]] == []


@pytest.mark.usefixtures("one_noise")
@pytest.mark.parametrize("leak", ["table_leak", "people"])
def test_a_page_that_quotes_a_finding_of_the_owners_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: str
) -> None:
    lead = statements.readme_lead

    def quoting(release: Release) -> str:
        return f"{lead(release)} {getattr(release.findings, leak)}"

    monkeypatch.setattr(statements, "readme_lead", quoting)
    one, other = folders(tmp_path, format="csv")
    assert {name for name in one if one[name] != other[name]} == {"README.html", "croissant.json"}


def test_estimates_are_what_anybody_makes_from_the_public_folder(tmp_path: Path) -> None:
    rows = {"illness": SECRETS["as towns go"], "town": TOWN}
    pl.DataFrame(rows).write_csv(tmp_path / "people.csv")
    asked = ReleaseSpec(**ASKED, seed=1, report=False)
    sanitise_file(tmp_path / "people.csv", replace(asked, prior="model", into=tmp_path / "out"))
    shutil.copytree(tmp_path / "out" / "public", tmp_path / "copy")
    told = pl.read_csv(tmp_path / "copy" / "estimates.csv")
    again = estimate(tmp_path / "copy" / "protocol.json", tmp_path / "copy" / "sanitised.csv")
    assert told.columns == ["column", "value", "share", "from", "to"]
    assert_frame_equal(told, again.to_tidy(), abs_tol=1e-12)
    assert told["value"].to_list() == ["k", "l", "m"]
    own = pl.Series(TOWN).value_counts(normalize=True)
    shares = dict(zip(told["value"], told["share"], strict=True))
    assert all(abs(shares[town] - share) < 0.1 for town, share in own.iter_rows())
    sanitise_file(tmp_path / "people.csv", replace(asked, prior="table", into=tmp_path / "own", again=True))
    assert not (tmp_path / "own" / "public" / "estimates.csv").exists()
