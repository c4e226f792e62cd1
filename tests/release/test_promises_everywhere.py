"""Every promise through every way of making a release: certified on its integers, or refused with what to do."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import audit, sanitise
from privacyfunnel.errors import InputError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify_at_model
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.release import Release
from privacyfunnel.report.summary_lines import _neighbours_text
from privacyfunnel.spec import ReleaseSpec

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
ADVICE = re.compile(r"\b(Leave|Promise|Publish|Use|Ask|Make|make|promise|publish|use) ")
ROWS = 3000


@cache
def people(seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    grade, sex = np.arange(ROWS) % 3, np.arange(ROWS) // 3 % 2
    shown = {"x": (grade % 2, 0.5), "y": (sex, 0.6), "z": (np.minimum(grade, 1), 0.5)}
    return pl.DataFrame(
        {
            "id": np.arange(ROWS),
            "grade": [str(v) for v in grade],
            "sex": ["fm"[v] for v in sex],
            **{
                name: [str(v) for v in np.where(rng.random(ROWS) < share, of, rng.integers(0, 2, ROWS))]
                for name, (of, share) in shown.items()
            },
        }
    )


@pytest.fixture(scope="module")
def promises(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """How each is asked for."""
    folder = tmp_path_factory.mktemp("promises")
    (folder / "graded.csv").write_text("0,1,0.6\n1,2,0.9\n")
    (folder / "groups.csv").write_text("1,some\n2,some\n")
    plain = {name: {"promise": name, "epsilon": 1.0} for name in ("lip", "ldp", "srlip", "pml")}
    return {
        **plain,
        "alip": {"promise": "alip:0.6,1"},
        "graded LDP": {"promise": f"ldp:{folder / 'graded.csv'}"},
        "LDP on a line": {"promise": "ldp:line", "epsilon": 0.7},
        "events": {"promise": f"events:{folder / 'groups.csv'}", "epsilon": 1.0},
        "pml with a floor": {"promise": "pml:floor=0.1", "epsilon": 1.0},
        "several secrets": {"secret": {"grade": 1.0, "sex": 0.8}},
    }


def plain(how: dict[str, Any]) -> Release:
    """A release from exact counts, or by a published model with labels that are public."""
    asked = {"secret": "grade", "seed": 1, "again": True, **how}
    secret = ["grade", "sex"] if isinstance(asked["secret"], dict) else ["grade"]
    if asked.get("prior") == "model":
        asked["public_labels"] = [*secret, *asked["publish"]]
    return sanitise(people(), ReleaseSpec(**asked))


def after(how: dict[str, Any]) -> Release:
    first = plain({**how, "prior": "model", "publish": ["x"], "row_id": "id"})
    return sanitise(people(1), ReleaseSpec(after=first, epsilon=1.5 * first.sealed.total_epsilon, seed=2))


TABLE, MODEL = {"prior": "table", "publish": ["x", "y"]}, {"prior": "model", "publish": ["x", "y", "z"]}
# By the headings of the table in the document.
WAYS: dict[str, tuple[Callable[[dict[str, Any]], Release], dict[str, Any]]] = {
    "optimal": (plain, {**TABLE, "method": "optimal"}),
    "explicit": (plain, {**TABLE, "method": "randomised-response"}),
    "published model": (plain, {**MODEL, "publish": ["x", "y"]}),
    "many columns": (plain, MODEL),
    "`--population`": (plain, {**TABLE, "publish": ["x"], "population": 0.95}),
    "`--robust`": (plain, {**TABLE, "publish": ["x"], "robust": "1.25"}),
    "`--robust`, many": (plain, {**MODEL, "robust": "1.25"}),
    "`--known`": (plain, {**MODEL, "known": "y"}),
    "`--composable`": (plain, {**TABLE, "publish": ["x"], "composable": 2.0}),
    "`--after`": (after, {}),
}


def stated() -> dict[str, dict[str, bool]]:
    """The table of the document: which promise goes which way."""
    lines = PAGE.read_text(encoding="utf-8").split("## Which promise goes with what")[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert all(set(row[1:]) <= {"yes", "no"} for row in cells[2:])
    return {row[0]: {way: cell == "yes" for way, cell in zip(cells[0][1:], row[1:], strict=True)} for row in cells[2:]}


def test_the_document_lists_every_promise_and_every_way(promises: dict[str, dict[str, Any]]) -> None:
    table = stated()
    assert set(table) == set(promises)
    assert all(set(row) == set(WAYS) for row in table.values())


def certified(sealed: SealedProtocol, release: Release) -> float:
    """The ε of the integers, found again by an audit: from the public part alone where there is a model."""
    if sealed.model is not None:
        return certify_at_model(sealed)
    joint: Joint = release.joint
    found = audit(release, people(), secret=list(sealed.domain.secret_columns))
    assert joint.total == ROWS
    return found.certified


@pytest.mark.parametrize("way", list(WAYS))
def test_every_promise_is_certified_or_refused_with_what_to_do(promises: dict[str, dict[str, Any]], way: str) -> None:
    make, how = WAYS[way]
    for name, asked in promises.items():
        release, refusal = None, ""
        try:
            release = make({**asked, **how})
        except InputError as error:
            refusal = error.sentence
        assert stated()[name][way] is (release is not None), f"{name}: {refusal}"
        if release is None:
            assert ADVICE.search(refusal), refusal
        else:
            sealed = SealedProtocol.from_text(release.sealed.to_text())
            assert 0 < certified(sealed, release) <= sealed.promise.epsilon + 1e-12
            if way == "many columns":  # no summary advises what would be refused
                assert (hint("known", "x") in _neighbours_text(sealed)) is stated()[name]["`--known`"]
