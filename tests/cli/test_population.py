"""`--population` through the real command."""

import json
import math
from pathlib import Path

import pytest

from privacyfunnel.mechanisms.sealing import SealedProtocol, exact_worst_leak
from privacyfunnel.model.contingency_csv import read_counts
from privacyfunnel.model.promises import LIP
from tests.commands import refused, run, said, sanitise, told

COUNTS = "s,a,b,c\nx,400,300,150\ny,100,250,500\nz,90,90,90\n"


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return path


def test_a_confidence_is_written_in_three_ways(counts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for confidence in ("0.95", "95", "95%"):
        code, out, _ = said(capsys, "solve", counts, "-e", 1, "--gap", 1e-3, "--population", confidence, "--json")
        assert code == 0
        found.append(json.loads(out))
    assert len({answer["utility"] for answer in found}) == 1
    assert found[0]["population"]["confidence"] == 0.95
    assert found[0]["population"]["rows"] == 1970
    assert found[0]["population"]["epsilon"] <= 1.0


@pytest.mark.parametrize("confidence", ["0", "1", "1.5", "100%", "-95", "101", "often", "nan"])
def test_a_confidence_that_is_none_is_refused(
    counts: Path, confidence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, "solve", counts, "-e", 1, f"--population={confidence}")
    assert (code, out) == (2, "")
    assert err.startswith("ParameterError: --population must be between 0 and 1")


def test_a_protocol_for_the_population_leaks_less_on_the_table_and_keeps_less(
    counts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for more in ([], ["--population", "95%"]):
        _, out, _ = said(capsys, "solve", counts, "-e", 1, "--gap", 1e-4, *more, "--json")
        answers.append(json.loads(out))
    plain, population = answers
    assert population["utility"] < plain["utility"]
    assert population["bound"] - population["utility"] <= 1e-4
    assert plain["population"] is None


@pytest.mark.parametrize("method", ["randomised-response", "conditional-reporting"])
@pytest.mark.parametrize("promise", ["lip", "ldp"])
def test_explicit_methods_are_calibrated_to_the_population(
    counts: Path, method: str, promise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["solve", counts, "-e", 1, "--promise", promise, "--method", method, "--population", "95%", "--json"]
    code, out, _ = said(capsys, *words)
    assert code == 0
    found = json.loads(out)
    assert 1.0 - 1e-6 < found["population"]["epsilon"] <= 1.0
    assert found["leakage"][promise] < 1.0
    assert found["utility"] > 0


def test_a_release_says_whom_its_promise_holds_for_and_its_file_too(adult: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"
    words = sanitise(adult, into, "--population", "95%", "--report", secret="income", publish="sex")
    done = run(*words, "--details")
    assert done.returncode == 0, done.stderr
    assert "also for the population, with 95 % confidence" in done.stdout
    assert "for the people whom the 48,842 rows are an independent sample of, with 95 % confidence" in done.stdout
    sealed = SealedProtocol.load(into / "owner" / "protocol.json")
    assert sealed.promise.population is not None
    assert (sealed.promise.population.confidence, sealed.promise.population.rows) == (0.95, 48842)
    audited = told("audit", into / "owner" / "protocol.json", adult)
    assert audited["epsilon"] == 1.0
    weaker = json.loads((into / "owner" / "protocol.json").read_text())["promise"]
    assert set(weaker["population"]) == {"confidence", "rule", "rare_below", "rows", "anything_else"}  # and no count
    assert sealed.mechanism.anything_else == 2  # men, women, and anybody else


@pytest.mark.parametrize("more", [["--as", "values"], ["--for", "values:margin"]])
def test_whatever_has_no_row_for_anything_else_promises_the_values_that_are_listed(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = tmp_path / "people.csv"
    people.write_text("s,x\n" + "a,1\na,2\na,1\nb,2\nb,3\nb,2\n" * 300)
    words = [
        "sanitise",
        "--prior=table",
        people,
        "--secret",
        "s",
        "--publish",
        "x",
        "-e",
        "0.5",
        "--population",
        "95%",
        *more,
    ]
    code, _, err = said(capsys, *words, "--into", tmp_path / "out", "--gap", "0.01")  # with its report, and its curve
    assert code == 0, err
    sealed = SealedProtocol.load(tmp_path / "out" / "owner" / "protocol.json")
    assert sealed.promise.population is not None
    assert not sealed.promise.anything_else
    assert sealed.mechanism.anything_else is None


def test_a_sample_too_small_is_refused_with_the_size_that_would_do(tmp_path: Path) -> None:
    small = tmp_path / "small.csv"
    small.write_text("s,a,b\nx,30,10\ny,30,30\n")
    refused(["solve", small, "-e", 1, "--population", "95%"], "ParameterError", "A sample of 500 such rows would do")


def test_a_curve_is_drawn_for_a_population(counts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["curve", counts, "--epsilons", "0.5,1", "--gap", 1e-3, "--population", "0.9", "--json"]
    code, out, _ = said(capsys, *words)
    assert code == 0
    found = json.loads(out)
    assert found["population"] == 0.9
    best = {point["epsilon"]: point["utility"] for point in found["points"] if point["name"] == "optimal"}
    assert 0 < best[0.5] < best[1.0]


def test_the_sealed_optimum_keeps_it_exactly(counts: Path) -> None:
    from privacyfunnel.designs.optimal.optimum import optimal

    joint = read_counts(counts)
    promise = LIP(1.0).for_population(joint)
    sealed = optimal(joint, promise, gap=1e-3).sealed
    assert sealed is not None
    ratio = exact_worst_leak(sealed.mechanism, promise, joint).ratio
    assert ratio is not None
    assert math.exp(0.99) < ratio <= math.e


@pytest.mark.parametrize("use", ["values", "statistics"])
def test_other_uses_are_solved_for_a_population_too(counts: Path, use: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "solve", counts, "-e", 1, "--population", "95%", "--for", use, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["use"] == use
    assert answer["population"]["epsilon"] <= 1.0
    assert 0 < answer["bound"] <= answer["value"] <= 1.002 * answer["bound"]


def test_where_totals_crowd_at_200_rows_another_limit_is_taken_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people, counts = tmp_path / "people.csv", {"common": 5000} | {f"s{n}": n for n in range(100, 280, 15)}
    rows = [f"{secret},{'ab'[i % 2]}\n" for secret, n in counts.items() for i in range(n)]
    people.write_text("s,x\n" + "".join(rows))
    protocol = tmp_path / "protocol.json"
    words = [
        "design",
        "--prior=table",
        people,
        "--secret",
        "s",
        "--publish",
        "x",
        "-e",
        "1",
        "--population",
        "95%",
        "--into",
        protocol,
    ]
    code, out, err = said(capsys, *words, "--details")
    assert code == 0, err
    limit = json.loads(protocol.read_text())["promise"]["population"]["rare_below"]
    assert limit > 200
    assert f"Secrets of fewer than {limit} rows, or of none, are promised as one group" in out
    code, out, err = said(capsys, "audit", protocol, people)
    assert code == 0, err
    assert f"secrets of fewer than {limit} rows together" in out


def test_apply_takes_a_value_never_seen_by_the_default_use_and_the_certificate_covers_it(tmp_path: Path) -> None:
    people, later, drifted = (tmp_path / f"{name}.csv" for name in ("people", "later", "drifted"))
    seen = "a,1\na,2\na,1\nb,2\nb,3\nb,2\n"
    people.write_text("s,x\n" + seen * 300)
    later.write_text("s,x\n" + (seen * 2 + "a,4\nb,4\n") * 10)
    drifted.write_text("s,x\n" + "a,1\nb,4\nb,2\n" * 20)
    words = [
        "sanitise",
        "--prior=table",
        people,
        "--secret",
        "s",
        "--publish",
        "x",
        "-e",
        "1",
        "--population",
        "95%",
        "--no-report",
    ]
    done = run(*words, "--details", "--into", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    sealed = SealedProtocol.load(tmp_path / "out" / "owner" / "protocol.json")
    assert sealed.mechanism.anything_else == 3
    assert sealed.promise.anything_else
    assert "statistics" in done.stdout
    assert told("audit", tmp_path / "out" / "owner" / "protocol.json", people)["epsilon"] <= 1.0
    apply, into = ["apply", tmp_path / "out" / "owner" / "protocol.json"], ["--into", tmp_path / "a.csv"]
    refused([*apply, later, *into], "TableError", "20 of 140", "by its row for anything else")
    refused([*apply, drifted, *into, "--unknown", "blur"], "GuaranteeError", "must hold on these rows")
    taken = run(*apply, later, *into, "--unknown", "blur")
    assert taken.returncode == 0, taken.stderr
    assert "by the protocol's row for anything else, which the promise for the people covers" in taken.stdout
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 141
