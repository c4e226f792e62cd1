"""Design once, apply every month: through the command, on files."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privacyfunnel import SealedProtocol
from privacyfunnel.atomic_files import MANIFEST
from tests.commands import found_by, said, turned_down

Capsys = pytest.CaptureFixture[str]


def month(first: int, n: int = 400) -> pl.DataFrame:
    ids = range(first, first + n)
    town = [i * 5 % 7 % 3 for i in ids]
    job = [(t + (i % 5 > 2)) % 3 for t, i in zip(town, ids, strict=True)]
    return pl.DataFrame({"id": ids, "job": [f"j{j}" for j in job], "town": ["klm"[t] for t in town]})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two months, a protocol designed on the first, and a key."""
    folder = tmp_path_factory.mktemp("months")
    month(0).write_csv(folder / "may.csv")
    month(100).write_csv(folder / "june.csv")
    month(100).write_parquet(folder / "june.parquet")
    from privacyfunnel.cli import main

    words = ["--secret", "job", "--publish", "town", "-e", "0.2", "--method", "randomised-response"]
    assert (
        main(["design", "--prior=table", str(folder / "may.csv"), *words, "--into", str(folder / "protocol.json")]) == 0
    )
    assert main(["keygen", "--rows", str(folder / "rows.key")]) == 0
    return folder


def applied(made: Path, rows: str, into: Path, *more: object) -> list[object]:
    return ["apply", made / "protocol.json", made / rows, "--into", into, "--ledger", into.parent / "ledger", *more]


def test_a_protocol_is_its_owners_draws_nothing_and_is_the_one_that_sanitise_makes(
    made: Path, tmp_path: Path, capsys: Capsys
) -> None:
    assert (made / "protocol.json").stat().st_mode & 0o777 == 0o600
    assert not (made / ".privacyfunnel-ledger.json").exists()
    words = ["--secret", "job", "--publish", "town", "-e", "0.2", "--method", "randomised-response"]
    more = ["--into", tmp_path / "out", "--no-report", "--ledger", tmp_path / "ledger"]
    found_by(capsys, "sanitise", "--prior=table", made / "may.csv", *words, *more)
    one, other = map(SealedProtocol.load, (made / "protocol.json", tmp_path / "out"))
    assert one.to_json() == other.to_json()
    month(0).group_by("job", "town").len("n").write_csv(tmp_path / "counts.csv")
    asked = [
        "design",
        "--prior=table",
        tmp_path / "counts.csv",
        *words,
        "--counts",
        "n",
        "--into",
        tmp_path / "counted.json",
    ]
    assert found_by(capsys, *asked)["rows"] == 400
    assert SealedProtocol.load(tmp_path / "counted.json").to_json() == one.to_json()


def test_the_next_month_is_drawn_measured_remembered_and_audited(made: Path, tmp_path: Path, capsys: Capsys) -> None:
    told = found_by(capsys, *applied(made, "june.csv", tmp_path / "june.csv"))
    assert told["rows"] == 400
    assert told["on_these_rows"]["epsilon"] > 0
    assert pl.read_csv(tmp_path / "june.csv").columns == ["town"]
    sentence = turned_down(capsys, *applied(made, "june.parquet", tmp_path / "again.csv"))
    assert "These rows were released before" in sentence
    assert "Together with this one they leak LIP ε = " in sentence
    assert not (tmp_path / "again.csv").exists()
    again = found_by(capsys, *applied(made, "june.csv", tmp_path / "again.parquet", "--again"))
    assert again["ledger"]["together"] > told["on_these_rows"]["epsilon"]
    assert pl.read_parquet(tmp_path / "again.parquet").height == 400


def test_unchanged_people_are_published_once_and_the_ledger_knows(made: Path, tmp_path: Path, capsys: Capsys) -> None:
    keyed = ["--row-id", "id", "--key-file", made / "rows.key", "--keep", "id", "--accept-kept"]
    first = found_by(capsys, *applied(made, "june.csv", tmp_path / "one.csv", *keyed))
    assert first["key_kept"]
    second = found_by(capsys, *applied(made, "june.parquet", tmp_path / "two.csv", *keyed))
    assert second["ledger"]["repeats"] == []
    assert any("is published once" in sentence for sentence in second["ledger"]["said"])
    one, two = (pl.read_csv(tmp_path / name) for name in ("one.csv", "two.csv"))
    assert one["id"].to_list() != two["id"].to_list()
    assert one.sort("id").equals(two.sort("id"))
    key = (made / "rows.key").read_text().splitlines()[1]
    assert all(key not in path.read_text() for path in tmp_path.iterdir())


def test_rows_that_are_not_known_are_said_without_their_values(made: Path, tmp_path: Path, capsys: Capsys) -> None:
    rows = month(0).with_columns(town=pl.when(pl.col("id") < 7).then(pl.lit("Atlantis")).otherwise("town"))
    rows.write_csv(tmp_path / "rows.csv")
    words = ["apply", made / "protocol.json", tmp_path / "rows.csv", "--into", tmp_path / "out.csv"]
    sentence = turned_down(capsys, *words)
    assert "7 of 400 have others (7 in town)" in sentence
    assert "Atlantis" not in sentence
    sentence = turned_down(capsys, *words, "--unknown", "drop")
    assert "leaks up to ε = 0.4168, together with who is left out" in sentence
    assert found_by(capsys, *words, "--unknown", "drop", "--accept-drift")["rows"] == 393
    blurred = found_by(capsys, *words, "--unknown", "blur", "--accept-drift", "--force", "--again")
    assert blurred["unknown"] == {"rows": 7, "columns": {"town": 7}, "became": "blur"}
    assert any("no certificate covers them" in sentence for sentence in blurred["not_promised"])
    assert "Atlantis" not in (tmp_path / "out.csv").read_text()


def _rows(made: Path, into: Path, rows: pl.DataFrame, *more: object) -> list[object]:
    rows.write_csv(into.parent / "rows.csv")
    return ["apply", made / "protocol.json", into.parent / "rows.csv", "--into", into, *more]


def _altered(made: Path, into: Path, old: str, new: str) -> list[object]:
    (into.parent / "p.json").write_text((made / "protocol.json").read_text().replace(old, new))
    return ["apply", into.parent / "p.json", made / "june.csv", "--into", into]


def _open_key(made: Path, into: Path) -> list[object]:
    key = into.parent / "open.key"
    key.write_bytes((made / "rows.key").read_bytes())
    key.chmod(0o644)
    return applied(made, "june.csv", into, "--row-id", "id", "--key-file", key)


BAD: dict[str, tuple[Callable[[Path, Path], list[object]], str]] = {
    "another version": (lambda made, to: _altered(made, to, '"version": 1', '"version": 2'), "of version 2"),
    "other columns": (
        lambda made, to: _rows(made, to, pl.DataFrame({"id": [1], "job": ["j0"]})),
        "'town' is not there",
    ),
    "other types": (
        lambda made, to: _rows(made, to, pl.DataFrame({"town": [1.5, 2.5], "job": ["j0", "j1"]})),
        "2 of 2 have others (2 in town)",
    ),
    "no id": (lambda made, to: applied(made, "june.csv", to, "--row-id", "person"), "no column 'person'"),
    "an id twice": (
        lambda made, to: _rows(made, to, pl.concat([month(0, 3), month(0, 2)]), "--row-id", "id"),
        "2 of 5 rows have an id",
    ),
    "an id missing": (
        lambda made, to: _rows(made, to, month(0, 3).with_columns(id=pl.lit(None)), "--row-id", "id"),
        "missing in 3 of 3 rows",
    ),
    "a key that others can read": (_open_key, "readable by its owner alone"),
    "a key without ids": (lambda made, to: applied(made, "june.csv", to, "--key-file", made / "rows.key"), "--row-id"),
    "the table itself": (
        lambda made, to: ["apply", made / "protocol.json", made / "may.csv", "--into", made / "may.csv", "--force"],
        "is the table itself",
    ),
    "no table": (lambda made, to: applied(made, "june.csv", to.with_suffix(".doc")), "must end in one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    case: str, made: Path, tmp_path: Path, capsys: Capsys
) -> None:
    words, part = BAD[case]
    asked = words(made, tmp_path / "out.csv")
    before = {path: path.read_bytes() for path in (*tmp_path.iterdir(), *made.iterdir())}
    assert part in turned_down(capsys, *asked)
    assert {path: path.read_bytes() for path in (*tmp_path.iterdir(), *made.iterdir())} == before


@pytest.mark.parametrize("place", ["counting", "drawing", "linking"])
def test_an_apply_that_is_killed_leaves_nothing_under_its_name(
    place: str,
    made: Path,
    tmp_path: Path,
    ask: Callable[..., dict[str, Any]],
    capsys: Capsys,
) -> None:
    (tmp_path / "out").mkdir()
    words = [*map(str, applied(made, "june.csv", tmp_path / "out" / "june.csv"))]
    done = ask(words=words, place=place, fault="kill", into=str(tmp_path / "out"))
    assert done["code"] == -9
    assert not (tmp_path / "out" / "june.csv").exists()
    assert said(capsys, *words)[0] == 0
    assert [path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")] == [
        "june.csv",
        "ledger",
    ]


def test_a_summary_says_what_the_promise_means_on_new_rows(made: Path, tmp_path: Path, capsys: Capsys) -> None:
    code, out, _ = said(capsys, *applied(made, "june.csv", tmp_path / "june.csv", "--keep-order"))
    assert code == 0
    assert re.search(r"Protects +\S+: no guess grows by more than ×[\d.]+ \(ε = [\d.]+\) on these rows", out)
    assert json.loads((tmp_path / "ledger").read_text())["releases"][0]["order"] is None


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    folder.mkdir()
    month(0, 150).write_csv(folder / "a.csv")
    month(150, 50).write_csv(folder / "b.csv")
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.parametrize("pattern", ["", "?.csv"])
def test_parts_go_in_and_as_many_come_out_whose_names_and_sizes_tell_nothing(
    pattern: str, made: Path, parts: Path, tmp_path: Path, capsys: Capsys
) -> None:
    keyed = ["--row-id", "id", "--key-file", made / "rows.key", "--keep", "id", "--accept-kept"]
    told = found_by(capsys, "apply", made / "protocol.json", parts / pattern, "--into", tmp_path / "out", *keyed)
    assert told["rows"] == 200
    a, b = (pl.read_csv(tmp_path / "out" / name) for name in ("part-1.csv", "part-2.csv"))
    assert (len(a), len(b)) == (100, 100)
    assert sorted([*a["id"], *b["id"]]) == list(range(200))
    assert max(a["id"]) > 150  # rows go to any part: which one they were in is part of where they stood
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MANIFEST, "part-1.csv", "part-2.csv"]
    words = ["apply", made / "protocol.json", parts / pattern, "--into", tmp_path / "kept", *keyed, "--keep-order"]
    found_by(capsys, *words)
    kept = [pl.read_csv(tmp_path / "kept" / name) for name in ("a.csv", "b.csv")]
    assert [len(part) for part in kept] == [150, 50]
    assert [row for part in kept for row in part["id"]] == list(range(200))
    assert pl.concat(kept).sort("id").equals(pl.concat([a, b]).sort("id"))  # the key draws them alike
    assert "exists already" in turned_down(capsys, *words)
    found_by(capsys, *words, "--force")


@pytest.mark.parametrize(("given", "into"), [("parts", "."), ("parts", "parts"), ("parts/*.csv", "parts")])
def test_an_output_folder_that_contains_the_input_is_refused_and_nothing_is_removed(
    given: str, into: str, made: Path, parts: Path, tmp_path: Path, capsys: Capsys
) -> None:
    before = {path: path.read_bytes() for path in parts.iterdir()}
    words = ["apply", made / "protocol.json", tmp_path / given, "--into", tmp_path / into, "--force"]
    assert "must not contain the input" in turned_down(capsys, *words)
    assert {path: path.read_bytes() for path in parts.iterdir()} == before


def test_force_replaces_a_folder_only_if_this_program_wrote_all_that_is_in_it(
    made: Path, parts: Path, tmp_path: Path, capsys: Capsys
) -> None:
    out = tmp_path / "out"
    words = ["apply", made / "protocol.json", parts, "--into", out, "--force"]
    found_by(capsys, *words)
    (out / "notes.txt").write_text("mine")
    assert "such as 'notes.txt'" in turned_down(capsys, *words)
    (out / "notes.txt").unlink()
    (out / "part-1.csv").write_text("changed by its owner")
    assert "such as 'part-1.csv'" in turned_down(capsys, *words)
    assert (out / "part-1.csv").read_text() == "changed by its owner"
    (out / "part-1.csv").unlink()
    found_by(capsys, *words)
    assert sorted(path.name for path in out.iterdir()) == [MANIFEST, "part-1.csv", "part-2.csv"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".privacyfunnel.")]


def test_parts_that_do_not_go_together_are_refused(made: Path, parts: Path, tmp_path: Path, capsys: Capsys) -> None:
    words = ["apply", made / "protocol.json", parts, "--into", tmp_path / "out"]
    (parts / "c.csv").write_text("id,job,town\n")
    assert "c.csv' must have rows" in turned_down(capsys, *words)
    (parts / "c.csv").write_text("id,town,job\n1,k,j0\n")
    assert "that of 'c.csv' is another than that of 'a.csv'" in turned_down(capsys, *words)
    (parts / "c.csv").rename(parts / "c.txt")
    assert "'c.txt' does not" in turned_down(capsys, *words)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / ".privacyfunnel-ledger.json").exists()


@pytest.mark.parametrize("place", ["drawing", "renaming"])
def test_a_folder_of_parts_that_is_killed_leaves_none(
    place: str, made: Path, parts: Path, tmp_path: Path, ask: Callable[..., dict[str, Any]], capsys: Capsys
) -> None:
    words = [*map(str, ["apply", made / "protocol.json", parts, "--into", tmp_path / "out"])]
    assert ask(words=words, place=place, fault="kill", into=str(tmp_path / "out"))["code"] == -9
    assert not (tmp_path / "out").exists()
    assert said(capsys, *words)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".privacyfunnel-ledger.json", "out", "parts"]


def test_a_folder_is_designed_and_sanitised_as_one_table(
    made: Path, parts: Path, tmp_path: Path, capsys: Capsys
) -> None:
    words = ["--secret", "job", "--publish", "town", "-e", "0.2", "--method", "randomised-response"]
    assert found_by(capsys, "design", "--prior=table", parts, *words, "--into", tmp_path / "p.json")["rows"] == 200
    told = found_by(capsys, "sanitise", "--prior=table", parts, *words, "--into", tmp_path / "out", "--no-report")
    assert told["table"].endswith("sanitised.csv")
    assert pl.read_csv(told["table"]).height == 200
