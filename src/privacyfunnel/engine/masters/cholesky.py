"""Positive matrices solved by their factors, and by slower means where these break down."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.settings import SETTINGS


def solve_lower(L: FloatArray, right: FloatArray) -> FloatArray:
    """L⁻¹ times this, L with nothing above its diagonal."""
    return np.asarray(linalg.solve_triangular(L, right, lower=True, check_finite=False), dtype=np.float64)


def solve_least_norm(S: FloatArray, right: FloatArray) -> FloatArray:
    """The solution of S y = right for positive S; the least of all where rows say the same."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(S), SETTINGS.tolerance.tiny))
    scaled, goal = S * np.outer(scale, scale), right * scale
    try:
        factor = linalg.cho_factor(scaled, check_finite=False)
        y = linalg.cho_solve(factor, goal, check_finite=False)
        y = y + linalg.cho_solve(factor, goal - scaled @ y, check_finite=False)  # refined once
        if np.abs(scaled @ y - goal).max() <= SETTINGS.tolerance.cholesky * np.abs(goal).max():
            return np.asarray(scale * y, dtype=np.float64)
    except linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(S, right, rcond=1e-15)[0], dtype=np.float64)


def inverse(M: FloatArray) -> FloatArray:
    """M⁻¹; where M is all but singular, the inverse on what it reaches, which takes five times as long."""
    try:
        half = solve_lower(np.asarray(np.linalg.cholesky(M), dtype=np.float64), np.eye(len(M)))
        if np.square(half).sum() * np.trace(M) < SETTINGS.tolerance.condition * len(M):
            return np.asarray(half.T @ half)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.pinv(M, hermitian=True))
