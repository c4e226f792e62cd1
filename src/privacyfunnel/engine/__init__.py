"""The engine: the cheapest split of a prior into feasible posteriors (atoms), with its proof.

problem.py     prior, constraints, map T; the answer                 objective.py   cost of an atom
settings.py    every threshold, and the ablation row that set it     clock.py       counted work and the clock
plan.py        the table of strategies: the only place that chooses  splits.py      the front doors
driver.py      the one loop: master, search, proof, bound            reductions.py  fewer inputs, looser constraints

masters/       restricted_master.py  the linear programme over known atoms and its slack; masters of entropies
               blocks.py  very many inputs      average.py  an average constraint
               moment.py  second moments        mixture.py  their interior point method
               actions.py  outputs that are actions, and actions on a line
oracles/       linear minima over the feasible atoms: oracle.py (closed form, one dimension), polytope.py (batched),
               constraint_oracle.py (HiGHS), credal_batch.py (credal sets, batched); credal_constraints.py  their rules
search/        atoms of small reduced cost: tangent.py and what all share, vertices.py, subspace.py
proofs/        lower bounds on reduced costs: branch_and_bound.py over chords.py, class_cones.py, products.py
bounds/        dual_bounds.py  proofs at prices, relaxations         side_channels.py  those of SRLIP together
lp/            highs.py  large linear programmes                     batched_simplex.py  many small ones at once
"""

from privacyfunnel.engine.driver import Progress
from privacyfunnel.engine.problem import Problem, Proof, Split
from privacyfunnel.engine.splits import split

__all__ = ["Problem", "Progress", "Proof", "Split", "split"]
