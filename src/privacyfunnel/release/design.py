"""Design: from the counts of a table to a sealed protocol.

Counts are all that a design needs, so its protocol may draw today's rows and next year's. The one exception is a method
that is made while it draws (a chain, whose contexts are solved when a row first comes to them): its protocol belongs to
the very rows it was made for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.choice import DEFAULT_METHOD, Choice, settled
from privacyfunnel.designs.curve import Point, line_name
from privacyfunnel.designs.methods import Design, Effort, Options, RowsToDraw, method
from privacyfunnel.errors import ColumnError, GuaranteeError, ParameterError, SizeError
from privacyfunnel.laws.outcomes import outcomes_of
from privacyfunnel.laws.sampling import Stream
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.use import Information, Use, Worth
from privacyfunnel.release.order import OUTCOMES, Order, names
from privacyfunnel.release.private import check_drawn_apart, private_design
from privacyfunnel.release.whom import obstacle, of_rows_alone, unhurried, whom
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.merging import merges_of

if TYPE_CHECKING:
    from privacyfunnel.tables.domain_file import DomainFile
    from privacyfunnel.tables.encoding import Encoding
    from privacyfunnel.tables.files import Table


@dataclass(frozen=True, slots=True, eq=False)
class Designed:
    """A sealed protocol, and how it came about."""

    sealed: SealedProtocol
    joint: Joint  # the owner's own: it holds counts
    choice: Choice  # the method, and why where it was not given
    options: Options  # what that method was told
    seconds: float  # what making and certifying took
    worth: Worth  # how good it is for the use it was made for
    drawn: NDArray[Any] | None = None  # the rows' codes, where they had to be drawn to make the protocol
    not_for_people: str = ""  # why the people are promised nothing, where that was left open; it may tell of secrets
    rows_alone: Worth | None = None  # what these rows alone would keep, where the people were promised without asking

    @property
    def point(self) -> Point | None:
        """The point of a curve of information that is known by now; None where it was made for something else."""
        if self.options.as_values or self.options.average is not None or self.worth.use != Information():
            return None
        sealed = self.sealed
        return Point(
            line_name(self.choice.method, sealed.sees_secret), sealed.promise.epsilon, sealed.information, sealed.bound
        )


def design(
    frame: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    promise: Promise,
    population: float | str | None = None,
    method: str = DEFAULT_METHOD,
    budgets: str | Sequence[float] | None = None,
    bins: Sequence[Bins] = (),
    merge_rare: int | Mapping[str, int] | None = None,
    merge_secrets: Mapping[str, Sequence[str]] | None = None,
    as_: str = OUTCOMES,
    use: Use | None = None,
    sees_secret: bool = False,
    effort: Effort | None = None,
    design_epsilon: float | None = None,
    domain: DomainFile | None = None,
) -> SealedProtocol:
    """The sealed protocol for a frame (anything narwhals reads), of which only counts are used; nothing is drawn.

    What each argument means is what `Order` says of it. A chain is made while it draws, and is refused here.
    """
    from privacyfunnel.tables.frames import FrameTable

    order = Order(
        secret=names(secret),
        publish=names(publish),
        promise=promise,
        population=whom(population).confidence,
        population_if_possible=whom(population).if_possible,
        method=method,
        budgets=budgets if budgets is None or isinstance(budgets, str) else tuple(budgets),
        bins=tuple(bins),
        merges=merges_of(merge_rare, merge_secrets),
        as_=as_,
        use=use or Information(),
        sees_secret=sees_secret,
        effort=effort or Effort(),
        private=private_design(design_epsilon),
        domain=domain,
    )
    return designed(counted(FrameTable.of(frame), order), order).sealed


def counted(table: Table, order: Order, keep: Sequence[str] = ()) -> Encoding:
    """The table read once and counted, in the domain that was given or in its own."""
    from privacyfunnel.tables.encoding import encode

    if order.domain is not None:
        return order.domain.encoded(table, secret=order.secret, publish=order.publish, keep=keep)
    return encode(table, secret=order.secret, publish=order.publish, bins=order.bins, merges=order.merges, keep=keep)


def designed(encoding: Encoding, order: Order, stream: Stream | None = None) -> Designed:
    """The protocol that the order asks for, sealed, with the columns and bins of the table in its domain.

    `stream` is what the rows will be drawn with; it is needed where the protocol is made while it draws.
    """
    begun = time.monotonic()
    why_not, alone = "", None
    if order.private is not None:  # from here on nothing of the table is looked at but these counts
        joint, promise = order.private.of(encoding, order.promise, order.population, order.seed)
        found = _made(encoding, order, stream, joint, promise, order.options)
    elif not order.population_if_possible:
        joint = checked_joint(encoding)
        found = _made(encoding, order, stream, joint, order.promised(joint), order.options)
    else:
        joint = checked_joint(encoding)
        found, why_not = _for_people_if_possible(encoding, order, stream, joint)
        if not why_not:
            alone = of_rows_alone(found.choice.method, joint, order.promise, found.options)
    choice, options, sealed = found.choice, found.options, found.sealed
    contingency = encoding.contingency
    domain = replace(
        sealed.domain,
        secret_columns=contingency.secret.columns,
        bins={coding.column: coding.edges for coding in contingency.published.codings if coding.edges},
        grouped={at.column: at.how for at in contingency.published.codings if at.how is not None},
        rest={at.column: at.labels[at.rest] for at in contingency.published.codings if at.rest is not None},
        secrets_merged=any(coding.joins for coding in contingency.secret.codings),
    )
    taken = {*domain.secret_columns, *order.publish, *order.keep}
    outcomes = outcomes_of(sealed.law, joint, taken) if order.as_ == OUTCOMES else ()
    sealed = replace(sealed, domain=domain, outcomes=outcomes, for_publication=order.seed is None)
    seconds = time.monotonic() - begun
    worth, drawn, options = found.design.worth, _narrow(found.design.drawn), replace(options, rows=None)
    return Designed(sealed, joint, choice, options, seconds, worth, drawn, why_not, alone)


class _Made(NamedTuple):
    """What a method made of an order."""

    choice: Choice
    options: Options
    design: Design
    sealed: SealedProtocol


def _made(
    encoding: Encoding, order: Order, stream: Stream | None, joint: Joint, promise: Promise, options: Options
) -> _Made:
    """The protocol of the method that was asked for, or that suits, keeping this promise."""
    choice, options = settled(order.method, joint, promise, options)
    mine = method(choice.method)
    if order.private is not None:
        check_drawn_apart(mine.name, mine.needs_rows)
    if mine.needs_rows:
        if stream is None:
            raise ParameterError(f"{mine.name} is made while rows are drawn, so it has no design apart. Use sanitise.")
        codes = np.concatenate([chunk.published for chunk in encoding.chunks()])
        options = replace(options, rows=RowsToDraw(codes, stream))
    found = mine.design(joint, mine.covering(promise), options)
    return _Made(choice, options, found, found.seal())


def _for_people_if_possible(encoding: Encoding, order: Order, stream: Stream | None, joint: Joint) -> tuple[_Made, str]:
    """The protocol for the people, or for these rows alone and why. What is wrong with the order itself is raised."""
    try:
        why_not = obstacle(order, joint)
        if not why_not:
            promise, options = order.promised(joint), unhurried(order.options)
            return _made(encoding, order, stream, joint, promise, options), ""
    except (ParameterError, SizeError, GuaranteeError) as error:
        why_not = str(error)
    return _made(encoding, order, stream, joint, order.promise, order.options), why_not


def _narrow(drawn: IntArray | None) -> NDArray[Any] | None:
    """The same codes in the smallest integers that hold them: they wait in memory until their rows are written."""
    return None if drawn is None else drawn.astype(np.min_scalar_type(int(drawn.max(initial=0))))


def checked_joint(encoding: Encoding) -> Joint:
    """p(s, x) of a table; refuses a secret or a published part that is the same in every row."""
    joint = Joint.from_contingency(encoding.contingency)
    for role, size, columns in (
        ("secret", joint.c, encoding.contingency.secret.columns),
        ("published", joint.a, encoding.contingency.published.columns),
    ):
        if size < 2:
            nothing = "hide" if role == "secret" else "sanitise"
            raise ColumnError(
                f"what is {role} must have at least two values; {' & '.join(columns)} has one in all {encoding.rows} "
                f"rows. There is nothing to {nothing}: name another column."
            )
    return joint
