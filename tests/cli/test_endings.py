"""What stands in the folder when a command ends: done, interrupted, terminated or killed."""

import stat
from pathlib import Path

import pytest

from tests.commands import run, sanitise


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_the_report_is_for_its_owner_only_and_public_files_are_for_everybody(
    some: Path, tmp_path: Path, mask: int
) -> None:
    into = tmp_path / "out"
    words = [word for word in sanitise(some, into, "--public-report") if word != "--no-report"]
    done = run(*words, umask=mask)
    assert done.returncode == 0, done.stderr
    public = 0o666 & ~mask
    assert modes(into) == {
        "sanitised.csv": public,
        "protocol.json": public,
        "public-report.html": public,
        "report.html": 0o600,
    }
    again = run(*words, "--force", umask=mask)
    assert again.returncode == 0, again.stderr
    assert modes(into)["report.html"] == 0o600


def test_pictures_with_exact_shares_are_for_their_owner_only(some: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"
    assert run(*sanitise(some, into)).returncode == 0
    public = [into / "protocol.json", into / "sanitised.csv"]
    for folder, more in (("analyst", []), ("owner", ["--original", some])):
        done = run("estimate", *public, "--into", tmp_path / folder, *more, umask=0o022)
        assert done.returncode == 0, done.stderr
    assert set(modes(tmp_path / "analyst").values()) == {0o644}
    assert {name for name, mode in modes(tmp_path / "owner").items() if mode == 0o600} == {
        "estimates.svg",
        "estimates.png",
    }
