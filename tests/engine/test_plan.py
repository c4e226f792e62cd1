"""The plan: every way is some problem's way, every threshold moves a choice, and nobody else chooses."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privacyfunnel import engine
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.engine import Problem
from privacyfunnel.engine.bounds.dual_bounds import ProofBound, RelaxationBound
from privacyfunnel.engine.clock import FOREVER, clock_for
from privacyfunnel.engine.driver import ColumnGeneration
from privacyfunnel.engine.masters.blocks import BlockMaster
from privacyfunnel.engine.masters.restricted_master import PenalisedMaster, ResidualMaster
from privacyfunnel.engine.plan import PLAN, choose_generation
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP
from privacyfunnel.tables.readers.adult import adult_counts
from tests.engine.problems import lip, problem_of, random_joint

TABLE, OTHER = (Joint.from_counts(np.random.default_rng(seed).integers(1, 99, (3, 5))) for seed in (0, 1))


def without_structure(rows: int) -> Problem:
    """Pairs of which nothing is known but their numbers; each makes two rows."""
    L = np.random.default_rng(1).uniform(0.5, 2, (rows + 1, 4))
    L /= L.mean(axis=1, keepdims=True)  # at the prior all are 1
    return Problem.from_values(np.full(4, 0.25), LinearConstraints.from_pairs(L[:-1], L[1:]), 0.2)


PROBLEMS = {
    "credal sets, linear programmes": replace(
        problem_of(TABLE, LIP(0.5)), credal_sets=LIP(0.5).for_population(TABLE, rare=0).credal_sets(TABLE)
    ),
    "secret seen, closed form": problem_of(TABLE, LIP(0.5), sees_secret=True),
    "secret seen, linear programmes": problem_of(TABLE, SRLIP(0.5), sees_secret=True),
    "very many inputs, blocks": lip(0, 3, SETTINGS.plan.most_branched + 1, 0.5),
    "one dimension, table of all vertices": lip(0, 2, 6, 0.5),
    "very many secrets, linear programmes": lip(0, SETTINGS.plan.very_many_secrets + 1, 3, 0.5),
    "very many constraints, search without branching": without_structure(500),
    "vertices of the polytope": lip(0, 3, 6, 0.5),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_way_is_chosen_by_the_problem_that_it_is_for(name: str) -> None:
    assert choose_generation(PROBLEMS[name]).strategy == name
    assert [way.name for way in PLAN][-len(PROBLEMS) :] == list(PROBLEMS)


def test_what_is_known_of_the_rows_decides_and_not_their_numbers() -> None:
    """The same numbers without their structure are solved in the general way, to the same value."""
    problem = PROBLEMS["one dimension, table of all vertices"]
    bare = problem.replace_constraints(LinearConstraints.from_pairs(*problem.constraints.dense))
    with_table, general = choose_generation(problem), choose_generation(bare)
    assert general.strategy == "vertices of the polytope"
    with_table.run(1e-7)
    general.run(1e-7)
    assert general.value == pytest.approx(with_table.value, abs=2e-7)
    for other in (LDP(0.5), SRLIP(0.5), LIP(0.5).for_priors([OTHER])):
        assert (
            choose_generation(problem_of(TABLE, other, sees_secret=True)).strategy == "secret seen, linear programmes"
        )


def supplied(generation: ColumnGeneration) -> tuple[type, type]:
    return type(generation.master), type(generation.dual_bound)


def test_thresholds_move_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    many, rows = lip(0, 3, 12, 0.5), without_structure(20)
    assert supplied(choose_generation(many)) == (PenalisedMaster, ProofBound)
    assert supplied(choose_generation(rows)) == (PenalisedMaster, ProofBound)
    with monkeypatch.context() as patch:
        patch.setitem(vars(SETTINGS.plan), "many_inputs", 11)
        assert supplied(choose_generation(many)) == (ResidualMaster, RelaxationBound)
        assert not choose_generation(many).dual_bound.is_exhausted
        patch.setitem(vars(SETTINGS.plan), "most_branched", 11)
        assert supplied(choose_generation(many)) == (BlockMaster, RelaxationBound)
        assert not choose_generation(many).dual_bound.is_exhausted
        patch.setitem(vars(SETTINGS.slack), "largest_block", 11)
        last = choose_generation(many)
        last.dual_bound.begin(FOREVER)
        assert last.dual_bound.is_exhausted  # one secret at a time is all there is
    with monkeypatch.context() as patch:
        patch.setitem(vars(SETTINGS.plan), "many_constraints", 5)
        assert supplied(choose_generation(rows)) == (ResidualMaster, RelaxationBound)
    with monkeypatch.context() as patch:
        patch.setitem(vars(SETTINGS.plan), "most_proved", 10)
        assert choose_generation(rows).strategy == "very many constraints, search without branching"


def test_no_module_but_the_settings_holds_a_number_that_decides() -> None:
    """Module constants are names of HiGHS, of machine precision, or of the settings; never numbers of their own."""
    folder = Path(engine.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if path.name != "settings.py" and isinstance(node, ast.Assign):
                names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                numbers = [each for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
                floats = [each for each in numbers if isinstance(each.value, float)]
                assert not floats or "SETTINGS" in names, f"{path.name}: {ast.unparse(node)}"


def test_the_engine_lists_its_files() -> None:
    folder = Path(engine.__file__).parent
    listed = set(re.findall(r"[a-z_]+\.py", engine.__doc__ or ""))
    assert listed == {path.name for path in folder.rglob("*.py")} - {"__init__.py"}


def test_every_threshold_says_what_set_it() -> None:
    source = (Path(engine.__file__).parent / "settings.py").read_text(encoding="utf-8").splitlines()
    fields = [line for line in source if re.match(r"    [a-z_]+: .* = (?!field)", line)]
    assert len(fields) == sum(len(vars(group)) for group in vars(SETTINGS).values())
    strategies = re.compile(r"\[(tolerance|memory|nominal|signals|sensitivity.*|[a-z_]+: [a-z0-9-]+.*)\]$")
    assert not [line for line in fields if not strategies.search(line)]


def test_an_occupation_and_three_columns_are_not_given_up() -> None:
    """Hundreds of rows: inverting bases of that size found 0.50 nats where 1.60 can be kept."""
    joint = Joint.from_counts(adult_counts("occupation", "relationship", "race", "sex")[0])
    with clock_for(None):  # nominal seconds, of counted work
        found = optimal(joint, SRLIP(1.0), time_limit=1.5)
    assert found.utility >= 1.4
    assert found.bound <= 2.38  # H(X) is 2.39: simpler problems have said something


def test_three_attributes_are_branched_by_classes() -> None:
    problem = problem_of(random_joint(3, (2, 3, 3, 4)), SRLIP(1.0))
    assert supplied(choose_generation(problem)) == (PenalisedMaster, ProofBound)
