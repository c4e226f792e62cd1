r"""Bounds from fewer secrets, for problems too large to be proved by branching (docs/theory.md, Theorem 7a).

A promise about every secret holds for groups of secrets as well: with :math:`L_s \cdot v = P(s|v)/P(s)`,

.. math:: \frac{P(G|v)}{P(G)} = \sum_{s\in G} \frac{P(s)}{P(G)}\, L_s \cdot v \in [e^{-\varepsilon}, e^{\varepsilon}],

so the polytope of the groups contains that of the secrets, and its cheapest split costs no more. With two groups every
vertex is one value or a pair, and the cheapest split is found and proved at once; each group more costs more time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.polytope import compared_with_each_other, compared_with_everybody, dense
from privacyfunnel.engine.problem import Splitting

WHOLE = 1e-9  # how far the secrets' probabilities may be from adding up


@dataclass(frozen=True, slots=True, eq=False)
class Secrets:
    """L_s and P(s), and whether secrets are compared with each other rather than with everybody."""

    problem: Splitting
    functionals: FloatArray  # (c, d)
    mass: FloatArray  # (c,)
    paired: bool

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.mass)

    def grouped(self, groups: Sequence[Sequence[int]]) -> Splitting:
        """The problem in which only groups of secrets are compared."""
        L = np.array([self.mass[list(g)] @ self.functionals[list(g)] / self.mass[list(g)].sum() for g in groups])
        if self.paired:
            one, other = np.triu_indices(len(groups), 1)
            N, D = L[one], L[other]
        else:
            N, D = L, np.ones_like(L)
        return Splitting(self.problem.prior, self.problem.group, N, D, self.problem.epsilon)

    def singled_out(self, few: Sequence[int]) -> Splitting:
        """The problem in which these secrets stay as they are, and all others are one group."""
        others = [s for s in range(self.count) if s not in few]
        return self.grouped([*([s] for s in few), others])


def secrets_of(problem: Splitting) -> Secrets | None:
    """The secrets behind the rows, where each is compared with everybody (LIP) or with each other (LDP)."""
    paired = not compared_with_everybody(problem)
    L = compared_with_each_other(problem) if paired else dense(problem.numerators)
    if L is None:
        return None
    from scipy.optimize import nnls

    mass, error = nnls(L.T, np.ones(L.shape[1]))
    used = mass > 0
    if error > WHOLE or used.sum() < 3:
        return None
    return Secrets(problem, L[used], mass[used], paired)


def ever_finer(secrets: Secrets, costs: FloatArray) -> Iterator[Splitting]:
    """Ever more secrets singled out, in the order of what each costs on its own, the dearest first."""
    order = np.argsort(-costs).tolist()
    for few in range(3, secrets.count, 2):
        yield secrets.singled_out(order[:few])
