"""What stands in the folder when a command ends: done, interrupted, terminated or killed."""

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import LONGEST, files_of, run, sanitise, several

PUBLISH = "education,relationship,race,sex"  # with occupation: more than half a minute's work for any method

FIRST_ROWS_WRITTEN = "tables/writers/table_writer.py:__call__"  # where the second batch is asked for

# The command, which sends itself signals, to all processes as a terminal does or to this one alone. A place is a file,
# and a thread waits until the main one has come there, and for a while; or `file:function`, and the second call of it
# is the place.
SIGNALLED = """
import os, sys, threading, time
from privacyfunnel.cli import program

place, number, times, all_of_them, *words = sys.argv[1:]
main = threading.get_ident()

def places(frame):
    while frame is not None:
        if frame.f_code.co_name != "<module>":  # which is only imported
            yield frame.f_code.co_filename.replace(os.sep, "/")
        frame = frame.f_back

def send():
    for _ in range(int(times)):
        (os.killpg if all_of_them == "all" else os.kill)(os.getpid(), int(number))
        time.sleep(0.01)

def watch():
    while not any(place in file for file in places(sys._current_frames()[main])):
        time.sleep(0.01)
    time.sleep(0.5)
    send()

calls = 0

def profile(frame, event, _):
    global calls
    file, name = place.split(":")
    if event == "call" and frame.f_code.co_name == name and file in frame.f_code.co_filename.replace(os.sep, "/"):
        calls += 1
        if calls == 2:
            sys.setprofile(None)
            send()

sys.argv[1:] = words
if ":" in place:
    sys.setprofile(profile)
else:
    threading.Thread(target=watch, daemon=True).start()
program()
"""


def ended(
    place: str, words: list[object], number: signal.Signals, times: int = 1, to: str = "all"
) -> "subprocess.CompletedProcess[str]":
    """The command, ended by a signal once it is at the place."""
    return subprocess.run(
        [sys.executable, "-c", SIGNALLED, place, str(int(number)), str(times), to, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
        start_new_session=True,
    )


def modes(folder: Path) -> dict[str, int]:
    """The modes of all files in a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in found}


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_the_report_is_for_its_owner_only_and_public_files_are_for_everybody(
    some: Path, tmp_path: Path, mask: int
) -> None:
    into = tmp_path / "out"
    words = [word for word in sanitise(some, into) if word != "--no-report"]
    done = run(*words, umask=mask)
    assert done.returncode == 0, done.stderr
    for more in ((), ("--force",)):
        again = run(*words, *more, umask=mask) if more else done
        assert again.returncode == 0, again.stderr
        assert files_of(into) == {"public/sanitised.csv", "owner/protocol.json", "owner/report.html"}
        expected = {"public": 0o666 & ~mask, "owner": 0o600}
        assert all(mode == expected[name.split("/")[0]] for name, mode in modes(into).items())
        assert stat.S_IMODE((into / "owner").stat().st_mode) == 0o700
        assert stat.S_IMODE((into / "public").stat().st_mode) == 0o777 & ~mask


def test_pictures_with_exact_shares_are_for_their_owner_only(some: Path, tmp_path: Path) -> None:
    exact, noisy = tmp_path / "exact", tmp_path / "noisy"
    columns = {"secret": "income", "publish": "sex", "epsilon": 4}  # for which noise refuses none of 800 rows
    for into, more in ((exact, []), (noisy, ["--prior=model", "--again"])):
        assert run(*sanitise(some, into, *more, **columns)).returncode == 0
    for folder, release, original in (("holder", exact, []), ("analyst", noisy, []), ("owner", noisy, [some])):
        compared = [word for path in original for word in ("--original", path)]
        (tmp_path / folder).mkdir()
        export = ["--export", tmp_path / folder / "rows.xlsx"]
        done = run("estimate", release, "--into", tmp_path / folder, *export, *compared, umask=0o022)
        assert done.returncode == 0, done.stderr
    assert set(modes(tmp_path / "holder").values()) == {0o600}  # a mechanism made from exact shares shows them
    assert set(modes(tmp_path / "analyst").values()) == {0o644}
    assert {name for name, mode in modes(tmp_path / "owner").items() if mode == 0o600} == {
        "estimates.svg",
        "estimates.png",
    }


@pytest.mark.parametrize("to", ["all", "one"])
def test_an_interrupted_solve_publishes_nothing(adult: Path, tmp_path: Path, to: str) -> None:
    words = several(adult, tmp_path / "out", PUBLISH, "--method", "optimal", "--time-limit", 30)
    done = ended("engine/driver.py", words, signal.SIGINT, to=to)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Interrupted. Nothing was left half-written.\n"
    assert list(tmp_path.iterdir()) == []


def test_an_impatient_interrupt_is_tidied_up_as_well(adult: Path, tmp_path: Path) -> None:
    done = ended(
        "engine/driver.py",
        several(adult, tmp_path / "out", PUBLISH, "--method", "optimal"),
        signal.SIGINT,
        times=5,
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted. Nothing was left half-written.\n")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_curve_draws_nothing(adult: Path, tmp_path: Path) -> None:
    words = ["curve", adult, "--secret", "occupation", "--publish", PUBLISH, "--into", tmp_path / "out"]
    done = ended("designs/curve.py", words, signal.SIGINT)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Interrupted. Nothing was left half-written.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_terminated_solve_publishes_nothing(adult: Path, tmp_path: Path) -> None:
    words = several(adult, tmp_path / "out", PUBLISH, "--method", "optimal", "--time-limit", 30)
    done = ended("engine/driver.py", words, signal.SIGTERM, to="one")
    assert (done.returncode, done.stdout) == (143, "")
    assert done.stderr == "Terminated. Nothing was left half-written.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_rows_half_written_are_removed_when_a_signal_ends_the_command(
    adult: Path, tmp_path: Path, number: signal.Signals
) -> None:
    done = ended(FIRST_ROWS_WRITTEN, sanitise(adult, tmp_path / "out", format="csv.gz"), number, to="one")
    assert done.returncode == 128 + number, done.stderr
    assert not (tmp_path / "out").exists()


def test_what_a_killed_run_leaves_is_for_its_owner_only_and_the_next_run_removes_it(
    adult: Path, tmp_path: Path
) -> None:
    into = tmp_path / "out"
    killed = ended(FIRST_ROWS_WRITTEN, sanitise(adult, into, format="csv.gz"), signal.SIGKILL, to="one")
    assert killed.returncode == -signal.SIGKILL
    assert not into.exists()
    (left,) = tmp_path.glob(".privacyfunnel.*.part")
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    done = run(*sanitise(adult, into, format="csv.gz"), umask=0o022)
    assert done.returncode == 0, done.stderr
    assert files_of(into) == {"public/sanitised.csv.gz", "owner/protocol.json"}
    assert not left.exists()
