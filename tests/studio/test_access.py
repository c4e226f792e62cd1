"""Who may speak to the studio: this machine, the browser that was let in, its own pages; nobody else."""

from __future__ import annotations

import json
import signal
import stat
import time
from pathlib import Path

import pytest

from privacyfunnel.studio.sessions import PREFIX, open_private_folder
from tests.commands import LONGEST
from tests.studio.running import Running, running
from tests.tables.test_bombs import cells, workbook

SECRET_WORDS = ("clerk", "miner", "nurse", "Ulm", "600")


@pytest.fixture(scope="module")
def inside(studio: Running) -> tuple[str, str]:
    return studio.entered()


def test_it_listens_on_this_machine_alone(studio: Running) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
    mine = [line[1] for line in listening if line[1].endswith(f":{studio.port:04X}")]
    assert mine == [f"0100007F:{studio.port:04X}"]
    for everywhere in ("/proc/net/tcp6",):
        if Path(everywhere).exists():
            assert f":{studio.port:04X} " not in Path(everywhere).read_text()


def test_a_wrong_token_opens_nothing_and_the_right_one_opens_once(studio: Running, inside: tuple[str, str]) -> None:
    path, cookie = inside
    assert studio.ask("/?token=wrong").status == 403
    address = studio.new_address().removeprefix(studio.origin)
    first = studio.ask(address)
    assert first.status == 200
    marks = first.headers["set-cookie"].lower()
    assert "httponly" in marks
    assert "samesite=strict" in marks
    assert studio.ask(address).status == 403
    assert studio.ask(f"{path}/table").status == 403
    assert studio.ask(f"{path}/table", Cookie=cookie.split("=")[0] + "=guessed").status == 403
    assert studio.ask(f"{path}/table", Cookie=cookie).status == 200


def test_the_cookie_alone_which_other_ports_see_opens_no_session(studio: Running, inside: tuple[str, str]) -> None:
    _, cookie = inside
    assert studio.ask("/", Cookie=cookie).status == 403
    assert studio.ask("/s/guessed/table", Cookie=cookie).status == 404
    told = studio.ask("/s/guessed/copy", "POST", "", Cookie=cookie, Origin=studio.origin)
    assert told.status == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1.evil.example", "localhost.evil.example:1"])
def test_a_name_that_was_made_to_point_here_is_refused(studio: Running, inside: tuple[str, str], host: str) -> None:
    path, cookie = inside
    for asked in ("/", f"{path}/table", "/static/studio.js"):
        answer = studio.ask(asked, host=host, Cookie=cookie)
        assert answer.status == 421
        assert not any(word in answer.text for word in SECRET_WORDS)


def test_another_site_can_neither_read_nor_change_anything(studio: Running, inside: tuple[str, str]) -> None:
    path, cookie = inside
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{studio.port}", "http://127.0.0.1:1"):
        assert studio.ask(f"{path}/promise", "POST", "epsilon=3", Cookie=cookie, Origin=origin).status == 403
        assert studio.ask(f"{path}/table", Cookie=cookie, Origin=origin).status == 403
    assert studio.ask(f"{path}/promise", "POST", "epsilon=3", Cookie=cookie).status == 403  # a browser always says
    assert studio.ask(f"{path}/table", Cookie=cookie, Sec_Fetch_Site="cross-site").status == 403
    assert studio.ask(f"{path}/table", Cookie=cookie, Sec_Fetch_Site="same-site").status == 403
    assert 'value="1.0" data-epsilon' in studio.ask(f"{path}/promise", Cookie=cookie).text
    ours = studio.ask(f"{path}/promise", "POST", "epsilon=3", Cookie=cookie, Origin=studio.origin)
    assert ours.status == 303
    assert 'value="3.0" data-epsilon' in studio.ask(f"{path}/promise", Cookie=cookie).text


def test_every_answer_forbids_foreign_scripts_frames_and_guesses(studio: Running, inside: tuple[str, str]) -> None:
    path, cookie = inside
    for asked in ("/", f"{path}/table", f"{path}/table/part", "/static/studio.js", f"{path}/nothing"):
        headers = studio.ask(asked, Cookie=cookie).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_an_upload_waits_where_only_its_owner_can_read_it(studio: Running) -> None:
    path, cookie = studio.entered()
    told = studio.ask(
        f"{path}/upload/table", "POST", "a,b\n1,2\n1,3\n", Cookie=cookie, Origin=studio.origin,
        X_File_Name="..%2F..%2Fetc%2Fpasswd.csv",
    )  # fmt: skip
    assert told.status == 200
    uploaded = [file for file in studio.home.rglob("*") if file.is_file() and "upload" in file.name]
    assert len(uploaded) == 1
    for found in studio.home.rglob("*"):
        mode = stat.S_IMODE(found.stat().st_mode)
        assert mode == (0o700 if found.is_dir() else 0o600), found
    assert studio.ask(f"{path}/upload/elsewhere", "POST", "x", Cookie=cookie, Origin=studio.origin).status == 404


def test_an_upload_keeps_the_format_of_its_name(studio: Running, tmp_path: Path) -> None:
    """A spreadsheet stored as .csv was refused."""
    path, cookie = studio.entered()

    def upload(name: str, content: str | bytes) -> str:
        said = {"Cookie": cookie, "Origin": studio.origin, "X_File_Name": name}
        assert studio.ask(f"{path}/upload/table", "POST", content, **said).status == 200
        return look()

    def look() -> str:
        for _ in range(600):
            part = json.loads(studio.ask(f"{path}/table/part", Cookie=cookie).text)
            if part["state"] != "working":
                return str(part["html"])
            time.sleep(0.1)
        raise AssertionError("the table was not read in a minute")

    people = "".join(json.dumps({"job": job, "town": "u"}) + "\n" for job in ("clerk", "miner", "nurse"))
    assert "<strong>3</strong> rows, <strong>2</strong> columns" in upload("people.jsonl", people)
    assert "must be a whole .xlsx file" in upload("people.xlsx", people)
    rows = [cells(1, "job", "town"), *(cells(i, job, "u") for i, job in enumerate(("clerk", "miner", "nurse"), 2))]
    book = workbook(tmp_path / "people.xlsx", "".join(rows)).read_bytes()
    shown = upload("people.xlsx", book)
    assert "<strong>3</strong> rows, <strong>2</strong> columns" in shown
    assert 'name="sheet"' in shown
    said = {"Cookie": cookie, "Origin": studio.origin, "Content_Type": "application/x-www-form-urlencoded"}
    assert studio.ask(f"{path}/table", "POST", "delimiter=&header_row=2", **said).status in (200, 303)
    assert "<strong>2</strong> rows, <strong>2</strong> columns" in look()  # the row of names is the one that was named
    assert studio.ask(f"{path}/table", "POST", "delimiter=&sheet=elsewhere", **said).status in (200, 303)
    assert "elsewhere" in look()


def test_a_browser_is_started_without_the_token_in_its_command_line(tmp_path: Path) -> None:
    told = tmp_path / "told"
    opener = tmp_path / "opener"
    opener.write_text(f'#!/bin/sh\necho "$1" > {told}.new && mv {told}.new {told}\n', encoding="utf-8")
    opener.chmod(0o700)
    with running(None, tmp_path, BROWSER=f"{opener} %s") as mine:
        end = time.monotonic() + LONGEST
        while not told.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        address = told.read_text(encoding="utf-8").strip()
        assert "token" not in address
        page = Path(address.removeprefix("file://"))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert mine.address in page.read_text(encoding="utf-8")
    assert not page.exists()


def test_a_path_that_is_no_table_is_answered_in_one_sentence(studio: Running) -> None:
    path, cookie = studio.entered()
    studio.ask(f"{path}/table", "POST", "path=/nowhere/people.csv", Cookie=cookie, Origin=studio.origin)
    end = time.monotonic() + LONGEST
    while "there is no file" not in (text := studio.ask(f"{path}/table/part", Cookie=cookie).text):
        assert time.monotonic() < end, text


def test_what_a_killed_studio_left_is_removed_by_the_next_and_what_another_uses_is_not(
    studio: Running, tmp_path: Path
) -> None:
    used = list(studio.home.glob(f"{PREFIX}*"))
    assert len(used) == 1
    with running(None, tmp_path) as killed:
        path, cookie = killed.entered()
        killed.ask(f"{path}/upload/table", "POST", "a,b\n1,2\n", Cookie=cookie, Origin=killed.origin)
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
    left = list(killed.home.glob(f"{PREFIX}*"))
    assert len(left) == 1
    moved = left[0].rename(studio.home / left[0].name)
    with open_private_folder(studio.home) as mine:
        assert not moved.exists()
        assert used[0].exists()
        assert stat.S_IMODE(mine.folder.stat().st_mode) == 0o700
    assert not mine.folder.exists()


def test_nothing_of_the_table_is_printed(studio: Running) -> None:
    assert not any(word in line.split("token=")[0] for line in studio.said for word in SECRET_WORDS)
