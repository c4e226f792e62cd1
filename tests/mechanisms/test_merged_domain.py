"""A protocol of merged values and secrets is loaded as it was saved, and one that contradicts itself is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from privacyfunnel import LIP, SealedProtocol, design
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.release.kept_counts import rest_merges
from privacyfunnel.spec import ReleaseSpec
from tests.mechanisms.test_protocol_file import redigested


def sealed() -> SealedProtocol:
    people = pl.DataFrame({"job": ["a", "b", "c", "d"] * 10, "town": ["k"] * 19 + ["l"] * 18 + ["m", "n", "o"]})
    return design(
        people,
        ReleaseSpec(
            prior="table",
            secret="job",
            publish="town",
            promise=LIP(0.5),
            method="randomised-response",
            merge_rare=3,
            merge_secrets={"other": ["a", "b"]},
        ),
    )


def test_merged_values_and_secrets_are_loaded_as_they_were_saved() -> None:
    made = sealed()
    loaded = SealedProtocol.from_text(made.to_text())
    assert loaded.domain.rest == made.domain.rest == {"town": "other"}
    assert loaded.domain.secrets_merged
    assert rest_merges(loaded.domain) == rest_merges(made.domain) != ()
    assert loaded.to_text() == made.to_text()


def test_where_nothing_is_merged_the_file_is_what_it_was() -> None:
    people = pl.DataFrame({"job": ["a", "b"] * 10, "town": ["k"] * 11 + ["l"] * 9})
    stated = json.loads(design(people, prior="table", secret="job", publish="town", promise=LIP(0.5)).to_text())
    assert set(stated["publish"][0]) == {"column", "labels", "bins"}
    assert set(stated["secret"]) == {"columns", "labels"}


def _other_label(content: Any) -> None:
    content["publish"][0]["rest"] = "elsewhere"


def _in_bins(content: Any) -> None:
    content["publish"][0]["bins"] = [1.0, 2.0]


def _no_label(content: Any) -> None:
    content["publish"][0]["rest"] = 3


@pytest.mark.parametrize("alter", [_other_label, _in_bins, _no_label])
def test_a_file_that_contradicts_itself_about_what_is_merged_is_refused(alter: Callable[[Any], None]) -> None:
    content = json.loads(sealed().to_text())
    alter(content)
    with pytest.raises(ProtocolFileError):
        SealedProtocol.from_text(redigested(content))
