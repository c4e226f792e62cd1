"""`studio`: a page in the browser, from a table to its release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privacyfunnel.cli.application import show


def studio(
    table: Annotated[
        Path | None, typer.Argument(readable=False, help="A table to begin with; another can be chosen on the page.")
    ] = None,
    *,
    port: Annotated[int, typer.Option("--port", help="0: any that is free.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Choose, see what it costs and publish, in the browser, on this machine alone."""
    from privacyfunnel.studio.launcher import run

    if table is not None:
        from privacyfunnel.tables.readers.table_files import open_table

        open_table(table)  # refuses what is no table before a page is opened
    run(table, port=port, browser=browser, say=show)
