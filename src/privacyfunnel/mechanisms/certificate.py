"""Figures as a public file states them: few digits, rounded to the side on which they stay true.

The last digits of a certificate are a function of everybody's secret, and whoever knows all other rows can compare them
(benchmarks attacks). Nobody needs them: a bound is as good if it is a little wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

PLACES = 4  # of nats
FIGURES = 4  # of an ε, which may be tiny


def round_nats_down(nats: float) -> float:
    """At most so many nats, in four places.

    >>> round_nats_down(0.99412039), round_nats_up(0.99412039)
    (0.9941, 0.9942)
    """
    stated = float(Decimal(str(nats)).quantize(Decimal(1).scaleb(-PLACES), ROUND_FLOOR))
    return min(stated, nats)


def round_nats_up(nats: float) -> float:
    """At least so many nats, in four places."""
    if not math.isfinite(nats):
        return nats
    stated = float(Decimal(str(nats)).quantize(Decimal(1).scaleb(-PLACES), ROUND_CEILING))
    return max(stated, nats)


def round_epsilon_up(epsilon: float, most: float) -> float:
    """At least ε in four figures, and never above `most`, for which it was checked.

    >>> round_epsilon_up(0.4999999, 0.5), round_epsilon_up(0.123456, 0.5), round_epsilon_up(0.49999, 0.49999)
    (0.5, 0.1235, 0.49999)
    """
    rounded = float(Context(prec=FIGURES, rounding=ROUND_CEILING).create_decimal(str(epsilon)))
    return min(max(rounded, epsilon), most)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was certified and measured: few digits, each rounded to the side on which it stays true."""

    epsilon: float
    information: float  # nats, as all that follow
    information_error: float
    entropy: float
    bound: float | None

    def to_json(self) -> dict[str, float | None]:
        """As it stands in the protocol file."""
        return {
            "epsilon": self.epsilon,
            "information_nats": self.information,
            "information_error_nats": self.information_error,
            "entropy_nats": self.entropy,
            "bound_nats": self.bound,
        }
