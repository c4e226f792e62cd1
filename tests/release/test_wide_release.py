"""Many columns: real files through the real command line, from a table to its public folder and back."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import ReleaseSpec, apply, design, estimate, impute, sanitise_file
from privacyfunnel.audits.black_box_audit import PublishedRows, judge_rows
from privacyfunnel.designs.wide.real_or_synthetic_design import design_real_or_synthetic
from privacyfunnel.errors import ColumnError, GuaranteeError, ParameterError, ProtocolFileError, SizeError
from privacyfunnel.estimation import weigh
from privacyfunnel.mechanisms.protocol_file import to_text
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream, RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify_at_model
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.published import measurement, wide_fit
from privacyfunnel.model.published.wide_model import WideModel
from privacyfunnel.release import wide_design
from privacyfunnel.report import release_page
from privacyfunnel.report.summary_lines import _neighbours_text
from privacyfunnel.tables.coding.domain_file import draft_domain
from privacyfunnel.tables.readers.adult import write_adult_csv
from privacyfunnel.tables.readers.eager_frames import FrameTable
from tests.commands import refused, run, told
from tests.release.test_public_folder import Today

COLUMNS = ["workclass", "education", "marital-status", "relationship", "race", "sex"]
ROWS = 6000
VERIFY = Path(__file__).parents[2] / "docs" / "verify.py"


@cache
def people() -> pl.DataFrame:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        write_adult_csv(path)
        return pl.read_csv(path).sample(ROWS, seed=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A release of six columns about the income of some people, and what the command said of it."""
    folder = tmp_path_factory.mktemp("wide")
    people().write_csv(folder / "people.csv")
    words = ["--secret", "income", "--publish", ",".join(COLUMNS), "-e", "3", "--prior", "model"]
    return folder, told("sanitise", folder / "people.csv", *words, "--into", folder / "out")


def load(folder: Path) -> tuple[SealedProtocol, RealOrSynthetic, WideModel]:
    sealed = SealedProtocol.load(folder / "out")
    assert isinstance(sealed.mechanism, RealOrSynthetic)
    assert isinstance(sealed.model, WideModel)
    return sealed, sealed.mechanism, sealed.model


def test_rows_are_real_or_synthetic_and_look_like_rows_of_the_table(made: tuple[Path, dict[str, Any]]) -> None:
    folder, said = made
    sealed, mechanism, model = load(folder)
    assert said["method"] == "real-or-synthetic"
    assert sorted(path.name for path in (folder / "out" / "public").iterdir()) == [
        "README.html",
        "croissant.json",
        "dcat.jsonld",
        "estimates.csv",
        "protocol.json",
        "sanitised.csv",
    ]
    published = pl.read_csv(folder / "out" / "public" / "sanitised.csv")
    assert published.columns == COLUMNS
    assert published.height == ROWS
    for attribute in model.tree.attributes:
        assert set(published[attribute.name]) <= set(attribute.labels)
        assert set(attribute.labels) <= {*people()[attribute.name], "other"}
    assert sealed.domain.lists_combinations is False
    assert float(model.total) == 3
    assert model.epsilon > 0
    assert sealed.promise.epsilon <= 3 - model.epsilon
    assert abs(said["unchanged"] - said["unchanged_expected"]) < 0.05
    assert said["unchanged"] > 0.5
    readme = (folder / "out" / "public" / "README.html").read_text()
    assert "by construction for every record there can be, from all combinations of labels" in readme
    assert mechanism.proof_records == 0


def test_anybody_can_check_it_from_the_public_files(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = made
    checked = run("audit", folder / "out" / "public")
    assert checked.returncode == 0, checked.stderr
    assert "LIP ε = 3 (×20.1) about income holds for whoever believes the published model" in checked.stdout
    alone = subprocess.run(
        [sys.executable, VERIFY, folder / "out" / "public" / "protocol.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 2
    assert "real-or-synthetic" in alone.stdout
    assert "privacyfunnel audit" in alone.stdout


def test_no_table_is_compared_with_it_and_no_promise_is_advised_that_it_cannot_keep(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = made
    people().write_csv(tmp_path / "people.csv")
    audited = run("audit", folder / "out" / "public", tmp_path / "people.csv")
    assert (audited.returncode, audited.stderr) == (0, "")
    assert "not checked   how the model was made" in audited.stdout
    assert "known" in _neighbours_text(load(folder)[0]).split("NOT covered")[1]
    page = (folder / "out" / "public" / "README.html").read_text()
    assert "may learn any amount" in page
    assert not any(option in page for option in ("srlip", "--known"))  # what an owner could do is not for readers


def test_slacks_that_are_not_proved_are_refused(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    sealed, _, _ = load(made[0])
    content = sealed.to_json()
    content["law"]["slacks"] = (np.array(content["law"]["slacks"]) + 2**26).tolist()
    altered = SealedProtocol.from_text(to_text(content))
    with pytest.raises(GuaranteeError, match="slacks are not proved"):
        certify_at_model(altered)
    assert certify_at_model(sealed) == sealed.epsilon


def test_next_month_has_records_that_were_never_seen(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """All combinations of labels, and labels that nobody had, which are `other`."""
    folder, _ = made
    _, _, model = load(folder)
    labels = [at.labels for at in model.tree.attributes]
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({name: rng.choice(of, 3000) for name, of in zip(COLUMNS, labels, strict=True)})
    rows = rows.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.lit("new")).otherwise("race").alias("race")
    )
    assert len(rows.unique().join(people().select(COLUMNS), on=COLUMNS, how="anti")) > 500
    rows.write_csv(tmp_path / "next.csv")
    done = told(
        "apply", folder / "out" / "public" / "protocol.json", tmp_path / "next.csv", "--into", tmp_path / "y.csv"
    )
    assert done["rows"] == 3000
    published = pl.read_csv(tmp_path / "y.csv")
    assert "new" not in set(published["race"])


def test_rows_are_drawn_alike_in_any_order_and_in_parts(made: tuple[Path, dict[str, Any]]) -> None:
    """By id and key: whatever the parts, the order and who else is there; and another record is another draw."""
    sealed, _, _ = load(made[0])
    rows = people().select(COLUMNS).with_row_index("id")
    one = ReleaseSpec(row_id="id", key_file=RowKey.generate(), keep="id", keep_order=True, accept_kept=True)
    whole = apply(sealed, rows, one).table
    mixed = rows.sample(ROWS, shuffle=True, seed=3)
    parts = [apply(sealed, mixed[start : start + 1700], one).table for start in range(0, ROWS, 1700)]
    assert pl.concat(parts).sort("id").equals(whole)
    changed = rows.with_columns(sex=pl.lit("Male"))
    other = apply(sealed, changed, one).table
    same = (rows["sex"] == "Male").to_numpy()
    assert other.filter(same).equals(whole.filter(same))
    assert not other.filter(~same).equals(whole.filter(~same))


def read_labels(sealed: SealedProtocol) -> pl.DataFrame:
    """The rows by the labels of the protocol."""
    shown = []
    for at in sealed.domain.attributes:
        rest = pl.lit(sealed.domain.rest.get(at.name, ""))
        shown.append(pl.when(pl.col(at.name).is_in(at.labels)).then(at.name).otherwise(rest).alias(at.name))
    return people().select(shown)


def test_intervals_cover_the_shares_of_the_table(made: tuple[Path, dict[str, Any]]) -> None:
    """Over draws, of the shares of all columns and of a cross table; and errors are as large as they are said to be."""
    sealed, _, _ = load(made[0])
    rows = read_labels(sealed)
    tables: list[tuple[str, ...]] = [*((name,) for name in COLUMNS), ("sex", "relationship")]
    inside, errors = [], []
    for seed in range(20):
        drawn = apply(sealed, rows, ReleaseSpec(seed=seed)).table
        for table in estimate(sealed, drawn, columns=tables):
            counted = {tuple(row[:-1]): row[-1] / ROWS for row in rows.group_by(table.columns).len().rows()}
            for cell in table.cells:
                truth = counted.get(cell.labels, 0.0)
                inside.append(cell.lower <= truth <= cell.upper)
                if truth > 0.02:
                    errors.append(((cell.share or 0.0) - truth) / (cell.standard_error or 1.0))
    # Noise of the model is fresh: over eight of them 0.93 to 0.98, 0.80 to 1.06 (a spread of 0.08) and within 0.06.
    assert np.mean(inside) > 0.88
    assert 0.5 < np.std(errors) < 1.5
    assert abs(np.mean(errors)) < 0.3


def test_any_program_that_takes_weights_finds_the_same(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = made
    sealed, _, _ = load(folder)
    table = folder / "out" / "public" / "sanitised.csv"
    done = run("estimate", folder / "out", "--columns", "sex,race", "--weights", tmp_path / "w.csv")
    assert done.returncode == 0, done.stderr
    weighted = pl.read_csv(tmp_path / "w.csv")
    assert weighted.equals(weigh(sealed, table))
    weights = weighted["weight"].to_numpy()
    assert weights.min() < 0 < weights.max()
    assert abs(weights.sum() - ROWS) < 1
    for cell in estimate(sealed, table, columns=[("sex", "race")]).tables[0].cells:
        mine = ((weighted["sex"] == cell.labels[0]) & (weighted["race"] == cell.labels[1])).to_numpy()
        assert abs(weights[mine].sum() / ROWS - (cell.share or 0.0)) < 1e-6 or cell.share in (cell.lower, cell.upper)


def test_completed_tables_have_whole_rows_whose_shares_are_those_of_the_weights(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = made
    done = run("estimate", folder / "out", "--impute", 2, "--into", tmp_path / "e")
    assert done.returncode == 0, done.stderr
    tables = [pl.read_csv(tmp_path / "e" / f"imputed-{i}.csv") for i in (1, 2)]
    sanitised = pl.read_csv(folder / "out" / "public" / "sanitised.csv")
    assert [table.shape for table in tables] == [sanitised.shape] * 2
    assert not tables[0].equals(tables[1])
    for cell in estimate(load(folder)[0], sanitised, columns=["sex"]).tables[0].cells:
        for table in tables:
            share = table["sex"].to_list().count(cell.labels[0]) / len(table)
            assert abs(share - (cell.share or 0.0)) < 6 * (cell.standard_error or 0.0)
    assert [list(each) for each in impute(load(folder)[0], sanitised.to_pandas(), 1)] == [sanitised.columns]
    with pytest.raises(ParameterError, match="'more' is another column"):
        impute(load(folder)[0], sanitised.with_columns(more=1), 1)


def test_what_takes_a_list_of_values_says_so(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = made
    out = folder / "out" / "public"
    refused(["estimate", out, "--posterior", tmp_path / "p.csv"], "ParameterError", "rows with weights")
    refused(["estimate", out, "--method", "ml"], "ParameterError", "by weights alone")


def spec(**more: Any) -> ReleaseSpec:
    asked: dict[str, Any] = {"secret": "income", "publish": COLUMNS, "epsilon": 3.0, "prior": "model", "seed": 1}
    return ReleaseSpec(**asked | more)


def test_odds_near_the_models_are_promised_and_a_file_that_claims_more_is_refused(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    words = ["--secret", "income", "--publish", "education,sex,race", "-e", "3", "--robust", "1.2"]
    said = told("sanitise", tmp_path / "people.csv", *words, "--into", tmp_path / "out")
    assert said["method"] == "real-or-synthetic"
    columns = next(each for each in said["attackers"] if each["name"] == "columns")
    assert columns["measured"]
    assert columns["promised"] is None
    assert "no protocol with this promise leaves more than" in said["model_quality"]
    checked = run("audit", tmp_path / "out" / "public")
    assert checked.returncode == 0, checked.stderr
    assert "differ by a factor of at most 1.2" in " ".join(checked.stdout.split())
    content = SealedProtocol.load(tmp_path / "out").to_json()
    assert content["promise"]["robust"] == "6/5"
    assert verify(tmp_path / "out" / "public" / "protocol.json") == 0
    content["promise"]["robust"] = "4"
    with pytest.raises(GuaranteeError, match="slacks are not proved"):
        certify_at_model(SealedProtocol.from_text(to_text(content)))
    (tmp_path / "claimed.json").write_text(to_text(content))
    assert verify(tmp_path / "claimed.json") == 1


def verify(path: Path) -> int:
    """What the script of the documents says, which needs nothing of this package: 0 where all is exactly kept."""
    return subprocess.run([sys.executable, VERIFY, path], capture_output=True, check=False).returncode


def test_neighbours_who_know_a_column_are_promised_too_and_a_file_without_it_is_refused(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    words = ["--secret", "income", "--publish", "education,sex,race", "-e", "3", "--known", "sex"]
    done = run("sanitise", tmp_path / "people.csv", *words, "--into", tmp_path / "out", "--details")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "neighbours who know a person's sex: covered; who know other columns: NOT covered" in said
    assert "A neighbour who knows a person's education may learn any amount" in said
    checked = run("audit", tmp_path / "out" / "public")
    assert checked.returncode == 0, checked.stderr
    assert "also if they know sex of a person" in " ".join(checked.stdout.split())
    sealed = SealedProtocol.load(tmp_path / "out")
    assert sealed.to_json()["promise"]["known"] == ["sex"]
    plain = design(people(), spec(publish=["education", "sex", "race"], epsilon=3.0)).to_json()
    plain["promise"]["known"] = ["sex"]
    with pytest.raises((ProtocolFileError, GuaranteeError)):
        certify_at_model(SealedProtocol.from_text(to_text(plain)))
    with pytest.raises(ColumnError, match="'age', which is not published"):
        design(people(), spec(known="age"))
    with pytest.raises(SizeError, match="Name fewer columns"):
        design(
            people(), spec(known=["workclass", "education", "race"], public_labels=["workclass", "education", "race"])
        )


TEXTS = pl.format("text {}", pl.int_range(pl.len()) % 2500)


@pytest.mark.parametrize(
    ("change", "more", "error", "parts"),
    [
        (TEXTS, {"allow": "race"}, ColumnError, ["2,500 different", "prefix:3", "Leave it out"]),
        (pl.col("race"), {"epsilon": 0.05}, ParameterError, ["needs more rows", "epsilon=", "fewer columns"]),
        (pl.col("race"), {"promise": "srlip", "method": "real-or-synthetic"}, ParameterError, ["SRLIP is about more"]),
        (pl.col("race"), {"method": "real-or-synthetic", "prior": "table"}, ParameterError, ["published model"]),
    ],
)
def test_tables_that_no_model_is_made_of_are_refused(
    change: pl.Expr, more: dict[str, Any], error: type[Exception], parts: list[str]
) -> None:
    with pytest.raises(error) as caught:
        design(people().with_columns(race=change), spec(**more))
    for part in parts:
        assert part in str(caught.value)


def test_two_hundred_columns_are_the_most() -> None:
    wide = pl.DataFrame({"s": ["a", "b"] * 50, **{f"c{j}": ["u", "v"] * 50 for j in range(201)}})
    with pytest.raises(ParameterError, match="At most 200 columns"):
        design(wide, spec(secret="s", publish=[f"c{j}" for j in range(201)]))


def test_labels_of_a_domain_file_are_all_named_and_its_size_decides() -> None:
    """More than 300 combinations are not listed, though two columns have them."""
    table, two = FrameTable.from_native(people()), ["education", "native-country"]
    domain = draft_domain(table, ["income", *two])
    sealed = design(people(), spec(publish=two, domain=domain))
    assert isinstance(sealed.model, WideModel)
    assert sealed.model.delta == 0
    assert [at.labels for at in sealed.domain.attributes] == [domain.codings[name].labels for name in two]
    few = design(people(), spec(publish=["sex", "race"], domain=draft_domain(table, ["income", "sex", "race"])))
    assert few.mechanism.lists_inputs


@pytest.fixture
def one_noise(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Noisy counts and scores of the first table are those of the next one, too; the list counts tables."""
    drawn: list[Any] = []
    place, tables = [0], [0]
    noisy, fit = measurement.add_noise, wide_design.fit_wide

    def record(counts: Any, noise: Any) -> Any:
        if len(drawn) == place[0]:
            drawn.append(noisy(counts, noise))
        place[0] += 1
        return drawn[place[0] - 1].copy()

    def begin(*given: Any) -> Any:
        place[0] = 0
        tables[0] += 1
        return fit(*given)

    monkeypatch.setattr(measurement, "add_noise", record)
    monkeypatch.setattr(wide_fit, "add_noise", record)
    monkeypatch.setattr("privacyfunnel.release.design.fit_wide", begin)
    monkeypatch.setattr(release_page, "datetime", Today)
    return tables


def test_every_public_byte_follows_from_the_noisy_counts_and_the_draw(tmp_path: Path, one_noise: list[int]) -> None:
    """Two tables that differ in every relation with the secret, and in its shares: the noise made up for that."""
    found = []
    flipped = people()["income"].sample(ROWS, shuffle=True, seed=5)
    for number, secret in enumerate((people()["income"], flipped)):
        place = tmp_path / str(number)
        place.mkdir()
        people().with_columns(income=secret).write_csv(place / "people.csv")
        sanitise_file(place / "people.csv", spec(publish=COLUMNS[2:], into=place / "out", report=False))
        public = place / "out" / "public"
        found.append({path.name: path.read_bytes() for path in public.iterdir()})
    assert one_noise == [2]
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []


def test_tests_from_outside_accept_the_law_and_reject_a_leak_of_one_row_in_twenty(
    made: tuple[Path, dict[str, Any]],
) -> None:
    """People as the model has them: their records are drawn, and looked at with their secrets and nothing else."""
    _, _, model = load(made[0])
    tree, promise, n = model.tree, LIP(0.5), 60_000
    law = design_real_or_synthetic(tree, promise).mechanism
    words = np.stack([KeyStream.from_seed(3).words(0, n, draw=draw) for draw in range(tree.words_per_record)])
    secrets = tree.sample_secrets(words).astype(np.int64)
    shown = law.draw(tree.sample(words), KeyStream.from_seed(4).rows(0, n))
    joint = Joint.from_counts(np.bincount(secrets, minlength=len(tree.shares))[:, None] * np.array([[1, 1]]))
    rng = np.random.default_rng(6)
    leaking = shown.copy()
    rows = rng.choice(n, n // 20, replace=False)
    leaking[rows] = shown[secrets[rows]]  # whoever has a secret shows one record with it
    verdicts = []
    for drawn in (shown, leaking):
        inputs = secrets * joint.a + rng.integers(0, joint.a, n)
        found = PublishedRows(inputs, drawn, np.arange(n))
        verdicts.append(judge_rows(found, promise.comparisons(joint, True), promise.epsilon, rng))
    assert not any(verdict.rejects for verdict in verdicts[0])
    assert any(verdict.rejects for verdict in verdicts[1])
