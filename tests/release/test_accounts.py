"""Accounts of a ledger that took in another: what all releases of some people say together, or that it is not known."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privacyfunnel import LIP, sanitise_file
from privacyfunnel.release.ledger.ledger_file import Ledger
from privacyfunnel.release.ledger.repeats import list_accounts
from privacyfunnel.spec import ReleaseSpec
from tests.commands import found_by
from tests.release.test_after import people


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Path, Path]:
    """One table on two machines, a folder each."""
    found = []
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        people(1).write_csv(tmp_path / place / f"{place}.csv")
        found.append(tmp_path / place)
    return found[0], found[1]


def release(machine: Path, into: str, **more: Any) -> None:
    asked: dict[str, Any] = {"prior": "table", "promise": LIP(1), "method": "randomised-response", **more}
    spec = ReleaseSpec(secret="health", publish="town", into=machine / into, ledger=machine / "ledger.json", **asked)
    sanitise_file(machine / f"{machine.name}.csv", replace(spec, anyway=True))


def merged(machines: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    here, there = machines
    found_by(capsys, "ledger", "merge", there / "ledger.json", "--ledger", here / "ledger.json")
    accounts: list[dict[str, Any]] = found_by(capsys, "ledger", "--ledger", here / "ledger.json")["accounts"]
    return accounts


def test_releases_of_two_machines_that_no_common_key_compares_are_said_to_be_perhaps_of_the_same_people(
    machines: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for machine in machines:
        release(machine, "one")
    first, second = merged(machines, capsys)
    assert (first["promised"], second["promised"]) == (1.0, 1.0)
    for mine, other in ((first, second), (second, first)):
        assert len(mine["releases"]) == 1
        assert f"Whether these people are in {other['releases'][0]}, too, is not known" in mine["how"]


def test_a_release_after_the_merge_joins_the_accounts_of_both_machines(
    machines: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for machine in machines:
        release(machine, "one")
    merged(machines, capsys)
    release(machines[0], "two", again=True)
    (account,) = found_by(capsys, "ledger", "--ledger", machines[0] / "ledger.json")["accounts"]
    assert len(account["releases"]) == 3
    assert account["promised"] is None
    assert "made independently of each other" in account["how"]


def test_releases_that_add_up_have_one_account_with_their_sum_after_a_merge(
    machines: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = machines
    release(there, "one", composable=0.5)
    found_by(capsys, "ledger", "merge", there / "ledger.json", "--ledger", here / "ledger.json")
    release(here, "one", composable=0.25, again=True)
    accounts = list_accounts(Ledger(here / "ledger.json").entries())
    assert [account.promised for account in accounts] == [1.25]
    assert [len(account.releases) for account in accounts] == [2]


def test_a_release_that_follows_one_of_another_machine_has_one_account_with_it_after_a_merge(
    machines: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = machines
    release(here, "may", prior="model", method="auto", row_id="id", epsilon=0.8, promise="lip")
    shutil.copytree(here / "may", there / "may")
    people(2).write_csv(there / "june.csv")
    june = ReleaseSpec(after=there / "may", epsilon=1.0, into=there / "june", ledger=there / "ledger.json", anyway=True)
    sanitise_file(there / "june.csv", june)
    (account,) = merged(machines, capsys)
    assert len(account["releases"]) == 2
    assert account["promised"] == pytest.approx(1.0)
    assert account["spent"] + account["left"] == pytest.approx(1.0)
    assert account["how"] == "The promise of the last covers all."
