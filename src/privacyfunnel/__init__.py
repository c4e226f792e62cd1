"""Publish a table without giving away its secret column.

>>> from privacyfunnel import Joint, LIP, mutual_information, randomised_response
>>> joint = Joint.from_counts([[3, 1], [1, 3]])
>>> protocol = randomised_response(joint, LIP(0.2))
>>> LIP(0.2).leakage(joint, protocol) <= 0.2
True

A data steward needs `scan`, `sanitise` (or `sanitise_file`) and `audit`; an analyst `estimate`, `impute`, `posterior`;
a researcher `Joint`, the promises, `optimal`, `curve`, the other protocols and `seal`. All errors are in `errors`.

Names are imported when they are first used, so that `import privacyfunnel` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privacyfunnel import errors
    from privacyfunnel.audits.matrix import audit_matrix
    from privacyfunnel.designs.chain.order import chain_protocol
    from privacyfunnel.designs.curve import Curve, curve
    from privacyfunnel.designs.explicit import conditional_reporting, randomised_response, unary_encoding
    from privacyfunnel.designs.funnel import Funnel, OnAverage, funnel, optimal_on_average
    from privacyfunnel.designs.methods import Effort
    from privacyfunnel.designs.optimum import Optimum, optimal
    from privacyfunnel.designs.product.budgets import product_protocol
    from privacyfunnel.errors import GuaranteeError, InputError, PrivacyFunnelError
    from privacyfunnel.estimation import Estimates, combine, impute_file, posterior
    from privacyfunnel.laws.sealing import SealedProtocol, seal
    from privacyfunnel.library.doors import (
        apply,
        apply_file,
        audit,
        design,
        design_file,
        estimate,
        impute,
        sanitise,
        sanitise_file,
        scan,
    )
    from privacyfunnel.library.release import Release
    from privacyfunnel.model.information import entropy, mutual_information
    from privacyfunnel.model.joint import Joint
    from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
    from privacyfunnel.model.protocol import Protocol
    from privacyfunnel.model.unary_encoding import UnaryEncoding
    from privacyfunnel.model.uses.linear import Distance, Values
    from privacyfunnel.model.uses.statistics import Balanced, Statistics, Workload
    from privacyfunnel.model.uses.use import Information, Use
    from privacyfunnel.release.apply import Applied
    from privacyfunnel.release.estimator import Sanitiser
    from privacyfunnel.release.order import Order
    from privacyfunnel.tables.bins import Bins
    from privacyfunnel.tables.databases.query import Query
    from privacyfunnel.tables.dialect import Dialect
    from privacyfunnel.tables.merging import MergeRare, MergeSecrets

__version__ = "0.1.0"

# Where each public name is at home.
_ROOMS = {
    "audit_matrix": "audits.matrix",
    "audit": "library.doors",
    "scan": "library.doors",
    "chain_protocol": "designs.chain.order",
    "Curve": "designs.curve",
    "curve": "designs.curve",
    "conditional_reporting": "designs.explicit",
    "randomised_response": "designs.explicit",
    "unary_encoding": "designs.explicit",
    "Funnel": "designs.funnel",
    "OnAverage": "designs.funnel",
    "funnel": "designs.funnel",
    "optimal_on_average": "designs.funnel",
    "Effort": "designs.methods",
    "Optimum": "designs.optimum",
    "optimal": "designs.optimum",
    "product_protocol": "designs.product.budgets",
    "GuaranteeError": "errors",
    "InputError": "errors",
    "PrivacyFunnelError": "errors",
    "Estimates": "estimation",
    "combine": "estimation",
    "estimate": "library.doors",
    "impute": "library.doors",
    "impute_file": "estimation",
    "posterior": "estimation",
    "SealedProtocol": "laws.sealing",
    "seal": "laws.sealing",
    "entropy": "model.information",
    "mutual_information": "model.information",
    "Joint": "model.joint",
    "LDP": "model.promises",
    "LIP": "model.promises",
    "SRLIP": "model.promises",
    "Promise": "model.promises",
    "Protocol": "model.protocol",
    "UnaryEncoding": "model.unary_encoding",
    "Distance": "model.uses.linear",
    "Values": "model.uses.linear",
    "Balanced": "model.uses.statistics",
    "Statistics": "model.uses.statistics",
    "Workload": "model.uses.statistics",
    "Information": "model.uses.use",
    "Use": "model.uses.use",
    "Applied": "release.apply",
    "Sanitiser": "release.estimator",
    "apply": "library.doors",
    "apply_file": "library.doors",
    "design": "library.doors",
    "design_file": "library.doors",
    "Order": "release.order",
    "Release": "library.release",
    "sanitise": "library.doors",
    "sanitise_file": "library.doors",
    "Bins": "tables.bins",
    "Dialect": "tables.dialect",
    "Query": "tables.databases.query",
    "MergeRare": "tables.merging",
    "MergeSecrets": "tables.merging",
}

__all__ = [
    "LDP",
    "LIP",
    "SRLIP",
    "Applied",
    "Balanced",
    "Bins",
    "Curve",
    "Dialect",
    "Distance",
    "Effort",
    "Estimates",
    "Funnel",
    "GuaranteeError",
    "Information",
    "InputError",
    "Joint",
    "MergeRare",
    "MergeSecrets",
    "OnAverage",
    "Optimum",
    "Order",
    "PrivacyFunnelError",
    "Promise",
    "Protocol",
    "Query",
    "Release",
    "Sanitiser",
    "SealedProtocol",
    "Statistics",
    "UnaryEncoding",
    "Use",
    "Values",
    "Workload",
    "apply",
    "apply_file",
    "audit",
    "audit_matrix",
    "chain_protocol",
    "combine",
    "conditional_reporting",
    "curve",
    "design",
    "design_file",
    "entropy",
    "errors",
    "estimate",
    "funnel",
    "impute",
    "impute_file",
    "mutual_information",
    "optimal",
    "optimal_on_average",
    "posterior",
    "product_protocol",
    "randomised_response",
    "sanitise",
    "sanitise_file",
    "scan",
    "seal",
    "unary_encoding",
]


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("privacyfunnel.errors")
    if name not in _ROOMS:
        raise AttributeError(f"module 'privacyfunnel' has no attribute '{name}'")
    return getattr(import_module(f"privacyfunnel.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
