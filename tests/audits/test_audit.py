"""Audits: the promise from the files alone, and draws that did or did not follow their protocol."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import kstest

from privacyfunnel import LDP, LIP, SRLIP, SealedProtocol
from privacyfunnel.audits.draw_agreement import FALSE_ALARM, chi_square
from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.errors import ColumnError, GuaranteeError, TableError
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.use import Information
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.bins import Bins

METHODS = ["optimal", "randomised-response", "conditional-reporting"]


def released(people: Path, into: Path, promise: Promise | None = None, *, method: str = "optimal", **more: Any) -> Path:
    asked: dict[str, Any] = {
        "prior": "table",
        "secret": ("occupation",),
        "publish": ("education",),
        "method": method,
        "seed": 11,
    }
    asked["use"] = Information()  # the quickest; an audit does not look at what a protocol is best for
    sanitise_file(people, replace(ReleaseSpec(promise=promise or LIP(1), **{**asked, **more}), into=into))
    return into


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("promise", [LIP(1), LDP(2)])
def test_an_audit_certifies_what_the_file_states_and_finds_the_draw_consistent(
    adult: Path, tmp_path: Path, method: str, promise: Promise
) -> None:
    out = released(adult, tmp_path, promise, method=method)
    found = audit(out / "owner" / "protocol.json", adult, sanitised=out / "public" / "sanitised.csv")
    assert found.certified <= found.sealed.epsilon <= min(1.001 * found.certified, promise.epsilon)
    assert found.draw is not None
    assert found.draw.rows == found.rows == 48_842
    assert FALSE_ALARM < found.draw.p_value <= 1


@pytest.mark.parametrize("as_", ["labels", "values"])
def test_a_protocol_that_sees_the_secret_is_audited_with_several_columns(adult: Path, tmp_path: Path, as_: str) -> None:
    out = released(adult, tmp_path, SRLIP(0.2), sees_secret=True, secret=("sex", "income"), publish=("race",), as_=as_)
    found = audit(out / "owner" / "protocol.json", adult, sanitised=out / "public" / "sanitised.csv")
    assert found.sealed.sees_secret
    assert found.draw is not None
    assert found.draw.degrees > 4


def test_bins_are_taken_from_the_protocol_file(adult: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    frame = pl.read_csv(adult, infer_schema=False).with_columns(age=(pl.int_range(pl.len()) * 7919) % 73 + 17)
    frame.write_parquet(path)
    out = released(path, tmp_path / "out", publish=("age",), secret=("income",), bins=(Bins("age", quantiles=8),))
    found = audit(out / "owner" / "protocol.json", path, sanitised=out / "public" / "sanitised.parquet")
    assert found.certified <= 1
    with pytest.raises(ColumnError, match="are in the protocol file"):
        audit(out / "owner" / "protocol.json", path, bins=[Bins("age", quantiles=8)])


def shifted(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame.tail(1), frame.head(-1)])


def swapped(frame: pl.DataFrame) -> pl.DataFrame:
    """One row in forty gets the label of its neighbour."""
    return frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 40 == 0)
        .then(pl.col("education").shift(1))
        .otherwise("education")
        .alias("education")
    ).fill_null("HS-grad")


# Few swaps drown in the noise of protocols that draw every output from every value; the optimum gives them away.
@pytest.mark.parametrize(("method", "tamper"), [("optimal", swapped), *((method, shifted) for method in METHODS)])
def test_a_table_that_was_tampered_with_is_found_out(
    adult: Path, tmp_path: Path, method: str, tamper: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    out = released(adult, tmp_path, method=method)
    tamper(pl.read_csv(out / "public" / "sanitised.csv", infer_schema=False)).write_csv(out / "other.csv")
    with pytest.raises(GuaranteeError):
        audit(out / "owner" / "protocol.json", adult, sanitised=out / "other.csv")


def test_a_draw_that_agrees_too_well_is_no_draw(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    frame = pl.DataFrame({"s": ["a", "b"] * 20_000, "x": ["u", "v", "v", "u", "u"] * 8_000})
    # x says nothing about s, so an ε above 0 would publish it as it is; a lopsided prior makes a coin of it
    pl.concat([frame, pl.DataFrame({"s": ["a"] * 2, "x": ["u"] * 2})]).write_csv(people)
    asked: dict[str, Any] = {"prior": "table", "secret": ("s",), "publish": ("x",), "method": "randomised-response"}
    out = released(people, tmp_path / "out", LIP(0), **asked, keep_order=True)
    found = audit(out / "owner" / "protocol.json", people, sanitised=out / "public" / "sanitised.csv")
    assert found.draw is not None
    assert found.draw.degrees == 2
    values = pl.read_csv(people, infer_schema=False)
    turn = pl.int_range(pl.len()).over("x") % 2
    values.select(x=pl.when(turn == 0).then(pl.lit("u")).otherwise(pl.lit("v"))).write_csv(out / "even.csv")
    with pytest.raises(GuaranteeError, match="must look drawn"):
        audit(out / "owner" / "protocol.json", people, sanitised=out / "even.csv")


def test_fewer_rows_or_unknown_outputs_are_found_out(adult: Path, tmp_path: Path) -> None:
    out = released(adult, tmp_path)
    table = pl.read_csv(out / "public" / "sanitised.csv", infer_schema=False)
    table.head(-5).write_csv(out / "fewer.csv")
    with pytest.raises(TableError, match="it has fewer"):
        audit(out / "owner" / "protocol.json", adult, sanitised=out / "fewer.csv")
    pl.concat([table, table.head(3)]).write_csv(out / "more.csv")
    with pytest.raises(TableError, match="it has more"):
        audit(out / "owner" / "protocol.json", adult, sanitised=out / "more.csv")
    strange = pl.DataFrame({"education": ["Bootcamp"], "outcome": ["y01"]})
    pl.concat([table.head(-1), strange]).write_csv(out / "strange.csv")
    with pytest.raises(GuaranteeError, match="1 of 48,842 are not"):
        audit(out / "owner" / "protocol.json", adult, sanitised=out / "strange.csv")


def test_rows_without_some_values_are_audited_on_the_values_they_have(adult: Path, tmp_path: Path) -> None:
    out = released(adult, tmp_path, LIP(0.3), method="randomised-response", publish=("sex",), secret=("income",))
    some = tmp_path / "some.csv"
    frame = pl.read_csv(adult, infer_schema=False)
    frame.filter(pl.col("sex") == "Male").write_csv(some)
    assert audit(out / "owner" / "protocol.json", some).certified == 0


def test_a_certificate_that_does_not_hold_on_the_rows_is_refused(adult: Path, tmp_path: Path) -> None:
    out = released(adult, tmp_path, method="randomised-response")
    sealed = SealedProtocol.load(out / "owner" / "protocol.json")
    replace(sealed, epsilon=sealed.epsilon / 2).save(out / "modest.json")
    with pytest.raises(GuaranteeError, match=r"certifies ε = 0\.5; on this table it is 1"):
        audit(out / "modest.json", adult)


def test_the_stated_channel_must_be_the_one_that_the_integers_induce(adult: Path, tmp_path: Path) -> None:
    out = released(adult, tmp_path, method="conditional-reporting")
    sealed = SealedProtocol.load(out / "owner" / "protocol.json")
    assert sealed.induced is not None
    replace(sealed, induced=sealed.induced[::-1]).save(out / "false.json")
    with pytest.raises(GuaranteeError, match="it states another"):
        audit(out / "false.json", adult)


def test_the_statistic_is_chi_square_for_true_draws() -> None:
    from scipy.stats import chi2

    rng = np.random.default_rng(5)
    channel = np.array([[0.7, 0.2, 0.0997, 0.0002, 0.0001], [0.1, 0.1, 0.1, 0.1, 0.6], [0.0, 0.0, 0.0, 1.0, 0.0]])
    p = []
    for _ in range(2000):
        counts = np.stack([rng.multinomial(n, q) for n, q in zip((90_000, 40_000, 500), channel, strict=True)])
        statistic, degrees = chi_square(counts, channel)
        assert degrees == 3 + 4  # in the first row the last two cells are joined
        p.append(chi2.sf(statistic, degrees))
    # Kolmogorov and Smirnov on 2000 values, false alarm 1 in 10⁶ if the law were exact
    assert kstest(p, "uniform").pvalue > 1e-6
