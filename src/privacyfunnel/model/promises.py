r"""LDP, LIP and SRLIP: what the owner promises about the secret.

LIP compares each secret with everybody, LDP each secret with each other one, SRLIP each secret with everybody among
those who share some attributes. A new promise is a class that says which groups of secrets it compares, among whom
(`asked`); all else follows from that (`promise.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ParameterError, checked_epsilon
from privacyfunnel.model.beliefs import by_a_factor, by_odds
from privacyfunnel.model.comparisons import Asked, checked_comparisons
from privacyfunnel.model.promise import PROMISES, ForPopulation, ForPriors, Population, Promise

__all__ = [
    "LDP",
    "LIP",
    "PROMISES",
    "SRLIP",
    "ForPopulation",
    "ForPriors",
    "Population",
    "Promise",
    "against_everybody",
    "each_other",
    "promise",
    "promised",
]


def against_everybody(c: int) -> tuple[BoolArray, IntArray]:
    """Each of c secrets against all of them: groups and pairs for `compared`."""
    checked_comparisons(c, c)
    return np.concatenate([np.eye(c, dtype=bool), np.ones((1, c), dtype=bool)]), np.array([[s, c] for s in range(c)])


def each_other(c: int) -> tuple[BoolArray, IntArray]:
    """Each of c secrets against each other one."""
    checked_comparisons(c, c * (c - 1) // 2)
    return np.eye(c, dtype=bool), np.stack(np.triu_indices(c, 1), axis=1)


class LIP(Promise):
    r"""Local information privacy: :math:`e^{-\varepsilon} \le P(y|s) / P(y) \le e^{\varepsilon}`.

    Nobody's belief about the secret moves by more than a factor :math:`e^{\varepsilon}`.
    """

    def movable(self, prior: float, epsilon: float) -> tuple[float, float]:
        return by_a_factor(prior, epsilon)

    def asked(self, c: int, m: int, sees_secret: bool) -> Iterator[Asked]:
        if c > 1:
            yield Asked(*against_everybody(c))


class LDP(Promise):
    r"""Local differential privacy w.r.t. the secret: :math:`P(y|s) \le e^{\varepsilon} P(y|s')`."""

    @property
    def for_any_belief(self) -> bool:
        return True

    def movable(self, prior: float, epsilon: float) -> tuple[float, float]:
        return by_odds(prior, epsilon)

    def asked(self, c: int, m: int, sees_secret: bool) -> Iterator[Asked]:
        if c > 1:
            yield Asked(*each_other(c))


class SRLIP(Promise):
    r"""Side-channel resistant LIP: LIP for everyone who already knows some attributes,

    .. math:: e^{-\varepsilon} \le P(y \mid s, x^J) / P(y \mid x^J) \le e^{\varepsilon}
       \quad\text{for every } J \subseteq \{1, …, m\} \text{ and } x^J.

    J = all attributes is empty for a protocol that sees only X. For one that sees S it is the case that matters.
    """

    @property
    def guards_known_attributes(self) -> bool:
        return True

    def movable(self, prior: float, epsilon: float) -> tuple[float, float]:
        return by_a_factor(prior, epsilon)

    def asked(self, c: int, m: int, sees_secret: bool) -> Iterator[Asked]:
        if c == 1:
            return
        for size in range(m + 1 if sees_secret else m):
            for known in combinations(range(m), size):
                yield Asked(*against_everybody(c), known)


def promised(kind: Promise | str, epsilon: float | None = None) -> Promise:
    """A promise as Python users ask for it: by its name and ε, or as a value.

    >>> promised("lip", 0.5), promised(LDP(1))
    (LIP(epsilon=0.5), LDP(epsilon=1.0))
    """
    if not isinstance(kind, str):
        if epsilon is not None:
            raise ParameterError("a promise that is given as a value has its ε; another was given. Leave it out.")
        return kind
    if epsilon is None:
        raise ParameterError(f"a promise needs its ε; there is none. Say epsilon=1, or promise={kind.upper()}(1).")
    return promise(kind, checked_epsilon(epsilon))


def promise(name: str, epsilon: float) -> Promise:
    """The promise of that name: lip, ldp or srlip."""
    if name.lower() not in PROMISES:
        raise ParameterError(f"A promise is one of {', '.join(PROMISES)}; there is none called '{name}'.")
    return PROMISES[name.lower()](epsilon)
