"""The main job: from a table to its sanitised version and the public protocol, whole or not at all.

table ──count──▶ Joint ──design──▶ SealedProtocol ──apply──▶ rows ──shuffle──▶ sanitised table
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from privacyfunnel.designs.choice import DEFAULT_METHOD
from privacyfunnel.designs.methods import Effort
from privacyfunnel.errors import OutputError
from privacyfunnel.model.promises import Promise
from privacyfunnel.release.order import LABELS, Order, Watch, names
from privacyfunnel.release.release import Release
from privacyfunnel.release.work import Work
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.merging import merges_of

__all__ = ["Release", "sanitise", "sanitise_file"]


def sanitise(
    frame: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    promise: Promise,
    method: str = DEFAULT_METHOD,
    chain_order: Sequence[str] = (),
    budgets: str | Sequence[float] | None = None,
    keep: str | Sequence[str] = (),
    bins: Sequence[Bins] = (),
    merge_rare: int | Mapping[str, int] | None = None,
    merge_secrets: Mapping[str, Sequence[str]] | None = None,
    as_: str = LABELS,
    sets: str = "column",
    sees_secret: bool = False,
    keep_order: bool = False,
    seed: int | None = None,
    effort: Effort | None = None,
) -> Release:
    """Sanitise a frame in memory (anything narwhals reads); `Release.table` is a frame of the same kind.

    Its rows are in a random order, of which `Release.order` tells the owner, unless the order is to be kept.
    An index, attrs and metadata of the frame are not passed on; `Release.beside` says which there were.
    What each argument means is what `Order` says of it.
    """
    import polars as pl

    from privacyfunnel.tables.frames import FrameTable

    order = Order(
        secret=names(secret),
        publish=names(publish),
        promise=promise,
        method=method,
        chain_order=tuple(chain_order),
        budgets=budgets if budgets is None or isinstance(budgets, str) else tuple(budgets),
        keep=names(keep),
        bins=tuple(bins),
        merges=merges_of(merge_rare, merge_secrets),
        as_=as_,
        sets=sets,
        sees_secret=sees_secret,
        keep_order=keep_order,
        seed=seed,
        effort=effort or Effort(),
    )
    source = FrameTable.of(frame)
    work = Work.begun(source, order)
    rows, numbers = pl.concat(work.batches(order.keep)), work.order
    columns = [column for column in rows.get_columns() if column.name not in order.keep]
    release = replace(work.release(source.like(columns, order.keep, order=numbers)), order=numbers)
    named = tuple(name for name in source.index_names or () if name and name not in source.columns)
    return replace(release, dropped=(*release.dropped, *named), beside=source.beside)


def sanitise_file(
    source: str | Path,
    into: str | Path,
    order: Order,
    *,
    suffix: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    force: bool = False,
    ledger: str | Path | None = None,
    again: bool = False,
    trial: bool = False,
    watch: Watch | None = None,
) -> Release:
    """Sanitise a file of any size into the folder `into`: `sanitised.csv` (or as `suffix` says) and `protocol.json`.

    Either both files appear, whole, or none. The release is remembered in the owner's `ledger`, by default beside the
    table; a second one of the same rows about the same secret is refused unless it is to be made `again`. A
    `trial`, such as a demonstration, is remembered and does not count.
    """
    from privacyfunnel.release.ledger import Ledger, ledger_of
    from privacyfunnel.release.repeats import entry_of, judged, overtaken, refusal
    from privacyfunnel.tables.files import checked_output, open_table, table_suffix
    from privacyfunnel.tables.whole import checked_target, folder, nameless_file, whole_file
    from privacyfunnel.tables.writing import write_batches

    source, into = Path(source), Path(into)
    table = open_table(source, delimiter=delimiter, encoding=encoding)
    target = into / f"sanitised{suffix or table_suffix(source)}"
    protocol_file = into / "protocol.json"
    if target.exists() and target.samefile(source):
        raise OutputError(f"'{target}' is the table itself and must not be overwritten. Name another folder.")
    if into.exists():  # before hours are spent
        for path in (target, protocol_file):
            checked_target(path, force=force)
    book = Ledger(ledger_of(source) if ledger is None else Path(ledger))
    salt = book.salt()
    work = Work.begun(table, order, watch)
    mine = entry_of(work.encoding, order, work.sealed, work.order_key, salt, source, target, trial=trial)
    remembered = judged(book.path, mine, book.others(mine), work.sealed, work.encoding, order)
    if remembered.repeats and not again:
        raise refusal(remembered)
    with (
        folder(into),
        book.remembered(mine, known=remembered.repeats, refuse=overtaken) as replaced,
        whole_file(protocol_file, force=force) as protocol_beside,
        whole_file(target, force=force) as table_beside,
    ):
        batches = work.batches(order.keep, partial(nameless_file, target))
        write_batches(table_beside, checked_output(target, force=force), batches)
        protocol_beside.write_text(work.sealed.to_text(), encoding="utf-8")
        release = work.release(target)  # before the files appear: what fails leaves nothing behind
    remembered = replace(remembered, replaced=tuple(replaced))
    return replace(release, protocol_file=protocol_file, remembered=remembered)
