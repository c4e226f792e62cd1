"""Tables with very many columns, and very many columns at once."""

import random
from pathlib import Path

import pytest

from tests.commands import found_by, said, turned_down


def test_a_table_of_a_hundred_thousand_columns_is_one_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "wide.csv", tmp_path / "out"
    names = [f"c{i}" for i in range(100_000)]
    rows = [["uv"[i % 2], "abc"[i % 3], *["1"] * len(names)] for i in range(6)]
    path.write_text("\n".join(",".join(row) for row in [["s", "x", *names], *rows]) + "\n")
    asked = ["--secret", "s", "--epsilon", 1, "--method", "randomised-response", "--no-report", "--into", out]
    assert "Did you mean 'c99'?" in turned_down(capsys, "sanitise", "--prior=table", path, *asked, "--publish", "cc99")
    code, told, _ = said(capsys, "sanitise", "--prior=table", path, *asked, "--publish", "x", "--details")
    assert code == 0
    assert "and 99,980 more" in told
    assert len(told) < 4_000  # with paths that may be long
    assert (out / "public" / "sanitised.csv").read_text().startswith("x\n")


def test_two_dozen_columns_may_be_published_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(1)
    names = [f"c{i}" for i in range(24)]
    rows = [[draw.choice("uv"), *(draw.choice("abcdefgh") for _ in names)] for _ in range(60)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(",".join(row) for row in [["s", *names], *rows]) + "\n")
    asked = ["--secret", "s", "--publish", ",".join(names), "--epsilon", 1, "--no-report", "--anyway"]
    assert found_by(capsys, "sanitise", "--prior=table", path, *asked, "--into", tmp_path / "out")["rows"] == 60
    files = [
        tmp_path / "out" / "owner" / "protocol.json",
        path,
        "--sanitised",
        tmp_path / "out" / "public" / "sanitised.csv",
    ]
    code, _, err = said(capsys, "audit", *files, "--secret", "s")
    assert (code, err) == (0, "")
