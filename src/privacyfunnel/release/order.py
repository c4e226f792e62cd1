"""Orders: what the owner asks for, and how it is carried out: which method, which sealed protocol, what to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from privacyfunnel.designs.methods import AUTO, BY_COLUMN, DEFAULT_METHOD, METHODS, Effort, make, unknown_method
from privacyfunnel.errors import ColumnError, ParameterError, PrivacyFunnelError
from privacyfunnel.laws.sampling import KeyStream
from privacyfunnel.laws.sealing import SealedProtocol, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.unary_encoding import UnaryEncoding
from privacyfunnel.tables.bins import Bins

if TYPE_CHECKING:
    from privacyfunnel.tables.encoding import Encoding

LABELS, VALUES = "labels", "values"
SMALL_GAP, SECONDS_EACH = 0.01, 4.0  # how well smaller tables are solved, in nats and seconds
TELLING = 0.02  # the share of rows whose combination tells the secret from which on the summary says so
Watch = Callable[[str, int], None]  # told what is being done, and with how many rows


@dataclass(frozen=True, slots=True)
class Order:
    """What the owner asks for."""

    secret: tuple[str, ...]
    publish: tuple[str, ...]
    promise: Promise
    method: str = DEFAULT_METHOD
    chain_order: tuple[str, ...] = ()  # the columns of a chain in order; chosen by what they keep if empty
    budgets: str | tuple[float, ...] | None = (
        None  # of a product: "paper", "sound" or an ε per column; searched if None
    )
    keep: tuple[str, ...] = ()
    bins: tuple[Bins, ...] = ()
    as_: str = LABELS
    sets: str = "column"
    sees_secret: bool = False
    seed: int | None = None  # for tests only
    effort: Effort = field(default_factory=Effort)

    def __post_init__(self) -> None:
        if self.as_ not in {LABELS, VALUES}:
            raise ParameterError(f"Outputs are published as {LABELS} or {VALUES}; not as '{self.as_}'.")
        known = [AUTO, *METHODS, *BY_COLUMN]
        if self.method not in known:
            raise unknown_method(self.method, known)
        for role, columns in (("secret", self.secret), ("published", self.publish)):
            if not columns:
                raise ColumnError(f"at least one {role} column must be named; none was. Name one.")
        twice = [name for name in self.keep if name in (*self.secret, *self.publish)]
        if twice:
            raise ColumnError(
                f"column '{twice[0]}' cannot be kept as it is and be secret or published too. Name it once."
            )


def settled(joint: Joint, order: Order) -> tuple[Order, str]:
    """The order with its method settled, and why where it was not given."""
    from privacyfunnel.designs.choice import JOINT, SECONDS, choose_method

    if order.chain_order and order.method not in {AUTO, "chain"}:
        raise ParameterError(f"an order of columns is for the method chain; {order.method} needs none. Leave it out.")
    if order.budgets is not None and order.method != "product":
        raise ParameterError(f"budgets are for the method product; {order.method} needs none. Leave them out.")
    if order.method != AUTO:
        return order, ""
    if order.chain_order:
        return replace(order, method="chain"), ""
    if joint.m == 1 or order.sees_secret:
        return replace(order, method="optimal"), ""
    choice = choose_method(joint, order.promise)
    limit = order.effort.time_limit
    effort = replace(order.effort, time_limit=SECONDS if limit is None and choice.method == JOINT else limit)
    return replace(order, method=choice.method, effort=effort), choice.reason


def sparse_words(joint: Joint, order: Order, sealed: SealedProtocol, watch: Watch | None) -> str:
    """What to know where combinations tell the secret of many rows; else nothing."""
    from privacyfunnel.release.advice import sparseness

    if sparseness(joint).told < TELLING:
        return ""
    if watch:
        watch("trying smaller tables", 0)
    whole = _quickly(joint, order)
    # What is found quickly is less than what was found; it is the comparison that counts.
    scale = sealed.information / whole if whole else 1.0
    return str(sparseness(joint, sealed.domain.bins, lambda table: _scaled(_quickly(table, order), scale)))


def _scaled(kept: float | None, scale: float) -> float | None:
    return None if kept is None else kept * scale


def _quickly(table: Joint, order: Order) -> float | None:
    """How many nats the order would keep of a table if it had seconds only; None where it cannot be followed there."""
    from privacyfunnel.designs.chain.order import trial
    from privacyfunnel.designs.product.budgets import product_protocol

    if table.a < 2:
        return 0.0
    effort = Effort(gap=SMALL_GAP, time_limit=SECONDS_EACH)
    try:
        if order.method == "chain":
            return trial(table, order.promise)
        if order.method == "product":
            return product_protocol(table, order.promise, order.budgets, seconds=SECONDS_EACH).information
        made = make(order.method, table, order.promise, sees_secret=order.sees_secret, effort=effort)
        return made.protocol.mutual_information(table)
    except PrivacyFunnelError:  # the release itself is done, and stands
        return None


def sealed_protocol(encoding: Encoding, joint: Joint, order: Order, stream: KeyStream) -> SealedProtocol:
    """The protocol that the order asks for, sealed, with the columns and bins of the table in its domain."""
    sealed = _by_column(encoding, joint, order, stream) if order.method in BY_COLUMN else _whole(joint, order)
    contingency = encoding.contingency
    domain = replace(
        sealed.domain,
        secret_columns=contingency.secret.columns,
        bins={coding.column: coding.edges for coding in contingency.published.codings if coding.edges},
    )
    return replace(sealed, domain=domain, for_publication=order.seed is None)


def _by_column(encoding: Encoding, joint: Joint, order: Order, stream: KeyStream) -> SealedProtocol:
    """A product or a chain. A chain is made for the very rows that will be drawn, with the same stream."""
    import numpy as np

    from privacyfunnel.designs.chain.order import chain_protocol
    from privacyfunnel.designs.product.budgets import product_protocol

    if order.sees_secret:
        raise ParameterError(
            f"{order.method} never looks at the secret; leave out --sees-secret or use another method."
        )
    as_values = order.as_ == VALUES
    limit = order.effort.time_limit  # of the search for a good product, or order of a chain
    seconds = {} if limit is None else {"seconds": limit}
    if order.method == "product":
        product = product_protocol(joint, order.promise, order.budgets, **seconds).protocol
        return seal(product.as_values(joint) if as_values else product, order.promise, joint)
    codes = np.concatenate([chunk.published for chunk in encoding.chunks()])
    chain = chain_protocol(joint, order.promise, order=order.chain_order or None, as_values=as_values, **seconds)
    return chain.seal(codes, stream)[0]


def _whole(joint: Joint, order: Order) -> SealedProtocol:
    made = make(order.method, joint, order.promise, sees_secret=order.sees_secret, effort=order.effort)
    protocol = made.protocol
    if order.as_ == VALUES:
        if isinstance(protocol, UnaryEncoding):
            raise ParameterError(f"{order.method} publishes sets, not values; use --as labels or another method.")
        protocol = protocol.as_values(joint)
    return seal(protocol, order.promise, joint, bound=made.bound)
