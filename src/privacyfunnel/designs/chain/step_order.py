"""Which attributes a chain publishes together, in which order, and how much room early steps leave to later ones.

The first step has one context, so it takes as many attributes as the engine of the optimum can solve together; steps
after it have thousands of contexts and stay small. Nothing of this touches the promise. Every candidate is tried with
the contexts that few rows would come to, and the one that keeps most is taken.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privacyfunnel.designs.chain.chain_design import Chain, make_chain, parse_steps
from privacyfunnel.designs.chain.first_step import FEW_VALUES, first_attributes, first_channel
from privacyfunnel.designs.workers import Workers
from privacyfunnel.engine.clock import clock_for
from privacyfunnel.model.information import entropy, information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

TOGETHER = 16  # values that a later step may have when it publishes several attributes
SAMPLE = 75  # rows whose contexts a trial solves
FIRST = (0.6, 0.8, 0.4, 1.0)  # shares of ε that a small first step may use
LARGE_FIRST = 0.9  # and a large one, which has most of the information
FIRST_SECONDS = 16.0  # nominal, of counted work, for a large first step without a time limit
# Of a time limit: for a large first step, for it and the trials, and for it, the trials and all contexts. The rest is
# for what cannot be cut short: going from step to step, and the certificate.
FIRST_SHARE, TRIAL_SHARE, SOLVED_SHARE = 0.35, 0.45, 0.75

Steps = tuple[tuple[int, ...], ...]


def chain_protocol(
    joint: Joint,
    promise: Promise,
    *,
    order: Sequence[str | Sequence[str]] | None = None,
    first: float | None = None,
    as_values: bool = False,
    seconds: float | None = None,
) -> Chain:
    """A chain whose order of attributes, unless given, is the one that keeps most in trials.

    `order` names every published column; names that stand together are published in one step. `first` is the share of
    ε that the first step may use. `as_values` publishes original values instead of groups of them. `seconds` are for
    all of it; without them the clock decides of a large first step alone.
    """
    begun = time.monotonic()
    try_until, solve_until = (
        math.inf if seconds is None else begun + share * seconds for share in (TRIAL_SHARE, SOLVED_SHARE)
    )
    steps = parse_steps(joint, order) if order is not None else None
    large = first_attributes(joint) if steps is None else steps[0]
    if len(np.unique(joint.combos[:, large], axis=0)) > FEW_VALUES and len(large) > 1:
        candidates = [(large, *rest) for rest in _candidate_orders(joint, large)] if steps is None else [steps]
        share = LARGE_FIRST if first is None else first
        chain = make_chain(joint, promise, candidates[0], share, as_values=as_values)
        with clock_for(seconds):
            limit = FIRST_SECONDS if seconds is None else FIRST_SHARE * seconds
            solved = first_channel(joint, large, chain.bands[0], limit)
        chain = replace(chain, first=solved, deadline=solve_until)
        return _best([replace(chain, steps=each) for each in candidates], try_until)
    orders = _candidate_orders(joint) if steps is None else [steps]
    shares: tuple[float, ...] = FIRST if first is None else (first,)
    chains = [make_chain(joint, promise, each, shares[0], as_values=as_values) for each in orders]
    best = _best([replace(chain, deadline=solve_until) for chain in chains], try_until)
    others = [make_chain(joint, promise, best.steps, share, as_values=as_values) for share in shares[1:]]
    return _best([best, *(replace(other, deadline=solve_until) for other in others)], try_until)


def estimate_information(joint: Joint, promise: Promise) -> float:
    """What a quickly made chain keeps of this table, in nats: to compare tables with, for a good chain keeps more."""
    chain = make_chain(joint, promise, _candidate_orders(joint)[0], FIRST[0])
    return chain.grow(SAMPLE, trial=True).nats


def _best(chains: Sequence[Chain], deadline: float) -> Chain:
    """The chain that keeps most of the sample, among those that there is time to try; the first where there is none."""
    if len(chains) == 1:
        return chains[0]
    with Workers() as crew:
        kept = crew.run_until(deadline, _sample_information, [(chain,) for chain in chains])
    return chains[max(kept, key=lambda number: (kept[number], -number), default=0)]


def _sample_information(chain: Chain) -> float:
    """What it keeps of the sample; one core for each chain."""
    return chain.grow(SAMPLE, trial=True, workers=1).nats


def _candidate_orders(joint: Joint, done: tuple[int, ...] = ()) -> list[Steps]:
    """A few orders worth trying: much information first, little about the secret first, and a mean of both."""
    steps = _pack_steps(joint, done)
    said = [_step_information(joint, step) for step in steps]
    keys: list[list[float]] = [
        [-h for h, _ in said],
        [about / h for h, about in said],
        [about - h for h, about in said],
        [len(np.unique(joint.combos[:, step], axis=0)) for step in steps],
    ]
    orders = [tuple(steps[i] for i in np.argsort(key, kind="stable")) for key in keys]
    return list(dict.fromkeys(orders))


def _pack_steps(joint: Joint, done: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Attributes with few values go together while the step stays small: fewer contexts, and less is lost between."""
    steps: list[list[int]] = []
    for j in sorted(set(range(joint.m)) - set(done), key=lambda j: -len(joint.attributes[j].labels)):
        size = len(joint.attributes[j].labels)
        fits = [s for s in steps if math.prod(len(joint.attributes[k].labels) for k in s) * size <= TOGETHER]
        if fits:
            fits[0].append(j)
        else:
            steps.append([j])
    return [tuple(step) for step in steps]


def _step_information(joint: Joint, step: tuple[int, ...]) -> tuple[float, float]:
    """H(X^step) and I(S; X^step)."""
    small = joint.project(step)
    return max(entropy(small.p_x), 1e-12), information(small.p_sx)
