"""The library as a notebook user meets it."""

import inspect
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import polars as pl
import pytest

import privacyfunnel as pf
from privacyfunnel.errors import ColumnError, OutputError, ParameterError
from privacyfunnel.formatting import MOST_ROWS
from tests.commands import files_of

N = 240
PEOPLE: dict[str, list[Any]] = {
    "age": [20 + i % 60 for i in range(N)],
    "kids": [i % 4 for i in range(N)],
    "member": [i % 3 == 0 for i in range(N)],
    "town": ["uvw"[i % 3] for i in range(N)],
    "visit": [f"2024-{i % 3 + 1:02}-11" for i in range(N)],
    "ill": ["yes" if i % 5 == 0 or i % 7 == 0 else "no" for i in range(N)],
}


@pytest.fixture(scope="module")
def release() -> pf.Release:
    return pf.sanitise(
        pl.DataFrame(PEOPLE),
        prior="table",
        secret="ill",
        publish=["age", "town"],
        epsilon=0.1,
        bins={"age": [18, 40, 60]},
    )


def test_a_promise_is_named_with_its_epsilon_or_given_as_a_value() -> None:
    frame = pl.DataFrame(PEOPLE)
    named = pf.design(frame, prior="table", secret="ill", publish="town", promise="ldp", epsilon=0.5)
    assert named.promise == pf.design(frame, prior="table", secret="ill", publish="town", promise=pf.LDP(0.5)).promise
    assert pf.sanitise(frame, prior="table", secret="ill", publish="town").sealed.promise.epsilon == pytest.approx(
        math.log(2)
    )
    with pytest.raises(ParameterError, match="Add epsilon=1"):
        pf.sanitise(frame, pf.ReleaseSpec(prior="table", secret="ill", publish="town", average=0.1))
    with pytest.raises(ParameterError, match="already fixes ε"):
        pf.sanitise(frame, prior="table", secret="ill", publish="town", promise=pf.LIP(1), epsilon=1)


def test_bins_are_asked_for_as_a_dictionary_everywhere() -> None:
    frame, bins = pl.DataFrame(PEOPLE), {"age": [18, 40, 60], "visit": "month", "town": {"u": "a", "v": "a", "w": "b"}}
    sealed = pf.design(frame, prior="table", secret="ill", publish=list(bins), epsilon=2, bins=bins)
    assert [len(at.labels) for at in sealed.domain.attributes] == [3, 3, 2]
    joint = pf.Joint.from_table(frame, secret="ill", publish=list(bins), bins=bins)
    assert joint.attributes == sealed.domain.attributes
    looks = {look.column: look.values for look in pf.scan(frame, secret="ill", bins={"age": 4}).looks}
    assert looks["age"] == 4


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_numbers_truth_values_and_categories_come_back_as_such(kind: Any) -> None:
    frame = kind(PEOPLE)
    if kind is pd.DataFrame:
        frame["town"] = frame["town"].astype("category")
    columns = ["kids", "member", "town"]
    found = pf.sanitise(
        frame,
        pf.ReleaseSpec(
            prior="table", secret="ill", publish=columns, epsilon=1, as_="values", method="randomised-response"
        ),
    )
    assert [str(found.table[name].dtype) for name in columns] == [str(frame[name].dtype) for name in columns]
    assert set(found.table["kids"]) <= set(PEOPLE["kids"])
    assert pf.estimate(found).table("kids").rows == N


def test_a_release_is_estimated_saved_reported_and_shown(release: pf.Release, tmp_path: Path) -> None:
    told = pf.estimate(release)
    assert "Estimates of shares in the original table, by" in repr(told)
    assert told._repr_html_().count("<tr>") >= 6
    folder = release.save(tmp_path / "out")
    mine = {"owner/codebook.csv", "owner/protocol.json", "owner/report.html"}
    assert files_of(folder) == {*mine, "public/sanitised.csv"}
    assert (folder / "owner" / "protocol.json").stat().st_mode & 0o077 == 0
    again = pf.estimate(folder, folder / "public" / "sanitised.csv")
    assert again.to_dict() == told.to_dict()
    with pytest.raises(OutputError, match="force"):
        release.save(folder)
    assert "LIP about ill, ε = 0.1" in repr(release)
    assert "may become 27.1 to 33.2 %" in release._repr_html_()
    assert "--" not in release._repr_html_().replace("<!--", "")
    page = release.report()
    assert "<html" in page.html
    assert page.save(tmp_path / "report.html").stat().st_mode & 0o077 == 0


def test_what_a_researcher_holds_shows_itself() -> None:
    joint = pf.Joint.from_counts([[30, 10], [10, 30]], secret=["ill", "well"], values=["<a>", "b"])
    best = pf.optimal(joint, pf.LIP(0.3))
    assert repr(joint) == "Joint of S (2 secrets) and X (2 values)"
    assert "&lt;a&gt;" in joint._repr_html_()
    assert "no protocol that keeps the promise does better" in repr(best)
    assert "<table>" in best._repr_html_()


def test_an_audit_shows_itself(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    pl.DataFrame(PEOPLE).write_csv(path)
    order = pf.ReleaseSpec(prior="table", secret=("ill",), publish=("town",), promise=pf.LIP(1))
    found = pf.sanitise_file(path, replace(order, into=tmp_path / "out"))
    assert found.protocol_file is not None
    audited = pf.audit(found.protocol_file, path)
    assert "certified" in repr(audited)
    assert "LIP ε = 1 about ill holds" in audited._repr_html_()


def test_messages_name_arguments_and_not_options() -> None:
    with pytest.raises(ParameterError, match=r"^key_file needs row_id: "):
        pf.ReleaseSpec(key_file="rows.key")
    with pytest.raises(ParameterError, match=r"^merge_rare must be at least 2; got 1\.$"):
        pf.sanitise(pl.DataFrame(PEOPLE), prior="table", secret="ill", publish="town", epsilon=1, merge_rare=1)


@pytest.mark.parametrize("door", [pf.sanitise])
def test_every_argument_is_explained_where_it_is_asked_for(door: Any) -> None:
    said = inspect.getdoc(door) or ""
    for name in inspect.signature(door).parameters:
        assert f"\n{name}" in said or f", {name}\n" in said, name


def test_a_release_stands_for_its_table_and_protocol(release: pf.Release, tmp_path: Path) -> None:
    frame = pl.DataFrame(PEOPLE)
    found = release.estimate()
    assert found["town"].columns == ("town",)
    assert found.to_frame().equals(pf.estimate(release.sealed, release.table).to_frame())
    assert found.to_pandas().columns.tolist() == found.to_frame().columns
    assert [len(one) for one in pf.impute(release, 2)] == [len(one) for one in release.impute(2)] == [N, N]
    assert release.audit(frame).draw is not None
    assert pf.apply(release, frame).rows == release.apply(frame).rows == N
    release.save(tmp_path / "out")
    saved = pf.Release.load(tmp_path / "out")
    assert saved.estimate().to_frame().equals(found.to_frame())
    assert len(saved.impute(1)[0]) == N
    assert saved.audit(frame).rows == N
    with pytest.raises(OutputError, match="there is none at"):
        pf.Release.load(tmp_path / "nothing")
    with pytest.raises(ColumnError, match="no table of kids"):
        found["kids"]


def test_counts_with_labels_and_frames_are_taken_as_they_are() -> None:
    frame = pd.DataFrame(PEOPLE)
    joint = pf.Joint.from_counts(pd.crosstab(frame["ill"], frame["town"]))
    assert (joint.secret_name, joint.secrets, joint.values) == ("ill", ("no", "yes"), (("u",), ("v",), ("w",)))
    points = pf.curve(frame, secret="ill", publish="town", epsilons=[1.0], methods=["randomised-response"]).points
    assert points == pf.curve(joint, epsilons=[1.0], methods=["randomised-response"]).points


@pytest.mark.parametrize("name", ["sanitise", "design", "apply", "estimate", "impute", "scan", "audit", "curve"])
def test_hints_of_types_can_be_read(name: str) -> None:
    assert get_type_hints(getattr(pf, name))


def test_what_a_notebook_shows_is_short(release: pf.Release) -> None:
    frame = pl.DataFrame(PEOPLE)
    for value in (release.sealed, pf.scan(frame, secret="ill"), release.posterior(), release.apply(frame)):
        lines = repr(value).splitlines()
        assert len(lines) <= 1 + MOST_ROWS
        assert max(map(len, lines)) < 150
        assert value._repr_html_().startswith("<div>")


def test_text_of_pandas_is_read_where_pyarrow_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(series: Any) -> Any:
        raise ImportError("pyarrow is required")

    monkeypatch.setattr("narwhals.stable.v2.Series.to_polars", refuse, raising=False)
    monkeypatch.setattr("narwhals.Series.to_polars", refuse)
    assert pf.Joint.from_table(pd.DataFrame(PEOPLE), secret="ill", publish="town").total == N


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_answers_are_frames_of_the_kind_that_came(kind: str) -> None:
    rows = pl.DataFrame({"job": ["a", "b", "b", "a"] * 200, "town": ["u", "v", "u", "w"] * 200})
    frame = {"pandas": rows.to_pandas, "pyarrow": rows.to_arrow, "polars": rows.clone}[kind]()
    release = pf.sanitise(frame, secret="job", publish="town", epsilon=0.5, prior="table")
    found = release.estimate()
    regression = release.regress("town=u ~ ", target="table")
    for answer in (found.to_frame(), found.to_tidy(), found.changes_since(found), release.posterior().to_frame()):
        assert type(answer) is type(frame)
    assert type(regression.to_frame()) is type(frame)
    assert type(found.to_pandas()).__module__.startswith("pandas")
