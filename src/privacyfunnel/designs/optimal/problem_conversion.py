"""From a joint and a promise to the engine's problem, and from a split back to a protocol.

Counts so far apart that no solver sees the smallest: said to whoever can merge them, not reported as our fault.

What is asked of a solver, and what it answers: the best protocol for a use, with its proof.

The sizes at which designs change their way, where several of them must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense, is_sparse_enough, nonzero_entries, sparse
from privacyfunnel.engine.objective import Objective
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.errors import ParameterError, SizeError, SolverError
from privacyfunnel.formatting import facts_html
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.exact_arithmetic import merge_outputs
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, SealedProtocol
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol, posterior_labels
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.model.uses.use import Information, Use

Progress = Callable[[float, float], None]  # called with the value and the bound so far


class StopReason(Enum):
    """What ended a search."""

    GAP = "gap"  # value and bound are as close as was asked
    TIME = "time"  # the time limit
    NOTHING = "nothing left to try"  # neither search nor proof has anything more to say


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """A protocol that keeps its promise, and how far it may be from the best one for its use."""

    made: Protocol | SparseProtocol  # sparse where a table of all chances would fill the memory
    utility: float  # nats, I(X;Y) measured on `made`
    bound: float  # in the use's own unit, from the dual: no protocol that keeps the promise does better
    value: float  # in the use's own unit, measured on `made`; for information this is the utility
    use: Use
    sealed: SealedProtocol | None = None  # its integers, where they were checked already
    stopped: StopReason = StopReason.GAP  # what ended the search
    strategy: str = "values as they are"  # the line of the engine's plan that was taken

    @property
    def protocol(self) -> Protocol:
        """The protocol as a table of all chances; refused where that would not fit in memory."""
        return self.made if isinstance(self.made, Protocol) else self.made.table

    @property
    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("best for", self.use.full_name),
            ("value", f"{self.value:.6g} {self.use.unit}"),
            ("bound", f"{self.bound:.6g}: no protocol that keeps the promise does better"),
            ("information", f"{self.utility:.6g} nats"),
            ("outputs", f"{len(self.made.outputs):,}"),
        ]

    def __repr__(self) -> str:
        return "Optimum\n" + "\n".join(f"  {name:<12}{text}" for name, text in self._facts)

    def _repr_html_(self) -> str:
        return facts_html("Optimum", self._facts)


@dataclass(frozen=True, slots=True, eq=False)
class SolverRequest:
    """What is asked of a solver: the best protocol for a use, up to a gap, or what is best when time is up."""

    joint: Joint
    promise: Promise
    use: Use = field(default_factory=Information)
    sees_secret: bool = False
    gap: float = 1e-6  # in the use's own unit
    time_limit: float | None = None
    progress: Progress | None = None


# The engine solves a promise that is smaller by this sliver, so that rounding does not push its atoms, which lie on the
# boundary, over it. The bound is paid back what that can cost.
MARGIN = 1e-11
ROOM_FOR_SUMS, MANY_SUMMANDS = 1e-11, 150  # of log-ratio, for sums over more inputs than this
# At tiny ε rounding can be as large as ε itself, and the sliver that mends it is no sliver any more; at worst it is
# the whole protocol. What it costs shows in the gap.
LARGEST_SLIVER_BITS = 0
LARGEST_EPSILON = 20.0  # what the engine solves for where more is asked: factors beyond e^20 are beyond its floats
UNSEEN = 1e-7  # the chance of an input that never occurs, where a population may have it …
UNSEEN_BESIDE = 1e-5  # … and where squares count: products of rows lose the digits of what is much rarer
PRIOR_ROUNDING = 1e-9
TINY = float(np.finfo(np.float64).tiny)
ALIKE = 9  # digits of posteriors that are the same
MOST_ENTRIES = 1_600_000  # chances above 0 of a protocol: some 45 of the 64 MB that its file may have
RAREST_OUTPUT = 1e-9  # outputs rarer than this are merged: they carry no information to speak of


def build_problem(
    joint: Joint, promise: Promise, sees_secret: bool, unseen_chance: float = UNSEEN
) -> tuple[Problem, IntArray, float]:
    """The engine's problem over the inputs that occur, which those are, and by how much its promise is smaller.

    For a population an input that never occurs has the chance `never`.
    """
    p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
    rows, sets = promise.constraints(joint, sees_secret), promise.credal_sets(joint, sees_secret)
    if sets is not None:
        p_z, rows = _add_unseen(np.append(p_z, 0.0) if promise.anything_else else p_z, rows, unseen_chance)
    inputs = np.flatnonzero(p_z)
    # Below the smallest certified size there is room to solve for half of it: still more than what was asked.
    # e^ε' such that (1-δ)v + δp is allowed at ε' whenever v is allowed at ε, with δ the margin (theory, Lemma 4).
    # At the prior p itself nothing leaks, or beside kept columns what these leak alone.
    largest = max(1.0, rows.largest if sets is None else float((sets.high / SCALE / p_z).max()))
    wanted = promise.epsilon if promise.epsilon >= SMALLEST_EPSILON else SMALLEST_EPSILON / 2
    # Sums over many inputs round more; without room for that, every output would need a sliver of every input.
    margin = MARGIN if len(inputs) <= MANY_SUMMANDS else max(MARGIN, ROOM_FOR_SUMS * largest)
    # With a scale a it is a·ε that e^ε stands for; the largest of these asks for most.
    scale = rows.largest_scale
    bound = math.exp(min(wanted * scale, LARGEST_EPSILON * max(scale, 1.0)))
    at_prior = _ratio_at_prior(rows, p_z[inputs])
    epsilon = math.log((bound * largest + margin * at_prior) / (largest + margin)) / scale
    prior = p_z[inputs] / p_z[inputs].sum()
    listed = inputs < joint.a * (joint.c if sees_secret else 1)  # anything else is a value of its own
    objective = Objective.from_groups(np.where(listed, inputs % joint.a, joint.a))
    secret = inputs // joint.a if sees_secret else None
    return Problem(prior, rows, epsilon, objective, secret, sets), inputs, margin


def _ratio_at_prior(rows: LinearConstraints, prior: FloatArray) -> float:
    """The largest ratio that is compared at the prior; 1 but for rounding where no column is kept."""
    one, other = np.asarray(rows.fast_functionals @ prior[:, None])[rows.pairs.T]
    ratios = [
        np.divide(n, d, out=np.ones_like(n), where=(d > 0) & np.isfinite(scale)[:, None])
        for n, d, scale in ((one, other, rows.either_scale[:, 0]), (other, one, rows.either_scale[:, 1]))
    ]
    largest = float(np.max(ratios, initial=1.0))
    return largest if largest > 1 + PRIOR_ROUNDING else 1.0


def _add_unseen(p_z: FloatArray, rows: LinearConstraints, unseen_chance: float) -> tuple[FloatArray, LinearConstraints]:
    """A prior that gives inputs which never occur a little, and the rows as they see these as well.

    A set of priors may hold them, so that atoms must say what becomes of them. Rows are about the table, in which they
    have no chance.
    """
    seen = np.flatnonzero(p_z)
    if len(seen) == len(p_z):
        return p_z, rows
    every = np.where(p_z > 0, p_z * (1 - unseen_chance * (len(p_z) - len(seen))), unseen_chance)
    functionals = np.zeros((rows.functionals.shape[0], len(p_z)))
    functionals[:, seen] = dense(rows.functionals) * (p_z[seen] / every[seen])
    members = np.zeros((len(rows.members), len(p_z)), dtype=bool)
    members[:, seen] = rows.members
    return every, replace(rows, functionals=functionals, members=members)


def unseen_share(joint: Joint, problem: Problem) -> float:
    """The share that the problem gives to inputs which never occur."""
    return float(problem.prior[_unseen_inputs(joint, problem)].sum())


def check_all_seen(joint: Joint, problem: Problem, use: str) -> None:
    """Refuse pairs which never occur where nothing is proved for a prior that has none of them."""
    if bool((_unseen_inputs(joint, problem) < joint.a * (1 if problem.secret is None else joint.c)).any()):
        raise ParameterError(
            f"{use} for a population needs every pair of a secret and a value in the table where a protocol sees both; "
            f"some never occur. Leave out {hint('sees_secret')} or {hint('population')}."
        )


def _unseen_inputs(joint: Joint, problem: Problem) -> IntArray:
    """The inputs of the problem which never occur; where it has any, it has all inputs there are, in their order."""
    p_z = joint.p_x if problem.secret is None else joint.p_sx.ravel()
    every = np.pad(p_z, (0, max(problem.size - len(p_z), 0)))
    return np.flatnonzero(every == 0) if problem.size == len(every) else np.empty(0, dtype=np.int64)


def discount_unseen(bound: float, joint: Joint, problem: Problem) -> float:
    r"""What a bound for the prior with unseen inputs says for the one without, of which it is a mixture with a share m.

    Whoever knows which part a record is of learns at most h(m) by that, so :math:`(1 - m) I \le I' + h(m)`.
    """
    m = unseen_share(joint, problem)
    return bound if m <= 0 else (bound + entropy([m, 1 - m])) / (1 - m)


def thin(found: Split) -> Split:
    """The split with no more entries than a protocol file can hold: the outputs lightest for their entries become one.

    The polytope is convex, so that their average is allowed too; what this costs shows in the gap. A search that was
    cut short leaves splits of so many entries, of thousands of values.
    """
    y, z, chance = nonzero_entries(found.atoms)
    entries = np.bincount(y, minlength=len(found.weights))
    if len(y) <= MOST_ENTRIES:
        return found
    order = np.argsort(-found.weights / entries, kind="stable")
    joined_up = np.zeros(len(order), dtype=bool)
    joined_up[order[np.cumsum(entries[order]) > MOST_ENTRIES]] = True
    last = len(order) - int(joined_up.sum())
    place = np.where(joined_up, last, np.cumsum(~joined_up) - 1)
    weights = np.bincount(place, found.weights).astype(np.float64)
    share = np.where(joined_up, found.weights / max(weights[last], TINY), 1.0)
    cells = (place[y], z)
    atoms = sparse.csr_array((share[y] * chance, cells), shape=(last + 1, found.atoms.shape[1]))
    return replace(found, weights=weights, atoms=atoms if is_sparse_enough(found.atoms) else dense(atoms))


def build_sparse_protocol(joint: Joint, problem: Problem, inputs: IntArray, found: Split) -> SparseProtocol:
    """The same where a table of all chances would fill the memory; inputs that never occur go the likeliest one's way.

    Values alone: nothing so large is solved for protocols that see the secret, or for sets of priors.
    """
    weights = found.weights
    frequent = weights >= min(RAREST_OUTPUT, float(weights.max()))
    place = np.where(frequent, np.cumsum(frequent) - 1, int(np.cumsum(frequent)[np.argmax(weights)]) - 1)
    y, z, chance = nonzero_entries(found.atoms)
    cells = (z, place[y])
    rows = sparse.csr_array((weights[y] * chance, cells), shape=(problem.size, int(frequent.sum())))
    rows = sparse.csr_array(sparse.diags_array(1.0 / rows.sum(axis=1)) @ rows)
    row_of = np.full(joint.a, int(np.argmax(problem.prior)))
    row_of[inputs] = np.arange(len(inputs))
    bare = SparseProtocol(sparse.csr_array(rows[row_of]))
    return replace(bare, outputs=posterior_labels(joint, bare.joint_with_values(joint)))


def build_protocol(joint: Joint, problem: Problem, inputs: IntArray, found: Split, sees_secret: bool) -> Protocol:
    """q(y|z) = q_y v_y(z) / p(z). Inputs that never occur get the outputs' own distribution.

    Outputs too rare for integers to follow their posteriors are published as the most frequent one: that output's
    posterior becomes an average of allowed ones, which is allowed too.
    """
    weights, atoms = found.weights, np.maximum(found.atoms, 0.0)
    rows = (weights[:, None] * atoms / problem.prior[None, :]).T
    frequent = weights >= min(RAREST_OUTPUT, float(weights.max()))
    rows, own = merge_outputs(rows, weights, frequent), weights[frequent] / weights[frequent].sum()
    totals = rows.sum(axis=1, keepdims=True)  # 0 for an input so rare that no output names it
    rows = np.divide(rows, totals, out=np.tile(own, (len(rows), 1)), where=totals > 0)
    listed = joint.a * (joint.c if sees_secret else 1)
    every = np.tile(problem.prior @ rows, (max(listed, int(inputs.max()) + 1), 1))
    every[inputs] = rows
    every /= every.sum(axis=1, keepdims=True)
    if len(every) == listed:
        bare = Protocol(every, (), sees_secret)
    else:
        every = _merge_alike(every, listed)
        bare = Protocol(every[:listed], (), sees_secret, elsewhere=every[listed])
    return replace(bare, outputs=posterior_labels(joint, bare.joint_with_values(joint)))


def _merge_alike(every: FloatArray, listed: int) -> FloatArray:
    """Outputs that say the same of the listed inputs, and differ in what becomes of anything else, as one.

    Its posterior is an average of allowed ones; whoever reads it learns no less of a value that is listed.
    """
    posteriors = every[:listed] / every[:listed].sum(axis=0)
    _, first, alike = np.unique(np.round(posteriors, ALIKE), axis=1, return_index=True, return_inverse=True)
    joined_up = np.zeros((len(every), len(first)))
    np.add.at(joined_up.T, alike.reshape(-1), every.T)
    return np.asarray(joined_up[:, np.argsort(first)])


def sparse_identity(joint: Joint) -> SparseProtocol:
    """Every value as it is."""
    return SparseProtocol(sparse.csr_array(sparse.eye_array(joint.a)), joint.values)


def identity(joint: Joint, sees_secret: bool, anything_else: bool = False) -> Protocol:
    """Everything as it is; and anything else as somebody's value."""
    channel = np.tile(np.eye(joint.a), (joint.c if sees_secret else 1, 1))
    return Protocol(channel, joint.values, sees_secret, elsewhere=joint.p_x if anything_else else None)


FINEST = 10**9  # solvers work to 1e-9: what is rarer than one in so many is less than their rounding

Answer = TypeVar("Answer")
More = ParamSpec("More")


def explain_skew(solve: Callable[More, Answer]) -> Callable[More, Answer]:
    """The same, but where a solver fails on a table with such counts the error says so, and what to do."""

    @wraps(solve)
    def solve_or_explain(*given: More.args, **named: More.kwargs) -> Answer:
        try:
            return solve(*given, **named)
        except SolverError as error:
            joint = next(each for each in (*given, *named.values()) if isinstance(each, Joint))
            weights = joint.weights[joint.weights > 0]
            if int(weights.sum()) <= FINEST * int(weights.min()):
                raise
            raise SizeError(
                f"no pair of a secret and a value may be rarer than one in {FINEST:,} for the optimum to be found; one "
                f"is, and the solver failed. Merge rare values, or use {hint('method', 'randomised-response')}."
            ) from error

    return solve_or_explain
