r"""The paper's way: all vertices of a polytope of channels, by cddlib, to compare ours with.

The paper looks for the best channel among the vertices of

.. math:: \Gamma = \{Q \in \mathbb{R}^{a \times a} : Q \ge 0,\ \textstyle\sum_y Q_{y|x} = 1\ \forall x,\
   K Q_{y|\cdot} \ge 0\ \forall y\},

where the rows of K are the promise. It has dimension a(a−1), and I(X;Y) is convex in Q, so a vertex is best. The work
is done by a process of its own, because cddlib cannot be interrupted and may take hours.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from time import process_time

import numpy as np

from privacyfunnel.arrays import FloatArray, entropy_terms
from privacyfunnel.errors import SolverError
from privacyfunnel.model.joint import Joint


@dataclass(frozen=True, slots=True, eq=False)
class BestVertex:
    """The best vertex of Γ, how many there are, and the seconds of processor time it took to list and to value them."""

    channel: FloatArray  # a × a, a row per input
    utility: float
    vertices: int
    seconds: float


def is_available() -> bool:
    """Whether cddlib is installed; it comes with the `bench` extra."""
    return find_spec("cdd") is not None


def enumerate_vertices(conditions: FloatArray, p_x: FloatArray, time_limit: float) -> BestVertex | None:
    """The best channel among all vertices of Γ, or None when the time was up first."""
    question = json.dumps({"conditions": conditions.tolist(), "p_x": p_x.tolist()})
    try:
        process = subprocess.run(
            [sys.executable, "-m", __name__],
            input=question,
            capture_output=True,
            text=True,
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if process.returncode != 0:
        last = (process.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise SolverError(f"cddlib must list the vertices of Γ; it did not: {last}.")
    answer = json.loads(process.stdout)
    return BestVertex(np.array(answer["channel"]), answer["utility"], answer["vertices"], answer["seconds"])


def ldp_conditions(joint: Joint, epsilon: float) -> FloatArray:
    """K of ε-LDP: e^ε p(x|s') − p(x|s), a row for each ordered pair of secrets (paper, Theorem LDP)."""
    p, loud = joint.p_x_given_s, math.exp(epsilon)
    return np.array([loud * p[t] - p[s] for s in range(joint.c) for t in range(joint.c) if s != t])


def budget_conditions(joint: Joint, attribute: int, epsilon: float) -> FloatArray:
    """K of ε-LIP for one attribute, whichever of the others are known (paper, Theorem budget)."""
    loud = math.exp(epsilon)
    rows = []
    for p_s, p in side_conditionals(joint, attribute):
        rows += [loud * p - p_s, loud * p_s - p]
    return np.array(rows)


def side_conditionals(joint: Joint, attribute: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """p(x^j | s, x^J) and p(x^j | x^J) for every s, every set J of other attributes and every x^J."""
    sizes = [len(at.labels) for at in joint.attributes]
    p_sx = np.zeros((joint.c, *sizes))
    p_sx[(slice(None), *joint.combos.T)] = joint.p_sx
    others = [k for k in range(joint.m) if k != attribute]
    for size in range(joint.m):
        for known in combinations(others, size):
            hidden = tuple(1 + k for k in others if k not in known)
            table = np.moveaxis(p_sx.sum(axis=hidden, keepdims=True), 1 + attribute, -1).reshape(
                joint.c, -1, sizes[attribute]
            )
            for cell in np.moveaxis(table, 1, 0):
                everybody = cell.sum(axis=0)
                for one in cell[cell.sum(axis=1) > 0]:
                    yield one / one.sum(), everybody / everybody.sum()


def _best_vertex(conditions: FloatArray, p_x: FloatArray) -> dict[str, object]:
    """List the vertices; the last output is what the others leave, so that a(a−1) coordinates remain."""
    import cdd

    a = len(p_x)
    start = process_time()
    signs = np.concatenate([np.eye(a), conditions])
    cone = cdd.matrix_from_array(np.pad(signs, ((0, 0), (1, 0))).tolist(), rep_type=cdd.RepType.INEQUALITY)
    signs = np.delete(signs, sorted(cdd.redundant_rows(cone)), axis=0)
    rows = []
    for y in range(a - 1):
        block = np.zeros((len(signs), a - 1, a))
        block[:, y] = signs
        rows.append(np.concatenate([np.zeros((len(signs), 1)), block.reshape(len(signs), -1)], axis=1))
    rows.append(np.concatenate([signs.sum(axis=1, keepdims=True), np.tile(-signs, (1, a - 1))], axis=1))
    matrix = cdd.matrix_from_array(np.concatenate(rows).tolist(), rep_type=cdd.RepType.INEQUALITY)
    listed = np.array(cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array)
    if not (listed[:, 0] == 1).all():
        raise SolverError("Γ is bounded; cddlib found a direction in which it is not.")
    first = listed[:, 1:].reshape(-1, a - 1, a)
    vertices = np.concatenate([first, 1 - first.sum(axis=1, keepdims=True)], axis=1).clip(0.0)
    p_yx = vertices * p_x
    utilities = (
        entropy_terms(p_yx.sum(axis=2)).sum(axis=1) + entropy_terms(p_x).sum() - entropy_terms(p_yx).sum(axis=(1, 2))
    )
    best = int(utilities.argmax())
    seconds = process_time() - start
    return {
        "channel": vertices[best].T.tolist(),
        "utility": float(utilities[best]),
        "vertices": len(vertices),
        "seconds": seconds,
    }


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(_best_vertex(np.array(asked["conditions"]), np.array(asked["p_x"]))))
