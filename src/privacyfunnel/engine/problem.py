"""The problem of the engine, the answer, and what a pricer must offer.

A protocol splits the prior p over its inputs z into posteriors ("atoms") v with weights q, and keeps its
promise exactly when every atom lies in the polytope

    V = {v >= 0, Σ v = 1,  N_i·v <= e^ε D_i·v,  D_i·v <= e^ε N_i·v  for every row i}.

The most informative protocol is the cheapest split

    min Σ_y q_y H(T v_y)   subject to   Σ_y q_y v_y = p,  q >= 0,  v_y in V,

where (T v)_x sums v over the inputs that belong to value x, and H is entropy in nats.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from privacyfunnel.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Splitting:
    """Which prior to split, into which polytope, and whose entropy counts."""

    prior: FloatArray  # p(z) > 0, sums to 1
    group: IntArray  # the value x to which input z belongs; arange when the protocol sees X only
    numerators: FloatArray | csr_array  # N, a row per comparison
    denominators: FloatArray | csr_array  # D, of the same shape
    epsilon: float

    @property
    def sees_values_only(self) -> bool:
        """Whether every input is a value of its own, so that T is the identity."""
        return bool(np.array_equal(self.group, np.arange(self.group.size)))


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The best split that was found, and a lower bound on every split's value."""

    weights: FloatArray  # q_y, (b,)
    atoms: FloatArray  # v_y, (b, d)
    value: float  # Σ q_y H(T v_y), nats
    bound: float  # no split does better than this, nats


@dataclass(frozen=True, slots=True, eq=False)
class Pricing:
    """What a proof attempt yields: a bound that holds, and atoms met on the way."""

    bound: float  # H(T v) - prices·v >= bound for every allowed v
    atoms: FloatArray  # (k, d) allowed atoms, possibly none


class Pricer(Protocol):
    """Looks for allowed atoms v with small reduced cost H(T v) - prices·v.

    Prices jump from round to round while many splits cost the same. `steadiness` is the weight of the past in the
    running average of prices at which the search is called: 0 where the search finds all that is cheap anyway.
    """

    @property
    def steadiness(self) -> float: ...

    def start(self) -> FloatArray:
        """(k, d) allowed atoms to begin with, among them for every input one that gives it much probability."""
        ...

    def search(self, prices: FloatArray) -> FloatArray:
        """(k, d) allowed atoms of small reduced cost, found fast and without proof."""
        ...

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        """A bound of at least -target on the reduced cost of every allowed atom.

        The bound is always valid. It may stay below -target when the clock (time.monotonic) passes the deadline,
        or when atoms were found whose reduced cost shows that -target cannot be proved: those are returned.
        """
        ...
