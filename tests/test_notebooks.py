"""The notebooks run from top to bottom, and stand in the repository without what they print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from privacyfunnel.model.promises import PROMISES

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return found


def test_there_is_one_for_each_of_three_readers() -> None:
    assert NOTEBOOKS == ["analyst", "researcher", "steward"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As Jupyter would: in its own folder, cell after cell in one namespace; its assertions are its claims."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("privacyfunnel.model.promises.PROMISES", dict(PROMISES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names: dict[str, Any] = {"__name__": "__main__"}
    code = ["".join(cell["source"]) for cell in cells(name) if cell["cell_type"] == "code"]
    assert any("assert " in text for text in code)
    for number, text in enumerate(code, start=1):
        exec(compile(text, f"{name}.ipynb, cell {number}", "exec"), names)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_outputs(name: str) -> None:
    for cell in cells(name):
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)
