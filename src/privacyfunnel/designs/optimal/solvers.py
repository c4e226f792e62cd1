r"""The best protocol for each use, with its bound: information, statistics, and linear uses.

Statistics (docs/theory.md, the theorem of equivalence): least
:math:`n \cdot \mathrm{MSE} = \operatorname{tr}(F F^\top M^{-1}) - \text{constant}`, convex in the split of the
prior, by the engine. `balanced` adds one constraint, :math:`\sum_y q_y H(t_y) \le H(X) - \kappa I^*`, with I* the best
information. I* is known between the information L of a protocol and a bound U. The returned protocol keeps κU, and so
its share whatever I* is. The bound on the error is proved for all protocols that keep κL, among which are all that
keep κI*.

A linear use: one linear programme, its bound from the prices (docs/theory.md, Theorem 40). Outputs are actions.
Action k takes :math:`u_k` of the prior of the inputs and costs :math:`\sum_z \ell(x_z, k) u_{kz}`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, is_sparse_enough
from privacyfunnel.designs.baselines import conditional_reporting
from privacyfunnel.designs.interface import BLURRED, CONDITIONED_AT_ALL, LARGEST_PROBLEM, MOST_PAIRS, PUBLISHED_WELL
from privacyfunnel.designs.optimal.problem_conversion import (
    LARGEST_EPSILON,
    LARGEST_SLIVER_BITS,
    RAREST_OUTPUT,
    UNSEEN_BESIDE,
    Optimum,
    Progress,
    SolverRequest,
    StopReason,
    build_problem,
    build_protocol,
    build_sparse_protocol,
    check_all_seen,
    discount_unseen,
    identity,
    sparse_identity,
    thin,
    unseen_share,
)
from privacyfunnel.engine import split
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.masters.actions import (
    bound_by_prices,
    direct_action_split,
    split_by_actions,
    split_on_line,
)
from privacyfunnel.engine.masters.mixture import Moment
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.splits import cone_constraints, linear_oracle, split_by_moment
from privacyfunnel.errors import GuaranteeError, ParameterError, SizeError, SolverError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, seal
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import NEGLIGIBLE, Protocol, number_duplicates
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.model.uses.linear_use import LinearUse
from privacyfunnel.model.uses.ordinal_scale import range_labels
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics, centre_queries, population_statistics
from privacyfunnel.model.uses.use import Information, Use

UTILITY_ROUNDING = 1e-12  # relative: how far the measured utility may exceed a bound that it meets
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
    report = None if progress is None else _utility_progress(progress, h_x, margin)
    start = _start_atoms(joint, promise, problem, inputs, gap, clock.time_limit) if sees_secret else None
    sealing = min(SEALED_EACH * problem.size, SEALING_SHARE * clock.seconds_left)
    searching = Clock.from_limit(None if clock.time_limit is None else clock.seconds_left - sealing)
    nearly_all = searching.part(NEARLY_ALL)
    found = thin(split(problem, gap=gap, time_limit=searching.time_limit, progress=report, start=start))
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
    if bound < utility - UTILITY_ROUNDING * (1 + h_x):
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


MOST_CHANCES = PUBLISHED_WELL**2  # actions × inputs of one programme
# The programme is solved for a promise that is smaller by this share, which is more than the solver's tolerance: then
# what it returns needs no sliver to speak of. The bound is that of the promise itself.
INSIDE = 1e-11
NARROWEST = 1e-7  # of ε: what lies between two sides that near is beyond the solver, so that they are made one
TOLERANCE = 1e-10  # of the squared length of the line: how near the bound of squared errors is to be


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
