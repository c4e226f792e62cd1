"""What makes the protocol of each method, as the table in `methods.py` names it.

Each loads what it needs when it is called: none asks for the libraries of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privacyfunnel.arrays import nonzero_entries
from privacyfunnel.designs.interface import Effort, Options, RecordDesign
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.linear_use import resolve_value_use
from privacyfunnel.model.uses.use import Information, UseValue

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
