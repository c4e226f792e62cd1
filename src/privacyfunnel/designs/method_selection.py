"""`auto`: which method suits a table, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.designs import methods
from privacyfunnel.designs.chain.band import is_chainable
from privacyfunnel.designs.methods import Design, Options
from privacyfunnel.designs.size_limits import (
    BLURRED,
    CONDITIONED_AT_ALL,
    CONDITIONED_WELL,
    LARGEST_PROBLEM,
    MOST_PAIRS,
    PUBLISHED_WELL,
    SOLVED_WELL,
    SOLVED_WELL_IN_TWO,
)
from privacyfunnel.errors import SizeError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information

AUTO = "auto"  # the optimum, or a chain or a forced response where too many combinations occur
DEFAULT_METHOD = AUTO
JOINT, CHAIN, FORCED = "optimal", "chain", "forced-response"
AS_IT_IS = "a record is published as it is with the largest chance there can be, else as another"
MANY = "more than the {} for which the best is sought by itself: " + AS_IT_IS
STATISTICS_WORK = 20.0  # nominal seconds of counted work that the best for statistics gets without a time limit


@dataclass(frozen=True, slots=True)
class Choice:
    """A method, and the reason for it in words."""

    method: str
    reason: str
    alternative: str = (
        ""  # a method that is made as well, at next to no cost, and taken where it keeps more information
    )


def resolve_method(name: str, joint: Joint, promise: Promise, options: Options) -> tuple[Choice, Options]:
    """The method of that name, or the one that `auto` takes here; and the options as it gets them.

    An order of columns asks for a chain, statistics of many combinations for a forced response. One column, a protocol
    that sees the secret, another use than information, or an average asks for the optimum.
    """
    if name != AUTO:
        return Choice(name, ""), options
    follows = frozenset({methods.SEES_SECRET, methods.AS_VALUES, methods.ORDER, methods.AVERAGE})
    methods.refuse_options(AUTO, follows, options)
    if options.order:
        return Choice(CHAIN, ""), options
    if isinstance(options.use, Statistics) and _prefers_forced_response(joint, promise, options):
        return Choice(FORCED, f"{_describe_size(joint)}, {MANY.format(_value_limit(options))}"), options
    other = options.use != Information() or options.average is not None
    if joint.m == 1 or options.sees_secret or other:
        return Choice(JOINT, ""), options
    return choose_method(joint, promise, options.as_values), options


def make_design(choice: Choice, joint: Joint, promise: Promise, options: Options) -> tuple[Choice, Design]:
    """What the chosen method makes, or the one beside it where that keeps more; and which of them it was."""
    mine = methods.find_method(choice.method)
    found = mine.design(joint, mine.adapt_promise(promise), options)
    if not choice.alternative:
        return choice, found
    try:
        other = methods.find_method(choice.alternative).design(joint, promise, options)
    except SizeError:
        return choice, found
    if other.information <= found.information:
        return choice, found
    kept = f"which keeps more than a {choice.method}, {other.information:.2f} nats instead of {found.information:.2f}"
    return Choice(choice.alternative, f"{_describe_size(joint)}: {AS_IT_IS}, {kept}"), other


def apply_default_use(
    choice: Choice, joint: Joint, promise: Promise, options: Options, *, named: bool = False
) -> tuple[Choice, Options]:
    """The options of a method where nobody said what the table is to be best for: statistics, where they can be had.

    Measured on tables of different kinds (docs/uses.md), that serves analysts best. Where the best protocol for these
    is too large to be sought, a forced response is made instead of what `auto` would take. Where no protocol for
    statistics is found, the most informative one is taken, and the reason says so. Few values that are published as
    they are, an average and methods that go column by column have uses of their own; a method that was `named` stays.
    """
    if not named and choice.method in (JOINT, CHAIN) and _prefers_forced_response(joint, promise, options):
        return Choice(FORCED, f"{_describe_size(joint)}, {MANY.format(_value_limit(options))}"), replace(
            options, use=Statistics()
        )
    if choice.method != JOINT or options.as_values or options.average is not None:
        return choice, options
    why_not = reason_against_statistics(joint, promise, options.sees_secret)
    if why_not:
        reason = f"{choice.reason}; " if choice.reason else ""
        return replace(choice, reason=f"{reason}made for information, not for statistics: {why_not}"), options
    if joint.a > CONDITIONED_AT_ALL and not options.sees_secret:
        reason = f"{choice.reason}; " if choice.reason else ""
        many = f"more than {CONDITIONED_AT_ALL}: the best for statistics is not sought, but a forced response made"
        choice = replace(choice, reason=f"{reason}{many}")
    effort = replace(options.effort, work_limit=STATISTICS_WORK)
    return choice, replace(options, use=Statistics(), effort=effort)


def _prefers_forced_response(joint: Joint, promise: Promise, options: Options) -> bool:
    """Whether statistics are served by a forced response: too many values for the best protocol, and a promise about
    everybody, under which no value needs so much noise that the others drown in it."""
    asked = options.sees_secret or options.average is not None or bool(options.order)
    return joint.a > _value_limit(options) and not asked and promise.epsilon >= BLURRED and is_chainable(promise, joint)


def _value_limit(options: Options) -> int:
    """Up to how many values the best protocol is sought: for statistics, or for values that are published as such."""
    return PUBLISHED_WELL if options.as_values else CONDITIONED_WELL


def reason_against_statistics(joint: Joint, promise: Promise, sees_secret: bool) -> str:
    """Why no protocol for statistics is sought, in words; nothing where one is."""
    if sees_secret and promise.credal_sets(joint, sees_secret) is not None:
        return "for a population a protocol that sees the secret is made for the most information"
    if sees_secret and int(np.count_nonzero(joint.weights)) > MOST_PAIRS:
        return f"a protocol that sees the secret is made for these with at most {MOST_PAIRS} pairs of secret and value"
    if promise.epsilon < BLURRED:
        return "with so small an ε no share that depends on the secret can be estimated"
    return ""


def choose_method(joint: Joint, promise: Promise, as_values: bool = False) -> Choice:
    """The joint optimum while it is small enough to solve well, beyond a chain or a forced response.

    Raises
    ------
    SizeError
        If there are more combinations than can be solved, and the promise is not one that a chain keeps.
    """
    size = _describe_size(joint)
    well = SOLVED_WELL_IN_TWO if joint.c == 2 else SOLVED_WELL
    well = min(well, PUBLISHED_WELL) if as_values else well
    if joint.m == 1 or joint.a <= well:
        return Choice(JOINT, f"{size}, few enough for the optimum over all of them together")
    if is_chainable(promise, joint):
        reason = f"{size}, more than the {well:,} solved well together: column after column"
        return Choice(CHAIN, reason, alternative=FORCED)
    if joint.a > LARGEST_PROBLEM:
        raise SizeError(
            f"{promise.name} is solved for at most {LARGEST_PROBLEM:,} combinations; {size}. Publish fewer columns, "
            "use coarser bins, or promise LIP or LDP with the method chain."
        )
    return Choice(JOINT, f"{size}; {promise.name} is not kept by a chain, so the optimum is sought, with a wide gap")


def _describe_size(joint: Joint) -> str:
    return f"{joint.a:,} combinations of {joint.m} columns occur" if joint.m > 1 else f"{joint.a:,} values occur"
