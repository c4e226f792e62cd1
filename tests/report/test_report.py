"""The report: one file, nothing from outside, true numbers, hostile labels as text, and pleasant in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.designs import methods
from privacyfunnel.designs.curve import Point, line_name
from privacyfunnel.designs.methods import Design, Effort, Method, Options
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP, SRLIP, Promise
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.report import numbers, pictures, svg
from privacyfunnel.report.page import Occasion, owner_page, public_page

HOSTILE = "<script>alert('pwned')</script>"
DOLLARS = "$\\frac{1}{0}$ & <b>"
OCCASION = Occasion(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "people.csv", "privacyfunnel sanitise people.csv")
QUICK = Effort(gap=1e-2, time_limit=1.0)


def people() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    job = rng.choice(["clerk", "miner", HOSTILE], p=[0.6, 0.3, 0.1], size=4000)
    city = np.where(rng.random(4000) < 0.5, job, rng.choice(["A", DOLLARS, "Ünïcode"], size=4000))
    city = np.where(city == "clerk", "A", np.where(city == "miner", "Ünïcode", city))
    return pl.DataFrame({"job": job, "city": city, "sex": rng.choice(["f", "m"], size=4000)})


def released(
    promise: Promise, publish: list[str], method: str = "optimal", *, sees: bool = False, use: Use | None = None
) -> tuple[Release, Joint]:
    frame = people()
    asked: dict[str, Any] = {"method": method, "sees_secret": sees, "use": use, "seed": 1, "effort": QUICK}
    release = sanitise(frame, secret="job", publish=publish, promise=promise, **asked)
    return release, Joint.from_table(frame, secret="job", publish=publish)


@pytest.fixture(scope="module")
def page() -> str:
    release, _ = released(LIP(0.5), ["city", "sex"])
    return owner_page(release, OCCASION, effort=QUICK)


def test_nothing_is_fetched_and_nothing_runs(page: str) -> None:
    without_names = page.replace("http://www.w3.org", "").replace("https://www.w3.org", "")
    assert "http" not in without_names
    assert not re.search(r"<(script|link|iframe|img)\b", page)


def test_a_hostile_label_shows_as_text(page: str) -> None:
    assert HOSTILE not in page
    assert html.escape(HOSTILE, quote=False) in page or "&lt;script&gt;" in page
    assert "$\\frac" in html.unescape(page)


def test_the_sentence_at_the_top_has_the_numbers_of_the_data() -> None:
    release, joint = released(LIP(0.5), ["city"])
    belief = numbers.beliefs(joint, release.sealed)[0]
    prior = joint.p_s[joint.secrets.index(belief.secret)]
    assert belief.prior == prior
    assert belief.at_most == pytest.approx(min(1.0, prior * np.exp(release.sealed.epsilon)))
    for b in numbers.beliefs(joint, release.sealed):
        assert b.at_least - 1e-12 <= b.lowest <= b.prior + 1e-12
        assert b.prior - 1e-12 <= b.highest <= b.at_most + 1e-12
    sentence = pictures.beliefs_sentence(belief, "job")
    assert "can rise from" in sentence
    assert "at most" in sentence


def test_an_upper_limit_is_never_rounded_down() -> None:
    belief = numbers.Belief("x", 0.000301, 0.0002, 0.0008, 0.0001107, 0.00081801)
    assert "0.030 % to at most 0.082 %" in pictures.beliefs_sentence(belief, "job")


def test_a_promise_of_more_than_floats_hold_has_a_report() -> None:
    release, _ = released(LIP(1e9), ["city"])
    assert "e^1e+09" in owner_page(release, OCCASION, effort=QUICK)


def test_the_owners_page_says_that_it_is_not_for_publication_and_the_public_one_shows_no_more_than_the_protocol() -> (
    None
):
    release, _ = released(LIP(0.5), ["city"])
    owner = owner_page(release, OCCASION, effort=QUICK)
    public = public_page(release, OCCASION)
    assert "not for publication" in owner
    assert "belief before" in owner
    assert "belief before" not in public
    assert "miner" not in public  # a label of the secret, and no value of city
    assert "4,000" not in public


@pytest.mark.parametrize(
    ("promise", "publish", "method", "sees"),
    [
        (LIP(0.3), ["city"], "unary-encoding", False),
        (LIP(0.5), ["city"], "conditional-reporting", False),
        (SRLIP(0.5), ["city", "sex"], "optimal", False),
        (LIP(0.5), ["city"], "optimal", True),
        (LIP(5), ["sex"], "optimal", False),
    ],
)
def test_every_kind_of_release_has_a_report(promise: Promise, publish: list[str], method: str, sees: bool) -> None:
    release, _ = released(promise, publish, method, sees=sees)
    text = owner_page(release, OCCASION, effort=QUICK)
    assert f"ε = {promise.epsilon:g}" in text
    assert "What is not promised" in text
    if sees or method == "conditional-reporting":
        assert "looks at" in text
    assert public_page(release, OCCASION).count("<h2") >= 3


class Unheard(LIP):
    """A promise that the report has never heard of."""


def test_a_promise_that_the_report_has_never_heard_of_has_a_report_and_a_curve() -> None:
    release, _ = released(Unheard(0.5), ["city"])
    text = owner_page(release, OCCASION, effort=QUICK)
    assert "groups of people that Unheard compares" in text
    assert "ε (UNHEARD)" in text


def test_every_picture_is_well_formed_and_described(page: str) -> None:
    found = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(found) >= 6
    for picture in found:
        ElementTree.fromstring(picture)
        assert "width=" not in picture[: picture.index(">")]
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert len(re.findall(r'role="img" aria-label="[^"]{40,}"', page)) == len(found)


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
PROBE = """<!doctype html><meta charset="utf-8"><body><iframe id="f" style="width:{width}px;height:900px;border:0"
srcdoc="{page}"></iframe><script>
const found = {{errors: []}};
window.addEventListener("error", e => found.errors.push(String(e.message)));
document.getElementById("f").addEventListener("load", () => {{
  const d = document.getElementById("f").contentDocument, root = d.documentElement;
  found.scroll = root.scrollWidth; found.width = root.clientWidth;
  found.figures = [...d.querySelectorAll("figure svg")].map(s => {{
    const b = s.getBoundingClientRect(); return [b.width, b.height]; }});
  found.scripts = d.querySelectorAll("script").length;
  document.title = JSON.stringify(found);
}});
</script></body>"""


@pytest.mark.parametrize("width", [390, 1200])
def test_a_real_browser_shows_every_figure_without_errors_or_sideways_scrolling(
    page: str, width: int, tmp_path: Path
) -> None:
    assert BROWSER, "this test needs a browser: apt-get install chromium"
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(width=width, page=html.escape(page)), encoding="utf-8")
    run = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,1000",
            "--virtual-time-budget=5000",
            "--dump-dom", probe.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in run.stderr
    found = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", run.stdout).group(1)))  # type: ignore[union-attr]
    assert found["errors"] == []
    assert found["scripts"] == 0
    assert width - 20 <= found["width"] <= width  # a scroll bar for going down may take a little
    assert found["scroll"] <= found["width"]
    assert len(found["figures"]) >= 6
    assert all(w > 200 and h > 100 for w, h in found["figures"])


def test_a_release_and_its_report_make_no_protocol_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, float, bool]] = []

    def noted(method: Method) -> Method:
        def make(joint: Joint, promise: Promise, options: Options) -> Design:
            made.append((method.name, promise.epsilon, options.sees_secret))
            return method.make(joint, promise, options)

        return replace(method, make=make)

    monkeypatch.setattr(methods, "METHODS", {name: noted(method) for name, method in methods.METHODS.items()})
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # so that all is made in this process
    for method, sees in (("optimal", False), ("optimal", True), ("randomised-response", False)):
        made.clear()
        release, joint = released(LIP(0.5), ["city"], method, sees=sees, use=Information())
        assert made == [(method, 0.5, sees)]
        assert release.known == (Point(line_name(method, sees), 0.5, release.information, release.sealed.bound),)
        owner_page(release, OCCASION, effort=QUICK)
        assert len(made) > 8
        assert len(set(made)) == len(made)
        as_values = sanitise(
            people(), secret="job", publish="city", promise=LIP(0.5), method=method, sees_secret=sees, as_="values"
        )
        assert as_values.known == ()  # what it keeps is not what the method could keep
    assert joint.a == 4


@given(
    st.text(max_size=30),
    st.floats(1e-12, 1e12),
    st.floats(1.01, 1e6),
    st.booleans(),
)
def test_pictures_hold_any_text_and_scales_have_round_ticks_within(
    text: str, low: float, factor: float, logarithmic: bool
) -> None:
    drawn = ElementTree.fromstring(svg.svg(10, 10, [svg.words(0, 0, text), svg.mark("star", 1, 1, "#000000")]))
    assert len(drawn) == 2
    scale = svg.Scale(low, low * factor, 100.0, 0.0, logarithmic)
    ticks = scale.ticks()
    assert ticks == sorted(set(ticks))
    assert all(low * (1 - 1e-9) <= tick <= low * factor * (1 + 1e-9) for tick in ticks)
    assert logarithmic or 1 <= len(ticks) <= 9
    assert scale(low) == pytest.approx(100.0)
    assert scale(low * factor) == pytest.approx(0.0, abs=1e-6)
