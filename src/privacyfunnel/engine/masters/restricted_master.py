r"""The master problem: the cheapest mixture of the atoms known so far that averages to the prior.

    min Σ_y q_y h_y   subject to   Σ_y q_y v_y = p,  q >= 0

One programme is kept and only grows, so each solve starts from the last basis. While few atoms are known they can
hardly average to p, and prices would be wild; so part of the prior may be had otherwise, at a price:

- *penalised slack*: probability may be missing or left over at any input, at a penalty M per unit, which keeps every
  price within [-M, M]. Nothing that uses slack is ever returned as a split.
- *a residual*: what the atoms do not cover is one atom more, r in the cone over V, at a price δ per unit. Every
  solution is a split, since r divided by its sum is feasible too.

Restricted masters with slack, for entropies.

.. math:: \min \sum_y q_y H(v_y) + \text{slack} \quad\text{s.t.}\quad \sum_y q_y v_y + \text{slack} = p,\ q \ge 0 .

`PenalisedMaster` is for problems whose first prices are soon right: slack is penalised, and returned splits are
slack-free. With hundreds of inputs they are not: the slack of `ResidualMaster` is one further feasible atom.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.engine.clock import FOREVER, WORK, Clock, TimeUpError
from privacyfunnel.engine.driver import Master
from privacyfunnel.engine.lp.highs import DUAL, INF, PRIMAL, Programme
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.search.tangent import Search
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError

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

    rows: tuple[FloatArray, FloatArray]  # least and largest values of rows of its own
    columns: SparseColumns  # a row per input, then its own rows

    def costs(self) -> FloatArray:
        """What its columns cost now."""

    def amount(self, columns: FloatArray) -> FloatArray:
        """How much of the prior a solution has that way, by input."""

    def raise_price(self) -> None: ...


class PenaltySlack:
    """Probability that is missing or left over."""

    def __init__(self, prior: FloatArray, penalty: float) -> None:
        self._size, self._penalty, d = prior.size, penalty, prior.size
        self.rows = (np.empty(0), np.empty(0))
        self.columns = SparseColumns(np.arange(2 * d), np.tile(np.arange(d), 2), np.repeat([1.0, -1.0], d))

    def costs(self) -> FloatArray:
        return np.full(2 * self._size, self._penalty)

    def amount(self, columns: FloatArray) -> FloatArray:
        return np.asarray(columns[: self._size] + columns[self._size :])

    def raise_price(self) -> None:
        self._penalty *= SETTINGS.slack.penalty_growth


class ResidualSlack:
    """One atom more, of mass m: r = m v with v feasible.

    Its columns are r / p, so that the solver's tolerance is a small part of rare inputs too, and the cone's own columns
    t; its rows say cone·(r, t) <= 0, each scaled to a largest entry of 1.
    """

    def __init__(self, prior: FloatArray, cone: sparse.csr_array) -> None:
        self._prior, self.price = prior, SETTINGS.slack.residual_price
        self._own = extra = cone.shape[1] - prior.size
        units = sparse.diags_array(np.concatenate([prior, np.ones(extra)]))
        rows = sparse.csr_array(cone @ units)
        scale = abs(rows).max(axis=1).toarray().ravel()
        rows = sparse.csr_array(sparse.diags_array(1.0 / np.where(scale > 0, scale, 1.0)) @ rows)
        self.rows = (np.full(rows.shape[0], -INF), np.zeros(rows.shape[0]))
        covered = sparse.hstack([sparse.diags_array(prior), sparse.csr_array((prior.size, extra))])
        matrix = sparse.csc_array(sparse.vstack([covered, rows]))
        self.columns = SparseColumns(matrix.indptr[:-1], matrix.indices, matrix.data)

    def costs(self) -> FloatArray:
        """The cone's own columns are free."""
        return np.concatenate([self.price * self._prior, np.zeros(self._own)])

    def amount(self, columns: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(columns[: self._prior.size], 0.0) * self._prior)

    def raise_price(self) -> None:
        self.price *= SETTINGS.slack.residual_growth


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
        row, index = np.nonzero(atoms > SETTINGS.tolerance.near / 2)
        entries = np.round(atoms[row, index], SETTINGS.tolerance.key_digits)
        ends = np.searchsorted(row, np.arange(len(atoms) + 1))
        for i, (first, end) in enumerate(pairwise(ends.tolist())):
            named = index[first:end].tobytes() + entries[first:end].tobytes()
            key = blake2b(named, digest_size=SETTINGS.slack.key_bytes).digest()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(i)
        if not fresh:
            return np.empty(0, dtype=np.int64)
        new, cost = atoms[fresh], costs[fresh]
        self._programme.add_dense_columns(cost, new)
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
        if not self._programme.run_afresh(clock.deadline, RETRIES):
            if self._programme.late:
                raise TimeUpError
            status = self._programme.status
            raise SolverError(f"The master problem must be solved to optimality; HiGHS said {status}. Report this.")
        solution = self._programme.solution
        self.slack_used = self.slack.amount(solution[: self._first])
        return solution[self._first :], self._programme.multipliers[: self.prior.size], float(self.slack_used.sum())

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


def repair_split(problem: Problem, weights: FloatArray, atoms: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    r"""Weights, atoms and value of a split, from atoms that do not cover the prior: the rest is one atom more.

    Let r, of mass m, be what the atoms leave over of p, and n the share of the prior that makes r / m feasible. With a
    share δ of the prior mixed into the whole, :math:`\delta = n m / (1 - n + n m)`, the last atom
    :math:`(1 - \delta) r + \delta p` is feasible.
    """
    p = problem.prior
    weights = weights / max(1.0, float((weights @ atoms / p).max(initial=0.0)))
    rest = np.maximum(p - weights @ atoms, 0.0)
    mass = float(rest.sum())
    if mass > 0.0:
        needed = float(problem.prior_share(rest[None, :] / mass)[0])
        share = needed * mass / (1 - needed + needed * mass)
        last = (1 - share) * rest + share * p
        weights = np.append((1 - share) * weights, last.sum())
        atoms = np.concatenate([atoms, last[None, :] / last.sum()])
    return weights, atoms, float(weights @ problem.costs(atoms))


def split_by_forced_response(problem: Problem) -> Split:
    r"""The prior moved towards every input as far as is feasible, :math:`v_y = t_y e_y + (1 - t_y) p`, with weights
    :math:`q_y \propto p_y / t_y`: a forced response with the most truth (Theorem 54). Nothing is proved about it."""
    atoms = problem.mix_with_prior(np.eye(problem.size))
    p = problem.prior
    t = np.maximum((np.diag(atoms) - p) / (1 - p), SETTINGS.tolerance.near)
    return Split(p / t / (p / t).sum(), atoms, np.inf, 0.0, "forced response")


class EntropyMaster(Master):
    """What masters of an entropy share: how finds are selected, and what a proof is asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.size, self.value = problem, problem.size, problem.prior_cost

    @abstractmethod
    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        """Add those of these atoms that are new; their indices."""

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Add the cheapest atoms of negative reduced cost; the least reduced cost of those that were new."""
        atoms = self.problem.clean(atoms)
        costs = self.problem.costs(atoms)
        reduced = costs - atoms @ prices
        order = np.argsort(reduced)[: SETTINGS.driver.most_added]
        order = order[reduced[order] < -SETTINGS.tolerance.feasible]
        new = order[self.add(atoms[order], costs[order])]
        return float(reduced[new].min(initial=0.0))

    def worth(self, gap: float) -> float:
        return SETTINGS.driver.searched_to * gap

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        """A little less than the gap; when late, twice what known atoms are below."""
        return max(SETTINGS.driver.proved_to * gap, -2 * least if late else 0.0)

    def slack_price_threshold(self, gap: float) -> float:
        return self.worth(gap)


class PenalisedMaster(EntropyMaster):
    """Restricted master with penalised slack; returned splits are slack-free."""

    def __init__(self, problem: Problem, search: Search) -> None:
        super().__init__(problem)
        self._search = search
        self.master = self._new_master()
        self._secure = problem.prior[None, :]  # atoms that average to the prior
        self._known = self._secure  # those of them that there were before
        self._weights, self._paid = np.empty(0), self._secure[:0]  # the best slack-free split

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The prior, what is known already, the prior drawn towards every input, and what the search starts with."""
        if start is not None:
            self._known = np.concatenate([self._known, start])
        self._secure = np.concatenate([self._known, self.problem.first_atoms()])
        self.master.add(self._secure, self.problem.costs(self._secure))
        atoms = self.problem.clean(self._search.start(clock))
        self.master.add(atoms, self.problem.costs(atoms))

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        return self._solve_master(clock)[1:]

    def _solve_master(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        """Weights, prices, and slack; a solution without slack is a split."""
        weights, prices, owed = self.master.solve(clock)
        value = float(self.master.costs @ weights)
        if owed <= SETTINGS.tolerance.near and value < self.value:
            self.value, self._weights, self._paid = value, weights[weights > 0], self.master.support_atoms(weights)
        return weights, prices, owed

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        return self._search.descend(prices, clock)

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        return self.master.add(atoms, costs)

    def raise_slack_price(self) -> None:
        self.master.raise_slack_price()

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        weights, atoms = self._best(clock)
        return weights, atoms, float(self.problem.costs(atoms) @ weights)

    def _best(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        """The atoms in use. Their weights are computed afresh, to rounding rather than to the solver's tolerance.

        Where there is no time for that, the best split met, closed to rounding; or that of the atoms known before.
        """
        with suppress(TimeUpError):
            weights, atoms = self._refine(clock)
            return repair_split(self.problem, weights, atoms)[:2] if clock.late else (weights, atoms)
        if not self._weights.size:
            master = self._new_master()
            master.add(self._known, self.problem.costs(self._known))
            weights, _, _ = master.solve()
            self._weights, self._paid = weights[weights > 0], master.support_atoms(weights)
        hurry = Clock.from_limit(SETTINGS.driver.refining_seconds)
        weights = refit_weights(self.problem.prior, self._weights, self._paid, hurry)
        return repair_split(self.problem, weights, self._paid)[:2]

    def _refine(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        master = self.master
        weights, prices, owed = self._solve_master(clock)
        if owed > SETTINGS.tolerance.near or float(master.costs @ weights) > self.value + SETTINGS.tolerance.near:
            clock.check()
            # Only the atoms in use, those of the best split and those known to average to p: all of them could take
            # very long.
            pool = np.concatenate([self._secure, self._paid, master.support_atoms(weights)])
            master = self._new_master()
            master.add(pool, self.problem.costs(pool))
            master.forbid_slack()
            weights, prices, _ = master.solve(clock)
        weights = master.refine(weights, prices, len(self._secure), clock)
        return weights[weights > 0], master.support_atoms(weights)

    def _new_master(self) -> RestrictedMaster:
        prior = self.problem.prior
        return RestrictedMaster(prior, PenaltySlack(prior, 1.0 + float(np.log(prior.size))))


class ResidualMaster(EntropyMaster):
    """A master whose every solution is a split: its slack is one further feasible atom."""

    def __init__(self, problem: Problem, search: Search, patience: int) -> None:
        super().__init__(problem)
        self._search, self._patience = search, patience
        self._split = np.ones(1), problem.prior[None, :], problem.prior_cost  # weights, atoms and value
        self._looked_again = 0
        self._unsure = problem.prior  # how much each input adds to what the atoms in use leave open
        self._rest = ResidualSlack(problem.prior, problem.cone())
        self.master = RestrictedMaster(problem.prior, self._rest)

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The prior moved towards every input, what is known already, and what a search finds without prices."""
        known = [self.problem.prior[None, :], self.problem.first_atoms()]
        first = np.concatenate(known if start is None else [*known, start])
        self.master.add(first, self.problem.costs(first))
        self._add_clean(self._search.start(clock))
        for _ in range(SETTINGS.slack.first_searches):
            self._add_clean(self._search.cover(np.zeros(self.size), self.problem.prior, clock))

    def _add_clean(self, atoms: FloatArray) -> None:
        clean = self.problem.clean(atoms)
        self.master.add(clean, self.problem.costs(clean))

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """The solution and its residual are a split."""
        weights, prices, owed = self.master.solve(clock)
        atoms, q, cost = self.master.support_atoms(weights), weights[weights > 0], self.master.costs[weights > 0]
        self._unsure = (q * cost) @ atoms
        self._keep_best(q, atoms)
        return prices, owed

    def _keep_best(self, weights: FloatArray, atoms: FloatArray) -> None:
        """Close these atoms to a split, and keep it if it is the best so far."""
        self._split = min(self._split, repair_split(self.problem, weights, atoms), key=lambda split: split[2])
        self.value = self._split[2]

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """What short walks pass, above all at what the rest has, or at what atoms leave open."""
        missing = self.master.slack_used if self.master.slack_used.sum() > SETTINGS.tolerance.near else self._unsure
        return self._search.cover(prices, missing + SETTINGS.tolerance.solved * self.problem.prior, clock)

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        return self.master.add(atoms, costs)

    def raise_slack_price(self) -> None:
        """Raise the price up to what the residual costs; then look again; then add the residual as an atom.

        At a higher price the master would take worse atoms; as an atom the residual hides which inputs need some.
        """
        rest = self.master.slack_used
        mass = float(rest.sum())
        if self._rest.price < float(self.problem.costs(rest[None, :] / mass)[0]):
            self.master.raise_slack_price()
        elif self._looked_again < self._patience:
            self._looked_again += 1
        else:
            self._add_clean(self.problem.mix_with_prior(rest[None, :] / mass))
            self.master.raise_slack_price()

    def slack_price_threshold(self, gap: float) -> float:
        """Where half of the first price is worth no atom any more."""
        return max(SETTINGS.driver.searched_to * gap, SETTINGS.slack.residual_price / 2)

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        return self._split
