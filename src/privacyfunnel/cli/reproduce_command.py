"""`reproduce`: the paper's figures again, beside what the paper reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer, is_terminal
from privacyfunnel.cli.spec_options import Force


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            help="ldp-lip, ldp-half-lip, lip-srlip, adult, grr-cr, alpha-utility, alpha-epsilon; all if none.",
            metavar="[FIGURE]...",
            show_default=False,
        ),
    ] = None,
    *,
    into: Annotated[Path, typer.Option("--into", help="The folder for reproduction.md and its figures.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer draws and points: two minutes, not half an hour.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Redraw the figures of the paper's experiments, and set them beside what it reports."""
    from privacyfunnel.experiments.reproduction import reproduce

    with _show_tasks() as progress:
        done = reproduce(figures or (), into, quick=quick, force=force, progress=progress)
    content = {"page": str(done.page), "files": [str(path) for path in done.files], "seconds": done.seconds}
    text = text_format.format_facts(
        [("page", str(done.page)), ("figures", f"{done.files[0].parent}, {len(done.files)} files"),
         ("minutes", f"{done.seconds / 60:.1f}")]
    )  # fmt: skip
    answer(as_json, content, text)


@contextmanager
def _show_tasks() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar of the tasks that are done, with the figure the last was for; None where nobody watches."""
    if not is_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:13}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda figure, done, total: bar.update(task, description=figure, completed=done, total=total)
