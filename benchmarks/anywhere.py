"""`sanitise` and `apply` from and to CSV and Parquet, each against polars merely copying the columns, in one run.

python -m benchmarks anywhere              10⁷ rows
ROWS=100000000 python -m benchmarks anywhere    10⁸ rows, for the peak of memory; docs/monthly.md has figures
"""

import sys
import tempfile
from pathlib import Path

import polars as pl

from benchmarks.release import PUBLISH, ROWS, SECRET, Cost, apart, best, large_csv, told

# Both columns are read, as sanitise must; apply reads the published one alone.
COPY = {
    ".csv": "pl.read_csv(sys.argv[1], columns={columns}, infer_schema=False)[['{publish}']].write_csv(sys.argv[2])",
    ".parquet": "pl.read_parquet(sys.argv[1], columns={columns})[['{publish}']].write_parquet(sys.argv[2])",
}


def tables(folder: Path) -> None:
    """The same rows as CSV and as Parquet."""
    large_csv(folder)
    pl.scan_csv(folder / "people.csv", infer_schema=False).sink_parquet(folder / "people.parquet")


def polars(suffix: str, source: Path, into: Path, columns: list[str]) -> list[str]:
    """polars copying the published column, after reading these."""
    code = "import sys, polars as pl\n" + COPY[suffix].format(columns=columns, publish=PUBLISH)
    return [sys.executable, "-c", code, str(source), str(into)]


def main() -> None:
    """Print the table."""
    command = [sys.executable, "-m", "privacyfunnel"]
    asked = ["--secret", SECRET, "--publish", PUBLISH, "--epsilon", "1", "--method", "randomised-response"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "out"
        apart(tables, folder)

        def sanitised(source: Path, how: list[str]) -> Cost:
            more = ["--into", str(out), "--force", "--no-report", "--ledger", fresh(folder)]
            return best([*command, "sanitise", "--prior=table", str(source), *asked, *more, *how])

        print(f"{ROWS:,} rows; goals: 1.5 × in order, 2 × shuffled, 1.5 × from and to Parquet, 1.5 × apply alone")
        start = sanitised(folder / "adult.csv", ["--keep-order"])
        told("sanitise 48,842 rows: what starting takes", start, start)
        for suffix in COPY:
            source = folder / f"people{suffix}"
            base = best(polars(suffix, source, folder / f"copy{suffix}", [PUBLISH, SECRET]))
            told(f"polars: read 2 columns, write 1, {suffix}", base, base)
            for how in (["--keep-order"], []):
                told(f"sanitise {' '.join(how) or 'shuffled'}, {suffix}", sanitised(source, how), base)
            rows = folder / f"rows{suffix}"
            copied = best(polars(suffix, source, rows, [PUBLISH]))
            told(f"polars: copy 1 column, {suffix}", copied, copied)
            more = ["--into", str(folder / f"applied{suffix}"), "--force", "--ledger", fresh(folder), "--keep-order"]
            cost = best([*command, "apply", str(out / "owner" / "protocol.json"), str(rows), *more])
            told(f"apply --keep-order, {suffix}", cost, copied)


def fresh(folder: Path) -> str:
    """A ledger that knows nothing: what several releases say together takes another reading, and is no part of this."""
    (ledger := folder / "ledger").unlink(missing_ok=True)
    return str(ledger)


if __name__ == "__main__":
    main()
