"""The published schema: what it refuses the reader refuses, and files of every kind fit it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel import LIP, SealedProtocol, randomised_response, seal
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms import protocol_schema
from privacyfunnel.model.joint import Joint
from privacyfunnel.tables.coding.grouping_rules import PARTS
from tests.commands import refused, run
from tests.mechanisms.kinds import JOINT, MAKERS, sealed_of
from tests.mechanisms.test_protocol_file import FOR_PRIORS, TABLE, redigested

Content = dict[str, Any]


@cache
def reference() -> jsonschema.Draft202012Validator:
    """The validator that others use."""
    stated = json.loads(protocol_schema.schema_text())
    jsonschema.Draft202012Validator.check_schema(stated)
    return jsonschema.Draft202012Validator(stated)


def content_of(kind: str) -> Content:
    content: Content = json.loads(sealed_of(kind).to_text())
    return content


def with_priors() -> Content:
    content: Content = json.loads(seal(randomised_response(TABLE, FOR_PRIORS), FOR_PRIORS, TABLE).to_text())
    return content


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_written_fits_the_published_schema_and_is_read_again(kind: str) -> None:
    reference().validate(content_of(kind))
    assert SealedProtocol.from_text(sealed_of(kind).to_text()).to_json() == sealed_of(kind).to_json()


def test_a_promise_for_several_priors_fits_it_too() -> None:
    reference().validate(with_priors())


def test_a_promise_for_a_population_fits_it_too() -> None:
    table = Joint.from_counts([[300, 200], [100, 400]])
    promise = LIP(1.0).for_population(table)
    reference().validate(json.loads(seal(randomised_response(table, promise), promise, table).to_text()))


def test_a_file_of_another_rule_for_populations_says_what_to_do() -> None:
    table = Joint.from_counts([[300, 200], [100, 400]])
    promise = LIP(1.0).for_population(table)
    content = json.loads(seal(randomised_response(table, promise), promise, table).to_text())
    content["promise"]["population"]["rule"] = "of former times"
    with pytest.raises(ProtocolFileError, match=r"follows another\. Make the protocol again"):
        SealedProtocol.from_text(redigested(content))


def test_the_command_prints_the_schema_that_comes_with_the_package() -> None:
    done = run("audit", "--schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(protocol_schema.schema_text())


# Any place of any file, changed into anything: what the reference validator refuses, the reader refuses.

PLACES = st.lists(st.integers(0, 10**6), min_size=1, max_size=7)
STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "0", "1_0", " 1", "1 ", "+1", "٣", "0x1", "1e3", "-1", "nan", "01", "9" * 30, "1\n"]),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(["a", "rows", "bits"]), st.integers(0, 3), max_size=2),
)


def changed(content: Any, places: list[int], how: str, into: Any) -> None:
    """Walk down to somewhere; put something there, take it away, double it, or add something beside."""
    parent: Any = None
    key: Any = None
    for place in places:
        if isinstance(content, dict) and content:
            parent, key = content, sorted(content)[place % len(content)]
        elif isinstance(content, list) and content:
            parent, key = content, place % len(content)
        else:
            break
        content = parent[key]
    if how == "put" or parent is None:
        parent[key] = into
    elif how == "take":
        del parent[key]
    elif isinstance(parent, list):
        parent.append(parent[key] if how == "double" else into)
    else:
        parent["another"] = into


@settings(max_examples=200)
@given(
    kind=st.sampled_from([*MAKERS, "priors"]),
    places=PLACES,
    how=st.sampled_from(["put", "take", "double", "beside"]),
    into=STRANGE,
)
def test_what_the_schema_refuses_the_reader_refuses(kind: str, places: list[int], how: str, into: Any) -> None:
    content = with_priors() if kind == "priors" else content_of(kind)
    del content["digest"]
    changed(content, places, how, into)
    text = redigested(content)
    if reference().is_valid(json.loads(text)):
        return
    with pytest.raises(ProtocolFileError):
        SealedProtocol.from_text(text)


def test_the_reader_follows_every_keyword_that_the_schema_uses() -> None:
    with pytest.raises(ValueError, match="not followed here: multipleOf"):
        protocol_schema._check({"type": "number", "multipleOf": 2}, {})


# Types, one by one: each was taken for what it is not.


def entry(place: int, value: Any) -> Callable[[Content], None]:
    return lambda content: content["law"]["rows"][0][0].__setitem__(place, value)


def numerator_underlined(content: Content) -> None:
    """The same number, written as Python alone reads it."""
    y, n = content["law"]["rows"][0][0]
    content["law"]["rows"][0][0] = [y, f"{n[0]}_{n[1:]}"]


STRICT: dict[str, tuple[Callable[[Content], object], str]] = {
    "a number with an underscore": (numerator_underlined, "must be written as the schema says"),
    "an output number 0.9": (entry(0, 0.9), "must be a whole number"),
    "an output number 0.0": (entry(0, 0.0), "must be a whole number"),
    "an output that is false": (entry(0, False), "must be a whole number; it is true or false"),
    "a numerator that is a number": (entry(1, 5), "must be text; it is a number"),
    "an ε that is true": (lambda c: c["promise"].update(epsilon=True), "promise.epsilon must be a number"),
    "a truth value that is 1": (lambda c: c.update(for_publication=1), "for_publication must be true or false"),
    "a version that is true": (lambda c: c.update(version=True), "of version True"),
    "a version that is 1.0": (lambda c: c.update(version=1.0), "of version 1.0"),
    "a label that is a number": (lambda c: c["publish"][0]["labels"].__setitem__(0, 7), "labels[0] must be text"),
    "a label twice": (
        lambda c: c["publish"][0]["labels"].__setitem__(0, c["publish"][0]["labels"][1]),
        "publish[0].labels must name each of its entries once; 1 repeat",
    ),
    "an output's labels twice": (
        lambda c: c["law"]["outputs"].__setitem__(0, c["law"]["outputs"][1]),
        "law.outputs must name each of its entries once; 1 repeat",
    ),
    "secret labels where the secret is not seen": (lambda c: c["secret"].update(labels=["ill"]), "secret.labels"),
    "a channel induced where the secret is not seen": (lambda c: c.update(induced=[[1.0]]), "induced must be null"),
    "something that nobody reads": (lambda c: c.update(note="trust me"), "nothing that is not in the schema"),
    "combinations of other lengths": (lambda c: c["combinations"].__setitem__(0, [0]), "a label of each column"),
    "no combinations of two columns": (lambda c: c.update(combinations=None), "must be listed for several columns"),
    "text that is no Unicode": (lambda c: c["secret"].update(columns=["\ud800"]), "must be text in Unicode"),
}


@pytest.mark.parametrize("what", STRICT)
def test_what_is_of_another_type_is_refused_in_one_sentence(what: str) -> None:
    change, part = STRICT[what]
    content = content_of("channel")
    change(content)
    text = json.dumps({**content, "digest": "0" * 64}) if "Unicode" in what else redigested(content)
    with pytest.raises(ProtocolFileError) as caught:
        SealedProtocol.from_text(text)
    assert part in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ('"for_publication": true', '"for_publication": false,\n "for_publication": true', "'for_publication' twice"),
        ('"bits": 64', '"bits": 64, "bits": 64', "'bits' twice"),
        ('"epsilon": 0.3', '"epsilon": NaN', "finite numbers"),
        ('"epsilon": 0.3', '"epsilon": Infinity', "finite numbers"),
        ('"epsilon": 0.3', '"epsilon": 1e999', "finite numbers"),
        ('"bits": 64', f'"bits": {"9" * 5000}', "finite numbers"),
    ],
)
def test_what_programs_read_differently_is_refused(old: str, new: str, part: str, tmp_path: Path) -> None:
    text = seal(randomised_response(JOINT, LIP(0.3)), LIP(0.3), JOINT).to_text()
    assert old in text
    path = tmp_path / "protocol.json"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    refused(["estimate", path, path], "ProtocolFileError", part)


def test_every_part_of_a_date_by_which_values_are_grouped_is_in_the_schema() -> None:
    stated = json.loads(protocol_schema.schema_text())["$defs"]["grouped"]["properties"]["by"]["enum"]
    assert set(stated) == set(PARTS)
