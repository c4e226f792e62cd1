"""Counts that are too far apart for solvers."""

from pathlib import Path

import numpy as np
import pytest

from privacyfunnel.designs.optimal.problem_conversion import explain_skew
from privacyfunnel.errors import SizeError, SolverError
from privacyfunnel.model.joint import Joint
from tests.commands import said


def test_counts_so_skewed_that_the_solver_fails_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["s," + ",".join(f"x{i}" for i in range(12))]
    lines += [f"s{j}," + ",".join(str(10 ** (i * j * 7 % 16)) for i in range(12)) for j in range(6)]
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(lines) + "\n")
    asked = ["solve", path, "--epsilon", 30, "--promise", "srlip", "--sees-secret", "--time-limit", 5]
    code, _, told = said(capsys, *asked)  # a better solver may succeed
    assert (code, told) == (0, "") or (code == 2 and told.startswith("SizeError: ") and "Merge rare values" in told)


@pytest.mark.parametrize(("rarest", "kind"), [(1, SizeError), (2, SolverError)])
def test_a_solver_that_fails_on_ordinary_counts_is_our_fault(rarest: int, kind: type[Exception]) -> None:
    @explain_skew
    def fails(joint: Joint) -> None:
        raise SolverError("it failed")

    with pytest.raises(kind):
        fails(Joint.from_counts(np.array([[10**9, rarest], [rarest, 10**9 - 3 * rarest]])))
