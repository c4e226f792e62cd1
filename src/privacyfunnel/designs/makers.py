"""What makes the protocol of each method, as the table in `methods.py` names it.

Each loads what it needs when it is called: none asks for the libraries of another.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privacyfunnel.arrays import filled
from privacyfunnel.designs.design import Design, Made, Options
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.linear import values_published
from privacyfunnel.model.uses.use import Information, Worth

if TYPE_CHECKING:
    from privacyfunnel.model.protocol import Protocol
    from privacyfunnel.model.sparse import SparseProtocol

SECONDS = 60.0  # that an optimum gets where nobody said how long it may take


def listed_values(promise: Promise) -> Promise:
    """The promise without people who have a value that no row has: there is no row for these."""
    return promise.covering_anything_else(False)


def by_optimum(joint: Joint, promise: Promise, options: Options) -> Made:
    from privacyfunnel.designs.optimum import optimal

    if options.average is not None:
        return _on_average(joint, listed_values(promise), options, options.average)
    effort = options.effort
    use = values_published(options.use, joint, options.orders) if options.as_values else options.use
    promise = listed_values(promise) if use.keeps_margin else promise
    best = optimal(
        joint,
        promise,
        use,
        sees_secret=options.sees_secret,
        gap=effort.gap,
        time_limit=SECONDS if effort.time_limit is None else effort.time_limit,
        progress=effort.progress,
    )
    shown = best.protocol.as_values(joint) if options.as_values else best.made
    # Balanced proves a bound on information too, and tells it with its integers.
    in_nats = best.bound if use == Information() else None if best.sealed is None else best.sealed.bound
    worth = Worth(use, best.value, best.bound, best.stopped.value)
    return Made(joint, promise, shown, _outputs(shown), in_nats, best.sealed, worth)


def _on_average(joint: Joint, promise: Promise, options: Options, average: float) -> Made:
    from privacyfunnel.designs.funnel import optimal_on_average

    if options.sees_secret or options.as_values or options.use != Information():
        raise ParameterError(
            "an average is solved for the information of protocols that see only what is published, and publish groups "
            "of values. Leave out --sees-secret, --as values and --for."
        )
    effort, kept = options.effort, None if options.average_only else promise
    best = optimal_on_average(
        joint, average, kept, gap=effort.gap, time_limit=effort.time_limit, progress=effort.progress
    )
    # The bound holds with this average, so that it is none on what the promise alone allows.
    worth = Worth(options.use, best.utility, best.bound, best.stopped.value)
    return Made(joint, promise, best.protocol, _outputs(best.protocol), sealed=best.sealed, judged=worth)


def by_randomised_response(joint: Joint, promise: Promise, options: Options) -> Made:
    from privacyfunnel.designs.explicit import randomised_response

    return _channel(joint, promise, randomised_response(joint, promise), options)


def by_conditional_reporting(joint: Joint, promise: Promise, options: Options) -> Made:
    from privacyfunnel.designs.explicit import conditional_reporting

    return _channel(joint, promise, conditional_reporting(joint, promise), options)


def by_unary_encoding(joint: Joint, promise: Promise, options: Options) -> Made:
    from privacyfunnel.designs.explicit import unary_encoding

    sets = unary_encoding(joint, promise)
    # Without randomness only single values and the empty set are published.
    return Made(joint, promise, sets, sets.a + 1 if sets.alpha == math.inf else 2**sets.a)


def _channel(joint: Joint, promise: Promise, protocol: Protocol, options: Options) -> Made:
    shown = protocol.as_values(joint) if options.as_values else protocol
    options.use.refuse(joint)
    worth = Worth(options.use, options.use.value(joint, shown), None)
    return Made(joint, promise, shown, _outputs(shown), judged=worth)


def _outputs(protocol: Protocol | SparseProtocol) -> int:
    """How many outputs can come."""
    return len(set(filled(protocol.channel)[1].tolist()))


def by_product(joint: Joint, promise: Promise, options: Options) -> Design:
    from privacyfunnel.designs.product.budgets import SECONDS, product_protocol

    limit = options.effort.time_limit
    found = product_protocol(joint, promise, options.budgets, seconds=SECONDS if limit is None else limit)
    return found.as_values() if options.as_values else found


def by_chain(joint: Joint, promise: Promise, options: Options) -> Design:
    from privacyfunnel.designs.chain.order import chain_protocol

    chain = chain_protocol(
        joint,
        promise,
        order=options.order or None,
        as_values=options.as_values,
        seconds=options.effort.time_limit,
    )
    return chain.grown()


def by_forced_response(joint: Joint, promise: Promise, options: Options) -> Design:
    from privacyfunnel.designs.response import responded

    return responded(joint, promise, options.use)


def trial_of_chain(joint: Joint, promise: Promise, options: Options) -> float:
    from privacyfunnel.designs.chain.order import trial

    return trial(joint, promise)
