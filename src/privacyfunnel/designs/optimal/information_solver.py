"""The most informative protocol, by the engine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, is_sparse_enough
from privacyfunnel.designs.baselines import conditional_reporting
from privacyfunnel.designs.optimal.problem_conversion import (
    LARGEST_EPSILON,
    LARGEST_SLIVER_BITS,
    build_problem,
    build_protocol,
    build_sparse_protocol,
    discount_unseen,
    identity,
    sparse_identity,
    thin,
)
from privacyfunnel.designs.optimal.solver_interface import LARGEST_PROBLEM, Optimum, Progress, SolverRequest, StopReason
from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.clock import Clock
from privacyfunnel.errors import GuaranteeError, SolverError
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol

ROUNDING = 1e-12  # relative: how far the measured utility may exceed a bound that it meets
SEALED_EACH, SEALING_SHARE = 4e-4, 0.6  # seconds an input that labels and sealing take; at most so much of the time
NEARLY_ALL = 0.94  # of the time: a search that took more was ended by the clock
HEAD_START = 5.0  # seconds for the protocol that does not see the secret, from which the one that does begins


def maximise_information(request: SolverRequest) -> Optimum:
    r"""Most informative protocol that keeps the promise (docs/theory.md, Theorems 5 to 7).

    A protocol splits the prior :math:`p_Z` of its inputs into posteriors :math:`v_y` with weights :math:`q_y`, and
    keeps the promise exactly when each lies in a polytope V. It is found as

    .. math:: \max I(X;Y) = H(X) - \min \sum_y q_y H(T v_y) \quad\text{s.t.}\quad \sum_y q_y v_y = p_Z,\ v_y \in V,

    by column generation, until `bound - utility` is at most the gap.
    """
    clock = Clock.from_limit(request.time_limit)
    joint, promise, use, sees_secret = request.joint, request.promise, request.use, request.sees_secret
    gap, progress = request.gap, request.progress
    h_x = entropy(joint.p_x)
    as_it_is: Protocol | SparseProtocol
    if joint.a > LARGEST_PROBLEM:  # values alone
        as_it_is = sparse_identity(joint)
    else:
        as_it_is = identity(joint, sees_secret, promise.anything_else)
    if promise.leakage(joint, as_it_is) <= promise.epsilon:
        utility = mutual_information(joint, as_it_is)
        return Optimum(as_it_is, utility, max(utility, h_x), utility, use)
    problem, inputs, margin = build_problem(joint, promise, sees_secret)
    said = None if progress is None else _utility_progress(progress, h_x, margin)
    start = _start_atoms(joint, promise, problem, inputs, gap, clock.time_limit) if sees_secret else None
    sealing = min(SEALED_EACH * problem.size, SEALING_SHARE * clock.seconds_left)
    searching = Clock.from_limit(None if clock.time_limit is None else clock.seconds_left - sealing)
    nearly_all = searching.part(NEARLY_ALL)
    found = thin(split(problem, gap=gap, time_limit=searching.time_limit, progress=said, start=start))
    stopped = StopReason.TIME if nearly_all.late else StopReason.NOTHING
    split_up: Protocol | SparseProtocol
    if not sees_secret and problem.credal_sets is None and is_sparse_enough(found.atoms):
        split_up = build_sparse_protocol(joint, problem, inputs, found)
    else:
        split_up = build_protocol(joint, problem, inputs, found, sees_secret)
    sealed = seal(split_up, promise, joint, most=LARGEST_SLIVER_BITS, also_in_floats=True)
    utility = sealed.information
    # What was solved for a smaller ε bounds nothing at the larger one, but then all but everything is kept anyway.
    most = entropy(np.bincount(problem.objective.image_index, problem.prior)) - found.bound + margin_cost(h_x, margin)
    bound = min(h_x, discount_unseen(most, joint, problem)) if promise.epsilon <= LARGEST_EPSILON else h_x
    if bound < utility - ROUNDING * (1 + h_x):
        raise SolverError(
            f"A bound must not lie below what a protocol keeps; it lies {utility - bound:.1e} nats below. Report this."
        )
    sealed = replace(sealed, bound=max(utility, bound))
    in_floats = sealed.mechanism.table_protocol if isinstance(split_up, Protocol) else sealed.mechanism.protocol
    protocol = in_floats if isinstance(in_floats, (Protocol, SparseProtocol)) else split_up
    return Optimum(protocol, utility, max(utility, bound), utility, use, sealed, stopped, found.strategy)


def _start_atoms(
    joint: Joint, promise: Promise, problem: Problem, inputs: IntArray, gap: float, time_limit: float | None
) -> FloatArray:
    """What a protocol that sees the secret can begin with: the best one that does not, and conditional reporting."""
    limit = HEAD_START if time_limit is None else min(HEAD_START, time_limit / 5)
    blind_to = build_problem(joint, promise, False)[0]
    blind = split(blind_to, gap=gap, time_limit=limit)
    # Anything else is the last input of both.
    of_blind = np.where(inputs < joint.c * joint.a, inputs % joint.a, joint.a)
    atoms = [(blind.atoms[blind.weights > 0] / blind_to.prior)[:, of_blind] * problem.prior]
    if not promise.guards_known_attributes:  # else conditional reporting leaks even where it tells nothing
        with suppress(GuaranteeError):  # for a population it may leak too much however random it is
            # At the engine's own ε, so that these atoms too keep their distance from the boundary.
            channel = conditional_reporting(joint, promise.with_epsilon(problem.epsilon)).all_rows[inputs]
            reported = (problem.prior[:, None] * channel).T
            atoms.append(reported[reported.sum(axis=1) > 0])
    known = np.concatenate([atom / atom.sum(axis=1, keepdims=True) for atom in atoms])
    # What the blind protocol knows of people are other sets of priors than those over pairs.
    return known if problem.credal_sets is None else problem.mix_with_prior(known)


def margin_cost(h_x: float, margin: float) -> float:
    """How much more the promise itself may keep than the one that was solved, which is smaller by the margin.

    Mixing δ of the prior into every atom of a split raises its cost by at most δH(X) + h(δ), h the binary entropy.
    """
    return margin * h_x + entropy([margin, 1 - margin])


def _utility_progress(progress: Progress, h_x: float, margin: float) -> Progress:
    return lambda value, bound: progress(h_x - value, h_x - bound + margin_cost(h_x, margin))
