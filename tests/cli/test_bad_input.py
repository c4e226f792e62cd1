"""Bad input through the real command: one sentence that says what to do, exit code 2, nothing written."""

import csv
import ctypes
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.commands import begun, files_of, refused, run, sanitise


@pytest.fixture(scope="session")
def released(adult: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("released")
    done = run(*sanitise(adult, into, "--keep-order"))
    assert done.returncode == 0, done.stderr
    return into


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.mark.parametrize("epsilon", ["much", "-1", "nan", "inf", "1_0"])
def test_an_epsilon_that_is_none_is_refused(adult: Path, into: Path, epsilon: str) -> None:
    refused(
        sanitise(adult, into, epsilon=epsilon), "ParameterError", "--epsilon must be a finite number at least 0; got "
    )
    assert not into.exists()


@pytest.mark.parametrize(
    ("changed", "kind", "part"),
    [
        ({"publish": "eduction"}, "ColumnError", "no column 'eduction' among 9. Did you mean 'education'?"),
        ({"secret": "occupatoin"}, "ColumnError", "Did you mean 'occupation'?"),
        ({"publish": "education,education"}, "ColumnError", "named twice"),
        ({"publish": "occupation"}, "ColumnError", "cannot be secret and published"),
        ({"keep": "occupation"}, "ColumnError", "cannot be kept"),
        ({"keep": "education"}, "ColumnError", "cannot be kept"),
        ({"keep": "rase"}, "ColumnError", "Did you mean 'race'?"),
        ({"method": "magic"}, "ParameterError", "A method is one of"),
        ({"promise": "trust"}, "ParameterError", "A promise is one of"),
        ({"bin": "education=0,1"}, "ColumnError", "must hold numbers to be binned"),
        ({"bin": "education"}, "ParameterError", "bins look like"),
        ({"bin": "race=values"}, "ColumnError", "neither secret nor published"),
        ({"format": "xlsx"}, "ParameterError", "--format"),
    ],
)
def test_columns_and_names_that_cannot_be_are_refused(
    adult: Path, into: Path, changed: dict[str, object], kind: str, part: str
) -> None:
    refused(sanitise(adult, into, **changed), kind, part)
    assert not into.exists()


@pytest.mark.parametrize(
    ("publish", "part"),
    [("eduction", "Did you mean 'education'?"), ("occupation", "cannot be secret and published")],
)
def test_a_design_refuses_columns_that_cannot_be(adult: Path, tmp_path: Path, publish: str, part: str) -> None:
    words = [
        "design",
        "--prior=table",
        adult,
        "--secret",
        "occupation",
        "--publish",
        publish,
        "--epsilon",
        1,
    ]
    refused([*words, "--into", tmp_path / "protocol.json"], "ColumnError", part)
    assert not (tmp_path / "protocol.json").exists()


def test_randomised_response_does_not_look_at_the_secret(adult: Path, into: Path) -> None:
    refused(sanitise(adult, into, "--sees-secret"), "ParameterError", "never looks at the secret")
    assert not into.exists()


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "header only": (b"occupation,education\n", "header only"),
    "long row": (b"occupation,education\na,b\nc,d,e\n", "line 3 has 3"),
    "short row": (b"occupation,education\na,b\nc\n", "line 3 has 1"),
    "damaged": ("occupation,education\nMüller,b\nc,d\n".encode() + b"M\xfcller,b\n", "--encoding"),
    "binary": (bytes(range(256)) * 20, "binary"),
    "one secret": (b"occupation,education\na,b\na,c\n", "at least two values"),
    "one value": (b"occupation,education\na,b\nc,b\n", "at least two values"),
    "repeated name": (b"occupation,education,education\na,b,c\nd,e,f\n", "'education' occurs twice"),
    "open quote": (b'occupation,education\na,"b\nc,d\n', "quote"),
}


@pytest.mark.parametrize("content", FILES)
def test_files_that_are_no_usable_table_are_refused(tmp_path: Path, into: Path, content: str) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(FILES[content][0])
    kind = "ColumnError" if content.startswith("one") else "TableError"
    refused(sanitise(path, into), kind, FILES[content][1])
    assert not into.exists()


@pytest.mark.parametrize("name", ["people.parquet", "people.arrow", "people.csv.gz"])
def test_files_that_are_not_what_their_name_says_are_refused(tmp_path: Path, into: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x1f\x8bnot really")
    refused(sanitise(path, into), "TableError", "Get a fresh copy")
    assert not into.exists()


def test_a_missing_file_a_directory_and_an_unknown_kind_are_refused(tmp_path: Path, into: Path) -> None:
    refused(sanitise(tmp_path / "nobody.csv", into), "TableError", "there is no file")
    (tmp_path / "folder.csv").mkdir()
    refused(sanitise(tmp_path / "folder.csv", into), "TableError", "must mean at least one file")
    refused(sanitise(tmp_path / "people.xls", into), "TableError", "must end in one of", "save it as .xlsx or CSV")
    assert not into.exists()


def bound_by_permissions() -> None:
    """The superuser reads any file, unless the child's bounding set lacks the two capabilities that say so."""
    libc = ctypes.CDLL(None)
    for overrides in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
        libc.prctl(24, overrides)  # PR_CAPBSET_DROP


def test_an_unreadable_file_is_refused(tmp_path: Path, into: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("occupation,education\na,b\nc,d\n")
    path.chmod(0)
    done = begun(*sanitise(path, into), preexec_fn=bound_by_permissions)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("TableError: ")
    assert "permission denied" in done.stderr
    assert not into.exists()


def test_numbers_that_are_not_binned_are_refused_with_the_way_to_bin_them(tmp_path: Path, into: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("occupation,age\n" + "".join(f"{'ab'[i % 2]},{i // 3}\n" for i in range(300)))
    refused(sanitise(path, into, publish="age"), "ColumnError", "--bin age=20,40,60,80")
    assert not into.exists()


def test_what_exists_is_left_alone_unless_forced(adult: Path, into: Path) -> None:
    into.mkdir()
    (into / "protocol.json").write_text("mine")
    refused(sanitise(adult, into), "OutputError", "--force")
    refused(sanitise(adult, into, "--force"), "OutputError", "such as 'protocol.json'")
    assert [path.name for path in into.iterdir()] == ["protocol.json"]
    assert (into / "protocol.json").read_text() == "mine"
    (into / "protocol.json").unlink()
    for more in ((), ("--force",)):
        assert run(*sanitise(adult, into, *more)).returncode == 0
        assert files_of(into) == {"owner/protocol.json", "public/sanitised.csv"}


def test_the_table_itself_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "sanitised.csv"
    path.write_text("occupation,education\na,b\nc,d\n")
    refused(sanitise(path, tmp_path, "--force"), "OutputError", "must not contain the input")
    assert path.read_text() == "occupation,education\na,b\nc,d\n"


def test_a_file_where_the_folder_should_be_is_refused(adult: Path, into: Path) -> None:
    into.write_text("mine")
    refused(sanitise(adult, into), "OutputError")
    assert into.read_text() == "mine"


def test_a_full_disk_leaves_nothing_behind(adult: Path, into: Path) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = begun(*sanitise(adult, into), preexec_fn=full)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("OutputError: ")
    assert "disk is full" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not into.exists()


@pytest.fixture(scope="session")
def many(adult: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    header, *rows = adult.read_bytes().splitlines(keepends=True)
    path = tmp_path_factory.mktemp("many") / "many.csv"
    path.write_bytes(header + b"".join(rows) * 20)
    return path


def started_writing(many: Path, into: Path) -> "subprocess.Popen[bytes]":
    words = sanitise(many, into, format="csv.gz")
    process = subprocess.Popen([sys.executable, "-m", "privacyfunnel", *map(str, words)], stderr=subprocess.PIPE)
    while process.poll() is None and not list(into.parent.glob(".privacyfunnel.*.part")):
        time.sleep(0.001)
    return process


def test_a_killed_process_leaves_no_file_under_its_final_name(many: Path, into: Path) -> None:
    with started_writing(many, into) as process:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not into.exists()


def test_an_interrupted_process_leaves_nothing(many: Path, into: Path) -> None:
    with started_writing(many, into) as process:
        process.send_signal(signal.SIGINT)
        said = process.stderr.read() if process.stderr else b""
    assert process.returncode == 130, said
    assert not into.exists()


# -- protocol files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def altered(released: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes the released protocol file with a change, and with a digest that fits it unless told otherwise."""

    def write(change: Callable[[Any], None], *, digested: bool = True) -> Path:
        content = json.loads((released / "owner" / "protocol.json").read_text())
        change(content)
        if digested:
            del content["digest"]
            canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            content["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
        path = tmp_path / "protocol.json"
        path.write_text(json.dumps(content))
        return path

    return write


def louder(content: Any) -> None:
    """Every row tells its value with certainty."""
    content["law"]["rows"] = [[[x, str(2**64)]] for x in range(len(content["law"]["rows"]))]


def unbalanced(content: Any) -> None:
    y, weight = content["law"]["rows"][0][0]
    content["law"]["rows"][0][0] = [y, str(int(weight) + 1)]


def older(content: Any) -> None:
    content["version"] = 0


def stricter(content: Any) -> None:
    """Promises more than its integers keep."""
    content["promise"]["epsilon"] = 0.5
    content["certificate"]["epsilon"] = 0.5


def short(content: Any) -> None:
    content["law"]["rows"].pop()


def without_law(content: Any) -> None:
    del content["law"]


@pytest.mark.parametrize(
    ("change", "kind", "part"),
    [
        (older, "ProtocolFileError", "version 0"),
        (unbalanced, "ProtocolFileError", "sum to 2^64"),
        (without_law, "ProtocolFileError", "the file must state 'law'; it does not"),
        (short, "ProtocolFileError", "a row for each of 16 inputs"),
        (louder, "GuaranteeError", "LIP promised ε = 1; this protocol leaks without bound"),
        (stricter, "GuaranteeError", "LIP promised ε = 0.5; this protocol leaks 0.5 more"),
    ],
)
def test_a_protocol_file_altered_with_care_is_found_out(
    adult: Path, altered: Callable[..., Path], change: Callable[[Any], None], kind: str, part: str
) -> None:
    refused(["audit", altered(change), adult, "--secret", "occupation"], kind, part)


def test_a_damaged_protocol_file_is_found_out(adult: Path, altered: Callable[..., Path]) -> None:
    refused(["audit", altered(louder, digested=False), adult], "ProtocolFileError", "does not match its digest")


@pytest.mark.parametrize("content", ["", "not json", "[1, 2]", '{"format": "another"}', "\0\0"])
def test_what_is_no_protocol_file_is_refused(adult: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "protocol.json"
    path.write_text(content)
    refused(["audit", path, adult], "ProtocolFileError", "protocol.json")


def test_a_missing_protocol_file_is_refused(adult: Path, tmp_path: Path) -> None:
    refused(["audit", tmp_path / "owner" / "protocol.json", adult], "ProtocolFileError", "no protocol file")


def test_categories_the_protocol_does_not_know_are_refused(adult: Path, released: Path, tmp_path: Path) -> None:
    path = tmp_path / "more.csv"
    path.write_text(adult.read_text() + "Private,Bootcamp,Divorced,Sales,Husband,White,Male,France,<=50K\n")
    refused(["audit", released / "owner" / "protocol.json", path], "TableError", "1 rows hold 1 others")


def test_other_rows_than_the_protocol_was_made_for_do_not_pass(adult: Path, released: Path, tmp_path: Path) -> None:
    with adult.open(newline="") as file:
        rows = list(csv.reader(file))
    path = tmp_path / "other.csv"
    telling = [row for row in rows[1:] if (row[1] == "Doctorate") == (row[3] == "Prof-specialty")]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *telling])
    refused(["audit", released / "owner" / "protocol.json", path], "GuaranteeError")


def test_another_secret_than_the_protocol_protects_is_refused(adult: Path, released: Path) -> None:
    refused(
        ["audit", released / "owner" / "protocol.json", adult, "--secret", "income"],
        "ColumnError",
        "protects occupation",
    )


def test_a_table_that_was_not_drawn_from_the_protocol_is_found_out(adult: Path, released: Path, tmp_path: Path) -> None:
    lines = (released / "public" / "sanitised.csv").read_text().splitlines(keepends=True)
    cases = {
        "GuaranteeError": [lines[0], *reversed(lines[1:])],
        "TableError": lines[:-1],
        "ColumnError": ["something\n", *lines[1:]],
    }
    for kind, content in cases.items():
        path = tmp_path / f"{kind}.csv"
        path.write_text("".join(content))
        refused(["audit", released / "owner" / "protocol.json", adult, "--sanitised", path, "--keep-order"], kind)


# -- the command line itself -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["sanitize"], "No such command 'sanitize'. Did you mean 'sanitise'?"),
        (["solve"], "Missing argument"),
        (["solve", "counts.csv", "--epsilon", "1", "--fast"], "--fast"),
        (["solve", "counts.csv", "--epsilon", "1", "--gap", "0"], "gap must be a finite number above 0"),
        (
            ["solve", "counts.csv", "--epsilon", "1", "--time-limit", "-3"],
            "limit must be a finite number above 0",
        ),
    ],
)
def test_words_that_make_no_command_are_refused(words: list[str], part: str) -> None:
    refused(words, "ParameterError", part)


COUNTS: dict[str, tuple[str, str, str]] = {
    "zero row": ("s,a,b\n1,0,0\n2,3,4\n", "DistributionError", "Every secret"),
    "zero column": ("s,a,b\n1,0,2\n2,0,4\n", "DistributionError", "Every value must occur"),
    "negative": ("s,a,b\n1,-1,2\n2,1,4\n", "DistributionError", "at least 0"),
    "words": ("s,a,b\n1,x,2\n2,1,4\n", "DistributionError", "whole numbers"),
    "not one": ("s,a,b\n1,0.5,0.1\n2,0.1,0.1\n", "DistributionError", "must sum to 1"),
    "ragged": ("s,a,b\n1,1\n2,1,4\n", "TableError", "3 fields"),
    "empty": ("", "TableError", "must hold a header"),
    "repeated": ("s,a,a\n1,1,2\n2,1,4\n", "DistributionError", "repeat"),
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts_that_are_no_joint_are_refused(tmp_path: Path, case: str) -> None:
    content, kind, part = COUNTS[case]
    path = tmp_path / "counts.csv"
    path.write_text(content)
    refused(["solve", path, "--epsilon", 1, "--method", "randomised-response"], kind, part)


def test_a_fault_of_ours_exits_with_1_and_says_how_to_see_more(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("s,a,b\n1,1,2\n2,2,1\n")
    broken = (
        "import privacyfunnel.model.contingency_csv as c; c.read_counts = None; from privacyfunnel.cli import main; "
    )
    command = [sys.executable, "-c", broken + f"raise SystemExit(main(['solve', '{path}', '--epsilon', '1']))"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "add --debug" in done.stderr


def test_odd_requests_are_refused_and_no_fault(released: Path, adult: Path, tmp_path: Path) -> None:
    """Each ended with 1 once."""
    odd = tmp_path / "lists.parquet"
    names = pl.read_csv(released / "public" / "sanitised.csv", n_rows=1).columns
    pl.DataFrame({name: [[1], [2]] for name in names}).write_parquet(odd)
    refused(["estimate", released / "protocol.json", odd], "ColumnError", "must hold text, numbers")
    refused(["keygen", "."], "OutputError", "it is a directory")
    words = sanitise(adult, tmp_path / "out", "--average", "1e-12", method="optimal", publish="sex", secret="income")
    refused(words, "ParameterError", "must be 0 or a finite number of nats, at least 1e-09")
