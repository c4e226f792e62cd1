"""Solvers: what finds the best protocol for a use, by the use's name. A new use has a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from privacyfunnel.designs.informative import most_informative
from privacyfunnel.designs.linear import by_linear_programme
from privacyfunnel.designs.question import Optimum, Question
from privacyfunnel.designs.statistics import balanced, best_conditioned

Solver = Callable[[Question], Optimum]

SOLVERS: Mapping[str, Solver] = MappingProxyType(
    {
        "information": most_informative,
        "values": by_linear_programme,
        "distance": by_linear_programme,
        "statistics": best_conditioned,
        "balanced": balanced,
    }
)
