"""A policy for many tables: what it does not decide, or is broken by, stops the job."""

import random
import re
from pathlib import Path

import pytest

from tests.commands import said, turned_down

POLICY = """
epsilon = 1.0
promise = "lip"
[tables."people-*.csv"]
epsilon = 0.7
protocol = "protocol.json"
[tables."people-*.csv".columns]
illness = "secret"
town = "publish"
name = "drop"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people(tmp_path / "people-may.csv", 0.6)
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def people(path: Path, tie: float, extra: str = "") -> Path:
    draw = random.Random(1)
    rows = []
    for i in range(2000):
        ill = "ab"[i % 2]
        town = ("kl"[i % 2] if draw.random() < tie else "kl"[draw.randrange(2)]) if tie < 1 else "kl"[i % 2]
        rows.append(f"{ill},{town},n{i % 7}{',x' if extra else ''}\n")
    path.write_text(f"illness,town,name{',' + extra if extra else ''}\n" + "".join(rows))
    return path


def test_a_policy_is_kept_or_says_all_that_breaks_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = ["design", folder / "people-may.csv", "-s", "illness", "-p", "town", "--prior", "table"]
    assert said(capsys, *design, "-e", 0.7, "--into", folder / "protocol.json")[0] == 0
    check = ["check", folder / "policy.toml"]
    code, out, _ = said(capsys, *check, folder / "people-may.csv")
    assert (code, out) == (0, f"1 tables keep the policy {folder / 'policy.toml'}.\n")
    june = people(folder / "people-june.csv", 1.0, "phone")
    sentence = turned_down(capsys, *check, folder / "people-may.csv", june, folder / "other.csv")
    assert "'people-june.csv' has columns without a decision: phone" in sentence
    assert "must hold on these rows; there the protocol leaks" in sentence
    assert "the policy decides nothing about 'other.csv'" in sentence


@pytest.mark.parametrize(
    ("old", "new", "said_of"),
    [
        ("epsilon = 0.7", "epsilon = 2.0", "asks for ε = 2, above the largest of 1"),
        ('promise = "lip"', 'promise = "srlip"', "ε = 0.7, not what the policy asks for"),
        ("epsilon = 0.7", 'epsilon = 0.7\npromise = "ldp"', "promises ldp, which does not keep the required lip"),
        ('town = "publish"', 'town = "drop"', "has town as publish; the policy decides otherwise"),
        ('town = "publish"', 'town = "public"', "each column secret, publish, keep or drop"),
        ('name = "drop"', 'name = "drop"\nage = "drop"', "has no longer age"),
        ("epsilon = 1.0", "", "states its largest epsilon"),
    ],
)
def test_each_way_to_break_a_policy_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said_of: str
) -> None:
    design = ["design", folder / "people-may.csv", "-s", "illness", "-p", "town", "--prior", "table", "-e", 0.7]
    assert said(capsys, *design, "--into", folder / "protocol.json")[0] == 0
    (folder / "policy.toml").write_text(POLICY.replace(old, new, 1))
    assert said_of in turned_down(capsys, "check", folder / "policy.toml", folder / "people-may.csv")


def test_the_policy_and_the_commands_of_the_documents_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tutorials" / "engineer.md").read_text(encoding="utf-8")
    shown = page.split("```toml\n")[1].split("```")[0]
    (folder / "policy.toml").write_text(shown, encoding="utf-8")
    may = people(folder / "patients-may.csv", 0.6)
    design = ["design", may, "-s", "illness", "-p", "town", "--prior", "table", "-e", 0.5]
    assert said(capsys, *design, "--into", folder / "job" / "protocol.json")[0] == 0
    assert said(capsys, "check", folder / "policy.toml", may)[0] == 0
    recipe = next(block for block in page.split("```python\n")[1:] if "airflow" in block).split("```")[0]
    commands = re.findall(r'bash_command="privacyfunnel ([^"]+)"', recipe)
    assert [words.split()[0] for words in commands] == ["check", "apply"]
    compile(recipe, "recipe", "exec")
    apply = commands[1].replace("{{ ds }}/patients.csv", str(may)).replace("public/{{ ds }}", str(folder / "drawn"))
    words = apply.replace("job/protocol.json", str(folder / "job" / "protocol.json")).split()
    assert said(capsys, *words)[0] == 0
