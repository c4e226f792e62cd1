"""Public files checked alone: by the audit, and by verify.py of the documentation, which needs no package."""

import hashlib
import json
import math
import runpy
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import sanitise
from privacyfunnel.arrays import IntArray
from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.audits.public_audit import audit_public
from privacyfunnel.errors import GuaranteeError, ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify, exact_worst_leak
from privacyfunnel.model.published.table_model import TableModel
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.domain_file import DomainFile
from tests.commands import refused, told

ROOT = Path(__file__).parents[2]
VERIFY: Callable[[str], int] = runpy.run_path(str(ROOT / "docs" / "verify.py"))["main"]
SHARES = np.array([[0.28, 0.08, 0.04, 0.1], [0.04, 0.2, 0.16, 0.1]])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cells = np.random.default_rng(1).choice(8, 20_000, p=SHARES.ravel())
    frame = pl.DataFrame(
        {
            "illness": pl.Series(["flu", "none"]).gather(cells // 4),
            "town": pl.Series(["Bruges", "Ghent", "Lier", "Ostend"]).gather(cells % 4),
            "sex": pl.Series(["f", "m"] * 10_000),
        }
    )
    path = tmp_path_factory.mktemp("people") / "people.csv"
    frame.write_csv(path)
    return path


def released(table: Path, into: Path, **more: Any) -> Path:
    """The folder with the protocol of a release by a published model."""
    asked: dict[str, Any] = {"secret": "illness", "publish": "town", "epsilon": 0.5, "prior": "model", "seed": 1}
    sanitise(pl.read_csv(table), ReleaseSpec(**asked | more)).save(into)
    return into / ("owner" if more.get("prior") == "table" else "public")


@pytest.fixture(scope="module")
def folder(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(table, tmp_path_factory.mktemp("out") / "out")


def rewritten(path: Path, into: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The file with a change, and with the digest that fits it."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    del content["digest"]
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    content["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
    into.write_text(json.dumps(content), encoding="utf-8")
    return into


def test_the_promise_is_confirmed_from_the_files_alone(table: Path, folder: Path) -> None:
    found = audit_public(folder, secret=["illness"], sanitised=folder / "sanitised.csv")
    assert (found.rows, found.codebook) == (20_000, folder / "codebook.csv")
    assert found.certified <= found.sealed.epsilon <= 0.4
    assert VERIFY(str(folder / "protocol.json")) == 0
    whole = audit(folder / "protocol.json", table, secret=["illness"])
    assert whole.certified == found.certified
    assert whole.table_leak is not None
    assert 0.3 < whole.table_leak < 0.5
    said = told("audit", folder, "--sanitised", folder / "sanitised.csv")
    assert (said["epsilon"], said["model_epsilon"], said["rows"]) == (0.5, 0.1, 20_000)


@pytest.mark.parametrize(
    "more",
    [
        {"promise": "ldp"},
        {"promise": "srlip", "publish": ["town", "sex"], "gap": 0.05},
        {"publish": ["town", "sex"], "method": "randomised-response"},
        {"method": "randomised-response", "as_": "values"},
    ],
)
def test_verify_confirms_every_kind_that_it_knows(table: Path, tmp_path: Path, more: dict[str, Any]) -> None:
    folder = released(table, tmp_path / "out", **more)
    assert VERIFY(str(folder / "protocol.json")) == 0
    found = audit_public(folder)
    assert found.certified <= found.sealed.promise.epsilon < 0.45


def test_verify_says_what_it_does_not_check(
    table: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = released(table, tmp_path / "plain", prior="table")
    assert VERIFY(str(plain / "protocol.json")) == 2
    assert "cannot be checked without the table" in capsys.readouterr().out
    with pytest.raises(ParameterError, match="Name the table"):
        audit_public(plain)
    refused(["audit", plain], "ParameterError", "Name the table, or make the protocol with --prior model")
    damaged = tmp_path / "damaged.json"
    damaged.write_text((folder / "protocol.json").read_text(encoding="utf-8").replace("Ghent", "Gent", 1))
    assert VERIFY(str(damaged)) == 2
    assert VERIFY(str(tmp_path / "none.json")) == 2


def _skew(content: dict[str, Any]) -> None:
    content["model"]["weights"][0][0] *= 5


def _move(content: dict[str, Any]) -> None:
    """Some chance of one output of the first input is given to another one."""
    row = content["law"]["rows"][0]
    (y, first), (z, second) = row[0], row[-1]
    part = int(first) // 2
    row[0], row[-1] = [y, str(int(first) - part)], [z, str(int(second) + part)]


def _ask_less(content: dict[str, Any]) -> None:
    content["promise"]["epsilon"] = content["certificate"]["epsilon"] = 0.399999


def _spend_more(content: dict[str, Any]) -> None:
    content["model"]["epsilon"] = "1/5"


@pytest.mark.parametrize("change", [_skew, _move, _ask_less, _spend_more])
def test_what_was_altered_is_found_by_both(
    folder: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    path = rewritten(folder / "protocol.json", tmp_path / "protocol.json", change)
    assert VERIFY(str(path)) == 1
    with pytest.raises((GuaranteeError, ProtocolFileError)):
        audit_public(path)


def test_verify_and_the_audit_agree_to_the_last_digit(folder: Path, tmp_path: Path) -> None:
    """For models that were moved at random: at the ε that they leak, and at the next smaller float."""
    stated, rng = SealedProtocol.load(folder / "protocol.json"), np.random.default_rng(5)
    for size in np.geomspace(1e-6, 0.3, 8):
        exact = model_of(stated).weights
        weights = np.maximum(1, exact * rng.uniform(1 - size, 1 + size, exact.shape)).astype(np.int64)
        joint = replace(stated.model_joint, weights=weights)
        leak = exact_worst_leak(stated.mechanism, stated.promise, joint).leak.epsilon
        for epsilon in (leak, math.nextafter(leak, 0) - 1e-15):

            def change(content: dict[str, Any], epsilon: float = epsilon, weights: IntArray = weights) -> None:
                content["promise"]["epsilon"] = content["certificate"]["epsilon"] = epsilon
                content["model"] |= {"weights": weights.tolist(), "total_epsilon": "2"}
                for part in ("counts", "noise_variance"):  # which would have to make these weights
                    content["model"].pop(part)

            path = rewritten(folder / "protocol.json", tmp_path / "protocol.json", change)
            assert VERIFY(str(path)) == (0 if epsilon == leak else 1)
            altered = SealedProtocol.load(path)
            if epsilon == leak:
                assert certify(altered.mechanism, altered.promise, altered.model_joint) <= leak
            else:
                with pytest.raises(GuaranteeError, match="leaks"):
                    certify(altered.mechanism, altered.promise, altered.model_joint)


def model_of(sealed: SealedProtocol) -> TableModel:
    assert isinstance(sealed.model, TableModel)
    return sealed.model


def test_a_codebook_or_a_table_that_does_not_follow_is_named(folder: Path, tmp_path: Path) -> None:
    protocol, book = tmp_path / "protocol.json", tmp_path / "codebook.csv"
    protocol.write_bytes((folder / "protocol.json").read_bytes())
    book.write_text((folder / "codebook.csv").read_text().replace("Ghent", "Lier", 1))
    with pytest.raises(GuaranteeError, match="must be the codebook that follows"):
        audit_public(tmp_path)
    book.unlink()
    other = pl.read_csv(folder / "sanitised.csv")
    column = other.columns[-1]
    other.with_columns(pl.lit("never").alias(column)).write_csv(tmp_path / "other.csv")
    with pytest.raises(GuaranteeError, match="20,000 of 20,000 rows show something else"):
        audit_public(tmp_path, sanitised=tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: (folder / "more.csv").write_text("a"), "more.csv"),
        (lambda folder: (folder / "README.html").write_text("I promise everything"), "README.html"),
        (lambda folder: (folder / "dcat.jsonld").unlink(), "dcat.jsonld"),
        (lambda folder: (folder / "sanitised.csv").write_text("town\n"), "sanitised.csv"),
        (lambda folder: (folder / "inner").mkdir(), "inner"),
    ],
)
def test_a_file_that_somebody_added_changed_or_removed_is_named(
    folder: Path, table: Path, tmp_path: Path, change: Callable[[Path], object], named: str
) -> None:
    shutil.copytree(folder, tmp_path / "public")
    assert audit_public(tmp_path / "public").rows == 20_000
    change(tmp_path / "public")
    with pytest.raises(GuaranteeError, match=f"were added, changed or removed: {named}"):
        audit_public(tmp_path / "public")
    refused(["audit", tmp_path / "public", table], "GuaranteeError", f"removed: {named}")


def test_other_odds_are_checked_from_the_file_alone(table: Path, folder: Path, tmp_path: Path) -> None:
    for robust in ("2", "any"):
        made = released(table, tmp_path / robust, robust=robust) / "protocol.json"
        assert VERIFY(str(made)) == 0
        assert audit_public(made.parent, secret=["illness"]).certified <= 0.4
        stated = rewritten(folder / "protocol.json", tmp_path / f"{robust}.json", _state_odds(robust))
        assert VERIFY(str(stated)) == 1
        with pytest.raises(GuaranteeError):
            audit_public(stated, secret=["illness"])


def _state_odds(robust: str) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        content["promise"]["robust"] = robust

    return change


PROMISES_WITH_LABELS = (
    "pml",
    "alip:0.2,0.5",
    "pml:floor=0.1",
    "ldp:graded.csv",
    "ldp:line",
    "events:groups.csv",
    "each",
    "each, sex=0.2",
    "each, ldp",
)


@pytest.fixture(scope="module")
def public_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The protocol of a public folder with the promise that is asked for, its labels given by a domain file."""
    place = tmp_path_factory.mktemp("promises")
    draws = np.random.default_rng(2)
    stage, town = draws.integers(0, 3, 20_000), draws.integers(0, 4, 20_000)
    town = np.where(draws.random(20_000) < 0.4, stage, town)
    frame = pl.DataFrame({"stage": stage, "town": town}).with_columns(
        stage=pl.col("stage").cast(pl.String),
        town="t" + pl.col("town").cast(pl.String),
        sex=pl.Series(["f", "m"]).gather((stage + (draws.random(20_000) < 0.25)) % 2),
    )
    listed = {"stage": ["0", "1", "2"], "town": ["t0", "t1", "t2", "t3"], "sex": ["f", "m"]}
    domain = DomainFile({name: Coding(name, tuple(labels)) for name, labels in listed.items()})
    (place / "graded.csv").write_text("0,1,0.4\n1,2,0.5\n0,2,0.6\n")
    (place / "groups.csv").write_text("2,late\n")

    def release(promise: str) -> Path:
        text = promise.replace(":graded", f":{place}/graded").replace(":groups", f":{place}/groups")
        own, each = promise.startswith(("alip", "ldp:graded")), promise.startswith("each")
        spec = ReleaseSpec(
            secret={"stage": None, "sex": 0.2 if "sex" in promise else None} if each else "stage",
            publish="town",
            epsilon=None if own else 0.5,
            promise="ldp" if "ldp" in promise and each else "lip" if each else text,
            domain=domain,
            seed=1,
        )
        into = place / promise.replace(":", "_")
        if not into.exists():
            sanitise(frame, spec).save(into)
        return into / "public" / "protocol.json"

    return release


@pytest.mark.parametrize("promise", PROMISES_WITH_LABELS)
def test_verify_confirms_every_promise_and_refuses_one_that_is_a_little_smaller(
    public_of: Callable[[str], Path], tmp_path: Path, promise: str
) -> None:
    path = public_of(promise)
    assert VERIFY(str(path)) == 0

    def shrink(content: dict[str, Any]) -> None:
        stated = content["promise"]
        more = stated.get("parameters", {})
        stated["epsilon"] *= 1 if "sex" in more.get("sizes", ()) else 0.97
        for side in {"lower", "upper"} & set(more):
            more[side] *= 0.97
        if isinstance(more.get("sizes"), list):
            more["sizes"] = [[one, other, 0.97 * size] for one, other, size in more["sizes"]]
        elif "sizes" in more:
            more["sizes"] = {column: 0.97 * size for column, size in more["sizes"].items()}

    assert VERIFY(str(rewritten(path, tmp_path / "smaller.json", shrink))) == 1


def test_the_sizes_of_several_secrets_are_what_was_asked_for(public_of: Callable[[str], Path]) -> None:
    sealed = SealedProtocol.load(public_of("each, sex=0.2"))
    assert sealed.secret_sizes == {"stage": 0.5, "sex": 0.2}
    assert sealed.total_epsilon == 0.5
    assert sealed.secret_text == "each of stage and sex"
    audited = audit_public(public_of("each, sex=0.2").parent)
    assert [leak.secret for leak in audited.leaks] == ["stage", "sex"]
    assert audited.leaks[1].quantiles[-1] < 0.2 < audited.leaks[0].quantiles[-1] < 0.5


def _skew_one(content: dict[str, Any]) -> None:
    content["model"]["each"][1]["weights"][0][0] *= 5


def _spend_on_one(content: dict[str, Any]) -> None:
    content["model"]["each"][0]["epsilon"] = content["model"]["epsilon"] = "2/5"


def _hide_spending(content: dict[str, Any]) -> None:
    content["model"]["epsilon"] = "1/1000"


def _drop_one(content: dict[str, Any]) -> None:
    content["model"]["each"].pop()


def _claim_one_secret(content: dict[str, Any]) -> None:
    content["promise"] = {"name": "LIP", "epsilon": content["promise"]["epsilon"]}


@pytest.mark.parametrize("change", [_skew_one, _spend_on_one, _hide_spending, _drop_one, _claim_one_secret])
def test_altered_models_of_several_secrets_are_found_by_both(
    public_of: Callable[[str], Path], tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    path = rewritten(public_of("each"), tmp_path / "protocol.json", change)
    assert VERIFY(str(path)) != 0
    with pytest.raises((GuaranteeError, ProtocolFileError)):
        audit_public(path)


def test_a_composable_release_is_confirmed_and_a_smaller_limit_is_not(table: Path, tmp_path: Path) -> None:
    path = released(table, tmp_path / "out", composable=1.0) / "protocol.json"
    assert SealedProtocol.load(path).promise.composable == 1.0
    assert VERIFY(str(path)) == 0
    assert audit_public(path).certified <= 0.4

    def shrink(content: dict[str, Any]) -> None:
        content["promise"]["composable"] = 0.9

    smaller = rewritten(path, tmp_path / "smaller.json", shrink)
    assert VERIFY(str(smaller)) == 1
    with pytest.raises(GuaranteeError):
        audit_public(smaller)
