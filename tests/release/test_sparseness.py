"""Sparse combinations: how many rows they give away, and which smaller table gives away least."""

import numpy as np
import pytest

from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.findings.sparseness import revealing_share, smaller_tables, sparseness_advice


def test_the_advice_says_how_many_rows_their_combination_gives_away_and_which_column_to_leave_out() -> None:
    joint = Joint.from_counts([[[1, 0], [4, 3]], [[0, 2], [4, 3]]], names=["place", "day"])
    assert revealing_share(joint) == pytest.approx(3 / 17)
    assert [other.revealing_share for other in smaller_tables(joint, {})] == [0, 0]
    said = sparseness_advice(joint, {})
    assert "the published values of 17.6 % of the rows decide the secret; leave out place and it is 0 %" in said
    assert sparseness_advice(joint.project([1]), {}) == ""


def test_coarser_bins_are_among_the_smaller_tables() -> None:
    counts = np.zeros((2, 4, 2), dtype=int)
    counts[0], counts[1] = [[5, 0], [0, 5], [5, 5], [5, 5]], [[0, 5], [5, 0], [5, 5], [5, 5]]
    labels = ["under 10", "10–19", "20–29", "30+"]
    joint = Joint.from_counts(counts, values=[labels, ["f", "m"]], names=["age", "sex"])
    found = {other.change: other for other in smaller_tables(joint, {"age": (10.0, 20.0, 30.0)})}
    coarse = f"use {hint('bins', 'age=20')}"
    assert set(found) == {"leave out age", "leave out sex", coarse}
    assert (found[coarse].joint.a, found[coarse].revealing_share) == (4, 0)
