"""`funnel`: the classical Privacy Funnel, I(X;Y) against I(S;Y), with its proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.curve_command import read_joint
from privacyfunnel.cli.option_groups import expand_groups
from privacyfunnel.cli.options import (
    Force,
    Gap,
    TimeLimitOfAll,
    parse_averages,
)
from privacyfunnel.cli.table_options import CoarseningOptions, TableOptions

if TYPE_CHECKING:
    from privacyfunnel.designs.optimal.privacy_funnel import Funnel

NO_PROMISE = (
    "I(S;Y) is an average and no promise: the ε behind a point is what the record that tells most gives away, "
    "and it may be unbounded."
)


@expand_groups
def funnel(
    table: Annotated[
        Path, typer.Argument(readable=False, help="A table, with --secret and --publish; or a CSV file of counts.")
    ],
    *,
    secret: Annotated[list[str] | None, typer.Option("--secret", "-s", help="The secret column.")] = None,
    publish: Annotated[list[str] | None, typer.Option("--publish", "-p", help="A column to publish.")] = None,
    averages: Annotated[
        str | None,
        typer.Option("--averages", help="Which I(S;Y) to allow, in nats, with commas between.", metavar="M,M,…"),
    ] = None,
    coarsening: CoarseningOptions,
    gap: Gap = 1e-5,
    time_limit: TimeLimitOfAll = None,
    reading: TableOptions,
    into: Annotated[
        Path | None, typer.Option("--into", help="A folder for funnel.csv, funnel.svg and funnel.png.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show the most that can be kept where the secret is told on average only: for comparison with what is promised."""
    from privacyfunnel.atomic_files import check_target
    from privacyfunnel.cli.progress import show_progress
    from privacyfunnel.designs.optimal import privacy_funnel as room
    from privacyfunnel.report import FUNNEL

    sizes = () if averages is None else parse_averages(averages)
    if into is not None and into.exists():
        for name in FUNNEL:
            check_target(into / name, force=force)
    joint = read_joint(table, secret, publish, coarsening, reading)
    with show_progress() as (proof, _):
        found = room.funnel(joint, sizes, gap=gap, time_limit=time_limit, progress=proof)
    files = []
    if into is not None:
        from privacyfunnel.report.curve_figures import write_funnel

        files = write_funnel(found, into, force=force)
    about = f"I(X;Y) in nats; H(X) = {found.entropy:.4f}, I(S;X) = {found.about_secret:.4f}"
    cut = text_format.explain_cut_points((f"{point.average:.4f}", point.stopped.value) for point in found.points)
    text = "\n\n".join([about, _format_funnel(found), *cut, NO_PROMISE])
    if files:
        text += f"\n\nWritten: {', '.join(map(str, files))}"
    answer(as_json, _content(found, files), text)


def _content(found: Funnel, files: list[Path]) -> dict[str, Any]:
    return {
        "entropy": found.entropy,
        "about_secret": found.about_secret,
        "points": [
            {
                "average": point.average,
                "utility": point.utility,
                "bound": point.bound,
                "about_secret": point.about_secret,
                "worst": dict(point.worst),
                "stopped": point.stopped.value,
                "greedy": greedy,
            }
            for point, greedy in zip(found.points, found.greedy, strict=True)
        ],
        "promises": [
            {"promise": b.promise, "epsilon": b.epsilon, "utility": b.utility, "about_secret": b.about_secret}
            for b in found.beside
        ],
        "files": [str(path) for path in files],
    }


def _format_funnel(found: Funnel) -> str:
    best = [
        [
            f"{p.average:.4f}",
            f"{p.utility:.4f}",
            f"{p.bound:.4f}",
            f"{greedy:.4f}",
            text_format.format_epsilon(p.worst["lip"]),
            text_format.format_epsilon(p.worst["ldp"]),
        ]
        for p, greedy in zip(found.points, found.greedy, strict=True)
    ]
    beside = [[b.promise.upper(), f"{b.epsilon:g}", f"{b.about_secret:.4f}", f"{b.utility:.4f}"] for b in found.beside]
    header = ["I(S;Y) at most", "best I(X;Y)", "bound", "greedy", "its LIP ε", "its LDP ε"]
    return "\n\n".join(
        [
            text_format.format_table(header, best, ">>>>>>"),
            text_format.format_table(["promise", "ε", "I(S;Y)", "I(X;Y)"], beside, "<>>>"),
        ]
    )
