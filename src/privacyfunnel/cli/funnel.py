"""`funnel`: the classical Privacy Funnel, I(X;Y) against I(S;Y), with its proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import words
from privacyfunnel.cli.curve import joint_of
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.options import (
    Force,
    Gap,
    TimeLimitOfAll,
    several_averages,
)
from privacyfunnel.cli.reading import Coarsening, Reading
from privacyfunnel.cli.spread import spread

if TYPE_CHECKING:
    from privacyfunnel.designs.funnel import Funnel

NO_PROMISE = (
    "I(S;Y) is an average and no promise: the ε behind a point is what the record that tells most gives away, "
    "and it may be unbounded."
)


@spread
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
    coarsening: Coarsening,
    gap: Gap = 1e-5,
    time_limit: TimeLimitOfAll = None,
    reading: Reading,
    into: Annotated[
        Path | None, typer.Option("--into", help="A folder for funnel.csv, funnel.svg and funnel.png.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show the most that can be kept where the secret is told on average only: for comparison with what is promised."""
    from privacyfunnel.cli.progress import work_shown
    from privacyfunnel.designs import funnel as room
    from privacyfunnel.report import FUNNEL
    from privacyfunnel.tables.whole import checked_target

    sizes = () if averages is None else several_averages(averages)
    if into is not None and into.exists():
        for name in FUNNEL:
            checked_target(into / name, force=force)
    joint = joint_of(table, secret, publish, coarsening, reading)
    with work_shown() as (proof, _):
        found = room.funnel(joint, sizes, gap=gap, time_limit=time_limit, progress=proof)
    files = []
    if into is not None:
        from privacyfunnel.report.funnel import write_funnel

        files = write_funnel(found, into, force=force)
    about = f"I(X;Y) in nats; H(X) = {found.entropy:.4f}, I(S;X) = {found.about_secret:.4f}"
    cut = words.cut_short((f"{point.average:.4f}", point.stopped.value) for point in found.points)
    text = "\n\n".join([about, _told(found), *cut, NO_PROMISE])
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


def _told(found: Funnel) -> str:
    best = [
        [
            f"{p.average:.4f}",
            f"{p.utility:.4f}",
            f"{p.bound:.4f}",
            f"{greedy:.4f}",
            words.epsilon(p.worst["lip"]),
            words.epsilon(p.worst["ldp"]),
        ]
        for p, greedy in zip(found.points, found.greedy, strict=True)
    ]
    beside = [[b.promise.upper(), f"{b.epsilon:g}", f"{b.about_secret:.4f}", f"{b.utility:.4f}"] for b in found.beside]
    header = ["I(S;Y) at most", "best I(X;Y)", "bound", "greedy", "its LIP ε", "its LDP ε"]
    return "\n\n".join(
        [
            words.table(header, best, ">>>>>>"),
            words.table(["promise", "ε", "I(S;Y)", "I(X;Y)"], beside, "<>>>"),
        ]
    )
