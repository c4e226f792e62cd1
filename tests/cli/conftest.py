"""What tests of the command share."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Runs the command with a fault."""
    command = [sys.executable, "-m", "tests.cli.faults"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        told, heard = process.stdin, process.stdout
        assert told
        assert heard

        def asked(**what: Any) -> Any:
            print(json.dumps(what), file=told, flush=True)
            return json.loads(heard.readline())

        yield asked
        told.close()
