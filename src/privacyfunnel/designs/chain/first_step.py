"""The first step of a chain has one context, so it can afford many attributes at once and the engine of the optimum."""

from __future__ import annotations

import numpy as np

from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.context_channel import Channel, round_channel
from privacyfunnel.designs.size_limits import SOLVED_WELL
from privacyfunnel.engine import Problem, split
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import pairs_with_everybody, secret_pairs

GAP = 0.005  # of H
FEW_VALUES = 40  # up to so many a first step is solved like any other
MOST_IN_TWO = 1500  # values that a first step may have where the secret has two; else as many as are solved well
MOST_IN_PAIRS = 100  # values up to which every two secrets are compared under LDP
MOST_OUTPUTS = 1500  # every one is a context of the next step, and a column of what an analyst works with
MOST_SECRETS = 50  # with more, a first step stays small too
INSIDE = 1e-6  # of log-ratio: room for what rounding to integers does to rare outputs


def first_attributes(joint: Joint) -> tuple[int, ...]:
    """The attributes that go first, together: those with much to say, as long as few enough combinations occur."""
    most = MOST_IN_TWO if joint.c == 2 else SOLVED_WELL if joint.c <= MOST_SECRETS else FEW_VALUES
    taken: tuple[int, ...] = ()
    while len(taken) < joint.m:
        wider = [joint.project([*taken, j]) for j in range(joint.m) if j not in taken]
        said = [(entropy(table.p_x), table) for table in wider if table.a <= most]
        if not said:
            break
        best = max(said, key=lambda found: found[0])[1]
        names = [attribute.name for attribute in best.attributes]
        taken = tuple(j for j, attribute in enumerate(joint.attributes) if attribute.name in names)
    return taken or (0,)


def first_channel(joint: Joint, attributes: tuple[int, ...], band: Band, seconds: float) -> Channel:
    """The best channel of these attributes together, a row per combination of theirs that occurs.

    With many values and secrets a band that slides is taken to stand: what that costs is less than what the engine
    loses where every two secrets are compared.
    """
    small = joint.project(attributes)
    prior = small.p_x
    ratio = small.p_s_given_x / small.p_s[:, None]
    if band.holds(ratio, axis=0).all():
        return Channel.identity(small.a)
    wide, compared = band.epsilon, pairs_with_everybody(small.c)
    if band.slides and (small.c == 2 or small.a <= MOST_IN_PAIRS):
        wide, compared = 2 * band.epsilon, secret_pairs(small.c)
    rows = LinearConstraints.from_groups(ratio, small.p_s, *compared)
    problem = Problem.from_values(prior, rows, max(wide - INSIDE, wide / 2))
    found = split(problem, gap=GAP * entropy(prior), time_limit=seconds, most_atoms=MOST_OUTPUTS)
    used = found.weights > 0
    p_yx = found.weights[used][:, None] * np.maximum(found.atoms[used], 0.0)
    return round_channel(np.vstack([prior, ratio]), (p_yx / prior).T, band.outer_band)[0]
