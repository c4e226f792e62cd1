r"""The band in which a chain keeps the secret's posterior, relative to its prior.

With :math:`r_s = P(s \mid y^1, …, y^j) / p_s`, what was published so far is allowed iff for some t > 0

.. math:: t e^{-\varepsilon} \le r_s \le t e^{\varepsilon} \quad\text{for every } s.

LIP of size ε is the band that stands at t = 1. LDP of size 2ε is the band that slides: any two :math:`r_s` are within
:math:`e^{2\varepsilon}` of each other exactly when some t has them all within :math:`e^{\pm\varepsilon}` of it. So
are means of the :math:`r_s` then, and :math:`P(y \mid G) / P(y)` is such a mean for any group G of secrets: the band
keeps every promise of size 2ε that compares groups of secrets among everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

SLACK = 5e-10  # of log-ratio: how far rounding may carry an output beyond the band that was solved


@dataclass(frozen=True, slots=True)
class Band:
    """Ratios within e^±ε of 1, or of whatever suits them where the band slides."""

    epsilon: float
    slides: bool = False

    @classmethod
    def from_promise(cls, promise: Promise, joint: Joint) -> Band:
        """The band that keeps the promise, where there is one."""
        if promise.odds is not None:
            raise ParameterError(
                f"A chain is made for one prior; {hint('robust')} asks for others as well. Publish fewer columns, or "
                "use the method optimal."
            )
        if promise.population is not None:
            raise ParameterError(
                "A chain has contexts that few rows come to, too few to say anything of the people they stand for; a "
                "promise for a population was asked. Publish fewer columns, or use the method optimal."
            )
        band = _band(promise, joint)
        if band is None:
            raise ParameterError(
                f"A chain keeps LIP or LDP; {promise.name} was asked. Use the method optimal, or promise LIP or LDP."
            )
        return band

    @property
    def ratio_bound(self) -> float:
        """e^ε."""
        return math.exp(self.epsilon)

    @property
    def outer_band(self) -> Band:
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
            return np.asarray(most <= self.ratio_bound**2 * least)
        return np.asarray((most <= self.ratio_bound) & (least * self.ratio_bound >= 1))

    def middle(self, ratio: FloatArray) -> FloatArray:
        """A t that suits ratios in the band; they are in the last axis, which is kept."""
        if not self.slides:
            return np.ones((*ratio.shape[:-1], 1))
        return np.asarray(np.sqrt(ratio.min(axis=-1, keepdims=True) * ratio.max(axis=-1, keepdims=True)))


def is_chainable(promise: Promise, joint: Joint) -> bool:
    """Whether a chain can keep this promise."""
    return _band(promise, joint) is not None


def _band(promise: Promise, joint: Joint) -> Band | None:
    """What is compared with everybody stands; what is compared otherwise among everybody slides, at half the size.

    A promise that looks further than that, at those who know attributes or at another prior, has more than one block.
    """
    if promise.population is not None or promise.odds is not None:
        return None
    blocks = list(islice(promise.comparisons(joint, False), 2))
    if len(blocks) > 1 or any(block.known for block in blocks):
        return None
    if not all(block.secrets.any(axis=1).all() for block in blocks):
        return None
    least = min((float(block.scales.min()) for block in blocks if block.scales is not None), default=1.0)
    if all(block.secrets[block.pairs[:, 1]].all() and not block.mixed for block in blocks):
        return Band(promise.epsilon * least)
    return Band(promise.epsilon * least / 2, slides=True)
