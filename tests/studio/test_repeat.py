"""What the studio says would repeat a release does: the command, the script and the notebook make the same protocol."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from privacyfunnel import Balanced, Distance, Information, Statistics, Values
from privacyfunnel.cli import main
from privacyfunnel.model.uses.use_parser import parse_use
from privacyfunnel.spec.text_forms import command_words
from privacyfunnel.studio.choices import Choices, TableFile
from privacyfunnel.studio.pages.promise_pages import beliefs, uses
from privacyfunnel.studio.tasks.publish_task import notebook, script

CHOSEN = {
    "LIP": Choices(
        roles={"job": "secret", "town": "publish", "age": "publish", "visit, first": "keep"},
        bins={"age": "quantiles:3", "visit, first": "month"},
        rare={"town": 100},
    ),
    "SRLIP": Choices(
        roles={"job": "secret", "visit, first": "publish"},
        bins={"visit, first": "quarter"},
        knows=True,
        ratios=True,
        epsilon=0.7,
        prior="table",
    ),
    "LDP": Choices(
        roles={"age": "secret", "town": "publish"}, bins={"age": "30,60"}, ratios=True, prior="population", epsilon=2.0
    ),
}


@pytest.mark.parametrize("promise", CHOSEN)
def test_command_script_and_notebook_make_the_same_protocol(promise: str, people: Path, tmp_path: Path) -> None:
    made = []
    for way in ("command", "script", "notebook"):
        here = tmp_path / way
        here.mkdir()
        table = Path(shutil.copy(people, here))  # with a ledger of its own: rows are released once
        choices = replace(CHOSEN[promise], source=TableFile(table, table.name), into=str(here / "out"))
        if way == "command":
            assert main([*command_words(choices.to_spec()), "--no-report", "--json"]) == 0
        elif way == "script":
            exec(script(choices), {})
        else:
            cells = json.loads(notebook(choices))["cells"]
            exec("\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code"), {})
        made.append((here / "out" / "owner" / "protocol.json").read_text(encoding="utf-8"))
    assert made[0] == made[1] == made[2]
    assert choices.promise.name == promise
    assert promise in made[0]


def test_every_use_that_the_page_offers_is_one_that_the_command_reads_and_says_again() -> None:
    few, many = CHOSEN["SRLIP"], replace(CHOSEN["LIP"], roles={"job": "secret", "town": "publish", "a, b": "publish"})
    assert set(uses(many)) - set(uses(few)) == {'statistics:town,"a, b"'}
    kinds = {type(parse_use(use)) for use in uses(many) if use}
    assert kinds == {Information, Statistics, Balanced, Values, Distance}
    for use in uses(many):
        words = command_words(replace(many, source=TableFile(Path("people.csv"), "people.csv"), use=use).to_spec())
        assert [word for word in words if word.startswith("--for=")] == ([f"--for={use}"] if use else [])


def test_both_questions_answered_with_yes_ask_for_half_the_size_of_the_stronger_promise() -> None:
    both = Choices(knows=True, ratios=True, epsilon=1.0)
    assert (both.promise.name, both.promise.epsilon) == ("SRLIP", 0.5)
    assert Choices(ratios=True).promise.name == "LDP"
    assert Choices().promise.name == "LIP"


@pytest.mark.parametrize(
    ("choices", "after"),
    [
        (Choices(), "74.3 %"),
        (Choices(ratios=True), "53.9 %"),
        (Choices(knows=True, ratios=True, epsilon=2.0), "74.3 %"),
    ],
)
def test_a_belief_of_30_percent_becomes_what_the_promise_allows_and_no_more(choices: Choices, after: str) -> None:
    moved = {before: most for before, _, most in beliefs(choices)["beliefs"]}
    assert moved["30 %"] == after  # not 82 %: all other secrets together keep some belief, too
