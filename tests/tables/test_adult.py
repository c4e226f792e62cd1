"""UCI Adult as it is shipped: the counts, the entropies, the expansion to rows."""

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from privacyfunnel.errors import ColumnError, OutputError
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.readers.adult import ADULT_COLUMNS, adult_counts, write_adult_csv
from privacyfunnel.tables.readers.table_files import open_table


@pytest.mark.parametrize(
    ("column", "nats"), [("education", 2.0314), ("relationship", 1.4938), ("race", 0.5512), ("sex", 0.6352)]
)
def test_entropies_are_those_of_all_rows(column: str, nats: float) -> None:
    counts, (labels,) = adult_counts(column)
    p = counts / counts.sum()
    assert -(p * np.log(p)).sum() == pytest.approx(nats, abs=5e-5)
    assert len(labels) == len(counts)


def test_every_column_counts_every_record_and_the_question_mark_is_a_category() -> None:
    for column in ADULT_COLUMNS:
        counts, (labels,) = adult_counts(column)
        assert counts.sum() == 48_842
        assert ("?" in labels) == (column in {"workclass", "occupation", "native-country"})


def test_three_columns_sum_to_their_margins() -> None:
    three, labels = adult_counts("occupation", "relationship", "sex")
    two, _ = adult_counts("occupation", "sex")
    assert three.shape == tuple(len(axis) for axis in labels)
    assert np.array_equal(three.sum(axis=1), two)


def test_an_unknown_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(ColumnError, match=r"^Adult has no column 'educaton' among 9. Did you mean 'education'\?$"):
        adult_counts("educaton")


def test_the_expansion_holds_the_same_counts_in_an_order_that_is_fixed_and_not_sorted(tmp_path: Path) -> None:
    write_adult_csv(tmp_path / "adult.csv")
    write_adult_csv(tmp_path / "again.csv")
    assert (tmp_path / "adult.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    with (tmp_path / "adult.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == ADULT_COLUMNS
    assert len(rows) == 48_842
    # In a shuffled table about as many neighbours ascend as descend; in a sorted one none descends.
    descents = sum(first > second for first, second in pairwise(rows))
    assert 0.45 < descents / len(rows) < 0.55

    counted = encode(open_table(tmp_path / "adult.csv"), secret=["occupation"], publish=["education"]).contingency
    counts, (occupations, educations) = adult_counts("occupation", "education")
    assert counted.secret_labels == occupations
    assert counted.attribute_labels == (educations,)
    assert np.array_equal(counted.weights, counts)


def test_the_expansion_does_not_overwrite_unless_asked(tmp_path: Path) -> None:
    target = tmp_path / "adult.csv"
    target.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        write_adult_csv(target)
    assert target.read_text() == "mine"
    write_adult_csv(target, force=True)
    assert target.read_text().startswith("workclass,")
    assert [path.name for path in tmp_path.iterdir()] == ["adult.csv"]
