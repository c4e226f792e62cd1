"""Protocol files that were altered, with a digest that fits: each is found out in a sentence."""

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
CERTAIN = str(1 << 64)


@pytest.fixture(scope="module")
def released(some: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two columns by randomised response."""
    folder = tmp_path_factory.mktemp("released")
    how = ["--method", "randomised-response", "--seed", 7, "--as", "labels"]
    command = several(some, folder / "out", "race,sex", *how, secret="occupation", epsilon=0.5)
    assert main([str(word) for word in command]) == 0
    return folder / "out"


def content_of(folder: Path) -> Content:
    content: Content = json.loads((folder / "owner" / "protocol.json").read_text(encoding="utf-8"))
    return content


def altered(content: Content, path: Path) -> Path:
    path.write_text(redigested(content), encoding="utf-8")
    return path


# One list of combinations: a law cannot be certified for others than those that are drawn.


def tell_everything(content: Content) -> None:
    """Every record is published as it is."""
    content["law"]["rows"] = [[[x, CERTAIN]] for x in range(len(content["combinations"]))]
    content["law"].pop("anything_else", None)
    content["promise"].pop("anything_else", None)


def test_a_law_that_lists_other_combinations_than_its_domain_is_not_certified_for_those(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = content_of(released)
    tell_everything(content)
    sentence = turned_down(capsys, "audit", altered(content, tmp_path / "protocol.json"), some)
    assert sentence.startswith("GuaranteeError: ")
    # If these were believed, all records would be alike, and whatever is published would say nothing.
    content["law"]["combinations"] = [[0, 0]] * len(content["combinations"])
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


def in_row(change: Callable[[list[Any]], object]) -> Change:
    return lambda content: change(content["law"]["rows"][0])


LAWS: dict[str, Change] = {
    "no rows": lambda c: c["law"].update(rows=[]),
    "rows that are none": lambda c: c["law"].update(rows=None),
    "a row deleted": lambda c: c["law"]["rows"].pop(),
    "a row too many": lambda c: c["law"]["rows"].append(c["law"]["rows"][0]),
    "an output twice in a row": in_row(lambda row: row.append(row[0])),
    "an output that is none": in_row(lambda row: row[0].__setitem__(0, 999)),
    "a negative output": in_row(lambda row: row[0].__setitem__(0, -1)),
    "a chance deleted": in_row(lambda row: row.pop()),
    "an integer too long": in_row(lambda row: row[0].__setitem__(1, "9" * 21)),
    "a negative integer": in_row(lambda row: row[0].__setitem__(1, "-1")),
    "a label twice": lambda c: c["law"]["outputs"].__setitem__(0, c["law"]["outputs"][1]),
    "a label too few": lambda c: c["law"]["outputs"][0].pop(),
    "other bits": lambda c: c["law"].update(bits=62),
    "another kind": lambda c: c.update(kind="real-or-synthetic"),
}


@pytest.mark.parametrize("what", LAWS)
def test_a_file_that_contradicts_itself_is_refused_in_one_sentence_by_audit_and_estimate(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    content = content_of(released)
    LAWS[what](content)
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


def test_an_audit_that_refuses_says_what_not_to_publish(
    some: Path, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = content_of(released)
    tell_everything(content)
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
