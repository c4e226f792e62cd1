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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from privacyfunnel import errors
    from privacyfunnel.audits.pram import audit_matrix
    from privacyfunnel.audits.protocol_audit import audit
    from privacyfunnel.audits.scan import scan
    from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
    from privacyfunnel.designs.curve import Curve, curve
    from privacyfunnel.designs.methods import Effort
    from privacyfunnel.designs.optimal.optimum import Optimum, optimal
    from privacyfunnel.designs.optimal.privacy_funnel import Funnel, OnAverage, funnel, optimal_on_average
    from privacyfunnel.errors import GuaranteeError, InputError, PrivacyFunnelError
    from privacyfunnel.estimation import Estimates, combine, estimate, impute, impute_file, posterior, regress
    from privacyfunnel.mechanisms.sampling import RowKey
    from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
    from privacyfunnel.model.information import entropy, mutual_information
    from privacyfunnel.model.joint import CountedTable, Joint
    from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
    from privacyfunnel.model.protocols.channel_protocol import Protocol
    from privacyfunnel.model.uses.linear_use import Distance, Values
    from privacyfunnel.model.uses.statistics_use import Balanced, Statistics, Workload
    from privacyfunnel.model.uses.use import Information, Use
    from privacyfunnel.release.apply import Applied, apply, apply_file
    from privacyfunnel.release.design import DesignResult, design, design_file
    from privacyfunnel.release.estimator import Sanitiser
    from privacyfunnel.release.published_table import PublishedTable
    from privacyfunnel.release.release import Release
    from privacyfunnel.release.sanitise import sanitise, sanitise_file
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.coding.bins import Bins
    from privacyfunnel.tables.coding.domain_file import DomainFile
    from privacyfunnel.tables.coding.merges import Merge, MergeRare, MergeSecrets
    from privacyfunnel.tables.databases.query import Query
    from privacyfunnel.tables.readers.formats import Dialect
    from privacyfunnel.tables.readers.table_files import TableSource

__version__ = "0.1.0"

# Where each public name is at home.
_MODULES = {
    "Merge": "tables.coding.merges",
    "DomainFile": "tables.coding.domain_file",
    "RowKey": "mechanisms.sampling",
    "TableSource": "tables.readers.table_files",
    "audit_matrix": "audits.pram",
    "audit": "audits.protocol_audit",
    "scan": "audits.scan",
    "Curve": "designs.curve",
    "curve": "designs.curve",
    "conditional_reporting": "designs.baselines",
    "randomised_response": "designs.baselines",
    "Funnel": "designs.optimal.privacy_funnel",
    "OnAverage": "designs.optimal.privacy_funnel",
    "funnel": "designs.optimal.privacy_funnel",
    "optimal_on_average": "designs.optimal.privacy_funnel",
    "Effort": "designs.methods",
    "Optimum": "designs.optimal.optimum",
    "optimal": "designs.optimal.optimum",
    "GuaranteeError": "errors",
    "InputError": "errors",
    "PrivacyFunnelError": "errors",
    "Estimates": "estimation",
    "combine": "estimation",
    "estimate": "estimation",
    "impute": "estimation",
    "impute_file": "estimation",
    "posterior": "estimation",
    "regress": "estimation",
    "SealedProtocol": "mechanisms.sealing",
    "seal": "mechanisms.sealing",
    "entropy": "model.information",
    "mutual_information": "model.information",
    "Joint": "model.joint",
    "LDP": "model.promises",
    "LIP": "model.promises",
    "SRLIP": "model.promises",
    "Promise": "model.promises",
    "Protocol": "model.protocols.channel_protocol",
    "Distance": "model.uses.linear_use",
    "Values": "model.uses.linear_use",
    "Balanced": "model.uses.statistics_use",
    "Statistics": "model.uses.statistics_use",
    "Workload": "model.uses.statistics_use",
    "Information": "model.uses.use",
    "Use": "model.uses.use",
    "Applied": "release.apply",
    "Sanitiser": "release.estimator",
    "apply": "release.apply",
    "apply_file": "release.apply",
    "design": "release.design",
    "design_file": "release.design",
    "DesignResult": "release.design",
    "PublishedTable": "release.published_table",
    "Release": "release.release",
    "ReleaseSpec": "spec",
    "sanitise": "release.sanitise",
    "sanitise_file": "release.sanitise",
    "Bins": "tables.coding.bins",
    "Dialect": "tables.readers.formats",
    "Query": "tables.databases.query",
    "MergeRare": "tables.coding.merges",
    "MergeSecrets": "tables.coding.merges",
}

# Names in annotations of public classes and functions that their modules cannot import, for `typing.get_type_hints`.
_HINTS = {
    "spec.release_spec": {
        "Promise": "model.promises",
        "Use": "model.uses.use",
        "Progress": "designs.interface",
        "Options": "designs.interface",
        "Joint": "model.joint",
        "Merge": "tables.coding.merges",
        "Dialect": "tables.readers.formats",
        "Bins": "tables.coding.bins",
        "Orders": "model.uses.ordinal_scale",
        "TableSource": "tables.readers.table_files",
    },
    "model.information": {"Joint": "model.joint", "Comparable": "model.credal.credal_sets"},
    "tables.coding.merges": {"Coding": "tables.coding.coders"},
}

__all__ = [
    "LDP",
    "LIP",
    "SRLIP",
    "Applied",
    "Balanced",
    "Bins",
    "Curve",
    "DesignResult",
    "Dialect",
    "Distance",
    "DomainFile",
    "Effort",
    "Estimates",
    "Funnel",
    "GuaranteeError",
    "Information",
    "InputError",
    "Joint",
    "Merge",
    "MergeRare",
    "MergeSecrets",
    "OnAverage",
    "Optimum",
    "PrivacyFunnelError",
    "Promise",
    "Protocol",
    "PublishedTable",
    "Query",
    "Release",
    "ReleaseSpec",
    "RowKey",
    "Sanitiser",
    "SealedProtocol",
    "Statistics",
    "TableSource",
    "Use",
    "Values",
    "Workload",
    "apply",
    "apply_file",
    "audit",
    "audit_matrix",
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
    "randomised_response",
    "regress",
    "sanitise",
    "sanitise_file",
    "scan",
    "seal",
]


def count_frame(frame: object, **columns: Any) -> CountedTable:
    """The counts of a data frame, as `Joint.from_table` takes them."""
    from privacyfunnel.tables.readers.eager_frames import contingency_from_frame

    return contingency_from_frame(frame, **columns)


def render_report(release: Release) -> str:
    """The owner's page of a release, as `Release.report` shows it."""
    from privacyfunnel.report.release_page import frame_page

    return frame_page(release)


def write_pages(release: Release, folder: Path, **occasion: Any) -> list[str]:
    """Write the pages of a release into its folder while it is staged."""
    from privacyfunnel.report import release_page

    return release_page.write_pages(release, folder, **occasion)


def refuse_useless(design: DesignResult, real: float | None, spec: ReleaseSpec) -> None:
    """Refuse a release that would say nothing, with what would help."""
    from privacyfunnel.estimation import verdict

    verdict.refuse_useless(design, real, spec)


def save_release(release: Release, folder: Path, suffix: str, *, force: bool) -> Path:
    """Write the release of a frame into a folder, as `Release.save` does."""
    from privacyfunnel.release import release_contents

    return release_contents.save_release(release, folder, suffix, force=force)


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("privacyfunnel.errors")
    if name not in _MODULES:
        raise AttributeError(f"module 'privacyfunnel' has no attribute '{name}'")
    found = getattr(import_module(f"privacyfunnel.{_MODULES[name]}"), name)
    home = import_module(getattr(found, "__module__", __name__))
    for hinted, module in _HINTS.get(home.__name__.removeprefix("privacyfunnel."), {}).items():
        vars(home).setdefault(hinted, getattr(import_module(f"privacyfunnel.{module}"), hinted))
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
