r"""Unbiased estimates: linear functions of what was seen whose mean is the share, whatever p is.

For weights g with :math:`M g = w`, the estimate :math:`\hat\theta = g \cdot \bar h` has mean :math:`w \cdot p` exactly.
Its exact covariance over n rows is

.. math:: \frac1n \sum_x p_x\, \mathrm{Cov}(g \cdot h \mid x) \quad\text{(the table's own shares)}, \qquad
   \text{plus } \frac1n (\mathrm{diag}(p) - p p^T) \quad\text{(a population's)}.

Where the statistics are more than the values many g do. The best for a reference p minimises :math:`g^T E[h h^T] g`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privacyfunnel.arrays import SMALL, FloatArray, Matrix, dense, linalg, sparsify
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.observation import ChannelModel


def unbiased_weights(model: ChannelModel, space: RowSpace, functions: FloatArray, reference: FloatArray) -> FloatArray:
    r"""g (k × r) of least variance at `reference` with :math:`M g = w` for each identified function w (a × r).

    With :math:`E[h h^T] = C C^T` and B a basis of the row space, :math:`C^T g` is the shortest solution of
    :math:`(B^T M C^{-T}) (C^T g) = B^T w`, from a QR factorisation. Unbiased for every p; best near `reference`.
    """
    second = model.second_moment(reference)
    means = space.shown.T @ model.means
    drawn = second > 0
    root = np.sqrt(second[drawn])
    g = np.zeros((len(second), functions.shape[1]))
    g[drawn] = _shortest(means[:, drawn] / root, space.shown.T @ functions) / root[:, None]
    return g


def _shortest(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The shortest v with matrix · v = right, for a matrix of full row rank."""
    q, r = linalg.qr(matrix.T, mode="economic")
    return np.asarray(q @ linalg.solve_triangular(r, right, trans="T"))


def covariance(model: ChannelModel, g: FloatArray, p: FloatArray, rows: int, *, fixed: bool) -> FloatArray:
    """The exact covariance (r × r) of g · h̄ over `rows` rows whose originals have shares p (`fixed`) or come from p."""
    second = (g.T * model.second_moment(p)) @ g
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


SINGULAR = 1e-12  # beside 1: what J is given where it has nothing, so that such errors are huge, and bounds take over
ROUNDING = 1e-9  # of n V: what is left of nothing


def unbiased_variances(model: ChannelModel, p: FloatArray, tables: Sequence[Matrix]) -> list[FloatArray]:
    """n V of every function of several tables (0-1, a × r each)."""
    root = np.sqrt(p)
    J = information(model, p)
    J[np.diag_indices_from(J)] += SINGULAR
    inverse = _inverse_of_root(J)
    found = []
    for functions in tables:
        theta = p @ functions  # and Σ p w², what the rows themselves are: no noise
        # J⁻¹ = L⁻ᵀ L⁻¹, so that w·J⁻¹w is the square of L⁻¹w.
        whole = np.square(inverse @ sparsify(functions * root[:, None])).sum(axis=0)
        found.append(np.maximum(whole - theta - ROUNDING, 0.0))
    return found


def information(model: ChannelModel, p: FloatArray) -> FloatArray:
    """√p J √p: what one row tells of the shares."""
    root, second = np.sqrt(p), model.second_moment(p)
    scale = np.divide(1.0, np.sqrt(second), out=np.zeros_like(second), where=second > 0)
    scaled = sparsify(model.means) * root[:, None] * scale
    return np.asarray(dense(scaled @ scaled.T))


def _inverse_of_root(J: FloatArray) -> FloatArray:
    """L⁻¹ for J = L Lᵀ. That L is a triangle saves much where it is large, and a library to load where it is small."""
    L = np.linalg.cholesky(J)
    return np.linalg.inv(L) if L.size <= SMALL else np.asarray(linalg.lapack.dtrtri(L, lower=1)[0])
