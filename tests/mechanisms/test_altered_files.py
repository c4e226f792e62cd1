"""Protocol files of chains that were altered, with a digest that fits: each is found out in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privacyfunnel.cli import main
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.sealing import SealedProtocol
from tests.commands import found_by, several, turned_down
from tests.mechanisms.test_protocol_file import redigested

Content = dict[str, Any]
GOLDEN = Path(__file__).parents[1] / "golden" / "protocols"
Change = Callable[[Content], object]
CERTAIN = f"{1 << 62:x}"


@pytest.fixture(scope="module")
def released(some: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of three columns."""
    folder = tmp_path_factory.mktemp("released")
    chain = ["--method", "chain", "--order", "sex,race,relationship", "--seed", 7]
    command = several(
        some, folder / "chain", "relationship,race,sex", *chain, "--as", "labels", secret="occupation", epsilon=0.5
    )
    assert main([str(word) for word in command]) == 0
    return folder / "chain"


def content_of(folder: Path) -> Content:
    content: Content = json.loads((folder / "owner" / "protocol.json").read_text(encoding="utf-8"))
    return content


def altered(content: Content, path: Path) -> Path:
    path.write_text(redigested(content), encoding="utf-8")
    return path


# One list of combinations: a law cannot be certified for others than those that are drawn.


def telling_chain(content: Content) -> None:
    """Every column is published as it is, in every context."""
    content["law"]["columns"] = [column["labels"] for column in content["publish"]]
    contexts = 1
    for step in content["law"]["steps"]:
        values = step["values"]
        rows = ";".join(f"{x},{x}:{CERTAIN}" for x in range(len(values)))
        step["contexts"] = [f"{k} {','.join(values)} {rows}" for k in range(contexts)]
        contexts *= len(values)


def test_a_law_that_lists_other_combinations_than_its_domain_is_not_certified_for_those(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = content_of(released)
    telling_chain(content)
    sentence = turned_down(capsys, "audit", altered(content, tmp_path / "protocol.json"), some)
    assert sentence.startswith("GuaranteeError: ")
    # If these were believed, all records would be alike, and whatever is published would say nothing.
    content["law"]["combinations"] = ["0/0/0"] * len(content["combinations"])
    sentence = turned_down(capsys, "audit", altered(content, tmp_path / "protocol.json"), some)
    assert "law must state nothing that is not in the schema; it states 'combinations'" in sentence


COMBINATIONS: dict[str, tuple[Change, str]] = {
    "twice": (lambda c: c["combinations"].__setitem__(0, c["combinations"][1]), "listed twice"),
    "all alike": (lambda c: c.update(combinations=[c["combinations"][0]] * len(c["combinations"])), "listed twice"),
    "negative": (lambda c: c["combinations"][0].__setitem__(0, -1), "combinations[0][0] must lie between 0"),
    "a stranger": (lambda c: c["combinations"][0].__setitem__(0, 77), "must name labels of its columns"),
    "none": (lambda c: c.update(combinations=[]), "combinations must have at least 1"),
}


@pytest.mark.parametrize("what", COMBINATIONS)
def test_combinations_that_repeat_or_name_no_label_are_refused(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    change, part = COMBINATIONS[what]
    content = content_of(released)
    change(content)
    path, drawn = altered(content, tmp_path / "protocol.json"), released / "public" / "sanitised.csv"
    for command in (["audit", path, some], ["audit", path, some, "--sanitised", drawn], ["estimate", path, drawn]):
        sentence = turned_down(capsys, *command)
        assert sentence.startswith("ProtocolFileError: ")
        assert part in sentence


# Files that contradict themselves in other ways.


def in_context(change: Callable[[str, list[str], str], list[object]], step: int = 2) -> Change:
    """An alteration of the origin, the labels and the rows of one context with several outputs."""

    def altering(content: Content) -> None:
        contexts = content["law"]["steps"][step]["contexts"]
        k = next(k for k in range(1, len(contexts)) if "," in contexts[k].split(" ")[1])
        origin, labels, rows = contexts[k].split(" ")
        contexts[k] = " ".join(map(str, change(origin, labels.split(","), rows)))

    return altering


def of_step(change: Callable[[Content], object], step: int = 2) -> Change:
    return lambda content: change(content["law"]["steps"][step])


def attributes_swapped(content: Content) -> None:
    first, last = content["law"]["steps"][0], content["law"]["steps"][2]
    first["attributes"], last["attributes"] = last["attributes"], first["attributes"]


CHAINS: dict[str, Change] = {
    "an early context deleted": of_step(lambda s: s["contexts"].pop(), 1),
    "all contexts deleted": of_step(lambda s: s.update(contexts=[])),
    "no contexts": of_step(lambda s: s.update(contexts=None)),
    "a context twice": of_step(lambda s: s["contexts"].append(s["contexts"][0])),
    "a context from nowhere": in_context(lambda _, labels, rows: [9999, ",".join(labels), rows]),
    "a context from before": in_context(lambda _, labels, rows: [-1, ",".join(labels), rows]),
    "a context from where another is": in_context(lambda _, labels, rows: [0, ",".join(labels), rows]),
    "an origin that is no number": in_context(lambda _, labels, rows: ["x", ",".join(labels), rows]),
    "an empty context": of_step(lambda s: s["contexts"].__setitem__(1, "")),
    "a label too large": in_context(lambda o, labels, rows: [o, ",".join(["999", *labels[1:]]), rows]),
    "a negative label": in_context(lambda o, labels, rows: [o, ",".join(["-1", *labels[1:]]), rows]),
    "one label for two outputs": in_context(lambda o, labels, rows: [o, ",".join([*labels[:-1], labels[0]]), rows]),
    "a label twice in its column": lambda c: c["law"]["columns"][0].__setitem__(0, c["law"]["columns"][0][1]),
    "a column deleted": lambda c: c["law"]["columns"].pop(),
    "a value twice": of_step(lambda s: s["values"].__setitem__(0, s["values"][1])),
    "a value more, which is there already": of_step(lambda s: s["values"].append(s["values"][0])),
    "a value deleted": of_step(lambda s: s["values"].pop()),
    "a foreign value": of_step(lambda s: s["values"].__setitem__(0, "77")),
    "an empty value": of_step(lambda s: s["values"].__setitem__(0, "")),
    "attributes swapped": attributes_swapped,
    "an attribute twice": of_step(lambda s: s.update(attributes=[0, 0])),
    "an integer too long": in_context(lambda o, labels, rows: [o, ",".join(labels), rows + "f" * 17]),
    "a negative integer": in_context(lambda o, labels, rows: [o, ",".join(labels), rows.replace(":", ":-", 1)]),
    "a row too many": in_context(lambda o, labels, rows: [o, ",".join(labels), rows + f";0,0:{CERTAIN}"]),
    "a row of no value": in_context(lambda o, labels, rows: [o, ",".join(labels), rows + f";99,0:{CERTAIN}"]),
    "other bits": lambda c: c["law"].update(bits=64),
    "another kind": lambda c: c.update(kind="channel"),
}


@pytest.mark.parametrize("what", CHAINS)
def test_a_file_that_contradicts_itself_is_refused_in_one_sentence_by_audit_and_estimate(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    content = content_of(released)
    CHAINS[what](content)
    path, drawn = altered(content, tmp_path / "protocol.json"), released / "public" / "sanitised.csv"
    for command in (["audit", path, some], ["audit", path, some, "--sanitised", drawn], ["estimate", path, drawn]):
        assert turned_down(capsys, *command).startswith("ProtocolFileError: ")


def test_what_was_released_is_accepted_before_it_is_altered(
    some: Path, released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = released / "public" / "sanitised.csv"
    path = altered(content_of(released), released / "again.json")
    assert found_by(capsys, "audit", path, some, "--sanitised", drawn)["holds"]
    assert found_by(capsys, "estimate", path, drawn)["tables"]


def test_a_context_that_rows_came_to_cannot_be_left_out(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = content_of(released)
    content["law"]["steps"][-1]["contexts"].pop(0)
    path = altered(content, tmp_path / "protocol.json")
    sentence = turned_down(capsys, "audit", path, some, "--sanitised", released / "public" / "sanitised.csv")
    assert sentence.startswith("GuaranteeError: ")
    assert "must be an output" in sentence


def test_an_audit_that_refuses_says_what_not_to_publish(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = content_of(released)
    telling_chain(content)
    sentence = turned_down(capsys, "audit", altered(content, tmp_path / "protocol.json"), some)
    assert "no row was sanitised" not in sentence
    assert "Do not publish what it drew from this table." in sentence


@pytest.mark.parametrize("change", [{"cell_rate": "1/1000000"}, {"epsilon": "1/100000"}, {"total_rate": "1/1000000"}])
def test_noise_that_no_private_design_has_is_refused_before_it_is_computed(change: dict[str, str]) -> None:
    content = json.loads((GOLDEN / "v1-private-design.json").read_text(encoding="utf-8"))
    SealedProtocol.from_text(redigested(content))
    content["promise"]["population"]["design"].update(change)
    with pytest.raises(ProtocolFileError, match="the stated rates are smaller"):
        SealedProtocol.from_text(redigested(content))
