"""How far the data of one default release wanders: files entered, changes of package, problems solved.

A file is entered when one of its functions runs; what runs while modules are imported does not count. A package is a
folder of the source; modules beside them (formatting, hints, arrays, …) belong to whoever calls them.
"""

import io
import json
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import privacyfunnel
from privacyfunnel.cli import main as run
from privacyfunnel.tables.readers.adult import write_adult_csv

ROOT = f"{Path(privacyfunnel.__file__).parent}/"
SOLVER = ("designs/optimal/optimum.py", "optimal")
GOALS = {"files": 95, "changes": 400, "problems": 1}
FUNCTION = 1  # the flag of code that is a function's, and no class body's


class Flow:
    """What a profiler sees of the package's own functions."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.changes: dict[tuple[str, str], int] = {}
        self.problems = 0
        self._package = "cli"
        self._importing = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(ROOT) or event not in ("call", "return"):
            return
        if code.co_name == "<module>":
            self._importing += 1 if event == "call" else -1
        elif event == "call" and not self._importing and code.co_flags & FUNCTION:
            self._enter(code.co_filename.removeprefix(ROOT), code.co_name)

    def _enter(self, file: str, function: str) -> None:
        self.files.add(file)
        self.problems += (file, function) == SOLVER
        package = file.partition("/")[0] if "/" in file else self._package
        if package != self._package:
            step = (self._package, package)
            self.changes[step] = self.changes.get(step, 0) + 1
            self._package = package


def measure_flow(*options: str) -> Flow:
    """The flow of one release of a census column."""
    flow = Flow()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        people = Path(folder) / "adult.csv"
        write_adult_csv(people)
        words = [
            "sanitise",
            str(people),
            "-s",
            "occupation",
            "-p",
            "education",
            "-e",
            "1",
            "--into",
            f"{folder}/out",
            "--seed",  # which labels the noise names decides how far the data goes
            "1",
        ]
        sys.setprofile(flow)
        try:
            code = run([*words, *options])
        finally:
            sys.setprofile(None)
    assert code == 0
    return flow


def main() -> None:
    """Print the figures, and between which packages most changes are."""
    flow = measure_flow()
    found = {"files": len(flow.files), "changes": sum(flow.changes.values()), "problems": flow.problems}
    print(json.dumps({"found": found, "goals": GOALS}))
    for (one, other), count in sorted(flow.changes.items(), key=lambda item: -item[1])[:12]:
        print(f"{count:5} {one} → {other}")


if __name__ == "__main__":
    main()
