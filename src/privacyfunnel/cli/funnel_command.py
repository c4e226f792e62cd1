"""`funnel`: the classical Privacy Funnel, I(X;Y) against I(S;Y), with its proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.curve_command import OF_ALL, check_folder, parse_list, read_joint
from privacyfunnel.cli.spec_options import COARSER, READING, Given, TableOrCounts, build_spec, takes_spec

if TYPE_CHECKING:
    from privacyfunnel.designs.optimal.privacy_funnel import Funnel

GAP = 1e-5  # nats
NO_PROMISE = (
    "I(S;Y) is an average, not a promise: the ε of a point is the leakage of its worst record, and may be unbounded."
)


@takes_spec(
    *("secret", "publish", *COARSER, "gap", "time_limit", *READING, "into", "force"),
    into="A folder for funnel.csv, funnel.svg and funnel.png.",
    time_limit=OF_ALL,
)
def funnel(
    table: TableOrCounts,
    *,
    averages: Annotated[
        str | None,
        typer.Option("--averages", help="Which I(S;Y) to allow, in nats, with commas between.", metavar="M,M,…"),
    ] = None,
    given: Given,
    as_json: Json = False,
) -> None:
    """Show the most that can be kept where only the average leakage I(S;Y) is bounded: for comparison."""
    from privacyfunnel.cli.application import show_progress
    from privacyfunnel.designs.optimal import privacy_funnel as room
    from privacyfunnel.report import FUNNEL

    sizes = () if averages is None else parse_list("average", averages)
    spec = build_spec(table, given, gap=GAP)
    check_folder(spec, FUNNEL)
    joint = read_joint(spec)
    with show_progress() as (proof, _):
        found = room.funnel(joint, sizes, gap=spec.gap, time_limit=spec.time_limit, progress=proof)
    files = []
    if spec.into is not None:
        from privacyfunnel.report.curve_figures import write_funnel

        files = write_funnel(found, spec.into, force=spec.force)
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
