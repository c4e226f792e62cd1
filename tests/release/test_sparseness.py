"""Sparse combinations: how many rows they give away, and what fewer columns and coarser bins would keep."""

import numpy as np
import pytest

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.release.findings.sparseness import sparseness


def test_sparseness_says_how_many_rows_their_combination_gives_away() -> None:
    joint = Joint.from_counts([[[1, 0], [4, 3]], [[0, 2], [4, 3]]], names=["place", "day"])
    found = sparseness(joint)
    assert found.once == pytest.approx(1 / 4)
    assert found.revealing_share == pytest.approx(3 / 17)
    assert [other.revealing_share for other in found.smaller] == [0, 0]
    assert "18% of the rows have a combination that tells the secret. Without place it would be 0%." in str(found)


def test_sparseness_says_what_fewer_columns_and_coarser_bins_would_keep() -> None:
    counts = np.zeros((2, 4, 2), dtype=int)
    counts[0], counts[1] = [[5, 0], [0, 5], [5, 5], [5, 5]], [[0, 5], [5, 0], [5, 5], [5, 5]]
    labels = ["< 10", "[10, 20)", "[20, 30)", ">= 30"]
    joint = Joint.from_counts(counts, values=[labels, ["f", "m"]], names=["age", "sex"])
    found = sparseness(joint, {"age": (10.0, 20.0, 30.0)}, lambda table: optimal(table, LIP(0.1)).utility)
    assert found.revealing_share == pytest.approx(20 / 60)
    changes = {other.change: other for other in found.smaller}
    coarse = f"with {hint('bins', 'age=20')}"
    assert set(changes) == {"without age", "without sex", coarse}
    coarser = changes[coarse]
    assert (coarser.combinations, coarser.revealing_share) == (4, 0)
    assert coarser.kept == pytest.approx(coarser.entropy)  # what is left says nothing about the secret
    assert f"W{coarse[1:]} it would be 0%, and about 1.33 of 1.33 nats (100%) would be kept." in str(found)
