"""Many columns in a real browser: real rows with synthetic ones among them, as the command line publishes them."""

from __future__ import annotations

from pathlib import Path

from privacyfunnel.mechanisms.sealing import SealedProtocol
from tests.commands import files_of, run
from tests.studio.browser import Tab
from tests.studio.test_steps import DONE, at, on, role, saved

COLUMNS = ("education", "race", "sex", "relationship")


def test_many_columns_are_published_from_the_page_as_by_the_command(tab: Tab, adult: Path, tmp_path: Path) -> None:
    tab.fill("input[name=path]", str(adult))
    tab.click("form.card button")
    tab.shows("48,842")
    on(tab, "roles")
    role(tab, "income", "secret")
    for column in COLUMNS:
        role(tab, column, "publish")
    saved(tab)
    at(tab, "cost")
    tab.until(DONE)
    on(tab, "publish")
    tab.shows("This is not promised")
    tab.fill("input[name=into]", str(tmp_path / "out"))
    saved(tab)
    tab.run("document.querySelectorAll('.ticks input').forEach(tick => tick.click())")
    tab.click(".part form button")
    tab.shows("Published.")
    public = tmp_path / "out" / "public"
    assert {"public/protocol.json", "public/sanitised.csv", "owner/report.html"} <= files_of(tmp_path / "out")
    sealed = SealedProtocol.load(public / "protocol.json")
    assert sealed.mechanism.kind == "real-or-synthetic"
    assert {at.name for at in sealed.domain.attributes} == {*COLUMNS}
    assert run("audit", public).returncode == 0
    assert tab.complaints() == []
