"""A release after another: both together keep one ε, by exhaustion through the files that the command writes."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import sanitise
from privacyfunnel.audits.public_audit import audit_public
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import ColumnError, GuaranteeError, LedgerError, ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.after_model import AfterModel
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify_at_model, seal
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import LIP, Promise
from privacyfunnel.model.published.table_model import TableModel
from privacyfunnel.release.earlier_release import design_next
from privacyfunnel.release.ledger.ledger_file import Ledger
from privacyfunnel.release.ledger.repeats import list_accounts
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.spec import ReleaseSpec
from tests.commands import said

VERIFY = Path(__file__).parents[2] / "docs" / "verify.py"
Chances = list[dict[int, int]]  # of the outputs of each input, over 2⁶⁴


def people(seed: int, n: int = 3000, first: int = 0, changed: float = 0.1) -> pl.DataFrame:
    """Rows of a secret with two values and a column with three, `changed` of them drawn anew by another seed."""
    rng = np.random.default_rng(1)
    s = rng.integers(0, 2, n)
    table = np.array([[0.6, 0.3, 0.1], [0.15, 0.25, 0.6]])
    x = np.array([rng.choice(3, p=table[k]) for k in s])
    again = np.random.default_rng(seed)
    x = np.where(again.random(n) < changed, [again.choice(3, p=table[k]) for k in s], x)
    ids = np.arange(first, first + n)
    return pl.DataFrame({"id": ids, "health": np.array(["ill", "well"])[s], "town": np.array(["a", "b", "c"])[x]})


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two releases, the second after the first, of people some of whom are new and some gone."""
    folder = tmp_path_factory.mktemp("after")
    people(1, changed=0.0).write_csv(folder / "may.csv")
    second = pl.concat([people(2)[300:], people(3, 200, first=5000)])
    second.write_csv(folder / "june.csv")
    people(4).write_csv(folder / "july.csv")  # whoever was left out of June is back
    book = folder / "ledger.json"
    spec = ReleaseSpec(secret="health", publish="town", epsilon=0.6, row_id="id", into=folder / "may", ledger=book)
    sanitise_file(folder / "may.csv", spec)
    sanitise_file(
        folder / "june.csv",
        ReleaseSpec(after=folder / "may" / "public", epsilon=1.0, into=folder / "june", ledger=book),
    )
    sanitise_file(
        folder / "july.csv", ReleaseSpec(after=folder / "june", epsilon=1.2, into=folder / "july", ledger=book)
    )
    return folder


def rows_of(law: dict[str, Any]) -> Chances:
    return [{y: int(n) for y, n in row} for row in law["rows"]]


def check_pair(
    weights: list[list[int]], first: Chances, second: Chances, histories: list[int | None], limit: Fraction
) -> bool:
    """LIP of (y₁, y₂) by its definition, in integers: a sum over a person's value then and now.

    Under either belief: the value stayed, or it was drawn anew by p(x | s).
    """
    size, shares = len(weights[0]), [sum(row) for row in weights]
    for number, h in enumerate(histories):
        mine = second[number * size : (number + 1) * size]
        for y in {y for row in mine for y in row}:
            for stays in (True, False):
                masses = []
                for s, row in enumerate(weights):
                    mass = Fraction(0)
                    for x, now in product(range(size), repeat=2):
                        move = Fraction(x == now) if stays else Fraction(row[now], shares[s])
                        before = 2**64 if h is None else first[x].get(h, 0)
                        mass += Fraction(row[x]) * before * move * mine[now].get(y, 0)
                    masses.append(mass)
                total, whole = sum(masses), sum(shares)
                for mass, share in zip(masses, shares, strict=True):
                    if mass * whole > limit * total * share or total * share > limit * mass * whole:
                        return False
    return True


def verify(path: Path) -> int:
    """What the independent check of the file alone ends with."""
    return subprocess.run([sys.executable, str(VERIFY), str(path)], check=False, capture_output=True).returncode


def contents(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "public" / "protocol.json").read_text(encoding="utf-8"))
    return found


def test_both_releases_together_keep_epsilon_for_every_pair_of_outputs(released: Path) -> None:
    """From the two public files, by the definition and with no tolerance; a smaller ε does not hold."""
    may, june = contents(released / "may"), contents(released / "june")
    model, after = may["model"], june["model"]["after"]
    assert (after["model"], after["law"]) == (model, may["law"])
    histories = [None if each is None else each[1] for each in after["histories"]]
    assert None in histories
    first, second = rows_of(may["law"]), rows_of(june["law"])
    epsilon = june["promise"]["epsilon"]
    assert Fraction(epsilon) + Fraction(model["epsilon"]) <= 1
    assert check_pair(model["weights"], first, second, histories, exp_below(epsilon))
    assert not check_pair(model["weights"], first, second, histories, exp_below(0.9 * epsilon))


def test_all_tables_and_outputs_of_two_releases_keep_epsilon() -> None:
    """Every model of two secrets and two values with weights 1, 2 and 5, through the design of the command."""

    def solve(joint: Joint, promise: Promise, spent: float) -> SealedProtocol:
        return seal(optimal(joint, promise).protocol, promise, joint)

    tight = 0
    for counts in product((1, 2, 5), repeat=4):
        weights = np.array(counts).reshape(2, 2)
        facts: dict[str, Any] = {"rows": 9, "epsilon": Fraction(1, 10), "delta": Fraction(0), "total": Fraction(6, 10)}
        base = TableModel(weights=weights, groups=(("s",), ("t",)), rest=None, **facts)
        joint = Joint.from_counts(weights)
        first = seal(optimal(joint, LIP(0.2)).protocol, LIP(0.2), joint).mechanism
        assert isinstance(first, ChannelMechanism)
        outputs = range(len(first.outputs))
        histories = (None, *((0, y) for y in outputs if any(first.column(y))))
        model = AfterModel.follow(base, first, histories, Fraction(6, 10))
        before = Attribute("before", tuple(map(str, range(len(histories)))))
        found = design_next(model, before, joint, LIP(0.5), solve).mechanism
        pair = [None if each is None else each[1] for each in histories]
        one, other = rows_of(first.to_json()), rows_of(found.to_json())
        assert check_pair(weights.tolist(), one, other, pair, exp_below(0.5))
        tight += not check_pair(weights.tolist(), one, other, pair, exp_below(0.49))
    assert tight > 20


def test_the_public_files_are_checked_alone_and_an_altered_one_is_found(released: Path, tmp_path: Path) -> None:
    assert [audit_public(released / name / "public").sealed.follows for name in ("june", "july")] == [1, 2]
    assert verify(released / "june" / "public" / "protocol.json") == 0
    sealed = SealedProtocol.load(released / "june")
    law = sealed.mechanism
    assert isinstance(sealed.model, AfterModel)
    size = sealed.model.values
    assert isinstance(law, ChannelMechanism)
    one, two = law.indptr[size], law.indptr[2 * size]  # the protocol of new people for everybody of the second history
    parts = law.indptr[: size + 1], law.indptr[1 : size + 1] + one, law.indptr[2 * size + 1 :] - two + 2 * one
    entries = [np.concatenate([each[:one], each[:one], each[two:]]) for each in (law.output, law.numerator)]
    louder = replace(law, indptr=np.concatenate(parts), output=entries[0], numerator=entries[1])
    path = tmp_path / "protocol.json"
    path.write_text(replace(sealed, mechanism=louder, outcomes=()).to_text(), encoding="utf-8")
    with pytest.raises(GuaranteeError):
        audit_public(path)
    assert verify(path) == 1


def test_no_noise_is_drawn_again_and_people_keep_their_histories(released: Path) -> None:
    may, july = contents(released / "may"), SealedProtocol.load(released / "july")
    assert isinstance(july.model, AfterModel)
    assert july.model.base.to_json() == may["model"]
    assert {history and history[0] for history in july.model.histories} == {0, 1}
    book = Ledger(released / "ledger.json")
    assert [entry.state for entry in book.entries()].count("noise") == 1
    (account,) = list_accounts(book.entries())
    assert (len(account.releases), account.promised, account.noise) == (3, 1.2, 0)
    assert (account.spent or 9) <= 1.2
    links = pl.read_csv(released / "july" / "owner" / "links.csv")
    assert sorted(links["releases back"].unique()) == [0, 1]  # those who were new in June are gone in July
    assert (links.height, links["id"].n_unique()) == (3200, 3200)


def test_estimates_after_a_release_cover_the_shares_of_now(released: Path) -> None:
    shares = pl.read_csv(released / "july" / "public" / "estimates.csv").filter(pl.col("column") == "town")
    true = people(4)["town"].value_counts(normalize=True)
    both = shares.join(true, left_on="value", right_on="town")
    assert ((both["share"] - both["proportion"]).abs() <= 3 * (both["to"] - both["from"])).all()


def test_what_cannot_follow_is_refused_with_what_there_was(released: Path, tmp_path: Path) -> None:
    folder = released
    july = ReleaseSpec(after=folder / "july", into=tmp_path / "out", ledger=tmp_path / "ledger.json")
    with pytest.raises(GuaranteeError, match=r"No budget is left: ε = 0\.7 for .* The model took .* leak up to"):
        sanitise_file(folder / "may.csv", replace(july, epsilon=0.7))
    people(1, first=10**6).write_csv(tmp_path / "others.csv")
    with pytest.raises(ColumnError, match="must hold people of"):
        sanitise_file(tmp_path / "others.csv", july)
    with pytest.raises(ColumnError, match="must be that of"):
        sanitise_file(folder / "may.csv", replace(july, publish=("health",), secret="town"))
    with pytest.raises(ParameterError, match="takes model, labels and promise from the earlier release"):
        replace(july, domain="domain.json")
    with pytest.raises(LedgerError, match="released before"):  # June was followed already
        sanitise_file(
            folder / "may.csv",
            ReleaseSpec(after=folder / "june", epsilon=2.0, into=tmp_path / "fork", ledger=folder / "ledger.json"),
        )
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "protocol.json").write_bytes((folder / "may" / "public" / "protocol.json").read_bytes())
    with pytest.raises(ParameterError, match=r"owner's folder has no links\.csv"):
        sanitise_file(folder / "may.csv", replace(july, after=tmp_path / "public"))
    with pytest.raises(ProtocolFileError):
        sanitise_file(folder / "may.csv", replace(july, after=tmp_path / "nowhere"))
    exact = ReleaseSpec(secret="health", publish="town", epsilon=1, prior="table", row_id="id", into=tmp_path / "exact")
    sanitise_file(folder / "may.csv", replace(exact, again=True))
    with pytest.raises(ParameterError, match="without a published model"):
        sanitise_file(folder / "may.csv", replace(july, after=tmp_path / "exact"))


def test_frames_follow_each_other_in_memory_and_each_of_several_secrets_is_promised() -> None:
    rows = people(1, changed=0.0).with_columns(sex=pl.Series(["f", "m"] * 1500))
    spec = ReleaseSpec(epsilon=0.8, row_id="id", secret=["health", "sex"], publish="town")
    first = sanitise(rows, spec)
    second = sanitise(people(2).with_columns(sex=rows["sex"]), ReleaseSpec(epsilon=1.2, after=first))
    assert second.sealed.promise.by_column
    assert (second.sealed.follows, second.links.height, second.table.columns[0]) == (1, 3000, "before")
    assert second.sealed.total_epsilon == pytest.approx(1.2)


def first_of(**asked: Any) -> Any:
    """A release of one column, by a published model, that another might follow."""
    rows = people(1, changed=0.0).with_columns(sex=pl.Series(["f", "m"] * 1500), age=pl.Series(list("123") * 1000))
    plain = {"secret": "health", "publish": ["town"], "epsilon": 1.0, "row_id": "id", "seed": 1, **asked}
    return sanitise(rows, ReleaseSpec(**plain))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"robust": "1.5"}, r"covers other odds .*; make it without robust"),
        ({"composable": 2.0}, r"adds up with releases made independently; make the next one with composable"),
        ({"promise": "srlip"}, r"SRLIP, is about people of whom some columns are known.*promise LIP, PML, ALIP or LDP"),
        ({"publish": ["town", "sex", "age"]}, r"real or synthetic, and their outputs are not listed.*method"),
        ({"publish": ["town", "sex", "age"], "known": "sex"}, r"real or synthetic, and their outputs are not listed"),
        ({"prior": "table", "seed": None}, r"without a published model; make it with prior"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_each_release_that_another_cannot_follow_is_refused_with_what_to_do(
    asked: dict[str, Any], sentence: str
) -> None:
    first = first_of(**asked)
    with pytest.raises(ParameterError, match=rf"No release can be made after the earlier release: .*{sentence}"):
        sanitise(people(2), ReleaseSpec(after=first, epsilon=1.5))


@pytest.mark.parametrize("field", ["robust", "composable", "known"])
def test_what_goes_with_no_release_after_another_is_refused_when_it_is_asked_for(field: str) -> None:
    value: Any = {"robust": "1.5", "composable": 2.0, "known": ("sex",)}[field]
    with pytest.raises(ParameterError, match=rf"takes model, labels and promise from the earlier release, and {field}"):
        ReleaseSpec(after="may", **{field: value})


def test_secrets_with_an_epsilon_each_keep_them_after_a_release_or_get_those_that_are_given() -> None:
    rows = people(1, changed=0.0).with_columns(sex=pl.Series(["f", "m"] * 1500))
    first = first_of(secret={"health": 1.0, "sex": 0.7}, epsilon=None)
    again = people(2).with_columns(sex=rows["sex"])
    second = sanitise(again, ReleaseSpec(after=first, epsilon=1.3, seed=2))
    assert second.sealed.secret_sizes == pytest.approx({"health": 1.3, "sex": 0.7})
    third = sanitise(again, ReleaseSpec(after=first, secret={"health": 1.4, "sex": 0.9}, seed=2))
    assert third.sealed.secret_sizes == pytest.approx({"health": 1.4, "sex": 0.9})
    for release in (second, third):
        sealed = SealedProtocol.from_text(release.sealed.to_text())
        assert certify_at_model(sealed) <= sealed.promise.epsilon


def test_a_file_of_an_earlier_program_cannot_be_followed(released: Path, tmp_path: Path) -> None:
    may = tmp_path / "may"
    shutil.copytree(released / "may", may)
    path = may / "public" / "protocol.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "version": 0}))
    with pytest.raises(ProtocolFileError, match="is a protocol file of version 0; this program reads version 1"):
        sanitise_file(released / "june.csv", ReleaseSpec(after=may, into=tmp_path / "out"))
    links = pl.read_csv(may / "owner" / "links.csv")
    path.write_text(json.dumps(content))
    links.drop(links.columns[1]).write_csv(may / "owner" / "links.csv")
    with pytest.raises(ParameterError, match=r"no links\.csv, or an altered one"):
        sanitise_file(released / "june.csv", ReleaseSpec(after=may, into=tmp_path / "out"))


def test_a_command_reads_and_checks_the_earlier_release_once_and_says_the_budget_first(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks: list[str] = []

    def count(sealed: SealedProtocol, otherwise: str) -> float:
        checks.append(otherwise)
        return certify_at_model(sealed, otherwise)

    monkeypatch.setattr("privacyfunnel.release.earlier_release.certify_at_model", count)
    asked = ["sanitise", released / "july.csv", "--after", released / "may", "-e", "1.4", "--try"]
    code, _, err = said(capsys, *asked)
    assert (code, checks) == (0, ["Nothing was made after it."])
    assert err.startswith("Budget       ε = 1.4 for ")
    assert "The model took" in err
