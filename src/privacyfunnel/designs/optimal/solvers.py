"""Solvers: what finds the best protocol for a use, by the use's name. A new use has a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from privacyfunnel.designs.optimal.information_solver import maximise_information
from privacyfunnel.designs.optimal.linear_solver import minimise_expected_cost
from privacyfunnel.designs.optimal.solver_interface import Optimum, SolverRequest
from privacyfunnel.designs.optimal.statistics_solver import minimise_balanced_error, minimise_squared_error

Solver = Callable[[SolverRequest], Optimum]

SOLVERS: Mapping[str, Solver] = MappingProxyType(
    {
        "information": maximise_information,
        "values": minimise_expected_cost,
        "distance": minimise_expected_cost,
        "statistics": minimise_squared_error,
        "balanced": minimise_balanced_error,
    }
)
