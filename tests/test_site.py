"""The documents as a site: built without a warning, every link leads somewhere, nothing is fetched from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.commands import LONGEST

ROOT = Path(__file__).parent.parent


class Links(HTMLParser):
    """What a page links to and shows, and the places in it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("script", "img", "iframe") and "src" in given:
            self.fetched.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.fetched.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Links]:
    """Every page of the site, read."""
    into = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(into)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = {}
    for path in into.rglob("*.html"):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    return pages


def test_every_link_leads_somewhere_and_nothing_is_fetched_from_elsewhere(site: dict[Path, Links]) -> None:
    assert len(site) >= 12
    seen = 0
    for page, found in site.items():
        if page.name == "404.html":  # its links begin at the root of wherever the site will be
            continue
        for link in (*found.links, *found.fetched):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme == "https"
                assert link in found.links
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), (page.name, link)
            if parts.fragment and target in site:
                assert unquote(parts.fragment) in {"", *site[target].places}, (page.name, link)
            seen += 1
    assert seen > 100


def test_the_reference_documents_what_can_be_imported(site: dict[Path, Links]) -> None:
    reference = next(found for page, found in site.items() if page.name == "reference.html")
    for name in (
        "release.sanitise.sanitise",
        "estimation.tabulation.estimate",
        "designs.optimal.optimum.optimal",
        "errors.InputError",
    ):
        assert f"privacyfunnel.{name}" in reference.places


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("*.md")))
def test_links_of_documents_at_the_root_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert urlsplit(target).scheme == "https" or (ROOT / target).exists(), target
