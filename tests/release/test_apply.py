"""Apply: rows drawn from a protocol that was designed before, and what is said about them."""

from dataclasses import replace
from fractions import Fraction
from math import inf, log
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import chisquare

from privacyfunnel import LIP, SealedProtocol, apply, apply_file, design
from privacyfunnel.errors import ColumnError, GuaranteeError, ParameterError, TableError
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.mechanisms.sealing import exact_worst_leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.spec import ReleaseSpec

PEOPLE = pl.DataFrame(
    {
        "id": range(600),
        "job": [("cook", "clerk", "nurse")[(i * 5 % 7 % 3 + (i % 5 > 2)) % 3] for i in range(600)],
        "town": [("k", "l", "m")[i * 5 % 7 % 3] for i in range(600)],
    }
)
NEXT = PEOPLE[300:].with_columns(id=pl.col("id") + 300, job=pl.col("job").reverse())
DRIFTED = pl.DataFrame({"job": ["cook"] * 50 + ["clerk"] * 50, "town": ["k"] * 50 + ["l"] * 50})
KEY = RowKey(bytes(32))


@pytest.fixture(scope="module")
def sealed() -> SealedProtocol:
    return design(
        PEOPLE, ReleaseSpec(prior="table", secret="job", publish="town", promise=LIP(0.2), method="randomised-response")
    )


def drawn(sealed: SealedProtocol, rows: pl.DataFrame) -> dict[int, str]:
    found = apply(sealed, rows, ReleaseSpec(keep="id", accept_kept=True, accept_drift=True, row_id="id", key_file=KEY))
    return dict(found.table.select("id", "town").iter_rows())


def test_a_design_from_counts_is_the_design_from_rows(sealed: SealedProtocol) -> None:
    counts = PEOPLE.group_by("job", "town").len("n").sort("n")
    again = design(
        counts,
        ReleaseSpec(
            prior="table", secret="job", publish="town", promise=LIP(0.2), method="randomised-response", counts="n"
        ),
    )
    assert again.digest == sealed.digest
    half = pl.concat([counts.with_columns(n=pl.col("n") // 2), counts.with_columns(n=pl.col("n") - pl.col("n") // 2)])
    same = design(
        half,
        ReleaseSpec(
            prior="table", secret="job", publish="town", promise=LIP(0.2), method="randomised-response", counts="n"
        ),
    )
    assert same.digest == sealed.digest
    for broken in (
        counts.with_columns(n=pl.col("n") + 0.5),
        counts.with_columns(n=pl.lit(None)),
        counts.with_columns(n=-1),
    ):
        with pytest.raises(TableError, match="whole numbers of at least 0"):
            design(broken, ReleaseSpec(prior="table", secret="job", publish="town", promise=LIP(1), counts="n"))


def test_new_rows_are_drawn_by_the_law_and_of_their_own_kind(sealed: SealedProtocol) -> None:
    rows = pl.concat([NEXT] * 20)
    found = apply(sealed, rows.to_pandas())
    assert isinstance(found.table, pd.DataFrame)
    assert list(found.table.columns) == ["town"]
    assert found.dropped == ("id",)
    table = sealed.mechanism.table_protocol
    assert table is not None
    shares = rows["town"].value_counts().sort("town")["count"].to_numpy() / len(rows)
    seen = found.table["town"].value_counts().sort_index().to_numpy()
    assert chisquare(seen, len(rows) * shares @ table.channel).pvalue > 1e-6
    assert found.order is not None
    assert sorted(found.order) == list(range(len(rows)))


def test_what_is_leaked_on_new_rows_is_measured_exactly_and_said(sealed: SealedProtocol) -> None:
    found = apply(sealed, NEXT)
    joint = Joint.from_table(NEXT, secret="job", publish="town")
    assert found.measured is not None
    assert found.measured.epsilon == exact_worst_leak(sealed.mechanism, LIP(0.2), joint).leak.epsilon
    assert found.measured.above == (found.measured.epsilon > 0.2)
    quiet = apply(sealed, DRIFTED.drop("job"))
    assert quiet.measured is None
    assert "do not carry job" in quiet.on_these_rows


def test_rows_on_which_more_leaks_than_was_promised_are_refused_unless_accepted(
    sealed: SealedProtocol, tmp_path: Path
) -> None:
    with pytest.raises(GuaranteeError, match=r"LIP ε = 0.2 about job must hold on .* leaks up to ε = 0\.\d+\."):
        apply(sealed, DRIFTED)
    loud = apply(sealed, DRIFTED, ReleaseSpec(accept_drift=True))
    assert loud.measured is not None
    assert loud.measured.above
    assert 0.2 < loud.measured.epsilon < inf
    assert "ABOVE the 0.2" in loud.on_these_rows
    assert any("published whatever leaks on them" in sentence for sentence in loud.not_promised)
    sealed.save(tmp_path / "protocol.json")
    DRIFTED.write_csv(tmp_path / "july.csv")
    spec = ReleaseSpec(into=tmp_path / "out.csv", again=True, force=True)
    with pytest.raises(GuaranteeError, match="accept_drift"):
        apply_file(tmp_path / "protocol.json", tmp_path / "july.csv", spec)
    assert not (tmp_path / "out.csv").exists()
    apply_file(tmp_path / "protocol.json", tmp_path / "july.csv", replace(spec, accept_drift=True))
    notice = tmp_path / "out.csv.notice.txt"
    assert notice.read_text(encoding="utf-8") == f"{loud.notice}\n"
    PEOPLE.write_csv(tmp_path / "may.csv")
    apply_file(tmp_path / "protocol.json", tmp_path / "may.csv", spec)
    assert not notice.exists()  # nothing is said of rows that keep the promise
    kept = apply(sealed, PEOPLE, ReleaseSpec(accept_drift=True))
    assert kept.notice == loud.notice  # the public is not told what was measured


def test_rows_that_carry_the_secret_and_cannot_be_measured_are_refused_unless_accepted() -> None:
    merges = {"either": ["cook", "clerk"]}
    rows = pl.concat([PEOPLE.select("job", "town"), PEOPLE.select(pl.lit("pilot").alias("job"), "town")[::2]])
    spec = ReleaseSpec(secret="job", publish="town", epsilon=0.2, prior="table", merge_secrets=merges)
    protocol = design(rows, spec)
    with pytest.raises(GuaranteeError, match=r"must be measured .* secrets must be merged .* accept_drift"):
        apply(protocol, rows)
    assert apply(protocol, rows, ReleaseSpec(merge_secrets=merges)).measured is not None
    unjudged = apply(protocol, rows, ReleaseSpec(accept_drift=True))
    assert "not measured: secrets must be merged" in unjudged.on_these_rows
    assert "nothing is promised about them" in unjudged.notice
    assert apply(protocol, rows.drop("job")).measured is None  # whoever has no secret has nothing to measure


@pytest.mark.parametrize("fate", ["blur", "drop"])
def test_rows_with_unknown_values_count_by_what_is_published_in_their_stead(sealed: SealedProtocol, fate: str) -> None:
    """P(y | s) by fractions over all rows, "absent" being an output of those who are left out."""
    cooks = pl.DataFrame({"job": ["cook"] * 30, "town": ["Atlantis"] * 30})
    rows = pl.concat([PEOPLE.select("job", "town"), cooks, cooks[:10].with_columns(job=pl.lit("clerk"))])
    law = sealed.mechanism.table_protocol
    assert law is not None
    assert sealed.substitutes is not None
    outputs = {town: [Fraction(float(q)) for q in law.channel[i]] + [Fraction(0)] for i, town in enumerate("klm")}
    stead = [Fraction(sum(outputs["klm"[x]][y] for x in sealed.substitutes.tolist())) / 256 for y in range(4)]
    outputs["Atlantis"] = stead if fate == "blur" else [Fraction(0)] * 3 + [Fraction(1)]
    given = {}
    for job in rows["job"].unique():
        towns = rows.filter(pl.col("job") == job)["town"].to_list()
        given[job] = [sum(outputs[town][y] for town in towns) / len(towns) for y in range(4)]
    shares = {job: Fraction(int((rows["job"] == job).sum()), len(rows)) for job in given}
    everybody = [sum(shares[job] * given[job][y] for job in given) for y in range(4)]
    pairs = [(given[job][y], everybody[y]) for job in given for y in range(4) if everybody[y]]
    exact = max(abs(log(p / q)) if p else inf for p, q in pairs)
    found = apply(sealed, rows, ReleaseSpec(unknown=fate, accept_drift=True)).measured
    assert found is not None
    assert found.epsilon == pytest.approx(exact, rel=1e-9)
    assert found.above == (exact > 0.2)


def test_who_is_left_out_tells_the_secret_where_one_of_two_jobs_alone_is(sealed: SealedProtocol) -> None:
    rows = PEOPLE.with_columns(town=pl.when(pl.col("job") == "cook").then(pl.lit("Atlantis")).otherwise("town"))
    with pytest.raises(GuaranteeError, match="leaks without bound, together with who is left out"):
        apply(sealed, rows, unknown="drop")


def test_rows_that_are_not_known_are_refused_blurred_or_dropped(sealed: SealedProtocol) -> None:
    rows = pl.DataFrame({"town": ["k"] * 40 + ["Atlantis"] * 8000 + [None] * 3, "who": range(8043)})
    with pytest.raises(TableError, match=r"8,003 of 8,043 have others \(8,003 in town\)") as refused:
        apply(sealed, rows)
    assert "Atlantis" not in str(refused.value)
    left = apply(sealed, rows, unknown="drop", keep="who")
    assert (left.rows, len(left.table), left.strangers.rows) == (40, 40, 8003)
    assert sorted(left.table["who"]) == list(range(40))
    assert left.order is not None
    assert rows["who"][left.order].to_list() == left.table["who"].to_list()
    blurred = apply(sealed, rows, unknown="blur", keep="who")
    assert len(blurred.table) == 8043
    assert any("no certificate covers them" in sentence for sentence in blurred.not_promised)
    # Their outputs have the outputs' own distribution, to within 1/256.
    table = sealed.mechanism.table_protocol
    assert table is not None
    shares = PEOPLE["town"].value_counts().sort("town")["count"].to_numpy() / 600
    seen = blurred.table.filter(pl.col("who") >= 40)["town"].value_counts().sort("town")["count"].to_numpy()
    assert np.abs(seen / seen.sum() - shares @ table.channel).max() < 1 / 256 + 5 * np.sqrt(0.25 / 8003)
    with pytest.raises(TableError, match="knows none of 8,003"):
        apply(sealed, rows[40:], unknown="drop")


def test_one_key_and_id_and_value_give_one_draw_whatever_the_company_and_a_change_a_fresh_one(
    sealed: SealedProtocol,
) -> None:
    first = drawn(sealed, PEOPLE)
    part = drawn(sealed, PEOPLE[::-3])
    assert part.items() <= first.items()
    text = drawn(sealed, PEOPLE[:100].with_columns(pl.col("id").cast(pl.String)))
    assert {int(who): town for who, town in text.items()}.items() <= first.items()
    moved = PEOPLE.with_columns(town=pl.col("town").replace_strict({"k": "l", "l": "m", "m": "k"}))
    again = drawn(sealed, moved)
    law = sealed.mechanism.table_protocol
    assert law is not None
    alike = np.mean([again[who] == first[who] for who in first])
    # Independent draws of two values agree as often as the law says; the same word would make them follow each other.
    place = {"k": 0, "l": 1, "m": 2}
    chance = [
        float(law.channel[place[a]] @ law.channel[place[b]]) for a, b in zip(PEOPLE["town"], moved["town"], strict=True)
    ]
    assert abs(alike - np.mean(chance)) < 5 * np.sqrt(0.25 / 600)
    plain = apply(sealed, PEOPLE, ReleaseSpec(keep="id", row_id="id", accept_kept=True)).table
    assert dict(plain.select("id", "town").iter_rows()) != first


@pytest.mark.parametrize(
    "ids",
    [
        pl.col("id").cast(pl.Float64),
        pl.col("id").cast(pl.Float64).cast(pl.String),
        pl.concat_str(pl.lit(" "), "id", pl.lit(" ")),
        pl.col("id").cast(pl.String).str.zfill(9),
    ],
)
def test_ids_that_another_program_wrote_are_the_same_people(sealed: SealedProtocol, ids: pl.Expr) -> None:
    found = drawn(sealed, PEOPLE.with_columns(id=ids))
    assert {int(float(who)): town for who, town in found.items()} == drawn(sealed, PEOPLE)


def test_ids_that_are_one_person_or_no_exact_numbers_are_refused(sealed: SealedProtocol) -> None:
    twice = PEOPLE.with_columns(id=pl.when(pl.col("id") == 7).then(pl.lit(" 6")).otherwise(pl.col("id").cast(str)))
    with pytest.raises(ColumnError, match="1 of 600 rows have an id of 'id' that another row has"):
        apply(sealed, twice, row_id="id")
    for shift in (0.5, 2.0**53):
        with pytest.raises(ColumnError, match="must be whole and small enough to be exact; 600 of 600 in 'id' are not"):
            apply(sealed, PEOPLE.with_columns(id=pl.col("id") + shift), row_id="id")


def test_a_key_needs_ids_and_orders_are_never_the_same(sealed: SealedProtocol) -> None:
    with pytest.raises(ParameterError, match="needs row_id"):
        apply(sealed, PEOPLE, ReleaseSpec(key_file=KEY))
    with pytest.raises(ColumnError, match="1 of 600 rows have an id"):
        apply(sealed, PEOPLE.with_columns(id=pl.when(pl.col("id") == 7).then(6).otherwise("id")), row_id="id")
    one, other = (apply(sealed, PEOPLE, ReleaseSpec(row_id="id", key_file=KEY)) for _ in range(2))
    assert one.order is not None
    assert other.order is not None
    assert one.order.tolist() != other.order.tolist()


def test_a_protocol_file_draws_as_the_protocol_it_was_saved_from(sealed: SealedProtocol, tmp_path: Path) -> None:
    sealed.save(tmp_path / "protocol.json")
    loaded = SealedProtocol.load(tmp_path / "protocol.json")
    assert loaded.digest == sealed.digest
    assert loaded.substitutes is not None
    assert loaded.substitutes.tolist() == sealed.substitutes.tolist()  # type: ignore[union-attr]
    assert drawn(loaded, PEOPLE) == drawn(sealed, PEOPLE)


def test_rows_that_lack_a_published_column_are_refused(sealed: SealedProtocol) -> None:
    with pytest.raises(ColumnError, match="the 1 columns that the protocol publishes; 'town' is not there"):
        apply(sealed, PEOPLE.drop("town"))


def test_what_is_secret_or_published_neither_tells_rows_apart_nor_is_kept(sealed: SealedProtocol) -> None:
    for column in ("town", "job"):
        with pytest.raises(ColumnError, match=f"'{column}' cannot identify rows and be secret or published too"):
            apply(sealed, PEOPLE, row_id=column)
        with pytest.raises(ColumnError, match=f"'{column}' cannot be kept as it is and be secret or published too"):
            apply(sealed, PEOPLE, keep=column)


def test_a_protocol_that_sees_the_secret_needs_it_and_knows_all_of_it() -> None:
    seeing = design(
        PEOPLE,
        ReleaseSpec(prior="table", secret="job", publish="town", promise=LIP(0.5), method="conditional-reporting"),
    )
    assert len(apply(seeing, NEXT, ReleaseSpec(accept_drift=True)).table) == len(NEXT)
    with pytest.raises(ColumnError, match="looks at job"):
        apply(seeing, NEXT.drop("job"))
    with pytest.raises(TableError, match="300 rows hold others"):
        apply(seeing, NEXT.with_columns(job=pl.lit("spy")))
    with pytest.raises(ParameterError, match="nothing that stands for unknown values"):
        apply(
            seeing,
            NEXT.with_columns(town=pl.when(pl.col("id") == 601).then(pl.lit("q")).otherwise("town")),
            unknown="blur",
        )


@pytest.mark.parametrize("publish", [["town"], ["town", "age", "sex"]])
def test_what_changed_since_the_design_is_told_by_the_published_model_and_in_no_file(
    publish: list[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    columns = {"job": ["nurse", "clerk"], "town": ["Brno", "Graz", "Linz"], "age": ["old", "young"], "sex": ["f", "m"]}
    may, june = ({name: rng.choice(labels, 20_000) for name, labels in columns.items()} for _ in range(2))
    june["town"][:5_000] = "Graz"
    for name, rows in (("may", may), ("june", june)):
        pl.DataFrame(rows).write_csv(tmp_path / f"{name}.csv")
    spec = ReleaseSpec(secret="job", publish=publish, epsilon=8, seed=1)
    protocol = design(pl.read_csv(tmp_path / "may.csv"), spec)
    protocol.save(tmp_path / "protocol.json")
    out = tmp_path / "out" / "june.csv"
    found = apply_file(tmp_path / "protocol.json", tmp_path / "june.csv", ReleaseSpec(into=out))
    assert {each.column for each in found.drift} == {*publish}
    first = found.drift[0]
    assert (first.column, first.label) == ("town", "Graz")
    true = np.mean(june["town"] == "Graz") - np.mean(may["town"] == "Graz")
    assert first.change == pytest.approx(true, abs=0.02)
    assert first.distance == pytest.approx(true, abs=0.02)  # both others lose what it wins
    assert [each.distance for each in found.drift] == sorted((each.distance for each in found.drift), reverse=True)
    assert [path.name for path in out.parent.iterdir()] == ["june.csv"]


def test_public_files_of_an_apply_are_the_same_whatever_was_measured(sealed: SealedProtocol, tmp_path: Path) -> None:
    sealed.save(tmp_path / "protocol.json")
    for name, rows in (("alike", PEOPLE), ("other", PEOPLE.with_columns(job=pl.col("job").shuffle(seed=1)))):
        rows.write_csv(tmp_path / f"{name}.csv")
        spec = ReleaseSpec(into=tmp_path / name / "rows.csv", epsilon=40, key_file=KEY, row_id="id")
        found = apply_file(tmp_path / "protocol.json", tmp_path / f"{name}.csv", spec)
        assert found.measured is not None
    alike, other = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in ("alike", "other"))
    assert {*alike} == {*other} == {"rows.csv", "rows.csv.notice.txt"}
    assert alike["rows.csv.notice.txt"] == other["rows.csv.notice.txt"]
    assert sorted(alike["rows.csv"].splitlines()) == sorted(other["rows.csv"].splitlines())
