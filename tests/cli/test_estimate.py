"""`estimate` and `audit --matrix` as people use them: real processes, real files."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel.cli import main
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.spec import ReleaseSpec
from tests.commands import found_by, run, said, told

ROWS = 4000
Refused = Callable[..., None]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Illness depends on colour and size, the region on size."""
    rng = np.random.default_rng(1)
    colour = rng.choice(["red", "green", "blue"], p=[0.5, 0.3, 0.2], size=ROWS)
    size = rng.choice(["large", "small"], p=[0.4, 0.6], size=ROWS)
    ill = np.where(rng.random(ROWS) < 0.3 + 0.3 * (colour == "red") + 0.2 * (size == "small"), "yes", "no")
    region = np.where(rng.random(ROWS) < np.where(size == "small", 0.8, 0.3), "north", "south")
    region[:3] = "isle"
    path = tmp_path_factory.mktemp("people") / "people.csv"
    pl.DataFrame({"ill": ill, "colour": colour, "size": size, "region": region}).write_csv(path)
    return path


def release(people: Path, into: Path, *publish: str, method: str = "optimal", epsilon: float = 0.2) -> Path:
    """A release from a seed, so that tests see the same draw every time."""
    order = ReleaseSpec(
        prior="table",
        secret=("ill",),
        publish=publish or ("colour",),
        promise=LIP(epsilon),
        method=method,
        keep=("region",),
        accept_kept=True,
        seed=5,
        keep_order=True,
    )
    sanitise_file(people, replace(order, into=into))
    return into


@pytest.fixture(scope="module")
def out(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one column beside a kept one."""
    return release(people, tmp_path_factory.mktemp("out") / "out")


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """That a command exits with 2 and prints one sentence; here in this process, as there are many."""

    def check(words: Sequence[object], kind: str, *parts: str) -> None:
        assert main(list(map(str, words))) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        assert printed.err.startswith(f"{kind}: ")
        for part in parts:
            assert part in printed.err

    return check


@pytest.fixture
def told_here(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """The JSON that a command prints, in this process."""

    def ask(*words: object) -> Any:
        assert main([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def files(folder: Path) -> list[Path]:
    return [folder / "owner" / "protocol.json", folder / "public" / "sanitised.csv"]


def truth(people: Path, *columns: str) -> dict[tuple[str, ...], float]:
    with people.open(newline="") as file:
        counts = Counter(tuple(row[name] for name in columns) for row in csv.DictReader(file))
    return {labels: n / ROWS for labels, n in counts.items()}


def near(table: dict[str, object], shares: dict[tuple[str, ...], float]) -> None:
    """Every share within 5 standard errors, every one of the table's cells known."""
    cells = table["cells"]
    assert isinstance(cells, list)
    assert {tuple(cell["labels"]) for cell in cells} == set(shares)
    for cell in cells:
        assert 0 <= cell["lower"] <= cell["share"] <= cell["upper"] <= 1
        assert abs(cell["share"] - shares[tuple(cell["labels"])]) <= 5 * cell["standard_error"] + 1e-9


def test_the_two_public_files_give_the_original_shares_in_text_and_json(people: Path, out: Path) -> None:
    found = told("estimate", *files(out))
    beside = {"regressions", "changes", "completed", "files", "signed_by", "run"}
    assert set(found) == {"method", "level", "target", "notes", "tables", *beside}
    (table,) = found["tables"]
    assert set(table) == {"columns", "group", "rows", "method", "cells", "sums", "notes"}
    assert (table["columns"], table["group"], table["rows"]) == (["colour"], {}, ROWS)
    assert set(table["cells"][0]) == {"labels", "share", "standard_error", "lower", "upper", "identified"}
    near(table, truth(people, "colour"))
    text = run("estimate", *files(out))
    assert text.stderr == ""
    lines = text.stdout.splitlines()
    assert lines[0] == "Shares in the original table, by maximum likelihood, with 95 % intervals"
    assert lines[5].split() == ["colour", "share", "from", "to", "count"]
    assert [line.split()[0] for line in lines[6:9]] == [cell["labels"][0] for cell in table["cells"]]
    assert lines[6].split()[1] == f"{100 * table['cells'][0]['share']:.2f}"
    assert "drawn from a seed" in text.stdout


def test_groups_come_each_by_itself_and_a_small_one_says_little(people: Path, out: Path) -> None:
    found = told("estimate", *files(out), "--by", "region", "--level", 0.9, "--target", "population")
    assert (found["level"], found["target"]) == (0.9, "population")
    assert [table["group"] for table in found["tables"]] == [{"region": r} for r in ("isle", "north", "south")]
    isle = found["tables"][0]
    assert isle["rows"] == 3
    assert "only 3 rows" in isle["notes"][-1]
    assert all(cell["upper"] - cell["lower"] > 0.7 for cell in isle["cells"])
    assert "region = north" in run("estimate", *files(out), "--by", "region").stdout


def test_several_columns_are_tabulated_alone_and_together(
    people: Path, tmp_path: Path, told_here: Callable[..., Any]
) -> None:
    folder = release(people, tmp_path / "out", "colour", "size", method="randomised-response", epsilon=0.5)
    found = told_here("estimate", *files(folder), "--columns", "size", "--columns", "size,colour")
    assert [table["columns"] for table in found["tables"]] == [["size"], ["size", "colour"]]
    near(found["tables"][0], truth(people, "size"))
    near(found["tables"][1], truth(people, "size", "colour"))
    both = told_here("estimate", *files(folder), "--method", "inversion")
    assert both["method"] == "inversion"
    assert [table["columns"] for table in both["tables"]] == [["colour"], ["size"]]
    into = tmp_path / "completed"
    told_here("estimate", *files(folder), "--impute", 2, "--into", into)
    completed = pl.read_csv(into / "imputed-2.csv")
    assert set(completed.columns) == {"colour", "size", "region"}
    assert (completed["size"] == "small").mean() == pytest.approx(truth(people, "size")[("small",)], abs=0.1)


def test_a_folder_gets_the_estimates_their_picture_and_completed_tables(
    people: Path, out: Path, tmp_path: Path, refused: Refused
) -> None:
    into = tmp_path / "deep" / "analysis"
    words = ["estimate", *files(out), "--into", into, "--impute", 2, "--original", people]
    found = told(*words)
    names = ["estimates.csv", "estimates.png", "estimates.svg", "imputed-1.csv", "imputed-2.csv"]
    assert sorted(path.name for path in into.iterdir()) == names
    assert sorted(Path(path).name for path in found["files"]) == names
    estimates = pl.read_csv(into / "estimates.csv")
    assert estimates.columns == ["colour", "share", "standard_error", "lower", "upper", "count", "rows"]
    assert estimates["count"].sum() == pytest.approx(ROWS)
    svg = (into / "estimates.svg").read_text()
    assert all(word in svg for word in ("red", "original", "estimated, 95 % interval"))
    assert (into / "estimates.png").read_bytes().startswith(b"\x89PNG")
    regions = pl.read_csv(people)["region"].to_list()
    for i in (1, 2):
        completed = pl.read_csv(into / f"imputed-{i}.csv")
        assert completed.columns == ["colour", "region"]
        assert completed["region"].to_list() == regions
        for (colour,), share in truth(people, "colour").items():
            assert (completed["colour"] == colour).mean() == pytest.approx(share, abs=0.1)
    refused(words, "OutputError", "--force")
    assert run(*words, "--force").returncode == 0


def test_completed_tables_come_all_or_none(out: Path, tmp_path: Path, refused: Refused) -> None:
    into = tmp_path / "analysis"
    into.mkdir()
    (into / "imputed-2.csv").write_text("mine\n")
    refused(["estimate", *files(out), "--into", into, "--impute", 3], "OutputError", "imputed-2.csv", "--force")
    assert [path.name for path in into.iterdir()] == ["imputed-2.csv"]


def test_the_posterior_of_every_output_is_a_distribution(out: Path, tmp_path: Path) -> None:
    path = tmp_path / "posterior.csv"
    assert run("estimate", *files(out), "--posterior", path).returncode == 0
    posterior = pl.read_csv(path)
    assert posterior.columns[:3] == ["colour", "outcome", "rows"]
    assert set(posterior.columns[3:]) == {"P(red)", "P(green)", "P(blue)"}
    assert posterior["rows"].sum() == ROWS
    np.testing.assert_allclose(posterior.select(pl.sum_horizontal(posterior.columns[3:])).to_series(), 1)


# -- what does not fit -----------------------------------------------------------------------------------------------


def test_a_table_that_does_not_fit_its_protocol_is_refused(
    people: Path, out: Path, tmp_path: Path, refused: Refused
) -> None:
    protocol, sanitised = files(out)
    refused(["estimate", protocol, people], "ColumnError", "must have the published column 'outcome'")
    other = tmp_path / "other.csv"
    other.write_text("colour,outcome\nred,y99\n")
    refused(["estimate", protocol, other], "TableError", "must hold only what the protocol publishes")
    other.write_text("size\nsmall\n")
    refused(["estimate", protocol, other], "ColumnError", "must have the published column 'colour'")
    other.write_text("colour,outcome\n")
    refused(["estimate", protocol, other], "TableError", "rows")
    other.write_text("")
    refused(["estimate", protocol, other], "TableError", "is empty")
    refused(["estimate", protocol, tmp_path / "none.csv"], "TableError", "there is no file")
    refused(["estimate", protocol, sanitised, "--by", "regoin"], "ColumnError", "Did you mean 'region'?")
    refused(["estimate", protocol, sanitised, "--by", "colour"], "ColumnError", "published by the protocol")
    refused(["estimate", protocol, sanitised, "--columns", "size"], "ColumnError", "no column 'size'")
    refused(["estimate", protocol, sanitised, "--columns", ","], "ColumnError", "at least one column")


def test_a_damaged_protocol_is_refused(out: Path, tmp_path: Path, refused: Refused) -> None:
    protocol, sanitised = files(out)
    broken = tmp_path / "protocol.json"
    text = protocol.read_text()
    for content, part in (
        (text[: len(text) // 2], "must be JSON"),
        (text.replace('"epsilon": 0.2', '"epsilon": 0.3'), "damaged or altered"),
        (json.dumps({key: value for key, value in json.loads(text).items() if key != "law"}), "damaged or altered"),
        ("{}", "no protocol file"),
    ):
        broken.write_text(content)
        refused(["estimate", broken, sanitised], "ProtocolFileError", part)
    refused(["estimate", sanitised, protocol], "ProtocolFileError", "must be JSON")
    refused(["estimate", tmp_path / "none.json", sanitised], "ProtocolFileError", "no protocol file")


def test_options_that_cannot_be_are_refused_before_any_work(out: Path, tmp_path: Path, refused: Refused) -> None:
    refused(["estimate", *files(out), "--impute", 2], "ParameterError", "--into")
    refused(["estimate", *files(out), "--level", 1], "ParameterError", "level")
    refused(["estimate", *files(out), "--method", "guess"], "ParameterError", "guess")
    refused(["estimate", *files(out), "--impute", -1, "--into", tmp_path], "ParameterError", "impute")
    refused(["estimate", *files(out), "--posterior", tmp_path], "OutputError", "directory")


def test_what_is_not_identified_is_not_completed(people: Path, tmp_path: Path, refused: Refused) -> None:
    silent = tmp_path / "silent"
    for name in ("owner", "public"):
        (silent / name).mkdir(parents=True)
    joint = Joint.from_counts([[5, 3, 2], [5, 3, 2]], values=["red", "green", "blue"], names=["colour"])
    blurred = Protocol(np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]]), (("warm",), ("cold",)))
    seal(blurred, LIP(1), joint).save(silent / "owner" / "protocol.json")
    (silent / "public" / "sanitised.csv").write_text("colour\n" + "warm\ncold\n" * 500)
    text = run("estimate", *files(silent)).stdout
    assert text.count("unknown") == 2
    assert "Only the sum of" in text
    assert "nan" not in text.lower()
    refused(
        ["estimate", *files(silent), "--impute", 1, "--into", tmp_path / "no"], "ParameterError", "where all shares are"
    )
    assert not (tmp_path / "no").exists()


# -- matrices --------------------------------------------------------------------------------------------------------


def test_a_matrix_goes_out_and_its_audit_finds_what_was_certified(people: Path, out: Path, tmp_path: Path) -> None:
    path = tmp_path / "pram.csv"
    assert run("estimate", *files(out), "--matrix", path).returncode == 0
    found = told("audit", "--matrix", path, people, "--secret", "ill", "--epsilon", 0.2001)
    certificate = json.loads((out / "owner" / "protocol.json").read_text())["certificate"]
    assert found["holds"] is True
    assert found["certified"] == pytest.approx(certificate["epsilon"], abs=1e-9)
    assert found["leakage"]["lip"] == pytest.approx(certificate["epsilon"], abs=1e-9)
    assert found["information_nats"] == pytest.approx(certificate["information_nats"], abs=1e-4)  # rounded down there
    assert (found["publish"], found["secret"], found["rows"]) == (["colour"], "ill", ROWS)
    text = run("audit", "--matrix", path, people, "--secret", "ill").stdout
    assert "worst for someone who knows nothing else, for output" in text
    assert "certified" not in text


def test_a_matrix_that_breaks_a_promise_is_refused_and_measured_without_one(
    people: Path, tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "pram.csv"
    path.write_text('"red","green","blue"\n"red",0.8,0.1,0.1\n"green",0.1,0.8,0.1\n"blue",0.1,0.1,0.8\n')  # as R does
    words = ["audit", "--matrix", path, people, "--secret", "ill"]
    refused(words, "ColumnError", "--publish")
    words += ["--publish", "colour"]
    found = told(*words)
    assert (found["promise"], found["certified"], found["holds"]) == (None, None, None)
    assert 0 < found["leakage"]["lip"] < found["leakage"]["ldp"]
    assert "ill = " in found["worst"]["lip"]
    refused([*words, "--epsilon", 0.01], "GuaranteeError", "LIP ε = 0.01 must hold", "more", "It keeps ε = ")
    kept = told(*words, "--promise", "ldp", "--epsilon", found["leakage"]["ldp"] * 1.001)
    assert (kept["promise"], kept["holds"]) == ("LDP", True)
    assert kept["certified"] == pytest.approx(found["leakage"]["ldp"])


def test_a_matrix_that_does_not_fit_is_refused(people: Path, out: Path, tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "pram.csv"
    path.write_text("colour,red,green\nred,1,0\ngreen,0,1\n")
    words = ["audit", "--matrix", path, people]
    refused(words, "ColumnError", "--secret")
    refused([*words, "--secret", "ill"], "TableError", "1 of 3 have none")
    refused([*words, "--secret", "ill", "--sanitised", people], "ParameterError", "original table alone")
    refused(
        ["audit", "--matrix", path, out / "owner" / "protocol.json", people], "ParameterError", "original table alone"
    )
    refused(["audit", out / "owner" / "protocol.json"], "ParameterError", "Name the table")
    refused(["audit", out / "owner" / "protocol.json", people, "--epsilon", 1], "ParameterError", "--matrix")


def test_what_changed_since_an_earlier_table_is_told_with_intervals(
    people: Path, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = tmp_path / "june.csv"  # in which two of three red ones have left
    rows = people.read_text().splitlines()
    gone = [line for i, line in enumerate(rows) if "red" not in line or i % 3 == 0]
    later.write_text("\n".join(gone))
    protocol, sanitised = files(out)
    words = ["apply", protocol, later, "--into", tmp_path / "june-out.csv", "--seed", 2, "--accept-drift", "--json"]
    assert said(capsys, *words)[0] == 0
    found = found_by(capsys, "estimate", protocol, tmp_path / "june-out.csv", "--against", sanitised)
    changes = {line["value"]: line for line in found["changes"]}
    before, now = truth(people, "colour"), truth(later, "colour")
    whole = sum(now.values())
    for label, line in changes.items():
        true = now.get((label,), 0.0) / whole - before[label,]
        half = (line["to"] - line["from"]) / 2
        assert abs(line["change"] - true) < 3 * half
    assert changes["red"]["to"] < 0
    text = said(capsys, "estimate", protocol, tmp_path / "june-out.csv", "--against", sanitised)[1]
    assert "Shares before and now" in text
    assert any(line.startswith("colour") and line.rstrip().endswith("*") for line in text.splitlines())
