"""The pages: they answer their readers' questions in true numbers, fetch nothing, and tell the public no secret."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.errors import SizeError
from privacyfunnel.model.credal.noisy_sample_rule import NoisySampleRule
from privacyfunnel.model.promises import LIP, Population, PopulationPromise
from privacyfunnel.model.published.noise import OwnNoise
from privacyfunnel.model.published.noisy_counts import NoisyCounts
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.report.release_page import owner_page
from privacyfunnel.spec import ReleaseSpec
from tests.commands import run
from tests.report.released import HOSTILE, KINDS, OCCASION, QUICK, page, people, readme, released

QUESTIONS = ["promised", "attacker", "analyst", "changed", "board", "not-promised", "repeat"]
README = ["promised", "estimate", "files", "cite", "changed", "not-promised", "made"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_answers_the_same_questions_in_the_same_order(kind: str) -> None:
    release, text = released(*KINDS[kind]), page(kind)
    for shown, questions in ((text, QUESTIONS), (readme(release), README)):
        assert re.findall(r'<h2 id="([^"]+)"', shown) == questions
        assert "nats" not in html.unescape(shown[: shown.index(f'<h2 id="{questions[-1]}"')])
        assert "None" not in shown
        assert "nan" not in re.sub(r"[a-z-]*nan[a-z]+", "", shown)
        assert all(float(place) <= 100 for place in re.findall(r"(?:left|width):([\d.]+)%", shown))
    assert f"ε = {release.sealed.promise.epsilon:g}" in text
    assert "For the owner of the data only" in text
    assert "sees the secret" in text or not release.sealed.sees_secret
    drawn = re.findall(r'<div class="bars".*?</div>', text, flags=re.DOTALL)
    named = len(release.joint.attributes) if release.joint else 0
    assert len(drawn) >= 1 + 2 * named


def test_a_promise_of_odds_says_what_holds_and_not_what_another_promise_leaves_open() -> None:
    text = html.unescape(page("odds"))
    assert "however common somebody took them to be, if published values go with them as" in text
    assert "whoever starts from another" not in text
    assert "whoever starts from another" in html.unescape(page("one column"))


def test_a_public_page_holds_no_count_no_secret_value_and_no_function_of_exact_counts() -> None:
    for kind in KINDS.values():
        release = released(*kind)
        public = readme(release)
        assert "miner" not in public  # a label of the secret, and no value of a published column
        assert "000" not in public[public.index("<main>") :].replace("4,000 records", "")  # as many as the table has
        stated = release.sealed.certificate
        exact = [stated.information, stated.entropy, stated.bound, release.sealed.epsilon, release.unchanged_expected]
        shown = set(re.findall(r"\d+\.\d+", html.unescape(public[public.index("<main>") :])))
        figures = {str(figure) for value in exact if value is not None for figure in (f"{value:.4f}", f"{value:.4g}")}
        assert not shown & (figures - {f"{release.sealed.promise.epsilon:g}"})
        assert '<span class="name">' not in public  # chances from exact counts can tell a secret
    assert "of all rows" not in readme(released(*KINDS["one column"]))


def test_chances_that_come_from_noisy_counts_are_drawn_for_everybody_in_whole_percents() -> None:
    release = released(*KINDS["one column"])
    assert release.joint is not None
    counts = NoisyCounts.draw(release.joint.weights, Fraction(1), OwnNoise)
    promise = PopulationPromise(LIP(0.5), Population(NoisySampleRule(counts, Fraction(19, 20)), counts.rows))
    public = readme(replace(release, design=replace(release.design, sealed=replace(release.sealed, promise=promise))))
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

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        return 0.0, 1.0


def test_a_promise_that_the_report_has_never_heard_of_has_a_report_that_says_no_more_than_it_knows() -> None:
    release = released(Unheard(0.5), ("city",))
    text = owner_page(release, OCCASION)
    assert "Unheard compares groups of people" in text
    assert "limits of the promise" not in text
    assert "sees a person&#39;s published record" in text  # its outputs are enumerated
    assert "after, at least" not in readme(release)


def test_the_command_writes_a_page_for_the_owner_and_one_for_everybody(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    done = run(
        "sanitise",
        "--prior=table",
        "people.csv",
        "-s",
        "job",
        "-p",
        "city",
        "-e",
        0.5,
        "--into",
        "out",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    owners, public = (
        (tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("owner/report.html", "public/README.html")
    )
    assert "privacyfunnel audit out/owner/protocol.json people.csv --sanitised out/public/sanitised.csv" in owners
    assert "For the owner of the data only" not in public
    assert not (tmp_path / "out" / "owner" / "report.html").stat().st_mode & 0o077


def test_a_column_without_a_name_is_not_an_empty_word() -> None:
    frame = people().with_columns(pl.Series("", range(4000)).cast(pl.String))
    release = sanitise(
        frame, ReleaseSpec(prior="table", secret="job", publish="sex", promise=LIP(0.5), seed=1, gap=QUICK.gap)
    )
    assert "Not published: job, city, age, a column without a name." in owner_page(release, OCCASION)


def test_a_table_too_large_for_the_page_is_left_out_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    release = released(LIP(0.5), ("city", "sex"), "randomised-response")
    assert "is too large for this page" not in owner_page(release, OCCASION)

    def too_large(*_: object) -> None:
        raise SizeError("too large")

    monkeypatch.setattr(type(release.sealed.mechanism), "value_joint", too_large)
    text = owner_page(release, OCCASION)
    assert "The table of all replacements is too large for this page" in text
    assert "of the rows show the value they had" in text
