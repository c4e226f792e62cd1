r"""LIP, PML, ALIP, LDP and SRLIP: what the owner promises about the secret.

LIP compares each secret with everybody, PML the same one way up, ALIP with an ε for either way; LDP each secret with
each other one, SRLIP each secret with everybody among those who share some attributes. Promises that look at the
secret's values are in labelled_promises.py. A new promise is a class that says which groups of secrets it compares,
among whom (`group_pairs`); all else follows from that (promise_base.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from privacyfunnel import plugins
from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import GroupPairs, check_comparison_size, factor_bounds, odds_bounds, scale_below
from privacyfunnel.model.composable import ComposablePromise
from privacyfunnel.model.each_secret import Each
from privacyfunnel.model.labelled_promises import Events, GradedLDP, InteriorPML
from privacyfunnel.model.promise_base import PROMISES, Population, PopulationPromise, PriorsPromise, Promise
from privacyfunnel.model.robust import RobustPromise

__all__ = [
    "ALIP",
    "LDP",
    "LIP",
    "PML",
    "PROMISES",
    "SRLIP",
    "YARDSTICKS",
    "ComposablePromise",
    "Each",
    "Events",
    "GradedLDP",
    "InteriorPML",
    "MissingPromise",
    "Population",
    "PopulationPromise",
    "PriorsPromise",
    "Promise",
    "RobustPromise",
    "find_promise",
    "fixes_epsilon",
    "pairs_with_everybody",
    "resolve_promise",
    "secret_pairs",
    "stated_promise",
]


# What ldp:… and pml:… ask for, where something stands behind the name.
WITH_ARGUMENT: Mapping[str, type[Promise]] = {"ldp": GradedLDP, "pml": InteriorPML}


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


class PML(Promise):
    r"""Pointwise maximal leakage: :math:`P(y|s) / P(y) \le e^{\varepsilon}`, so that no belief in a value of the secret
    rises by more than that factor. How far one may fall is not promised. It is β-likeness with β = e^ε − 1.
    """

    @property
    def meaning(self) -> str:
        return (
            "Seeing a record, a belief in a value of {secret} rises by a factor of at most {factor}, "
            "compared with its frequency {where}. How far it may fall is not promised."
        )

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        return factor_bounds(prior, epsilon, math.inf)

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        if c > 1:
            yield GroupPairs(*pairs_with_everybody(c), scales=np.tile([1.0, np.inf], (c, 1)))


@dataclass(frozen=True, init=False)
class ALIP(Promise):
    r"""Asymmetric LIP: :math:`e^{-\varepsilon_{low}} \le P(y|s) / P(y) \le e^{\varepsilon_{up}}`, ε the larger."""

    asked_as: ClassVar[str] = "alip:0.5,1"
    lower: float
    upper: float

    def __init__(self, lower: float, upper: float) -> None:
        lower, upper = check_epsilon(lower), check_epsilon(upper)
        if not (lower > 0 and upper > 0):
            raise ParameterError(
                f"ALIP needs two sizes above 0; got {lower:g} and {upper:g}. With one of them 0, so is the other: "
                "promise LIP."
            )
        for name, value in (("epsilon", max(lower, upper)), ("lower", lower), ("upper", upper)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_text(cls, argument: str, epsilon: float | None) -> ALIP:
        try:
            lower, upper = map(float, argument.split(","))
        except ValueError:
            raise ParameterError(
                f"alip needs two sizes, by how much a belief may fall and rise: alip:0.5,1; got 'alip:{argument}'."
            ) from None
        if epsilon is not None:
            raise ParameterError(f"alip:{argument} already fixes ε; drop {hint('epsilon')}.")
        return cls(lower, upper)

    @classmethod
    def fixes_epsilon(cls, argument: str) -> bool:
        return True

    @property
    def text(self) -> str:
        return f"alip:{self.lower!r},{self.upper!r}"

    @classmethod
    def from_parameters(cls, epsilon: float, parameters: Mapping[str, Any]) -> ALIP:
        found = cls(float(parameters["lower"]), float(parameters["upper"]))
        if found.epsilon != epsilon:
            raise ParameterError("the ε of ALIP must be the larger of its two sizes; it is not.")
        return found

    @property
    def parameters(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    def smallest_scale(self, secrets: Sequence[str]) -> float:
        return min(self._scales)

    @property
    def _scales(self) -> tuple[float, float]:
        return scale_below(self.upper, self.epsilon), scale_below(self.lower, self.epsilon)

    def with_epsilon(self, epsilon: float) -> ALIP:
        up, down = self._scales
        return ALIP(epsilon * down, epsilon * up)

    @property
    def meaning(self) -> str:
        share, of = ("rise", "fall") if self.upper >= self.lower else ("fall", "rise")
        return (
            "Seeing a record, a belief about {secret} can " + share + " by a factor of at most {factor}, and "
            f"{of} by at most that to the power of {min(self._scales):.3g}, compared with its frequency {{where}}."
        )

    def belief_bounds(self, prior: float, epsilon: float) -> tuple[float, float]:
        up, down = self._scales
        return factor_bounds(prior, epsilon * up, epsilon * down)

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        if c > 1:
            yield GroupPairs(*pairs_with_everybody(c), scales=np.tile(self._scales, (c, 1)))


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


YARDSTICKS: Mapping[str, type[Promise]] = {"lip": LIP, "ldp": LDP, "srlip": SRLIP}  # by which a protocol is measured


def resolve_promise(kind: Promise | str, epsilon: float | None = None) -> Promise:
    """A promise as Python users ask for it: by its name and ε, or as a value.

    >>> resolve_promise("lip", 0.5), resolve_promise(LDP(1))
    (LIP(epsilon=0.5), LDP(epsilon=1.0))
    """
    if not isinstance(kind, str):
        if epsilon is not None:
            raise ParameterError(f"{kind!r} already fixes ε; drop epsilon=.")
        return kind
    if epsilon is None:
        raise ParameterError(f"A promise needs its ε; none was given. Say epsilon=1, or promise={kind.upper()}(1).")
    return find_promise(kind, check_epsilon(epsilon))


def find_promise(text: str, epsilon: float | None = None) -> Promise:
    """The promise of that text: lip, pml, alip:0.5,1, ldp, ldp:graded.csv, …, or one that another package adds."""
    kind, argument = _parse_text(text)
    return kind.from_text(argument, epsilon)


def fixes_epsilon(text: str) -> bool:
    """Whether the text of a promise says its ε, as alip:0.5,1 does."""
    kind, argument = _parse_text(text)
    return kind.fixes_epsilon(argument)


def stated_promise(name: str, epsilon: float, parameters: Mapping[str, Any] = MappingProxyType({})) -> Promise:
    """The promise that a file names, which can be read where the package that adds it is missing."""
    kind = _find_kind(name.lower())
    if kind is None:
        return MissingPromise(epsilon, name, json.dumps(dict(parameters)))
    return kind.from_parameters(epsilon, parameters)


def _parse_text(text: str) -> tuple[type[Promise], str]:
    name, _, argument = text.partition(":")
    kind = WITH_ARGUMENT.get(name.lower()) if argument else None
    kind = _find_kind(name.lower()) if kind is None else kind
    if kind is None:
        plain = [name for name, each in PROMISES.items() if not each.asked_as]
        with_more = (each.asked_as for each in PROMISES.values() if each.asked_as)
        known = ", ".join(dict.fromkeys((*plain, *plugins.plugin_names(plugins.PROMISES), *with_more)))
        raise ParameterError(f"A promise is one of {known}; there is none called '{name}'.")
    return kind, argument


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
    stated: str = "{}"  # its parameters, as the file has them

    @property
    def name(self) -> str:
        return self.title

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(json.loads(self.stated))

    def with_epsilon(self, epsilon: float) -> MissingPromise:
        return MissingPromise(epsilon, self.title, self.stated)

    def group_pairs(self, c: int, m: int, sees_secret: bool) -> Iterator[GroupPairs]:
        raise ParameterError(
            f"The promise '{self.title}' is added by a package that is not installed here. Install it to measure or "
            "check the promise; to estimate, or to draw rows without the secret, it is not needed."
        )
