"""By how much somebody's odds may differ from a model's, and the boxes of priors that follow (`model/robust.py`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.events import tighten_box

ANY = "any"


@dataclass(frozen=True, slots=True)
class OddsRange:
    """By which factor somebody's odds may differ from the model's; None is any."""

    factor: Fraction | None

    @classmethod
    def parse(cls, text: object) -> OddsRange:
        """The range that a request or a file names: a number from 1, or `any`.

        >>> OddsRange.parse("1.5"), str(OddsRange.parse("any"))
        (OddsRange(factor=Fraction(3, 2)), 'any')
        """
        if text == ANY:
            return cls(None)
        try:
            factor = Fraction(str(text))
        except (ValueError, ZeroDivisionError):
            factor = Fraction(0)
        if factor < 1:
            raise ParameterError(f"Odds may differ by a factor of at least 1, or by '{ANY}'; got '{text}'.")
        return cls(factor)

    def __str__(self) -> str:
        return ANY if self.factor is None else str(self.factor)

    def people(self, prior: str) -> str:
        """Whom it covers, in words; `prior` is what they are compared with.

        >>> OddsRange(Fraction(2)).people("the model")[:60]
        'everybody who agrees with the model on all shares and whose '
        """
        if self.factor is None:
            return f"everybody who agrees with {prior} on the shares of the secret and of what is published"
        return (
            f"everybody who agrees with {prior} on all shares and whose odds of the secret, given what is published, "
            f"differ by a factor of at most {float(self.factor):g}"
        )

    def conditional_bounds(self, event: int, everybody: int) -> tuple[Fraction, Fraction]:
        """The least and the largest p′(E | x) where p(E | x) is the quotient of these two.

        >>> OddsRange(Fraction(2)).conditional_bounds(1, 3)
        (Fraction(1, 5), Fraction(1, 2))
        """
        if self.factor is None:
            return Fraction(0), Fraction(1)
        others, gamma = everybody - event, self.factor
        return Fraction(event) / (event + gamma * others), gamma * event / (gamma * event + others)

    def box(self, event: NDArray[Any], everybody: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """The bounds on P′(x | E), rounded outwards, from the weights of E and of everybody by x."""
        whole, low, high = sum(map(int, event)), [], []
        for mine, all_of_them in zip(map(int, event), map(int, everybody), strict=True):
            least, most = (all_of_them * bound / whole for bound in self.conditional_bounds(mine, all_of_them))
            low.append(math.floor(least * SCALE))
            high.append(min(math.ceil(most * SCALE), SCALE))
        return tighten_box(np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))
