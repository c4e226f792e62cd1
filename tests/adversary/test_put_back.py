"""The adversary finds what was once broken, when it is put back, and leaks that nobody made yet.

Defects are put back around public functions and commands, not inside, so that these tests outlive what they wrap.
"""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privacyfunnel as pf
from privacyfunnel.cli import main
from tests.adversary import interface
from tests.adversary import population as people
from tests.adversary.__main__ import attack_once
from tests.adversary.attacks import Attack, Verdict
from tests.adversary.cases import CASES, QUICK

Main = Callable[[list[str]], int]


def attack(name: str, *, rows: int = 3_000, releases: int = 1) -> Verdict:
    found: Attack = CASES[name]
    return attack_once(found, 0, seed=5, rows=rows, releases=releases)


@pytest.fixture
def wrap_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Main, list[str]], int]], None]:
    """Put something around the command line."""

    def wrap(around: Callable[[Main, list[str]], int]) -> None:
        monkeypatch.setattr(interface, "main", lambda words: around(main, words))

    return wrap


@pytest.mark.parametrize("case", ["Sanitiser", "Sanitiser, srlip"])
def test_the_adversary_finds_secrets_that_are_joined_by_the_index(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = pf.Sanitiser.fit

    def fit_by_label(self: pf.Sanitiser, X: Any, y: Any = None, *, s: Any = None) -> pf.Sanitiser:
        listed = list(s)
        return fit(self, X, y, s=[listed[label] for label in X.index])

    assert not attack(f"{case}, pandas, shuffled index").broken
    monkeypatch.setattr(pf.Sanitiser, "fit", fit_by_label)
    assert attack(f"{case}, pandas, shuffled index").broken


def test_the_adversary_finds_buffers_in_the_order_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    sanitise = pf.sanitise

    def sanitise_with_views(frame: pl.DataFrame, spec: pf.ReleaseSpec) -> Any:
        release = sanitise(frame, spec)
        return replace(release, table=release.table.with_columns(frame["k"][np.asarray(release.order)]))

    assert not attack("order, polars").broken
    monkeypatch.setattr(pf, "sanitise", sanitise_with_views)
    found = attack("order, polars")
    assert found.broken
    assert found.worst == "bytes of k"


def test_the_adversary_finds_files_in_whose_bytes_the_table_stands_in_its_order(wrap_command: Any) -> None:
    def with_views(command: Main, words: list[str]) -> int:
        code = command(words)
        path = Path("out/public/sanitised.arrow")
        original, shown = (pl.read_ipc(BytesIO(Path(file).read_bytes())) for file in (words[1], path))
        places: dict[str, list[int]] = {}
        for i, text in enumerate(original["k"]):
            places.setdefault(text, []).append(i)
        order = [places[text].pop() for text in shown["k"]]
        shown.with_columns(original["k"][order]).write_ipc(path, compat_level=interface.NEWEST)
        return code

    assert not attack("order, table.arrow").broken
    wrap_command(with_views)
    found = attack("order, table.arrow")
    assert found.broken
    assert found.worst == "bytes of k"


@pytest.mark.parametrize("case", ["order, table.csv", "order, table.parquet", "order, apply"])
def test_the_adversary_finds_rows_in_the_order_of_the_table(case: str, wrap_command: Any) -> None:
    def in_order(command: Main, words: list[str]) -> int:
        return command([*words, *(["--keep-order"] if words[0] in ("sanitise", "apply") else [])])

    wrap_command(in_order)
    assert attack(case).broken


def test_the_adversary_finds_places_that_functions_give_away(monkeypatch: pytest.MonkeyPatch) -> None:
    sanitise = pf.sanitise
    monkeypatch.setattr(pf, "sanitise", lambda frame, spec: sanitise(frame, replace(spec, keep_order=True)))
    assert attack("sanitise, polars").worst.startswith("place")
    assert attack("sanitise, polars").broken


def test_the_adversary_finds_half_as_much_again_as_was_promised(wrap_command: Any) -> None:
    def louder(command: Main, words: list[str]) -> int:
        if "-e" in words:
            place = words.index("-e") + 1
            words = [*words[:place], str(1.5 * float(words[place])), *words[place + 1 :]]
        return command(words)

    wrap_command(louder)
    for case in ("promise ldp", "person, srlip"):
        assert attack(case, rows=60_000).broken, case


def test_the_adversary_finds_the_secret_in_another_column(wrap_command: Any) -> None:
    def add_secret(command: Main, words: list[str]) -> int:
        return command([*words, "--keep", "group", "--accept-kept"])

    wrap_command(add_secret)
    assert attack("sanitise").broken
    assert attack("format arrow").broken


def test_the_adversary_finds_drifted_rows_and_who_is_left_out(wrap_command: Any) -> None:
    def accepting(command: Main, words: list[str]) -> int:
        return command([*words, *(["--accept-drift"] if words[0] == "apply" else [])])

    wrap_command(accepting)
    for case in ("apply on drifted rows", "apply, unknown values dropped"):
        assert attack(case, rows=6_000).broken, case


def test_the_adversary_finds_a_pool_of_rare_secrets_that_leaves_out_those_without_a_row() -> None:
    """The credal sets were of the secrets that a sample met, though those met by chance are rarer in the population."""
    met = people.by_samples(people.rare_secrets, QUICK, grouping=people.pool_of_those_met)
    assert attack_once(met, 0, seed=5, rows=0, releases=4).broken
    assert not attack("people, rare secrets, seen or not").broken


def test_the_adversary_finds_labels_of_a_population_that_are_chosen_by_the_counts(wrap_command: Any) -> None:
    def merging(command: Main, words: list[str]) -> int:
        place = words.index("--merge-rare")
        sample = pl.read_csv("sample.csv")
        rare = pl.len().over("x") < people.FEWEST
        sample.with_columns(x=pl.when(rare).then(pl.lit(people.OTHER)).otherwise("x")).write_csv("sample.csv")
        return command(words[:place] + words[place + 2 :])

    assert attack("people, rare values merged").refusal
    wrap_command(merging)
    assert attack("people, rare values merged", releases=3).broken


def test_the_adversary_finds_months_that_are_drawn_afresh(wrap_command: Any) -> None:
    def without_key(command: Main, words: list[str]) -> int:
        if "--key-file" in words:
            place = words.index("--key-file")
            words = words[:place] + words[place + 2 :]
        return command(words)

    wrap_command(without_key)
    assert attack("months with a key", rows=20_000, releases=2).broken


def test_the_adversary_finds_an_index_that_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sanitise = pf.sanitise

    def sanitise_with_index(frame: Any, spec: pf.ReleaseSpec) -> Any:
        release = sanitise(frame, spec)
        return replace(release, table=release.table.set_axis(frame["s"].iloc[release.order].to_list(), axis=0))

    monkeypatch.setattr(pf, "sanitise", sanitise_with_index)
    assert attack("sanitise, pandas").broken


def test_the_adversary_finds_figures_of_the_owners_file_on_the_public_page(wrap_command: Any) -> None:
    def add_figures(command: Main, words: list[str]) -> int:
        code = command(words)
        if words[0] == "sanitise":
            with Path("out/public/README.html").open("a", encoding="utf-8") as page:
                page.write(Path("out/owner/protocol.json").read_text(encoding="utf-8"))
        return code

    wrap_command(add_figures)
    assert attack("README.html", releases=3).broken
