r"""The best protocol for statistics, with its bound (docs/theory.md, the theorem of equivalence).

Least :math:`n \cdot \mathrm{MSE} = \operatorname{tr}(F F^\top M^{-1}) - \text{constant}`, convex in the split of the
prior, by the engine. `balanced` adds one constraint, :math:`\sum_y q_y H(t_y) \le H(X) - \kappa I^*`, with I* the best
information. I* is known between the information L of a protocol and a bound U. The returned protocol keeps κU, and so
its share whatever I* is. The bound on the error is proved for all protocols that keep κL, among which are all that
keep κI*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.optimal.information_solver import NEARLY_ALL, margin_cost, maximise_information
from privacyfunnel.designs.optimal.problem_conversion import (
    LARGEST_EPSILON,
    LARGEST_SLIVER_BITS,
    UNSEEN_BESIDE,
    build_problem,
    build_protocol,
    check_all_seen,
    identity,
)
from privacyfunnel.designs.optimal.solver_interface import (
    BLURRED,
    CONDITIONED_AT_ALL,
    MOST_PAIRS,
    Optimum,
    Progress,
    SolverRequest,
    StopReason,
)
from privacyfunnel.engine import Problem
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.masters.mixture import Moment
from privacyfunnel.engine.splits import split_by_moment
from privacyfunnel.errors import ParameterError, SizeError, SolverError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics, centre_queries, population_statistics
from privacyfunnel.model.uses.use import Information, Use

RIDGE = 1e-6  # weight of all shares beside queries that alone would leave M singular
RANK = 1e-9  # relative: singular values of queries below this are none
ROUNDING = 1e-9  # relative: how far a value may lie below a bound that it meets
INFORMATION_GAP = 1e-4  # of H(X): how well the best information is known before a share of it is asked for …
RELATIVE_GAP = 2e-5  # … and of itself, which is much smaller than H(X) where ε is small
ROUGH_GAP, ROUGH_SECONDS = 2e-3, 20.0  # the same for a population; and for how long where there is no time limit
INFORMATION_TIME = 0.3  # of a time limit
SEALED_EACH = 2e-3  # seconds an input that labels, sealing and measuring take
PROVED_SOON = 150  # inputs up to which a proof is waited for where there is no time limit
MANY_SECONDS = 120.0  # for more of them
NAMED = 3  # values that a sentence names


@dataclass(frozen=True, slots=True, eq=False)
class _InformationFloor:
    """What balanced adds: the largest H(X | Y), how much more the proof allows, and the most informative protocol."""

    most_entropy: float
    proof_slack: float
    best: Optimum


def minimise_squared_error(request: SolverRequest) -> Optimum:
    """The protocol of least squared error; one that sees the secret is judged by the population's shares."""
    use = cast(Statistics, request.use)
    return _solve(request, use, population_statistics(use) if request.sees_secret else use, None)


def minimise_balanced_error(request: SolverRequest) -> Optimum:
    """The same among protocols that keep their share of the best information; `sealed.bound` is what any could keep."""
    use, h_x, clock = cast(Balanced, request.use), entropy(request.joint.p_x), Clock.from_limit(request.time_limit)
    over_sets = request.promise.credal_sets(request.joint, request.sees_secret) is not None
    gap, limit = (ROUGH_GAP, ROUGH_SECONDS) if over_sets else (INFORMATION_GAP, None)
    if request.time_limit is not None:
        limit = INFORMATION_TIME * request.time_limit
    question = replace(request, use=Information(), gap=gap * h_x, time_limit=limit, progress=None)
    best = maximise_information(question)
    if not over_sets and best.bound - best.utility > RELATIVE_GAP * best.bound and best.stopped is not StopReason.TIME:
        best = maximise_information(replace(question, gap=RELATIVE_GAP * best.utility))
    # Over sets of priors the best information is proved in minutes where it is found in seconds: there a share is one
    # of what was found.
    known = best.utility if over_sets else best.bound
    extra = _InformationFloor(h_x - use.kept * known, use.kept * (known - best.utility), best)
    if best.utility < use.kept * known:
        raise ParameterError(
            f"A share of {use.kept:g} needs the best information to be known as well; it is known to "
            f"{best.utility / best.bound:.1%}. Allow more time ({hint('time_limit', 600)}) or keep a smaller share "
            f"({hint('use', 'balanced:0.9')})."
        )
    statistics = population_statistics(use.statistics) if request.sees_secret else use.statistics
    return _solve(replace(request, time_limit=clock.time_limit), use, statistics, extra)


def _solve(request: SolverRequest, use: Use, statistics: Statistics, extra: _InformationFloor | None) -> Optimum:
    joint, promise, clock = request.joint, request.promise, Clock.from_limit(_seconds(request))
    constant = statistics.constant(joint)
    least = 0.0 if not statistics.population else replace(statistics, population=False).constant(joint)
    judged = use if extra is not None else statistics
    as_it_is = identity(joint, request.sees_secret, promise.anything_else)
    if promise.leakage(joint, as_it_is) <= promise.epsilon:
        value = statistics.value(joint, as_it_is)
        return Optimum(as_it_is, as_it_is.mutual_information(joint), min(value, least), value, judged)
    _check_identifiable(joint, promise, statistics)
    problem, inputs, margin = build_problem(joint, promise, request.sees_secret, UNSEEN_BESIDE)
    if request.sees_secret and problem.size > MOST_PAIRS:
        raise SizeError(
            f"Statistics by a protocol that sees the secret are proved for at most {MOST_PAIRS} pairs of secret and "
            f"value; there are {problem.size}. Leave out {hint('sees_secret')}, or choose {hint('use', 'information')}."
        )
    if problem.size > CONDITIONED_AT_ALL and extra is None:
        raise SizeError(
            f"Statistics are computed for at most {CONDITIONED_AT_ALL:,} values; this table has {problem.size:,}. "
            f"Publish fewer columns, use coarser bins, or choose {hint('use', 'information')}."
        )
    check_all_seen(joint, problem, f"'{use.full_name}'")
    sealing = min(SEALED_EACH * problem.size, clock.seconds_left / 2)
    searching = Clock.from_limit(None if clock.time_limit is None else clock.seconds_left - sealing)
    nearly_all = searching.part(NEARLY_ALL)
    found = split_by_moment(
        problem,
        replace(_moment(joint, statistics, extra, margin), constant=least if statistics.population else constant),
        gap=use.finest,
        absolute=request.gap,
        time_limit=searching.time_limit,
        progress=_shift_progress(request.progress, constant),
        start=None if extra is None else _posterior_atoms(extra.best, problem, inputs),
    )
    stopped = StopReason.TIME if nearly_all.late else StopReason.NOTHING
    split_up = build_protocol(joint, problem, inputs, found, request.sees_secret)
    sealed = seal(split_up, promise, joint, most=LARGEST_SLIVER_BITS, also_in_floats=True)
    protocol = split_up if sealed.mechanism.table_protocol is None else sealed.mechanism.table_protocol
    value = statistics.value(joint, protocol)
    # Mixing δ of the prior into every atom leaves M at least (1 − δ)² of what it was.
    bound = (1 - margin) ** 2 * found.bound - constant if promise.epsilon <= LARGEST_EPSILON else least
    bound = max(bound, least)
    if value < bound - ROUNDING * (1 + abs(constant) + bound):
        raise SolverError(f"A bound must not lie above an error; it lies {bound - value:.1e} above. Report this.")
    if extra is not None:
        sealed = replace(sealed, bound=max(extra.best.bound, sealed.information))
    return Optimum(protocol, sealed.information, min(value, bound), value, judged, sealed, stopped, found.strategy)


def _seconds(request: SolverRequest) -> float | None:
    """How long the best protocol is sought: until it is proved, where nobody says and values are few."""
    return MANY_SECONDS if request.time_limit is None and request.joint.a > PROVED_SOON else request.time_limit


def _moment(joint: Joint, statistics: Statistics, extra: _InformationFloor | None, margin: float) -> Moment:
    """F, and all shares beside it where queries alone would leave M singular."""
    F = statistics.factor(joint)
    scaled = F / np.sqrt(joint.p_x)[:, None]
    rank = int(np.linalg.matrix_rank(scaled, tol=RANK * float(np.linalg.norm(scaled, 2))))
    ridge = np.zeros((joint.a, 0))
    if rank < joint.a - 1:
        shares = centre_queries(np.eye(joint.a), joint.p_x)
        size = np.linalg.norm(scaled) / np.linalg.norm(shares / np.sqrt(joint.p_x)[:, None])
        ridge = np.sqrt(RIDGE) * size * shares
    if extra is None:
        return Moment(F, ridge)
    # The engine solves for an ε smaller by the margin, and a split mixed with the prior for that has more entropy.
    mixed = margin_cost(entropy(joint.p_x), margin)
    return Moment(F, ridge, extra.most_entropy, proof_slack=extra.proof_slack + mixed)


def _posterior_atoms(best: Optimum, problem: Problem, inputs: IntArray) -> FloatArray:
    """The posteriors of a protocol's outputs over the problem's inputs."""
    together = (problem.prior[:, None] * best.protocol.all_rows[inputs]).T
    together = together[together.sum(axis=1) > 0]
    return np.asarray(together / together.sum(axis=1, keepdims=True))


def _check_identifiable(joint: Joint, promise: Promise, statistics: Statistics) -> None:
    """Refuse queries that depend on the secret where the promise lets nothing through that does."""
    if promise.epsilon >= BLURRED:
        return
    N, D = promise.constraints(joint).dense
    seen = np.abs((N - D) @ statistics.factor(joint)).max(axis=0, initial=0.0) > BLURRED
    if not seen.any():
        return
    free = joint.a - int(np.linalg.matrix_rank(N - D, tol=BLURRED)) - 1
    left = f"though {free} combinations of shares are" if free > 0 else "nor is any combination of shares"
    raise ParameterError(
        f"Statistics need a promise that leaves them estimable; under {promise.name} with ε = {promise.epsilon:g} "
        f"{int(seen.sum())} of {seen.size} are not{_format_values(joint, statistics, seen)}, {left}. "
        f"Ask for a larger ε, or choose {hint('use', 'information')}."
    )


def _format_values(joint: Joint, statistics: Statistics, seen: FloatArray) -> str:
    if statistics.columns or statistics.workload is not None:
        return ""
    names = [f"'{' & '.join(joint.values[x])}'" for x in np.flatnonzero(seen)]
    return f" ({', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''})"


def _shift_progress(progress: Progress | None, constant: float) -> Progress | None:
    return None if progress is None else lambda value, bound: progress(value - constant, max(bound - constant, 0.0))
