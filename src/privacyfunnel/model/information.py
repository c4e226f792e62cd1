"""Entropy and mutual information, in nats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from privacyfunnel.arrays import entropy_terms

if TYPE_CHECKING:
    from privacyfunnel.model.credal.credal_sets import Comparable
    from privacyfunnel.model.joint import Joint


def entropy(p: ArrayLike) -> float:
    r""":math:`H(p) = -\sum_i p_i \ln p_i`.

    >>> round(entropy([0.5, 0.5]), 6)
    0.693147
    """
    return float(entropy_terms(p).sum())


def information(p_xy: ArrayLike) -> float:
    r""":math:`I(X;Y) = \sum_{x,y} p(x,y) \ln \frac{p(x,y)}{p(x)p(y)}` of a matrix of joint probabilities.

    Summed as a divergence, term by term, so that a small I is not the difference of two large entropies.

    >>> information([[0.25, 0.25], [0.25, 0.25]])
    0.0
    """
    p_xy = np.asarray(p_xy, dtype=np.float64)
    p_x = p_xy.sum(axis=1, keepdims=True)
    p_y = p_xy.sum(axis=0, keepdims=True)
    seen = p_xy > 0
    ratio = np.divide(p_xy, p_x * p_y, out=np.ones_like(p_xy), where=seen & (p_x * p_y > 0))
    return max(0.0, float((p_xy * np.log(ratio)).sum()))


def mutual_information(joint: Joint, protocol: Comparable) -> float:
    """I(X;Y) in nats: how much a published record says about the original one."""
    return protocol.mutual_information(joint)
