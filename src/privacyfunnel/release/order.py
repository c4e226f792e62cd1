"""Orders: what the owner asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from privacyfunnel.designs.method_selection import DEFAULT_METHOD, check_method
from privacyfunnel.designs.methods import Effort, Options
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.model.credal.sample_rule import check_confidence
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.ordinal_scale import Orders
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.release.private_design import PrivateDesign, check_private
from privacyfunnel.release.sending import Sending
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.merges import Merge

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.domain_file import DomainFile

OUTCOMES, LABELS, VALUES = "outcomes", "labels", "values"


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
    use: Use | None = (
        None  # what the table is to be best for; None: what serves most, see `designs/method_selection.py`
    )
    orders: Orders = ()  # of columns whose values stand on a line, though they are no numbers
    average: float | None = None  # nats: I(S;Y) may be no more than this, beside what is promised
    average_only: bool = False  # whether the promise is but a stop, and the average all that is asked
    keep: tuple[str, ...] = ()
    bins: tuple[Bins, ...] = ()
    merges: tuple[Merge, ...] = ()  # values that are read as one
    as_: str = OUTCOMES  # codes and most likely values, or what an output stands for in words, or values alone
    sets: str = "column"
    sees_secret: bool = False
    with_shares: bool = False  # publish the shares of the published columns in the protocol file
    keep_order: bool = False  # publish the rows in the order of the table, which may give the secret away
    seed: int | None = None  # for tests only
    row_id: str | None = None  # the column that tells rows apart; else they are addressed by their position
    key: RowKey | None = None  # the owner's, for releases that draw unchanged people alike; else a fresh one
    effort: Effort = field(default_factory=Effort)
    population: float | None = None  # the confidence with which it is to hold for the people the rows are a sample of
    population_if_possible: bool = False  # whether these rows alone are promised for where the people cannot be
    private: PrivateDesign | None = None  # a design from noisy counts, in a public domain
    domain: DomainFile | None = None

    def __post_init__(self) -> None:
        if self.as_ not in {OUTCOMES, LABELS, VALUES}:
            raise ParameterError(f"Outputs are published as {OUTCOMES}, {LABELS} or {VALUES}; not as '{self.as_}'.")
        check_method(self.method)
        check_private(self.private, self.domain, self.bins, self.merges)
        if self.with_shares and self.private is not None:
            raise ParameterError(
                "A private design tells of its rows through noise alone; exact shares would undo it. Leave out "
                "--with-shares or --design-epsilon."
            )
        if self.population is not None:
            check_confidence(self.population)
        for role, columns in (("secret", self.secret), ("published", self.publish)):
            if not columns:
                raise ColumnError(f"at least one {role} column must be named; none was. Name one.")
        self.sending.refuse_used((*self.secret, *self.publish))

    @property
    def sending(self) -> Sending:
        """What is asked of the rows on their way out."""
        return Sending(self.keep, self.sets, self.keep_order, self.seed, self.row_id, self.key)

    def promised(self, joint: Joint) -> Promise:
        """The promise about this table, and about the people it is a sample of where that was asked for."""
        return self.promise if self.population is None else self.promise.for_population(joint, self.population)

    @property
    def options(self) -> Options:
        """What the method is told."""
        return Options(
            sees_secret=self.sees_secret,
            as_values=self.as_ == VALUES,
            budgets=self.budgets,
            order=self.chain_order,
            use=self.use or Information(),
            orders=self.orders or (() if self.use is None else self.use.orders),
            average=self.average,
            average_only=self.average_only,
            effort=self.effort,
        )
