"""Advice in an error is run on the table that caused it: whoever follows it is not refused again."""

import ast
import contextlib
import random
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel import hints
from privacyfunnel.cli import main
from tests.cli.advice_cases import CASES, ELSEWHERE
from tests.commands import said
from tests.source_tree import PACKAGE

ROWS = 3000
BASE = "sanitise people.csv --secret job"
OWN_HINT = hints.hint
hinted: list[tuple[str, str]] = []  # the place of each hint since the last refusal, and its words


def note_hint(field: str, value: object = None) -> str:
    """A hint, and who made it."""
    frame, text = sys._getframe(1), OWN_HINT(field, value)
    path = Path(frame.f_code.co_filename)
    if path.is_relative_to(PACKAGE):
        name = frame.f_code.co_qualname.replace("<locals>.", "")
        name = re.sub(r"\.<(?:listcomp|genexpr|dictcomp)>", "", name)
        hinted.append((f"{path.relative_to(PACKAGE)} {name}", hints.word_for_command_line(text)))
    return text


@pytest.fixture(autouse=True)
def _watch_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("privacyfunnel") and getattr(module, "hint", None) is OWN_HINT:
            monkeypatch.setattr(module, "hint", note_hint)


def people(seed: int, rows: int = ROWS) -> str:
    """Persons with an id, a birthday, a place, a note, an age, a wage, a code, a town and a job that is secret."""
    draw = random.Random(seed)
    lines = ["id;born;lat;note;age;wage;code;town;rare;group;area;size;mark;job"]
    for i in range(rows):
        job = draw.choices(("clerk", "miner", "nurse"), (5, 3, 2))[0]
        town = draw.choices(("Ulm", "Wien", "Graz"), (6, 3 + 2 * (job == "miner"), 2))[0]
        note = " ".join(draw.choices(("came", "late", "Maier", "rang", "again", "tel", "home", str(i)), k=8))
        size = "none" if i % 7 == 0 else i % 4
        lines.append(
            f"P{i:05};{1930 + i % 80}-{1 + i % 12:02}-{1 + i % 28:02};{48 + draw.random():.5f};{note};{18 + i % 74};"
            f"{draw.randrange(900, 9000) / 100:.2f};{draw.randrange(400)};{town};{'ab'[i % 100 == 0]};{job[0]};"
            f"{'NS'[i % 2]}{i % 9};{size};{'gone' if i % 5 == 0 else i % 3};{job}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the requests name."""
    folder = tmp_path_factory.mktemp("advice")
    with contextlib.chdir(folder):
        _write_tables()
        for words in (
            "design people.csv --secret job --publish town --prior table --into table.json",
            "design people.csv --secret job --publish town --prior table --sees-secret --into seeing.json",
            "design people.csv --secret job --publish age --bin age=0,40 --prior table --into ages.json",
            "design people.csv --secret job --publish age --bin age=0,60 --prior table --into ages2.json",
            "design people.csv --secret job --publish town --into model.json --ledger model.ledger",
            "scan people.csv --secret job --publish town,area --domain domain.json",
            "design people.csv --secret job --publish town --into noised.json --ledger noised",
            f"{BASE} --publish town --into may --row-id id --ledger may.ledger --epsilon 1",
            f"{BASE} --publish town --into unlinked --ledger unlinked.ledger",
            f"{BASE} --publish town --into bytable --prior table --row-id id --ledger bytable.ledger",
            f"{BASE} --publish town,group --into wide --epsilon 2 --method real-or-synthetic --ledger wide.ledger",
            f"{BASE} --publish town --into held.folder --ledger held",
            f"{BASE} --publish town --into into --into-table people.sqlite#held --ledger into.ledger",
            "sanitise june.csv --after may --into after --ledger may.ledger",
            "apply table.json people.csv --into a.csv --ledger applied",
            "keygen month.key --rows",
            "apply table.json people.csv --keep rare --accept-kept --into beside.csv",
        ):
            report = ["--no-report"] * words.startswith("sanitise")
            assert main([*words.split(), *report]) == 0, words
    return folder


def _write_tables() -> None:
    text = people(29)
    Path("people.csv").write_text(text, encoding="utf-8")
    Path("june.csv").write_text(people(30), encoding="utf-8")
    Path("july.csv").write_text(people(31).replace("0;Graz", "0;Linz"), encoding="utf-8")
    Path("drifted.csv").write_text(
        people(32).replace(";Wien;a;c;N1;", ";Ulm;a;c;N1;").replace("Graz;a;n", "Wien;a;n"), encoding="utf-8"
    )
    Path("joined.csv").write_text(text.replace(";clerk", ";clerk & co"), encoding="utf-8")
    Path("pilots.csv").write_text(re.sub(r"(P00[0-3].*);\w+\n", r"\1;pilot\n", text), encoding="utf-8")
    rows = pl.read_csv("people.csv", separator=";")
    moved = rows.with_columns(pl.when(pl.col("town") == "Ulm").then(pl.lit("Wien")).otherwise("town").alias("town"))
    pl.concat([rows, moved]).write_csv("visits.csv")
    rows.with_columns(list=pl.concat_list("age", "code")).write_parquet("lists.parquet")
    rows.group_by("job", "age").len("n").sort("job", "age").write_csv("counts.csv")
    with contextlib.closing(sqlite3.connect("people.sqlite")) as base, base:
        base.execute("create table people (job text, town text)")
        base.executemany("insert into people values (?, ?)", rows.select("job", "town").iter_rows())
    Path("graded.csv").write_text("clerk,miner,1\nclerk,nurse,2\nminer,nurse,1.5\n", encoding="utf-8")
    Path("groups.csv").write_text("nurse,care\n", encoding="utf-8")
    Path("ids.csv").write_text("".join(f"P{i:05},{i % 5}\n" for i in range(ROWS)), encoding="utf-8")
    Path("zeros.csv").write_text("town,group\nUlm,m\n", encoding="utf-8")
    Path("matrix.csv").write_text("town,Ulm,Wien,Graz\nUlm,.8,.1,.1\nWien,.1,.8,.1\nGraz,.1,.1,.8\n", encoding="utf-8")


@pytest.mark.parametrize(("place", "request_", "changes"), CASES, ids=lambda value: str(value)[:80])
def test_whoever_follows_an_advice_is_not_refused_again(
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    request_: str,
    changes: list[str],
) -> None:
    shutil.copytree(made, tmp_path / "at")
    monkeypatch.chdir(tmp_path / "at")
    hinted.clear()
    code, _, error = said(capsys, *words_of(request_, "0"))
    assert code == 2, error
    assert place in {where for where, words in hinted if words in error}, (hinted, error)
    for i, asked in enumerate(changes, start=1):
        change = re.sub(r"(--\S+) \?", lambda option: advised_value(option[1], error), asked)
        first = change.removeprefix("no ").split()[0]
        assert not first.startswith("--") or first in error, (first, error)
        code, _, again = said(capsys, *words_of(change_request(request_, change), str(i), follow=True))
        assert code == 0, (change, again, "BEFORE:", error)


def words_of(request: str, name: str, *, follow: bool = False) -> list[str]:
    """The words of a request, with files of its own where it names none, and noise that is always the same."""
    first, *more = request.split()
    words = [*(BASE.split() if first in {"S", "T"} else [first]), *(word.replace("§", " ").strip() for word in more)]
    if words[0] in {"sanitise", "apply"} and "--into" not in words:
        words += ["--into", f"out{name}{'.csv' * (words[0] == 'apply')}"]
        words += [] if "--ledger" in words else ["--ledger", f"ledger{name}"]
    if words[0] == "sanitise":
        words += ["--no-report", *(["--anyway"] * follow), *(["--seed", "1"] if first != "T" else [])]
    return words


def advised_value(option: str, error: str) -> str:
    """The option with the value that the error gives it."""
    found = re.search(option + r" [^ ;,)]+(?:,[^ ;,)]+)*", error)
    assert found is not None, error
    return found[0]


def change_request(request: str, change: str) -> str:
    """The request, changed."""
    if not change.startswith(("--", "no ")):
        return change
    words, new = request.split(), change.split()
    while new:
        drop = new[0] == "no"
        option = new.pop(0) if not drop else [new.pop(0), new.pop(0)][1]
        given = [] if drop else [option]
        while not drop and new and not new[0].startswith("--") and new[0] != "no":
            given.append(new.pop(0))
        if option in words:
            at = words.index(option)
            ends = at + 1 + (at + 1 < len(words) and not words[at + 1].startswith("--"))
            del words[at:ends]
        words += given
    return " ".join(words)


@cache
def places() -> frozenset[str]:
    """Every function of the package that puts a field of the request into a sentence."""
    return frozenset(where for path in PACKAGE.rglob("*.py") for where in _places_in(path) if path.name != "hints.py")


def _places_in(path: Path) -> Iterator[str]:
    def walk(node: ast.AST, names: tuple[str, ...]) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inner = (ast.FunctionDef, ast.ClassDef)
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == "hint":
                yield f"{path.relative_to(PACKAGE)} {'.'.join(names) or '<module>'}"
            yield from walk(child, (*names, child.name) if isinstance(child, inner) else names)

    return walk(ast.parse(path.read_text(encoding="utf-8")), ())


def test_every_advice_of_the_package_is_run_here_or_where_it_says() -> None:
    run = {place for place, _, _ in CASES}
    assert run | set(ELSEWHERE) == places()
    assert run & set(ELSEWHERE) == set()
    for where in ELSEWHERE.values():
        if "::" in where:
            path, name = where.split("::")
            assert f"def {name}(" in Path(__file__).parents[1].joinpath(path).read_text(encoding="utf-8")
