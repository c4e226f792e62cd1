"""Everything that the fuzzer begins with, or once crashed on, is answered or refused with one of our own errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fuzz.mutation import mutated
from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent.parent / "fuzz" / "corpus"
INPUTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_input_of_the_corpus_crashes_its_target(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert {path.parent.name for path in INPUTS} == set(TARGETS)


def test_a_mutation_keeps_json_whole_and_changes_it() -> None:
    whole = (CORPUS / "protocol" / "response.json").read_bytes()
    changed = [mutated(whole, seed) for seed in range(50)]
    assert all(isinstance(json.loads(one), dict) for one in changed)
    assert len({json.dumps(json.loads(one)) for one in changed} - {json.dumps(json.loads(whole))}) > 30
    assert mutated(b"no json", 1) == b"no json"


def test_protocol_files_that_were_altered_in_one_place_are_refused_or_read() -> None:
    for path in sorted((CORPUS / "protocol").iterdir()):
        for seed in range(40):
            TARGETS["protocol"](mutated(path.read_bytes(), seed))
