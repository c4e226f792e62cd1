"""The cheapest split of a problem, from start to end."""

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.columns import Progress
from privacyfunnel.engine.many_inputs import generation_for
from privacyfunnel.engine.merging import merged
from privacyfunnel.engine.problem import Split, Splitting


def split(
    problem: Splitting,
    *,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: FloatArray | None = None,
    most_atoms: int | None = None,
) -> Split:
    """The cheapest split up to `gap` nats. At the time limit, or when interrupted: the best so far, with its bound.

    `start` are allowed atoms that are known already; the split is never worse than the best one of these.
    Inputs that the promise cannot tell apart are told apart as far as `most_atoms` allow, in the end.
    """
    small = merged(problem)
    generation = generation_for(small.problem)
    try:
        generation.run(gap, time_limit, progress, None if start is None else small.reduced(start))
    except KeyboardInterrupt:
        if generation.value == np.inf:
            raise
    return small.expanded(generation.best(), most_atoms)
