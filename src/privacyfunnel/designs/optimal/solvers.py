"""Solvers: what finds the best protocol for a use, by the name of the use, or by its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from privacyfunnel.designs.optimal.information_solver import maximise_information
from privacyfunnel.designs.optimal.linear_solver import minimise_expected_cost
from privacyfunnel.designs.optimal.solver_interface import Optimum, SolverRequest
from privacyfunnel.designs.optimal.statistics_solver import minimise_balanced_error, minimise_squared_error
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.uses.linear_use import LinearUse
from privacyfunnel.model.uses.use import Use

Solver = Callable[[SolverRequest], Optimum]


def find_solver(use: Use) -> Solver:
    """The solver of a use: by its name, or for one of another package by its kind."""
    named = SOLVERS.get(use.name)
    if named is not None:
        return named
    if isinstance(use, LinearUse):
        return minimise_expected_cost
    raise ParameterError(f"No solver finds the best protocol for '{use.full_name}'. Name a method that serves it.")


SOLVERS: Mapping[str, Solver] = MappingProxyType(
    {
        "information": maximise_information,
        "values": minimise_expected_cost,
        "distance": minimise_expected_cost,
        "statistics": minimise_squared_error,
        "balanced": minimise_balanced_error,
    }
)
