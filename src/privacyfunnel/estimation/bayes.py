r"""The posterior of records: :math:`P(X = x \mid Y = y) = p_x q(y|x) / \sum_{x'} p_{x'} q(y|x')` under a prior p."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.estimation.observation import ObservationModel, Observations


def posteriors(model: ObservationModel, prior: FloatArray, outputs: NDArray[Any]) -> FloatArray:
    """P(X = x | Y = y) for each of n outputs, as n × a. An output that the prior excludes is judged without it."""
    chance = model.likelihood(Observations(len(outputs), np.zeros(0), outputs, np.ones(len(outputs)))).T
    joint = chance * prior
    impossible = joint.sum(axis=1) <= 0
    joint[impossible] = chance[impossible]
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def posterior_quantiles(
    model: ObservationModel, prior: FloatArray, outputs: NDArray[Any], uniform: FloatArray
) -> IntArray:
    """For each of n outputs the value at that quantile of its posterior, values in order."""
    distinct, which = np.unique(outputs, axis=0, return_inverse=True)
    which = which.reshape(-1)
    ends = posteriors(model, prior, distinct).cumsum(axis=1)
    ends[:, -1] = 1.0
    # All rows at once: output number k owns the stretch from k to k + 1.
    flat = (ends + np.arange(len(ends))[:, None]).ravel()
    at = np.searchsorted(flat, which + uniform, side="right")
    return np.asarray(np.minimum(at - which * ends.shape[1], ends.shape[1] - 1))
