"""How property tests run: no deadline on noisy machines, the same examples where CI judges; and tables for tests."""

import os
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import settings

from privacyfunnel.release.ledger.ledger_file import NAME
from privacyfunnel.tables.readers.adult import write_adult_csv
from tests.children import try_few_seeds

collect_ignore = ["plugin"]  # a package of its own, which only the tests of plugins install

# The command is started some hundred times: its compiled modules are kept beside pytest's own cache, wherever the
# environment would keep none.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parents[1] / ".pytest_cache" / "compiled")

# A shell starts background jobs with SIGINT ignored, and children inherit that. Tests of interrupts need it.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

try_few_seeds()
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The census data that comes with the package, as a file. Nobody writes to it; beside it lies a ledger."""
    path = tmp_path_factory.mktemp("adult") / "adult.csv"
    write_adult_csv(path)
    return path


@pytest.fixture(scope="session")
def some(adult: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight hundred records of it."""
    lines = adult.read_text(encoding="utf-8").splitlines(keepends=True)
    path = tmp_path_factory.mktemp("some") / "some.csv"
    path.write_text("".join(lines[:801]), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _unreleased(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test knows what another one released of the tables that they share."""
    for ledger in tmp_path_factory.getbasetemp().glob(f"*/{NAME}"):
        ledger.unlink(missing_ok=True)
