"""The engine: the cheapest split of a prior into allowed posteriors, with its proof.

problem.py      what is asked and answered; objective.py what an atom costs
plan.py         which way suits which problem, and the way from start to end; lazily.py rows that arrive when broken
generation.py   master, search and proof in turn
supply.py       where splits come from; master.py the linear programme over known atoms
bounding.py     how the bound rises; reductions.py fewer inputs, fewer rows; side_channels.py those of SRLIP together
oracle.py       the polytope as it is seen: interval.py, polytope.py, programme.py
search.py       atoms of small reduced cost; vertices.py steps from vertex to vertex
best_first.py   the proof: chords.py boxes of entries, classes.py and cones.py boxes of classes
conditioning.py where a matrix counts that the split adds up to (statistics): moments.py its master, steepest.py the
                split it moves towards, curved.py what an atom costs then, products.py the proof by products of rows
actions.py      outputs that are actions, one linear programme; numbers.py actions on a line
funnel.py       an average about the secret: walks.py its atoms, gibbs.py its boxes
simplex.py      many small linear programmes at once; tableau.py the same where rows are many; highs.py large ones
hulls.py        sets of priors, written out; hull_corners.py in batches over few inputs, rules.py which rows are broken
"""

from privacyfunnel.engine.driver import Progress
from privacyfunnel.engine.plan import split
from privacyfunnel.engine.problem import Problem, Proof, Split

__all__ = ["Problem", "Progress", "Proof", "Split", "split"]
