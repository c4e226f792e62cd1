"""The report: it answers its readers' questions in true numbers, fetches nothing, and is pleasant in a real browser."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.designs import methods
from privacyfunnel.designs.curve import Curve, Point, line_name
from privacyfunnel.designs.methods import Design, Effort, Method, Options
from privacyfunnel.errors import SizeError
from privacyfunnel.laws import law
from privacyfunnel.model.beliefs import by_a_factor, by_odds
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.noise import OwnNoise
from privacyfunnel.model.noisy_counts import NoisyCounts
from privacyfunnel.model.noisy_priors import SampledWithNoise
from privacyfunnel.model.promises import LDP, LIP, SRLIP, ForPopulation, Population, Promise
from privacyfunnel.model.uses.use import Information
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.report import svg
from privacyfunnel.report.analyst import analyst
from privacyfunnel.report.attacker import Attacker, Belief, attacker, beliefs_bars, worst_sentence
from privacyfunnel.report.bars import divided, in_order
from privacyfunnel.report.changes import changes
from privacyfunnel.report.costs import costs_picture
from privacyfunnel.report.page import Occasion, owner_page, public_page
from privacyfunnel.report.words import factor, percent
from tests.commands import run

HOSTILE = "<script>alert('pwned')</script>"
DOLLARS = "$\\frac{1}{0}$ & <b>"
OCCASION = Occasion(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "people.csv", "privacyfunnel sanitise people.csv")
QUICK = Effort(gap=1e-2, time_limit=1.0)
QUESTIONS = ["promised", "attacker", "analyst", "changed", "not-promised", "repeat"]
AGES = ("< 10", "[10, 20)", "[20, 30)", ">= 30")


@cache
def people() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    job = rng.choice(["clerk", "miner", HOSTILE], p=[0.6, 0.3, 0.1], size=4000)
    city = np.where(rng.random(4000) < 0.5, job, rng.choice(["A", DOLLARS, "Ünïcode"], size=4000))
    city = np.where(city == "clerk", "A", np.where(city == "miner", "Ünïcode", city))
    age = np.where(rng.random(4000) < 0.7, (job == "miner") * 1 + 1, rng.integers(0, 4, size=4000))
    return pl.DataFrame(
        {"job": job, "city": city, "sex": rng.choice(["f", "m"], size=4000), "age": np.array(AGES)[age]}
    )


@cache
def released(
    promise: Promise, publish: tuple[str, ...], method: str = "optimal", sees: bool = False, as_: str = "outcomes"
) -> Release:
    """One release of each kind, for all tests."""
    return sanitise(
        people(),
        secret="job",
        publish=publish,
        promise=promise,
        method=method,
        sees_secret=sees,
        as_=as_,
        seed=1,
        effort=QUICK,
    )


KINDS = {
    "one column": (LIP(0.5), ("city",)),
    "several": (LIP(0.5), ("city", "sex")),
    "chain": (LIP(0.5), ("city", "sex", "age"), "chain"),
    "product": (LIP(0.5), ("city", "sex"), "product"),
    "sets": (LIP(0.3), ("city",), "unary-encoding"),
    "odds": (LDP(0.5), ("city",)),
    "side channels": (SRLIP(0.5), ("city", "sex")),
    "seeing the secret": (LIP(0.5), ("city",), "optimal", True),
    "values": (LIP(0.5), ("city",), "optimal", False, "values"),
    "nothing to hide": (LIP(5), ("sex",)),
}


@cache
def page(kind: str) -> str:
    return owner_page(released(*KINDS[kind]), OCCASION, effort=QUICK)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_answers_the_same_questions_in_the_same_order(kind: str) -> None:
    release, text = released(*KINDS[kind]), page(kind)
    public = public_page(release, OCCASION)
    for shown in (text, public):
        assert re.findall(r'<h2 id="([^"]+)"', shown) == QUESTIONS
        assert "nats" not in html.unescape(shown[: shown.index('<h2 id="repeat"')])
        assert "None" not in shown
        assert "nan" not in re.sub(r"[a-z-]*nan[a-z]+", "", shown)
        assert all(float(place) <= 100 for place in re.findall(r"(?:left|width):([\d.]+)%", shown))
    assert f"ε = {release.sealed.promise.epsilon:g}" in text
    assert "For the owner of the data only" in text
    assert "looks at the secret" in text or not release.sealed.sees_secret
    drawn = re.findall(r'<div class="bars".*?</div>', text, flags=re.DOTALL)
    named = len(release.joint.attributes) if release.joint else 0
    assert len(drawn) >= (2 if kind == "sets" else 1 + 2 * named)


def test_beliefs_lie_within_what_the_promise_allows_and_are_those_of_every_output() -> None:
    for kind in ("one column", "several", "chain", "product", "odds", "seeing the secret"):
        release = released(*KINDS[kind])
        sealed, joint = release.sealed, release.joint
        assert joint is not None
        found = attacker(joint, sealed)
        assert found.promised
        prior = dict(zip(joint.secrets, joint.p_s.tolist(), strict=True))
        for b in found.beliefs:
            assert b.prior == prior[b.secret]
            assert b.lowest is not None
            assert b.highest is not None
            assert b.least - 1e-12 <= b.lowest <= b.prior + 1e-12
            assert b.prior - 1e-12 <= b.highest <= b.most + 1e-12
            assert 0 <= b.least <= b.most <= 1
        guess = found.guessing
        assert guess is not None
        assert guess.blind - 1e-12 <= guess.published <= guess.original + 1e-12 or sealed.sees_secret
        assert f"{percent(found.worst.top, up=True)} sure" in html.unescape(page(kind))
    sets = released(*KINDS["sets"])
    assert sets.joint is not None
    assert attacker(sets.joint, sets.sealed).guessing is None


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=5), st.floats(0, 3), st.data())
def test_the_allowed_beliefs_are_sharp(weights: list[float], epsilon: float, data: st.DataObject) -> None:
    prior = np.array(weights) / sum(weights)
    chances = [data.draw(st.floats(math.exp(-epsilon), math.exp(epsilon))) for _ in weights]
    likely = np.array(chances)
    posterior = prior * likely / float(prior @ likely)
    odds = math.log(likely.max() / likely.min())
    size = max(abs(math.log(v / p)) for v, p in zip(posterior, prior, strict=True))
    for p, v in zip(prior.tolist(), posterior.tolist(), strict=True):
        for allowed, leak in ((by_a_factor, size), (by_odds, odds)):
            least, most = allowed(p, leak)
            assert least - 1e-9 <= v <= most + 1e-9
    # Two secrets: both ends are reached, by a factor for the one that moves furthest.
    p = float(prior[0])
    for allowed, other in ((by_odds, math.exp(-epsilon)), (by_odds, math.exp(epsilon))):
        v = p / (p + (1 - p) * other)
        assert min(abs(v - end) for end in allowed(p, epsilon)) < 1e-9
    top = by_a_factor(p, epsilon)[1]
    moved = max(abs(math.log(top / p)), abs(math.log((1 - top) / (1 - p))) if top < 1 else 0.0)
    assert moved == pytest.approx(epsilon, abs=1e-6)


def test_an_upper_limit_is_never_rounded_down_and_nothing_runs_past_the_whole() -> None:
    belief = Belief("x", 0.000301, 0.0001107, 0.00081801, 0.0002, 0.00081801)
    assert "can become 0.082 % sure" in worst_sentence(Attacker((belief,), None), "job")
    assert percent(0.12301, up=True) == "13 %"
    assert percent(0.9999, up=True) == "99.990 %"
    sure = Attacker((Belief("x", 0.9, *by_a_factor(0.9, 3.0), 0.5, 0.95),), None)
    assert all(mark.end <= 1 for row in beliefs_bars(sure, "job").rows for mark in row.marks)
    assert by_a_factor(0.9, 3.0)[1] < 1
    assert "e^1000000000" in owner_page(released(LIP(1e9), ("city",)), OCCASION, effort=QUICK)


def test_values_with_an_order_keep_it_and_others_are_sorted_by_share() -> None:
    shares = np.array([0.1, 0.2, 0.4, 0.3])
    assert in_order(Attribute("age", AGES), shares, 4).tolist() == [0, 1, 2, 3]
    assert in_order(Attribute("age", AGES), shares, 2).tolist() == [2, 3]
    assert in_order(Attribute("city", ("u", "v", "w", "x")), shares, 4).tolist() == [2, 3, 1, 0]
    given_order = (("size", ("S", "M", "L", "XL")),)
    assert in_order(Attribute("size", ("L", "M", "S", "XL")), shares, 4, given_order).tolist() == [2, 1, 0, 3]
    rows = re.findall(r'<span class="name">([^<]+)</span>', page("chain"))
    names = [re.sub(r"^y\d+ ", "", html.unescape(name)) for name in rows]
    ages = [AGES.index(name) for name in names if name in AGES]
    assert ages[:4] == [0, 1, 2, 3]  # for the analyst, then by codes of what is changed
    assert ages[4:]
    assert ages[4:] == sorted(ages[4:])


def test_what_is_changed_adds_up() -> None:
    for kind in ("one column", "several", "chain", "product", "values"):
        release = released(*KINDS[kind])
        assert release.joint is not None
        for change in changes(release.joint, release.sealed):
            assert sum(shown.share for shown in change.shown) == pytest.approx(1)
            assert all(shown.posterior.sum() == pytest.approx(1) for shown in change.shown)
            assert change.own is not None
            assert 0 <= change.exact <= change.own + 1e-9 <= 1 + 2e-9
            assert change.own >= release.unchanged_expected - 1e-9
            for shown in change.shown:
                marks = divided(shown.posterior, change.column.labels, shown.value)
                assert marks[-1].end == pytest.approx(1, abs=0.01)
    one = released(*KINDS["one column"])
    assert one.joint is not None
    assert changes(one.joint, one.sealed)[0].own == pytest.approx(one.unchanged_expected)


def test_what_an_analyst_gets_is_told_for_every_column_and_one_cross_table() -> None:
    release = released(*KINDS["chain"])
    assert release.joint is not None
    found = analyst(release.sealed, release.joint, release.rows)
    assert [told.columns for told in found.columns] == [("city",), ("sex",), ("age",)]
    assert found.cross is not None
    assert set(found.cross.columns) == {"city", "age"}  # both follow the job
    assert found.cross.shares.sum() == pytest.approx(1)
    text = html.unescape(page("chain"))
    assert " × ".join(found.cross.columns) in text
    assert all(str(told).removeprefix("each") in text for told in (*found.columns, found.cross))


def test_a_promise_of_odds_says_what_holds_and_not_what_another_promise_leaves_open() -> None:
    text = html.unescape(page("odds"))
    assert "whatever somebody believes about job beforehand" in text
    assert "whoever starts from another belief" not in text
    assert "whoever starts from another belief" in html.unescape(page("one column"))


def test_the_release_is_never_said_to_keep_more_than_the_best() -> None:
    curve = Curve("lip", 2.0, (Point("optimal", 1.0, 1.0, 1.5), Point("optimal", 2.0, 1.2, 1.6)))
    assert "keeps 1.400 nats, the most of all that were tried" in costs_picture(curve, "chain", 1.0, 1.4).words
    assert "the best that was found at that ε keeps 1.000" in costs_picture(curve, "chain", 1.0, 0.8).words
    release = released(*KINDS["product"])
    drawn = html.unescape(page("product"))
    assert f"keeps {release.sealed.information:.3f} nats" in drawn


def test_a_public_page_holds_no_count_no_secret_value_and_no_more_digits_than_the_protocol_file() -> None:
    for kind in KINDS.values():
        release = released(*kind)
        public = public_page(release, OCCASION)
        assert "miner" not in public  # a label of the secret, and no value of a published column
        assert "4,000" not in public
        assert "4000" not in public
        stated = release.sealed.certificate
        for exact, rounded in (
            (release.sealed.information, stated.information),
            (release.sealed.entropy, stated.entropy),
        ):
            assert f"{rounded:.4f}" in public
            assert f"{exact:.6f}" not in public
        assert '<span class="name">' not in public  # chances from exact counts can tell a secret
    assert "of all rows" not in public_page(released(*KINDS["one column"]), OCCASION)


def test_chances_that_come_from_noisy_counts_are_drawn_for_everybody_in_whole_percents() -> None:
    release = released(*KINDS["one column"])
    assert release.joint is not None
    counts = NoisyCounts.drawn(release.joint.weights, Fraction(1), OwnNoise)
    promise = ForPopulation(LIP(0.5), Population(SampledWithNoise(counts, Fraction(19, 20)), counts.rows))
    public = public_page(replace(release, sealed=replace(release.sealed, promise=promise)), OCCASION)
    widths = re.findall(r'<i class="(?:own|next|third|rest)" style="left:[\d.]+%;width:([\d.]+)%"', public)
    rows = public.count('<span class="name">')
    assert rows == len(release.sealed.domain.combos)
    assert len(widths) >= rows
    assert "in whole percents" in public


def test_nothing_is_fetched_and_nothing_runs() -> None:
    without_names = page("several").replace("http://www.w3.org", "").replace("https://www.w3.org", "")
    assert "http" not in without_names
    assert not re.search(r"<(script|link|iframe|img)\b", without_names)


def test_a_hostile_label_shows_as_text() -> None:
    text = page("several")
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert "$\\frac" in html.unescape(text)


class Unheard(LIP):
    """A promise that the report has never heard of."""

    def movable(self, prior: float, epsilon: float) -> tuple[float, float]:
        return 0.0, 1.0


def test_a_promise_that_the_report_has_never_heard_of_has_a_report_that_says_no_more_than_it_knows() -> None:
    release = released(Unheard(0.5), ("city",))
    text = owner_page(release, OCCASION, effort=QUICK)
    assert "groups of people that Unheard compares" in text
    assert "ε (UNHEARD)" in text
    assert "allowed by the promise" not in text
    assert "can become" in text  # what its outputs do is known all the same
    assert "can become at least" not in public_page(release, OCCASION)


def test_every_picture_is_well_formed_and_described() -> None:
    text = page("several")
    found = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert found
    for picture in found:
        ElementTree.fromstring(picture)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    drawn = len(found) + text.count('<div class="bars"')
    assert len(re.findall(r'role="img" aria-label="[^"]{40,}"', text)) == drawn


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FRAME = '<iframe id="{id}" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>'
PROBE = """<!doctype html><meta charset="utf-8"><body>{frames}<script>
const found = {{errors: [], frames: {{}}}};
window.addEventListener("error", e => found.errors.push(String(e.message)));
function look(frame) {{
  const d = frame.contentDocument, root = d.documentElement, box = e => e.getBoundingClientRect();
  const names = [...d.querySelectorAll(".bars > .name")], tracks = [...d.querySelectorAll(".bars > .track")];
  const ticks = [...d.querySelectorAll(".scale")].map(s => [...s.children].filter(t => box(t).width).map(t => box(t)));
  found.frames[frame.id] = {{
    scroll: root.scrollWidth, width: root.clientWidth,
    figures: [...d.querySelectorAll("figure svg")].map(s => [box(s).width, box(s).height]),
    cut: names.filter(n => n.scrollWidth > n.clientWidth + 1).length,
    tracks: tracks.map(t => box(t).width),
    marks: [...d.querySelectorAll(".bars .track i")].filter(m => box(m).width == 0 || box(m).height == 0).length,
    overlap: ticks.filter(row => row.some((t, i) => i && t.left < row[i - 1].right)).length,
    broken: [...d.querySelectorAll("tbody th")].filter(t => t.scrollWidth > t.clientWidth + 1).length,
    scripts: d.querySelectorAll("script").length,
  }};
}}
window.addEventListener("load", () => {{
  document.querySelectorAll("iframe").forEach(look);
  document.title = JSON.stringify(found);
}});
</script></body>"""


def test_a_real_browser_shows_every_figure_without_errors_cut_names_or_sideways_scrolling(tmp_path: Path) -> None:
    assert BROWSER, "this test needs a browser: apt-get install chromium"
    shown = {f"{kind} {width}": (page(kind), width) for kind in ("several", "chain", "sets") for width in (390, 1200)}
    shown["public 390"] = (public_page(released(*KINDS["one column"]), OCCASION), 390)
    frames = [FRAME.format(id=name, width=width, page=html.escape(text)) for name, (text, width) in shown.items()]
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(frames="".join(frames)), encoding="utf-8")
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,1000",
            "--virtual-time-budget=5000",
            "--dump-dom", probe.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    found = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", done.stdout).group(1)))  # type: ignore[union-attr]
    assert found["errors"] == []
    assert found["frames"].keys() == shown.keys()
    for name, (_, width) in shown.items():
        seen = found["frames"][name]
        assert seen["scripts"] == seen["cut"] == seen["marks"] == seen["overlap"] == seen["broken"] == 0, (name, seen)
        assert width - 20 <= seen["width"] <= width  # a scroll bar for going down may take a little
        assert seen["scroll"] <= seen["width"], name
        assert all(w > 200 and h > 100 for w, h in seen["figures"])
        assert all(track >= 90 for track in seen["tracks"]), name


def test_a_release_and_its_report_make_no_protocol_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, float, bool]] = []

    def noted(method: Method) -> Method:
        def make(joint: Joint, promise: Promise, options: Options) -> Design:
            made.append((method.name, promise.epsilon, options.sees_secret))
            return method.make(joint, promise, options)

        return replace(method, make=make)

    monkeypatch.setattr(methods, "METHODS", {name: noted(method) for name, method in methods.METHODS.items()})
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # so that all is made in this process
    for method, sees in (("optimal", True), ("randomised-response", False)):
        made.clear()
        asked: dict[str, Any] = {"method": method, "sees_secret": sees, "use": Information(), "effort": QUICK}
        release = sanitise(people(), secret="job", publish="sex", promise=LIP(0.01), **asked)
        assert made == [(method, 0.01, sees)]
        assert release.known == (Point(line_name(method, sees), 0.01, release.information, release.sealed.bound),)
        owner_page(release, OCCASION, effort=QUICK)
        assert len(made) > 8
        assert len(set(made)) == len(made)
    assert released(*KINDS["values"]).known == ()  # what it keeps is not what the method could keep


def test_the_command_draws_both_pages_beside_the_release(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    done = run(
        "sanitise", "people.csv", "-s", "job", "-p", "city", "-e", 0.5, "--into", "out", "--public-report", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    owners, public = (
        (tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("report.html", "public-report.html")
    )
    assert "privacyfunnel audit out/protocol.json people.csv --sanitised out/sanitised.csv" in owners
    assert "For the owner of the data only" not in public
    assert not (tmp_path / "out" / "report.html").stat().st_mode & 0o077


@given(
    st.text(max_size=30),
    st.floats(1e-12, 1e12),
    st.floats(1.01, 1e6),
    st.booleans(),
)
def test_pictures_hold_any_text_and_scales_have_round_ticks_within(
    text: str, low: float, times: float, logarithmic: bool
) -> None:
    drawn = ElementTree.fromstring(svg.svg(10, 10, [svg.words(0, 0, text), svg.mark("star", 1, 1, "#000000")]))
    assert len(drawn) == 2
    scale = svg.Scale(low, low * times, 100.0, 0.0, logarithmic)
    ticks = scale.ticks()
    assert ticks == sorted(set(ticks))
    assert all(low * (1 - 1e-9) <= tick <= low * times * (1 + 1e-9) for tick in ticks)
    assert logarithmic or 1 <= len(ticks) <= 9
    assert scale(low) == pytest.approx(100.0)
    assert scale(low * times) == pytest.approx(0.0, abs=1e-6)


def test_factors_are_never_rounded_down_and_huge_ones_are_powers() -> None:
    assert [factor(epsilon) for epsilon in (0.0, 1.0, 9.0, 12.1)] == ["1", "2.72", "8104", "e^12.1"]


def test_a_column_without_a_name_is_not_an_empty_word() -> None:
    frame = people().with_columns(pl.Series("", range(4000)).cast(pl.String))
    release = sanitise(frame, secret="job", publish="sex", promise=LIP(0.5), seed=1, effort=QUICK)
    assert "Not published: job, city, age, a column without a name." in owner_page(release, OCCASION, effort=QUICK)


def test_a_table_too_large_for_the_page_is_left_out_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    release = released(LIP(0.5), ("city", "sex"), "forced-response")
    assert "too large a table" not in owner_page(release, OCCASION, effort=QUICK)

    def too_large(*_: object) -> None:
        raise SizeError("too large")

    monkeypatch.setattr(type(release.sealed.law), "with_values", too_large)
    text = owner_page(release, OCCASION, effort=QUICK)
    assert "What each value became is too large a table for a page" in text
    assert "of the rows show the value they had" in text


def test_what_publishes_values_as_they_are_needs_no_table_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forced response of fifty thousand values took twenty gigabytes for it."""
    monkeypatch.setattr(law, "LARGEST_TABLE", 3)
    release = sanitise(people(), secret="job", publish="city", promise=LIP(0.5), method="forced-response", seed=1)
    assert release.codebook is None
    assert release.joint is not None
    with pytest.raises(SizeError, match="at most 3 entries"):
        release.sealed.law.with_values(release.joint)
