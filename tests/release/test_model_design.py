"""A published model as the prior: files follow from it alone, and together with the rows tell no more than one ε."""

import html
import json
import math
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from itertools import product
from math import exp
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.attacks import all_other_rows_with_model, allowed, everybodys_values_with_model, small_tables

from privacyfunnel import LDP, LIP, SRLIP, Joint, design, optimal, sanitise
from privacyfunnel.errors import InputError, ParameterError, PrivacyFunnelError, ProtocolFileError
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify, seal
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.table_model import TableModel, fit_weights
from privacyfunnel.release import model_design
from privacyfunnel.release.apply import apply
from privacyfunnel.report.release_page import owner_page
from privacyfunnel.report.statements import Occasion, public_facts
from privacyfunnel.report.summary_lines import summary_lines
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.domain_file import domain_from_text
from tests.commands import refused, told

SHARES = np.array([[0.25, 0.15, 0.1], [0.1, 0.2, 0.2]])


def people(seed: int = 0, rows: int = 20_000, odd: int = 3) -> pl.DataFrame:
    """A table of illness and town, a few rows of which hold what nobody else has."""
    cells = np.random.default_rng(seed).choice(6, rows, p=SHARES.ravel())
    illness = pl.Series(["flu", "none"]).gather(cells // 3).to_list()
    town = pl.Series(["Bruges", "Ghent", "Ostend"]).gather(cells % 3).to_list()
    illness[:odd], town[:odd] = ["gout"] * odd, (["Lier", "Mol"] * odd)[:odd]
    return pl.DataFrame({"illness": illness, "town": town})


def listed(**labels: list[str]) -> str:
    columns = {name: {"labels": some, "missing": False} for name, some in labels.items()}
    return json.dumps({"format": "privacyfunnel domain", "version": 1, "columns": columns})


DOMAIN = domain_from_text(listed(illness=["flu", "gout", "none"], town=["Bruges", "Ghent", "Lier", "Mol", "Ostend"]))


def spec(**more: object) -> ReleaseSpec:
    asked: dict[str, Any] = {"secret": "illness", "publish": "town", "epsilon": 1.0, "prior": "model", "seed": 1}
    return ReleaseSpec(**asked | more)


def made(frame: pl.DataFrame, **more: object) -> SealedProtocol:
    return design(frame, spec(**more))


def model_of(sealed: SealedProtocol) -> TableModel:
    assert isinstance(sealed.model, TableModel)
    return sealed.model


# -- what follows from what ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [DOMAIN, None])
@pytest.mark.parametrize("promise", [LIP(1.0), LDP(0.7)])
def test_the_file_follows_from_the_noisy_counts_alone(
    monkeypatch: pytest.MonkeyPatch, domain: object, promise: Promise
) -> None:
    """Two tables with the same noisy counts, whatever else they hold: one text, one codebook, one set of names."""
    exact: Callable[..., tuple[np.ndarray, np.ndarray]] = model_design._noisy

    def alike(counts: np.ndarray, source: object, *more: object) -> tuple[np.ndarray, np.ndarray]:
        _, variance = exact(counts, source, *more)
        shape = np.arange(counts.size).reshape(counts.shape)
        return 2000 + 731 * shape % 1777 - 1900 * (counts < 10), variance

    monkeypatch.setattr(model_design, "_noisy", alike)
    found = [
        sanitise(people(seed, odd=odd), spec(promise=promise, epsilon=None, domain=domain))
        for seed, odd in ((0, 3), (1, 9))
    ]
    assert found[0].sealed.to_text() == found[1].sealed.to_text()
    assert found[0].codebook.equals(found[1].codebook)
    assert found[0].not_promised == found[1].not_promised


def test_rare_labels_are_other_and_rare_secrets_are_not_listed() -> None:
    towns = [f"village {i % 6}" for i in range(1500)]
    sealed = made(people().with_columns(town=pl.Series([*towns, *people()["town"][1500:]])))
    model = model_of(sealed)
    assert sealed.domain.attributes[0].labels == ("Bruges", "Ghent", "Ostend", "other")
    assert sealed.domain.rest == {"town": "other"}
    assert model.groups == (("flu",), ("none",), ())
    assert model.delta == Fraction(1, 10**9)
    assert "gout" not in sealed.to_text()
    assert "village" not in sealed.to_text()
    few = made(people(odd=3))  # who are not worth a value of the model
    assert few.domain.attributes[0].labels == ("Bruges", "Ghent", "Ostend")
    assert few.domain.rest["town"] in ("Bruges", "Ghent")
    assert "gout" not in few.to_text()


def test_a_domain_file_gives_the_labels_and_rare_secrets_are_pooled() -> None:
    sealed = made(people(), domain=DOMAIN)
    model = model_of(sealed)
    assert sealed.domain.attributes[0].labels == ("Bruges", "Ghent", "Lier", "Mol", "Ostend")
    assert model.delta == 0
    assert model.rest is None
    assert sorted(map(len, model.groups)) == [1, 2]
    assert "gout" in model.pooled  # with the rarer of the two others


def test_the_whole_epsilon_is_shared_and_the_share_can_be_fixed() -> None:
    for asked, fixed in ((1.0, None), (2.0, None), (2.0, 0.3), (0.7, "0.25")):
        sealed = made(people(), epsilon=asked, design_epsilon=fixed)
        model = model_of(sealed)
        assert model.total == Fraction(str(asked))
        assert Fraction(sealed.promise.epsilon) + model.epsilon <= model.total
        assert sealed.promise.epsilon + float(model.epsilon) == pytest.approx(asked)
        assert model.epsilon == (
            max(Fraction(str(asked)) * Fraction(3, 40), Fraction(1, 10)) if fixed is None else Fraction(str(fixed))
        )
        assert sealed.total_epsilon == asked
    assert model_of(made(people(rows=6000), domain=DOMAIN, epsilon=1)).epsilon == Fraction(1, 20)
    assert model_of(made(people(rows=1000), domain=DOMAIN, epsilon=1)).epsilon == Fraction(300, 1000)


@pytest.mark.parametrize(
    "more",
    [
        {"promise": LIP(1.0), "epsilon": None},
        {"promise": "ldp"},
        {"promise": SRLIP(1.0), "epsilon": None, "publish": ["town", "sex"], "gap": 0.05},
        {"publish": ["town", "age"], "bins": {"age": [30, 60]}, "use": "information"},
        {"publish": "age", "bins": {"age": [30, 60, 500]}},
        {"method": "randomised-response", "as_": "values"},
        {"use": "information", "average": 0.01},
        {"use": "values"},
        {"use": "balanced"},
        {"domain": DOMAIN, "use": "statistics"},
        {"secret": ["illness", "sex"]},
    ],
)
def test_every_promise_use_and_method_is_kept_from_the_file_alone(tmp_path: Path, more: dict[str, object]) -> None:
    frame = people().with_columns(
        sex=pl.Series(["f", "m"] * 10_000), age=pl.Series(np.random.default_rng(3).integers(0, 90, 20_000))
    )
    sealed = made(frame, **more)
    sealed.save(tmp_path / "protocol.json")
    again = SealedProtocol.load(tmp_path / "protocol.json")
    assert again.to_json() == sealed.to_json()
    now = certify(again.mechanism, again.promise, again.model_joint)
    assert now <= again.epsilon <= again.promise.epsilon < 1
    assert now == sealed.epsilon
    release = sanitise(frame, spec(**more))
    assert release.table.height == 20_000
    assert (release.findings.table_leak or 9.0) < 1.3 or "domain" in more  # which lists a value that one illness has


def test_counts_will_do_and_an_order_may_name_labels_that_the_model_does_not() -> None:
    counted = people().group_by("illness", "town").len("rows")
    sealed = made(counted, counts="rows", ordered={"town": ["Lier", "Ostend", "Mol", "Ghent", "Bruges"]})
    assert model_of(sealed).rows == 20_000
    assert SealedProtocol.from_text(sealed.to_text()).domain.orders == (("town", ("Ostend", "Ghent", "Bruges")),)


def test_later_rows_with_new_labels_are_drawn_as_other() -> None:
    sealed = made(people())
    later = apply(sealed, pl.DataFrame({"town": ["Ghent", "Paris", None, "Lier"] * 50}))
    assert later.table.height == 200


def test_what_does_not_go_with_a_model_is_refused() -> None:
    combined: tuple[tuple[dict[str, object], str], ...] = (
        ({"with_shares": True}, "through noise alone"),
        ({"sees_secret": True}, "reads only what is published"),
        ({"average_only": True, "average": 0.1, "epsilon": None}, "no ε that model and records"),
        ({"population": "95%"}, "two priors"),
        ({"keep": "year"}, "no ε would cover"),
        ({"keep_order": True}, "the order of the table may say anything"),
        ({"bins": {"town": 4}}, "Give some, such as bins"),
        ({"domain": DOMAIN, "merge_secrets": {"ill": ["flu", "gout"]}}, "cannot be merged"),
        ({"prior": "table", "design_epsilon": 0.1}, "from the counts themselves"),
        ({"prior": "mode"}, "one of model, table, population"),
    )
    for more, sentence in combined:
        with pytest.raises(ParameterError, match=sentence):
            spec(**more)
    many = people(rows=5000, odd=0).with_columns(illness=pl.Series(["gout"] * 3 + ["none"] * 4997))
    wide = domain_from_text(listed(illness=["gout", "none"], town=["Bruges", "Ghent", "Ostend"]))
    rows: tuple[tuple[pl.DataFrame, dict[str, object], str], ...] = (
        (people(), {"design_epsilon": 1.5}, "part of the whole ε = 1; it is 1.5"),
        (people(), {"epsilon": 0.001}, "leaves no ε for a model"),
        (people(), {"merge_rare": {"illness": 10}}, "Rare values of the secret are one group"),
        (people(rows=200), {}, "no values of 'town' have enough rows"),
        (people(rows=40), {"domain": DOMAIN}, "rows are too few for a model of 15 pairs"),
        (many, {"domain": wide}, "all values of illness are rare, or all but one"),
    )
    for frame, more, sentence in rows:
        with pytest.raises(ParameterError, match=sentence) as error:
            made(frame, **more)
        if not {"design_epsilon", "merge_rare", "domain"} & set(more):
            assert 'prior="table"' in str(error.value) or "prior='table'" in str(error.value)


def test_an_epsilon_that_the_sentence_proposes_does_and_is_one_that_promises_something() -> None:
    frame = people(rows=1_500)
    with pytest.raises(ParameterError) as error:
        made(frame, epsilon=0.3)
    proposed = float(str(error.value).partition("epsilon=")[2].partition(";")[0])
    assert model_of(made(frame, epsilon=proposed)).rows == 1_500
    with pytest.raises(ParameterError, match="more rows") as error:
        made(people(rows=150))
    assert "epsilon=" not in str(error.value)


def test_what_was_altered_is_refused() -> None:
    sealed = made(people())
    stated = sealed.to_json()
    for change, sentence in (
        ({"total_epsilon": "1/2"}, "add up to the whole"),
        (
            {name: [row[:-1] for row in stated["model"][name]] for name in ("weights", "counts", "noise_variance")},
            "a column for each of 3 values|what its noisy counts make",
        ),
        ({"weights": [row[:-1] for row in stated["model"]["weights"]]}, "noisy counts for each group"),
        ({"noise_variance": [[1.0, 2.0]]}, "the variance of its noise"),
        ({"counts": [[1, 2], [3]]}, "fill a table"),
        ({"rest": 7}, "one of its groups"),
    ):
        with pytest.raises((ProtocolFileError, InputError), match=sentence):
            SealedProtocol.from_json(stated | {"model": stated["model"] | change})
    lopsided = [
        [weight * (7 if x == 0 and s == 0 else 1) for x, weight in enumerate(row)]
        for s, row in enumerate(stated["model"]["weights"])
    ]
    bare = {name: part for name, part in stated["model"].items() if name not in ("counts", "noise_variance")}
    other = SealedProtocol.from_json(stated | {"model": bare | {"weights": lopsided}})
    with pytest.raises(PrivacyFunnelError, match="leaks"):
        certify(other.mechanism, other.promise, other.model_joint)


def test_the_command_writes_files_for_everybody(tmp_path: Path) -> None:
    table, into = tmp_path / "people.csv", tmp_path / "out"
    people().write_csv(table)
    asked = [
        "sanitise",
        table,
        "-s",
        "illness",
        "-p",
        "town",
        "-e",
        0.5,
        "--seed",
        1,
        "--prior",
        "model",
        "--into",
        into,
    ]
    found = told(*asked, "--no-report")
    assert (found["epsilon"], found["model_epsilon"]) == (0.5, 0.1)
    assert 0 < found["table_leak"] < 0.7
    for name in ("protocol.json", "codebook.csv", "sanitised.csv"):
        assert stat.S_IMODE((into / "public" / name).stat().st_mode) & 0o044
    said = " ".join(found["not_promised"])
    assert "All public files together" in said
    assert "counts themselves" not in said
    refused(
        [*asked, "--force", "--again", "--with-shares"],
        "ParameterError",
        "--with-shares does not go with --prior model",
    )


# -- the theorem, by exhaustion ------------------------------------------------------------------------------------

HALF = Fraction(1, 2)  # t = e^{−r} of every count, so that e^{ε_c} = t⁻² = 4: all chances are rational
ROWS = list(product(range(2), repeat=2))  # (s, x) that another person may have
FEWEST, MOST = 0, 2  # noisy counts are brought between these: post-processing


def chance(seen: int, count: int) -> Fraction:
    """Pr[count + Z, brought between 0 and 2, is `seen`]: the tails belong to the ends."""
    if seen in (FEWEST, MOST):
        return HALF ** abs(seen - count) / (1 + HALF)
    return (1 - HALF) / (1 + HALF) * HALF ** abs(seen - count)


def chance_of_all(seen: tuple[int, ...], rows: tuple[tuple[int, ...], ...]) -> Fraction:
    counts = [rows.count(cell) for cell in ROWS]
    return math.prod((chance(m, n) for m, n in zip(seen, counts, strict=True)), start=Fraction(1))


@cache
def model_and_channel(seen: tuple[int, ...], promise: Promise) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """p̃_m, hardly drawn together, and q_m, exactly as it is drawn: the best protocol that keeps the promise at p̃_m."""
    cells = np.array(seen, dtype=np.float64).reshape(2, 2)
    joint = Joint.from_counts(fit_weights(cells, np.zeros((2, 2))))
    best = optimal(joint, promise, gap=1e-3)
    law = (best.sealed or seal(best.protocol, promise, joint)).mechanism.to_json()
    rows = [dict(row) for row in law["rows"]]
    q = [[Fraction(int(row.get(y, 0)), 2**64) for y in range(len(law["outputs"]))] for row in rows]
    whole = int(joint.weights.sum())
    return [[Fraction(int(w), whole) for w in row] for row in joint.weights], q


@pytest.mark.parametrize("promise", [LDP(1.0), LIP(1.0)])
def test_model_and_rows_together_tell_no_more_than_both_budgets(promise: Promise) -> None:
    """All tables of two rows, all noisy counts, all outputs of both people, in fractions."""
    limit: Fraction = exp_below(1.0) / HALF**2
    largest = Fraction(0)
    for other, seen in product(ROWS, product(range(FEWEST, MOST + 1), repeat=4)):
        p, q = model_and_channel(seen, promise)
        shares = [sum(row, Fraction(0)) for row in p]
        noise = [chance_of_all(seen, (other, mine)) for mine in ROWS]  # Pr[m | the other row, (s, x)]
        for y, theirs in product(range(len(q[0])), repeat=2):
            given = [
                sum(
                    (p[s][x] / shares[s] * noise[2 * s + x] * q[x][y] * q[other[1]][theirs] for x in range(2)),
                    Fraction(0),
                )
                for s in range(2)
            ]
            everybody = sum((share * one for share, one in zip(shares, given, strict=True)), Fraction(0))
            if not everybody:
                continue
            against = [everybody, everybody] if isinstance(promise, LIP) else given[::-1]
            ratios = [max(one / two, two / one) for one, two in zip(given, against, strict=True)]
            assert max(ratios) <= limit
            largest = max(largest, *ratios)
    assert largest > exp(1.0)  # ε of the records alone would not do


# -- the attacks ---------------------------------------------------------------------------------------------------


def test_both_attacks_on_a_release_stay_within_what_the_whole_epsilon_allows() -> None:
    counts = np.array([[400, 130, 220], [110, 310, 90]])
    for epsilon in (Fraction(1), Fraction(1, 2)):
        most = allowed(2, float(epsilon)) * (1 + 1e-12)
        for guess in all_other_rows_with_model(counts, 0, 1, epsilon, 40):
            assert guess.belief <= most
        for small in small_tables(2, rows=8, values=2, seed=4):
            assert everybodys_values_with_model(small, epsilon).belief <= most


@pytest.mark.parametrize("odd", [3, 900])
def test_the_noisy_counts_are_of_the_labels_as_they_are_shown(odd: int) -> None:
    """Rows of towns that are not named are counted where they are shown: beside them, or as the commonest town."""
    frame = people(odd=odd)
    sealed = made(frame)
    model, attribute = model_of(sealed), sealed.domain.attributes[0]
    assert model.counts is not None
    listed = {label for group in model.groups for label in group}
    shown = frame.filter(pl.col("illness").is_in(listed))["town"].to_list()
    rest = sealed.domain.rest.get("town", "")
    own = np.array([shown.count(label) for label in attribute.labels])
    own[attribute.labels.index(rest)] += len(shown) - own.sum()
    off = (model.counts.cells.sum(axis=0) - own) / np.sqrt(model.counts.variance.sum(axis=0))
    assert np.abs(off).max() < 6


def test_labels_of_two_columns_are_named_at_the_sizes_at_which_those_of_one_are() -> None:
    rng = np.random.default_rng(0)
    n = 6000
    secrets = rng.choice(["a", "b", "c", "d"], n, p=[0.4, 0.3, 0.2, 0.1])
    like = np.where(rng.random(n) < 0.4, secrets, rng.choice(["a", "b", "c", "d"], n))
    people = pl.DataFrame({"s": secrets, "x": like, "z": rng.choice(["t", "u", "v"], n, p=[0.5, 0.3, 0.2])})
    found = design(people, ReleaseSpec(secret="s", publish=("x", "z"), epsilon=1, seed=3))
    assert all(len(attribute.labels) >= 3 for attribute in found.domain.attributes)
    assert found.certified_total <= 1


def test_a_published_model_promises_the_same_of_any_rows_and_no_other_epsilon() -> None:
    """Its promise is to whoever believes it: nothing is measured, an ε for these rows is refused, no notice is due."""
    sealed, drifted = made(people()), people(rows=500).with_columns(illness=pl.lit("flu"))
    found = apply(sealed, drifted, ReleaseSpec(accept_drift=True))
    assert found.measured is None
    assert found.notice == ""
    assert "certified to whoever believes the published model" in found.on_these_rows
    with pytest.raises(ParameterError, match=r"keep its ε, to whoever believes it; ε = 0\.1 was asked for"):
        apply(sealed, drifted, ReleaseSpec(epsilon=0.1))


def test_every_sentence_of_the_pages_that_limits_a_belief_names_who_believes_the_model() -> None:
    release = sanitise(people(), spec())
    occasion = Occasion(datetime(2026, 11, 18, tzinfo=UTC), "people.csv", "")
    text = html.unescape(re.sub(r"<[^>]+>", "\n", owner_page(release, occasion)))
    limiting = [line for line in text.splitlines() if re.search(r"at most [\d.]+ % sure|factor of [\d.]+", line)]
    assert len(limiting) > 4
    named = ("published model", "where the above is promised", "Not promised", "Promised, by")
    assert [line for line in limiting if not any(words in line for words in named)] == []
    assert "nobody learns" not in text
    assert "trusted" not in text
    assert ": for whoever believes the published model, no guess grows" in dict(summary_lines(release))["Protects"]
    facts = [note for _, figure, note in public_facts(release.sealed) if figure.startswith("×")]
    assert facts == ["of somebody who believes the published model"]


def test_the_work_of_a_draw_is_the_same_whatever_the_secrets_are() -> None:
    """Calls of every function of the package while rows of one table are drawn, with their secrets dealt anew."""
    sealed, frame = made(people()), people(rows=3_000)
    dealt = frame.with_columns(pl.col("illness").shuffle(seed=1))

    def calls(rows: pl.DataFrame) -> Counter[object]:
        found: Counter[object] = Counter()

        def count(called: FrameType, event: str, _: object) -> None:
            if event == "call" and "privacyfunnel" in called.f_code.co_filename:
                found[called.f_code] += 1

        sys.setprofile(count)
        try:
            apply(sealed, rows, ReleaseSpec(seed=2))
        finally:
            sys.setprofile(None)
        return found

    calls(frame)  # what is imported and kept the first time
    first, second = calls(frame), calls(dealt)
    assert sum(first.values()) > 100
    assert first == second
