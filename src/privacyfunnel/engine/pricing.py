"""The pricers for protocols that see X only, and the choice among all pricers."""

from typing import ClassVar, Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.boxes import BoxWalks
from privacyfunnel.engine.branching import Prover
from privacyfunnel.engine.interval import IntervalPricer, coordinate
from privacyfunnel.engine.lines import lines_of
from privacyfunnel.engine.lines_branching import LinesProver
from privacyfunnel.engine.polytope import (
    Polytope,
    compared_with_each_other,
    compared_with_everybody,
    inequalities,
    polytope_of,
)
from privacyfunnel.engine.problem import Pricer, Pricing, Splitting
from privacyfunnel.engine.programmes import ProgrammeWalks
from privacyfunnel.engine.walks import Walks

MANY_INPUTS = 150  # below, atoms are few enough to be searched for in the polytope itself, and to be branched on
MANY_ROWS = 130  # beyond, inverting bases of so many rows takes longer than linear programmes one by one
MOST_PROVED = 800  # rows; with more, a box takes so long to bound that branching says nothing in time


def pricer_for(problem: Splitting) -> Pricer:
    """The pricer that suits the structure of the problem."""
    if not problem.sees_values_only:
        from privacyfunnel.engine.with_secret import pricer_with_secret

        return pricer_with_secret(problem)
    r = coordinate(problem)
    if r is not None:
        return IntervalPricer(problem, r)
    if not compared_with_everybody(problem) and compared_with_each_other(problem) is None:
        rows = inequalities(problem)
        if len(rows) > MOST_PROVED:
            return WalkPricer(ProgrammeWalks(rows, problem.prior), -rows)
    return VertexPricer(problem, by_classes=True)


class Search(Protocol):
    """Walks over atoms of small reduced cost."""

    patience: int  # after so many searches in vain nothing is left to be found

    def towards_each(self) -> FloatArray:
        """For each input an atom that gives it much."""

    def downhill(self, prices: FloatArray) -> FloatArray:
        """Where long walks end."""

    def cover(self, prices: FloatArray, missing: FloatArray) -> FloatArray:
        """What many short walks pass, above all where probability is missing."""

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Where walks from these atoms end."""


class WalkPricer:
    """Local search over atoms, and no proof: bounds must come from elsewhere (relaxing.py)."""

    steadiness: ClassVar[float] = 0.0
    proves: ClassVar[bool] = False
    by_classes = False  # whether proofs go by classes of inputs

    def __init__(self, walks: Search, cone: FloatArray) -> None:
        self.walks = walks
        self.cone = cone  # rows that are at most 0 for multiples of atoms

    def start(self) -> FloatArray:
        return self.walks.towards_each()

    def search(self, prices: FloatArray) -> FloatArray:
        return self.walks.downhill(prices)

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        return Pricing(-np.inf, np.empty((0, prices.size)))


class VertexPricer(WalkPricer):
    """Local search over vertices of the polytope, and branch and bound for the proof."""

    proves: ClassVar[bool] = True

    def __init__(self, problem: Splitting, by_classes: bool = False) -> None:
        self.polytope = polytope_of(problem)
        super().__init__(_walks(problem, self.polytope), self.polytope.cone())
        lines = lines_of(problem, self.polytope) if by_classes else None
        self.by_classes = lines is not None
        self.prover: Prover | LinesProver
        if lines is None:
            self.prover = Prover(self.polytope, self.walks.polished)
        else:
            self.prover = LinesProver(lines, self.walks.polished)

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        return self.prover.prove(prices, target, deadline)


def _walks(problem: Splitting, polytope: Polytope) -> Search:
    """Walks over the polytope itself, or others that find more in time."""
    if compared_with_everybody(problem):
        return Walks(polytope)
    functionals = compared_with_each_other(problem)
    if functionals is not None:
        return BoxWalks(problem, functionals, polytope) if problem.prior.size > MANY_INPUTS else Walks(polytope)
    if polytope.matrix.shape[0] > MANY_ROWS:
        return ProgrammeWalks(polytope.matrix[1:, : polytope.inputs], problem.prior)
    return Walks(polytope)
