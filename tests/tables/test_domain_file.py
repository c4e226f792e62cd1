"""domain.json: written by a scan, edited, read strictly, and counted in."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privacyfunnel.errors import ColumnError, SizeError, TableError
from privacyfunnel.tables.coding.domain_file import domain_from_text, draft_domain, read_domain
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.table_files import open_table
from tests.commands import refused, run

TABLE = """id,illness,town,age
a1,flu,Ghent,31
a2,flu,Bruges,45
a3,none,Ghent,62
a4,none,,28
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = TABLE.splitlines()
    more = [f"b{i},{'flu' if i % 3 else 'none'},{'Ghent' if i % 2 else 'Bruges'},{20 + i % 60}" for i in range(120)]
    path.write_text("\n".join([*rows, *more]) + "\n", encoding="utf-8")
    return path


def changed(path: Path, **columns: Any) -> str:
    """The domain file with some columns changed."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["columns"] |= columns
    return json.dumps(content)


def test_a_scan_writes_a_domain_that_holds_the_table_and_no_ids(people: Path, tmp_path: Path) -> None:
    target = tmp_path / "domain.json"
    done = run("scan", people, "--secret", "illness", "--domain", target)
    assert done.returncode == 0, done.stderr
    assert "list what anybody could know" in done.stdout
    assert "Not listed, since their labels would quote persons: id." in done.stdout
    content = json.loads(target.read_text(encoding="utf-8"))
    assert content["columns"] == {
        "illness": {"labels": ["flu", "none"], "missing": False},
        "town": {"labels": ["Bruges", "Ghent"], "missing": True},
        "age": {"bins": [30.0, 40.0, 50.0, 60.0, 70.0], "missing": False},
    }
    domain = read_domain(target)
    assert domain_from_text(domain.to_text()).codings == domain.codings
    counted = domain.encode(open_table(people), secret=["illness"], publish=["town", "age"]).contingency
    assert counted.weights.shape == (2, 3 * 6)  # all combinations, whether they occur or not
    assert counted.weights.sum() == 124
    refused(["scan", people, "--secret", "illness", "--domain", target], "OutputError", "--force")


def test_rows_that_the_domain_does_not_list_are_counted_and_refused(people: Path, tmp_path: Path) -> None:
    target = tmp_path / "domain.json"
    assert run("scan", people, "--secret", "illness", "--domain", target).returncode == 0
    target.write_text(changed(target, town={"labels": ["Ghent"], "missing": True}), encoding="utf-8")
    with pytest.raises(TableError, match=r"column 'town' must hold only values .* knows; 61 rows hold others"):
        read_domain(target).encode(open_table(people), secret=["illness"], publish=["town"])
    target.write_text(changed(target, town={"labels": ["Ghent", "Bruges"], "missing": False}), encoding="utf-8")
    with pytest.raises(TableError, match=r"1 rows hold others\. Add them there"):
        read_domain(target).encode(open_table(people), secret=["illness"], publish=["town"])
    with pytest.raises(ColumnError, match="'id' is not among its 3"):
        read_domain(target).encode(open_table(people), secret=["illness"], publish=["id"])
    with pytest.raises(ColumnError, match="cannot be secret and published"):
        read_domain(target).encode(open_table(people), secret=["town"], publish=["town"])


GOOD = {"format": "privacyfunnel domain", "version": 1, "columns": {"a": {"labels": ["x"], "missing": False}}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": "privacyfunnel domain", "version": 1, "columns": {"a": {"labels": ["x"], "missing": NaN}}}',
        '{"format": "privacyfunnel domain", "format": "privacyfunnel domain", "version": 1, "columns": {}}',
        json.dumps({**GOOD, "version": 2}),
        json.dumps({**GOOD, "version": "1"}),
        json.dumps({**GOOD, "format": "privacyfunnel protocol"}),
        json.dumps({**GOOD, "more": 1}),
        json.dumps({**GOOD, "columns": {}}),
        json.dumps({**GOOD, "columns": [1]}),
        *(
            json.dumps({**GOOD, "columns": {"a": entry}})
            for entry in (
                ["x"],
                {"labels": ["x"]},
                {"labels": ["x"], "missing": 1},
                {"labels": [], "missing": False},
                {"labels": "xy", "missing": False},
                {"labels": ["x", "x"], "missing": False},
                {"labels": ["x", ""], "missing": False},
                {"labels": ["x", 1], "missing": False},
                {"labels": ["x"], "bins": [1], "missing": False},
                {"bins": [], "missing": False},
                {"bins": [True], "missing": False},
                {"bins": ["1"], "missing": False},
                {"bins": [2, 1], "missing": False},
                {"bins": [10**400], "missing": False},
            )
        ),
    ],
)
def test_what_is_no_domain_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(TableError, match=r"^(the domain|column 'a'|missing of|the bins of|the labels of) .*\.$"):
        domain_from_text(text)


def test_a_missing_file_is_named_and_a_domain_of_too_many_combinations_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"no domain file .* scan"):
        read_domain(tmp_path / "none.json")
    wide = {f"c{i}": {"labels": [str(k) for k in range(100)], "missing": False} for i in range(3)}
    with pytest.raises(SizeError, match=r"at most 16,384 combinations of labels; c0 & c1 & c2 have 1,000,000"):
        domain_from_text(json.dumps({**GOOD, "columns": wide})).variable(["c0", "c1", "c2"])


def test_a_draft_quotes_no_free_text_and_no_dates_of_birth() -> None:
    days = [f"19{40 + i % 60}-{i % 12 + 1:02}-{i % 28 + 1:02} {i}" for i in range(3000)]
    table = FrameTable.from_native(
        pl.DataFrame({"town": ["a", "b", "c"] * 1000, "born": days, "note": [f"note {i % 1500}" for i in range(3000)]})
    )
    draft = draft_domain(table, ["town", "born", "note"])
    assert list(draft.codings) == ["town"]
    assert "note 1" not in draft.to_text()
    with pytest.raises(ColumnError, match="labels that are public"):
        draft_domain(table, ["born", "note"])


def test_a_domain_may_list_what_nobody_has_together() -> None:
    columns = {name: {"labels": ["0", "1"], "missing": False} for name in ("a", "b", "c")}
    content: dict[str, Any] = {"format": "privacyfunnel domain", "version": 1, "columns": columns}
    domain = domain_from_text(json.dumps({**content, "impossible": [{"a": "0", "b": "1", "c": "1"}]}))
    assert domain.impossible == ((("a", "0"), ("b", "1"), ("c", "1")),)
    assert domain_from_text(domain.to_text()).impossible == domain.impossible
    for wrong in ({"a": "0"}, [{"a": "0"}], [{"a": "0", "b": "2"}], [{"a": "0", "z": "1"}], [[["a", "0"], ["b", "1"]]]):
        with pytest.raises(TableError, match="each with a label that is listed"):
            domain_from_text(json.dumps({**content, "impossible": wrong}))
