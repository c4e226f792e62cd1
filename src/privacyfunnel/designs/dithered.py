r"""Statistics from tables that are too large for the best protocol: the best-conditioned of several informative ones.

A most informative protocol has about as many outputs as inputs, and its channel is often nearly singular. Let
:math:`p = \tfrac12 (p^+ + p^-)` with :math:`p^\pm_z \propto p_z (1 \pm u_z)` for u at random, and split each part by
itself with the most information. Both splits together are a split of p, whose posteriors keep the promise, since that
asks of posteriors only; it has nearly as much information, for that hardly depends on the part; but twice the outputs,
which say different things about the same inputs. Of a few u the one of least measured error is taken. Nothing is proved
about how far that is from the best.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.question import Optimum, Question
from privacyfunnel.designs.splitting import LARGEST_SLIVER_BITS, problem_of, protocol_of
from privacyfunnel.engine import Problem, Split, split
from privacyfunnel.laws.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocol import Protocol
from privacyfunnel.model.uses.statistics import Statistics
from privacyfunnel.model.uses.use import Use

TRIALS = 2  # of u
WIDE = 0.9  # the largest u: with less the parts are too much alike
GAP = 1e-3  # nats: a part need not be split better than that
SECONDS = 60.0  # for all of it, where there is no time limit


def dithered(asked: Question, use: Use, statistics: Statistics) -> Optimum:
    """The best-conditioned of a few nearly most informative protocols; its bound is the trivial one."""
    joint, promise = asked.joint, asked.promise
    problem, inputs, _ = problem_of(joint, promise, asked.sees_secret)
    begun, limit = time.monotonic(), SECONDS if asked.time_limit is None else asked.time_limit
    random, tried = np.random.default_rng(0), list[tuple[float, Protocol]]()
    for _ in range(TRIALS):
        if tried and time.monotonic() - begun > limit / 2:
            break
        u = random.uniform(-WIDE, WIDE, problem.size)
        found = _protocol(joint, problem, inputs, [1 + u, 1 - u], limit / (2 * TRIALS), asked.sees_secret)
        tried.append((statistics.value(joint, found), found))
    _, best = min(tried, key=lambda trial: trial[0])
    sealed = seal(best, promise, joint, most=LARGEST_SLIVER_BITS, also_in_floats=True)
    protocol = best if sealed.law.listed is None else sealed.law.listed
    value = statistics.value(joint, protocol)
    return Optimum(protocol, sealed.information, 0.0, value, use, sealed)


def _protocol(
    joint: Joint, problem: Problem, inputs: IntArray, tilts: list[FloatArray], seconds: float, sees_secret: bool
) -> Protocol:
    """Each part of the prior split by itself."""
    parts = [problem.prior * tilt / len(tilts) for tilt in tilts]
    splits = [split(replace(problem, prior=part / part.sum()), gap=GAP, time_limit=seconds) for part in parts]
    weights = np.concatenate([part.sum() * found.weights for part, found in zip(parts, splits, strict=True)])
    atoms = np.concatenate([found.atoms for found in splits])
    return protocol_of(joint, problem, inputs, Split(weights, atoms, 0.0, 0.0), sees_secret)
