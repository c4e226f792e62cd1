"""The whole way in a real browser: from a table to its release, to the analyst, to the audit."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import axe_core_python
import pytest

from privacyfunnel.atomic_files import HIDDEN
from privacyfunnel.locks import lock_folder
from privacyfunnel.mechanisms.sealing import SealedProtocol
from tests.commands import LONGEST, files_of
from tests.studio.browser import Browser, Tab
from tests.studio.running import Running, running

DONE = "document.querySelector('.part')?.dataset.state === 'done'"


def role(tab: Tab, column: str, chosen: str) -> None:
    legends = "[...document.querySelectorAll('.column')]"
    tab.until(f"{legends}.length > 0")
    number = tab.run(
        f"{legends}.find(c => c.querySelector('legend').textContent.trim() === {json.dumps(column)}).dataset.column"
    )
    tab.click(f'input[name="role.{number}"][value={chosen}]')


def saved(tab: Tab) -> None:
    """Wait until what was chosen is kept."""
    tab.until("![...document.querySelectorAll('form')].some(form => form.dataset.unsaved)")


def on(tab: Tab, step: str) -> None:
    tab.click(f"button[value={step}]")
    tab.until(f"document.body.dataset.page === '{step}' && document.readyState === 'complete'")


def at(tab: Tab, step: str) -> None:
    tab.go(str(tab.run("location.origin + '/s/' + document.body.dataset.session + '/'")) + step)


def design_from_table(tab: Tab) -> None:
    """Choose the exact prior: a published model needs more rows than these tests have."""
    at(tab, "promise")
    tab.click("input[name=prior][value=table]")
    saved(tab)


@pytest.fixture(scope="module")
def published(studio: Running, chromium: Browser, people: Path, tmp_path_factory: pytest.TempPathFactory) -> Tab:
    """A tab that went the whole way, with an uploaded table."""
    tab = chromium.tab(studio.new_address())
    tab.until("document.body.dataset.page === 'table'")
    tab.upload("[data-upload=table]", people)
    tab.shows("600")
    assert tab.run("document.title") == "Table · privacyfunnel studio"
    on(tab, "roles")
    role(tab, "job", "secret")
    role(tab, "town", "publish")
    role(tab, "age", "publish")
    tab.fill("[data-bin='2']", "30,50")
    tab.until("document.querySelector('[data-cut=\"2\"]').textContent.includes('30–49')")
    saved(tab)
    on(tab, "today")
    tab.until(DONE)
    on(tab, "promise")
    tab.fill("[data-slider]", "1.5")
    tab.shows("ε = 1.5")
    saved(tab)
    on(tab, "cost")
    tab.shows("A published model needs more rows")  # 600 are too few
    design_from_table(tab)
    on(tab, "cost")
    tab.until(DONE)
    on(tab, "publish")
    tab.shows("This is not promised")
    tab.fill("input[name=into]", str(tmp_path_factory.mktemp("published") / "out"))
    saved(tab)
    tab.run("document.querySelectorAll('.ticks input').forEach(tick => tick.click())")
    tab.click(".part form button")
    tab.shows("Published.")
    return tab


def folder(tab: Tab) -> Path:
    return Path(str(tab.run("document.querySelector('.part p code').textContent")))


def test_what_is_published_are_the_files_of_the_command_line(published: Tab, studio: Running, people: Path) -> None:
    at(published, "publish")
    files = folder(published)
    mine = {"owner/protocol.json", "owner/codebook.csv", "owner/report.html"}
    assert files_of(files) == {"public/sanitised.csv", *mine}
    sealed = SealedProtocol.load(files / "owner" / "protocol.json")
    assert (sealed.promise.name, sealed.promise.epsilon) == ("LIP", 1.5)
    assert sealed.domain.bins == {"age": (30.0, 50.0)}
    words = shlex.split(str(published.run("document.getElementById('command').textContent")))
    assert words[:2] == ["privacyfunnel", "sanitise"]
    again = [word if not word.startswith("--into") else f"--into={studio.here / 'again'}" for word in words[1:]]
    again = [word for word in again if not word.startswith("--ledger")]
    again[1] = str(people)
    done = subprocess.run(
        [sys.executable, "-m", "privacyfunnel", *again, "--no-report"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (studio.here / "again" / "owner" / "protocol.json").read_text() == (
        files / "owner" / "protocol.json"
    ).read_text()
    report = published.run("document.querySelector('iframe.report') !== null")
    assert report
    assert published.complaints() == []


def test_hostile_labels_are_text_on_every_page(published: Tab) -> None:
    for step in ("table", "roles", "today", "promise", "cost", "publish"):
        at(published, step)
        if step not in {"promise", "publish"}:
            published.until(DONE)
        assert published.run("document.title").endswith("privacyfunnel studio")
        assert published.run("document.querySelectorAll('script').length") == 1
        assert "\u202e" not in published.text()
        assert published.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    at(published, "table")
    published.shows("<script>document.title")
    assert published.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_serves_those_who_do_not_see_it(published: Tab, scheme: str) -> None:
    published.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    axe = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    steps = ("table", "roles", "today", "promise", "cost", "publish", "analyst", "audit")
    for step in steps if scheme == "light" else ("roles", "promise"):
        at(published, step)
        published.until("[undefined, 'done'].includes(document.querySelector('.part')?.dataset.state)")
        published.run(f"{axe}; 1")
        found = published.run(
            "axe.run({iframes: false}).then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html.slice(0, 200)))"
        )
        assert found == [], step
    published.call("Emulation.setEmulatedMedia", features=[])


def test_reload_and_back_lose_nothing(published: Tab) -> None:
    at(published, "promise")
    at(published, "roles")
    published.until(DONE)
    roles = "[...document.querySelectorAll('.column')].map(c => c.dataset.role).join()"
    published.until(f"{roles} === 'secret,publish,publish,leave'")
    published.until("document.querySelector('[data-bin=\"2\"]')?.value === '30,50'")
    published.run("history.back()")
    published.until("document.body.dataset.page === 'promise'")
    published.until("document.querySelector('[data-epsilon]')?.value === '1.5'")
    at(published, "publish")
    published.shows("Published.")


def test_an_analyst_gets_estimates_cross_tables_and_completed_tables(published: Tab) -> None:
    at(published, "analyst")
    published.click("form[action$=mine] button")
    published.until(DONE)
    published.shows("95 % intervals")
    published.fill("select[name=one]", "town")
    published.until(f"{DONE} && document.querySelectorAll('h2').length === 2")
    published.fill("select[name=other]", "age")
    published.until(f"{DONE} && document.querySelector('h2').textContent.includes('town & age')")
    assert published.run("fetch('analyst/estimates.csv').then(a => a.text()).then(t => t.split('\\n').length)") > 10
    imputed = published.run("fetch('analyst/imputed?table=2').then(a => a.text())")
    lines = imputed.splitlines()
    assert lines[0] == "town,age"
    assert len(lines) == 601
    assert published.complaints() == []


def test_an_audit_says_in_words_whether_it_holds(published: Tab, people: Path, tmp_path: Path) -> None:
    at(published, "audit")
    published.click("form[action$=mine] button")
    published.shows("The promise holds.")
    matrix = tmp_path / "matrix.csv"
    matrix.write_text("job,a,b\nclerk,0.9,0.1\nminer,0.5,0.5\nnurse,0,1\n", encoding="utf-8")
    published.upload("[data-upload=rules]", matrix)
    published.until("document.querySelector('.file').innerText.includes('matrix.csv')")
    published.fill("input[name=secret]", "town")
    published.click("form.card button")
    published.until("document.querySelector('.said')?.innerText.includes('leaks ε = ')")
    assert published.complaints() == []


def test_two_tabs_do_not_mix(published: Tab, chromium: Browser) -> None:
    at(published, "promise")
    mine = published.run("document.body.dataset.session")
    other = chromium.tab(str(published.run("location.href")))
    other.until(f"document.body.dataset.session !== {json.dumps(mine)} && document.readyState === 'complete'")
    other.fill("[data-slider]", "0.5")
    saved(other)
    at(published, "promise")
    assert published.run("document.querySelector('[data-epsilon]').value") == "1.5"
    at(other, "promise")
    assert other.run("document.querySelector('[data-epsilon]').value") == "0.5"
    assert other.complaints() == []


def test_nothing_is_published_before_everything_is_ticked(tab: Tab, studio: Running, tmp_path: Path) -> None:
    on(tab, "roles")
    role(tab, "job", "secret")
    role(tab, "town", "publish")
    saved(tab)
    design_from_table(tab)
    at(tab, "publish")
    tab.shows("This is not promised")
    cookie = "; ".join(f"{c['name']}={c['value']}" for c in tab.call("Network.getCookies")["cookies"])
    session = tab.run("document.body.dataset.session")
    asked = f"into={tmp_path / 'out'}&tick.0=yes"
    told = studio.ask(f"/s/{session}/publish/write", "POST", asked, Cookie=cookie, Origin=studio.origin)
    assert told.status == 422
    assert "must be ticked" in told.text
    assert not (tmp_path / "out").exists()


def test_a_search_can_be_stopped_and_its_best_so_far_taken(tab: Tab, studio: Running, adult: Path) -> None:
    tab.fill("input[name=path]", str(adult))
    tab.click("form.card button")
    tab.shows("48,842")
    on(tab, "roles")
    role(tab, "occupation", "secret")
    for column in ("education", "race"):
        role(tab, column, "publish")
    saved(tab)
    design_from_table(tab)
    at(tab, "cost")
    tab.until("document.querySelector('form[action$=best] button') !== null")  # a first result; the search goes on
    tab.click("form[action$=stop] button")
    tab.shows("The search was stopped")
    tab.click("form[action$=again] button")
    tab.click("form[action$=best] button")
    tab.shows("You accepted the result after 2 seconds")
    at(tab, "publish")
    tab.shows("--time-limit=2")


def test_a_studio_that_is_killed_while_it_publishes_leaves_nothing_half_written(
    people: Path, chromium: Browser, tmp_path: Path
) -> None:
    with running(people, tmp_path) as mine:
        tab = chromium.tab(mine.new_address())
        tab.until("document.body.dataset.page === 'table'")
        on(tab, "roles")
        role(tab, "job", "secret")
        role(tab, "town", "publish")
        saved(tab)
        design_from_table(tab)
        at(tab, "publish")
        tab.shows("This is not promised")
        out = tmp_path / "new" / "out"
        out.parent.mkdir()
        tab.fill("input[name=into]", str(out))
        saved(tab)
        with lock_folder(out.parent):  # the worker writes every file into its hidden folder, then waits for this lock
            tab.run("document.querySelectorAll('.ticks input').forEach(tick => tick.click())")
            tab.click(".part form button")
            end = time.monotonic() + LONGEST
            while not list(out.parent.glob(".*/owner/disclosure-record.json")):  # the last of them
                assert time.monotonic() < end
                time.sleep(0.01)
            mine.process.send_signal(signal.SIGKILL)
            mine.process.wait()
            end = time.monotonic() + LONGEST
            while any(f"worker {mine.process.pid}" in line for line in _processes()):  # it ends without its studio
                assert time.monotonic() < end
                time.sleep(0.05)
    assert [path.name for path in out.parent.iterdir() if not HIDDEN.fullmatch(path.name)] == []
    asked = [
        "sanitise",
        "--prior=table",
        str(people),
        "--secret",
        "job",
        "--publish",
        "town",
        "--epsilon",
        "1",
        "--into",
        str(out),
    ]
    subprocess.run([sys.executable, "-m", "privacyfunnel", *asked], check=True, timeout=LONGEST)
    assert (out / "public" / "sanitised.csv").exists()
    assert list(out.parent.iterdir()) == [out]  # the next run cleared it away


def _processes() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return found
