"""Scan: columns are judged as they would be published, alone and together, and ids are called ids."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel import LDP, LIP, SRLIP, scan
from privacyfunnel.audits import scan as room
from privacyfunnel.tables.coding.exploration import tabulate_groups
from privacyfunnel.tables.readers.eager_frames import FrameTable
from tests.commands import run, told


def written(path: Path, **columns: list[Any]) -> Path:
    pl.DataFrame(columns).write_csv(path)
    return path


def by_name(found: Any) -> dict[str, Any]:
    return {look["column"]: look for look in found["columns"]}


def kept_alone(text: str) -> str:
    """The list of columns after the sentence about columns alone."""
    return text.split("is kept by a single column unchanged: ")[1].splitlines()[0]


def test_a_patient_number_is_an_id_and_keeps_nothing(tmp_path: Path) -> None:
    n = 999
    path = written(
        tmp_path / "people.csv",
        number=[100_000 + i for i in range(n)],
        code=[f"P{i:05}" for i in range(n)],
        side=["lr"[i // 3 % 2] for i in range(n)],
        illness=["abc"[i % 3] for i in range(n)],
    )
    found = by_name(told("scan", path, "--secret", "illness"))
    for column in ("number", "code"):
        look = found[column]
        assert look["tells_rows_apart"]
        assert not look["safe"]
        assert (look["values"], look["distinct"], look["alone"], look["decided"]) == (n, 1, 1, 1)
        assert (look["lip"], look["lip_is"], look["ldp"]) == (None, "unbounded", None)
        assert (look["value"], look["secret"]) == ("", "")  # no person's number is shown with their illness
    assert found["number"]["in_bins"]["lip"] < 0.1
    assert found["number"]["safe_in_bins"]
    assert found["code"]["in_bins"] is None
    assert not found["side"]["tells_rows_apart"]
    text = run("scan", path, "--secret", "illness").stdout
    assert kept_alone(text) == "side."
    assert "Ids, or nearly: code, number." in text
    assert "--bin number" not in text  # bins of ids are nobody's use
    assert "P00" not in text


def test_exact_amounts_that_give_most_rows_away_are_not_called_safe_for_what_bins_would_hide(tmp_path: Path) -> None:
    # 450 amounts that two rows of one secret share, and one amount that 100 rows share: 451 values, 900 rows decided.
    amounts = [1000 + 2 * i for i in range(450) for _ in range(2)] + [1451] * 100
    secrets = ["ab"[i % 2] for i in range(450) for _ in range(2)] + ["a", "b"] * 50
    path = written(tmp_path / "people.csv", amount=amounts, s=secrets)
    look = by_name(told("scan", path, "--secret", "s"))["amount"]
    assert look["decided"] == 0.9
    assert (look["values"], look["alone"], look["binned"], look["safe"]) == (451, 0, False, False)
    assert not look["tells_rows_apart"]
    assert (look["lip"], look["lip_is"]) == (None, "unbounded")
    assert look["in_bins"]["lip"] < 0.1
    assert look["in_bins"]["decided"] == 0
    text = run("scan", path, "--secret", "s").stdout
    assert kept_alone(text) == "none."
    assert " 90 % " in text
    asked = by_name(told("scan", path, "--secret", "s", "--bin", "amount=quantiles:8"))["amount"]
    assert asked["binned"]
    assert asked["safe"]
    assert asked["lip"] == look["in_bins"]["lip"]


def xor_table(path: Path) -> Path:
    bits = [(i % 2, i // 2 % 2, i // 4 % 3) for i in range(1200)]
    return written(
        path,
        a=[a for a, _, _ in bits],
        b=[b for _, b, _ in bits],
        c=[c for _, _, c in bits],
        s=["no" if a == b else "yes" for a, b, _ in bits],
    )


@pytest.mark.parametrize("promise", ["lip", "ldp", "srlip"])
def test_columns_that_say_nothing_alone_and_everything_together_are_found_out(tmp_path: Path, promise: str) -> None:
    path = xor_table(tmp_path / "xor.csv")
    found = told("scan", path, "--secret", "s", "--promise", promise)
    assert all(look["safe"] and look["lip"] == 0 for look in found["columns"])
    together = found["together"]
    pairs = {tuple(pair["columns"]): pair for pair in together["pairs"]}
    assert set(pairs) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert [pair["keeps"] for pair in pairs.values()] == [False, True, True]
    for leaking in (pairs["a", "b"], together["whole"]):
        assert (leaking["epsilon"], leaking["decided"], leaking["keeps"]) == (None, 1, False)
    assert (pairs["a", "c"]["epsilon"], pairs["a", "c"]["decided"]) == (0, 0)
    assert together["whole"]["columns"] == ["a", "b", "c"]
    text = run("scan", path, "--secret", "s", "--promise", promise).stdout
    assert kept_alone(text) == "a, b, c."
    known = ", or some known beforehand" if promise == "srlip" else ""
    assert f"{promise.upper()} ε = 1 (×2.72) is kept by" in text
    worst = "a guess moves without limit; 100 % of rows given away."
    assert f"It is kept by 2 of 3 pairs of these, in one row{known}; the others:\n  a & b: {worst}" in text
    assert f"It is NOT kept by all 3 in one row{known}: a & b & c: {worst}" in text


def test_no_sentence_says_safe(tmp_path: Path) -> None:
    assert "safe" not in run("scan", xor_table(tmp_path / "xor.csv"), "--secret", "s").stdout.lower()


def test_bins_that_were_asked_for_are_judged_together_too(tmp_path: Path) -> None:
    ages, flags = [i % 80 for i in range(1600)], [i // 80 % 2 for i in range(1600)]
    secrets = ["no" if (age >= 40) == flag else "yes" for age, flag in zip(ages, flags, strict=True)]
    path = written(tmp_path / "ages.csv", age=ages, flag=flags, s=secrets)
    whole = told("scan", path, "--secret", "s", "--bin", "age=40")["together"]["whole"]
    assert (whole["columns"], whole["combinations"], whole["decided"]) == (["age", "flag"], 4, 1)


def test_a_few_decided_rows_are_not_shown_as_none_and_a_numeric_secret_is_said_to_be_binned(tmp_path: Path) -> None:
    n = 4000
    path = written(tmp_path / "few.csv", x=["rare", *"y" * (n - 1)], s=["a", "b"] * (n // 2), age=list(range(n)))
    assert "0.025 %" in run("scan", path, "--secret", "s").stdout
    assert "(age was cut into bins for this scan.)" in run("scan", path, "--secret", "age").stdout
    assert told("scan", path, "--secret", "age")["secret_in_bins"] == ["age"]


def test_what_was_not_looked_at_together_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = room.MOST_TOGETHER
    columns = {f"x{j}": [i // 2 % (2 + j % 2) for i in range(120)] for j in range(most + 2)}
    path = written(tmp_path / "wide.csv", **columns, s=["u", "v"] * 60)
    together = told("scan", path, "--secret", "s")["together"]
    assert len(together["columns"]) == most
    assert len(together["pairs"]) == most * (most - 1) // 2
    left_out = set(columns) - set(together["columns"])
    assert len(left_out) == 2
    assert all(name in together["not_looked_at"][0] for name in left_out)
    assert together["not_looked_at"][1:] == []  # all at once keep it, and so does any part of them
    assert "Not examined together: More than 16 columns" in run("scan", path, "--secret", "s").stdout
    path = xor_table(tmp_path / "xor.csv")
    monkeypatch.setattr(room, "MOST_COMBINATIONS", 8)
    found = scan(path, secret=["s"], promise=LIP(1)).together
    assert found is not None
    assert [pair.columns for pair in found.pairs] == [("a", "b")]
    assert found.whole is None
    assert [sentence.split(": ")[1] for sentence in found.not_looked_at] == ["a & c.", "b & c.", "a & b & c."]


def test_parts_of_a_set_that_does_not_keep_the_promise_are_said_not_to_be_looked_at(adult: Path) -> None:
    together = told("scan", adult, "--secret", "income", "--epsilon", 6)["together"]
    assert len(together["columns"]) == 6
    assert not together["whole"]["keeps"]
    assert 0.3 < together["whole"]["decided"] < 0.31
    assert together["not_looked_at"] == ["Sets of 3 or more columns other than all 6."]


@pytest.mark.parametrize("promise", [LIP(9), LDP(9), SRLIP(9)])
def test_a_pair_leaks_what_publishing_it_as_one_value_leaks(tmp_path: Path, promise: Any) -> None:
    rows = [(i % 2, i % 3, "uv"[i * i % 7 < 3]) for i in range(500)]
    path = written(
        tmp_path / "t.csv",
        a=[a for a, _, _ in rows],
        b=[b for _, b, _ in rows],
        s=[s for _, _, s in rows],
    )
    both = written(tmp_path / "one.csv", ab=[f"{a}/{b}" for a, b, _ in rows], s=[s for _, _, s in rows])
    one = scan(both, secret=["s"]).looks[0]
    together = scan(path, secret=["s"], promise=promise).together
    assert together is not None
    (pair,) = together.pairs
    assert pair == together.whole
    assert pair.epsilon is not None
    if isinstance(promise, SRLIP):  # someone may know one of the two besides
        assert pair.epsilon >= one.lip * (1 - 1e-12)
    else:
        assert pair.epsilon == pytest.approx(one.ldp if isinstance(promise, LDP) else one.lip)


@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40))
def test_decided_and_lonely_rows_are_counted_as_by_hand(rows: list[tuple[int, int, int]]) -> None:
    frame = pl.DataFrame(rows, schema=["s", "a", "b"], orient="row")
    found = tabulate_groups(FrameTable.from_native(frame), secret=["s"], groups=[("a",), ("a", "b")])
    for group, counted in found.items():
        seen = defaultdict(list)
        for s, a, b in rows:
            seen[(a,) if group == ("a",) else (a, b)].append(s)
        assert counted.rows == len(rows)
        assert counted.values == len(seen)
        assert counted.decided == sum(len(secrets) for secrets in seen.values() if len(set(secrets)) == 1)
        assert counted.alone == sum(len(secrets) == 1 for secrets in seen.values())
