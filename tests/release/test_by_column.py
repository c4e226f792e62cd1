"""Chains from table to files and back: released, certified again from the file, and judged by an audit."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.release.sanitise import sanitise, sanitise_file
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.adult import write_adult_csv

CASES = [("chain", LIP(1.0)), ("chain", LDP(1.0))]
SECRET, PUBLISH = ("income",), ("relationship", "sex")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some thousand records of Adult."""
    folder = tmp_path_factory.mktemp("adult")
    write_adult_csv(folder / "all.csv")
    pl.read_csv(folder / "all.csv").head(3000).write_csv(folder / "some.csv")
    return folder / "some.csv"


@pytest.mark.parametrize(("method", "promise"), CASES)
def test_a_release_by_column_is_certified_again_and_judged_by_an_audit(
    method: str, promise: Promise, table: Path, tmp_path: Path
) -> None:
    done = sanitise_file(
        table,
        replace(
            ReleaseSpec(
                prior="table", secret=SECRET, publish=PUBLISH, promise=promise, method=method, as_="labels", anyway=True
            ),
            into=tmp_path / "out",
        ),
    )
    assert done.sealed.mechanism.kind == method
    assert done.sealed.epsilon <= promise.epsilon
    assert done.unchanged == pytest.approx(done.unchanged_expected, abs=0.05)
    published = pl.read_csv(tmp_path / "out" / "public" / "sanitised.csv")
    assert published.columns == list(PUBLISH)
    protocol = tmp_path / "out" / "owner" / "protocol.json"
    found = audit(protocol, table, sanitised=tmp_path / "out" / "public" / "sanitised.csv")
    assert found.certified == pytest.approx(done.sealed.epsilon, abs=1e-9)
    assert found.draw is not None
    # The original rows, published as they are, are not what this protocol draws.
    pl.read_csv(table).select(PUBLISH).write_csv(tmp_path / "raw.csv")
    with pytest.raises(GuaranteeError):
        audit(protocol, table, sanitised=tmp_path / "raw.csv")


def test_hundreds_of_combinations_are_solved_together_to_a_small_gap(table: Path) -> None:
    joint = Joint.from_table(
        pl.read_csv(table.parent / "all.csv"), secret="income", publish=["education", "relationship", "race", "sex"]
    )
    assert joint.a == 617
    h = entropy(joint.p_x)
    best = optimal(joint, LIP(1.0), gap=0.005 * h)
    assert best.bound - best.utility <= 0.005 * h
    assert seal(best.protocol, LIP(1.0), joint).information >= best.bound - 0.006 * h


def test_frames_are_sanitised_by_chain_and_the_same_seed_draws_the_same(table: Path) -> None:
    frame = pl.read_csv(table).head(300)
    one, two = (
        sanitise(
            frame,
            ReleaseSpec(prior="table", secret="income", publish=PUBLISH, promise=LIP(1.0), method="chain", seed=4),
        ).table
        for _ in range(2)
    )
    assert one.equals(two)


@pytest.mark.parametrize(("method", "promise"), CASES)
def test_methods_by_column_publish_original_values_on_request(
    method: str, promise: Promise, table: Path, tmp_path: Path
) -> None:
    done = sanitise_file(
        table,
        replace(
            ReleaseSpec(prior="table", secret=SECRET, publish=PUBLISH, promise=promise, method=method, as_="values"),
            into=tmp_path / "out",
        ),
    )
    before, after = pl.read_csv(table), pl.read_csv(tmp_path / "out" / "public" / "sanitised.csv")
    for column in PUBLISH:
        assert set(after[column]) <= set(before[column])
    assert done.sealed.epsilon <= promise.epsilon
    assert done.unchanged == pytest.approx(done.unchanged_expected, abs=0.05)
    assert audit(
        tmp_path / "out" / "owner" / "protocol.json", table, sanitised=tmp_path / "out" / "public" / "sanitised.csv"
    ).draw


@pytest.mark.parametrize(("method", "promise"), [*CASES, ("optimal", LIP(1.0))])
def test_an_audit_names_the_worst_side_channel(method: str, promise: Promise, table: Path, tmp_path: Path) -> None:
    sanitise_file(
        table,
        replace(
            ReleaseSpec(prior="table", secret=SECRET, publish=PUBLISH, promise=promise, method=method),
            into=tmp_path / "out",
        ),
    )
    found = audit(tmp_path / "out" / "owner" / "protocol.json", table).side_channel
    assert found is not None
    assert found.exact
    assert found.text.startswith("someone who knows ")
    assert "about income = " in found.text
    if isinstance(promise, SRLIP):
        assert found.epsilon <= promise.epsilon * (1 + 1e-9)


def test_methods_by_column_never_see_the_secret(table: Path) -> None:
    frame = pl.read_csv(table).head(300)
    with pytest.raises(ParameterError, match="chain never looks at the secret"):
        sanitise(
            frame,
            ReleaseSpec(
                prior="table", secret="income", publish=PUBLISH, promise=LIP(1.0), method="chain", sees_secret=True
            ),
        )
    with pytest.raises(ParameterError, match="A chain keeps LIP or LDP; SRLIP was asked"):
        sanitise(
            frame, ReleaseSpec(prior="table", secret="income", publish=PUBLISH, promise=SRLIP(1.0), method="chain")
        )
