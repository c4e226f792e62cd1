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
UNIT = 1 << 62


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


@pytest.mark.parametrize("method", ["auto", "chain"])
def test_an_attribute_named_twice_is_refused(some: Path, tmp_path: Path, method: str) -> None:
    into = tmp_path / "out"
    refused(several(some, into, "sex,race,sex", "--method", method), "ColumnError", "'sex' was named twice")
    assert not into.exists()


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--method", "chain", "--order", "sex,race"], "it misses education"),
        (["--method", "chain", "--order", "sex,race,education,sex"], "'sex' is named 2 times"),
        (["--method", "chain", "--order", "sex,race,education,income"], "'income' is none of"),
        (["--method", "optimal", "--order", "sex,race,education"], "an order of columns is for the method chain"),
        (["--method", "chain", "--promise", "srlip"], "A chain keeps LIP or LDP; SRLIP was asked"),
        (["--promise", "srlip", "--order", "sex,race,education"], "A chain keeps LIP or LDP; SRLIP was asked"),
        (["--method", "chain", "--sees-secret"], "never looks at the secret"),
    ],
)
def test_an_order_or_a_promise_that_does_not_fit_is_refused_and_nothing_is_written(
    some: Path, tmp_path: Path, more: list[str], part: str
) -> None:
    into = tmp_path / "out"
    refused(several(some, into, "education,race,sex", *more), "ParameterError", part)
    assert not into.exists()


def test_a_secret_that_is_published_too_is_refused(some: Path, tmp_path: Path) -> None:
    into = tmp_path / "out"
    refused(several(some, into, "sex,occupation", "--method", "chain"), "ColumnError", "cannot be secret and published")
    assert not into.exists()


def test_more_combinations_than_can_be_solved_are_counted_and_a_chain_is_suggested(adult: Path, tmp_path: Path) -> None:
    others = [name for name in adult.read_text(encoding="utf-8").split("\n", 1)[0].split(",") if name != "occupation"]
    for more in (["--promise", "srlip"], ["--method", "optimal"]):
        refused(several(adult, tmp_path / "out", ",".join(others), *more), "SizeError", "6,883", "5,000", "chain")


def test_the_choice_of_a_chain_is_explained_and_sparseness_is_told_in_text_and_json(many: Path, tmp_path: Path) -> None:
    secrets = defaultdict(list)
    for row in rows_of(many):
        secrets[row["one"], row["two"], row["three"]].append(row["secret"])
    size = len(secrets)
    assert size > 650
    tells = sum(len(found) for found in secrets.values() if len(set(found)) == 1) / 1100
    for_records = ["--for", "information"]
    asked = several(many, tmp_path / "out", "one,two,three", *for_records, secret="secret")
    found = told(*asked)
    assert found["method"] == "chain"
    assert found["reason"].startswith(f"{size} combinations of 3 columns occur, more than the 650")
    assert f"the published values of {format_percent(tells)} of the rows decide the secret" in found["sparse"]
    assert 0 < found["share_kept"] < 1
    assert any("may learn any amount about their secret" in sentence for sentence in found["not_promised"])
    text = run(*asked, "--force", "--details").stdout
    assert f"method        chain: {found['reason']}" in text
    assert found["sparse"] in text


def test_ldp_is_kept_by_a_chain_too_where_there_are_many_combinations(many: Path, tmp_path: Path) -> None:
    for_records = ["--promise", "ldp", "--for", "information"]
    found = told(*several(many, tmp_path / "out", "one,two,three", *for_records, secret="secret"))
    assert (found["method"], found["promise"], found["certified"] <= 1) == ("chain", "LDP", True)
    assert "column after column" in found["reason"]


def test_many_combinations_are_made_for_statistics_unless_something_else_is_asked_for(
    many: Path, tmp_path: Path
) -> None:
    into = tmp_path / "out"
    found = told(*several(many, into, "one,two,three", secret="secret"))
    assert (found["method"], found["use"], found["certified"] <= 1) == ("forced-response", "statistics", True)
    assert {tuple(told["columns"]) for told in found["shares_within"]} == {("one",), ("two",), ("three",)}
    originals = {tuple(row[name] for name in ("one", "two", "three")) for row in rows_of(many)}
    published = {
        tuple(row[name] for name in ("one", "two", "three")) for row in rows_of(into / "public" / "sanitised.csv")
    }
    assert published <= originals  # values as they are, with --as values or without
    for_values = several(many, tmp_path / "no", "one,two,three", "--for", "values", "--again", secret="secret")
    refused(for_values, "SizeError", "coarser")


def test_few_combinations_are_solved_together_and_the_summary_says_so(some: Path, tmp_path: Path) -> None:
    found = told(*several(some, tmp_path / "out", "race,sex"))
    assert found["method"] == "optimal"
    assert "few enough for the optimum over all of them together" in found["reason"]
    asked = told(*several(some, tmp_path / "out", "race,sex", "--method", "optimal", "--force"))
    assert asked["reason"] == ""


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


def outputs_of_chain(content: dict[str, Any]) -> Iterator[Column]:
    """Every output that every context could publish, after every step."""
    combos = combinations_of(content)
    before: list[Column] = [dict.fromkeys(range(len(combos)), 1)]
    for step in content["law"]["steps"]:
        place = {tuple(map(int, value.split("/"))): v for v, value in enumerate(step["values"])}
        value_of = [place[tuple(combo[j] for j in step["attributes"])] for combo in combos]
        after: list[Column] = []
        for line in step["contexts"]:
            origin, labels, rows = line.split(" ")
            mine: list[Column] = [{} for _ in labels.split(",")]
            channel: dict[int, dict[int, int]] = {}
            for row in rows.split(";"):
                values, *entries = row.split(",")
                chances = {int(y): int(n, 16) for y, n in (entry.split(":") for entry in entries)}
                assert sum(chances.values()) == UNIT
                channel |= {int(value): chances for value in values.split("/")}
            for x, path in before[int(origin)].items():
                for y, n in channel[value_of[x]].items():
                    mine[y][x] = path * n
            after += mine
        yield from after
        before = after


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
def test_every_path_of_a_chain_keeps_the_promise_by_the_public_file_alone(
    some: Path, tmp_path: Path, promise: str, epsilon: float, how: str
) -> None:
    order = ["--method", "chain", "--order", "sex,workclass,relationship", "--promise", promise, "--as", how]
    words = several(some, tmp_path / "out", "workclass,relationship,sex", *order, "--anyway", epsilon=epsilon)
    found = told(*words)
    content = json.loads((tmp_path / "out" / "owner" / "protocol.json").read_text(encoding="utf-8"))
    assert [step["attributes"] for step in content["law"]["steps"]] == [[2], [0], [1]]
    assert content["promise"]["name"] == found["promise"] == promise.upper()
    worst = worst_ratio(content, some, [()], outputs_of_chain(content), two_secrets=promise == "ldp")
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
    """A chain of three columns, released."""
    into = tmp_path_factory.mktemp("chain")
    order = ["--method", "chain", "--order", "sex,race,relationship", "--seed", 7, "--as", "labels"]
    told(*several(some, into, "relationship,race,sex", *order, epsilon=0.5))
    return into


def with_contexts(change: Callable[[list[str]], object]) -> Callable[[dict[str, Any]], None]:
    """An alteration of the contexts of the last step."""

    def altered(content: dict[str, Any]) -> None:
        change(content["law"]["steps"][-1]["contexts"])

    return altered


def moved(contexts: list[str]) -> None:
    """In one context nearly all of one output's chance goes to another one; every row still sums to 2^62."""
    for k, line in enumerate(contexts):
        head, rows = line.rsplit(" ", 1)
        values, *entries = rows.split(";")[0].split(",")
        if len(entries) > 1:
            (y, n), (z, m) = (entry.split(":") for entry in entries[:2])
            shift = int(m, 16) - (1 << 22)
            changed = [f"{y}:{int(n, 16) + shift:x}", f"{z}:{1 << 22:x}", *entries[2:]]
            contexts[k] = f"{head} {';'.join([','.join([values, *changed]), *rows.split(';')[1:]])}"


def exchanged(contexts: list[str]) -> None:
    """Every context gets the channel of the next one."""
    bodies = [line.split(" ", 1)[1] for line in contexts]
    origins = [line.split(" ", 1)[0] for line in contexts]
    contexts[:] = [f"{origin} {body}" for origin, body in zip(origins, [*bodies[1:], bodies[0]], strict=True)]


def one_more(contexts: list[str]) -> None:
    """One integer is larger by one."""
    body, last = contexts[0].rsplit(":", 1)
    contexts[0] = f"{body}:{int(last, 16) + (1 if int(last, 16) < UNIT else -1):x}"


ALTERED: dict[str, tuple[Callable[[dict[str, Any]], Any], str, str]] = {
    "one integer": (with_contexts(one_more), "ProtocolFileError", "Every row of a channel must sum to 2^62"),
    "chances": (with_contexts(moved), "GuaranteeError", "LIP promised ε = 0.5"),
    "contexts exchanged": (with_contexts(exchanged), "GuaranteeError", "LIP promised ε = 0.5"),
    "a context deleted": (with_contexts(lambda contexts: contexts.pop()), "GuaranteeError", "must be an output"),
    "a label": (lambda c: c["law"]["columns"][0].__setitem__(0, "nothing"), "GuaranteeError", "must be an output"),
    "a value": (lambda c: c["publish"][0]["labels"].__setitem__(0, "nothing"), "TableError", "the protocol knows"),
    "a step deleted": (lambda c: c["law"]["steps"].pop(), "ProtocolFileError", "every attribute in exactly one step"),
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
def test_an_audit_refuses_an_altered_chain_even_with_a_digest_that_fits(
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


def test_an_audit_passes_the_chain_as_it_was_released(some: Path, released: Path) -> None:
    found = told(
        "audit", released / "owner" / "protocol.json", some, "--sanitised", released / "public" / "sanitised.csv"
    )
    assert found["holds"] is True
    assert found["certified"] <= found["stated"] <= 0.5
    assert found["draw"]["consistent"] is True


def test_the_public_file_of_a_chain_names_no_value_of_the_secret(some: Path, released: Path) -> None:
    text = (released / "owner" / "protocol.json").read_text(encoding="utf-8")
    assert {row["occupation"] for row in rows_of(some)} - {"?"}
    assert not [value for value in {row["occupation"] for row in rows_of(some)} - {"?"} if value in text]
    assert json.loads(text)["secret"] == {"columns": ["occupation"], "labels": []}
