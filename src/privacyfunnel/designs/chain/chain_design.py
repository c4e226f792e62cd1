r"""Chain protocols: many attributes under LIP or LDP, published step by step with no budget to split.

In the context :math:`y^{<j}` of what was published so far, attribute j is randomised so that the posterior of the
secret stays within :math:`e^{\pm\varepsilon_j}` of its *original* prior. The posterior after the last step is the
posterior given the whole output, so the whole output keeps :math:`\varepsilon`-LIP when :math:`\varepsilon_m \le
\varepsilon`. Earlier steps may be kept tighter, :math:`\varepsilon_1 \le … \le \varepsilon_m`, to leave room for later
ones: that costs nothing but information. Under :math:`\varepsilon`-LDP the band has half the size,
:math:`e^{\pm\varepsilon/2}`, and need not stand at the prior: no two secrets are then further apart than
:math:`e^{\varepsilon}`.

I(X;Y) is the sum over steps of what each step adds in its context, averaged over contexts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.context_channel import Channel
from privacyfunnel.designs.chain.growth import Growth, grow
from privacyfunnel.designs.optimal.solver_interface import StopReason
from privacyfunnel.errors import ParameterError, SizeError
from privacyfunnel.mechanisms.chain import MOST_STEPS
from privacyfunnel.mechanisms.chain_measures import ChainProtocol
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.use import Information, UseValue

MARGIN = 1e-9  # of log-ratio: the last step stays this far inside the promise, more than all rounding together
LARGEST_EPSILON = 10.0  # what contexts are solved for where more is asked: chances below 2^-40 are not drawn
ROOM = 1e-6  # of log-ratio: every step leaves at least this much to the next, so that solvers see an inside


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Which attributes each step publishes, and the band in which the secret's posterior is kept after it."""

    joint: Joint
    promise: Promise
    steps: tuple[tuple[int, ...], ...]
    bands: tuple[Band, ...]
    as_values: bool = False  # whether original values are published, not groups of them
    first: Channel | None = None  # of the first step, where it is known already
    deadline: float = math.inf  # of the clock: contexts that are not begun by then say nothing

    def grow(self, rows: float | None = None, *, trial: bool = False, workers: int | None = None) -> Growth:
        """The contexts that so many rows come to, solved; by default as many as were counted, on all cores."""
        expected = self.joint.total if rows is None else rows
        return grow(
            self.joint,
            self.steps,
            self.bands,
            rows=expected,
            first=self.first,
            as_values=self.as_values,
            trial=trial,
            deadline=self.deadline,
            workers=workers,
        )

    def solve(self) -> SolvedChain:
        """The chain with its contexts."""
        return SolvedChain(self, self.grow())

    def seal(self) -> SealedProtocol:
        """The chain, certified."""
        return self.solve().seal()


@dataclass(frozen=True, slots=True, eq=False)
class SolvedChain:
    """A chain whose contexts are solved."""

    chain: Chain
    growth: Growth
    bound: None = None  # nothing is proved about the best chain

    @property
    def protocol(self) -> ChainProtocol:
        """The chain as something to measure."""
        return self.growth.mechanism.protocol

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return self.growth.nats

    @property
    def worth(self) -> UseValue:
        """Chains are sought by the information they keep."""
        stopped = StopReason.TIME if self.growth.late else StopReason.NOTHING
        return UseValue(Information(), self.information, self.bound, stopped.value)

    @property
    def outputs(self) -> int:
        """How many whole outputs there are."""
        return self.growth.mechanism.expansion_size

    def seal(self) -> SealedProtocol:
        """The chain, certified: every output keeps the promise."""
        joint, promise, grown = self.chain.joint, self.chain.promise, self.growth
        return SealedProtocol(
            mechanism=grown.mechanism,
            promise=promise,
            epsilon=certify(grown.mechanism, promise, joint),
            domain=Domain.from_joint(joint, False),
            information=grown.nats,
            entropy=entropy(joint.p_x),
        )


def parse_steps(joint: Joint, order: Sequence[str | Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    """An order of attributes, by name; names that stand together are published in one step."""
    names = [attribute.name for attribute in joint.attributes]
    steps = [[step] if isinstance(step, str) else list(step) for step in order]
    given = [name for step in steps for name in step]
    strangers = [name for name in given if name not in names]
    if strangers:
        raise ParameterError(f"An order names published columns; '{strangers[0]}' is none of {', '.join(names)}.")
    if len(set(given)) != len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise ParameterError(f"An order must name every column once; '{twice}' is named {given.count(twice)} times.")
    if len(given) != len(names):
        missing = [name for name in names if name not in given]
        raise ParameterError(f"An order must name every published column; it misses {', '.join(missing)}.")
    return tuple(tuple(names.index(name) for name in step) for step in steps)


def band_schedule(whole: Band, steps: int, first: float) -> tuple[Band, ...]:
    """ε₁ ≤ … ≤ ε_m: from the share `first` of ε to all of it in equal strides."""
    last = max(whole.epsilon - MARGIN, 0.0)
    shares = np.linspace(first, 1.0, steps) if steps > 1 else np.ones(1)
    room = ROOM * np.arange(steps - 1, -1, -1) / max(steps - 1, 1)
    epsilons = (float(max(0.0, last * share - r)) for share, r in zip(shares, room, strict=True))
    return tuple(Band(epsilon, whole.slides) for epsilon in epsilons)


def make_chain(
    joint: Joint, promise: Promise, steps: tuple[tuple[int, ...], ...], first: float, *, as_values: bool = False
) -> Chain:
    """A chain with these steps, if this promise can be kept by a chain at all."""
    band = Band.from_promise(promise.with_epsilon(min(promise.epsilon, LARGEST_EPSILON)), joint)
    if len(steps) > MOST_STEPS:
        raise SizeError(f"A chain has at most {MOST_STEPS} steps; this has {len(steps)}. Publish fewer columns.")
    return Chain(joint, promise, steps, band_schedule(band, len(steps), first), as_values)
