r"""From atoms that do not cover the prior to a split, to rounding: what is left over is handed out.

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

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.information import entropy_terms


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
