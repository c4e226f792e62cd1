"""Optima by exhaustive enumeration, written without a line of the engine: slow, small, independent."""

from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise


def corners(G: FloatArray) -> FloatArray:
    """Every vertex of {v >= 0, Σ v = 1, G v <= 0}: each choice of d - 1 tight inequalities is tried."""
    d = G.shape[1]
    inequalities = np.concatenate([-np.eye(d), G])
    found = []
    for tight in combinations(range(len(inequalities)), d - 1):
        system = np.concatenate([np.ones((1, d)), inequalities[list(tight)]])
        if abs(np.linalg.det(system)) < 1e-9:
            continue
        v = np.linalg.solve(system, np.eye(d)[0])
        if (inequalities @ v <= 1e-10).all():
            found.append(np.clip(v, 0.0, None))
    return np.unique(np.round(found, 12), axis=0)


def posteriors(joint: Joint, promise: Promise) -> FloatArray:
    """Every vertex of Δ, the posteriors that keep the promise."""
    rows = promise.constraints(joint)
    (N, D), scales = rows.dense, rows.either_scale
    sides = [
        n[np.isfinite(scale)] - np.exp(promise.epsilon * scale[np.isfinite(scale), None]) * d[np.isfinite(scale)]
        for n, d, scale in ((N, D, scales[:, 0]), (D, N, scales[:, 1]))
    ]
    return corners(np.concatenate(sides))


def best_over_posteriors(joint: Joint, promise: Promise) -> float:
    """I(X;Y) of the best protocol, as a linear programme over all vertices of Δ."""
    vertices = posteriors(joint, promise)
    return float(-(joint.p_x * np.log(joint.p_x)).sum() - best_split(vertices, joint.p_x))


def best_split(vertices: FloatArray, prior: FloatArray) -> float:
    """The least average entropy of vertices that average to the prior."""
    plogp = vertices * np.log(np.where(vertices > 0, vertices, 1.0))
    return cheapest_split(vertices, -plogp.sum(axis=1), prior)


def cheapest_split(vertices: FloatArray, costs: FloatArray, prior: FloatArray) -> float:
    """The least average cost of vertices that average to the prior."""
    # Divided by p, and solved tightly: a tolerance of 1e-7 is much where a value has a share of 1e-6.
    answer = linprog(
        costs,
        A_eq=(vertices / prior).T,
        b_eq=np.ones(prior.size),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    assert answer.fun is not None
    return float(answer.fun)


def gamma_inequalities(joint: Joint, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """The paper's Γ for b = a: rows h with h·(1, q) >= 0, and equations e·(1, q) = 0, q(y|x) in C order (y, x)."""
    a, p_x_given_s = joint.a, joint.p_x_given_s
    rows = [np.concatenate([[0.0], one]) for one in np.eye(a * a)]
    for y in range(a):
        for s, other in combinations(range(joint.c), 2):
            for one, two in ((s, other), (other, s)):
                row = np.zeros(1 + a * a)
                row[1 + y * a : 1 + (y + 1) * a] = np.exp(epsilon) * p_x_given_s[two] - p_x_given_s[one]
                rows.append(row)
    equations = np.zeros((a, 1 + a * a))
    equations[:, 0] = -1.0
    for x in range(a):
        equations[x, 1 + x :: a] = 1.0
    return np.array(rows), equations


def best_over_gamma(joint: Joint, epsilon: float) -> float:
    """I(X;Y) of the best protocol, by trying every vertex of Γ (paper, Theorem LDP). For a <= 3 without a library."""
    h, equations = gamma_inequalities(joint, epsilon)
    n = h.shape[1] - 1
    best = 0.0
    for tight in combinations(range(len(h)), n - len(equations)):
        system = np.concatenate([equations, h[list(tight)]])
        if abs(np.linalg.det(system[:, 1:])) < 1e-9:
            continue
        q = np.linalg.solve(system[:, 1:], -system[:, 0])
        if (h[:, 1:] @ q >= -1e-10).all():
            best = max(best, _information(joint.p_x, np.clip(q, 0.0, None).reshape(joint.a, joint.a)))
    return best


def _information(p_x: FloatArray, q_yx: FloatArray) -> float:
    p_yx = q_yx * p_x
    outer = p_yx.sum(axis=1, keepdims=True) * p_yx.sum(axis=0, keepdims=True)
    ratio = np.divide(p_yx, outer, out=np.ones_like(p_yx), where=p_yx > 0)
    return float((p_yx * np.log(ratio)).sum())
