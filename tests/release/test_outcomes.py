"""Outcomes: codes and most likely values as they are published, what stands in the codebook, and how both are read."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privacyfunnel.estimation import estimate
from privacyfunnel.mechanisms import channel
from privacyfunnel.mechanisms.outcomes import build_outcomes
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.release.output_layout import detect_layout, output_layout
from privacyfunnel.release.release_files import codebook
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.report.analyst import changes
from privacyfunnel.spec import ReleaseSpec
from tests.commands import files_of, found_by, turned_down
from tests.mechanisms.kinds import JOINT, MAKERS, STREAM, codes_for, sealed_of

CODED = ["optimum"]
HOSTILE = ["a | b", "=1+1", "y01", "Köln – 東京", "b", "a"]  # a value may be called as a group of others is


def coded(kind: str, taken: tuple[str, ...] = ()) -> SealedProtocol:
    sealed = sealed_of(kind)
    names = {*sealed.domain.secret_columns, *(at.name for at in sealed.domain.attributes), *taken}
    return replace(sealed, outcomes=build_outcomes(sealed.mechanism, JOINT, names))


@pytest.mark.parametrize("kind", MAKERS)
def test_outcomes_are_shown_where_outputs_are_no_values_and_read_again_as_they_were_drawn(kind: str) -> None:
    sealed = coded(kind)
    assert bool(sealed.outcomes) == (kind in CODED)
    again = SealedProtocol.from_text(sealed.to_text())
    drawn = sealed.sample(codes_for(sealed.mechanism), STREAM)
    way = output_layout(sealed)
    table = pl.DataFrame(way.columns(drawn))
    read = detect_layout(again, tuple(table.columns), "the table").recover_codes(table)
    assert np.array_equal(sealed.mechanism.observation_codes(read), sealed.mechanism.observation_codes(drawn))


@pytest.mark.parametrize("kind", CODED)
def test_the_value_beside_a_code_is_its_most_likely_one_and_the_codebook_says_so(kind: str) -> None:
    sealed = coded(kind)
    book = codebook(sealed, JOINT)
    assert book is not None
    several = len(sealed.outcomes) > 1
    for outcome, (values, p_xy) in zip(sealed.outcomes, sealed.mechanism.value_joint(JOINT), strict=True):
        mine = book.filter(pl.col("column") == outcome.column) if several else book
        names = [JOINT.attributes[j].name for j in outcome.attributes]
        for y, code in enumerate(outcome.codes):
            rows = mine.filter(pl.col("outcome") == code)
            chances = p_xy[:, y] / p_xy[:, y].sum()
            assert rows["chance"].to_list() == sorted(rows["chance"].to_list(), reverse=True)
            assert rows["chance"].to_list() == pytest.approx(sorted(chances[chances > 1e-6], reverse=True), rel=5e-3)
            first = values[chances.argmax()]
            labels = [JOINT.attributes[j].labels[code] for j, code in zip(outcome.attributes, first, strict=True)]
            assert rows.select(names).row(0) == tuple(labels)


@pytest.mark.parametrize("kind", CODED)
def test_the_share_of_rows_that_show_their_value_is_what_the_law_expects(kind: str) -> None:
    way, sealed = output_layout(coded(kind)), sealed_of(kind)
    rows = np.repeat(np.arange(JOINT.a), JOINT.weights.sum(axis=0) * 40)
    drawn = sealed.mechanism.draw(rows, STREAM.rows(0, len(rows)))
    assert way.count_unchanged(rows, drawn) / len(rows) == pytest.approx(way.expected_unchanged_share(JOINT), abs=0.03)


@pytest.mark.parametrize("kind", CODED)
def test_a_value_that_does_not_follow_from_its_code_is_no_output(kind: str) -> None:
    sealed = coded(kind)
    way = output_layout(sealed)
    table = pl.DataFrame(way.columns(sealed.sample(codes_for(sealed.mechanism), STREAM)))
    other = next(label for label in JOINT.attributes[0].labels if label != table["colour"][0])
    changed = table.with_columns(colour=pl.Series([other, *table["colour"][1:].to_list()]))
    found = way.recover_codes(changed).min(axis=1) < 0
    assert found[0]
    assert not found[1:].any()


def test_a_column_of_codes_is_called_unlike_all_others() -> None:
    assert [each.column for each in coded("optimum", ("outcome",)).outcomes] == ["outcome 2"]


def test_a_file_that_states_outcomes_that_are_none_is_refused() -> None:
    from privacyfunnel.errors import ProtocolFileError

    sealed = coded("optimum")
    (outcome,) = sealed.outcomes
    for changed in (
        replace(outcome, column="colour"),
        replace(outcome, likely=outcome.likely[1:]),
        replace(outcome, likely=outcome.likely + 9),
        replace(outcome, likely=outcome.likely[:, :1]),
    ):
        with pytest.raises(ProtocolFileError):
            SealedProtocol.from_text(replace(sealed, outcomes=(changed,)).to_text())


# -- through the command -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose values are hard to write, with a kept column that is called as codes are."""
    rng = np.random.default_rng(3)
    town = rng.choice(HOSTILE, size=3000)
    ill = np.where(rng.random(3000) < 0.2 + 0.12 * np.array([HOSTILE.index(each) for each in town]), "yes", "no")
    path = tmp_path_factory.mktemp("people") / "people.csv"
    sex = rng.choice(["f", "m"], size=3000)
    pl.DataFrame({"ill": ill, "town": town, "sex": sex, "outcome": [f"k{i % 7}" for i in range(3000)]}).write_csv(path)
    return path


def words(people: Path, into: Path, *more: object, publish: str = "town") -> list[object]:
    asked = ["--secret", "ill", "--publish", publish, "--epsilon", 0.3, "--into", into, "--seed", 4, "--again"]
    return ["sanitise", "--prior=table", people, "--no-report", *asked, *more]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_a_release_has_values_codes_and_a_codebook_that_other_programs_read_as_they_are(
    suffix: str, people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "out"
    found = found_by(capsys, *words(people, into, "--keep", "outcome", "--accept-kept", "--format", suffix))
    book = Path(found["codebook"])
    assert book.name == ("codebook.tsv" if suffix == "tsv" else "codebook.csv")
    tab = "\t" if suffix == "tsv" else ","
    path = into / "public" / f"sanitised.{suffix}"
    table = pd.read_parquet(path) if suffix == "parquet" else pd.read_csv(path, sep=tab)
    assert table.columns.tolist() == ["town", "outcome 2", "outcome"]
    assert set(table["town"]) <= set(HOSTILE)
    assert table["outcome 2"].str.fullmatch(r"y\d\d").all()
    codes = pd.read_csv(book, sep=tab)
    assert codes.columns.tolist() == ["outcome 2", "town", "chance"]
    assert set(codes["town"]) == set(HOSTILE)
    assert codes.groupby("outcome 2")["chance"].sum().to_numpy() == pytest.approx(1.0, abs=0.005)
    likely = codes.drop_duplicates("outcome 2").set_index("outcome 2")["town"]
    assert (table["outcome 2"].map(likely) == table["town"]).all()
    audit = ["audit", into / "owner" / "protocol.json", people, "--sanitised", path, "--keep", "outcome"]
    assert "leaks together with the kept column outcome" in turned_down(capsys, *audit)


@pytest.mark.parametrize(("publish", "more"), [("town", ()), ("town,sex", ("--method", "optimal"))])
def test_estimates_from_codes_and_from_labels_are_the_same(
    publish: str, more: tuple[str, ...], people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = []
    for way in ("outcomes", "labels"):
        into = tmp_path / way
        found = found_by(capsys, *words(people, into, *more, "--as", way, publish=publish))
        assert (found["codebook"] is not None) == (way == "outcomes")
        assert (into / "owner" / "codebook.csv").exists() == (way == "outcomes")
        shares.append(estimate(into / "owner" / "protocol.json", into / "public" / "sanitised.csv").to_frame())
    assert shares[0].equals(shares[1])


def test_an_audit_finds_altered_values_beside_true_codes(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into, altered = tmp_path / "out", tmp_path / "altered.csv"
    found_by(capsys, *words(people, into))
    with (into / "public" / "sanitised.csv").open(encoding="utf-8", newline="") as file:
        header, first, *rest = csv.reader(file)
    first[0] = next(town for town in HOSTILE if town != first[0])
    with altered.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, first, *rest])
    said = turned_down(capsys, "audit", into / "owner" / "protocol.json", people, "--sanitised", altered)
    assert "must be an output its protocol can give; 1 of 3,000 are not" in said


def test_a_codebook_is_neither_overwritten_nor_left_beside_another_release(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "out"
    into.mkdir()
    (into / "codebook.csv").write_text("mine")
    assert "out' exists already" in turned_down(capsys, *words(people, into))
    assert "such as 'codebook.csv'" in turned_down(capsys, *words(people, into, "--force"))
    assert [path.name for path in into.iterdir()] == ["codebook.csv"]
    (into / "codebook.csv").unlink()
    found_by(capsys, *words(people, into))
    assert (into / "owner" / "codebook.csv").read_text(encoding="utf-8").startswith("outcome,town,chance")
    plain = found_by(capsys, *words(people, into, "--force", "--method", "randomised-response"))
    assert plain["codebook"] is None
    assert files_of(into) == {"owner/protocol.json", "public/sanitised.csv"}
    assert "outcomes" not in json.loads((into / "owner" / "protocol.json").read_text(encoding="utf-8"))


def test_excel_safe_tables_and_codebooks_hold_no_formula_and_are_read_again(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found_by(capsys, *words(people, tmp_path / "safe", "--excel-safe"))
    found_by(capsys, *words(people, tmp_path / "bare"))
    for name in ("public/sanitised.csv", "owner/codebook.csv"):
        assert "=1+1" in set(pd.read_csv(tmp_path / "bare" / name)["town"])
        assert not pd.read_csv(tmp_path / "safe" / name)["town"].str.startswith("=").any()
    one, two = (
        estimate(tmp_path / at / "owner" / "protocol.json", tmp_path / at / "public" / "sanitised.csv")
        for at in ("safe", "bare")
    )
    assert one.to_frame().equals(two.to_frame())


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_frame_gets_its_codebook_as_a_frame_of_its_kind(kind: str, people: Path) -> None:
    whole: Any = pl.read_csv(people, infer_schema=False)
    frame = {"pandas": whole.to_pandas(), "polars": whole, "arrow": whole.to_arrow()}[kind]
    release = sanitise(frame, prior="table", secret="ill", publish="town", promise=LIP(0.3))
    assert type(release.codebook) is type(frame)
    assert type(release.table) is type(frame)
    assert (
        sanitise(
            frame, ReleaseSpec(prior="table", secret="ill", publish="town", promise=LIP(0.3), as_="labels")
        ).codebook
        is None
    )


def test_a_codebook_made_from_the_counts_themselves_is_for_its_owner_only(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = found_by(capsys, *words(people, tmp_path / "out"))
    modes = {Path(found[name]).stat().st_mode & 0o077 for name in ("protocol", "codebook")}
    assert modes == {0}
    assert Path(found["table"]).stat().st_mode & 0o044


def test_a_law_that_is_measured_sparsely_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> tuple[object, ...]:
        sealed = coded("optimum")
        law, likely = sealed.mechanism, [outcome.likely for outcome in sealed.outcomes]
        book = codebook(sealed, JOINT)
        assert book is not None
        own = np.arange(JOINT.a)[:, None] % len(law.parts[0].names)
        amounts = (
            law.protocol.mutual_information(JOINT),
            LIP(0).leakage(JOINT, law.protocol),
            law.likely_probability(likely, JOINT),
            law.unchanged_probability(own, JOINT),
        )
        stands_for = [(change.own, change.exact) for change in changes(JOINT, sealed)]
        return type(law.protocol), np.round(amounts, 12).tolist(), book.to_dicts(), stands_for

    plain = said()
    monkeypatch.setattr(channel, "SMALL", 0)
    monkeypatch.setattr(channel, "HARDLY", 2.0)
    sparsely = said()
    assert (plain[0], sparsely[0]) == (Protocol, SparseProtocol)
    assert sparsely[1:] == plain[1:]
