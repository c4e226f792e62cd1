"""Releases by a published model, whose promise anybody can check: from the public files alone, without this program.

Every option alone and in pairs: whatever was asked, the protocol file in `public` must keep what it states by
docs/verify.py, which shares no code with the package, or, of real or synthetic records, in fractions by every
combination; its ε must be the one that was asked for. A file that fails leaks without a known bound.
"""

import json
import runpy
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from io import StringIO
from itertools import combinations
from math import inf
from pathlib import Path

from tests.adversary.attacks import Attack, Setting, Verdict, refused
from tests.adversary.interface import EVENTS, run, write_domain, write_table
from tests.adversary.tables import Table, draw_table
from tests.adversary.wide_files import worst_ratio

ROOT = Path(__file__).parents[2]
EPSILON = 1.2
FIXED = ("--into", "out", "--force", "--again", "--anyway", "--time-limit", 5)


@dataclass(frozen=True, slots=True)
class Choice:
    """Options of one kind: of each kind there is one at a time."""

    kind: str
    words: tuple[object, ...]


CHOICES: Mapping[str, Choice] = {
    **{
        f"promise {name}": Choice("promise", ("--promise", name))
        for name in ("ldp", "srlip", "pml", "alip:0.8,1.2", "pml:floor=0.1")
    },
    **{
        f"promise {name}": Choice("promise", ("--promise", name, "--domain", "domain.json"))  # labels that noise merges
        for name in ("events:events.csv", "ldp:graded.csv")
    },
    "each of two secrets": Choice("promise", ("-s", "hint", "--promise", "each", "--domain", "domain.json")),
    **{f"robust {factor}": Choice("robust", ("--robust", factor)) for factor in ("1.5", "any")},
    **{
        f"method {name}": Choice("method", ("--method", name))
        for name in ("optimal", "randomised-response", "real-or-synthetic")
    },
    **{f"for {name}": Choice("use", ("--for", name)) for name in ("information", "values", "balanced:0.9")},
    **{f"as {name}": Choice("as", ("--as", name)) for name in ("labels", "values")},
    "row id": Choice("row id", ("--row-id", "id")),
    "person": Choice("row id", ("--person", "id")),
    "merge rare": Choice("merge rare", ("--merge-rare", 10)),
    "merge secrets": Choice("merge secrets", ("--merge-secrets", "ill at present,under observation=either")),
    "bins": Choice("publish", ("-p", "n", "--bin", "n=0,10,20,30")),
    "two columns": Choice("publish", ("-p", "z")),
    "three columns": Choice("publish", ("-p", "z,k")),
    "three columns, zeros": Choice("publish", ("-p", "z,k", "--zeros", "zeros.csv")),
    "three columns, known": Choice("publish", ("-p", "z,k", "--known", "z")),
    "composable": Choice("composable", ("--composable", 2)),
    "domain": Choice("domain", ("--domain", "domain.json")),
    "public labels": Choice("domain", ("--public-labels", "x")),
    "public labels and secrets": Choice("domain", ("--public-labels", "s,x")),
    "design epsilon": Choice("design epsilon", ("--design-epsilon", 0.3)),
    "population": Choice("population", ("--population", "95%", "--domain", "domain.json")),
    "parquet": Choice("format", ("--format", "parquet")),
    "excel safe": Choice("format", ("--excel-safe",)),
}


def by_choices(*names: str) -> Attack:
    """The public folder of a release with these options."""
    words = [word for name in names for word in CHOICES[name].words]
    if words.count("--domain") > 1:
        words = words[: words.index("--domain")] + words[words.index("--domain") + 2 :]

    def attack(setting: Setting) -> Verdict:
        table = draw_table(setting.rng, setting.rows, secrets=3, rare="merge rare" in names)
        _write_inputs(table, setting.folder)
        fixed = () if {"alip:0.8,1.2", "ldp:graded.csv"} & set(words) else ("-e", EPSILON)
        published = () if "bins" in names else ("-p", "x")
        done = run(setting.folder, "sanitise", "table.csv", "-s", "s", *published, *fixed, *FIXED, *words)
        if done.refused:
            return refused(done.err, EPSILON)
        fault = find_fault(setting.folder / "out" / "public", setting.folder)
        return Verdict(1, 1, table.size, inf if fault else 0.0, EPSILON, fault)

    return attack


def find_fault(public: Path, folder: Path) -> str:
    """What of a public folder does not hold, by a program that shares no code with the one that wrote it."""
    content = json.loads((public / "protocol.json").read_text(encoding="utf-8"))
    promise = content["promise"]
    if "model" not in content:  # of a population: what the sets hold needs the counts, which are in the file
        whole = Fraction(promise["epsilon"]) + Fraction(promise["population"]["design"]["epsilon"])
        return "" if whole <= Fraction(str(EPSILON)) else f"counts and records have ε = {whole}"
    if Fraction(content["model"]["total_epsilon"]) > Fraction(str(EPSILON)):
        return "the file states more than the ε that was asked for"
    if content["kind"] != "channel":
        worst, allowed = worst_ratio(public / "protocol.json")
        return run(folder, "audit", public).err or ("" if worst <= allowed else f"a ratio of {float(worst)}")
    verify = runpy.run_path(str(ROOT / "docs" / "verify.py"))
    with redirect_stdout(StringIO()) as said:
        code = verify["main"](public / "protocol.json")
    return said.getvalue() if code else ""


def _write_inputs(table: Table, folder: Path) -> None:
    write_table(table.rows, folder / "table.csv")
    write_domain(table, folder / "domain.json", "s", "x", "z", "k", "hint")
    (folder / "events.csv").write_text(EVENTS, encoding="utf-8")
    (folder / "zeros.csv").write_text("x,z\nvalue number one,high\n", encoding="utf-8")
    names = sorted(set(table.column("s")))
    pairs = [f"{one},{other},{0.8 + 0.2 * i:g}" for i, (one, other) in enumerate(combinations(names, 2))]
    (folder / "graded.csv").write_text("\n".join(pairs), encoding="utf-8")


def _pairs() -> Iterator[tuple[str, ...]]:
    yield from ((name,) for name in CHOICES)
    for one, other in combinations(CHOICES, 2):
        kinds = {CHOICES[one].kind, CHOICES[other].kind}
        if len(kinds) == 2 and kinds != {"domain", "population"}:
            yield one, other


CASES: Mapping[str, Attack] = {f"public files, {' + '.join(names)}": by_choices(*names) for names in _pairs()}
SHORT = tuple(
    f"public files, {names}"
    for names in (
        "promise srlip + two columns",
        "promise ldp + robust 1.5",
        "promise events:events.csv + domain",
        "each of two secrets + design epsilon",
        "method real-or-synthetic + three columns",
        "robust 1.5 + three columns, zeros",
        "method real-or-synthetic + three columns, known",
        "as labels + population",
    )
)
