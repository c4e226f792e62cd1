r"""The master problem: the cheapest mixture of the atoms known so far that averages to the prior.

    min Σ_y q_y h_y   subject to   Σ_y q_y v_y = p,  q >= 0

One programme is kept and only grows, so each solve starts from the last basis. While few atoms are known they can
hardly average to p, and prices would be wild; so part of the prior may be had otherwise, at a price. Two ways:

- *loans*: probability may be missing or left over at any input, at a penalty M per unit, which keeps every price
  within [-M, M]. Nothing that uses a loan is ever handed out as a split.
- *the rest*: what the atoms do not cover is one atom more, r in the cone over V, charged at prices λ⁰ that are about
  right and a toll δ per unit. Every solution is a split, since r divided by its sum is allowed too; and the prices of
  all inputs stay near λ⁰ while few atoms are known.

From atoms that do not cover the prior to a split, to rounding: what is left over is handed out.

With weights q of the atoms known, r is what they leave over of p, in all m. Two ways, and the cheaper is taken:

- *as one atom*: with n the share of the prior that makes r / m allowed, a share δ of the prior is mixed into the whole
  such that the last atom, :math:`(1 - \delta) r + \delta p`, is allowed: :math:`\delta = n m / (1 - n + n m)`.
- *input by input*: each input x is named with as much of a base b beside it as makes it allowed,
  :math:`(1 - \delta_x) e_x + \delta_x b`. The base is p among the likeliest inputs, of which all atoms give up a share
  η for it. With :math:`a_x = \delta_x / (1 - \delta_x)` and r' = (1 − η) r + ηp, the weights are
  :math:`w_x = (r'_x - D b_x)(1 + a_x)`, where :math:`D = \sum_x w_x \delta_x` is how much of the base is used; and
  :math:`\eta = D / P` for a base of probability P leaves none of its inputs short.

One atom of many inputs costs the logarithm of their number; named one by one they cost what hiding each takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.engine.clock import FOREVER, WORK, Clock, TimeUpError
from privacyfunnel.engine.lp.highs import DUAL, INF, PRIMAL, Programme
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError
from privacyfunnel.model.information import entropy_terms

RETRIES: tuple[tuple[str, object], ...] = (
    ("simplex_strategy", DUAL),
    ("simplex_strategy", PRIMAL),
    ("primal_feasibility_tolerance", SETTINGS.tolerance.highs_retry),
    ("dual_feasibility_tolerance", SETTINGS.tolerance.highs_retry),
    ("presolve", "choose"),
    ("simplex_scale_strategy", 4),
    ("solver", "ipm"),
)


class SparseColumns(NamedTuple):
    """Columns of a programme: where the entries of each begin, the rows they stand in, and they themselves."""

    starts: NDArray[np.integer[Any]]
    rows: NDArray[np.integer[Any]]
    entries: FloatArray


class Slack(Protocol):
    """How the part of the prior is had that atoms do not cover."""

    @property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest values of rows of its own."""

    @property
    def columns(self) -> SparseColumns:
        """Its columns: a row per input, then its own rows."""

    def costs(self) -> FloatArray:
        """What its columns cost now."""

    def amount(self, columns: FloatArray) -> FloatArray:
        """How much of the prior a solution has that way, by input."""

    def raise_price(self) -> None:
        """Raise the price."""


class PenaltySlack:
    """Probability that is missing or left over."""

    def __init__(self, prior: FloatArray, penalty: float) -> None:
        self._size, self._penalty = prior.size, penalty
        none = np.empty(0)
        self.rows = (none, none)
        d = prior.size
        self.columns = SparseColumns(np.arange(2 * d), np.tile(np.arange(d), 2), np.repeat([1.0, -1.0], d))

    def costs(self) -> FloatArray:
        """The penalty."""
        return np.full(2 * self._size, self._penalty)

    def amount(self, columns: FloatArray) -> FloatArray:
        """What is missing and what is left over, together."""
        return np.asarray(columns[: self._size] + columns[self._size :])

    def raise_price(self) -> None:
        """Make loans ten times dearer."""
        self._penalty *= SETTINGS.slack.penalty_growth


class ResidualSlack:
    """One atom more, of mass m: r = m v with v allowed.

    Its columns are r / p, so that the solver's tolerance is a small part of rare inputs too, and the cone's own columns
    t; its rows say cone·(r, t) <= 0, each scaled to a largest entry of 1.
    """

    def __init__(self, prior: FloatArray, cone: sparse.csr_array, prices: FloatArray) -> None:
        self._prior, self._prices, self._toll = prior, prices, SETTINGS.slack.residual_price
        extra = cone.shape[1] - prior.size
        self._own = extra
        units = sparse.diags_array(np.concatenate([prior, np.ones(extra)]))
        rows = sparse.csr_array(cone @ units)
        scale = abs(rows).max(axis=1).toarray().ravel()
        rows = sparse.csr_array(sparse.diags_array(1.0 / np.where(scale > 0, scale, 1.0)) @ rows)
        self.rows = (np.full(rows.shape[0], -INF), np.zeros(rows.shape[0]))
        covered = sparse.hstack([sparse.diags_array(prior), sparse.csr_array((prior.size, extra))])
        matrix = sparse.csc_array(sparse.vstack([covered, rows]))
        self.columns = SparseColumns(matrix.indptr[:-1], matrix.indices, matrix.data)

    def costs(self) -> FloatArray:
        """The prices and the toll; the cone's own columns are free."""
        return np.concatenate([(self._prices + self._toll) * self._prior, np.zeros(self._own)])

    def amount(self, columns: FloatArray) -> FloatArray:
        """The rest itself."""
        return np.asarray(np.maximum(columns[: self._prior.size], 0.0) * self._prior)

    def price(self, rest: FloatArray) -> float:
        """What the rest is charged at."""
        return float((self._prices + self._toll) @ rest)

    def raise_price(self) -> None:
        """Raise the toll."""
        self._toll *= SETTINGS.slack.residual_growth


class RestrictedMaster:
    """Atoms with their costs, the best weights, and the prices that prove them best among these atoms."""

    def __init__(self, prior: FloatArray, slack: Slack) -> None:
        self.prior, self.slack = prior, slack
        self._atoms: list[FloatArray] = []
        self.costs = np.empty(0)
        self._seen: set[bytes] = set()
        self._programme = Programme()
        low, high = slack.rows
        self._programme.add_rows(np.concatenate([prior, low]), np.concatenate([prior, high]))
        self._programme.add_columns(slack.costs(), *slack.columns)
        self._first = len(slack.columns.starts)  # the first column that is an atom
        self.slack_used = np.zeros(prior.size)  # by the last solution

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        """Add the atoms that are new; which were."""
        rows = max(1, SETTINGS.slack.entries_at_once // self.prior.size)
        firsts = range(0, max(len(atoms), 1), rows)
        return np.concatenate([i + self._add_new(atoms[i : i + rows], costs[i : i + rows]) for i in firsts])

    def _add_new(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        fresh = []
        row, index = np.nonzero(atoms > SETTINGS.tolerance.atom_key / 2)
        entries, ends = (
            np.round(atoms[row, index], SETTINGS.tolerance.key_digits),
            np.searchsorted(row, np.arange(len(atoms) + 1)),
        )
        for i, (first, end) in enumerate(pairwise(ends.tolist())):
            key = blake2b(
                index[first:end].tobytes() + entries[first:end].tobytes(), digest_size=SETTINGS.slack.key_bytes
            ).digest()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(i)
        if not fresh:
            return np.empty(0, dtype=np.int64)
        new, cost = atoms[fresh], costs[fresh]
        of_row, index = np.nonzero(new)
        starts = np.searchsorted(of_row, np.arange(len(new)))
        self._programme.add_columns(cost, starts, index, new[of_row, index])
        self._atoms.append(new)
        self.costs = np.concatenate([self.costs, cost])
        WORK.atoms += len(fresh)
        WORK.entries += new.size
        return np.array(fresh, dtype=np.int64)

    @property
    def atoms(self) -> FloatArray:
        """All atoms, in the order of the weights."""
        if len(self._atoms) > 1:
            self._atoms = [np.concatenate(self._atoms)]
        return self._atoms[0]

    def support_atoms(self, weights: FloatArray) -> FloatArray:
        """The atoms of positive weight, taken from where they lie: all of them together may be many megabytes."""
        ends = np.cumsum([len(some) for some in self._atoms])
        return np.concatenate([some[w > 0] for some, w in zip(self._atoms, np.split(weights, ends[:-1]), strict=True)])

    def solve(self, clock: Clock = FOREVER) -> tuple[FloatArray, FloatArray, float]:
        """The best weights, the prices (the dual value of each input), and how much of the prior is owed."""
        self._run(clock)
        solution = self._programme.solution
        self.slack_used = self.slack.amount(solution[: self._first])
        return solution[self._first :], self._programme.multipliers[: self.prior.size], float(self.slack_used.sum())

    def _run(self, clock: Clock) -> None:
        """Solve; where a start from the last basis ends in numerical trouble, afresh and with other settings."""
        if self._programme.run(clock.deadline):
            return
        for option, setting in RETRIES:
            if self._programme.is_infeasible:
                break
            if self._programme.late:
                raise TimeUpError
            self._programme.clear_basis()
            self._programme.set_option(option, setting)
            if self._programme.run(clock.deadline):
                return
        said = self._programme.status
        raise SolverError(f"The master problem must be solved to optimality; HiGHS said {said}. Report this.")

    def refine(self, weights: FloatArray, prices: FloatArray, secure: int, clock: Clock = FOREVER) -> FloatArray:
        """Weights that average to the prior to rounding, where the solver's do so to its tolerance.

        First by least squares over the atoms in use; they may be too few for that. What is still missing is solved for
        again, on a scale of its own, over the atoms that cost next to nothing at these prices and the first ones,
        `secure` many, which reach into every direction: each time some digits more, while there is time.
        """
        used = weights > 0
        weights = weights.copy()
        weights[used] = refit_weights(self.prior, weights[used], self.support_atoms(weights), clock)
        free = (weights > 0) | (self.costs - self.atoms @ prices < SETTINGS.tolerance.free_atom)
        free[:secure] = True
        near = np.flatnonzero(free)
        atoms, q, cost = self.atoms[near], np.maximum(weights[near], 0.0), self.costs[near]
        of_row, index = np.nonzero(atoms)
        starts, entries = np.searchsorted(of_row, np.arange(len(atoms))), (atoms / self.prior)[of_row, index]
        for _ in range(SETTINGS.slack.refinements):
            missing = 1.0 - q @ atoms / self.prior
            scale = float(np.abs(missing).max())
            if scale <= SETTINGS.tolerance.covered or clock.late:
                break
            programme = Programme()
            programme.add_rows(missing / scale, missing / scale)
            programme.add_columns(
                cost, starts, index, entries, low=np.maximum(-q / scale, -SETTINGS.slack.farthest_weight)
            )
            if not programme.run(clock.deadline):
                break
            q = np.maximum(q + scale * programme.solution, 0.0)
        found = np.zeros_like(weights)
        found[near] = q
        return found

    def raise_slack_price(self) -> None:
        """Raise the price of what is owed."""
        self.slack.raise_price()
        self._programme.set_costs(self.slack.costs())

    def forbid_slack(self) -> None:
        """From now on every solution is a split of atoms."""
        self._programme.fix_at_zero(np.arange(self._first))


def refit_weights(prior: FloatArray, weights: FloatArray, atoms: FloatArray, clock: Clock) -> FloatArray:
    """The weights of these atoms that average to the prior to rounding, where such are near, and there is time."""
    if SETTINGS.slack.least_squares_seconds * atoms.size * len(atoms) > clock.seconds_left:
        return weights
    # Divided by p, so that rare inputs get back their whole probability to the same relative precision.
    ratios = (atoms / prior).T
    largest = ratios.max(axis=0)
    missing = 1.0 - ratios @ weights  # of that alone, for atoms may be so many that other weights would do as well
    exact = weights + np.linalg.lstsq(ratios / largest, missing)[0] / largest
    return exact if (exact >= 0).all() and np.abs(exact - weights).max() < SETTINGS.tolerance.refit else weights


@dataclass(frozen=True, slots=True, eq=False)
class InputAtoms:
    """Inputs that are named one by one, with a base beside each."""

    weights: FloatArray  # (d,)
    share: FloatArray  # (d,), of the base
    base: FloatArray  # (d,)

    def to_arrays(self) -> tuple[FloatArray, FloatArray]:
        """Weights and atoms."""
        used = np.flatnonzero(self.weights > 0)
        atoms = self.share[used, None] * self.base
        atoms[np.arange(used.size), used] += 1 - self.share[used]
        return self.weights[used], atoms


@dataclass(frozen=True, slots=True, eq=False)
class RepairedSplit:
    """A split: atoms, and inputs named one by one."""

    weights: FloatArray
    atoms: FloatArray
    value: float
    input_atoms: InputAtoms | None = None

    def to_arrays(self) -> tuple[FloatArray, FloatArray]:
        """All weights and atoms."""
        if self.input_atoms is None:
            return self.weights, self.atoms
        weights, atoms = self.input_atoms.to_arrays()
        return np.concatenate([self.weights, weights]), np.concatenate([self.atoms, atoms])


def repair_split(problem: Problem, weights: FloatArray, atoms: FloatArray) -> RepairedSplit:
    """The cheaper of both ways to have a split with these atoms."""
    p = problem.prior
    weights = weights / max(1.0, float((weights @ atoms / p).max(initial=0.0)))
    rest = np.maximum(p - weights @ atoms, 0.0)
    costs = problem.costs(atoms)
    one = _repair_with_one_atom(problem, weights, atoms, costs, rest)
    each = _repair_by_input(problem, weights, atoms, costs, rest)
    return one if each is None or one.value <= each.value else each


def _repair_with_one_atom(
    problem: Problem, weights: FloatArray, atoms: FloatArray, costs: FloatArray, rest: FloatArray
) -> RepairedSplit:
    mass = float(rest.sum())
    if mass <= 0.0:
        return RepairedSplit(weights, atoms, float(weights @ costs))
    needed = float(problem.prior_share(rest[None, :] / mass)[0])
    share = needed * mass / (1 - needed + needed * mass)
    last = (1 - share) * rest + share * problem.prior
    weights = np.append((1 - share) * weights, last.sum())
    atom = last[None, :] / last.sum()
    value = float(weights[:-1] @ costs + weights[-1] * problem.costs(atom)[0])
    return RepairedSplit(weights, np.concatenate([atoms, atom]), value)


def _repair_by_input(
    problem: Problem, weights: FloatArray, atoms: FloatArray, costs: FloatArray, rest: FloatArray
) -> RepairedSplit | None:
    p = problem.prior
    if (
        rest.sum() <= SETTINGS.tolerance.residual
        or problem.credal_sets is not None
        or not problem.objective.is_identity
    ):
        return None
    base, mass = _base(problem)
    share = problem.base_share(base)
    if (share >= 1).any():
        return None
    ratio = share / (1 - share)
    by_rest, by_prior, by_base = float(ratio @ rest), float(ratio @ p), float(ratio @ base)
    below = 1 + by_base + (by_rest - by_prior) / mass
    used = by_rest / below if below > 0 else np.inf
    given = used / mass
    if not given < 1:
        return None
    left = np.maximum((1 - given) * rest + given * p - used * base, 0.0)
    named = InputAtoms(left * (1 + ratio), share, base)
    value = float((1 - given) * (weights @ costs) + named.weights @ _costs(share, base))
    return RepairedSplit((1 - given) * weights, atoms, value, named)


def _base(problem: Problem) -> tuple[FloatArray, float]:
    """The prior among its likeliest inputs, or all of it where that is not allowed; and its probability."""
    p = problem.prior
    base = np.zeros_like(p)
    likeliest = np.argsort(-p, kind="stable")[: SETTINGS.slack.likeliest]
    base[likeliest] = p[likeliest]
    mass = float(base.sum())
    return (base / mass, mass) if problem.prior_share(base[None, :] / mass)[0] == 0 else (p, 1.0)


def _costs(share: FloatArray, base: FloatArray) -> FloatArray:
    """The entropy of each (1 − δ_x) e_x + δ_x b, from that of b: only the entry of x differs."""
    h = entropy_terms(share) + share * entropy_terms(base).sum()
    own = share * base
    return np.asarray(h - entropy_terms(own) + entropy_terms(1 - share + own))
