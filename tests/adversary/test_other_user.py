"""Another user of the machine looks on while commands run: what can they read, and when?

Looking is by the modes of files and folders, as the system judges another user's reading, and goes on all the time.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.adversary.interface import run, write_table
from tests.adversary.tables import SECRETS, draw_table

OTHERS_ENTER, OTHERS_READ = 0o001, 0o004


def readable_by_others(folder: Path) -> Iterator[Path]:
    """Files that somebody else can open."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:  # it went meanwhile
        return
    for path in entries:
        try:
            mode = path.lstat().st_mode
            if path.is_dir() and mode & OTHERS_ENTER:
                yield from readable_by_others(path)
            elif path.is_file() and mode & OTHERS_READ:
                yield path
        except OSError:
            continue


@contextmanager
def another_user(folder: Path) -> Iterator[set[str]]:
    """What was readable at some time, by name."""
    seen: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.001):
            seen.update(str(path.relative_to(folder)) for path in readable_by_others(folder))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        done.set()
        looking.join()
        seen.update(str(path.relative_to(folder)) for path in readable_by_others(folder))


FIXED = ("-s", "s", "-p", "x", "-e", 1, "--time-limit", 5)
KEY = ("--key-file", "key")
PUBLIC = {"public/README.html", "public/croissant.json", "public/dcat.jsonld"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder that others may enter, with a table that they cannot read."""
    tmp_path.chmod(0o755)
    write_table(draw_table(np.random.default_rng(3), 4_000, secrets=2).rows, tmp_path / "table.csv").chmod(0o600)
    return tmp_path


def test_others_can_read_what_is_published_and_nothing_else_at_any_time(home: Path) -> None:
    with another_user(home) as seen:
        for words in (
            ("keygen", "owner"),
            ("keygen", "key", "--rows"),
            ("sanitise", "table.csv", *FIXED, "--prior", "table", "--into", "out", "--sign", "owner"),
            ("design", "table.csv", *FIXED, "--prior", "table", "--into", "design.json"),
            ("apply", "design.json", "table.csv", "--into", "rows.csv", "--again", "--row-id", "id", *KEY),
            ("scan", "table.csv", "-s", "s", "--domain", "domain.json"),
            ("curve", "table.csv", "-s", "s", "-p", "z", "--epsilons", "1", "--into", "curve"),
            ("funnel", "table.csv", "-s", "s", "-p", "z", "--into", "funnel", "--time-limit", 1),
            ("estimate", "out", "--into", "estimates", "--matrix", "matrix.csv", "--posterior", "posterior.csv"),
        ):
            done = run(home, *words)
            assert not done.refused, done.err
    assert seen == {"owner.public.pem", "rows.csv", "out/public/sanitised.csv", *(f"out/{name}" for name in PUBLIC)}


def test_of_a_published_model_others_can_read_what_is_public_and_no_count_of_the_table(home: Path) -> None:
    with another_user(home) as seen:
        done = run(home, "sanitise", "table.csv", *FIXED, "--prior", "model", "--into", "out")
        assert not done.refused, done.err
    beside = {"public/sanitised.csv", "public/protocol.json", "public/codebook.csv", "public/estimates.csv"}
    assert seen == {f"out/{name}" for name in (*PUBLIC, *beside)}
    stated = json.loads((home / "out/public/protocol.json").read_text(encoding="utf-8"))
    assert set(SECRETS[:2]) <= set(json.dumps(stated["model"]).split('"'))  # the labels that the model is about
