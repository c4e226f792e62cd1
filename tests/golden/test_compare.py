"""The comparison of records is blind to what may differ and sees what may not."""

from typing import Any

import pytest

from tests.golden.compare import differences

LESS = {"value": 0.5, "bound": 0.499, "better": "less"}
MORE = {"value": 1.5, "bound": 1.501, "better": "more"}
KEPT = {"certified": 0.4999, "promised": 0.5}


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (LESS, {"value": 0.505, "bound": 0.4985, "better": "less"}),
        (LESS, {"value": 0.49995, "bound": 0.4999, "better": "less"}),
        (MORE, {"value": 1.48, "bound": 1.5, "better": "more"}),
        (KEPT, {"certified": 0.5, "promised": 0.5}),
        (1.25, 1.25 * (1 + 1e-9)),
        ([0.5, 1e-9], [0.5, 0.0]),
    ],
)
def test_what_may_differ_is_no_difference(stored: Any, found: Any) -> None:
    assert differences({"it": stored}, {"it": found}) == []


@pytest.mark.parametrize(
    ("stored", "found", "part"),
    [
        (LESS, {"value": 0.52, "bound": 0.499, "better": "less"}, "worse"),
        (LESS, {"value": 0.49, "bound": 0.489, "better": "less"}, "proved to be the best"),
        (LESS, {"value": 0.505, "bound": 0.505, "better": "less"}, "excludes"),
        (LESS, {"value": 0.5, "bound": 0.48, "better": "less"}, "wider"),
        (LESS, {"value": 0.5, "bound": None, "better": "less"}, "has none"),
        (MORE, {"value": 1.45, "bound": 1.501, "better": "more"}, "worse"),
        (MORE, {"value": 1.51, "bound": 1.511, "better": "more"}, "proved to be the best"),
        (MORE, {"value": 1.5, "bound": 1.54, "better": "more"}, "wider"),
        (KEPT, {"certified": 0.5 + 1e-12, "promised": 0.5}, "exceeds"),
        (KEPT, {"certified": 0.45, "promised": 0.5}, "before"),
        (KEPT, {"certified": 0.4999, "promised": 0.6}, "promised"),
        (480, 479, "was 480"),
        (True, False, "was True"),
        (1.25, 1.2501, "was 1.25"),
        (1.25, None, "is None"),
        (None, 0.5, "was None"),
        ([0.5, 0.25], [0.5], "was"),
        ("lip", "ldp", "was lip"),
    ],
)
def test_what_may_not_differ_is_named(stored: Any, found: Any, part: str) -> None:
    sentences = differences({"it": stored}, {"it": found})
    assert any(sentence.startswith("it: ") and part in sentence for sentence in sentences)
