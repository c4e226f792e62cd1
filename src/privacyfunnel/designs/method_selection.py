"""`auto`: which method suits a table, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.designs import methods
from privacyfunnel.designs.methods import Design, Options
from privacyfunnel.designs.optimal.solver_interface import (
    BLURRED,
    CONDITIONED_AT_ALL,
    MOST_PAIRS,
)
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.statistics_use import Statistics

AUTO = "auto"  # the optimum
DEFAULT_METHOD = AUTO
JOINT = "optimal"
STATISTICS_WORK = 20.0  # nominal seconds of counted work that the best for statistics gets without a time limit


@dataclass(frozen=True, slots=True)
class Choice:
    """A method, and the reason for it in words."""

    method: str
    reason: str = ""


def resolve_method(name: str, options: Options) -> Choice:
    """The method of that name, or the one that `auto` takes."""
    if name != AUTO:
        return Choice(name)
    methods.refuse_options(AUTO, frozenset({methods.SEES_SECRET, methods.AS_VALUES, methods.AVERAGE}), options)
    return Choice(JOINT)


def make_design(choice: Choice, joint: Joint, promise: Promise, options: Options) -> Design:
    """What the chosen method makes."""
    mine = methods.find_method(choice.method)
    return mine.design(joint, mine.adapt_promise(promise), options)


def apply_default_use(choice: Choice, joint: Joint, promise: Promise, options: Options) -> tuple[Choice, Options]:
    """The options of a method where nobody said what the table is to be best for: statistics, where they can be had.

    Measured on tables of different kinds (docs/uses.md), that serves analysts best. Where no protocol for statistics is
    found, the most informative one is taken, and the reason says so. Few values that are published as they are and an
    average have uses of their own.
    """
    if choice.method != JOINT or options.as_values or options.average is not None:
        return choice, options
    why_not = reason_against_statistics(joint, promise, options.sees_secret)
    if why_not:
        return Choice(choice.method, f"made for information, not for statistics: {why_not}"), options
    effort = replace(options.effort, work_limit=STATISTICS_WORK)
    return choice, replace(options, use=Statistics(), effort=effort)


def reason_against_statistics(joint: Joint, promise: Promise, sees_secret: bool) -> str:
    """Why no protocol for statistics is sought, in words; nothing where one is."""
    if sees_secret and promise.credal_sets(joint, sees_secret) is not None:
        return "for a population a protocol that sees the secret is made for the most information"
    if sees_secret and int(np.count_nonzero(joint.weights)) > MOST_PAIRS:
        return f"a protocol that sees the secret is made for these with at most {MOST_PAIRS} pairs of secret and value"
    if promise.epsilon < BLURRED:
        return "with so small an ε no share that depends on the secret can be estimated"
    if joint.a > CONDITIONED_AT_ALL:
        return f"the best for statistics is sought among at most {CONDITIONED_AT_ALL:,} values; {joint.a:,} occur"
    return ""
