r"""Walks to atoms of small cost H(v) − μ H(A v) − λ·v, for the classical funnel.

By the log-sum inequality :math:`-H(A v) \le \sum_x v_x \ln v_x + \sum_x v_x \bigl(A^T \ln A w - \ln w\bigr)_x` with
equality at v = w. For μ > 1 the cost lies below a convex function that it meets at w, whose least is at

.. math:: v \propto \bigl(w^{\mu} e^{\lambda - \mu A^{T} \ln A w}\bigr)^{1/(\mu - 1)},

so this step never goes up. Where a promise asks that g·v ≥ 0 for some rows g, the least under these has
:math:`e^{y \cdot g}` more, with multipliers y ≥ 0 that are found row by row (Newton). For μ ≤ 1 the cost is concave,
and a walk goes from vertex to vertex by tangents.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import WORK
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS


class AverageDescent:
    """Walks over the atoms of one problem."""

    def __init__(self, problem: Problem, secrets: FloatArray) -> None:
        self._size, self._secrets = problem.size, secrets
        self._polytope = build_polytope(problem) if len(problem.constraints) else None
        self._rows = problem.inequalities if len(problem.constraints) else np.empty((0, problem.size))

    def descend(self, v: FloatArray, prices: FloatArray, mu: float, steps: int) -> FloatArray:
        """Where walks from these atoms lead; with a promise, near atoms that keep it."""
        if not len(v):
            return v
        if mu > 1.0:
            return self._descend_convex(v, prices, mu, steps)
        return np.eye(self._size) if self._polytope is None else self._descend_by_tangents(v, prices, mu)

    def _descend_convex(self, v: FloatArray, prices: FloatArray, mu: float, steps: int) -> FloatArray:
        A, G = self._secrets, self._rows
        log_v = np.log(np.maximum(v, SETTINGS.tolerance.tiny))
        y = np.zeros((len(v), len(G)))
        WORK.entries += steps * (SETTINGS.work.descent + v.size * (len(A) + len(G)))
        for _ in range(steps):
            ahead = np.log(np.maximum(np.exp(log_v) @ A.T, SETTINGS.tolerance.tiny)) @ A
            free = (mu * log_v + prices - mu * ahead) / (mu - 1)
            log_v = _normalise(free + y @ G / (mu - 1))
            for _ in range(SETTINGS.averages.multiplier_steps if len(G) else 0):
                self._update_multiplier(y, np.exp(log_v), mu)
                log_v = _normalise(free + y @ G / (mu - 1))
        found = np.exp(log_v)
        found = np.where(found > SETTINGS.tolerance.near, found, 0.0)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _update_multiplier(self, y: FloatArray, v: FloatArray, mu: float) -> None:
        """Newton's step for the multiplier of the row that gains most by it, for every walk."""
        at = v @ self._rows.T
        spread = v @ np.square(self._rows).T - np.square(at)
        step = np.maximum(-at * (mu - 1) / np.maximum(spread, SETTINGS.tolerance.flat_constraint), -y)
        walk = np.arange(len(v))
        row = np.argmax(np.abs(step * at), axis=1)
        y[walk, row] += step[walk, row]

    def _descend_by_tangents(self, v: FloatArray, prices: FloatArray, mu: float) -> FloatArray:
        A = self._secrets
        assert self._polytope is not None
        for _ in range(SETTINGS.averages.tangent_steps):
            slopes = (
                mu * (np.log(np.maximum(v @ A.T, SETTINGS.tolerance.near)) @ A)
                - np.log(np.maximum(v, SETTINGS.tolerance.near))
                - prices
            )
            v = self._polytope.minimise(slopes).atoms
        return v


def _normalise(log_v: FloatArray) -> FloatArray:
    log_v = log_v - log_v.max(axis=1, keepdims=True)
    return np.asarray(np.maximum(log_v - np.log(np.exp(log_v).sum(axis=1, keepdims=True)), SETTINGS.tolerance.log_tiny))
