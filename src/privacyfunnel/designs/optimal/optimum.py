"""The best protocol that keeps a promise, for whichever use is named, with a proof of how good it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from privacyfunnel.arrays import one_blas_thread
from privacyfunnel.designs.interface import LARGEST_DIVIDED, LARGEST_PROBLEM
from privacyfunnel.designs.optimal.problem_conversion import Optimum, Progress, SolverRequest, StopReason, explain_skew
from privacyfunnel.designs.optimal.solvers import (
    maximise_information,
    minimise_balanced_error,
    minimise_expected_cost,
    minimise_squared_error,
)
from privacyfunnel.engine.clock import Clock, clock_for
from privacyfunnel.errors import ParameterError, SizeError, check_positive
from privacyfunnel.hints import hint
from privacyfunnel.model.composable import most_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.linear_use import LinearUse
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.model.uses.use_parser import resolve_use

Solver = Callable[[SolverRequest], Optimum]


def find_solver(use: Use) -> Solver:
    """The solver of a use: by its name, or for one of another package by its kind."""
    named = SOLVERS.get(use.name)
    if named is not None:
        return named
    if isinstance(use, LinearUse):
        return minimise_expected_cost
    raise ParameterError(f"No solver finds the best protocol for '{use.full_name}'. Name a method that serves it.")


SOLVERS: Mapping[str, Solver] = MappingProxyType(
    {
        "information": maximise_information,
        "values": minimise_expected_cost,
        "distance": minimise_expected_cost,
        "statistics": minimise_squared_error,
        "balanced": minimise_balanced_error,
    }
)


__all__ = ["Optimum", "optimal"]

ROUNDING = 1e-9  # relative: what sealing may add to a gap that was reached
MOST_COMPARISONS = 2500  # of side channels: with more of them no search finds much in minutes
MOST_NUMBERS = 5 * 10**7  # in the rows of a promise
LARGEST_SETS = 20_000  # shares that sets of priors bound; each is a row and a column of a linear programme, twice


@explain_skew
@one_blas_thread()
def optimal(
    joint: Joint,
    promise: Promise,
    use: Use | str | None = None,
    *,
    sees_secret: bool = False,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """The best protocol for a use (information where none is named) that keeps the promise, with its bound.

    A use is an object, or a text: `Statistics()` or `"statistics"`.

    `gap` is in the use's own unit. Stopping at `time_limit` (seconds) is no error: the protocol is valid, and `bound`
    says how far it may be from the best. An interrupt is one, and returns nothing. `progress` is called with the value
    and the bound so far.

    Raises
    ------
    GuaranteeError
        If rounding broke the promise. Nothing weaker is returned.
    InputError
        If the use does not fit what is published.
    """
    use = resolve_use(use) or Information()
    gap = check_positive("gap", gap)
    time_limit = None if time_limit is None else check_positive("time limit", time_limit)
    check_size(joint, promise, sees_secret, use)
    use.refuse(joint)
    with clock_for(time_limit):
        clock = Clock.from_limit(time_limit)
        found = find_solver(use)(SolverRequest(joint, promise, use, sees_secret, gap, time_limit, progress))
        if use == Information() and promise.composable is not None:
            found = replace(found, bound=min(found.bound, most_information(promise.composable)))
        # A search may end sooner, to leave time to seal what it found.
        late = clock.late or found.stopped is StopReason.TIME
    reached = abs(found.bound - found.value) <= use.tolerance(gap, found.value) + ROUNDING * (1 + abs(found.bound))
    return replace(found, stopped=StopReason.GAP if reached else StopReason.TIME if late else StopReason.NOTHING)


def check_size(joint: Joint, promise: Promise, sees_secret: bool, use: Use) -> None:
    """Refuse, at once, what would take the engine hours."""
    instead = (
        f"Merge rare values ({hint('merge_rare', 10)}), or publish a prefix ({hint('bins', 'NAME=prefix:3')}) or "
        "groups of codes."
    )
    if joint.m > 1 and not sees_secret:
        instead = f"Leave the prior at the published model ({hint('prior', 'model')}), publish fewer columns, or use "
        instead += "coarser bins."
    if joint.c > joint.a:
        instead = f"Make one secret of several ({hint('merge_secrets', 'a,b=other')}). {instead}"
    inputs = int(np.count_nonzero(joint.weights)) if sees_secret else joint.a
    divided = use == Information() and not sees_secret and promise.population is None and promise.odds is None
    most = LARGEST_DIVIDED if divided and not (promise.guards_known_attributes and joint.m > 1) else LARGEST_PROBLEM
    if inputs > most:
        what = "pairs of a secret and a value" if sees_secret else "combinations" if joint.m > 1 else "values"
        raise SizeError(f"The optimum is computed for at most {most:,} {what}; this table has {inputs:,}. {instead}")
    comparisons = promise.count(joint, sees_secret)
    if promise.guards_known_attributes and joint.m > 1 and comparisons > MOST_COMPARISONS:
        raise SizeError(
            f"The optimum under {promise.name} is computed for at most {MOST_COMPARISONS:,} comparisons; {joint.a:,} "
            f"combinations of {joint.m} columns make {comparisons:,}. {instead}"
        )
    if comparisons * inputs > MOST_NUMBERS:
        raise SizeError(
            f"The optimum under {promise.name} compares {comparisons:,} times over {inputs:,} inputs here, "
            f"{comparisons * inputs:,} numbers; at most {MOST_NUMBERS:,} are worked with. {instead}"
        )
    shares = promise.share_count(joint, sees_secret)
    if shares > LARGEST_SETS:
        raise SizeError(
            f"For a population the optimum is computed for at most {LARGEST_SETS:,} shares of values among people with "
            f"a secret; this table has {shares:,}. {instead}"
        )
