"""Rows leave in a random order: in frames and files of every format, with what is kept; and what is said about it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from privacyfunnel import LIP, sanitise, sanitise_file
from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.release import shuffle
from privacyfunnel.release.ledger.ledger_file import Ledger
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.table_files import open_table
from tests.commands import files_of, found_by, said

N = 2000


def knows_nothing(path: Path) -> Path:
    """A ledger without a release."""
    Ledger(path)._write(bytes(16), ())
    return path


def people() -> pl.DataFrame:
    """Sorted by the secret s; ids rise from row to row."""
    return pl.DataFrame(
        {
            "id": range(N),
            "s": ["ab"[i // (N // 2)] for i in range(N)],
            "x": [f"x{i % 5 if i < N // 2 else i % 3}" for i in range(N)],
            "half": [int(i % 7 < (2 if i < N // 2 else 5)) for i in range(N)],
        }
    )


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return (pl.from_pandas(frame) if isinstance(frame, pd.DataFrame) else pl.DataFrame(frame)).rows()


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_a_frame_comes_back_in_a_random_order_with_what_is_kept(kind: Any) -> None:
    frame = kind(people())
    asked: dict[str, Any] = {
        "prior": "table",
        "secret": "s",
        "publish": "x",
        "promise": LIP(0.5),
        "keep": ["id", "half"],
        "accept_kept": True,
    }
    asked["method"] = "randomised-response"
    mixed = sanitise(frame, ReleaseSpec(seed=1, **asked))
    sorted_ = sanitise(frame, ReleaseSpec(seed=1, keep_order=True, **asked))
    assert type(mixed.table) is type(frame)
    assert sorted_.order is None
    assert [row[1] for row in rows_of(sorted_.table)] == list(range(N))
    assert mixed.order is not None
    assert [row[1] for row in rows_of(mixed.table)] == mixed.order.tolist() != list(range(N))
    in_order = rows_of(sorted_.table)
    assert rows_of(mixed.table) == [in_order[i] for i in mixed.order]
    other = sanitise(frame, ReleaseSpec(**asked))
    assert other.order is not None
    assert other.order.tolist() != mixed.order.tolist()


@pytest.mark.parametrize("method", ["randomised-response"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow"])
@pytest.mark.parametrize("most", [1 << 28, 4000])
def test_files_of_every_format_are_shuffled_alike_in_memory_and_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, most: int, method: str
) -> None:
    monkeypatch.setattr(shuffle, "MOST_HELD", most)
    table = tmp_path / "people.parquet"
    people().write_parquet(table)
    asked: dict[str, Any] = {"promise": LIP(0.5), "method": method, "seed": 1}
    order = ReleaseSpec(prior="table", secret=("s",), publish=("x",), keep=("id",), accept_kept=True, **asked)
    release = sanitise_file(table, replace(order, into=tmp_path / "out", format=suffix[1:]))
    found = pl.concat(open_table(release.table).batches(["x", "id"])).cast(pl.String)
    expected = pl.DataFrame(sanitise(people(), order).table).cast(pl.String)
    assert found.equals(expected)
    assert files_of(tmp_path / "out") == {"owner/protocol.json", "owner/report.html", f"public/sanitised{suffix}"}


def test_the_summary_and_a_scan_say_in_numbers_what_the_order_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], adult: Path
) -> None:
    table = tmp_path / "sorted.csv"
    people = pl.read_csv(adult, infer_schema=False).sample(8_000, seed=1)
    people.sort("occupation").with_row_index("id").write_csv(table)
    words = [
        "sanitise",
        "--prior=table",
        "--details",
        table,
        "-s",
        "occupation",
        "-p",
        "education",
        "-e",
        1,
        "--no-report",
        "--keep",
        "id,sex",
        "--accept-kept",
    ]
    words += ["--method", "randomised-response", "--into"]
    found = found_by(capsys, *words, tmp_path / "out")
    assert found["order"]["kept"] is False
    assert found["order"]["of_table"]["guessed"] > 0.99
    assert found["order"]["of_table"]["base"] < 0.13
    kept = found["order"]["of_kept_columns"]
    assert [kept["id"]["tells_rows_apart"], kept["id"]["sorted"]] == [True, True]
    assert kept["id"]["tells"]["guessed"] > 0.99
    assert [kept["sex"]["tells_rows_apart"], kept["sex"]["sorted"]] == [False, False]
    assert any("id tells rows apart" in sentence for sentence in found["not_promised"])
    published = pl.read_csv(tmp_path / "out" / "public" / "sanitised.csv")["id"]
    assert not published.is_sorted()
    assert published.sort().to_list() == list(range(8_000))

    code, out, _ = said(capsys, *words, tmp_path / "kept", "--keep-order", "--again", "--details")
    assert code == 0
    assert "that of the table, as asked; in the order of the table, neighbours predict the secret of 99." in out
    assert "The rows are in the order of the table. Whoever knows that order" in out
    assert pl.read_csv(tmp_path / "kept" / "public" / "sanitised.csv")["id"].is_sorted()

    look = found_by(capsys, "scan", table, "-s", "occupation")["order"]
    assert look["guessed"] > 0.99
    assert look["ids_in_order"] == ["id"]
    found = found_by(capsys, "scan", adult, "-s", "occupation")["order"]
    assert found["guessed"] == found["base"]


def test_no_public_page_says_how_far_the_order_tells_the_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "people.csv"
    people().write_csv(table)
    words = [
        "sanitise",
        "--prior=table",
        table,
        "-s",
        "s",
        "-p",
        "x",
        "-e",
        1,
        "--keep",
        "id",
        "--accept-kept",
        "--keep-order",
    ]
    code, out, _ = said(capsys, *words, "--details", "--into", tmp_path / "out")
    assert code == 0
    assert "base rate" in out
    page = tmp_path / "out" / "public" / "README.html"
    assert "The rows are in the order of the table" in page.read_text(encoding="utf-8")
    assert "base rate" not in page.read_text(encoding="utf-8")


def released(tmp_path: Path, method: str, *publish: str) -> tuple[Path, Path]:
    """A table of more rows, and the folder of its release."""
    table = tmp_path / "people.csv"
    pl.concat([people()] * 5).write_csv(table)
    order = ReleaseSpec(prior="table", secret=("s",), publish=publish or ("x",), promise=LIP(0.5), method=method)
    sanitise_file(table, replace(order, into=tmp_path / "out"))
    return table, tmp_path / "out"


WAYS = [
    ("randomised-response", ("x",)),
    ("optimal", ("x", "half")),
]


@pytest.mark.parametrize(("method", "publish"), WAYS)
def test_an_audit_undoes_the_order_by_the_ledger_or_judges_counts(
    tmp_path: Path, method: str, publish: tuple[str, ...]
) -> None:
    table, out = released(tmp_path, method, *publish)
    by_row = audit(out / "owner" / "protocol.json", table, sanitised=out / "public" / "sanitised.csv").draw
    nothing = knows_nothing(tmp_path / "none")
    by_counts = audit(
        out / "owner" / "protocol.json", table, sanitised=out / "public" / "sanitised.csv", ledger=nothing
    ).draw
    assert by_row is not None
    assert by_counts is not None
    assert (by_row.paired, by_counts.paired) == (True, False)
    assert by_counts.untested == ()
    assert 0 < by_counts.degrees < by_row.degrees
    # Outputs handed to other rows: counts are the same, so only who knows the order finds it out.
    rows = pl.read_csv(out / "public" / "sanitised.csv", infer_schema=False)
    rows.select(pl.all().sort_by(rows.columns[0])).write_csv(out / "sorted.csv")
    with pytest.raises(GuaranteeError):
        audit(out / "owner" / "protocol.json", table, sanitised=out / "sorted.csv")
    assert audit(out / "owner" / "protocol.json", table, sanitised=out / "sorted.csv", ledger=nothing).draw is not None
    # Another law: counts tell.
    first = rows.columns[0]
    fourth = pl.int_range(pl.len()) % 4 == 0
    rows.with_columns(pl.when(fourth).then(pl.lit(rows[first][0])).otherwise(first).alias(first)).write_csv(
        out / "other.csv"
    )
    with pytest.raises(GuaranteeError):
        audit(out / "owner" / "protocol.json", table, sanitised=out / "other.csv", ledger=nothing)


def test_an_audit_says_when_only_counts_were_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = released(tmp_path, "randomised-response")
    words = ["audit", out / "owner" / "protocol.json", table, "--sanitised", out / "public" / "sanitised.csv"]
    assert found_by(capsys, *words)["draw"]["row_by_row"] is True
    code, told, _ = said(capsys, *words, "--ledger", knows_nothing(tmp_path / "none"))
    assert code == 0
    assert "consistent with the protocol in the counts of outputs" in told
    assert "outputs assigned to wrong rows would go unnoticed" in told
    assert said(capsys, *words, "--keep-order")[0] == 2  # it is not in that order
