"""Which attributes a chain publishes together, in which order, and how much room early steps leave to later ones.

Nothing of this touches the promise. Every candidate is tried on a small sample of the joint, drawn with fixed words;
the one that keeps most is taken; so the choice depends on the counts alone, as the protocol itself does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.attributes.chain import Chain, chain_steps, checked_chain
from privacyfunnel.information import entropy, information
from privacyfunnel.joint import Joint
from privacyfunnel.promises import Promise
from privacyfunnel.sampling import KeyStream

TOGETHER = 16  # values that a step may have when it publishes several attributes
SAMPLE = 150  # rows of a trial
FIRST = (0.6, 0.8, 0.4, 1.0)  # shares of ε that the first step may use
SECONDS = 40.0  # for all trials; a trial that has begun is finished


def chain_protocol(
    joint: Joint,
    promise: Promise,
    *,
    order: Sequence[str | Sequence[str]] | None = None,
    first: float | None = None,
    as_values: bool = False,
    seconds: float = SECONDS,
) -> Chain:
    """A chain whose order of attributes, unless given, is the one that keeps most in trials of some seconds.

    `order` names every published column; names that stand together are published in one step. `first` is the share of
    ε that the first step may use. `as_values` publishes original values instead of groups of them.
    """
    deadline = time.monotonic() + seconds
    candidates = [chain_steps(joint, order)] if order is not None else _orders(joint)
    rest: tuple[float, ...] = FIRST if first is None else (first,)
    best, most = checked_chain(joint, promise, candidates[0], rest[0], as_values=as_values), -1.0
    if len(candidates) * len(rest) == 1:
        return best
    codes = _sample(joint.p_x)
    trials = [(steps, rest[0]) for steps in candidates]
    while trials:
        steps, share = trials.pop(0)
        chain = checked_chain(joint, promise, steps, share, as_values=as_values)
        kept = chain.grow(codes, KeyStream.from_seed(0)).kept.nats
        if kept > most:
            best, most = chain, kept
        if time.monotonic() >= deadline:
            break
        if not trials and rest:
            rest = rest[1:]
            trials = [(best.steps, share) for share in rest[:1]]
    return best


def trial(joint: Joint, promise: Promise) -> float:
    """About how many nats a chain keeps of this table: the mean over a small sample, in one order."""
    chain = checked_chain(joint, promise, _orders(joint)[0], FIRST[0])
    return chain.grow(_sample(joint.p_x), KeyStream.from_seed(0)).kept.nats


def _orders(joint: Joint) -> list[tuple[tuple[int, ...], ...]]:
    """A few orders worth trying: much information first, little about the secret first, and a mean of both."""
    steps = _packed(joint)
    said = [_about(joint, step) for step in steps]
    keys: list[list[float]] = [
        [-h for h, _ in said],
        [about / h for h, about in said],
        [about - h for h, about in said],
        [len(np.unique(joint.combos[:, step], axis=0)) for step in steps],
    ]
    orders = [tuple(steps[i] for i in np.argsort(key, kind="stable")) for key in keys]
    return list(dict.fromkeys(orders))


def _packed(joint: Joint) -> list[tuple[int, ...]]:
    """Attributes with few values go together while the step stays small: fewer contexts, and less is lost between."""
    steps: list[list[int]] = []
    for j in sorted(range(joint.m), key=lambda j: -len(joint.attributes[j].labels)):
        size = len(joint.attributes[j].labels)
        fits = [s for s in steps if math.prod(len(joint.attributes[k].labels) for k in s) * size <= TOGETHER]
        if fits:
            fits[0].append(j)
        else:
            steps.append([j])
    return [tuple(step) for step in steps]


def _about(joint: Joint, step: tuple[int, ...]) -> tuple[float, float]:
    """H(X^step) and I(S; X^step)."""
    _, value = np.unique(joint.combos[:, step], axis=0, return_inverse=True)
    value = value.reshape(-1)
    p = np.zeros((joint.c, int(value.max()) + 1))
    np.add.at(p.T, value, joint.p_sx.T)
    return max(entropy(p.sum(axis=0)), 1e-12), information(p)


def _sample(p_x: FloatArray) -> IntArray:
    """Evenly spaced points of the distribution."""
    points = (np.arange(SAMPLE) + 0.5) / SAMPLE
    return np.minimum(np.searchsorted(np.cumsum(p_x), points), len(p_x) - 1)
