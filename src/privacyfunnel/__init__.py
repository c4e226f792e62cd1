"""Publish a table without giving away its secret column.

>>> from privacyfunnel import Joint, LIP, mutual_information, randomised_response
>>> joint = Joint.from_counts([[3, 1], [1, 3]])
>>> protocol = randomised_response(joint, LIP(0.2))
>>> LIP(0.2).leakage(joint, protocol) <= 0.2
True

Names are imported when they are first used, so that `import privacyfunnel` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privacyfunnel.designs.explicit import conditional_reporting, randomised_response, unary_encoding
    from privacyfunnel.designs.optimum import Optimum, optimal
    from privacyfunnel.estimation import estimate
    from privacyfunnel.laws.sealing import SealedProtocol, seal
    from privacyfunnel.model.information import entropy, mutual_information
    from privacyfunnel.model.joint import Joint
    from privacyfunnel.model.promises import LDP, LIP, SRLIP
    from privacyfunnel.model.protocol import Protocol
    from privacyfunnel.release.sanitise import Release, sanitise

__version__ = "0.1.0"

_ROOMS = {
    "conditional_reporting": "designs.explicit",
    "entropy": "model.information",
    "estimate": "estimation",
    "Joint": "model.joint",
    "LDP": "model.promises",
    "LIP": "model.promises",
    "mutual_information": "model.information",
    "optimal": "designs.optimum",
    "Optimum": "designs.optimum",
    "Protocol": "model.protocol",
    "randomised_response": "designs.explicit",
    "Release": "release.sanitise",
    "sanitise": "release.sanitise",
    "seal": "laws.sealing",
    "SealedProtocol": "laws.sealing",
    "SRLIP": "model.promises",
    "unary_encoding": "designs.explicit",
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


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
