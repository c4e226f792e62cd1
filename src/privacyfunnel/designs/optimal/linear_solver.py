r"""The best protocol for a linear use: one linear programme, its bound from the prices (docs/theory.md, Theorem 40).

Outputs are actions. Action k takes :math:`u_k` of the prior of the inputs and costs :math:`\sum_z \ell(x_z, k) u_{kz}`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.optimal.problem_conversion import (
    LARGEST_EPSILON,
    LARGEST_SLIVER_BITS,
    RAREST_OUTPUT,
    build_problem,
    build_protocol,
    check_all_seen,
    identity,
    unseen_share,
)
from privacyfunnel.designs.optimal.solver_interface import PUBLISHED_WELL, Optimum, SolverRequest
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.masters.actions import (
    bound_by_prices,
    direct_action_split,
    split_by_actions,
    split_on_line,
)
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.splits import cone_constraints, linear_oracle
from privacyfunnel.errors import SizeError, SolverError
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import NEGLIGIBLE, Protocol, number_duplicates
from privacyfunnel.model.uses.linear_use import LinearUse
from privacyfunnel.model.uses.ordinal_scale import range_labels

MOST_CHANCES = PUBLISHED_WELL**2  # actions × inputs of one programme
# The programme is solved for a promise that is smaller by this share, which is more than the solver's tolerance: then
# what it returns needs no sliver to speak of. The bound is that of the promise itself.
INSIDE = 1e-11
NARROWEST = 1e-7  # of ε: what lies between two sides that near is beyond the solver, so that they are made one
TOLERANCE = 1e-10  # of the squared length of the line: how near the bound of squared errors is to be
ROUNDING = 1e-9  # of the largest cost: how far a value may lie below a bound that it meets


def minimise_expected_cost(request: SolverRequest) -> Optimum:
    """The protocol of least expected cost."""
    clock = Clock.from_limit(request.time_limit)
    use, joint, promise = cast(LinearUse, request.use), request.joint, request.promise
    costs = use.costs(joint)
    as_it_is = identity(joint, request.sees_secret, promise.anything_else)
    if promise.leakage(joint, as_it_is) <= promise.epsilon and (costs.min(axis=1) == np.diag(costs)).all():
        value = use.value(joint, as_it_is)
        return Optimum(as_it_is, as_it_is.mutual_information(joint), value, value, use)
    problem, inputs, _ = build_problem(joint, promise, request.sees_secret)
    if use.margin:
        check_all_seen(joint, problem, f"'{use.full_name}'")
    _check_size(use, joint.a, problem.size)
    inner = replace(problem, epsilon=problem.epsilon * (1 - INSIDE) if promise.epsilon > NARROWEST else 0.0)
    whole = replace(problem, epsilon=max(promise.epsilon, SMALLEST_EPSILON))
    own = direct_action_split(inner, inputs % joint.a, joint.a, shares=use.margin)
    x = use.actions(joint)
    if x is not None:
        taken, bound = _minimise_on_line(inner, whole, x[inputs % joint.a], own, clock.time_limit)
    else:
        losses = costs.T[:, inputs % joint.a]  # a row per action
        shares = joint.p_x if use.margin else None
        found = split_by_actions(cone_constraints(inner), problem.prior, losses, shares, clock.deadline)
        taken, bound = own, 0.0
        if found is not None:
            taken, bound = found.masses, bound_by_prices(linear_oracle(whole), problem.prior, losses, found, shares)
    # What becomes of inputs that never occur, a share m in the engine, costs between nothing and the largest cost.
    m = unseen_share(joint, problem)
    bound = (bound - m * float(costs.max())) / (1 - m)
    known = float(joint.p_x @ costs.min(axis=1))  # what it costs with every value known
    split_up = _protocol(request, problem, inputs, taken)
    return _seal_and_measure(
        request, split_up, max(known, bound) if promise.epsilon <= LARGEST_EPSILON else known, costs.max()
    )


def _minimise_on_line(
    inner: Problem, whole: Problem, x: FloatArray, own: FloatArray, time_limit: float | None
) -> tuple[FloatArray, float]:
    """The split of least squared error and its bound; solved on a line of length 1."""
    low, length = float(x.min()), float(x.max() - x.min()) or 1.0
    line = (x - low) / length
    found = split_on_line(cone_constraints(inner), linear_oracle(whole), inner.prior, line, own, TOLERANCE, time_limit)
    return found.masses, found.bound * length**2


def _check_size(use: LinearUse, actions: int, inputs: int) -> None:
    if actions * inputs > MOST_CHANCES:
        raise SizeError(
            f"'{use.full_name}' is solved for at most {MOST_CHANCES:,} pairs of an input and a value to publish; there "
            f"are {actions:,} × {inputs:,}. Publish fewer columns, or use coarser bins."
        )


def _protocol(request: SolverRequest, problem: Problem, inputs: IntArray, taken: FloatArray) -> Protocol:
    """Outputs called by their values where these are published, else by what they stand for."""
    use, joint, sees_secret = cast(LinearUse, request.use), request.joint, request.sees_secret
    weights = taken.sum(axis=1)
    if not (use.published or use.margin):
        used = weights > 0
        split = Split(weights[used], taken[used] / weights[used, None], 0.0, 0.0)
        return _label_ranges(use, joint, build_protocol(joint, problem, inputs, split, sees_secret))
    rare = weights < RAREST_OUTPUT
    taken = np.where(rare[:, None], 0.0, taken)
    taken[weights.argmax()] += problem.prior - taken.sum(axis=0)
    rows = np.maximum(taken / problem.prior, 0.0).T
    listed = joint.a * (joint.c if sees_secret else 1)
    every = np.tile(weights, (max(listed, int(inputs.max()) + 1), 1))
    every[inputs] = rows
    every /= every.sum(axis=1, keepdims=True)
    return Protocol(every[:listed], joint.values, sees_secret, elsewhere=every[listed] if len(every) > listed else None)


def _label_ranges(use: LinearUse, joint: Joint, protocol: Protocol) -> Protocol:
    """The protocol with outputs called by a range where they hold neighbours on a line, and nothing else."""
    where = None if joint.m > 1 else use.line(joint.attributes[0])
    if where is None:
        return protocol
    p_xy = protocol.joint_with_values(joint)
    held = [joint.combos[np.flatnonzero(v > NEGLIGIBLE), 0] for v in (p_xy / p_xy.sum(axis=0)).T]
    ranges = range_labels(joint.attributes[0], where, held)
    called = [old if new is None else (new,) for old, new in zip(protocol.outputs, ranges, strict=True)]
    return replace(protocol, outputs=number_duplicates(called))


def _seal_and_measure(request: SolverRequest, split_up: Protocol, bound: float, largest: float) -> Optimum:
    """The protocol as it is drawn, with what was measured on it."""
    use, joint = request.use, request.joint
    sealed = seal(split_up, request.promise, joint, most=LARGEST_SLIVER_BITS, also_in_floats=True)
    protocol = split_up if sealed.mechanism.table_protocol is None else sealed.mechanism.table_protocol
    value = use.value(joint, protocol)
    if value < bound - ROUNDING * (1 + largest):
        raise SolverError(f"A bound must not lie above a cost; it lies {bound - value:.1e} above. Report this.")
    return Optimum(
        protocol,
        sealed.information,
        min(value, bound),
        value,
        use,
        sealed,
        strategy="numbers on a line" if cast(LinearUse, use).actions(joint) is not None else "one programme of actions",
    )
