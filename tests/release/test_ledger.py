"""The ledger: a second release of the same rows is noticed, whatever happened to the first, and no entry is lost."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privacyfunnel import LIP, locks, sanitise_file
from privacyfunnel.audits.protocol_audit import audit_composition
from privacyfunnel.errors import LedgerError, OutputError
from privacyfunnel.release.ledger.ledger_file import BEGUN, FINISHED, NAME, REPLACED, Entry, Ledger
from privacyfunnel.release.ledger.repeats import LedgerReport
from privacyfunnel.release.release import Release
from privacyfunnel.spec import ReleaseSpec
from tests.commands import found_by, refused, said, sanitise, told, turned_down


@pytest.fixture
def people(some: Path, tmp_path: Path) -> Path:
    """A table of its own, with a ledger of its own beside it."""
    table = tmp_path / "data" / "people.csv"
    table.parent.mkdir()
    table.write_bytes(some.read_bytes())
    return table


def release(people: Path, into: str = "out", *, force: bool = False, again: bool = False, **more: Any) -> Release:
    asked: dict[str, Any] = {
        "prior": "table",
        "secret": ("occupation",),
        "publish": ("sex",),
        "promise": LIP(1),
        **more,
    }
    order = ReleaseSpec(method="randomised-response", **asked)
    return sanitise_file(people, replace(order, into=people.parent.parent / into, force=force, again=again))


def noted(people: Path, *given: str, **more: Any) -> LedgerReport:
    """What the ledger says of a release."""
    found = release(people, *given, **more).remembered
    assert found is not None
    return found


def states(people: Path) -> list[str]:
    return [entry.state for entry in Ledger(people.parent / NAME).entries()]


def test_a_second_release_of_the_same_rows_is_refused_with_what_both_say_together(people: Path, tmp_path: Path) -> None:
    words = sanitise(people, tmp_path / "one", publish="sex", secret="income", epsilon=0.1)
    done = told(*words)
    assert done["ledger"]["file"] == str(people.parent / NAME)
    assert (people.parent / NAME).stat().st_mode & 0o777 == 0o600
    again = sanitise(people, tmp_path / "two", publish="sex", secret="income", epsilon=0.1)
    protocol = tmp_path / "one" / "owner" / "protocol.json"
    leak = audit_composition([protocol, protocol], people).composed.epsilon
    assert leak > 0.1
    refused(
        again,
        "LedgerError",
        "were released before",
        "can leak more than their ε added",
        "nothing was solved",
        "--again",
    )
    assert not (tmp_path / "two").exists()
    twice = told(*again, "--again")
    assert twice["ledger"]["together"] == pytest.approx(leak)
    assert twice["ledger"]["repeats"] == [str(tmp_path / "one" / "public" / "sanitised.csv")]
    assert states(people) == [FINISHED, FINISHED]


def test_the_refusal_names_no_value_of_the_secret(people: Path, tmp_path: Path, capsys: Any) -> None:
    found_by(capsys, *sanitise(people, tmp_path / "one", publish="sex"))
    sentence = turned_down(capsys, *sanitise(people, tmp_path / "two", publish="sex"))
    values = pl.read_csv(people, infer_schema=False)["occupation"].unique().to_list()
    assert not any(value in sentence for value in values if len(value) > 1)


def test_the_ledger_states_no_value_of_the_secret_and_no_count(people: Path) -> None:
    release(people)
    text = (people.parent / NAME).read_text(encoding="utf-8")
    values = pl.read_csv(people, infer_schema=False)["occupation"].value_counts()
    assert not any(value in text for value in values["occupation"] if len(value) > 1)
    entry = Ledger(people.parent / NAME).entries()[0]
    assert not {entry.rows} & set(values["count"])
    assert set(entry.columns) == {"occupation", "sex"}


def test_rows_are_recognised_in_another_order_another_file_and_with_other_columns(people: Path) -> None:
    release(people)
    other = people.with_name("other.parquet")
    pl.read_csv(people, infer_schema=False).sample(fraction=1, shuffle=True, seed=1).write_parquet(other)
    with pytest.raises(LedgerError, match="were released before"):
        release(other, "two", publish=("race",))
    with pytest.raises(LedgerError, match="were released before"):
        release(people, "three", secret=("occupation", "income"), publish=("race",))
    assert states(people) == [FINISHED]


def test_other_rows_and_seeds_are_no_repeat_and_other_secrets_are_told(people: Path) -> None:
    release(people)
    fewer = people.with_name("fewer.csv")
    pl.read_csv(people, infer_schema=False).head(700).write_csv(fewer)
    assert noted(fewer, "two").statements == ()
    assert noted(people, "three", seed=1).repeats == ()
    found = noted(people, "four", secret=("income",))
    assert found.repeats == ()
    assert [entry.secret for entry in found.others] == [("occupation",)]
    assert "An audit of all their protocols" in found.statements[0]


def test_a_release_in_the_same_place_replaces_the_earlier_one_and_says_so(people: Path) -> None:
    release(people)
    found = noted(people, force=True)
    assert found.repeats == ()
    assert "If that was ever handed out, both count" in found.statements[0]
    assert states(people) == [REPLACED, FINISHED]
    with pytest.raises(LedgerError):
        release(people, "two")
    with pytest.raises(LedgerError):
        release(people, "two", force=True)


def test_a_release_that_fails_leaves_no_entry_and_one_that_stands_has_one(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from privacyfunnel.tables.writers import table_writer

    def full(*_: Any, **__: Any) -> int:
        assert states(people) == [BEGUN]
        raise OSError(28, "No space left on device")

    def stopped(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    for failure, error in ((full, OutputError), (stopped, KeyboardInterrupt)):
        with monkeypatch.context() as patch:
            patch.setattr(table_writer, "write_batches", failure)
            with pytest.raises(error):
                release(people)
        assert states(people) == []
    release(people)
    assert states(people) == [FINISHED]


def altered(people: Path, **changed: Any) -> None:
    """The ledger with its only entry changed."""
    book = Ledger(people.parent / NAME)
    salt, (entry,) = book._content()
    book._write(salt, (replace(entry, **changed),))


def test_what_a_killed_run_had_begun_is_settled_by_looking(people: Path, tmp_path: Path) -> None:
    release(people)
    altered(people, state=BEGUN)
    with pytest.raises(LedgerError, match="was made on"):  # it stands, so it was finished
        release(people, "two")
    (tmp_path / "out" / "owner" / "protocol.json").unlink()
    assert noted(people, "two").repeats == ()  # it never stood
    assert states(people) == [FINISHED]


def test_a_release_that_another_run_is_making_counts(people: Path, tmp_path: Path) -> None:
    release(people)
    (tmp_path / "out" / "owner" / "protocol.json").unlink()
    altered(people, state=BEGUN)
    book = Ledger(people.parent / NAME)
    with locks.mark_run(book._run_mark(book.entries()[0])), pytest.raises(LedgerError, match="is just being made"):
        release(people, "two")
    release(people, "two")
    assert states(people) == [FINISHED]


def test_what_a_killed_run_made_on_a_cluster_counts_for_nobody_here_can_look(people: Path) -> None:
    release(people)
    altered(people, state=BEGUN, table="hdfs://registry/out", protocol_file="hdfs://registry/protocol.json")
    with pytest.raises(LedgerError, match="was made on"):
        release(people, "two")


def test_two_runs_that_release_the_same_rows_at_once_are_told_apart(people: Path) -> None:
    release(people)
    book = Ledger(people.parent / NAME)
    first = book.entries()[0]
    mine = replace(first, name="mine", table="/elsewhere/sanitised.csv", state=BEGUN)
    with (
        pytest.raises(LedgerError, match="overtaken"),
        book.record(mine, known=(), refuse=lambda _: LedgerError("overtaken")),
    ):
        raise AssertionError("not reached")
    assert states(people) == [FINISHED]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"digest": 1}', "changed", "\udcff"],
    ids=["empty", "cut", "list", "null", "no", "x", "b"],
)
def test_a_ledger_that_was_altered_is_refused(people: Path, text: str) -> None:
    release(people)
    book = people.parent / NAME
    if text == "changed":
        text = book.read_text().replace("finished", "replaced")
    book.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(sanitise(people, people.parent / "two"), "LedgerError", "damaged or altered")
    assert not (people.parent / "two").exists()


def test_a_ledger_that_cannot_be_kept_is_refused_before_work_begins(people: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for place, part in (
        ("folder", "is a directory"),
        ("nowhere/ledger", "does not"),
        ("data/people.csv/x", "not a directory"),
    ):
        words = sanitise(people, tmp_path / "out", "--ledger", tmp_path / place)
        refused(words, "LedgerError", "--ledger", part)
    assert not (tmp_path / "out").exists()


def test_another_ledger_can_be_named_and_is_used_by_audit(people: Path, tmp_path: Path, capsys: Any) -> None:
    book = tmp_path / "owner.json"
    found = found_by(capsys, *sanitise(people, tmp_path / "out", "--ledger", book, publish="sex"))
    assert found["ledger"]["file"] == str(book)
    assert json.loads(book.read_text())["privacyfunnel"] == "ledger"
    assert not (people.parent / NAME).exists()
    words = [
        "audit",
        tmp_path / "out" / "owner" / "protocol.json",
        people,
        "--sanitised",
        tmp_path / "out" / "public" / "sanitised.csv",
    ]
    assert found_by(capsys, *words, "--ledger", book)["draw"]["row_by_row"]
    assert not found_by(capsys, *words)["draw"]["row_by_row"]


def test_the_key_of_the_order_is_not_shown(people: Path) -> None:
    release(people)
    (entry,) = Ledger(people.parent / NAME).entries()
    assert isinstance(entry, Entry)
    assert entry.order is not None
    assert entry.order.hex() not in repr(entry)
    assert repr(entry.order) not in repr(entry)


def test_a_trial_is_remembered_and_does_not_count(people: Path, tmp_path: Path) -> None:
    order = ReleaseSpec(
        prior="table", secret=("occupation",), publish=("sex",), promise=LIP(1), method="randomised-response"
    )
    sanitise_file(people, replace(order, into=tmp_path / "trial"), trial=True)
    assert noted(people).repeats == ()
    assert states(people) == [FINISHED, FINISHED]


def test_tables_whose_ledgers_are_links_to_one_share_it(people: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared.json"
    copy = tmp_path / "copy" / "people.csv"
    copy.parent.mkdir()
    copy.write_bytes(people.read_bytes())
    for table in (people, copy):
        (table.parent / NAME).symlink_to(shared)
    release(people, "one")
    assert (people.parent / NAME).is_symlink()
    assert shared.stat().st_mode & 0o777 == 0o600
    with pytest.raises(LedgerError, match="were released before"):
        release(copy, "two")


def test_a_killed_run_that_would_have_replaced_a_release_of_the_same_protocol_never_was(people: Path) -> None:
    release(people)
    book = Ledger(people.parent / NAME)
    salt, (first,) = book._content()
    later = "2999-01-01T00:00:00+00:00"
    killed = replace(first, name="killed", when=later, order=bytes(32), state=BEGUN)
    book._write(salt, (first, killed))
    with pytest.raises(LedgerError, match="were released before"):
        release(people, "two")
    assert noted(people, "two", again=True).repeats == (first,)
    assert [entry.name for entry in book.entries()][:1] == [first.name]
    assert "killed" not in [entry.name for entry in book.entries()]
    # Had its table appeared, it would have taken the place of the other.
    book._write(salt, (first, replace(killed, when="2000-01-01T00:00:00+00:00")))
    assert noted(people, "three", again=True).repeats[0].name == "killed"
    assert [(entry.name, entry.state) for entry in book.entries()][:2] == [(first.name, REPLACED), ("killed", FINISHED)]


def test_a_secret_with_another_name_is_recognised(people: Path) -> None:
    release(people)
    renamed = people.with_name("renamed.csv")
    pl.read_csv(people, infer_schema=False).rename({"occupation": "job", "sex": "gender"}).write_csv(renamed)
    with pytest.raises(LedgerError, match="were released before"):
        release(renamed, "two", secret=("job",), publish=("gender",))


def test_a_table_of_the_same_name_with_rows_added_is_recognised(people: Path) -> None:
    release(people)
    with people.open("a", encoding="utf-8") as file:
        file.write(people.read_text(encoding="utf-8").splitlines()[-1] + "\n")
    with pytest.raises(LedgerError, match="were released before"):
        release(people, "two")
    assert len(noted(people, "two", again=True).repeats) == 1


def test_bad_input_leaves_no_ledger(people: Path, tmp_path: Path) -> None:
    refused(sanitise(people, tmp_path / "out", publish="nothing"), "ColumnError")
    assert not (people.parent / NAME).exists()
    assert not (tmp_path / "out").exists()


def test_a_pipe_is_no_ledger_and_one_that_is_named_must_be_there(people: Path, tmp_path: Path, capsys: Any) -> None:
    os.mkfifo(tmp_path / "pipe")
    words = [*sanitise(people, tmp_path / "out", publish="sex"), "--ledger"]
    assert "damaged or altered" in turned_down(capsys, *words, tmp_path / "pipe")
    found_by(capsys, *words, tmp_path / "ledger")
    out = tmp_path / "out"
    audit = [
        "audit",
        out / "owner" / "protocol.json",
        people,
        "--sanitised",
        out / "public" / "sanitised.csv",
        "--ledger",
    ]
    assert found_by(capsys, *audit, tmp_path / "ledger")["draw"]["consistent"]
    assert "must be there" in turned_down(capsys, *audit, tmp_path / "nowhere")


def test_the_ledger_is_listed_shown_and_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = tmp_path / "people.csv"
    people.write_text("s,x\n" + "a,1\nb,2\na,2\nb,1\n" * 60)
    words = ["sanitise", people, "-s", "s", "-p", "x", "-e", 1, "--prior", "table", "--no-report", "--into"]
    assert said(capsys, *words, tmp_path / "one")[0] == 0
    assert "--again" in turned_down(capsys, *words, tmp_path / "two")
    ledger = ["ledger", "list", "--table", people]
    (entry,) = found_by(capsys, *ledger)["releases"]
    assert entry["table"] == str((tmp_path / "one" / "public" / "sanitised.csv").resolve())
    assert entry["name"][:8] in said(capsys, *ledger)[1]
    assert "LIP ε = 1" in said(capsys, "ledger", "show", entry["name"][:6], "--table", people)[1]
    assert not {"order", "columns", "salt"} & {*entry}  # what undoes the order of rows, and fingerprints
    assert "names 0" in turned_down(capsys, "ledger", "forget", "zz", "--table", people)
    shutil.rmtree(tmp_path / "one")
    assert said(capsys, "ledger", "forget", entry["name"], "--table", people)[0] == 0
    assert found_by(capsys, *ledger)["releases"] == []
    assert said(capsys, *words, tmp_path / "two")[0] == 0


def test_ledgers_of_two_machines_are_merged_and_then_know_the_rows_of_both(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there" / "copy.csv"  # on another machine, under another name
    there.parent.mkdir()
    there.write_bytes(people.read_bytes())
    release(there, "elsewhere")
    mine, theirs = people.parent / NAME, there.parent / NAME
    assert release(people, "one").remembered is not None  # nobody knows yet
    found = found_by(capsys, "ledger", "merge", theirs, "--ledger", mine)
    assert found["new"] == 1
    assert found_by(capsys, "ledger", "merge", theirs, "--ledger", mine)["new"] == 0
    assert len(Ledger(mine).entries()) == 2
    moved = tmp_path / "third" / "again.csv"
    moved.parent.mkdir()
    moved.write_bytes(people.read_bytes())
    merged = tmp_path / "all.json"
    found_by(capsys, "ledger", "merge", theirs, "--ledger", merged)
    with pytest.raises(LedgerError, match="released before"):
        release(moved, "two", ledger=merged)
    release(moved, "two", ledger=merged, again=True)
    assert {entry.salt for entry in Ledger(merged).entries()} == {"", Ledger(theirs)._content()[0].hex()}
    assert "no 'nowhere.json'" in turned_down(capsys, "ledger", "merge", "nowhere.json", "--ledger", mine)


def test_releases_that_add_up_are_counted_by_their_limits(people: Path) -> None:
    release(people, composable=0.5, anyway=True)
    assert Ledger(people.parent / NAME).entries()[0].promise == "LIP ε = 1, A = 0.5"
    found = noted(people, "two", publish=("race",), composable=0.25, again=True, anyway=True)
    assert found.at_most == 1.5
    assert found.together is not None
    assert found.together.composed.epsilon <= 1.5
    assert "learns at most ε = 1.5" in found.leak_statement
    release(people, "three", publish=("relationship",), again=True, anyway=True)
    assert noted(people, "four", publish=("sex",), again=True, anyway=True).at_most is None  # the third has no limit
