"""Errors as JSON, runs with names, log lines: for jobs that nobody watches."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from privacyfunnel import __version__
from privacyfunnel.cli.application import to_json_value
from privacyfunnel.errors import OutputError
from privacyfunnel.tables.databases.drivers import connection_error, query_error
from tests.commands import run, said


def test_an_error_is_an_object_with_a_code_and_whether_to_retry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, error = said(capsys, "scan", tmp_path / "none.csv", "--secret", "s", "--json")
    found = json.loads(out)
    assert code == found["error"]["exit"] == 2
    assert (found["error"]["code"], found["error"]["retry"]) == ("TableError", False)
    assert error.strip() == f"TableError: {found['error']['message']}"
    assert found["run"]["version"] == __version__
    assert re.fullmatch(r"[0-9a-f]{12}", found["run"]["id"])
    code, out, _ = said(capsys, "scan", tmp_path / "none.csv", "--secret", "s")
    assert (code, out) == (2, "")


def test_what_may_pass_by_itself_may_be_retried() -> None:
    assert connection_error("somewhere").retry
    assert not query_error("somewhere", "no").retry
    assert not OutputError("").retry


def test_numbers_without_bound_are_null_with_a_reason() -> None:
    found = to_json_value({"a": float("inf"), "b": [float("nan")], "c": 1.5})
    assert found == {"a": None, "a_is": "unbounded", "b": [None], "c": 1.5}


def test_log_lines_name_the_run_and_no_value(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("s,x\n" + "\n".join(f"s{i % 2},x{i % 3}" for i in range(600)))
    words = ["sanitise", table, "--secret", "s", "--publish", "x", "-e", "1", "--prior", "table", "--seed", 1]
    done = run(*words, "--into", tmp_path / "out", "--json", "--log")
    name = json.loads(done.stdout)["run"]["id"]
    lines = done.stderr.splitlines()
    assert len(lines) >= 4
    assert all(name in line for line in lines)
    assert any("drawing 600 rows" in line for line in lines)
    assert "ends with 0" in lines[-1]
    assert not re.search(r"\b[sx][012]\b", done.stderr)
    assert logging.getLogger("privacyfunnel").level == logging.NOTSET  # a program of one's own decides
