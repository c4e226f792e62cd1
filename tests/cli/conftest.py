"""What tests of the command share."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.children import Children
from tests.commands import LONGEST

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Runs the command with a fault."""
    children = Children("tests.cli.faults")
    yield partial(children.run, longest=LONGEST)
    children.end()
