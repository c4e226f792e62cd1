"""The command line as people use it: real processes, real files."""

import csv
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privacyfunnel.cli.demo_command import program_name
from privacyfunnel.designs.curve import default_methods
from privacyfunnel.designs.methods import DEFAULT_METHOD, METHODS
from privacyfunnel.tables.readers.adult import adult_counts
from tests.commands import refused, run, sanitise, told

ROOT = Path(__file__).parents[2]


def counts_file(path: Path, secret: str, publish: str) -> Path:
    counts, (secrets, values) = adult_counts(secret, publish)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[secret, *values], *([s, *row] for s, row in zip(secrets, counts, strict=True))])
    return path


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    script = (
        "import sys; from privacyfunnel.cli import main; main(['--help']); "
        "print('HEAVY', {'numpy', 'scipy', 'polars', 'matplotlib', 'highspy', 'narwhals'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for command in ("demo", "scan", "sanitise", "audit", "solve", "curve"):
        assert re.search(rf"^  {command} ", done.stdout, re.MULTILINE)
    assert "HEAVY set()" in done.stdout


@pytest.mark.parametrize(
    ("more", "never"),
    [
        (["--no-report"], {"flint", "scipy.optimize", "scipy.stats", "matplotlib", "narwhals"}),
        ([], {"flint", "scipy.optimize", "scipy.stats", "matplotlib", "narwhals"}),
        (
            ["--no-report", "--method", "randomised-response"],
            {"flint", "scipy.linalg._flapack", "scipy.sparse._csr", "highspy", "privacyfunnel.engine"},
        ),
    ],
)
def test_a_release_imports_nothing_that_it_does_not_need(
    adult: Path, tmp_path: Path, more: list[str], never: set[str]
) -> None:
    words = [
        "sanitise",
        "--prior=table",
        adult,
        "--secret",
        "income",
        "--publish",
        "race",
        "-e",
        1,
        "--into",
        tmp_path / "out",
        *more,
    ]
    script = (
        f"import sys; from privacyfunnel.cli import main; assert main({list(map(str, words))!r}) == 0; "
        f"print('HEAVY', {never!r} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "HEAVY set()" in done.stdout


def test_the_script_the_module_and_no_words_at_all_say_the_same() -> None:
    script = Path(sys.executable).parent / "privacyfunnel"
    by_script = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
    assert by_script == run("--help").stdout == run().stdout
    assert run("--version").stdout == "privacyfunnel 0.1.0\n"


def test_help_names_the_default_method_and_every_other() -> None:
    for command, all_options, default in (
        ("solve", "--help-all", "Default: optimal."),
        ("sanitise", "--help-all", f"Default: {DEFAULT_METHOD}"),
    ):
        text = " ".join(run(command, all_options).stdout.replace("-\n", "-").split())
        words = text.split("--method ")[1].split(" --")[0]
        assert default in words
        assert all(name in words.replace("- ", "-") for name in METHODS)


@pytest.mark.parametrize(
    ("words", "utility"),
    [
        (["--method", "randomised-response"], 0.4083),
        (["--method", "conditional-reporting"], 0.2308),
        ([], 1.7766),
    ],
)
def test_solve_gives_the_reference_values(tmp_path: Path, words: list[str], utility: float) -> None:
    path = counts_file(tmp_path / "counts.csv", "occupation", "education")
    found = told("solve", path, "--epsilon", 1, *words)
    assert {"utility", "bound", "leakage", "outputs", "seconds"} <= set(found)
    assert found["utility"] == pytest.approx(utility, abs=5e-5)
    assert set(found["leakage"]) == {"lip", "ldp", "srlip"}
    assert found["leakage"]["lip"] <= 1
    assert found["outputs"] >= 2
    assert found["bound"] is None or 0 <= found["bound"] - found["utility"] < 1e-6 + 1e-9


def test_solve_may_look_at_the_secret_and_then_says_what_that_costs(tmp_path: Path) -> None:
    path = counts_file(tmp_path / "counts.csv", "marital-status", "sex")
    found = told("solve", path, "--epsilon", 0.5, "--sees-secret", "--gap", 1e-4)
    assert found["utility"] == pytest.approx(0.4891, abs=2e-4)
    assert found["leakage"]["lip"] <= 0.5
    assert found["leakage"]["srlip"] is None or found["leakage"]["srlip"] > 0.5
    covered = told("solve", path, "--epsilon", 0.5, "--sees-secret", "--promise", "srlip", "--gap", 1e-4)
    assert covered["leakage"]["srlip"] <= 0.5


def test_solve_reads_probabilities_too(tmp_path: Path) -> None:
    path = tmp_path / "coin.csv"
    path.write_text("s,0,1\n0,0.5,0.0\n1,0.0,0.5\n")
    found = told("solve", path, "--epsilon", 0.5, "--method", "randomised-response")
    assert found["leakage"]["lip"] == pytest.approx(0.5)


def test_a_release_is_sanitised_audited_and_told_in_text_and_json(adult: Path, tmp_path: Path) -> None:
    into = tmp_path / "deep" / "out"
    found = told(*sanitise(adult, into, method="optimal"))
    assert found["rows"] == 48_842
    assert found["certified"] <= found["epsilon"] == 1
    assert found["for_publication"] is True
    assert (into / "public" / "sanitised.csv").read_text().splitlines()[0] == "education,outcome"
    again = told(
        *("audit", into / "owner" / "protocol.json", adult, "--secret", "occupation"),
        *("--sanitised", into / "public" / "sanitised.csv"),
    )
    assert again["holds"] is True
    assert again["certified"] == found["certified"] <= again["stated"] <= 1
    assert again["draw"]["consistent"] is True
    text = run(*sanitise(adult, into, "--force", "--details", method="conditional-reporting"))
    assert "ε = 1, certified 1 " in text.stdout
    assert "not promised" in text.stdout
    assert "This protocol reads occupation" in text.stdout
    assert text.stderr == ""


def test_the_protocol_file_holds_no_counts_and_no_key(adult: Path, tmp_path: Path) -> None:
    told(*sanitise(adult, tmp_path / "out"))
    content = json.loads((tmp_path / "out" / "owner" / "protocol.json").read_text())
    assert set(content) == {
        *("format", "version", "made_with", "promise", "certificate", "secret", "publish", "combinations"),
        *("for_publication", "sees_secret", "kind", "law", "induced", "substitutes", "digest"),
    }
    assert content["secret"] == {"columns": ["occupation"], "labels": []}


def test_scan_sorts_by_what_leaks_most_and_marks_what_is_safe(adult: Path) -> None:
    found = told("scan", adult, "--secret", "income", "--epsilon", 0.75)
    columns = found["columns"]
    assert {look["column"] for look in columns} == set(adult.read_text().split("\n", 1)[0].split(",")) - {"income"}
    sizes = [math.inf if look["lip"] is None else look["lip"] for look in columns]
    assert sizes == sorted(sizes, reverse=True)
    by_name = {look["column"]: look for look in columns}
    assert [name for name, look in by_name.items() if look["safe"]] == ["race"]
    assert by_name["race"]["lip"] == pytest.approx(0.7153, abs=5e-5)
    assert (by_name["workclass"]["lip"], by_name["workclass"]["lip_is"]) == (None, "unbounded")
    text = run("scan", adult, "--secret", "income", "--epsilon", 0.75)
    assert "LIP ε = 0.75 (×2.12) is kept by a single column unchanged: race." in text.stdout


def test_scan_judges_numbers_exactly_and_in_bins_and_survives_what_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [f"{i},{'ab'[i % 3 == 0]},{i * 7919 % 1000},{'xy'[i % 2]}" for i in range(3000)]
    path.write_text("id,secret,income,side\n" + "\n".join(rows) + "\n")
    found = {look["column"]: look for look in told("scan", path, "--secret", "secret")["columns"]}
    assert not found["income"]["binned"]
    assert found["income"]["values"] == 1000
    assert found["income"]["in_bins"]["values"] == 8
    assert found["side"]["safe"]
    refused(["scan", path, "--secret", "secert"], "ColumnError", "Did you mean 'secret'?")
    refused(["scan", path, "--secret", "id,secret,income,side"], "ColumnError", "besides the secret")


def test_sanitise_writes_the_reports_that_are_asked_for(adult: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"
    words = [word for word in sanitise(adult, into, publish="race") if word != "--no-report"]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    owner, public = ((into / name).read_text(encoding="utf-8") for name in ("owner/report.html", "public/README.html"))
    assert "Do not publish it" in owner
    assert "sanitise" in owner
    assert "Armed-Forces" in owner
    assert "Armed-Forces" not in public
    assert f"{into / 'owner'}   protocol.json, report.html" in done.stdout
    (into / "public" / "sanitised.csv").unlink()
    (into / "owner" / "protocol.json").unlink()
    refused(words, "OutputError", "out' exists already", "--force")
    assert not (into / "public" / "sanitised.csv").exists()


def test_the_demo_runs_twice_only_when_forced_and_what_it_proposes_works(tmp_path: Path) -> None:
    first = run("demo", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        ".privacyfunnel-ledger.json",
        "adult.csv",
        "domain.json",
        "out",
    ]
    assert "were merged" not in first.stdout, "the demo names every label"
    again = run("demo", cwd=tmp_path)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert run("demo", "--force", cwd=tmp_path).returncode == 0
    proposed = re.findall(r"^  ([^-].* (?:estimate|scan|audit|sanitise|curve) .*)$", first.stdout, re.MULTILINE)
    assert len(proposed) == 5
    for line in proposed:  # as somebody would paste it, where no privacyfunnel is on the path
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_commands_that_are_proposed_begin_as_the_program_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / ".venv" / "bin" / "privacyfunnel"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert program_name() == ".venv/bin/privacyfunnel"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program_name() == "privacyfunnel"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == str(script)


def test_a_curve_is_a_table_and_three_files(tmp_path: Path) -> None:
    path = counts_file(tmp_path / "counts.csv", "occupation", "race")
    into = tmp_path / "curve"
    found = told("curve", path, "--epsilons", "0.5,1", "--into", into)
    assert {point["name"].removesuffix(", sees secret") for point in found["points"]} == set(default_methods())
    best = {p["epsilon"]: p for p in found["points"] if p["name"] == "optimal"}
    for point in found["points"]:
        if not point["name"].endswith("sees secret"):
            assert point["utility"] <= best[point["epsilon"]]["bound"] + 1e-9
    assert sorted(path.name for path in into.iterdir()) == ["curve.csv", "curve.png", "curve.svg"]
    assert (into / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (into / "curve.svg").read_text()
    assert len((into / "curve.csv").read_text().splitlines()) == 1 + len(found["points"])
    refused(["curve", path, "--into", into], "OutputError", "--force")
    refused(["curve", path, "--secret", "occupation"], "ColumnError", "--publish")


@pytest.mark.skipif(shutil.which("head") is None, reason="needs a pipe to close")
def test_a_reader_that_goes_away_is_no_error(adult: Path) -> None:
    command = (
        f"{sys.executable} -m privacyfunnel scan {adult} --secret income --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
