"""Methods: the names under which protocols are asked for, and what makes each.

Every method answers one call, `Method.design(joint, promise, options)`, with a `Design`: a protocol to be measured
and sealed, and, where one was proved, an upper bound on what any protocol could keep. A new method is a line in
`METHODS`; which line `auto` takes, and why, is below it. What a method is told, and what it answers
with, is in `interface.py`. Each loads what it needs when it is called: none asks for the libraries of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel import plugins
from privacyfunnel.arrays import nonzero_entries
from privacyfunnel.designs.interface import (
    BLURRED,
    CONDITIONED_AT_ALL,
    MOST_PAIRS,
    Design,
    Effort,
    Options,
    Progress,
    RecordDesign,
)
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.linear_use import resolve_value_use
from privacyfunnel.model.uses.ordinal_scale import check_orders
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.model.uses.use import Information, Use, UseValue
from privacyfunnel.names import suggest_name

if TYPE_CHECKING:
    from privacyfunnel.model.protocols.channel_protocol import Protocol
    from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol


WORK_LIMIT = 60.0  # nominal seconds of counted work that an optimum gets without a time limit


def restrict_to_listed(promise: Promise) -> Promise:
    """The promise without people who have a value that no row has: there is no row for these."""
    return promise.cover_anything_else(False)


def design_optimum(joint: Joint, promise: Promise, options: Options) -> RecordDesign:
    from privacyfunnel.designs.optimal.optimum import optimal
    from privacyfunnel.engine.clock import clock_for

    if options.average is not None:
        return _design_on_average(joint, restrict_to_listed(promise), options, options.average)
    effort = options.effort
    use = resolve_value_use(options.use, joint, options.orders) if options.as_values else options.use
    promise = restrict_to_listed(promise) if use.keeps_margin else promise
    with clock_for(effort.time_limit):
        best = optimal(
            joint,
            promise,
            use,
            sees_secret=options.sees_secret,
            gap=effort.gap,
            time_limit=_limit(effort, WORK_LIMIT),
            progress=effort.progress,
        )
    shown = best.protocol.as_values(joint) if options.as_values else best.made
    # Balanced proves a bound on information too, and tells it with its integers.
    in_nats = best.bound if use == Information() else None if best.sealed is None else best.sealed.bound
    worth = UseValue(use, best.value, best.bound, best.stopped.value, best.strategy or None)
    return RecordDesign(joint, promise, shown, _count_outputs(shown), in_nats, best.sealed, worth)


def _limit(effort: Effort, work: float) -> float:
    """Seconds by the clock of the effort: the time limit, or else counted work."""
    if effort.time_limit is not None:
        return effort.time_limit
    return work if effort.work_limit is None else effort.work_limit


def _design_on_average(joint: Joint, promise: Promise, options: Options, average: float) -> RecordDesign:
    from privacyfunnel.designs.optimal.privacy_funnel import optimal_on_average
    from privacyfunnel.engine.clock import clock_for

    if options.sees_secret or options.as_values or options.use != Information():
        raise ParameterError(
            "an average is solved for the information of protocols that see only what is published, and publish groups "
            f"of values. Leave out {hint('sees_secret')}, {hint('as_', 'values')} and {hint('use')}."
        )
    effort, kept = options.effort, None if options.average_only else promise
    with clock_for(effort.time_limit):
        limit = _limit(effort, WORK_LIMIT)
        best = optimal_on_average(joint, average, kept, gap=effort.gap, time_limit=limit, progress=effort.progress)
    # The bound holds with this average, so that it is none on what the promise alone allows.
    worth = UseValue(options.use, best.utility, best.bound, best.stopped.value, best.strategy or None)
    return RecordDesign(
        joint, promise, best.protocol, _count_outputs(best.protocol), sealed=best.sealed, use_worth=worth
    )


def design_randomised_response(joint: Joint, promise: Promise, options: Options) -> RecordDesign:
    from privacyfunnel.designs.baselines import randomised_response

    return _channel_design(joint, promise, randomised_response(joint, promise), options)


def design_conditional_reporting(joint: Joint, promise: Promise, options: Options) -> RecordDesign:
    from privacyfunnel.designs.baselines import conditional_reporting

    return _channel_design(joint, promise, conditional_reporting(joint, promise), options)


def _channel_design(joint: Joint, promise: Promise, protocol: Protocol, options: Options) -> RecordDesign:
    shown = protocol.as_values(joint) if options.as_values else protocol
    options.use.refuse(joint)
    worth = UseValue(options.use, options.use.value(joint, shown), None)
    return RecordDesign(joint, promise, shown, _count_outputs(shown), use_worth=worth)


def _count_outputs(protocol: Protocol | SparseProtocol) -> int:
    """How many outputs can come."""
    return len(set(nonzero_entries(protocol.channel)[1].tolist()))


__all__ = ["METHODS", "Design", "Effort", "Method", "Options", "Progress", "RecordDesign", "find_method"]

Maker = Callable[[Joint, Promise, Options], Design]

SEES_SECRET, AS_VALUES, AVERAGE = "sees_secret", "as_values", "average"
REAL_OR_SYNTHETIC = "real-or-synthetic"
# What is said where a method cannot follow an option.
REFUSALS = {
    SEES_SECRET: "{method} never looks at the secret; leave out " + hint("sees_secret") + " or use another method.",
    AS_VALUES: "{method} publishes sets, not values; use " + hint("as_", "labels") + " or another method.",
    AVERAGE: "an average is for the method {others}; {method} knows none. Leave it out.",
}


@dataclass(frozen=True, slots=True)
class Method:
    """A way to a protocol: what makes it, and which options it can follow."""

    name: str
    make: Maker
    follows: frozenset[str] = frozenset({AS_VALUES})
    uses: tuple[type[Use], ...] = (Information,)  # what it can be made for, or measured by
    always_sees_secret: bool = False  # at the secret, whether asked to or not
    searches: bool = False  # for as long as it is told to
    answers_anything_else: bool = False  # by a row of its own for values that no row of the table has

    def design(self, joint: Joint, promise: Promise, options: Options | None = None) -> Design:
        """The protocol of this method which keeps the promise.

        >>> from privacyfunnel.model.promises import LIP
        >>> find_method("randomised-response").design(Joint.from_counts([[1, 0], [0, 1]]), LIP(9)).outputs
        2
        """
        options = options or Options()
        orders = options.orders or options.use.orders
        check_orders(orders, joint)
        options = replace(options, orders=orders, use=options.use.with_orders(orders))
        if not self.serves(options.use):
            without_model = (other for other in METHODS.values() if other.make is not _refuse_without_model)
            others = _format_choices([other.name for other in without_model if other.serves(options.use)])
            raise ParameterError(
                f"{self.name} is not made for '{options.use.full_name}'; leave out {hint('use')}, or use the method "
                f"{others}."
            )
        refuse_options(self.name, self.follows, options)
        return self.make(joint, promise if self.answers_anything_else else restrict_to_listed(promise), options)

    def serves(self, use: Use) -> bool:
        """Whether it can be made for that use, or measured by it."""
        return isinstance(use, self.uses)

    def adapt_promise(self, promise: Promise) -> Promise:
        """The promise as this method keeps it: to people with values never seen too, where it has a row for them."""
        return promise.cover_anything_else(self.answers_anything_else)


def refuse_options(method: str, follows: frozenset[str], options: Options) -> None:
    """Refuse what this method cannot follow."""
    for option, sentence in REFUSALS.items():
        if option not in follows and _is_asked(getattr(options, option)):
            others = _format_choices([name for name, other in METHODS.items() if option in other.follows])
            raise ParameterError(sentence.format(method=method, others=others))


def _format_choices(names: Sequence[str]) -> str:
    """Names of which one is to be chosen.

    >>> _format_choices(["a", "b", "c"]), _format_choices(["a"])
    ('a, b or c', 'a')
    """
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _is_asked(option: object) -> bool:
    """Whether anybody asked for it; an average of 0 was asked for."""
    return option is not False and option is not None


def find_method(name: str) -> Method:
    """The method of that name."""
    found = METHODS.get(name) or plugins.load_plugin(plugins.METHODS, name)
    if found is None:
        known = ("auto", *METHODS, *plugins.plugin_names(plugins.METHODS))
        raise ParameterError(
            f"A method is one of {', '.join(known)}; there is none called '{name}'.{suggest_name(name, known)}"
        )
    if not (isinstance(found, Method) and found.name == name):
        raise ParameterError(f"The method '{name}' of another package must be a Method of that name; it is {found!r}.")
    return found


def _refuse_without_model(joint: Joint, promise: Promise, options: Options) -> Design:
    raise ParameterError(
        f"{REAL_OR_SYNTHETIC} draws synthetic records from a published model; there is none. Add "
        f"{hint('prior', 'model')}, or use another method."
    )


_BOTH = frozenset({SEES_SECRET, AS_VALUES})
_EVERY_USE = (Use,)
_TABLE = (
    Method(
        "optimal",
        design_optimum,
        follows=_BOTH | {AVERAGE},
        uses=_EVERY_USE,
        searches=True,
        answers_anything_else=True,
    ),
    Method("randomised-response", design_randomised_response, uses=_EVERY_USE, answers_anything_else=True),
    Method(
        "conditional-reporting",
        design_conditional_reporting,
        follows=_BOTH,
        uses=_EVERY_USE,
        always_sees_secret=True,
        answers_anything_else=True,
    ),
    Method(REAL_OR_SYNTHETIC, _refuse_without_model, uses=(Information, Statistics)),
)
METHODS: Mapping[str, Method] = MappingProxyType({each.name: each for each in _TABLE})


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
    refuse_options(AUTO, frozenset({SEES_SECRET, AS_VALUES, AVERAGE}), options)
    return Choice(JOINT)


def make_design(choice: Choice, joint: Joint, promise: Promise, options: Options) -> Design:
    """What the chosen method makes."""
    mine = find_method(choice.method)
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
    effort = replace(options.effort, work_limit=min(options.effort.work_limit or STATISTICS_WORK, STATISTICS_WORK))
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
