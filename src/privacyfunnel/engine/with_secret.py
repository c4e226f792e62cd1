r"""Pricers for protocols that see S as well as X.

Inputs are the pairs (s, x) that occur, an atom v is a posterior over pairs, and its cost is the entropy of its
marginal m = T v over x. With prices λ the pricing problem is

.. math:: \min_{v \in V}\ H(T v) - \lambda\cdot v,

concave in m alone. By Gibbs' inequality :math:`H(m) = \min_t -\sum_x m_x \ln t_x` over distributions t, so a local
search alternates between the cheapest corner for costs :math:`-\ln t_x - \lambda_{s,x}` and t = m, and never
gets worse.
"""

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.problem import Pricing, Splitting
from privacyfunnel.engine.with_secret_branching import (
    Corners,
    marginal_ranges,
    marginals,
    prove_on_marginals,
    reduced_costs,
)
from privacyfunnel.engine.with_secret_lip import sees_secret_lip
from privacyfunnel.engine.with_secret_rows import SecretRows

ROUNDS = 12
FLOOR = 1e-6
IMPROVES = 1e-11
MOST_ATOMS = 128


class WithSecret:
    """Local search and branch and bound on the marginal of X, over any polytope with linear minima."""

    def __init__(self, corners: Corners, starts: int, steadiness: float) -> None:
        self.corners = corners
        self.steadiness = steadiness
        self._low, self._high = marginal_ranges(corners)
        self._starts = starts
        self._random = np.random.default_rng(1)
        self._good = np.empty((0, self._low.size))

    def start(self) -> FloatArray:
        """For every input an atom that gives it as much probability as any does, and its value most of the rest."""
        group = self.corners.group
        same_value = (group[:, None] == group).astype(np.float64)
        return self._minimise(-0.1 * same_value - np.eye(group.size))

    def search(self, prices: FloatArray) -> FloatArray:
        """Distinct atoms, best first, from sharp and random marginals and from those that were good before."""
        a = self._low.size
        sharp = np.eye(a)[self._random.permutation(a)[: self._starts]]
        share = self._random.random((self._starts, 1))
        one, other = np.eye(a)[self._random.integers(a, size=(2, self._starts))]
        mixed = share * one + (1 - share) * other
        spread = self._random.dirichlet(np.full(a, 0.3), self._starts)
        return self._descended(np.concatenate([sharp, mixed, spread, self._good]), prices)

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        proof = prove_on_marginals(self.corners, prices, (self._low, self._high), target, deadline)
        if not proof.atoms.shape[0]:
            return proof
        near = self._descended(marginals(proof.atoms, self.corners.group)[: self._starts], prices)
        return Pricing(proof.bound, np.concatenate([proof.atoms, near]))

    def _descended(self, t: FloatArray, prices: FloatArray) -> FloatArray:
        group = self.corners.group
        t = np.maximum(t, 1e-3)
        before = np.full(t.shape[0], np.inf)
        met = []
        for _ in range(ROUNDS):
            atoms = self._minimise(-np.log(np.maximum(t, FLOOR))[:, group] - prices)
            costs = reduced_costs(atoms, group, prices)
            better = costs < before - IMPROVES
            if not better.any():
                break
            met.append(atoms[better])
            t, before = marginals(atoms[better], group), costs[better]
        atoms = np.concatenate(met)
        _, first = np.unique(np.round(atoms, 10), axis=0, return_index=True)
        atoms = atoms[first]
        order = np.argsort(reduced_costs(atoms, group, prices), kind="stable")[:MOST_ATOMS]
        self._good = marginals(atoms[order[: self._starts]], group)
        return atoms[order]

    def _minimise(self, costs: FloatArray) -> FloatArray:
        chunk = self.corners.batch
        return np.concatenate(
            [self.corners.minimise(costs[i : i + chunk]).atoms for i in range(0, costs.shape[0], chunk)]
        )


def pricer_with_secret(problem: Splitting) -> WithSecret:
    """The pricer for inputs that are more than values: closed form for LIP, a linear solver for everything else."""
    box = sees_secret_lip(problem)
    if box is None:  # where each atom costs a linear programme, it is sought at the very prices it is wanted for
        return WithSecret(SecretRows(problem), starts=3, steadiness=0.0)
    return WithSecret(box, starts=96, steadiness=0.8)
