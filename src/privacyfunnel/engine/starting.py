"""Atoms to start from: the prior, drawn as far as is allowed towards a single input or a single value.

Along the segment from p, which is allowed, to a distribution u, row i holds up to

    t = g(p) / (g(p) - g(u)),   g(v) = N_i·v - e^ε D_i·v  (and the reverse),   where g(u) > 0.

The atoms towards every single input average to p, so the master has a split of its own from the first round on; those
towards p(·|x) are what a protocol that sees the secret would publish about X.
"""

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.problem import Splitting


def contracted(problem: Splitting) -> FloatArray:
    """(k, d) allowed atoms, among them some that average to the prior."""
    p, group = problem.prior, problem.group
    towards = np.eye(p.size)
    if not problem.sees_values_only:
        of_value = (group[None, :] == np.unique(group)[:, None]) * p
        towards = np.concatenate([towards, of_value / of_value.sum(axis=1, keepdims=True)])
    return drawn_towards(problem, towards)


def drawn_towards(problem: Splitting, towards: FloatArray) -> FloatArray:
    """The prior, drawn as far as is allowed towards each of these distributions."""
    reach = reaches(problem, towards)[:, None]
    return (1 - reach) * problem.prior + reach * towards


def reaches(problem: Splitting, towards: FloatArray) -> FloatArray:
    """How far from the prior to each of these distributions is allowed, between 0 and 1."""
    p = problem.prior
    n, d = problem.numerators, problem.denominators
    factor = np.exp(problem.epsilon)
    reach = np.ones(len(towards))
    for one, other in ((n, d), (d, n)):
        at_prior = np.minimum(np.asarray(one @ p - factor * (other @ p)), 0.0)[:, None]  # above 0 by rounding alone
        at_end = np.asarray(one @ towards.T - factor * (other @ towards.T))
        room = np.divide(at_prior, at_prior - at_end, out=np.ones_like(at_end), where=at_end > 0)
        reach = np.minimum(reach, room.min(axis=0, initial=1.0))
    return np.clip(reach, 0.0, 1.0)
