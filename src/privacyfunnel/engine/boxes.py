r"""The search where secrets are compared with each other (LDP) and inputs are many: walks over boxes.

With :math:`L_s \cdot v = P(s|v) / P(s)`, an atom is allowed iff all :math:`L_s \cdot v` lie in one box

.. math:: [e^{-a}, e^{\varepsilon - a}], \qquad 0 \le a \le \varepsilon .

For a given a that is a promise like LIP, with one row per secret; with a free it takes two rows per secret and a floor,
and walks take several times as long. So walks go over a few boxes in turn, and the master mixes what they find; the
last turn is the polytope's own, for what lies in none of these boxes.
"""

from collections.abc import Sequence
from itertools import cycle

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.polytope import Polytope, boxed
from privacyfunnel.engine.problem import Splitting
from privacyfunnel.engine.walks import Walks

PLACES = (0.5, 0.35, 0.65, 0.45, 0.55)  # of a in [0, ε], the most useful first


class BoxWalks:
    """Walks over several boxes in turn, and over the polytope."""

    patience = len(PLACES) + 1  # searches in vain: one in each

    def __init__(self, problem: Splitting, functionals: FloatArray, polytope: Polytope) -> None:
        boxes = [
            boxed(problem.prior, functionals, -place * problem.epsilon, (1 - place) * problem.epsilon)
            for place in PLACES
        ]
        self._boxes: Sequence[Walks] = [Walks(room) for room in (*boxes, polytope)]
        self._turn = cycle(self._boxes)

    def towards_each(self) -> FloatArray:
        """For each input the atom that gives it most in the first box."""
        return self._boxes[0].towards_each()

    def downhill(self, prices: FloatArray) -> FloatArray:
        """Where long walks end."""
        return next(self._turn).downhill(prices)

    def cover(self, prices: FloatArray, missing: FloatArray) -> FloatArray:
        """Many different atoms of small reduced cost; see Walks.cover."""
        return next(self._turn).cover(prices, missing)

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Vertices of the polytope reached downhill from these atoms."""
        return self._boxes[-1].polished(atoms, prices)
