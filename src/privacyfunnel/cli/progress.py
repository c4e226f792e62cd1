"""Progress on a terminal, silence in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from privacyfunnel.cli.application import is_terminal


@contextmanager
def show_progress() -> Iterator[tuple[Callable[[float, float], None] | None, Callable[[str, int], None] | None]]:
    """Two functions: one shows utility, bound and gap of a proof on its way, one what is done with how many rows.

    None for both where nobody watches.
    """
    if not is_terminal():
        yield None, None
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status("working", spinner="line") as status:
        yield (
            lambda utility, bound: status.update(
                f"utility {utility:.6f}   bound {bound:.6f}   gap {bound - utility:.1e} nats"
            ),
            lambda doing, rows: status.update(f"{doing} {rows:,} rows" if rows else doing),
        )
