r"""LDP, LIP and SRLIP: what the owner promises about the secret.

LIP compares each secret with everybody, LDP each secret with each other one, SRLIP each secret with everybody among
those who share some attributes. A new promise is a class that says which groups of secrets it compares, among whom
(`asked`); all else follows from that (`promise.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privacyfunnel import plugins
from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.model.belief_bounds import factor_bounds, odds_bounds
from privacyfunnel.model.comparisons import GroupPairs, check_comparison_size
from privacyfunnel.model.promise_base import PROMISES, Population, PopulationPromise, PriorsPromise, Promise
from privacyfunnel.model.robust import RobustPromise

__all__ = [
    "LDP",
    "LIP",
    "PROMISES",
    "SRLIP",
    "MissingPromise",
    "Population",
    "PopulationPromise",
    "PriorsPromise",
    "Promise",
    "RobustPromise",
    "find_promise",
    "pairs_with_everybody",
    "resolve_promise",
    "secret_pairs",
    "stated_promise",
]


def pairs_with_everybody(c: int) -> tuple[BoolArray, IntArray]:
    """Each of c secrets against all of them: groups and pairs for `compared`."""
    check_comparison_size(c, c)
    return np.concatenate([np.eye(c, dtype=bool), np.ones((1, c), dtype=bool)]), np.array([[s, c] for s in range(c)])


def secret_pairs(c: int) -> tuple[BoolArray, IntArray]:
    """Each of c secrets against each other one."""
    check_comparison_size(c, c * (c - 1) // 2)
    return np.eye(c, dtype=bool), np.stack(np.triu_indices(c, 1), axis=1)


class LIP(Promise):
    r"""Local information privacy: :math:`e^{-\varepsilon} \le P(y|s) / P(y) \le e^{\varepsilon}`.

    Nobody's belief about the secret moves by more than a factor :math:`e^{\varepsilon}`.
    """

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        return factor_bounds(prior, epsilon)

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        if c > 1:
            yield GroupPairs(*pairs_with_everybody(c))


class LDP(Promise):
    r"""Local differential privacy w.r.t. the secret: :math:`P(y|s) \le e^{\varepsilon} P(y|s')`."""

    @property
    def for_any_belief(self) -> bool:
        return True

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        return odds_bounds(prior, epsilon)

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        if c > 1:
            yield GroupPairs(*secret_pairs(c))


class SRLIP(Promise):
    r"""Side-channel resistant LIP: LIP for everyone who already knows some attributes,

    .. math:: e^{-\varepsilon} \le P(y \mid s, x^J) / P(y \mid x^J) \le e^{\varepsilon}
       \quad\text{for every } J \subseteq \{1, …, m\} \text{ and } x^J.

    J = all attributes is empty for a protocol that sees only X. For one that sees S it is the case that matters.
    """

    @property
    def guards_known_attributes(self) -> bool:
        return True

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        return factor_bounds(prior, epsilon)

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        if c == 1:
            return
        for size in range(m + 1 if sees_secret else m):
            for known in combinations(range(m), size):
                yield GroupPairs(*pairs_with_everybody(c), known)


def resolve_promise(kind: Promise | str, epsilon: float | None = None) -> Promise:
    """A promise as Python users ask for it: by its name and ε, or as a value.

    >>> resolve_promise("lip", 0.5), resolve_promise(LDP(1))
    (LIP(epsilon=0.5), LDP(epsilon=1.0))
    """
    if not isinstance(kind, str):
        if epsilon is not None:
            raise ParameterError("a promise that is given as a value has its ε; another was given. Leave it out.")
        return kind
    if epsilon is None:
        raise ParameterError(f"a promise needs its ε; there is none. Say epsilon=1, or promise={kind.upper()}(1).")
    return find_promise(kind, check_epsilon(epsilon))


def find_promise(name: str, epsilon: float) -> Promise:
    """The promise of that name: lip, ldp, srlip, or one that another package adds."""
    kind = _find_kind(name.lower())
    if kind is None:
        known = ", ".join(dict.fromkeys((*PROMISES, *plugins.plugin_names(plugins.PROMISES))))
        raise ParameterError(f"A promise is one of {known}; there is none called '{name}'.")
    return kind(epsilon)


def stated_promise(name: str, epsilon: float) -> Promise:
    """The promise that a file names, which can be read where the package that adds it is missing."""
    kind = _find_kind(name.lower())
    return MissingPromise(epsilon, name) if kind is None else kind(epsilon)


def _find_kind(name: str) -> type[Promise] | None:
    if name in PROMISES:
        return PROMISES[name]
    loaded = plugins.load_plugin(plugins.PROMISES, name)
    if loaded is None:
        return None
    if not (isinstance(loaded, type) and issubclass(loaded, Promise) and loaded.__name__.lower() == name):
        raise ParameterError(f"The promise '{name}' of another package must be a class of that name; it is {loaded!r}.")
    return loaded


@dataclass(frozen=True)
class MissingPromise(Promise, named=False):
    """A promise by its name and size alone, as a file states it: it can be shown, and neither checked nor promised."""

    title: str

    @property
    def name(self) -> str:
        return self.title

    def with_epsilon(self, epsilon: float) -> MissingPromise:
        return MissingPromise(epsilon, self.title)

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        raise ParameterError(
            f"The promise '{self.title}' is added by a package that is not installed here. Install it to measure or "
            "check the promise; to estimate, or to draw rows without the secret, it is not needed."
        )
