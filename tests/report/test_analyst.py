"""What the report says of each column: what an analyst gets back, what was changed, and what was kept."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from privacyfunnel.model.joint import Attribute
from privacyfunnel.report.analyst import analyst_view, changes, error_table, group_errors
from privacyfunnel.report.bars import divide_track, select_labels
from tests.report.released import AGES, KINDS, page, released


def test_values_with_an_order_keep_it_and_others_are_sorted_by_share() -> None:
    shares = np.array([0.1, 0.2, 0.4, 0.3])
    assert select_labels(Attribute("age", AGES), shares, 4).tolist() == [0, 1, 2, 3]
    assert select_labels(Attribute("age", AGES), shares, 2).tolist() == [2, 3]
    assert select_labels(Attribute("city", ("u", "v", "w", "x")), shares, 4).tolist() == [2, 3, 1, 0]
    given_order = (("size", ("S", "M", "L", "XL")),)
    assert select_labels(Attribute("size", ("L", "M", "S", "XL")), shares, 4, given_order).tolist() == [2, 1, 0, 3]
    rows = re.findall(r'<span class="name">([^<]+)</span>', page("three"))
    names = [re.sub(r"^y\d+ ", "", html.unescape(name)) for name in rows]
    ages = [AGES.index(name) for name in names if name in AGES]
    assert ages[:4] == [0, 1, 2, 3]  # for the analyst, then by codes of what is changed
    assert ages[4:]
    assert ages[4:] == sorted(ages[4:])


def test_what_is_changed_adds_up() -> None:
    for kind in ("one column", "several", "three", "values"):
        release = released(*KINDS[kind])
        assert release.joint is not None
        for change in changes(release.joint, release.sealed):
            assert sum(shown.share for shown in change.outputs) == pytest.approx(1)
            assert all(shown.posterior.sum() == pytest.approx(1) for shown in change.outputs)
            assert change.own is not None
            assert 0 <= change.exact <= change.own + 1e-9 <= 1 + 2e-9
            assert change.own >= release.unchanged_expected - 1e-9
            for shown in change.outputs:
                marks = divide_track(shown.posterior, change.column.labels, shown.value)
                assert marks[-1].end == pytest.approx(1, abs=0.01)
    one = released(*KINDS["one column"])
    assert one.joint is not None
    assert changes(one.joint, one.sealed)[0].own == pytest.approx(one.unchanged_expected)


def test_what_an_analyst_gets_is_told_for_every_column_and_one_cross_table() -> None:
    release = released(*KINDS["three"])
    assert release.joint is not None
    found = analyst_view(release.sealed, release.joint, release.rows)
    assert [told.columns for told in found.columns] == [("city",), ("sex",), ("age",)]
    assert found.cross is not None
    assert set(found.cross.columns) == {"city", "age"}  # both follow the job
    assert found.cross.shares.sum() == pytest.approx(1)
    text = html.unescape(page("three"))
    assert " × ".join(found.cross.columns) in text
    assert all(cell in text for row in error_table(found) for cell in row)
    assert [row[0] for row in error_table(found)] == ["city", "sex", "age", " × ".join(found.cross.columns)]


def test_the_groups_that_bear_most_of_the_error_are_small_ones_whose_numbers_are_told_worst() -> None:
    release = released(*KINDS["several"])
    found = analyst_view(release.sealed, release.joint, release.rows)
    shown = group_errors(found, release.rows)
    relative = [float(each[3].removeprefix("± ").removesuffix(" %").replace(",", "")) for each in shown]
    assert relative == sorted(relative, reverse=True)
    worst = max(
        (float(half / share), f"{each.columns[0]} = {labels[0]}")
        for each in found.columns
        for labels, share, half in zip(each.labels, each.shares, each.half_widths, strict=True)
    )
    assert shown[0][0] == worst[1]
