"""The classical Privacy Funnel (paper, Problem 1), proved: the most I(X;Y) with I(S;Y) of at most M.

An average is no promise: the record that tells most may give its secret away whatever M is. So every protocol found
comes with the ε that it would have as LIP and as LDP, and M can be asked for on top of a promise.

Greedy merging: the usual way to the classical Privacy Funnel, without proof, to compare with and to begin from.

Every value is published as it is at first. Then, time and again, two outputs become one: those that lower I(S;Y) by
most, less what they cost of I(X;Y) at some price. Several prices are tried. The way down is the same for every average,
so that one walk serves them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, entropy_terms
from privacyfunnel.designs.optimal.optimum import check_size, optimal
from privacyfunnel.designs.optimal.problem_conversion import (
    LARGEST_EPSILON,
    LARGEST_SLIVER_BITS,
    Optimum,
    StopReason,
    build_problem,
    build_protocol,
    explain_skew,
    identity,
)
from privacyfunnel.designs.optimal.solvers import margin_cost
from privacyfunnel.engine.clock import FOREVER, WORK, Clock, clock_for
from privacyfunnel.engine.driver import Progress
from privacyfunnel.engine.problem import EntropyFloor, Problem
from privacyfunnel.engine.splits import split_on_average
from privacyfunnel.errors import ParameterError, SizeError, SolverError, check_average
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.information import entropy, information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.use import Information

SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)  # of I(S;X): the M at which a curve is drawn
EPSILONS = (0.25, 0.5, 1.0, 2.0)  # of the promises that are drawn beside it
LARGEST = 150  # values: beyond, a proof says nothing in a minute
INSIDE = 1e-9  # of M: by how much less is solved for, so that rounding does not bring what is measured above it
REACHED = 1e-9  # relative: what rounding may add to a gap that was reached
ROUNDING = 1e-10  # by how much a measured utility may exceed a bound that it meets
WIDER = 1e-4  # nats: the gap of what stands beside the curve
SECONDS = 60.0  # for one point, where nobody said how long it may take
A_MOMENT = 1e-3  # seconds
GREEDY_SHARE = 0.2  # of the time, for greedy merging, where the search begins
PROMISE_SHARE = 0.4  # of the time, for the best protocol that keeps the promise alone


@dataclass(frozen=True, slots=True, eq=False)
class OnAverage:
    """A protocol with I(S;Y) of at most M, and how far it may be from the best one."""

    average: float  # M, in nats
    protocol: Protocol
    utility: float  # nats, I(X;Y) measured on `protocol`
    bound: float  # nats: no protocol with I(S;Y) <= M, that keeps the promise where there is one, has more
    about_secret: float  # nats, I(S;Y) measured on `protocol`
    worst: Mapping[str, float]  # the ε of each promise; inf where a record gives its secret away without bound
    sealed: SealedProtocol | None = None  # where a promise was kept besides
    stopped: StopReason = StopReason.GAP  # what ended the search
    strategy: str = ""  # the line of the engine's plan that was taken


@dataclass(frozen=True, slots=True)
class WorstCasePoint:
    """What a worst-case promise keeps, and what its optimum tells on average."""

    promise: str
    epsilon: float
    utility: float
    about_secret: float


@dataclass(frozen=True, slots=True, eq=False)
class Funnel:
    """The certified curve of I(X;Y) against I(S;Y), with greedy merging and worst-case promises beside it."""

    entropy: float  # H(X)
    about_secret: float  # I(S;X), which everything tells
    points: tuple[OnAverage, ...]
    greedy: tuple[float, ...]  # I(X;Y) of greedy merging at the same M
    beside: tuple[WorstCasePoint, ...]


@explain_skew
def optimal_on_average(
    joint: Joint,
    average: float,
    promise: Promise | None = None,
    *,
    gap: float = 1e-5,
    time_limit: float | None = None,
    progress: Progress | None = None,
    merged: Partition | None = None,
) -> OnAverage:
    r"""The most informative protocol with :math:`I(S;Y) \le M`, which keeps a promise besides where one is given.

    .. math:: \max I(X;Y) \quad\text{s.t.}\quad I(S;Y) \le M

    By column generation with one row more (docs/theory.md, Theorem 43), until `bound - utility` is at most `gap`. It
    begins from greedy merging, unless that is given as `merged`.
    """
    average = check_average(average)
    if joint.a > LARGEST:
        raise SizeError(
            f"The funnel is solved for at most {LARGEST} values; this table has {joint.a:,}. Publish fewer columns, or "
            "use coarser bins."
        )
    with clock_for(time_limit):
        clock = Clock.from_limit(SECONDS if time_limit is None else time_limit)
        return _solve_on_average(joint, average, promise, gap, clock, progress, merged)


def _solve_on_average(
    joint: Joint,
    average: float,
    promise: Promise | None,
    gap: float,
    clock: Clock,
    progress: Progress | None,
    merged: Partition | None,
) -> OnAverage:
    alone = _solve_promise_alone(joint, average, promise, gap, clock)
    known = _answer_without_average(joint, average, promise, alone)
    if known is not None:
        return known
    inside = average * (1 - INSIDE)
    if merged is None:
        (merged,) = greedy_merging(joint, [average], clock.part(GREEDY_SHARE))
    problem, start, margin = _problem(joint, promise, alone, merged.posteriors(joint))
    owed = margin_cost(entropy(joint.p_x), margin)
    h_x, h_s, secrets = entropy(joint.p_x), entropy(joint.p_s), joint.p_s_given_x
    found = split_on_average(
        problem,
        EntropyFloor(secrets, h_s - inside),
        bound_average=EntropyFloor(secrets, h_s - average),
        gap=gap,
        time_limit=clock.seconds_left,
        progress=None if progress is None else lambda value, bound: progress(h_x - value, min(h_x, h_x - bound)),
        start=start,
    )
    protocol = _mix_to_average(joint, build_protocol(joint, problem, np.arange(joint.a), found, False), average)
    best = _measure(joint, average, protocol, min(h_x, h_x - found.bound + owed), promise)
    reached = best.bound - best.utility <= gap + REACHED * (1 + h_x)
    stopped = StopReason.GAP if reached else StopReason.TIME if clock.late else StopReason.NOTHING
    return replace(best, stopped=stopped, strategy=found.strategy)


def _solve_promise_alone(
    joint: Joint, average: float, promise: Promise | None, gap: float, clock: Clock
) -> Optimum | None:
    """The best protocol that keeps the promise alone, if there is one; independence is LIP(0), which nothing beats."""
    if average == 0:
        if promise is not None and promise.guards_known_attributes:
            raise ParameterError(f"an average of 0 is not solved together with {promise.name}. Ask for more than 0.")
        return optimal(joint, LIP(0), gap=gap, time_limit=_seconds_share(clock, 1.0))
    if promise is None:
        return None
    return optimal(joint, promise, gap=gap, time_limit=_seconds_share(clock, PROMISE_SHARE))


def _answer_without_average(
    joint: Joint, average: float, promise: Promise | None, alone: Optimum | None
) -> OnAverage | None:
    """The answer where M asks for nothing beyond the promise, or for independence."""
    if alone is None:
        as_it_is = identity(joint, False)
        if secret_information(joint, as_it_is) > average:
            return None
        return _measure(joint, average, as_it_is, entropy(joint.p_x), None)
    if average > 0 and secret_information(joint, alone.protocol) > average:
        return None
    best = _measure(joint, average, alone.protocol, alone.bound, promise)
    return replace(best, stopped=alone.stopped)


def _problem(
    joint: Joint, promise: Promise | None, alone: Optimum | None, merged: FloatArray
) -> tuple[Problem, FloatArray, float]:
    """The engine's problem, atoms to begin with, and by how much its promise is smaller than the one given."""
    if promise is None or alone is None or promise.epsilon > LARGEST_EPSILON:
        return Problem.from_values(joint.p_x, LinearConstraints.concatenate([], joint.a), 1.0), merged, 0.0
    problem, _, margin = build_problem(joint, promise, False)
    p_xy = alone.protocol.joint_with_values(joint)
    atoms = (p_xy / p_xy.sum(axis=0)).T
    return problem, problem.mix_with_prior(np.concatenate([atoms, merged])), margin


def secret_information(joint: Joint, protocol: Protocol) -> float:
    """I(S;Y) in nats: how much a published record says about the secret on average."""
    return information(protocol.joint_with_secret(joint))


def _mix_to_average(joint: Joint, protocol: Protocol, average: float) -> Protocol:
    """The protocol, with the smallest sliver of the constant one after which I(S;Y) as measured is at most M."""
    p_y = protocol.joint_with_values(joint).sum(axis=0)
    tries = (protocol, *(protocol.mix_constant(p_y, 2.0**-k) for k in range(50, -1, -1)))
    return next(each for each in tries if secret_information(joint, each) <= average or each is tries[-1])


def _measure(joint: Joint, average: float, protocol: Protocol, bound: float, promise: Promise | None) -> OnAverage:
    sealed = None
    if promise is not None:
        sealed = seal(protocol, promise, joint, most=LARGEST_SLIVER_BITS, also_in_floats=True)
        protocol = protocol if sealed.mechanism.table_protocol is None else sealed.mechanism.table_protocol
    utility = protocol.mutual_information(joint)
    if bound < utility - ROUNDING:
        raise SolverError(f"A bound must not lie below what a protocol keeps; it lies {utility - bound:.1e} below.")
    worst = {kind.__name__.lower(): kind(0).leakage(joint, protocol) for kind in (LIP, LDP)}
    return OnAverage(
        average, protocol, utility, max(utility, bound), secret_information(joint, protocol), worst, sealed
    )


def funnel(
    joint: Joint,
    averages: Sequence[float] = (),
    *,
    epsilons: Sequence[float] = EPSILONS,
    gap: float = 1e-5,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Funnel:
    """The curve at these M (in nats; shares of I(S;X) where none are given), beside greedy merging, LIP and LDP.

    `gap` is of one point. `time_limit` (seconds) is of all together: each has an equal part of what is left. A promise
    that is too large to be solved is left out.
    """
    clock = Clock.from_limit(time_limit)
    whole = secret_information(joint, identity(joint, False))
    wanted = sorted({check_average(m) for m in averages} or {share * whole for share in SHARES})
    promises = [kind(epsilon) for kind in (LIP, LDP) if _is_solvable(joint, kind) for epsilon in epsilons]
    turns = len(wanted) + len(promises)
    points, beside = [], []
    greedy = greedy_merging(joint, wanted, clock.part(GREEDY_SHARE))
    for number, (average, merged) in enumerate(zip(wanted, greedy, strict=True)):
        seconds = None if time_limit is None else _seconds_share(clock, 1 / (turns - number))
        points.append(optimal_on_average(joint, average, gap=gap, time_limit=seconds, progress=progress, merged=merged))
    for number, promise in enumerate(promises):
        seconds = SECONDS if time_limit is None else _seconds_share(clock, 1 / (len(promises) - number))
        with clock_for(time_limit):
            best = optimal(joint, promise, gap=max(gap, WIDER), time_limit=seconds)
        leaked = secret_information(joint, best.protocol)
        beside.append(WorstCasePoint(promise.name.lower(), promise.epsilon, best.utility, leaked))
    return Funnel(entropy(joint.p_x), whole, tuple(points), tuple(each.information for each in greedy), tuple(beside))


def _seconds_share(clock: Clock, share: float) -> float:
    """A share of the seconds that are left, and a moment where there are none: something is found even then."""
    return max(clock.part(share).seconds_left, A_MOMENT)


def _is_solvable(joint: Joint, kind: type[Promise]) -> bool:
    """Whether the optimum under such a promise is small enough to be computed."""
    try:
        check_size(joint, kind(1.0), False, Information())
    except SizeError:
        return False
    return True


PRICES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)  # of a nat of I(X;Y), in nats of I(S;Y)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A partition of the values: outputs are disjoint sets of them, so that I(X;Y) is the entropy of Y."""

    information: float  # I(X;Y)
    output: IntArray  # of each value

    def posteriors(self, joint: Joint) -> FloatArray:
        """p(x | y), a row per output."""
        p_yx = (self.output == np.unique(self.output)[:, None]) * joint.p_x
        return np.asarray(p_yx / p_yx.sum(axis=1, keepdims=True))


def greedy_merging(joint: Joint, averages: Sequence[float], clock: Clock = FOREVER) -> tuple[Partition, ...]:
    """For each average the partition that keeps most, among those that were met with I(S;Y) of at most that.

    >>> [round(merged.information, 3) for merged in greedy_merging(Joint.from_counts([[4, 1, 5], [1, 4, 5]]), [0.01])]
    [0.693]
    """
    found = [Partition(0.0, np.zeros(joint.a, dtype=np.int64)) for _ in averages]
    p_y = joint.p_x[None, :]
    cost = np.array([-_change(p_y, y) for y in range(joint.a)])  # of I(X;Y) = H(Y)
    less = cost + [_change(joint.p_sx, y) for y in range(joint.a)]  # of I(S;Y) = H(S) + H(Y) − H(S, Y)
    for price in PRICES:
        found = _walk(joint.p_sx, averages, price, cost, less, found, clock)
    return tuple(found)


def _walk(
    p_sy: FloatArray,
    averages: Sequence[float],
    price: float,
    cost: FloatArray,
    less: FloatArray,
    found: list[Partition],
    clock: Clock,
) -> list[Partition]:
    """The better of what was found before and of what is one step from a walk at this price."""
    p_sy, cost, less, best = p_sy.copy(), cost.copy(), less.copy(), list(found)
    output = left = np.arange(p_sy.shape[1])  # a merged output has the number of the first of its values
    while len(left) > 1 and not clock.late:
        leaked, kept = information(p_sy[:, left]), float(entropy_terms(p_sy[:, left].sum(axis=0)).sum())
        one, other = (left[side] for side in np.triu_indices(len(left), 1))
        by_cost, by_less = cost[one, other], less[one, other]
        WORK.entries += one.size * (4 + 2 * len(averages))
        for number, average in enumerate(averages):
            if leaked <= average and kept > best[number].information:
                best[number] = Partition(kept, output)
            after = np.where(leaked - by_less <= average, kept - by_cost, 0.0)
            pair = int(np.argmax(after))
            if after[pair] > best[number].information:
                best[number] = Partition(float(after[pair]), np.where(output == other[pair], one[pair], output))
        pair = int(np.argmax(by_less - price * by_cost))
        first, second = int(one[pair]), int(other[pair])
        output, left = np.where(output == second, first, output), left[left != second]
        p_sy[:, first] += p_sy[:, second]
        p_y = p_sy.sum(axis=0)[None, :]
        cost[first] = cost[:, first] = -_change(p_y, first)
        less[first] = less[:, first] = cost[first] + _change(p_sy, first)
    return best


def _change(p: FloatArray, y: int) -> FloatArray:
    """By how much the terms −p ln p of a column and each other one change when they become one."""
    own = p[:, y, None]
    return np.asarray((entropy_terms(p + own) - entropy_terms(p) - entropy_terms(own)).sum(axis=0))
