"""Counts so far apart that no solver sees the smallest: said to whoever can merge them, not reported as our fault."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from privacyfunnel.errors import SizeError, SolverError
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint

FINEST = 10**9  # solvers work to 1e-9: what is rarer than one in so many is less than their rounding

Answer = TypeVar("Answer")
More = ParamSpec("More")


def explain_skew(solve: Callable[More, Answer]) -> Callable[More, Answer]:
    """The same, but where a solver fails on a table with such counts the error says so, and what to do."""

    @wraps(solve)
    def solve_or_explain(*given: More.args, **named: More.kwargs) -> Answer:
        try:
            return solve(*given, **named)
        except SolverError as error:
            joint = next(each for each in (*given, *named.values()) if isinstance(each, Joint))
            weights = joint.weights[joint.weights > 0]
            if int(weights.sum()) <= FINEST * int(weights.min()):
                raise
            raise SizeError(
                f"no pair of a secret and a value may be rarer than one in {FINEST:,} for the optimum to be found; one "
                f"is, and the solver failed. Merge rare values, or use {hint('method', 'randomised-response')}."
            ) from error

    return solve_or_explain
