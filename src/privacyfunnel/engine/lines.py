r"""Promises that also compare within classes of inputs (SRLIP): classes, their cones, and the pricer.

Some rows of such a promise look at few inputs only: those that share some attributes. Take disjoint classes l of
inputs, with masses :math:`m_l`, which together hold all inputs. Then

.. math:: H(v) = H(m) + \sum_l m_l H(v_l / m_l),

and the part of v in class l lies in the cone of the rows that look at l alone. Such a cone of few inputs has few
extreme rays r, so its part of the atom is a mixture :math:`v_l = \sum_r w_r r`, and

.. math:: m_l H(v_l / m_l) \ge \sum_r w_r H(r)

with equality on the rays. That leaves the entropy of a few masses; everything else is linear in w.
"""

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.classes import disjoint
from privacyfunnel.engine.cones import Cone, cone_of
from privacyfunnel.engine.polytope import Polytope, dense
from privacyfunnel.engine.problem import Splitting

MOST_RAYS = 1500  # in all classes together; larger classes bound better, but cutting their cones takes longer
MOST_CLASSES = 16
# Half as many classes again, with fewer rays, were proved faster on all draws of 3 × 3 × 4 values; thrice as many were
# not. One class leaves nothing to branch on.
WORTH_CLASSES = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Disjoint classes of inputs that hold all of them, their cones, and the rows that look at more than one class."""

    classes: tuple[IntArray, ...]
    cones: tuple[Cone, ...]
    across: FloatArray  # (n, d), across·v >= 0

    @property
    def rays(self) -> int:
        """How many rays all cones have together."""
        return sum(cone.entropy.size for cone in self.cones)


def lines_of(problem: Splitting, polytope: Polytope) -> Lines | None:
    """Few classes whose cones have few rays; None when no row looks at some inputs only, or rays are too many."""
    d = polytope.inputs
    rows = polytope.matrix[1:, :d]
    if polytope.matrix.shape[1] != d + rows.shape[0] or polytope.low.any():
        return None  # not a list of inequalities rows·v >= 0
    # Of all rows, also of those that follow from others and are not in the polytope's list.
    touched = np.unique((dense(problem.numerators) != 0) | (dense(problem.denominators) != 0), axis=0)
    if touched.all():
        return None
    best: Lines | None = None
    most: float = MOST_CLASSES if _nested(touched) else 1
    for classes in _partitions(touched):
        if len(classes) > most:
            break
        lines = _with_cones(rows, classes)
        if lines is not None and (best is None or lines.rays < best.rays):
            most = min(most, len(classes) if len(classes) == 1 else WORTH_CLASSES * len(classes))
            best = lines
    return best


def _nested(touched: BoolArray) -> bool:
    """Whether some rows look at a part of what other local rows look at, as with three attributes or more.

    With two attributes chords on the entries were measured to be two to four times faster.
    """
    local = touched[~touched.all(axis=1)].astype(np.float64)
    common, size = local @ local.T, local.sum(axis=1)
    return bool(((common == size[:, None]) & (size[:, None] < size)).any())


def _partitions(touched: BoolArray) -> list[tuple[IntArray, ...]]:
    """Ways to cover all inputs with disjoint sets that rows look at, those with the fewest sets first.

    Inputs that remain are alone.
    """
    found = {}
    for chosen in disjoint(touched, np.argsort(-touched.sum(axis=1), kind="stable")):
        alone = np.flatnonzero(~touched[list(chosen)].any(axis=0))
        sets = [np.flatnonzero(touched[number]) for number in chosen] + [np.array([z]) for z in alone]
        sets.sort(key=lambda one: int(one[0]))
        found[tuple(map(bytes, sets))] = tuple(sets)
    return sorted(found.values(), key=len)


def _with_cones(rows: FloatArray, classes: tuple[IntArray, ...]) -> Lines | None:
    cones, across, rays = [], np.ones(rows.shape[0], dtype=bool), 0
    for inputs in classes:
        within = np.count_nonzero(rows, axis=1) == np.count_nonzero(rows[:, inputs], axis=1)
        across &= ~within
        cone = cone_of(rows[within][:, inputs], MOST_RAYS - rays)
        if cone is None:
            return None
        cones.append(cone)
        rays += cone.entropy.size
    return Lines(classes, tuple(cones), rows[across])
