"""A studio and a browser for all tests of this room."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.studio.browser import Browser, Tab, browser
from tests.studio.running import Running, running


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hundred people: a job to hide, a town and an age to publish, and labels that nobody should trust."""
    path = tmp_path_factory.mktemp("people") / "people.csv"
    towns = ["Ulm", "Wien", HOSTILE, BIDI, LONG]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["job", "town", "age", "visit, first"])
        for i in range(600):
            job = (i * i + i // 7) % 3
            town = towns[(2 * job + i % 4) % len(towns)]  # nobody of a job lives in every town
            writer.writerow([("clerk", "miner", "nurse")[job], town, 18 + (i * 13) % 70, f"2024-0{1 + i % 9}-1{i % 9}"])
    return path


HOSTILE = "<script>document.title='taken over'</script>"
BIDI = "abc\u202egnp.exe"
LONG = "x" * 10_000


@pytest.fixture(scope="session")
def studio(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(people, tmp_path_factory.mktemp("studio")) as found:
        yield found


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def tab(studio: Running, chromium: Browser) -> Tab:
    """A tab that was let in."""
    found = chromium.tab(studio.new_address())
    found.until("location.pathname.startsWith('/s/') && document.readyState === 'complete'")
    return found
