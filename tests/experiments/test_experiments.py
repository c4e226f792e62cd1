"""The paper's experiments: one quick run of all of them, and what it must show."""

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import OutputError, ParameterError, SolverError
from privacyfunnel.experiments import adult_curves, enumeration, grr_cr, ldp_lip, lip_srlip
from privacyfunnel.experiments.experiment import (
    Experiment,
    Findings,
    Record,
    adult_joint,
    jeffreys_joint,
    run_experiments,
    select,
    uniform_joint,
)
from privacyfunnel.experiments.reproduction import EXPERIMENTS, KINDS, Reproduction, reproduce
from privacyfunnel.model.information import information
from privacyfunnel.model.promises import LDP
from tests import commands
from tests.commands import LONGEST

NOISE = 1e-6  # nats: what optima are proved to, and what nine digits of a CSV file leave
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """All figures, quickly."""
    return reproduce(into=tmp_path_factory.mktemp("quick"), quick=True)


@pytest.fixture(scope="module")
def rows(done: Reproduction) -> Rows:
    """What the CSV files say."""
    return {path.stem: list(_read(path)) for path in done.files if path.suffix == ".csv"}


def _read(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {key: _number(value) for key, value in row.items()}


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _by(rows: list[dict[str, Any]], method: str, *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in rows if row["method"] == method}


# -- the files ---------------------------------------------------------------------------------------------------------


def test_every_figure_is_there_as_csv_svg_and_png(done: Reproduction) -> None:
    assert {path.name for path in done.files} == {f"{name}.{kind}" for name in EXPERIMENTS for kind in KINDS}
    assert all(path.stat().st_size > 500 for path in done.files)
    assert sorted(path.name for path in done.files[0].parent.iterdir()) == sorted(path.name for path in done.files)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_pictures_show_something(done: Reproduction, name: str) -> None:
    folder = done.page.parent / "reproduction"
    drawing = ElementTree.fromstring((folder / f"{name}.svg").read_text(encoding="utf-8"))
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) > 50
    picture = np.asarray(matplotlib.image.imread(io.BytesIO((folder / f"{name}.png").read_bytes()), format="png"))
    assert picture.shape[1] > 1000
    inked = np.asarray((picture[..., :3] < 0.95).any(axis=2))
    assert 0.005 < inked.mean() < 0.3
    # Nothing is cut off: a rim of the page stays white.
    assert not np.concatenate(
        [inked[:3].ravel(), inked[-3:].ravel(), inked[:, :3].ravel(), inked[:, -3:].ravel()]
    ).any()


def test_the_page_tells_of_every_figure_its_seeds_versions_and_command(done: Reproduction) -> None:
    page = done.page.read_text(encoding="utf-8")
    for experiment in EXPERIMENTS.values():
        assert f"## {experiment.number}. {experiment.title}" in page
        assert f"](reproduction/{experiment.name}.svg)" in page
    for said in ("133 s", "0.0206 s", "476 times", "0.9815", "0.9889", "0.9731", "½ H(X)"):
        assert said in page
    for told in ("`privacyfunnel reproduce --into DIR --quick`", "numpy 2", "default_rng", "quick run"):
        assert told in page
    assert "nan" not in page
    assert "We do not agree on" not in page


def test_every_column_of_a_csv_file_is_explained(rows: Rows) -> None:
    for name, experiment in EXPERIMENTS.items():
        explained = {column for columns in experiment.columns for column in columns.split(", ")}
        assert explained == set(rows[name][0])


# -- figures 1 and 2 ---------------------------------------------------------------------------------------------------


def test_lip_keeps_at_least_as_much_as_ldp_and_half_of_it_at_most_as_much(rows: Rows) -> None:
    ldp = _by(rows["ldp-lip"], ldp_lip.OURS_LDP, "seed", "epsilon")
    lip = _by(rows["ldp-lip"], ldp_lip.OURS_LIP, "seed", "epsilon")
    half = _by(rows["ldp-half-lip"], ldp_lip.OURS_HALF, "seed", "epsilon")
    assert set(ldp) == set(lip) == set(half)
    assert {epsilon for _, epsilon in ldp} == {0.5, 1.0, 1.5, 2.0}
    for point, row in ldp.items():
        assert half[point]["utility"] <= row["utility"] + NOISE
        assert row["utility"] <= lip[point]["utility"] + NOISE
        assert row["bound"] - row["utility"] <= NOISE


def test_both_ways_to_ldp_find_the_same_utility(rows: Rows) -> None:
    ours = _by(rows["ldp-lip"], ldp_lip.OURS_LDP, "seed", "epsilon")
    for point, row in _by(rows["ldp-lip"], ldp_lip.GAMMA, "seed", "epsilon").items():
        if row["utility"] != "":
            assert row["utility"] == pytest.approx(ours[point]["utility"], abs=NOISE)
    joint = uniform_joint(2, (4,), seed=3)
    for epsilon in (0.2, 0.5, 1.0):
        listed = enumeration.enumerate_vertices(
            enumeration.ldp_conditions(joint, epsilon), joint.p_x, time_limit=LONGEST
        )
        assert listed is not None
        assert listed.utility == pytest.approx(optimal(joint, LDP(epsilon)).utility, abs=1e-7)


def test_an_enumeration_that_takes_too_long_is_given_up() -> None:
    joint = uniform_joint(2, (9,), seed=0)
    assert enumeration.enumerate_vertices(enumeration.ldp_conditions(joint, 0.5), joint.p_x, time_limit=0.01) is None
    (row,) = ldp_lip.measure_enumeration(0, 0.5, time_limit=0.01)
    assert row["seconds"] == row["utility"] == ""
    assert (
        "1 of 1 stopped after 10.0 ms" in EXPERIMENTS["ldp-lip"].findings([row, *ldp_lip.compare_same_epsilon(0)]).ours
    )


# -- figure 3 ----------------------------------------------------------------------------------------------------------


def test_the_optimal_srlip_protocol_lies_between_the_recipe_and_lip(rows: Rows) -> None:
    found = {name: _by(rows["lip-srlip"], name, "seed", "epsilon") for name in lip_srlip.TITLES}
    for point, best in found[lip_srlip.SRLIP_BEST].items():
        assert best["leakage"] <= point[1]
        assert best["utility"] <= found[lip_srlip.LIP_BEST][point]["utility"] + NOISE
        assert found[lip_srlip.RECIPE][point]["utility"] < best["bound"]


def test_the_recipe_keeps_each_attributes_inequalities_and_is_what_the_vertices_say() -> None:
    joint = uniform_joint(lip_srlip.C, lip_srlip.SIZES, seed=1)
    recipe = lip_srlip.recipe_factors(joint, 0.75)
    for j, contexts in enumerate((1 + 3 + 4 + 12, 1 + 3 + 4 + 12, 1 + 3 + 3 + 9)):
        conditions = enumeration.budget_conditions(joint, j, 0.25)
        assert len(conditions) == 2 * joint.c * contexts
        assert (conditions @ recipe[j].channel >= -1e-12).all()
        if j < 2:  # the third attribute's vertices take a minute
            p_x = np.array([joint.p_x[joint.combos[:, j] == label].sum() for label in range(lip_srlip.SIZES[j])])
            listed = enumeration.enumerate_vertices(conditions, p_x, time_limit=LONGEST)
            assert listed is not None
            assert listed.utility == pytest.approx(information(p_x[:, None] * recipe[j].channel), abs=1e-6)


# -- figure 4 ----------------------------------------------------------------------------------------------------------


def test_every_point_of_adult_is_there_and_within_its_bounds(rows: Rows) -> None:
    keys = ("secret", "publish", "epsilon")
    found = {method: _by(rows["adult"], method, *keys) for method in ("grr", "oue", "cr", "opt-lip")}
    sees = _by(rows["adult"], adult_curves.OPT_SEES, *keys)
    assert len(found["opt-lip"]) == 2 * 4 * 3
    for point, best in found["opt-lip"].items():
        assert best["bound"] - best["utility"] <= 1e-4
        assert max(found["grr"][point]["utility"], found["oue"][point]["utility"]) <= best["bound"]
        assert found["oue"][point]["utility"] <= best["entropy"] / 2 + 1e-9
        if point in sees:
            assert found["cr"][point]["utility"] <= sees[point]["bound"]
            assert best["utility"] - NOISE <= sees[point]["utility"] <= sees[point]["bound"] <= best["entropy"] + NOISE


def test_adult_has_the_reference_values(rows: Rows) -> None:
    found = {(r["secret"], r["publish"], r["epsilon"], r["method"]): r["utility"] for r in rows["adult"]}
    for secret, publish, grr, cr, oue, best in (
        ("marital", "education", 0.9620, 0.7362, 0.4389, 1.9230),
        ("occupation", "education", 0.4083, 0.2308, 0.3222, 1.7766),
        ("marital", "relationship", 0.2132, 0.1802, 0.1558, 0.9290),
        ("occupation", "relationship", 0.2809, 0.5361, 0.2166, 1.2786),
        ("marital", "race", 0.4475, 0.2560, 0.2228, 0.5148),
    ):
        methods = zip(("grr", "cr", "oue", "opt-lip"), (grr, cr, oue, best), strict=True)
        assert all(found[secret, publish, 1.0, name] == pytest.approx(value, abs=1e-4) for name, value in methods)


def test_the_page_names_the_points_where_the_paper_is_too_general(done: Reproduction) -> None:
    page = done.page.read_text(encoding="utf-8")
    assert "OUE is ahead of GRR at" in page
    assert "CR is ahead of Opt-LIP at" in page
    assert "marital × sex at ε = 0.5" in page


# -- figures 5, 6 and 7 ------------------------------------------------------------------------------------------------


def test_conditional_reporting_gains_as_values_outnumber_secrets(rows: Rows) -> None:
    leads = {(a, c): grr_cr.lead(select(rows["grr-cr"], a=a, c=c)) for a, c in grr_cr.PAIRS}
    assert leads[2, 5] < leads[5, 5] < leads[5, 2]
    assert leads[3, 5] < leads[7, 5]
    for row in rows["grr-cr"]:
        assert 0 < min(row["grr_utility"], row["cr_utility"]) <= max(row["grr_utility"], row["cr_utility"])
        assert max(row["grr_utility"], row["cr_utility"]) <= row["entropy"] + NOISE


def test_the_difference_in_alpha_explains_the_difference_in_utility(rows: Rows) -> None:
    for epsilon in grr_cr.PAPER_CORRELATIONS:
        assert grr_cr.correlation(select(rows["alpha-utility"], epsilon=epsilon)) > 0.9


def test_alpha_grows_with_epsilon_and_the_table_decides_whose_is_larger(rows: Rows) -> None:
    for publish, ahead, behind in (("education", "grr", "cr"), ("relationship", "cr", "grr")):
        case = select(rows["alpha-epsilon"], secret="occupation", publish=publish)
        assert all(np.diff([float(row[f"{name}_alpha"]) for row in case]).min() > 0 for name in ("grr", "cr"))
        assert all(float(row[f"{ahead}_alpha"]) > float(row[f"{behind}_alpha"]) for row in case)


# -- draws, tasks and refusals -----------------------------------------------------------------------------------------


def test_a_seed_is_a_distribution() -> None:
    for draw in (partial(uniform_joint, 2, (3, 3, 4)), partial(jeffreys_joint, 5, 7)):
        assert np.array_equal(draw(1).weights, draw(1).weights)
        assert not np.array_equal(draw(1).weights, draw(2).weights)
    assert adult_joint("marital", "sex").total == 48_842


def test_only_named_figures_are_drawn_and_the_page_says_how(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    done = reproduce(["alpha-epsilon"], tmp_path / "new", quick=True, progress=lambda *progress: seen.append(progress))
    assert {path.stem for path in done.files} == {"alpha-epsilon"}
    assert "`privacyfunnel reproduce alpha-epsilon --into DIR --quick`" in done.page.read_text(encoding="utf-8")
    assert seen == [("alpha-epsilon", 1, 2), ("alpha-epsilon", 2, 2)]
    before = done.page.stat().st_mtime_ns
    with pytest.raises(OutputError, match="exists already"):
        reproduce(["alpha-epsilon"], tmp_path / "new", quick=True)
    assert done.page.stat().st_mtime_ns == before


def test_the_command_writes_a_figure_and_says_where(tmp_path: Path) -> None:
    told = commands.told("reproduce", "alpha-epsilon", "--into", tmp_path, "--quick")
    assert Path(told["page"]) == tmp_path / "reproduction.md"
    assert {Path(file).name for file in told["files"]} == {f"alpha-epsilon.{kind}" for kind in KINDS}
    assert all(Path(file).is_file() for file in told["files"])
    commands.refused(["reproduce", "alpha-epsilon", "--into", tmp_path], "OutputError", "exists already")
    commands.refused(["reproduce", "alpha-epsilom", "--into", tmp_path], "ParameterError", "mean 'alpha-epsilon'")


def test_a_figure_that_does_not_exist_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="Did you mean 'adult'"):
        reproduce(["adlt"], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def _breaks(task: int) -> list[Record]:
    if task == 3:
        raise SolverError("the third task broke")
    return [{"task": task}]


def test_a_task_that_breaks_breaks_the_run() -> None:
    def experiment(tasks: range) -> Experiment:
        return Experiment(
            "x", 0, "", "", lambda quick: [partial(_breaks, n) for n in tasks], lambda found: Findings("", "", ""), {}
        )

    assert run_experiments([experiment(range(3))], quick=True) == {"x": [{"task": 0}, {"task": 1}, {"task": 2}]}
    with pytest.raises(SolverError, match="third task"):
        run_experiments([experiment(range(6))], quick=True)


def test_numbers_are_had_without_matplotlib() -> None:
    code = "import sys, privacyfunnel.experiments.reproduction; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
