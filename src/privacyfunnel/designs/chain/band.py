r"""The band in which a chain keeps the secret's posterior, relative to its prior.

With :math:`r_s = P(s \mid y^1, …, y^j) / p_s`, what was published so far is allowed iff for some t > 0

.. math:: t e^{-\varepsilon} \le r_s \le t e^{\varepsilon} \quad\text{for every } s.

LIP of size ε is the band that stands at t = 1. LDP of size 2ε is the band that slides: any two :math:`r_s` are within
:math:`e^{2\varepsilon}` of each other exactly when some t has them all within :math:`e^{\pm\varepsilon}` of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.promises import LDP, LIP, Promise

SLACK = 5e-10  # of log-ratio: how far rounding may carry an output beyond the band that was solved
# The promises that are bands: what share of their ε the band has, and whether it slides.
_BANDS: dict[type[Promise], tuple[float, bool]] = {LIP: (1.0, False), LDP: (0.5, True)}


@dataclass(frozen=True, slots=True)
class Band:
    """Ratios within e^±ε of 1, or of whatever suits them where the band slides."""

    epsilon: float
    slides: bool = False

    @classmethod
    def of(cls, promise: Promise) -> Band:
        """The band that is the promise, where there is one."""
        kind = type(promise)
        if kind not in _BANDS:
            raise ParameterError(
                f"A chain keeps LIP or LDP; {promise.name} was asked. Use the methods optimal or product, or promise "
                "LIP or LDP."
            )
        share, slides = _BANDS[kind]
        return cls(share * promise.epsilon, slides)

    @property
    def loud(self) -> float:
        """e^ε."""
        return math.exp(self.epsilon)

    @property
    def looser(self) -> Band:
        """What rounding may make of it."""
        return Band(self.epsilon + SLACK, self.slides)

    def holds(self, ratio: FloatArray, axis: int) -> BoolArray:
        """Whether the ratios along that axis lie in the band.

        >>> two = np.array([[1.5, 1.6], [2.0, 0.5]])
        >>> Band(0.3).holds(two, axis=1), Band(0.3, slides=True).holds(two, axis=1)
        (array([False, False]), array([ True, False]))
        """
        least, most = ratio.min(axis=axis), ratio.max(axis=axis)
        if self.slides:
            return np.asarray(most <= self.loud**2 * least)
        return np.asarray((most <= self.loud) & (least * self.loud >= 1))

    def middle(self, ratio: FloatArray) -> FloatArray:
        """A t that suits ratios in the band; they are in the last axis, which is kept."""
        if not self.slides:
            return np.ones((*ratio.shape[:-1], 1))
        return np.asarray(np.sqrt(ratio.min(axis=-1, keepdims=True) * ratio.max(axis=-1, keepdims=True)))


def chained(promise: Promise) -> bool:
    """Whether a chain can keep this promise."""
    return type(promise) in _BANDS
