"""The most informative protocol that keeps a promise, with a proof of how good it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.designs.explicit import conditional_reporting
from privacyfunnel.designs.sizes import LARGEST_PROBLEM
from privacyfunnel.designs.skew import naming_skew
from privacyfunnel.engine import Problem, Split, split
from privacyfunnel.engine.objective import Entropy
from privacyfunnel.engine.plan import MANY_INPUTS
from privacyfunnel.errors import GuaranteeError, SizeError, SolverError, checked_positive
from privacyfunnel.laws.rounding import joined
from privacyfunnel.laws.sealing import SMALLEST_EPSILON, SealedProtocol, seal
from privacyfunnel.model.binomial import SCALE
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocol import Protocol, posterior_labels
from privacyfunnel.model.rows import Rows
from privacyfunnel.model.sets import PriorSets

MOST_COMPARISONS = 2500  # of side channels: with more of them no search finds much in minutes
LARGEST_SETS = 20_000  # bounds of sets of priors; each is a row and a column of a linear programme, twice
MOST_NUMBERS = 5 * 10**7  # in the rows of a promise
# The engine solves a promise that is smaller by this sliver, so that rounding does not push its atoms, which lie on the
# boundary, over it. The bound is paid back what that can cost.
MARGIN = 1e-11
ROOM_FOR_SUMS = 1e-11  # of log-ratio, beyond MANY_INPUTS
# At tiny ε rounding can be as large as ε itself, and the sliver that mends it is no sliver any more; at worst it is
# the whole protocol. What it costs shows in the gap.
LARGEST_SLIVER_BITS = 0
LARGEST_EPSILON = 20.0  # what the engine solves for where more is asked: factors beyond e^20 are beyond its floats
ROUNDING = 1e-12  # relative: how far the measured utility may exceed a bound that it meets
HEAD_START = 5.0  # seconds for the protocol that does not see the secret, from which the one that does begins
UNSEEN = 1e-7  # the chance of an input that never occurs, where a population may have it
RAREST_OUTPUT = 1e-9  # outputs rarer than this are merged: they carry no information to speak of

Progress = Callable[[float, float], None]


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """A protocol that keeps its promise, and how far it may be from the best one."""

    protocol: Protocol
    utility: float  # nats, I(X;Y) measured on `protocol`
    bound: float  # nats, from the dual: no protocol that keeps the promise has more
    sealed: SealedProtocol | None = None  # its integers, where they were checked already


@naming_skew
def optimal(
    joint: Joint,
    promise: Promise,
    *,
    sees_secret: bool = False,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Optimum:
    r"""Most informative protocol that keeps the promise (docs/theory.md, Theorems 5 to 7).

    A protocol splits the prior :math:`p_Z` of its inputs into posteriors :math:`v_y` with weights :math:`q_y`, and
    keeps the promise exactly when each lies in a polytope V. It is found as

    .. math:: \max I(X;Y) = H(X) - \min \sum_y q_y H(T v_y) \quad\text{s.t.}\quad \sum_y q_y v_y = p_Z,\ v_y \in V,

    by column generation, until `bound - utility` is at most `gap`. Stopping at `time_limit` (seconds) is no error: the
    protocol is valid, and `bound` says how far it may be from the best. An interrupt is one, and returns nothing.
    `progress` is called with the utility and the bound so far.

    Raises
    ------
    GuaranteeError
        If rounding broke the promise. Nothing weaker is returned.
    """
    gap = checked_positive("gap", gap)
    time_limit = None if time_limit is None else checked_positive("time limit", time_limit)
    checked_size(joint, promise, sees_secret)
    h_x = entropy(joint.p_x)
    as_it_is = _identity(joint, sees_secret)
    if promise.leakage(joint, as_it_is) <= promise.epsilon:
        utility = mutual_information(joint, as_it_is)
        return Optimum(as_it_is, utility, max(utility, h_x))
    problem, inputs, margin = _problem(joint, promise, sees_secret)
    said = None if progress is None else _in_utility(progress, h_x, margin)
    start = _known_atoms(joint, promise, problem, inputs, gap, time_limit) if sees_secret else None
    found = split(problem, gap=gap, time_limit=time_limit, progress=said, start=start)
    split_up = _protocol(joint, problem, inputs, found, sees_secret)
    sealed = seal(split_up, promise, joint, most=LARGEST_SLIVER_BITS, also_in_floats=True)
    utility = sealed.information
    # What was solved for a smaller ε bounds nothing at the larger one, but then all but everything is kept anyway.
    most = entropy(np.bincount(problem.objective.value, problem.prior)) - found.bound + _repaid(h_x, margin)
    bound = min(h_x, _without_unseen(most, joint, problem)) if promise.epsilon <= LARGEST_EPSILON else h_x
    if bound < utility - ROUNDING * (1 + h_x):
        raise SolverError(
            f"A bound must not lie below what a protocol keeps; it lies {utility - bound:.1e} nats below. Report this."
        )
    sealed = replace(sealed, bound=max(utility, bound))
    protocol = split_up if sealed.law.listed is None else sealed.law.listed
    return Optimum(protocol, utility, max(utility, bound), sealed)


def checked_size(joint: Joint, promise: Promise, sees_secret: bool) -> None:
    """Refuse, at once, what would take the engine hours."""
    instead = "Publish fewer columns, use coarser bins, or use --method randomised-response."
    if joint.m > 1 and not sees_secret:
        product = "use --method product, or promise LIP or LDP with"
        other = product if promise.guards_known_attributes else "or use"
        instead = f"Publish fewer columns, use coarser bins, {other} --method chain."
    inputs = int(np.count_nonzero(joint.weights)) if sees_secret else joint.a
    if inputs > LARGEST_PROBLEM:
        what = "pairs of a secret and a value" if sees_secret else "combinations" if joint.m > 1 else "values"
        raise SizeError(
            f"The optimum is computed for at most {LARGEST_PROBLEM:,} {what}; this table has {inputs:,}. {instead}"
        )
    sets = promise.sets(joint, sees_secret)
    if sets is not None:
        _check_sets(sets, instead)
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


def _check_sets(sets: PriorSets, instead: str) -> None:
    """Refuse sets of priors that are too large for the engine."""
    if sets.high.size > LARGEST_SETS:
        raise SizeError(
            f"For a population the optimum is computed for at most {LARGEST_SETS:,} bounds on shares; "
            f"{len(sets.high):,} events over {sets.inputs:,} inputs have {sets.high.size:,}. {instead}"
        )


def _problem(joint: Joint, promise: Promise, sees_secret: bool) -> tuple[Problem, IntArray, float]:
    """The engine's problem over the inputs that occur, which those are, and by how much its promise is smaller."""
    p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
    rows, sets = promise.rows(joint, sees_secret), promise.sets(joint, sees_secret)
    if sets is not None:
        p_z, rows = _with_unseen(p_z, rows)
    inputs = np.flatnonzero(p_z)
    # Below the smallest certified size there is room to solve for half of it: still more than what was asked.
    # e^ε' such that (1-δ)v + δp is allowed at ε' whenever v is allowed at ε, with δ the margin (theory, Lemma 4).
    largest = max(1.0, rows.largest if sets is None else float((sets.high / SCALE / p_z).max()))
    wanted = promise.epsilon if promise.epsilon >= SMALLEST_EPSILON else SMALLEST_EPSILON / 2
    bound = math.exp(min(wanted, LARGEST_EPSILON))
    # Sums over many inputs round more; without room for that, every output would need a sliver of every input.
    margin = MARGIN if len(inputs) <= MANY_INPUTS else max(MARGIN, ROOM_FOR_SUMS * largest)
    epsilon = math.log((bound * largest + margin) / (largest + margin))
    prior = p_z[inputs] / p_z[inputs].sum()
    objective = Entropy.of(inputs % joint.a)
    secret = inputs // joint.a if sees_secret else None
    return Problem(prior, rows, epsilon, objective, secret, sets), inputs, margin


def _with_unseen(p_z: FloatArray, rows: Rows) -> tuple[FloatArray, Rows]:
    """A prior that gives inputs which never occur a little, and the rows as they see these as well.

    A set of priors may hold them, so that atoms must say what becomes of them. Rows are about the table, in which they
    have no chance.
    """
    seen = np.flatnonzero(p_z)
    if len(seen) == len(p_z):
        return p_z, rows
    every = np.where(p_z > 0, p_z * (1 - UNSEEN * (len(p_z) - len(seen))), UNSEEN)
    functionals = np.zeros((rows.functionals.shape[0], len(p_z)))
    functionals[:, seen] = dense(rows.functionals) * (p_z[seen] / every[seen])
    members = np.zeros((len(rows.members), len(p_z)), dtype=bool)
    members[:, seen] = rows.members
    return every, replace(rows, functionals=functionals, members=members, even=np.zeros_like(rows.even))


def _known_atoms(
    joint: Joint, promise: Promise, problem: Problem, inputs: IntArray, gap: float, time_limit: float | None
) -> FloatArray:
    """What a protocol that sees the secret can begin with: the best one that does not, and conditional reporting."""
    limit = HEAD_START if time_limit is None else min(HEAD_START, time_limit / 5)
    blind = split(_problem(joint, promise, False)[0], gap=gap, time_limit=limit)
    atoms = [(blind.atoms[blind.weights > 0] / joint.p_x)[:, inputs % joint.a] * problem.prior]
    if not promise.guards_known_attributes:  # else conditional reporting leaks even where it tells nothing
        with suppress(GuaranteeError):  # for a population it may leak too much however random it is
            # At the engine's own ε, so that these atoms too keep their distance from the boundary.
            channel = conditional_reporting(joint, promise.resized(problem.epsilon)).channel[inputs]
            reported = (problem.prior[:, None] * channel).T
            atoms.append(reported[reported.sum(axis=1) > 0])
    known = np.concatenate([atom / atom.sum(axis=1, keepdims=True) for atom in atoms])
    # What the blind protocol knows of people are other sets of priors than those over pairs.
    return known if problem.sets is None else problem.drawn_towards(known)


def _protocol(joint: Joint, problem: Problem, inputs: IntArray, found: Split, sees_secret: bool) -> Protocol:
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


def _identity(joint: Joint, sees_secret: bool) -> Protocol:
    return Protocol(np.tile(np.eye(joint.a), (joint.c if sees_secret else 1, 1)), joint.values, sees_secret)


def _repaid(h_x: float, margin: float) -> float:
    """How much more the promise itself may keep than the one that was solved, which is smaller by the margin.

    Mixing δ of the prior into every atom of a split raises its cost by at most δH(X) + h(δ), h the binary entropy.
    """
    return margin * h_x + entropy([margin, 1 - margin])


def _without_unseen(bound: float, joint: Joint, problem: Problem) -> float:
    r"""What a bound for the prior with unseen inputs says for the one without, of which it is a mixture with a share m.

    Whoever knows which part a record is of learns at most h(m) by that, so :math:`(1 - m) I \le I' + h(m)`.
    """
    m = UNSEEN * (problem.size - int(np.count_nonzero(joint.weights if problem.secret is not None else joint.p_x)))
    return bound if m <= 0 else (bound + entropy([m, 1 - m])) / (1 - m)


def _in_utility(progress: Progress, h_x: float, margin: float) -> Progress:
    return lambda value, bound: progress(h_x - value, h_x - bound + _repaid(h_x, margin))
