r"""How near the best unbiased estimates come to shares p: for :math:`\theta = w \cdot p` and n rows of a table

.. math:: n V = w^\top J^{-1} w - \textstyle\sum_x p_x w_x^2, \qquad J = M E^{-1} M^\top,

with M the means of the statistics and E their second moments (`observation`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privacyfunnel.arrays import SMALL, FloatArray, Matrix, dense, linalg, sparsify
from privacyfunnel.estimation.observation import ObservationModel

SINGULAR = 1e-12  # beside 1: what J is given where it has nothing, so that such errors are huge, and bounds take over
ROUNDING = 1e-9  # of n V: what is left of nothing


def unbiased_variances(model: ObservationModel, p: FloatArray, tables: Sequence[Matrix]) -> list[FloatArray]:
    """n V of every function of several tables (0-1, a × r each)."""
    root = np.sqrt(p)
    J = _information(model, p)
    J[np.diag_indices_from(J)] += SINGULAR
    inverse = _inverse_of_root(J)
    found = []
    for functions in tables:
        theta = p @ functions  # and Σ p w², what the rows themselves are: no noise
        # J⁻¹ = L⁻ᵀ L⁻¹, so that w·J⁻¹w is the square of L⁻¹w.
        whole = np.square(inverse @ sparsify(functions * root[:, None])).sum(axis=0)
        found.append(np.maximum(whole - theta - ROUNDING, 0.0))
    return found


def _information(model: ObservationModel, p: FloatArray) -> FloatArray:
    """√p J √p: what one row tells of the shares."""
    root, second = np.sqrt(p), model.second_moment(p)
    if second.ndim > 1:
        scaled = root[:, None] * model.means
        return np.asarray(scaled @ np.linalg.pinv(second, hermitian=True) @ scaled.T)
    told = np.divide(1.0, np.sqrt(second), out=np.zeros_like(second), where=second > 0)
    scaled = sparsify(model.means) * root[:, None] * told
    return np.asarray(dense(scaled @ scaled.T))


def _inverse_of_root(J: FloatArray) -> FloatArray:
    """L⁻¹ for J = L Lᵀ. That L is a triangle saves much where it is large, and a library to load where it is small."""
    L = np.linalg.cholesky(J)
    return np.linalg.inv(L) if L.size <= SMALL else np.asarray(linalg.lapack.dtrtri(L, lower=1)[0])
