"""A step of a chain finds the output that shows some labels, however many columns it has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.mechanisms.chain_step import UNIT, Step


def step_of(outputs: list[tuple[int, ...]], width: int) -> Step:
    """Every context has one value, which becomes its first output."""
    contexts = sorted({context for context, *_ in outputs})
    place = np.array([contexts.index(context) for context, *_ in outputs])
    first = np.searchsorted(place, np.arange(len(contexts)))
    return Step(
        attributes=tuple(range(width)),
        values=np.zeros((1, width), dtype=np.int64),
        parent_output=np.arange(len(contexts)),
        context_of_output=place,
        labels=np.array([labels for _, *labels in outputs]).reshape(-1, width),
        value=np.zeros(len(contexts), dtype=np.int64),
        output=first,
        numerator=np.full(len(contexts), UNIT),
        default_labels=np.zeros(width, dtype=np.int64),
    )


@pytest.mark.parametrize("width", [1, 3, 40])
@settings(max_examples=40)
@given(data=st.data())
def test_the_output_that_shows_labels_is_found_or_there_is_none(width: int, data: st.DataObject) -> None:
    row = st.tuples(st.integers(0, 2), *[st.integers(0, 2)] * width)
    outputs = sorted(data.draw(st.sets(row, min_size=1, max_size=8)))
    step = step_of(outputs, width)
    contexts = sorted({context for context, *_ in outputs})
    asked = [*outputs, *data.draw(st.lists(st.tuples(*[st.integers(-1, 4)] * (width + 1)), max_size=8))]
    known = [(contexts.index(context) if context in contexts else -1) for context, *_ in asked]
    found = step.find_outputs(np.array(known), np.array([labels for _, *labels in asked]).reshape(-1, width))
    assert found.tolist() == [outputs.index(row) if row in outputs else -1 for row in asked]
