"""Peak memory of reading a table, counting it and writing its codes, each in a process of its own.

python -m benchmarks memory                    5·10⁶ rows
ROWS=100000000 python -m benchmarks memory     10⁸ rows
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from privacyfunnel.tables.readers.adult import write_adult_csv
from privacyfunnel.tables.readers.table_files import write_table

ROWS = int(os.environ.get("ROWS", "5000000"))
BATCH = 500_000
GOAL = 1.0

CHILD = """
import re, sys, time
from pathlib import Path
import polars as pl
from privacyfunnel.tables.coding import encoding
from privacyfunnel.tables.readers.table_files import open_table, write_table

source, target, encoding.KEPT_BYTES = sys.argv[1], sys.argv[2], int(sys.argv[3])
start = time.perf_counter()
code = encoding.encode(open_table(source), secret=["occupation"], publish=["education"])
labels = code.contingency.published.labels
frames = (pl.DataFrame({"education": pl.Series(labels).gather(chunk.published)}) for chunk in code.chunks())
rows = write_table(target, frames)
seconds = time.perf_counter() - start
# Not ru_maxrss, which begins with what the parent used.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(rows, seconds, int(peak[1]) / 2**20)
"""


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_adult_csv(folder / "adult.csv")
        adult = pl.read_csv(folder / "adult.csv", infer_schema=False)
        rng = np.random.default_rng(1)
        for suffix in (".csv", ".csv.gz", ".parquet", ".arrow"):
            batches = (adult[rng.integers(0, adult.height, BATCH)] for _ in range(ROWS // BATCH))
            people = folder / f"people{suffix}"
            rows = write_table(people, batches)
            print(f"{rows:,} rows, {people.stat().st_size / 1e9:.2f} GB of {suffix}")
            for how, kept in {"codes kept from the first pass": 1 << 28, "read a second time": 0}.items():
                target = folder / f"out-{kept}{suffix}"
                command = [sys.executable, "-c", CHILD, str(people), str(target), str(kept)]
                written, seconds, memory = subprocess.check_output(command, text=True).split()
                if int(written) != rows:
                    raise SystemExit(f"{rows} rows went in, {written} came out.")
                print(f"  {how:<34}{float(seconds):7.2f} s   {float(memory):5.2f} GB   goal {GOAL} GB", flush=True)
                target.unlink()
            people.unlink()


if __name__ == "__main__":
    main()
