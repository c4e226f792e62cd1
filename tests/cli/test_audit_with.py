"""`audit --with`: what several releases of the same rows say together, through the command."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privacyfunnel import LIP, Joint, SealedProtocol
from privacyfunnel.audits.protocol_audit import audit_composition, composition_leak
from tests.commands import found_by, refused, run, sanitise, told, turned_down


def released(people: Path, into: Path, *more: object, **changed: object) -> Path:
    done = run(*sanitise(people, into, "--again", *more, **changed))
    assert done.returncode == 0, done.stderr
    return into / "owner" / "protocol.json"


@pytest.fixture
def bits(tmp_path: Path) -> Path:
    """Two fair bits, and a secret that is their xor."""
    rows = [(str(a), str(b), "yes" if a != b else "no") for a in (0, 1) for b in (0, 1)] * 25
    path = tmp_path / "bits.csv"
    pl.DataFrame(rows, schema=["a", "b", "s"], orient="row").write_csv(path)
    return path


def test_two_columns_at_no_epsilon_are_told_to_give_the_secret_away(bits: Path, tmp_path: Path) -> None:
    a, b = (released(bits, tmp_path / x, secret="s", publish=x, epsilon=0, method="optimal") for x in "ab")
    found = told("audit", a, bits, "--secret", "s", "--with", b)
    assert found["holds"]
    assert found["certified"] == 0
    together = found["together"]
    assert (together["releases"], together["bounded"], together["epsilon"]) == (2, False, None)
    assert max(together["alone"]) < 1e-12
    assert "for output (" in together["worst"]
    assert "about s = " in together["worst"]
    done = run("audit", a, bits, "--secret", "s", "--with", b)
    assert done.returncode == 0
    line = next(line.split() for line in done.stdout.splitlines() if line.startswith("together"))
    assert "together LIP ε = unbounded for 2 releases, worst for someone who knows nothing else" in " ".join(line)
    assert told("audit", a, bits, "--secret", "s")["together"] is None


def test_a_column_released_again_says_more_than_the_sum(adult: Path, tmp_path: Path) -> None:
    file = released(adult, tmp_path / "rr", epsilon=0.3)
    twice = told("audit", file, adult, "--with", file)["together"]
    assert twice["alone"] == pytest.approx([0.3, 0.3], abs=1e-6)
    assert twice["epsilon"] == pytest.approx(0.7007, abs=1e-4)  # docs/limits.md rounds this up
    assert told("audit", file, adult, "--with", file, "--with", file)["together"]["epsilon"] > 1.1
    best = released(adult, tmp_path / "best", "--for", "information", epsilon=0.3, method="optimal")
    assert not told("audit", best, adult, "--with", best)["together"]["bounded"]


def test_releases_of_different_columns_are_counted_together(some: Path, tmp_path: Path) -> None:
    one = released(some, tmp_path / "one", secret="income", publish="race", epsilon=0.2)
    two = released(some, tmp_path / "two", secret="income", publish="sex", epsilon=0.3)
    found = audit_composition([one, two], some, secret=("income",))
    frame = pl.read_csv(some, infer_schema=False)
    joint = Joint.from_table(frame, secret="income", publish=["race", "sex"])
    laws = [
        SealedProtocol.load(file).mechanism.restrict_inputs(joint.combos[:, j]) for j, file in enumerate([one, two])
    ]
    assert found.composed == composition_leak(joint, LIP(0.2), laws)
    assert found.rows == 800
    assert max(one.epsilon for one in found.alone) < found.composed.epsilon < math.inf


def test_a_protocol_that_sees_the_secret_composes_with_one_that_does_not(some: Path, tmp_path: Path) -> None:
    asked = {"prior": "table", "secret": "income", "publish": "race", "epsilon": 0.2}
    seeing = released(some, tmp_path / "seeing", **{**asked, "method": "conditional-reporting"})
    plain = released(some, tmp_path / "plain", **asked)
    one, other = (audit_composition(files, some) for files in ([seeing, plain], [plain, seeing]))
    assert one.composed.epsilon == pytest.approx(other.composed.epsilon, abs=1e-12)
    assert one.composed.epsilon > 0.2


def test_a_release_that_protected_another_secret_counts_too(some: Path, tmp_path: Path) -> None:
    one = released(some, tmp_path / "one", secret="income", publish="race", epsilon=0.2)
    two = released(some, tmp_path / "two", secret="sex", publish="education", epsilon=1)
    found = audit_composition([one, two], some, secret=("income",))
    assert (found.secret, found.promise) == ("income", LIP(0.2))
    assert found.composed.epsilon > found.alone[1].epsilon > 0.2


def test_what_cannot_be_composed_is_said_in_a_sentence(
    some: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = tmp_path / "people.csv"
    age = 17 + (7 * np.arange(800)) % 60
    pl.read_csv(some, infer_schema=False).with_columns(age=pl.Series(age)).write_csv(numbers)
    asked = {"prior": "table", "secret": "income", "publish": "age", "epsilon": 1}
    coarse = released(numbers, tmp_path / "coarse", "--bin", "age=30,50", **asked)
    fine = released(numbers, tmp_path / "fine", "--bin", "age=20,30,40,50", **asked)
    assert found_by(capsys, "audit", coarse, numbers, "--with", coarse)["together"]["releases"] == 2
    assert "must cut 'age' into the same bins" in turned_down(capsys, "audit", coarse, numbers, "--with", fine)
    other = released(numbers, tmp_path / "other", secret="sex", publish="race", method="conditional-reporting")
    assert "must see income" in turned_down(capsys, "audit", coarse, numbers, "--with", other)
    shown = released(numbers, tmp_path / "shown", secret="sex", publish="income")
    assert "income" in turned_down(capsys, "audit", coarse, numbers, "--with", shown)
    refused(["audit", "--matrix", coarse, numbers, "--with", coarse], "ParameterError", "original table alone")
    refused(["audit", coarse, numbers, "--with", tmp_path / "none.json"], "ProtocolFileError", "no protocol file")


def test_the_summary_points_to_it(some: Path, tmp_path: Path) -> None:
    found = told(*sanitise(some, tmp_path / "out"))
    said = [sentence for sentence in found["not_promised"] if "Another release" in sentence]
    assert said == [
        "Another release of the same rows, or several rows about one person, can leak more than their ε added; an "
        "audit with the other protocols computes it."
    ]
