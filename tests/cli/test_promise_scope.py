"""For whom the promise holds, through the real command: these rows, and the people whom they stand for."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.commands import found_by, run, said, sanitise, turned_down

ASKED = {"prior": "table", "secret": "job", "publish": "city", "epsilon": 0.5}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(7)
    job = rng.choice(["clerk", "miner", "spy"], p=[0.6, 0.385, 0.015], size=5000)
    city = np.where(rng.random(5000) < 0.3, np.where(job == "clerk", "A", "B"), rng.choice(["A", "B", "C"], size=5000))
    path = tmp_path_factory.mktemp("table") / "people.csv"
    pl.DataFrame({"job": job, "city": city}).write_csv(path)
    return path


def test_the_summary_says_once_what_is_not_covered_and_how_much(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, *sanitise(table, tmp_path / "out", "--details", **ASKED))
    assert code == 0
    figures = re.findall(r"For others like them it may not \(worst case ×([\d.]+)\); --population 95%", out)
    assert len(figures) == 1
    assert 1.4 < float(figures[0]) < 2.8
    assert re.search(r"rare +population ε pools .*alone spy [\d.]+", out)


def test_the_json_of_a_release_and_of_its_audit_carry_the_same_figure_and_the_public_files_none(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "out"
    release = found_by(capsys, *sanitise(table, into, **ASKED))
    audited = found_by(capsys, "audit", into / "owner" / "protocol.json", table)
    assert release["people"] == audited["people"]
    found = audited["people"]
    assert (found["rows"], found["confidence"], found["certificate"], found["bounded"]) == (5000, 0.95, False, True)
    assert list(found["alone"]) == ["spy"]
    assert found["alone"]["spy"] > audited["certified"]
    protocol = json.loads((into / "owner" / "protocol.json").read_text(encoding="utf-8"))
    assert "population" not in protocol["promise"]
    for name in ("owner/protocol.json", "public/README.html"):
        public = (into / name).read_text(encoding="utf-8")
        assert "confidence" not in public
        assert str(found["epsilon"])[:5] not in public


def test_an_audit_states_both_in_one_sentence(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = tmp_path / "out"
    assert said(capsys, *sanitise(table, into, **ASKED))[0] == 0
    code, out, _ = said(capsys, "audit", into / "owner" / "protocol.json", table, "--details")
    assert code == 0
    assert re.search(
        r"people +certified ε = [\d.]+ for the people in these 5,000 rows; for others like them, if the file is a "
        r"sample, ε is at most [\d.]+ with 95 % confidence, secrets of fewer than 200 rows together \(not promised; "
        r"--population 95% promises it\)",
        out,
    )
    assert re.search(r"rare +population ε pools .*alone spy ", out)


def test_promised_for_the_population_the_figure_is_a_certificate(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "out"
    release = found_by(capsys, *sanitise(table, into, "--population", "90", **ASKED))
    assert not any("sample of" in sentence for sentence in release["not_promised"])
    audited = found_by(capsys, "audit", into / "owner" / "protocol.json", table)
    assert audited["people"]["certificate"]
    assert audited["people"]["confidence"] == 0.9
    assert audited["people"]["epsilon"] <= 0.5
    assert audited["people"]["alone"]["spy"] > audited["people"]["epsilon"]


def test_too_small_a_sample_is_said_to_bound_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = tmp_path / "small.csv"
    small.write_text("job,city\n" + "clerk,A\nclerk,B\nminer,A\nminer,B\n" * 10)
    found = found_by(capsys, *sanitise(small, tmp_path / "out", **ASKED))
    assert (found["people"]["epsilon"], found["people"]["bounded"]) == (None, False)
    assert any("(worst case ×unbounded)" in sentence for sentence in found["not_promised"])


@pytest.mark.parametrize("confidence", ["0", "1", "150%", "0%", "100%"])
def test_a_confidence_that_is_none_is_refused_before_anything_is_written(
    table: Path, tmp_path: Path, confidence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = turned_down(capsys, *sanitise(table, tmp_path / "out", f"--population={confidence}", **ASKED))
    assert sentence.startswith("ParameterError: --population must be between 0 and 1")
    assert not (tmp_path / "out").exists()


def test_a_scan_says_what_rare_secrets_cost(table: Path) -> None:
    done = run("scan", table, "--secret", "job", "--details")
    assert done.returncode == 0, done.stderr
    match = re.search(r"may be that of ([\d.]+) % of spy \(95 % confidence\)", done.stdout)
    assert match
    rows = pl.read_csv(table).filter(pl.col("job") == "spy").height
    assert float(match[1]) == round(100 * (1 - 0.05 ** (1 / rows)), 1)
    costs = re.search(r"would keep, in nats, ([\d.]+) instead of ([\d.]+) of city", done.stdout)
    assert costs
    assert float(costs[1]) < float(costs[2])


def test_of_a_private_design_nothing_is_said_about_the_rows_by_themselves(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into, domain = tmp_path / "out", tmp_path / "domain.json"
    assert said(capsys, "scan", table, "--secret", "job", "--domain", domain)[0] == 0
    private = ("--prior=population", "--design-epsilon", 1, "--domain", domain)
    assert said(capsys, *sanitise(table, into, *private, **ASKED | {"epsilon": 1.5}))[0] == 0
    code, out, _ = said(capsys, "audit", into / "public" / "protocol.json", table, "--details")
    assert code == 0
    assert "for these 5,000 rows by themselves nothing is certified: a private design knows noisy counts" in out
    assert re.search(
        r"for others like them, if the file is a sample, ε is at most [\d.]+ with 95 % .*\(certified\)", out
    )
    assert "alone number 3 of its domain " in out
    assert "--domain domain.json does" in out
    code, named, _ = said(capsys, "audit", into / "public" / "protocol.json", table, "--domain", domain, "--details")
    assert code == 0
    assert " about job holds for the population, with 95 % confidence\n" in named
    assert "of its domain" not in named
    assert "--domain" not in named
    assert "alone spy " in named
    assert "spy" not in (into / "public" / "protocol.json").read_text()


def test_a_domain_of_something_else_names_no_secret(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into, domain = tmp_path / "out", tmp_path / "domain.json"
    assert said(capsys, "scan", table, "--secret", "job", "--domain", domain)[0] == 0
    private = ("--prior=population", "--design-epsilon", 1, "--domain", domain)
    assert said(capsys, *sanitise(table, into, *private, **ASKED | {"epsilon": 1.5}))[0] == 0
    content = json.loads(domain.read_text())
    for column in ("job", "city"):
        more = json.loads(domain.read_text())
        more["columns"][column]["labels"] = [*content["columns"][column]["labels"], "elsewhere"]
        other = tmp_path / f"{column}.json"
        other.write_text(json.dumps(more))
        code, out, err = said(capsys, "audit", into / "public" / "protocol.json", table, "--domain", other)
        assert (code, out) == (2, "")
        assert "must be the domain that the private design was made for" in err
    plain = tmp_path / "plain"
    assert said(capsys, *sanitise(table, plain, "--again", **ASKED))[0] == 0
    code, _, err = said(capsys, "audit", plain / "owner" / "protocol.json", table, "--domain", domain)
    assert code == 2
    assert "Leave out --domain" in err


def test_scan_and_audit_say_a_leak_in_the_words_of_other_tools(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = tmp_path / "alone.csv"
    rows = pl.concat([pl.read_csv(table), pl.DataFrame({"job": ["clerk", "miner"], "city": ["D", "E"]})])
    rows.write_csv(alone)
    _, out, _ = said(capsys, "scan", alone, "--secret", "job", "--details")
    (line,) = (line.split() for line in out.splitlines() if re.match(r"city .*inf", line))
    header = next(line for line in out.splitlines() if "LIP ε" in line and "alone" in line)
    assert header.split()[-6:] == ["k", "alone", "ℓ", "t", "δ", "β"]
    assert line[-6:-3] == ["1", "2", "1"]

    into = tmp_path / "out"
    found_by(capsys, *sanitise(table, into, **ASKED))
    audited = found_by(capsys, "audit", into / "owner" / "protocol.json", table)
    (leak,) = audited["leaks"]
    assert list(leak["classes"]) == ["l", "t", "delta", "beta"]
    assert leak["classes"]["delta"] == pytest.approx(audited["certified"], rel=1e-6)
    assert leak["classes"]["l"] == 3
    _, text, _ = said(capsys, "audit", into / "owner" / "protocol.json", table, "--details")
    assert re.search(r"δ-disclosure 0\.\d{3}, β-likeness 0\.\d{3}, t-closeness 0\.\d{3}, ℓ-diversity 3", text)
