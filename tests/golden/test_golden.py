"""Every command finds on small tables what it found when its results were stored, by `python -m tests.golden`."""

import pytest

from tests.golden.cases import CASES
from tests.golden.compare import differences
from tests.golden.expected import PROTOCOLS, STORED, read_records, record_named_case, record_protocol
from tests.golden.record import RECORDERS

RECORDS = read_records()


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_a_command_finds_what_it_found_before(name: str) -> None:
    assert differences(RECORDS["cases"][name], record_named_case(name)) == []


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_file_that_was_written_before_is_read_checked_and_drawn_with(name: str) -> None:
    assert differences(RECORDS["protocols"][name], record_protocol(name)) == []


def test_every_command_has_a_case_and_every_case_a_record() -> None:
    commands = {words.split()[0] for case in CASES for words in case.commands}
    assert commands == set(RECORDERS)
    assert [*RECORDS["cases"]] == [case.name for case in CASES]
    assert [*RECORDS["protocols"]] == [*PROTOCOLS]


def test_one_command_alone_was_refused() -> None:
    """A second release that the ledger stops."""
    records = [(name, record) for kind in RECORDS.values() for name, record in kind.items()]
    refused = [(name, key) for name, record in records for key in record if "exit code" in key and record[key]]
    assert refused == [("ledger", "2 exit code")]


def test_the_records_are_small() -> None:
    assert STORED.stat().st_size < 200_000
