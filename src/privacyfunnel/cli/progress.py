"""Progress on a terminal, silence in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from privacyfunnel.cli.frame import on_terminal


@contextmanager
def proof_shown() -> Iterator[Callable[[float, float], None] | None]:
    """A function that shows utility, bound and gap while a proof is on its way; None where nobody watches."""
    if not on_terminal():
        yield None
        return
    with _status("solving …") as update:
        yield lambda utility, bound: update(
            f"utility {utility:.6f}   bound {bound:.6f}   gap {bound - utility:.1e} nats"
        )


@contextmanager
def rows_shown() -> Iterator[Callable[[str, int], None] | None]:
    """A function that shows what is being done to how many rows; None where nobody watches."""
    if not on_terminal():
        yield None
        return
    with _status("reading …") as update:
        yield lambda doing, rows: update(f"{doing} {rows:,} rows")


@contextmanager
def _status(text: str) -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    with Console(stderr=True, highlight=False).status(text, spinner="line") as status:
        yield status.update
