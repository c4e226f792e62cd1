"""What the command line asks for, as an order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.cli.options import listed, merges
from privacyfunnel.errors import ParameterError

if TYPE_CHECKING:
    from privacyfunnel.designs.methods import Progress
    from privacyfunnel.laws.identified import RowKey
    from privacyfunnel.release.order import Order
    from privacyfunnel.tables.sources import Source


def source_asked(table: str, query: str | None) -> Source:
    """Where the rows come from: a file, or a query on a database."""
    from privacyfunnel.tables.databases.address import on_server
    from privacyfunnel.tables.databases.query import FILES, Query
    from privacyfunnel.tables.sources import FileSource

    if query is not None:
        return Query(table, query)
    if on_server(table) or table.lower().endswith(FILES):
        raise ParameterError("A database holds many tables; which rows are meant? Add --query 'select … from …'.")
    return FileSource(Path(table))


def order_asked(
    *,
    secret: list[str],
    publish: list[str],
    epsilon: float | None,
    promise: str = "lip",
    population: float | str | None = None,
    method: str = "auto",
    order: list[str] | None = None,
    budgets: str | None = None,
    for_: str | None = None,
    ordered: list[str] | None = None,
    average: float | None = None,
    average_only: bool = False,
    sees_secret: bool = False,
    with_shares: bool = False,
    keep: list[str] | None = None,
    bins: list[str] | None = None,
    merge_rare: list[str] | None = None,
    merge_secrets: list[str] | None = None,
    as_: str = "outcomes",
    sets: str = "column",
    keep_order: bool = False,
    gap: float = 1e-6,
    time_limit: float | None = None,
    seed: int | None = None,
    row_id: str | None = None,
    key_file: Path | None = None,
    design_epsilon: str | None = None,
    domain: Path | None = None,
    design_noise: str = "own",
    progress: Progress | None = None,
) -> Order:
    """The order that these words are."""
    from privacyfunnel.designs.methods import Effort
    from privacyfunnel.model.promises import promise as promise_called
    from privacyfunnel.model.uses.called import use_called
    from privacyfunnel.model.uses.order import parse_order
    from privacyfunnel.release.order import Order
    from privacyfunnel.release.private import private_design
    from privacyfunnel.release.whom import whom
    from privacyfunnel.tables.asking import parse_bin
    from privacyfunnel.tables.domain_file import read_domain

    return Order(
        secret=listed(secret),
        publish=listed(publish),
        promise=promise_called(promise, _size(epsilon, average, average_only)),
        population=whom(population).confidence,
        population_if_possible=whom(population).if_possible,
        method=method,
        chain_order=listed(order),
        budgets=_budgets(budgets),
        use=None if for_ is None else use_called(for_),
        orders=tuple(map(parse_order, ordered or [])),
        average=average,
        average_only=average_only,
        keep=listed(keep),
        bins=tuple(map(parse_bin, bins or [])),
        merges=merges(merge_rare, merge_secrets),
        as_=as_,
        sets=sets,
        sees_secret=sees_secret,
        with_shares=with_shares,
        keep_order=keep_order,
        seed=seed,
        row_id=row_id,
        key=row_key(key_file),
        effort=Effort(gap, time_limit, progress),
        private=private_design(design_epsilon, design_noise),
        domain=None if domain is None else read_domain(domain),
    )


def row_key(path: Path | None) -> RowKey | None:
    """The owner's key for rows that are addressed by their ids, where one is named."""
    if path is None:
        return None
    from privacyfunnel.laws.identified import RowKey

    return RowKey.load(path)


def _size(epsilon: float | None, average: float | None, average_only: bool) -> float:
    """The ε to promise; with an average alone, the largest there is, and what comes of it is stated."""
    if average_only and (average is None or epsilon is not None):
        raise ParameterError(
            "--average-only needs --average and no --epsilon. Leave out --average-only to have both kept."
        )
    if average_only:
        from privacyfunnel.designs.splitting import LARGEST_EPSILON

        return LARGEST_EPSILON
    if epsilon is None:
        also = " An average alone promises nothing about the worst record: add --average-only to have it all the same."
        raise ParameterError(f"Missing option '--epsilon'.{also if average is not None else ''}")
    return epsilon


def _budgets(text: str | None) -> str | tuple[float, ...] | None:
    if text is None:  # as nearly always: then the room of products is not needed
        return None
    from privacyfunnel.designs.product.budgets import parse_budgets

    return parse_budgets(text)
