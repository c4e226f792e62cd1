"""--ordered, through the command: what stands on a line is drawn, told and estimated along it."""

import json
import re
from pathlib import Path

import pytest

from tests.commands import found_by, said, several

SIZES = ["S", "M, or nearly", "L", "XL"]
BY_LETTER = sorted(SIZES)


@pytest.fixture
def shirts(tmp_path: Path) -> Path:
    """A secret that leans on size and age; sizes are out of order by letter, ages are numbers and some are missing."""
    rows = [(s, x, a) for s in range(3) for x in range(4) for a in (9, 10, 30, "") for _ in range(5 + 3 * s * x)]
    lines = [f'{s},"{SIZES[x]}",{a}' for s, x, a in rows]
    path = tmp_path / "shirts.csv"
    path.write_text("\n".join(["secret,size,age", *lines, ""]), encoding="utf-8")
    return path


ORDER = [*("--ordered", "size=" + ",".join(f'"{size}"' if "," in size else size for size in SIZES))]


def test_an_order_is_kept_by_file_estimates_pictures_and_report(
    shirts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = [word for word in several(shirts, out, "size,age", *ORDER, secret="secret") if word != "--no-report"]
    assert said(capsys, *words)[0] == 0
    stated = {each["column"]: each for each in json.loads((out / "owner" / "protocol.json").read_text())["publish"]}
    assert stated["size"]["ordered"] == SIZES
    assert "ordered" not in stated["age"]  # numbers need no saying
    files = [out / "owner" / "protocol.json", out / "public" / "sanitised.csv"]
    found = found_by(capsys, "estimate", *files, "--into", tmp_path / "told")
    ages = ["9", "10", "30", "(missing)"]
    assert [cell["labels"][0] for table in found["tables"] for cell in table["cells"]] == [*SIZES, *ages]
    picture = (tmp_path / "told" / "estimates.svg").read_text()
    assert re.findall(r">(S|M, or nearly|L|XL|9|10|30|\(missing\))<", picture) == [*SIZES, *ages]
    both = found_by(capsys, "estimate", *files, "--columns", "age,size")
    assert [cell["labels"] for cell in both["tables"][0]["cells"]] == [[age, size] for age in ages for size in SIZES]
    page = (out / "owner" / "report.html").read_text()
    shares = page[page.index("with the 95 % interval of an estimate") :]
    drawn = re.findall(r">\s*(S|M, or nearly|L|XL)\s*<", shares)
    assert drawn[:4] == SIZES


def test_an_order_makes_ranges_of_neighbours_and_of_nothing_else(
    shirts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = several(shirts, tmp_path / "out", "size", *ORDER, "--for", "distance", "--as", "labels", secret="secret")
    assert said(capsys, *words, "--epsilon", 0.3)[0] == 0
    outputs = json.loads((tmp_path / "out" / "owner" / "protocol.json").read_text())["law"]["outputs"]
    ranges = [label.split("–") for (label,) in outputs if "–" in label]
    assert ranges
    assert all(SIZES.index(low) < SIZES.index(high) for low, high in ranges)
    assert BY_LETTER != SIZES
