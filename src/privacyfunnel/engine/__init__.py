"""The engine: the cheapest split of a prior into allowed posteriors, with its proof.

problem.py     what is asked, what is answered, what a pricer offers
columns.py     column generation: master and pricer in turn
splitting.py   from a problem to its split
relaxing.py    the same with bounds from simpler problems
grouping.py    those in which secrets are grouped
classes.py     those with the rows of one side channel
many_inputs.py hundreds of inputs, from coarse to fine
coarsening.py  alike inputs treated as one
rest.py        their master: what atoms do not cover yet is an atom too
master.py      the linear programme over known atoms (HiGHS)
merging.py     inputs that the promise cannot tell apart
polytope.py    the promise's polytope as boxes and rows
simplex.py     many small linear programmes at once
vertices.py    steps from vertex to vertex
walks.py       the search: walks over vertices; boxes.py: over those of several boxes, under LDP
programmes.py  the search where rows are many: walks by linear programmes
branching.py   chords and boxes: the proof
cones.py       cones by their extreme rays
lines.py       promises that compare within classes of inputs; lines_branching.py and lines_programme.py: their proof
interval.py    one-dimensional promises: all atoms in a table
pricing.py     which pricer suits which problem
with_secret.py protocols that see S
"""

from privacyfunnel.engine.columns import Progress
from privacyfunnel.engine.problem import Pricer, Pricing, Split, Splitting
from privacyfunnel.engine.splitting import split

__all__ = ["Pricer", "Pricing", "Progress", "Split", "Splitting", "split"]
