"""From a joint and a promise to the engine's problem, and from a split back to a protocol."""

from __future__ import annotations

import math

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.engine import Problem, Split
from privacyfunnel.engine.objective import Entropy
from privacyfunnel.engine.plan import MANY_INPUTS
from privacyfunnel.laws.rounding import joined
from privacyfunnel.laws.sealing import SMALLEST_EPSILON
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocol import Protocol, posterior_labels

# The engine solves a promise that is smaller by this sliver, so that rounding does not push its atoms, which lie on the
# boundary, over it. The bound is paid back what that can cost.
MARGIN = 1e-11
ROOM_FOR_SUMS = 1e-11  # of log-ratio, beyond MANY_INPUTS
# At tiny ε rounding can be as large as ε itself, and the sliver that mends it is no sliver any more; at worst it is
# the whole protocol. What it costs shows in the gap.
LARGEST_SLIVER_BITS = 0
LARGEST_EPSILON = 20.0  # what the engine solves for where more is asked: factors beyond e^20 are beyond its floats
RAREST_OUTPUT = 1e-9  # outputs rarer than this are merged: they carry no information to speak of


def problem_of(joint: Joint, promise: Promise, sees_secret: bool) -> tuple[Problem, IntArray, float]:
    """The engine's problem over the inputs that occur, which those are, and by how much its promise is smaller."""
    p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
    inputs = np.flatnonzero(p_z)
    rows = promise.rows(joint, sees_secret)
    # Below the smallest certified size there is room to solve for half of it: still more than what was asked.
    # e^ε' such that (1-δ)v + δp is allowed at ε' whenever v is allowed at ε, with δ the margin (theory, Lemma 4).
    largest = max(1.0, rows.largest)
    wanted = promise.epsilon if promise.epsilon >= SMALLEST_EPSILON else SMALLEST_EPSILON / 2
    bound = math.exp(min(wanted, LARGEST_EPSILON))
    # Sums over many inputs round more; without room for that, every output would need a sliver of every input.
    margin = MARGIN if len(inputs) <= MANY_INPUTS else max(MARGIN, ROOM_FOR_SUMS * largest)
    epsilon = math.log((bound * largest + margin) / (largest + margin))
    prior = p_z[inputs] / p_z[inputs].sum()
    objective = Entropy.of(inputs % joint.a)
    return Problem(prior, rows, epsilon, objective, inputs // joint.a if sees_secret else None), inputs, margin


def protocol_of(joint: Joint, problem: Problem, inputs: IntArray, found: Split, sees_secret: bool) -> Protocol:
    """q(y|z) = q_y v_y(z) / p(z). Inputs that never occur get the outputs' own distribution.

    Outputs too rare for integers to follow their posteriors are published as the most frequent one: that output's
    posterior becomes an average of allowed ones, which is allowed too.
    """
    weights, atoms = found.weights, np.maximum(found.atoms, 0.0)
    rows = (weights[:, None] * atoms / problem.prior[None, :]).T
    frequent = weights >= min(RAREST_OUTPUT, float(weights.max()))
    rows, own = joined(rows, weights, frequent), weights[frequent] / weights[frequent].sum()
    told = rows.sum(axis=1, keepdims=True)  # 0 for an input so rare that no output names it
    rows = np.divide(rows, told, out=np.tile(own, (len(rows), 1)), where=told > 0)
    channel = np.tile(problem.prior @ rows, (joint.a * (joint.c if sees_secret else 1), 1))
    channel[inputs] = rows
    bare = Protocol(channel / channel.sum(axis=1, keepdims=True), sees_secret=sees_secret)
    return Protocol(bare.channel, posterior_labels(joint, bare.joint_with_values(joint)), sees_secret)


def identity(joint: Joint, sees_secret: bool) -> Protocol:
    """Everything as it is."""
    return Protocol(np.tile(np.eye(joint.a), (joint.c if sees_secret else 1, 1)), joint.values, sees_secret)
