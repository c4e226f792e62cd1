"""Methods: the names under which protocols are asked for, and what makes each.

Every method answers one call, `Method.design(joint, promise, options)`, with a `Design`: a protocol to be measured
and sealed, and, where one was proved, an upper bound on what any protocol could keep. A new method is a line in
`METHODS`; which line `auto` takes, and why, is in `choice.py` beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING
from typing import Protocol as Shape

from privacyfunnel.arrays import filled
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.comparable import Comparable
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.linear import values_published
from privacyfunnel.model.uses.order import Orders, checked_orders
from privacyfunnel.model.uses.statistics import Statistics
from privacyfunnel.model.uses.use import Information, Use, Worth
from privacyfunnel.tables.names import nearest

if TYPE_CHECKING:
    from privacyfunnel.laws.law import Described
    from privacyfunnel.laws.sealing import SealedProtocol
    from privacyfunnel.model.protocol import Protocol
    from privacyfunnel.model.sparse import SparseProtocol

SECONDS = 60.0  # that an optimum gets where nobody said how long it may take
Progress = Callable[[float, float], None]  # called with utility and bound, now and then


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a search goes: the gap at which it may stop, and the seconds after which it must."""

    gap: float = 1e-6
    time_limit: float | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """What a method may be told beyond the joint and the promise. One that cannot follow an option refuses it."""

    sees_secret: bool = False
    as_values: bool = False  # publish original values, not groups of them
    budgets: str | tuple[float, ...] | None = None  # "paper", "sound" or an ε per column; searched if None
    order: tuple[str, ...] = ()  # the columns in the order they are published in; chosen by what they keep if empty
    use: Use = field(default_factory=Information)  # what the protocol is to be best for
    orders: Orders = ()  # of columns whose values stand on a line, though they are no numbers
    average: float | None = None  # nats: I(S;Y) may be no more than this, beside what is promised
    average_only: bool = False  # whether the promise is but a stop, and the average all that is asked
    effort: Effort = field(default_factory=Effort)


class Design(Shape):
    """What a method answers with."""

    @property
    def protocol(self) -> Comparable:
        """What is drawn from, as something to measure."""

    @property
    def bound(self) -> float | None:
        """Nats: no protocol keeps more; None where nothing was proved."""

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""

    @property
    def worth(self) -> Worth:
        """How good it is for the use that was asked for."""

    @property
    def outputs(self) -> int:
        """How many different outputs there are."""

    def seal(self) -> SealedProtocol:
        """The protocol as integers on which the promise was checked, exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A protocol for whole records, and the bound that was proved for it in nats, if any."""

    joint: Joint
    promise: Promise
    protocol: Described
    outputs: int
    bound: float | None = None
    sealed: SealedProtocol | None = None  # where its integers were checked when it was made
    judged: Worth | None = None  # where it was asked for another use than information

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return self.protocol.mutual_information(self.joint)

    @property
    def worth(self) -> Worth:
        """How good it is for the use that was asked for."""
        return self.judged or of_information(self)

    def seal(self) -> SealedProtocol:
        """The protocol as integers on which the promise was checked, exactly."""
        from privacyfunnel.laws.sealing import seal

        return self.sealed or seal(self.protocol, self.promise, self.joint, bound=self.bound)


def of_information(found: Design) -> Worth:
    """What a design is worth where information is what counts."""
    return Worth(Information(), found.information, found.bound)


Maker = Callable[[Joint, Promise, Options], Design]
Trial = Callable[[Joint, Promise, Options], float]

SEES_SECRET, AS_VALUES, BUDGETS, ORDER, AVERAGE = "sees_secret", "as_values", "budgets", "order", "average"
# What is said where a method cannot follow an option.
REFUSALS = {
    SEES_SECRET: "{method} never looks at the secret; leave out --sees-secret or use another method.",
    AS_VALUES: "{method} publishes sets, not values; use --as labels or another method.",
    ORDER: "an order of columns is for the method {others}; {method} needs none. Leave it out.",
    BUDGETS: "budgets are for the method {others}; {method} needs none. Leave them out.",
    AVERAGE: "an average is for the method {others}; {method} knows none. Leave it out.",
}


@dataclass(frozen=True, slots=True)
class Method:
    """A way to a protocol: what makes it, and which options it can follow."""

    name: str
    make: Maker
    follows: frozenset[str] = frozenset({AS_VALUES})
    uses: tuple[type[Use], ...] = (Information,)  # what it can be made for, or measured by
    looks: bool = False  # at the secret, whether asked to or not
    searches: bool = False  # for as long as it is told to
    by_column: bool = False  # one column after the other: for tables whose combinations are many
    answers_anything_else: bool = False  # by a row of its own for values that no row of the table has
    trial: Trial | None = None  # about how many nats it keeps, where finding that out by a design would take long

    def design(self, joint: Joint, promise: Promise, options: Options | None = None) -> Design:
        """The protocol of this method which keeps the promise.

        >>> from privacyfunnel.model.promises import LIP
        >>> method("randomised-response").design(Joint.from_counts([[1, 0], [0, 1]]), LIP(9)).outputs
        2
        """
        options = options or Options()
        orders = options.orders or options.use.orders
        checked_orders(orders, joint)
        options = replace(options, orders=orders, use=options.use.ordered(orders))
        if not self.serves(options.use):
            others = _either([name for name, other in METHODS.items() if other.serves(options.use)])
            raise ParameterError(
                f"{self.name} is not made for '{options.use.called}'; leave out --for, or use the method {others}."
            )
        refuse_options(self.name, self.follows, options)
        return self.make(joint, promise if self.answers_anything_else else _listed_values(promise), options)

    def serves(self, use: Use) -> bool:
        """Whether it can be made for that use, or measured by it."""
        return isinstance(use, self.uses)

    def covering(self, promise: Promise) -> Promise:
        """The promise as this method keeps it: to people with values never seen too, where it has a row for them."""
        return promise.covering_anything_else(self.answers_anything_else)

    def keeps(self, joint: Joint, promise: Promise, options: Options) -> float:
        """About how many nats the method keeps of a table: to compare tables with."""
        return (self.trial or _measured(self))(joint, promise, options)


def refuse_options(method: str, follows: frozenset[str], options: Options) -> None:
    """Refuse what this method cannot follow."""
    for option, sentence in REFUSALS.items():
        if option not in follows and _is_asked(getattr(options, option)):
            others = _either([name for name, other in METHODS.items() if option in other.follows])
            raise ParameterError(sentence.format(method=method, others=others))


def _either(names: Sequence[str]) -> str:
    """Names of which one is to be chosen.

    >>> _either(["a", "b", "c"]), _either(["a"])
    ('a, b or c', 'a')
    """
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _is_asked(option: object) -> bool:
    """Whether anybody asked for it; an average of 0 was asked for, an order of no columns was not."""
    return option is not False and option is not None and option != ()


def method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise unknown_method(name, tuple(METHODS))
    return METHODS[name]


def unknown_method(name: str, known: Sequence[str]) -> ParameterError:
    """The error for a name that no method has."""
    return ParameterError(
        f"A method is one of {', '.join(known)}; there is none called '{name}'.{nearest(name, known)}"
    )


def _listed_values(promise: Promise) -> Promise:
    """The promise without people who have a value that no row has: there is no row for these."""
    return promise.covering_anything_else(False)


def _measured(mine: Method) -> Trial:
    return lambda joint, promise, options: mine.design(joint, promise, options).information


def _optimal(joint: Joint, promise: Promise, options: Options) -> Made:
    from privacyfunnel.designs.optimum import optimal

    if options.average is not None:
        return _on_average(joint, _listed_values(promise), options, options.average)
    effort = options.effort
    use = values_published(options.use, joint, options.orders) if options.as_values else options.use
    promise = _listed_values(promise) if use.keeps_margin else promise
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


def _randomised_response(joint: Joint, promise: Promise, options: Options) -> Made:
    from privacyfunnel.designs.explicit import randomised_response

    return _channel(joint, promise, randomised_response(joint, promise), options)


def _conditional_reporting(joint: Joint, promise: Promise, options: Options) -> Made:
    from privacyfunnel.designs.explicit import conditional_reporting

    return _channel(joint, promise, conditional_reporting(joint, promise), options)


def _unary_encoding(joint: Joint, promise: Promise, options: Options) -> Made:
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


def _product(joint: Joint, promise: Promise, options: Options) -> Design:
    from privacyfunnel.designs.product.budgets import SECONDS, product_protocol

    limit = options.effort.time_limit
    found = product_protocol(joint, promise, options.budgets, seconds=SECONDS if limit is None else limit)
    return found.as_values() if options.as_values else found


def _chain(joint: Joint, promise: Promise, options: Options) -> Design:
    from privacyfunnel.designs.chain.order import chain_protocol

    chain = chain_protocol(
        joint,
        promise,
        order=options.order or None,
        as_values=options.as_values,
        seconds=options.effort.time_limit,
    )
    return chain.grown()


def _forced_response(joint: Joint, promise: Promise, options: Options) -> Design:
    from privacyfunnel.designs.response import responded

    return responded(joint, promise, options.use)


def _chain_trial(joint: Joint, promise: Promise, options: Options) -> float:
    from privacyfunnel.designs.chain.order import trial

    return trial(joint, promise)


_ALL_BUT_COLUMNS = frozenset({SEES_SECRET, AS_VALUES})
_EVERY_USE = (Use,)
_TABLE = (
    Method(
        "optimal",
        _optimal,
        follows=_ALL_BUT_COLUMNS | {AVERAGE},
        uses=_EVERY_USE,
        searches=True,
        answers_anything_else=True,
    ),
    Method("randomised-response", _randomised_response, uses=_EVERY_USE, answers_anything_else=True),
    Method("unary-encoding", _unary_encoding, follows=frozenset()),
    Method(
        "conditional-reporting",
        _conditional_reporting,
        follows=_ALL_BUT_COLUMNS,
        uses=_EVERY_USE,
        looks=True,
        answers_anything_else=True,
    ),
    Method("product", _product, follows=frozenset({AS_VALUES, BUDGETS}), searches=True, by_column=True),
    Method(
        "chain",
        _chain,
        follows=frozenset({AS_VALUES, ORDER}),
        searches=True,
        by_column=True,
        trial=_chain_trial,
    ),
    Method("forced-response", _forced_response, uses=(Information, Statistics), by_column=True),
)
METHODS: Mapping[str, Method] = MappingProxyType({each.name: each for each in _TABLE})
