r"""Forced response with the most truth: shares and cross tables of many columns, from one number per record.

A record is published as it is with chance τ, else as y with chance :math:`r_y`, whatever it was. The posterior of
output y is a mix of y itself and of the prior,

.. math:: v_y = t_y e_y + (1 - t_y) p, \qquad t_y = \tau p_y / (\tau p_y + r_y),

so the promise is kept exactly when every :math:`t_y` is at most :math:`\bar t_y`, the largest share of y for which that
mix is allowed. That asks for noise :math:`r_y \ge \tau p_y (1/\bar t_y - 1)`, and since noise and truth sum to 1

.. math:: \tau = 1 \Big/ \sum_y p_y / \bar t_y

is the most truth there can be (docs/theory.md, Theorem 54). Values that tell nothing need no noise; those that tell
much get it. Every share, of one column or of a table of several, is estimated with the same τ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, dense
from privacyfunnel.designs.optimal.problem_conversion import LARGEST_EPSILON
from privacyfunnel.errors import ParameterError, SizeError
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, SealedProtocol, seal
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.forced_response import ForcedResponse
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information, Use, UseValue

MOST_NUMBERS = 10**8  # in the rows of a promise, some of which are worked on at a time
WORKED_ON = 1 << 22  # of these
LEAST_SHARE = 1e-12  # of a record in a mix with the prior: with less room than that nothing is said
ROUNDING, TINY = 1e-9, 1e-300  # a functional that is 1 at the prior, and a gain that is none
WIDEST_QUERIES = 10**7  # entries of a workload that is written out


def forced_response(joint: Joint, promise: Promise) -> ForcedResponse:
    """The forced response with the most truth that keeps the promise."""
    if promise.population is not None or promise.odds is not None:
        others = "a population" if promise.odds is None else "other odds than the prior's"
        raise ParameterError(
            "A forced response draws from the shares of its prior, and is made for that one; a promise for "
            f"{others} was asked. Publish fewer columns, or use the method optimal."
        )
    comparisons = promise.count(joint)
    if comparisons * joint.a > MOST_NUMBERS:
        raise SizeError(
            f"A forced response under {promise.name} compares {comparisons:,} times over {joint.a:,} records here; at "
            f"most {MOST_NUMBERS:,} numbers are worked with. Publish fewer columns or use coarser bins."
        )
    epsilon = min(max(promise.epsilon, SMALLEST_EPSILON / 2), LARGEST_EPSILON)
    room = largest_shares(promise.constraints(joint), epsilon, joint.p_x)
    p, labels = joint.p_x, tuple(attribute.labels for attribute in joint.attributes)
    if room.min() < LEAST_SHARE:
        return ForcedResponse(0.0, p, np.arange(joint.a), labels, joint.combos)
    needed = p * (1 / room - 1)  # noise beside all of the truth
    truth = float(1 / (1 + needed.sum()))
    noise = truth * needed
    return ForcedResponse(truth, noise, np.arange(joint.a), labels, joint.combos)


def largest_shares(rows: LinearConstraints, epsilon: float, prior: FloatArray) -> FloatArray:
    r"""For every value the largest t for which :math:`t e_x + (1 - t) p` is allowed.

    A pair of functionals, n and d, is 1 at the prior; :math:`1 - t + t n_x \le e^\varepsilon (1 - t + t d_x)` holds
    while :math:`t (n_x - e^\varepsilon d_x + e^\varepsilon - 1) \le e^\varepsilon - 1`, and the same either way up.
    Beside kept columns they are :math:`n_p` and :math:`d_p` at the prior, which leaves
    :math:`e^\varepsilon d_p - n_p` in the place of :math:`e^\varepsilon - 1`. With a scale it is that multiple of ε.
    """
    needed = np.ones(rows.inputs)  # 1 / t, so that no share is above 1
    step = max(1, WORKED_ON // max(rows.inputs, 1))
    at_prior = np.asarray(rows.functionals @ prior)
    for first in range(0, len(rows.pairs), step):
        pairs = rows.pairs[first : first + step]
        one, other = (dense(rows.functionals[pairs[:, i]]) for i in (0, 1))
        at_one, at_other = (at_prior[pairs[:, i]] for i in (0, 1))
        plain = (np.abs(at_one - 1) < ROUNDING) & (np.abs(at_other - 1) < ROUNDING)
        ways = ((one, other, at_one, at_other), (other, one, at_other, at_one))
        for (n, d, n_p, d_p), scale in zip(ways, rows.either_scale[first : first + step].T, strict=True):
            asked = np.isfinite(scale)
            size = epsilon * scale[asked]
            loud, gain = np.exp(size), np.expm1(size)
            left = np.where(plain[asked], gain, np.maximum(loud * d_p[asked] - n_p[asked], TINY))
            over = (n[asked] - loud[:, None] * d[asked]) / left[:, None]
            needed = np.maximum(needed, over.max(axis=0, initial=0.0) + 1)
    return np.asarray(1 / needed)


def total_squared_error(joint: Joint, protocol: ForcedResponse, use: Statistics) -> float:
    """n × total squared error of the shares that the use asks for; the unbiased estimate is (h(y) − Σ r h) / τ."""
    if protocol.truth == 0:
        return float("inf")
    if not (use.columns or use.workload is not None or use.weights):
        value = _indicator_error(joint.p_x, protocol.noise, protocol.truth)
        constant = 1 - float(joint.p_x @ joint.p_x)
    elif use.columns and use.workload is None:
        use.refuse(joint)
        names, value, constant = [attribute.name for attribute in joint.attributes], 0.0, 0.0
        for j in (names.index(column) for column in use.columns):
            p, r = (_margin(joint, j, held) for held in (joint.p_x, protocol.noise))
            value += _indicator_error(p, r, protocol.truth)
            constant += 1 - float(p @ p)
    else:
        if joint.a**2 > WIDEST_QUERIES:
            raise SizeError(f"'{use.full_name}' is worked out for at most {int(WIDEST_QUERIES**0.5):,} combinations.")
        W = use.queries(joint)
        noise, squares = W @ protocol.noise, W**2 @ protocol.noise
        mean, square = protocol.truth * W + noise[:, None], protocol.truth * W**2 + squares[:, None]
        value = float(((square - mean**2) @ joint.p_x).sum()) / protocol.truth**2
        constant = float(((W - (W @ joint.p_x)[:, None]) ** 2 @ joint.p_x).sum())
    return max(value, 0.0) + (constant if use.population else 0.0)


def _margin(joint: Joint, j: int, held: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(joint.combos[:, j], held), dtype=np.float64)


def _indicator_error(p: FloatArray, r: FloatArray, truth: float) -> float:
    """Σ_x p_x Σ_y q(y|x) (1 − q(y|x)) / τ²."""
    return float(1 - r @ r - 2 * truth * (p @ r) - truth**2) / truth**2


@dataclass(frozen=True, slots=True, eq=False)
class ForcedResponseDesign:
    """A forced response that was designed for a table."""

    joint: Joint
    promise: Promise
    protocol: ForcedResponse
    use: Use
    bound: None = None  # nothing is proved about protocols of other kinds

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return self.protocol.mutual_information(self.joint)

    @property
    def worth(self) -> UseValue:
        """How good it is for statistics or for information."""
        if isinstance(self.use, Statistics):
            return UseValue(self.use, total_squared_error(self.joint, self.protocol, self.use), None)
        return UseValue(Information(), self.information, None)

    @property
    def outputs(self) -> int:
        """How many different records may be published."""
        return len(self.protocol.noise)

    def seal(self) -> SealedProtocol:
        """The protocol as integers on which the promise was checked, exactly."""
        return seal(self.protocol, self.promise, self.joint)


def assess_forced_response(joint: Joint, promise: Promise, use: Use) -> ForcedResponseDesign:
    """The forced response with the most truth, judged by its use: statistics or information."""
    return ForcedResponseDesign(joint, promise, forced_response(joint, promise), use)
