"""`curve`: utility and bound of all methods against ε."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.spec_options import (
    BY_NAME,
    COARSER,
    READING,
    Given,
    TableOrCounts,
    build_spec,
    takes_spec,
    with_default,
)

if TYPE_CHECKING:
    from privacyfunnel.designs.curve import Curve, Point
    from privacyfunnel.designs.optimal.privacy_funnel import Funnel
    from privacyfunnel.model.joint import Joint
    from privacyfunnel.spec import ReleaseSpec


OF_ALL = with_default("time_limit", "60 seconds of counted work for each point; a limit is for all of them")


@takes_spec(
    *("secret", "publish", "promise", "population", "sees_secret", "use", "ordered", *COARSER),
    *("gap", "time_limit", *READING, "into", "force"),
    into="A folder for curve.csv, curve.svg and curve.png.",
    time_limit=OF_ALL,
    use=with_default("use", "information"),
)
def curve(
    table: TableOrCounts,
    *,
    epsilons: Annotated[
        str | None, typer.Option("--epsilons", help="Which ε to try, with commas between.", metavar="ε,ε,…")
    ] = None,
    given: Given,
    as_json: Json = False,
) -> None:
    """Show what each method keeps, and what any could keep, as ε grows."""
    from privacyfunnel.cli.application import show_progress
    from privacyfunnel.designs import curve as room
    from privacyfunnel.model.uses.ordinal_scale import check_orders
    from privacyfunnel.report import CURVE

    sizes = room.EPSILONS if epsilons is None else parse_list("epsilon", epsilons)
    spec = build_spec(table, given, epsilon=1.0)
    options = spec.options()
    use = options.use.with_orders(options.orders)
    check_folder(spec, CURVE)
    joint = read_joint(spec)
    check_orders(options.orders, joint)
    promise, population = spec.promise_for(joint), spec.confidence
    with show_progress() as (proof, _):
        found = room.curve(
            joint,
            promise,
            epsilons=sizes,
            sees_secret=spec.sees_secret,
            use=use,
            effort=replace(options.effort, time_limit=None, progress=proof),
            within=math.inf if spec.time_limit is None else spec.time_limit,
            cores=None,
        )
    files = []
    if spec.into is not None:
        from privacyfunnel.report.curve_figures import write_curve

        files = write_curve(found, spec.into, force=spec.force)
    content = {
        "promise": found.promise,
        "population": population,
        "entropy": found.entropy,
        "use": use.full_name,
        "unit": use.unit,
        "points": [asdict(point) for point in found.points],
        "files": [str(path) for path in files],
    }
    what = "I(X;Y) in nats" if use.name == "information" else f"{use.full_name}, {use.unit},"
    people = "" if population is None else f" for a population, {100 * population:g} % confidence"
    text = f"{what} under {found.promise.upper()}{people}; H(X) = {found.entropy:.4f}\n\n{_format_curve(found)}"
    several = len({point.name for point in found.points if point.stopped is not None}) > 1
    cut = text_format.explain_cut_points((_name_point(point, several), point.stopped) for point in found.points)
    text = "\n\n".join([text, *cut])
    if files:
        text += f"\n\nWritten: {', '.join(map(str, files))}"
    answer(as_json, content, text)


def parse_list(field: str, text: str) -> tuple[float, ...]:
    """Several numbers with commas between, each a value of the field.

    >>> parse_list("epsilon", "0.5,1")
    (0.5, 1.0)
    """
    return tuple(BY_NAME[field].option.kind.check(field, part) for part in text.split(","))


def check_folder(spec: ReleaseSpec, names: Iterable[str]) -> None:
    """Refuse a folder that holds one of these files already, before hours are spent."""
    from privacyfunnel.atomic_files import check_target

    if spec.into is not None and spec.into.exists():
        for name in names:
            check_target(spec.into / name, force=spec.force)


def read_joint(spec: ReleaseSpec) -> Joint:
    """The joint of a table's columns, or of a file of counts where none are named."""
    from privacyfunnel.errors import ColumnError
    from privacyfunnel.model.contingency_csv import read_counts
    from privacyfunnel.release.design import check_joint
    from privacyfunnel.tables.coding.encoding import encode

    if not spec.secret and not spec.publish:
        if spec.merges:
            raise ColumnError("values are merged in a table; this is a file of counts. Add up its rows or columns.")
        return read_counts(Path(spec.table))
    if not spec.secret or not spec.publish:
        raise ColumnError("a table needs --secret and --publish; one is missing. For a file of counts leave out both.")
    source = spec.source.open(spec.dialect)
    return check_joint(
        encode(source, secret=spec.secret, publish=spec.publish, bins=spec.bin_rules, merges=spec.merges).contingency
    )


def _name_point(point: Point, several: bool) -> str:
    """What a point is called, with its method where several of them are sought."""
    return f"ε = {point.epsilon:g} ({point.name})" if several else f"ε = {point.epsilon:g}"


def _format_curve(found: Curve) -> str:
    rows = []
    for name, points in found.lines():
        rows.append([name, *("–" if p.height is None else f"{p.height:.4f}" for p in points)])
        if any(p.bound is not None for p in points):
            rows.append(["  bound", *("" if p.bound is None else f"{p.bound:.4f}" for p in points)])
        if any(p.bound_nats is not None for p in points):
            rows.append(["  nats kept", *("" if p.utility is None else f"{p.utility:.4f}" for p in points)])
            rows.append(["  nats at most", *("" if p.bound_nats is None else f"{p.bound_nats:.4f}" for p in points)])
    header = ["ε", *(f"{epsilon:g}" for epsilon in found.epsilons)]
    return text_format.format_table(header, rows, "<" + ">" * len(found.epsilons))


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
