r"""The problem of the engine, and its answer.

A protocol splits the prior p over its inputs z into posteriors ("atoms") v with weights q, and keeps its promise
exactly when every atom lies in the polytope

    V = {v >= 0, Σ v = 1,  L_E·v <= e^aε L_F·v,  L_F·v <= e^bε L_E·v  for every row (E, F)},

where a and b are the scales of the row: 1 under most promises, infinite where one side is not promised.

The best protocol is the cheapest split

    min Σ_y q_y cost(v_y)   subject to   Σ_y q_y v_y = p,  q >= 0,  v_y in V.

For any prices λ, every split has value at least λ·p + min_v (cost(v) − λ·v), since its weights sum to 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, dense, sparse
from privacyfunnel.engine.objective import Objective, costs
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.credal.credal_sets import CredalSets


@dataclass(frozen=True, eq=False)
class Problem:
    """Which prior to split, into which polytope, and what an atom costs."""

    prior: FloatArray  # p(z) > 0, sums to 1
    constraints: LinearConstraints
    epsilon: float
    objective: Objective
    secret: IntArray | None = None  # the secret that each input has, where the protocol sees it
    credal_sets: CredalSets | None = None  # of priors, for all members of which atoms keep the promise as well

    @classmethod
    def from_values(cls, prior: FloatArray, constraints: LinearConstraints, epsilon: float) -> Problem:
        """Each input is a value, and information is what counts."""
        return cls(prior, constraints, epsilon, Objective.from_groups(np.arange(prior.size)))

    @property
    def size(self) -> int:
        return self.prior.size

    @cached_property
    def exp_epsilon(self) -> float:
        return float(np.exp(self.epsilon))

    @cached_property
    def limits(self) -> tuple[FloatArray, FloatArray]:
        """e^aε and e^bε of every row: what its ratio may be at most either way up, infinite where that is not asked."""
        scales = self.constraints.scales
        if scales is None:
            return (np.full(len(self.constraints.pairs), self.exp_epsilon),) * 2
        with np.errstate(over="ignore", invalid="ignore"):
            most = np.where(np.isinf(scales), np.inf, np.exp(self.epsilon * scales))
        return most[:, 0], most[:, 1]

    @cached_property
    def prior_cost(self) -> float:
        """What the prior itself costs: no split costs more than this."""
        return float(costs(self.objective, self.prior[None, :])[0])

    def costs(self, atoms: Matrix) -> FloatArray:
        return costs(self.objective, atoms)

    def replace_constraints(self, constraints: LinearConstraints) -> Problem:
        return replace(self, constraints=constraints)

    def restrict(self, inputs: IntArray) -> Problem:
        """The same for atoms that have these inputs only; their prior is the part that is theirs."""
        return Problem(
            self.prior[inputs], self.constraints.restrict(inputs), self.epsilon, self.objective.restrict(inputs)
        )

    # -- the polytope as inequalities --------------------------------------------------------------------------

    @cached_property
    def inequalities(self) -> FloatArray:
        """(e^ε L_F − L_E)·v >= 0 and the reverse where they say anything, each scaled to largest entry 1, each once."""
        A = -self.slopes(np.arange(len(self.constraints)), np.arange(len(self.constraints)))
        A = A[A.min(axis=1) < 0]
        return np.asarray(np.unique(A / np.abs(A).max(axis=1, keepdims=True), axis=0))

    def slopes(self, up: IntArray, down: IntArray) -> FloatArray:
        """g of the inequalities g·v <= 0 that these rows are, one way up and the other, where that is asked."""
        (n, d), (most, most_down) = self.constraints.dense, self.limits
        up, down = up[np.isfinite(most[up])], down[np.isfinite(most_down[down])]
        return np.concatenate([n[up] - most[up, None] * d[up], d[down] - most_down[down, None] * n[down]])

    def cone(self) -> sparse.csr_array:
        """Rows with rows·(v, t) <= 0 for some t exactly for multiples v of atoms; t are columns of its own.

        Where each is compared with each, t is a floor, t <= L·v <= e^ε t; else one t = L_F·v per event F that others
        are compared with, so that a row has as few entries as its event.
        """
        L = self.constraints.mutual_functionals
        if L is not None:
            floor = sparse.csr_array(np.ones((len(L), 1)))
            both = sparse.vstack(
                [
                    sparse.hstack([sparse.csr_array(-L), floor]),
                    sparse.hstack([sparse.csr_array(L), -self.exp_epsilon * floor]),
                ]
            )
            return sparse.csr_array(both)
        against, which = np.unique(self.constraints.pairs[:, 1], return_inverse=True)
        (n, d), (above, below) = self.constraints.dense, self.limits
        with np.errstate(invalid="ignore"):  # ∞ · 0, of a side that is not asked
            low, high = (
                np.flatnonzero((below[:, None] * n < d).any(axis=1) & np.isfinite(below)),
                np.flatnonzero((above[:, None] * d < n).any(axis=1) & np.isfinite(above)),
            )
        k = len(self.constraints)
        pick = sparse.csr_array((np.ones(k), (np.arange(k), which.reshape(-1))), shape=(k, len(against)))
        events = sparse.csr_array(self.constraints.functionals[against])
        N, unit = sparse.csr_array(self.constraints.numerators), sparse.eye_array(len(against), format="csr")
        return sparse.csr_array(
            sparse.vstack(
                [
                    sparse.hstack([events, -unit]),
                    sparse.hstack([-events, unit]),
                    sparse.hstack([-below[low, None] * N[low], sparse.csr_array(pick[low])]),
                    sparse.hstack([N[high], sparse.csr_array(-above[high, None] * pick[high])]),
                ]
            )
        )

    # -- atoms -------------------------------------------------------------------------------------------------

    def _evaluate(self, atoms: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L_E·v and L_F·v for every pair and every atom v, (n, k) each."""
        values = np.asarray(self.constraints.fast_functionals @ atoms.T)
        return values[self.constraints.pairs[:, 0]], values[self.constraints.pairs[:, 1]]

    def is_feasible(self, atoms: FloatArray) -> BoolArray:
        """Whether each atom keeps every row, up to rounding."""
        room, kept = 1 + SETTINGS.tolerance.constraint, np.ones(len(atoms), dtype=bool)
        one, other = self._evaluate(atoms)
        for more, less, most in ((one, other, self.limits[0]), (other, one, self.limits[1])):
            bounded = np.isfinite(most)
            kept &= (more[bounded] <= room * most[bounded, None] * less[bounded]).all(axis=0)
        if self.credal_sets is not None:
            one, other = self.credal_sets.evaluate((atoms / self.prior).T)
            kept &= (one <= room * self.exp_epsilon * other).all(axis=0)
        return np.asarray(kept)

    def clean(self, atoms: FloatArray) -> FloatArray:
        """The atoms without the dust of rounding, and within every row.

        A row compares two sums, and where both are dust their ratio can be anything. Those that break a row by more
        than rounding are made to meet it, or drawn inwards; what is too far out is left out.
        """
        # Atoms have few entries, so only those are looked at.
        row, z = np.nonzero(atoms)
        ratio, largest = atoms[row, z] / self.prior[z], np.zeros(len(atoms))
        np.maximum.at(largest, row, ratio)
        entries = np.where(ratio > SETTINGS.tolerance.rounding * largest[row], atoms[row, z], 0.0)
        atoms = np.zeros_like(atoms)
        atoms[row, z] = entries / np.bincount(row, entries, len(atoms))[row]
        good = self.is_feasible(atoms)
        if good.all():
            return np.asarray(atoms)
        broken = atoms[~good]
        mended = np.array([self._repair(atom) for atom in broken])
        as_it_is, needed = self.prior_share(broken), self.prior_share(mended)
        # Rows that cannot all be tight may look as if they were, and lead Newton's method astray.
        mended = np.where((as_it_is < needed)[:, None], broken, mended)
        needed = np.minimum(as_it_is, needed)
        near = needed < SETTINGS.tolerance.farthest_repair
        drawn = (1 - needed[near, None]) * mended[near] + needed[near, None] * self.prior
        return np.concatenate([atoms[good], drawn])

    def _repair(self, atom: FloatArray) -> FloatArray:
        """The atom with those rows met exactly that a solver met up to its tolerance.

        Every entry is changed by a small part of itself: the least such change after which the rows that were nearly
        tight are tight (Newton's method; rows are divided by what they compare, so that rare classes count alike).
        """
        support = np.flatnonzero(atom)
        v = atom[support]
        n, d = self.constraints.numerators[:, support], self.constraints.denominators[:, support]
        above, below = self.limits
        for _ in range(SETTINGS.lp.repairs):
            one, other = n @ v, d @ v
            with np.errstate(invalid="ignore"):  # ∞ · 0, of a side that is not asked
                up = np.flatnonzero(one > above * other * (1 - SETTINGS.tolerance.tight))
                down = np.flatnonzero(other > below * one * (1 - SETTINGS.tolerance.tight))
            size = np.concatenate([one[up], other[down]])
            if not size.size or (size <= 0).any():
                break
            slopes = np.concatenate(
                [dense(n[up]) - above[up, None] * dense(d[up]), dense(d[down]) - below[down, None] * dense(n[down])]
            )
            excess = (slopes @ v) / size
            change = np.linalg.lstsq(slopes * v / size[:, None], -excess)[0]
            if np.abs(excess).max() < SETTINGS.tolerance.met or not (np.abs(change) < SETTINGS.lp.largest_repair).all():
                break
            v = v * (1 + change)
        mended = np.zeros_like(atom)
        mended[support] = v / v.sum()
        return mended

    def prior_share(self, distributions: FloatArray) -> FloatArray:
        """How much of the prior must be mixed into each of these distributions until it is allowed, between 0 and 1.

        Along the segment from a distribution u to p, which is allowed, a row g·v <= 0 with g(u) > 0 holds from the
        share δ = g(u) / (g(u) − g(p)) of p on. Tiny shares matter to all their digits: where an entry is dust, it is
        the prior's share that its row is met with, and 1 − δ would have rounded it.
        """
        needed = np.zeros(len(distributions))
        here, there = self._evaluate(self.prior[None, :]), self._evaluate(distributions)
        for one, other in ((0, 1), (1, 0)):
            bounded = np.isfinite(self.limits[one])
            most = self.limits[one][bounded, None]
            at_prior = np.minimum(here[one][bounded] - most * here[other][bounded], 0.0)  # above 0 by rounding alone
            at_end = there[one][bounded] - most * there[other][bounded]
            share = np.divide(at_end, at_end - at_prior, out=np.zeros_like(at_end), where=at_end > 0)
            needed = np.maximum(needed, share.max(axis=0, initial=0.0))
        if self.credal_sets is not None:
            # Any member gives the prior a likelihood of 1, so that the worst ones stay the same along the segment.
            first, second = self.credal_sets.evaluate((distributions / self.prior).T)
            at_end = np.maximum(first - self.exp_epsilon * second, 0.0)
            share = np.divide(at_end, at_end + (self.exp_epsilon - 1), out=np.zeros_like(at_end), where=at_end > 0)
            needed = np.maximum(needed, share.max(axis=0, initial=0.0))
        return np.clip(needed, 0.0, 1.0)

    def mix_with_prior(self, distributions: FloatArray) -> FloatArray:
        """The prior, drawn as far as is allowed towards each of these distributions."""
        needed = self.prior_share(distributions)[:, None]
        return needed * self.prior + (1 - needed) * distributions

    def first_atoms(self) -> FloatArray:
        """The prior drawn towards every single input, which average to it; and towards every value's own inputs."""
        towards = np.eye(self.size)
        if not self.objective.is_identity:
            of_value = (self.objective.image_index == np.arange(self.objective.image_size)[:, None]) * self.prior
            towards = np.concatenate([towards, of_value / of_value.sum(axis=1, keepdims=True)])
        return self.mix_with_prior(towards)


def atom_keys(atoms: FloatArray) -> Iterator[bytes]:
    """What distinguishes atoms, up to rounding."""
    return (atom.tobytes() for atom in np.round(atoms, SETTINGS.tolerance.atom_digits) + 0.0)  # −0 becomes 0


@dataclass(frozen=True, slots=True, eq=False)
class EntropyFloor:
    """The least conditional entropy of the secret: Σ q H(A v) >= least."""

    secrets: FloatArray  # A: (c, d), P(S | input)
    least: float


@dataclass(frozen=True, slots=True, eq=False)
class InputPart:
    """A class of inputs, its mass, and the problem within it."""

    inputs: IntArray
    mass: float
    problem: Problem


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The best split that was found, and a lower bound on every split's value."""

    weights: FloatArray  # q_y, (b,)
    atoms: Matrix  # v_y, (b, d); sparse where it would fill the memory
    value: float  # Σ q_y cost(v_y)
    bound: float  # no split does better than this
    strategy: str = ""  # the line of the plan that was taken


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What a proof attempt yields: a bound that holds, and atoms met on the way."""

    bound: float  # cost(v) − prices·v >= bound for every allowed v
    atoms: FloatArray  # (k, d) allowed atoms, possibly none
