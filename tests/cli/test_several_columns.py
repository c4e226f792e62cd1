"""Several published columns through the real command: what it refuses, what it says, and what its files prove.

The promise is recomputed here from protocol.json and the original table alone, in fractions, output by output.
"""

import csv
import hashlib
import itertools
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privacyfunnel.formatting import format_percent
from tests.commands import refused, run, several, told

Column = dict[int, int]  # combination -> integer proportional to P(output | combination)


def written(path: Path, header: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three columns of which more than 650 combinations occur, many of them once, and a secret of three values."""
    chance = random.Random(1)
    rows = []
    for _ in range(1100):
        secret = chance.choice("pqr")
        leaning = chance.randrange(4) if chance.random() < 0.8 else "pqr".index(secret)
        rows.append([secret, f"a{leaning}", f"b{chance.randrange(20)}", f"c{chance.randrange(20)}"])
    return written(tmp_path_factory.mktemp("many") / "many.csv", ["secret", "one", "two", "three"], rows)


def test_an_attribute_named_twice_is_refused(some: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"
    refused(several(some, into, "sex,race,sex"), "ColumnError", "'sex' was named twice")
    assert not into.exists()


def test_a_secret_that_is_published_too_is_refused(some: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"
    refused(several(some, into, "sex,occupation"), "ColumnError", "cannot be secret and published")
    assert not into.exists()


@pytest.mark.parametrize("method", ["chain", "forced-response"])
def test_a_method_that_is_gone_is_refused_with_what_replaces_it(some: Path, tmp_path: Path, method: str) -> None:
    into = tmp_path / "out"
    refused(
        several(some, into, "race,sex", "--method", method), "ParameterError", "It was removed: use real-or-synthetic"
    )
    assert not into.exists()


def test_more_combinations_than_can_be_solved_are_counted_and_the_published_model_is_suggested(
    adult: Path, tmp_path: Path
) -> None:
    others = [name for name in adult.read_text(encoding="utf-8").split("\n", 1)[0].split(",") if name != "occupation"]
    words = several(adult, tmp_path / "out", ",".join(others), "--promise", "srlip")
    refused(words, "SizeError", "6,883", "5,000", "Leave the prior at the published model (--prior model)")


def test_sparseness_is_told_in_text_and_json(many: Path, tmp_path: Path) -> None:
    secrets = defaultdict(list)
    for row in rows_of(many):
        secrets[row["one"], row["two"], row["three"]].append(row["secret"])
    tells = sum(len(found) for found in secrets.values() if len(set(found)) == 1) / 1100
    for_records = ["--for", "information", "--gap", 0.5]
    asked = several(many, tmp_path / "out", "one,two,three", *for_records, secret="secret")
    found = told(*asked)
    assert (found["method"], found["certified"] <= 1) == ("optimal", True)
    assert f"the published values of {format_percent(tells)} of the rows decide the secret" in found["sparse"]
    assert any("may learn any amount about their secret" in sentence for sentence in found["not_promised"])
    assert found["sparse"] in run(*asked, "--force", "--details").stdout


# What follows reads protocol.json itself: nothing of the project checks its own work here.


def combinations_of(content: dict[str, Any]) -> list[tuple[int, ...]]:
    combos = [tuple(combo) for combo in content["combinations"]]
    if content["kind"] != "channel":
        assert "combinations" not in content["law"]  # one list, so that nobody can state two that differ
    return combos


def counted(content: dict[str, Any], table: Path) -> dict[tuple[str, int], int]:
    """How many rows have each pair of secret and combination."""
    (secret,) = content["secret"]["columns"]
    labels = [(at["column"], {label: code for code, label in enumerate(at["labels"])}) for at in content["publish"]]
    place = {combo: x for x, combo in enumerate(combinations_of(content))}
    return Counter((row[secret], place[tuple(codes[row[name]] for name, codes in labels)]) for row in rows_of(table))


def columns_of(rows: list[list[Any]]) -> list[Column]:
    """N(x, y) of every output of a channel."""
    found: dict[int, Column] = defaultdict(dict)
    for x, row in enumerate(rows):
        assert sum(int(n) for _, n in row) == 1 << 64
        for y, n in row:
            found[y][x] = int(n)
    return list(found.values())


def worst_ratio(
    content: dict[str, Any],
    table: Path,
    sides: list[tuple[int, ...]],
    outputs: Iterator[Column],
    *,
    two_secrets: bool = False,
) -> float:
    """ln of the largest P(y | s, x^J) / P(y | x^J), or its inverse, over the side channels J and all outputs.

    For `two_secrets` P(y | s', x^J) is what is compared with instead.
    """
    combos, weights = combinations_of(content), counted(content, table)
    pairs: list[tuple[Column, Column]] = []
    for known in sides:
        groups: dict[tuple[int, ...], dict[str, Column]] = defaultdict(lambda: defaultdict(dict))
        for (secret, x), n in weights.items():
            groups[tuple(combos[x][j] for j in known)][secret][x] = n
        for events in groups.values():
            everybody: Counter[int] = Counter()
            for event in events.values():
                everybody.update(event)
            pairs += (
                list(itertools.combinations(events.values(), 2))
                if two_secrets
                else [(event, everybody) for event in events.values()]
            )
    worst = Fraction(1)
    for output in outputs:
        for pair in pairs:
            here, there = (
                Fraction(sum(n * output.get(x, 0) for x, n in mass.items()), sum(mass.values())) for mass in pair
            )
            if here != there:
                worst = max(worst, here / there, there / here)  # a zero on one side alone raises
    return math.log(worst)


@pytest.mark.parametrize(
    ("promise", "epsilon", "how"),
    [("lip", 0.2, "labels"), ("lip", 2, "values"), ("ldp", 0.2, "values"), ("ldp", 2, "labels")],
)
def test_every_output_keeps_the_promise_by_the_protocol_file_alone(
    some: Path, tmp_path: Path, promise: str, epsilon: float, how: str
) -> None:
    words = several(some, tmp_path / "out", "race,sex", "--promise", promise, "--as", how, "--anyway", epsilon=epsilon)
    found = told(*words)
    content = json.loads((tmp_path / "out" / "owner" / "protocol.json").read_text(encoding="utf-8"))
    assert content["promise"]["name"] == found["promise"] == promise.upper()
    worst = worst_ratio(content, some, [()], iter(columns_of(content["law"]["rows"])), two_secrets=promise == "ldp")
    assert 0.9 * epsilon < worst <= found["certified"] <= epsilon
    again = told(
        "audit",
        tmp_path / "out" / "owner" / "protocol.json",
        some,
        "--sanitised",
        tmp_path / "out" / "public" / "sanitised.csv",
    )
    assert (again["holds"], again["certified"], again["draw"]["consistent"]) == (True, found["certified"], True)


@pytest.fixture(scope="module")
def released(some: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two columns, released."""
    into = tmp_path_factory.mktemp("two")
    told(*several(some, into, "race,sex", "--method", "optimal", "--seed", 7, "--as", "labels", epsilon=0.5))
    return into


def moved(content: dict[str, Any]) -> None:
    """In every row nearly all of one output's chance goes to another one; it still sums to 2^64."""
    for row in content["law"]["rows"]:
        if len(row) > 1:
            (y, n), (z, m) = row[:2]
            row[:2] = [[y, str(int(n) + int(m) - (1 << 22))], [z, str(1 << 22)]]


def one_more(content: dict[str, Any]) -> None:
    """One integer is larger by one."""
    entry = content["law"]["rows"][0][0]
    entry[1] = str(int(entry[1]) - 1)


ALTERED: dict[str, tuple[Callable[[dict[str, Any]], Any], str, str]] = {
    "one integer": (one_more, "ProtocolFileError", "must be positive integers that sum to 2^64"),
    "chances": (moved, "GuaranteeError", "LIP promised ε = 0.5"),
    "rows exchanged": (lambda c: c["law"]["rows"].reverse(), "GuaranteeError", "LIP promised ε = 0.5"),
    "a row deleted": (lambda c: c["law"]["rows"].pop(), "ProtocolFileError", "a row for each of"),
    "a value": (lambda c: c["publish"][0]["labels"].__setitem__(0, "nothing"), "TableError", "the protocol knows"),
    "a column": (lambda c: c["publish"][0].update(column="education"), "TableError", "the protocol knows"),
    "the secret": (lambda c: c["secret"].update(columns=["marital-status"]), "GuaranteeError", "LIP promised"),
    "the promise": (lambda c: c["promise"].update(name="LDP"), "GuaranteeError", "LDP promised ε = 0.5"),
    "a smaller ε": (lambda c: c["promise"].update(epsilon=0.1), "ProtocolFileError", "the certified ε"),
    "a smaller certificate": (lambda c: c["certificate"].update(epsilon=0.1), "GuaranteeError", "certifies ε = 0.1"),
    "both": (
        lambda c: (c["promise"].update(epsilon=0.1), c["certificate"].update(epsilon=0.1)),
        "GuaranteeError",
        "LIP promised ε = 0.1",
    ),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_audit_refuses_an_altered_file_even_with_a_digest_that_fits(
    some: Path, released: Path, tmp_path: Path, what: str
) -> None:
    change, kind, part = ALTERED[what]
    content = json.loads((released / "owner" / "protocol.json").read_text(encoding="utf-8"))
    del content["digest"]
    change(content)
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    content["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
    altered = tmp_path / "protocol.json"
    altered.write_text(json.dumps(content), encoding="utf-8")
    audited = ["audit", altered, some, "--sanitised", released / "public" / "sanitised.csv"]
    refused(audited, kind, part)


def test_an_audit_passes_the_file_as_it_was_released(some: Path, released: Path) -> None:
    found = told(
        "audit", released / "owner" / "protocol.json", some, "--sanitised", released / "public" / "sanitised.csv"
    )
    assert found["holds"] is True
    assert found["certified"] <= found["stated"] <= 0.5
    assert found["draw"]["consistent"] is True


def test_the_protocol_file_names_no_value_of_the_secret(some: Path, released: Path) -> None:
    text = (released / "owner" / "protocol.json").read_text(encoding="utf-8")
    assert {row["occupation"] for row in rows_of(some)} - {"?"}
    assert not [value for value in {row["occupation"] for row in rows_of(some)} - {"?"} if value in text]
    assert json.loads(text)["secret"] == {"columns": ["occupation"], "labels": []}
