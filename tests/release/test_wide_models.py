"""Where a model of many columns comes from, and what can be promised of them."""

import re
from pathlib import Path

import numpy as np
import pytest

from privacyfunnel import design
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.published.wide_model import WideModel
from privacyfunnel.tables.coding.domain_file import draft_domain
from privacyfunnel.tables.readers.eager_frames import FrameTable
from tests.commands import run
from tests.release.test_wide_release import COLUMNS, people, spec


def test_a_model_may_come_from_a_differentially_private_table_and_then_from_nothing_else(tmp_path: Path) -> None:
    columns = ["sex", "race", "relationship"]
    table = FrameTable.from_native(people())
    asked = {"publish": columns, "domain": draft_domain(table, ["income", *columns]), "design_epsilon": 0.5}
    others = people().select("income", *columns).sample(4000, seed=8, shuffle=True)
    others.write_csv(tmp_path / "synthetic.csv")
    trees = []
    for rows in (people(), people().with_columns(income=people()["income"].shuffle(seed=3))):
        made = design(rows, spec(**asked, model_table=tmp_path / "synthetic.csv"))
        assert isinstance(made.model, WideModel)
        assert [float(made.model.epsilon), float(made.model.delta), made.promise.epsilon] == [0.5, 0.0, 2.5]
        trees.append(made.model.tree.to_json())
    assert trees[0] == trees[1]
    shares = np.array(trees[0]["shares"]) / 2**32
    assert abs(shares.max() - (others["income"] == "<=50K").sum() / 4000) < 0.01
    with pytest.raises(ParameterError, match="with which that table was made"):
        spec(publish=columns, model_table=tmp_path / "synthetic.csv")


def test_what_can_be_promised_in_place_of_srlip_is_said_and_works(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    words = ["--secret", "income", "--publish", ",".join(COLUMNS), "-e", "3", "--public-labels", "education,workclass"]
    command = ["sanitise", tmp_path / "people.csv", *words, "--into", tmp_path / "out", "--again"]
    done = run(*command, "--promise", "srlip")
    assert done.returncode == 2
    advice = re.search(r"\((--promise lip --known \w+)\)", " ".join(done.stderr.split()))
    assert advice is not None, done.stderr
    done = run(*command, *advice[1].split())
    assert done.returncode == 0, done.stderr


def test_labels_that_are_public_already_are_not_advised_again() -> None:
    asked = {"secret": "income", "publish": ["sex", "race", "education"], "epsilon": 0.002, "design_epsilon": 0.001}
    public = ["income", "sex", "race", "education"]
    with pytest.raises(ParameterError, match="larger ε or fewer values") as caught:
        design(people(), spec(**asked, public_labels=public))
    assert "public_labels" not in str(caught.value)
