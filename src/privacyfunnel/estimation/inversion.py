r"""Unbiased estimates: linear functions of what was seen whose mean is the share, whatever p is.

For weights g with :math:`M g = w`, the estimate :math:`\hat\theta = g \cdot \bar h` has mean :math:`w \cdot p` exactly.
Its exact covariance over n rows is

.. math:: \frac1n \sum_x p_x\, \mathrm{Cov}(g \cdot h \mid x) \quad\text{(the table's own shares)}, \qquad
   \text{plus } \frac1n (\mathrm{diag}(p) - p p^T) \quad\text{(a population's)}.

Where the statistics are more than the values many g do. The best for a reference p minimises :math:`g^T E[h h^T] g`.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, linalg
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.observation import ObservationModel


def unbiased_weights(
    model: ObservationModel, space: RowSpace, functions: FloatArray, reference: FloatArray
) -> FloatArray:
    r"""g (k × r) of least variance at `reference` with :math:`M g = w` for each identified function w (a × r).

    With :math:`E[h h^T] = C C^T` and B a basis of the row space, :math:`C^T g` is the shortest solution of
    :math:`(B^T M C^{-T}) (C^T g) = B^T w`, from a QR factorisation. Unbiased for every p; best near `reference`.
    """
    second = model.second_moment(reference)
    means = space.shown.T @ model.means
    if second.ndim == 1:
        drawn = second > 0
        root = np.sqrt(second[drawn])
        g = np.zeros((len(second), functions.shape[1]))
        g[drawn] = _shortest(means[:, drawn] / root, space.shown.T @ functions) / root[:, None]
        return g
    # The constant is a linear function of the statistics where values are certain: a sliver keeps the root regular.
    root = linalg.cholesky(second + 1e-14 * np.trace(second) * np.eye(len(second)), lower=True)
    whitened = linalg.solve_triangular(root, means.T, lower=True).T
    shortest = _shortest(whitened, space.shown.T @ functions)
    return np.asarray(linalg.solve_triangular(root, shortest, lower=True, trans="T"))


def _shortest(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The shortest v with matrix · v = right, for a matrix of full row rank."""
    q, r = linalg.qr(matrix.T, mode="economic")
    return np.asarray(q @ linalg.solve_triangular(r, right, trans="T"))


def covariance(model: ObservationModel, g: FloatArray, p: FloatArray, rows: int, *, fixed: bool) -> FloatArray:
    """The exact covariance (r × r) of g · h̄ over `rows` rows whose originals have shares p (`fixed`) or come from p."""
    whole = model.second_moment(p)
    second = (g.T * whole) @ g if whole.ndim == 1 else g.T @ whole @ g
    means = model.means @ g
    between = (means.T * p) @ means if fixed else np.outer(p @ means, p @ means)
    return np.asarray((second - between) / rows)


def project_on_simplex(p: FloatArray) -> FloatArray:
    r"""The distribution nearest to p, :math:`\max(p - \tau, 0)` with the τ that makes it sum to 1 (norm-sub).

    >>> project_on_simplex(np.array([0.7, 0.5, -0.2]))
    array([0.6, 0.4, 0. ])
    """
    falling = np.sort(p)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(p) + 1)
    tau = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray(np.maximum(p - tau, 0.0))
