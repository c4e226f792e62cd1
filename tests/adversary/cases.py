"""All cases: every option of a release alone and in pairs, every kind of frame and file, and what was broken once.

`CASES` must hold. `SHORT` are those that run with the suite.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import polars as pl

from tests.adversary import models
from tests.adversary import population as people
from tests.adversary.attacks import (
    Asked,
    Attack,
    by_apply,
    by_apply_command,
    by_command,
    by_frame_order,
    by_frames,
    by_order,
    by_sanitiser,
    known_when_merged,
)
from tests.adversary.candidates import by_candidates, hashes, kinds, length, numbers, numerators
from tests.adversary.interface import FRAMES
from tests.adversary.repeats import by_months, by_parts, by_person, by_private_design, by_unknown

FAMILY_ERROR = 1e-6  # the probability that any case of a run is called broken though it is not


@dataclass(frozen=True, slots=True)
class Option:
    """An option of `sanitise`; of one kind there is one at a time."""

    kind: str
    words: tuple[object, ...] = ()
    changes: Mapping[str, Any] | None = None  # of what is asked
    file: str = "table.csv"


def _bin(column: str, text: str) -> str:
    return str(int(text) // 10) if column == "n" else text


def _merged(text: str) -> str:
    return "either" if text in ("ill at present", "under observation") else text


def _ill(text: str) -> str:
    return text if text == "ill at present" else "anything else"


TWO = {"publish": ("x", "z")}
BINS = ("--bin", "n=0,10,20,30")
OPTIONS: Mapping[str, Option] = {
    "promise ldp": Option("promise", (), {"promise": "ldp"}),
    "promise srlip": Option("promise", (), {"promise": "srlip"}),
    "promise pml": Option("promise", (), {"promise": "pml"}),
    "promise alip": Option("promise", (), {"promise": "alip:2", "promised": "alip:0.2,0.4"}),
    "promise events": Option(
        "promise", (), {"promise": "ldp", "promised": "events:events.csv", "secret": _ill, "number": 3}
    ),
    "robust": Option("robust", ("--robust", 1.5)),
    **{
        f"method {name}": Option("method", ("--method", name))
        for name in ("optimal", "randomised-response", "conditional-reporting")
    },
    **{
        f"for {name}": Option("use", ("--for", name))
        for name in ("information", "values", "statistics", "balanced:0.9")
    },
    "for distance": Option("use", ("--for", "distance", *BINS), {"publish": ("n",), "known": _bin}),
    **{f"as {name}": Option("as", ("--as", name)) for name in ("labels", "values")},
    "keep": Option("keep", ("--keep", "k")),
    "row id": Option("row id", ("--row-id", "id")),
    "sees secret": Option("sees secret", ("--sees-secret",)),
    "population": Option("population", ("--population", "95%")),
    "merge rare": Option("merge rare", ("--merge-rare", 10), {"known": known_when_merged}),
    "merge secrets": Option(
        "merge secrets",
        ("--merge-secrets", "ill at present,under observation=either"),
        {"secret": _merged, "number": 3},
    ),
    "with shares": Option("with shares", ("--with-shares",)),
    "bins": Option("publish", BINS, {"publish": ("n",), "known": _bin}),
    "two columns": Option("publish", (), TWO),
    "average": Option("average", ("--average", 0.02, "--anyway")),
    "excel safe": Option("excel safe", ("--excel-safe",)),
    "format parquet": Option("format", ("--format", "parquet")),
    "format arrow": Option("format", ("--format", "arrow")),
    "format tsv.gz": Option("format", ("--format", "tsv.gz")),
    "from parquet": Option("file", file="table.parquet"),
    "from arrow": Option("file", file="table.arrow"),
}


def with_options(*names: str) -> Attack:
    """`sanitise` with these options."""
    options = [OPTIONS[name] for name in names]
    changes: dict[str, Any] = {}
    for option in options:
        changes |= option.changes or {}
    words = tuple(word for option in options for word in option.words)
    file = next((option.file for option in options if option.file != "table.csv"), "table.csv")
    return by_command(Asked(words=words, **changes), file=file)


def _pairs() -> Iterator[tuple[str, str]]:
    for one, other in combinations(OPTIONS, 2):
        both = [OPTIONS[name] for name in (one, other)]
        changed = [set(option.changes or {}) for option in both]
        if both[0].kind != both[1].kind and not changed[0] & changed[1]:
            yield one, other


PAIRS = list(_pairs())


def _covering() -> list[str]:
    """Pairs in which every option occurs."""
    left, found = set(OPTIONS), []
    for one, other in sorted(PAIRS, key=lambda pair: (hash_text("".join(pair)), pair)):
        if one in left and other in left and not _refused_pair(OPTIONS[one], OPTIONS[other]):
            left -= {one, other}
            found.append(f"{one} + {other}")
    return found + sorted(left)


def _refused_pair(one: Option, other: Option) -> bool:
    """Methods that serve one use, and see no secret; odds that differ; such pairs are tried in the long form."""
    kinds = {one.kind, other.kind}
    if "robust" in kinds:
        return not kinds & {"use", "format", "file", "excel safe"}
    return "method" in kinds and bool(kinds & {"use", "average", "sees secret", "population", "as"})


def hash_text(text: str) -> int:
    """A number that is the same in every run."""
    return sum((i + 1) * ord(letter) for i, letter in enumerate(text)) * 7919 % 1_000


PLAIN = Asked()
TWO_LDP = Asked("ldp", publish=("x", "z"))
INFORMATION = Asked(words=("--for", "information"))  # twice drawn, its outputs leave single values
LOUD = Asked(epsilon=3.0)  # what is published shows nearly all: an order that is kept is seen at once
KEPT = Asked(epsilon=3.0, words=("--keep", "k", "--as", "values"))


def _cases() -> dict[str, Attack]:
    found: dict[str, Attack] = {"sanitise": by_command(PLAIN)}
    found |= {name: with_options(name) for name in OPTIONS}
    found |= {f"{one} + {other}": with_options(one, other) for one, other in PAIRS}
    for frame in FRAMES:
        found[f"sanitise, {frame}"] = by_frames(PLAIN, frame)
        found[f"sanitise, ldp, two columns, kept, {frame}"] = by_frames(TWO_LDP, frame, keep="k")
        found[f"apply, {frame}"] = by_apply(PLAIN, frame)
        found[f"apply, row id, {frame}"] = by_apply(PLAIN, frame, row_id="id", keep="k")
        found[f"Sanitiser, {frame}"] = by_sanitiser(PLAIN, frame)
        found[f"Sanitiser, srlip, {frame}"] = by_sanitiser(Asked("srlip"), frame)
        found[f"Sanitiser, secret numbered anew, {frame}"] = by_sanitiser(PLAIN, frame, secret_frame="pandas")
        found[f"order, {frame}"] = by_frame_order(LOUD, frame, keep="k", as_="values")
    for file in ("table.csv", "table.parquet", "table.arrow"):
        found[f"order, {file}"] = by_order(KEPT, file=file)
        for name in ("csv", "tsv.gz", "parquet", "arrow"):
            found[f"order, {file} to {name}"] = by_order(
                Asked(epsilon=3.0, words=(*KEPT.words, "--format", name)), file=file
            )
    found["order, row id"] = by_order(Asked(epsilon=3.0, words=("--row-id", "id", "--keep", "k")))
    found["order, apply"] = by_order(LOUD, apply=True)
    found |= {f"apply command, {promise}": by_apply_command(Asked(promise)) for promise in ("lip", "ldp", "srlip")}
    found["apply command, row id"] = by_apply_command(PLAIN, apply=("--row-id", "id", "--keep", "k"))
    found["months with a key"] = by_months(INFORMATION)
    found["months with a key, srlip"] = by_months(Asked("srlip"))
    found["months with a key, from parquet"] = by_months(INFORMATION, file="second.parquet")
    found["months with a key, ids as text, from arrow"] = by_months(
        INFORMATION, file="second.arrow", change=_id_as_text
    )
    found["months with a key, ids as floats"] = by_months(INFORMATION, file="second.parquet", change=_id_as_float)
    found["months with a key, ids with blanks"] = by_months(INFORMATION, change=_id_with_blanks)
    found |= {f"person, {promise}": by_person(Asked(promise)) for promise in ("lip", "ldp", "srlip")}
    for promise in ("lip", "ldp"):
        noisy = ("--design-epsilon", 1, "--domain", "domain.json")
        found[f"private design, {promise}"] = by_private_design(Asked(promise, epsilon=1.4, prior="population"), *noisy)
        found[f"private design, {promise}, two secrets"] = by_private_design(
            Asked(promise, epsilon=1.4, number=2, prior="population"), *noisy
        )
    found |= _model_cases()
    found["parts"] = by_parts(PLAIN)
    found["kept column that follows the secret"] = by_command(Asked(words=("--keep", "group")))
    found["kept column that goes a little with the secret"] = by_command(Asked(words=("--keep", "hint")))
    found["apply on drifted rows"] = by_apply_command(PLAIN, drift=True)
    found["apply, unknown values dropped"] = by_unknown(PLAIN, "drop")
    found["parts, how many have each secret"] = by_parts(PLAIN, margin=True)
    found["apply, unknown values blurred"] = by_unknown(PLAIN, "blur")
    found["protocol.json.sig"] = by_candidates("protocol.json.sig", hashes, "--sign", "owner", *QUICK)
    found["README.html"] = by_candidates("README.html", numbers, *QUICK)
    found["croissant.json, hashes"] = by_candidates("croissant.json", hashes, *QUICK)
    found["README.html, length"] = by_candidates("README.html", length, *QUICK)
    found["croissant.json, length"] = by_candidates("croissant.json", length, *QUICK)
    found["dcat.jsonld, length"] = by_candidates("dcat.jsonld", length, *QUICK)
    found["croissant.json, numbers"] = by_candidates("croissant.json", numbers, *QUICK)
    found |= {
        f"people, {promise}": people.by_samples(people.typical_values, (), promise=promise)
        for promise in ("lip", "ldp")
    }
    found["people, rare secrets, seen or not"] = people.by_samples(
        people.rare_secrets, QUICK, grouping=people.pool_of_all
    )
    found["people, rare values merged"] = people.by_samples(
        people.values_near_the_limit, ("--merge-rare", people.FEWEST, *QUICK)
    )
    return found | dict(models.CASES)


def _model_cases() -> dict[str, Attack]:
    """A published model: ε is of all public files together, so that records alone leak less."""
    found: dict[str, Attack] = {}
    for promise in ("lip", "ldp"):
        asked = Asked(promise, epsilon=1.4, prior="model")
        for frame in FRAMES:
            found[f"model, {promise}, {frame}"] = by_frames(asked, frame)
        found[f"model, {promise}, two columns"] = by_frames(replace(asked, publish=("x", "z")), "polars")
        found[f"model, {promise}, apply"] = by_apply(asked, "polars")
        found[f"model, {promise}, months with a key"] = by_months(asked)
    loud = Asked(epsilon=3.0, prior="model", words=("--as", "values"))
    for file in ("table.csv", "table.parquet", "table.arrow"):
        for name in ("csv", "tsv.gz", "parquet", "arrow"):
            words = (*loud.words, "--format", name)
            found[f"model, order, {file} to {name}"] = by_order(replace(loud, words=words), file=file)
    found["model, order, apply"] = by_order(replace(loud, words=(*loud.words, "--again")), apply=True)
    for file, tokens in MODEL_FILES:
        found[f"model, {file} by {tokens.__name__}"] = by_candidates(file, tokens, *MODEL)
    return found


def _id_as_text(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("id").cast(pl.String))


def _id_as_float(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("id").cast(pl.Float64))


def _id_with_blanks(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(id=pl.concat_str(pl.lit(" "), pl.col("id").cast(pl.String), pl.lit(".0 ")))


QUICK = ("--for", "information")
MODEL = (*QUICK, "--prior", "model", "--domain", "domain.json")
MODEL_FILES = (
    ("sanitised.csv", kinds),
    ("protocol.json", numerators),
    ("codebook.csv", kinds),
    ("README.html", numbers),
    ("README.html", length),
    ("croissant.json", hashes),
)
CASES: Mapping[str, Attack] = _cases()
SHORT: Mapping[str, Attack] = {
    name: CASES[name]
    for name in (
        "sanitise",
        *_covering(),
        *(f"{function}, {frame}" for frame in FRAMES for function in ("sanitise", "Sanitiser")),
        "apply, polars",
        "apply, row id, pandas, shuffled index",
        "order, table.csv",
        "order, table.arrow",
        "order, table.parquet",
        "order, polars",
        "order, pyarrow",
        "apply command, lip",
        "order, apply",
        "months with a key",
        "person, lip",
        "private design, lip",
        "model, lip, polars",
        "model, order, table.arrow to arrow",
        "parts",
        "kept column that goes a little with the secret",
        *models.SHORT,
    )
}
ONCE_BROKEN = (  # and mended: found again with as much as they were found with
    "months with a key, ids as floats",
    "months with a key, ids with blanks",
    "protocol.json.sig",
    "kept column that follows the secret",
    "apply on drifted rows",
    "apply, unknown values dropped",
    "parts, how many have each secret",
)
