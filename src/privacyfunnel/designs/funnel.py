r"""The classical Privacy Funnel (paper, Problem 1), proved: the most I(X;Y) with I(S;Y) of at most M.

An average is no promise: the record that tells most may give its secret away whatever M is. So every protocol found
comes with the ε that it would have as LIP and as LDP, and M can be asked for on top of a promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.greedy import greedy_merging
from privacyfunnel.designs.informative import repaid
from privacyfunnel.designs.optimum import optimal
from privacyfunnel.designs.skew import naming_skew
from privacyfunnel.designs.splitting import LARGEST_EPSILON, LARGEST_SLIVER_BITS, identity, problem_of, protocol_of
from privacyfunnel.engine.funnel import Average, Progress, split_on_average
from privacyfunnel.engine.problem import Problem
from privacyfunnel.errors import ParameterError, SizeError, SolverError, checked_average
from privacyfunnel.laws.sealing import SealedProtocol, seal
from privacyfunnel.model.information import entropy, information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.protocol import Protocol
from privacyfunnel.model.rows import Rows

SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)  # of I(S;X): the M at which a curve is drawn
EPSILONS = (0.25, 0.5, 1.0, 2.0)  # of the promises that are drawn beside it
LARGEST = 150  # values: beyond, a proof says nothing in a minute
INSIDE = 1e-9  # of M: by how much less is solved for, so that rounding does not bring what is measured above it
ROUNDING = 1e-10  # by how much a measured utility may exceed a bound that it meets
WIDER = 1e-4  # nats: the gap of what stands beside the curve
SECONDS = 60.0  # for one point, where nobody said how long it may take


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


@dataclass(frozen=True, slots=True)
class Beside:
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
    beside: tuple[Beside, ...]


@naming_skew
def optimal_on_average(
    joint: Joint,
    average: float,
    promise: Promise | None = None,
    *,
    gap: float = 1e-5,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> OnAverage:
    r"""The most informative protocol with :math:`I(S;Y) \le M`, which keeps a promise besides where one is given.

    .. math:: \max I(X;Y) \quad\text{s.t.}\quad I(S;Y) \le M

    By column generation with one row more (docs/theory.md, Theorem 29), until `bound - utility` is at most `gap`.
    """
    average = checked_average(average)
    if joint.a > LARGEST:
        raise SizeError(
            f"The funnel is solved for at most {LARGEST} values; this table has {joint.a:,}. Publish fewer columns, or "
            "use coarser bins."
        )
    known = _without_the_average(joint, average, promise, gap, time_limit)
    if known is not None:
        return known
    inside = average * (1 - INSIDE)
    problem, start, margin = _problem(joint, promise, gap, time_limit)
    owed = repaid(entropy(joint.p_x), margin)
    h_x, h_s, secrets = entropy(joint.p_x), entropy(joint.p_s), joint.p_s_given_x
    found = split_on_average(
        problem,
        Average(secrets, h_s - inside),
        bounded=Average(secrets, h_s - average),
        gap=gap,
        time_limit=time_limit or SECONDS,
        progress=None if progress is None else lambda value, bound: progress(h_x - value, min(h_x, h_x - bound)),
        start=start,
    )
    protocol = _within(joint, protocol_of(joint, problem, np.arange(joint.a), found, False), average)
    return _measured(joint, average, protocol, min(h_x, h_x - found.bound + owed), promise)


def _without_the_average(
    joint: Joint, average: float, promise: Promise | None, gap: float, time_limit: float | None
) -> OnAverage | None:
    """The answer where M asks for nothing beyond the promise, or for independence, which is LIP(0)."""
    if average == 0:
        if promise is not None and promise.guards_known_attributes:
            raise ParameterError(f"an average of 0 is not solved together with {promise.name}. Ask for more than 0.")
        best = optimal(joint, LIP(0), gap=gap, time_limit=time_limit)
    elif promise is None:
        as_it_is = identity(joint, False)
        if about_secret(joint, as_it_is) > average:
            return None
        return _measured(joint, average, as_it_is, entropy(joint.p_x), None)
    else:
        best = optimal(joint, promise, gap=gap, time_limit=time_limit)
        if about_secret(joint, best.protocol) > average:
            return None
    return _measured(joint, average, best.protocol, best.bound, promise)


def _problem(
    joint: Joint, promise: Promise | None, gap: float, time_limit: float | None
) -> tuple[Problem, FloatArray | None, float]:
    """The engine's problem, atoms to begin with, and by how much its promise is smaller than the one given."""
    if promise is None or promise.epsilon > LARGEST_EPSILON:
        return Problem.of_values(joint.p_x, Rows.joined([], joint.a), 1.0), None, 0.0
    problem, _, margin = problem_of(joint, promise, False)
    best = optimal(joint, promise, gap=gap, time_limit=time_limit).protocol
    p_xy = best.joint_with_values(joint)
    atoms = (p_xy / p_xy.sum(axis=0)).T
    return problem, problem.drawn_towards(atoms), margin


def about_secret(joint: Joint, protocol: Protocol) -> float:
    """I(S;Y) in nats: how much a published record says about the secret on average."""
    return information(protocol.joint_with_secret(joint))


def _within(joint: Joint, protocol: Protocol, average: float) -> Protocol:
    """The protocol, with the smallest sliver of the constant one after which I(S;Y) as measured is at most M."""
    p_y = protocol.joint_with_values(joint).sum(axis=0)
    tries = (protocol, *(protocol.quieter(p_y, 2.0**-k) for k in range(50, -1, -1)))
    return next(each for each in tries if about_secret(joint, each) <= average or each is tries[-1])


def _measured(joint: Joint, average: float, protocol: Protocol, bound: float, promise: Promise | None) -> OnAverage:
    sealed = None
    if promise is not None:
        sealed = seal(protocol, promise, joint, most=LARGEST_SLIVER_BITS, also_in_floats=True)
        protocol = protocol if sealed.law.listed is None else sealed.law.listed
    utility = protocol.mutual_information(joint)
    if bound < utility - ROUNDING:
        raise SolverError(f"A bound must not lie below what a protocol keeps; it lies {utility - bound:.1e} below.")
    worst = {kind.__name__.lower(): kind(0).leakage(joint, protocol) for kind in (LIP, LDP)}
    return OnAverage(average, protocol, utility, max(utility, bound), about_secret(joint, protocol), worst, sealed)


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

    `gap` and `time_limit` (seconds) are of one point.
    """
    whole = about_secret(joint, identity(joint, False))
    wanted = sorted({checked_average(m) for m in averages} or {share * whole for share in SHARES})
    points = tuple(optimal_on_average(joint, m, gap=gap, time_limit=time_limit, progress=progress) for m in wanted)
    beside = []
    for kind in (LIP, LDP):
        for epsilon in epsilons:
            best = optimal(joint, kind(epsilon), gap=max(gap, WIDER), time_limit=time_limit or SECONDS)
            beside.append(Beside(kind.__name__.lower(), epsilon, best.utility, about_secret(joint, best.protocol)))
    greedy = tuple(greedy_merging(joint, point.average) for point in points)
    return Funnel(entropy(joint.p_x), whole, points, greedy, tuple(beside))
