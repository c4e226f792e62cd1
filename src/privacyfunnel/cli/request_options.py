"""What the command line asks for: from whom, what, and how the rows are to leave; as an order to the rooms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.cli.epsilon_meaning import resolve_epsilon
from privacyfunnel.cli.options import (
    AverageOption,
    Factor,
    ForOrDefault,
    Gap,
    KeepOrder,
    OptionalEpsilon,
    Ordered,
    PopulationOrNone,
    PromiseName,
    PromiseOption,
    Publish,
    Secret,
    SeesSecret,
    TimeLimit,
    parse_names,
)
from privacyfunnel.cli.release_options import (
    AnyMethod,
    AsOption,
    AverageOnly,
    Budgets,
    ChainOrder,
    DesignEpsilon,
    DesignNoise,
    DomainOption,
    Keep,
    KeyFile,
    NoiseChoice,
    OutputForm,
    RowId,
    Seed,
    SetsFormat,
    SetsOption,
    UnknownPolicy,
    WithShares,
)
from privacyfunnel.errors import ParameterError

if TYPE_CHECKING:
    from privacyfunnel.cli.table_options import CoarseningOptions
    from privacyfunnel.designs.methods import Progress
    from privacyfunnel.release.order import Order
    from privacyfunnel.release.sending import Sending
    from privacyfunnel.tables.readers.table_files import TableSource


def parse_source(table: str, query: str | None) -> TableSource:
    """Where the rows come from: a file, or a query on a database."""
    from privacyfunnel.tables.databases.drivers import is_server_address
    from privacyfunnel.tables.databases.query import FILES, Query
    from privacyfunnel.tables.readers.table_files import FileSource

    if query is not None:
        return Query(table, query)
    if is_server_address(table) or table.lower().endswith(FILES):
        raise ParameterError("A database holds many tables; which rows are meant? Add --query 'select … from …'.")
    return FileSource(Path(table))


@dataclass(frozen=True, kw_only=True)
class DesignRequest:
    """What a protocol is to promise and to keep."""

    secret: Secret
    publish: Publish
    epsilon: OptionalEpsilon = None
    factor: Factor = None
    promise: PromiseOption = PromiseName.LIP
    population: PopulationOrNone = "none"
    method: AnyMethod = "auto"
    order: ChainOrder = None
    budgets: Budgets = None
    for_: ForOrDefault = None
    ordered: Ordered = None
    average: AverageOption = None
    average_only: AverageOnly = False
    as_: AsOption = OutputForm.OUTCOMES
    gap: Gap = 1e-6
    time_limit: TimeLimit = None

    def to_spec(
        self, coarsening: CoarseningOptions, sending: Sending | None = None, progress: Progress | None = None
    ) -> Order:
        """The order that these words are, for rows that are read and sent so."""
        from privacyfunnel.designs.methods import Effort
        from privacyfunnel.model.promises import find_promise as promise_called
        from privacyfunnel.model.uses.ordinal_scale import parse_order
        from privacyfunnel.model.uses.use_parser import parse_use
        from privacyfunnel.release.order import Order
        from privacyfunnel.release.population_scope import parse_population
        from privacyfunnel.release.sending import Sending

        sent = sending or Sending()
        return Order(
            secret=parse_names(self.secret),
            publish=parse_names(self.publish),
            promise=promise_called(self.promise.value, self._resolved_epsilon),
            population=parse_population(self.population).confidence,
            population_if_possible=parse_population(self.population).if_possible,
            method=self.method,
            chain_order=parse_names(self.order),
            budgets=_parse_budgets(self.budgets),
            use=None if self.for_ is None else parse_use(self.for_),
            orders=tuple(map(parse_order, self.ordered or [])),
            average=self.average,
            average_only=self.average_only,
            keep=sent.keep,
            bins=coarsening.bins,
            merges=coarsening.merges,
            as_=self.as_.value,
            sets=sent.sets,
            keep_order=sent.keep_order,
            seed=sent.seed,
            row_id=sent.row_id,
            key=sent.key,
            effort=Effort(self.gap, self.time_limit, progress),
        )

    @property
    def _resolved_epsilon(self) -> float:
        """The ε to promise; with an average alone, the largest there is, and what comes of it is stated."""
        epsilon = resolve_epsilon(self.epsilon, self.factor)
        if self.average_only and (self.average is None or epsilon is not None):
            raise ParameterError(
                "--average-only needs --average and no --epsilon. Leave out --average-only to have both kept."
            )
        if self.average_only:
            from privacyfunnel.designs.optimal.problem_conversion import LARGEST_EPSILON

            return LARGEST_EPSILON
        if epsilon is None:
            also = (
                " An average alone promises nothing about the worst record: add --average-only to have it all the same."
            )
            raise ParameterError(f"Missing option '--epsilon'.{also if self.average is not None else ''}")
        return epsilon


@dataclass(frozen=True, kw_only=True)
class TableDesignRequest(DesignRequest):
    """The same where the rows themselves are at hand: what needs more than counts, or keeps the counts private."""

    sees_secret: SeesSecret = False
    with_shares: WithShares = False
    design_epsilon: DesignEpsilon = None
    domain: DomainOption = None
    design_noise: DesignNoise = NoiseChoice.OWN

    def to_spec(
        self, coarsening: CoarseningOptions, sending: Sending | None = None, progress: Progress | None = None
    ) -> Order:
        """The order that these words are, for rows that are read and sent so."""
        from privacyfunnel.release.private_design import make_private_design
        from privacyfunnel.tables.coding.domain_file import read_domain

        return replace(
            super().to_spec(coarsening, sending, progress),
            sees_secret=self.sees_secret,
            with_shares=self.with_shares,
            private=make_private_design(self.design_epsilon, self.design_noise.value),
            domain=None if self.domain is None else read_domain(self.domain),
        )


@dataclass(frozen=True, kw_only=True)
class OutputRequest:
    """What is asked of the rows on their way out."""

    keep: Keep = None
    sets: SetsOption = SetsFormat.COLUMN
    keep_order: KeepOrder = False
    row_id: RowId = None
    key_file: KeyFile = None

    def to_output_spec(self, unknown: str = UnknownPolicy.ERROR.value) -> Sending:
        """The same for those who send them; `unknown` is what becomes of rows that a protocol does not know."""
        from privacyfunnel.release.sending import Sending

        key = None
        if self.key_file is not None:
            from privacyfunnel.mechanisms.sampling import RowKey

            key = RowKey.load(self.key_file)
        return Sending(parse_names(self.keep), self.sets.value, self.keep_order, None, self.row_id, key, unknown)


@dataclass(frozen=True, kw_only=True)
class LocalOutputRequest(OutputRequest):
    """The same where this process draws them."""

    seed: Seed = None

    def to_output_spec(self, unknown: str = UnknownPolicy.ERROR.value) -> Sending:
        """The same for those who send them."""
        return replace(super().to_output_spec(unknown), seed=self.seed)


def _parse_budgets(text: str | None) -> str | tuple[float, ...] | None:
    if text is None:  # as nearly always: then the room of products is not needed
        return None
    from privacyfunnel.designs.product.budgets import parse_budgets

    return parse_budgets(text)
