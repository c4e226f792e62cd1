"""Publish a table without giving away its secret column.

>>> from privacyfunnel import Joint, LIP, mutual_information, randomised_response
>>> joint = Joint.from_counts([[3, 1], [1, 3]])
>>> protocol = randomised_response(joint, LIP(0.2))
>>> LIP(0.2).leakage(joint, protocol) <= 0.2
True

Names are imported when they are first used, so that `import privacyfunnel` costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privacyfunnel.estimation import estimate
    from privacyfunnel.explicit import conditional_reporting, randomised_response, unary_encoding
    from privacyfunnel.information import entropy, mutual_information
    from privacyfunnel.joint import Joint
    from privacyfunnel.optimal import Optimum, optimal
    from privacyfunnel.promises import LDP, LIP, SRLIP
    from privacyfunnel.protocol import Protocol
    from privacyfunnel.release import Release, sanitise
    from privacyfunnel.sealing import SealedProtocol, seal

__version__ = "0.1.0"

_ROOMS = {
    "conditional_reporting": "explicit",
    "entropy": "information",
    "estimate": "estimation",
    "Joint": "joint",
    "LDP": "promises",
    "LIP": "promises",
    "mutual_information": "information",
    "optimal": "optimal",
    "Optimum": "optimal",
    "Protocol": "protocol",
    "randomised_response": "explicit",
    "Release": "release",
    "sanitise": "release",
    "seal": "sealing",
    "SealedProtocol": "sealing",
    "SRLIP": "promises",
    "unary_encoding": "explicit",
}

__all__ = [
    "LDP",
    "LIP",
    "SRLIP",
    "Joint",
    "Optimum",
    "Protocol",
    "Release",
    "SealedProtocol",
    "conditional_reporting",
    "entropy",
    "estimate",
    "mutual_information",
    "optimal",
    "randomised_response",
    "sanitise",
    "seal",
    "unary_encoding",
]


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'privacyfunnel' has no attribute '{name}'")
    return getattr(import_module(f"privacyfunnel.{_ROOMS[name]}"), name)


class _Package(ModuleType):
    """Keeps `privacyfunnel.optimal` the function: importing a room would bind the module under the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _ROOMS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
