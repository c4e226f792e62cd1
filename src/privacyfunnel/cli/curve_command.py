"""`curve`: utility and bound of all methods against ε."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.option_groups import expand_groups
from privacyfunnel.cli.options import (
    For,
    Force,
    Gap,
    Ordered,
    Population,
    PromiseName,
    PromiseOption,
    SeesSecret,
    TimeLimitOfAll,
    parse_epsilons,
)
from privacyfunnel.cli.table_options import CoarseningOptions, TableOptions
from privacyfunnel.spec.kinds import parse_names

if TYPE_CHECKING:
    from privacyfunnel.designs.curve import Curve, Point
    from privacyfunnel.model.joint import Joint
    from privacyfunnel.tables.readers.table_files import TableSource


@expand_groups
def curve(
    table: Annotated[
        Path, typer.Argument(readable=False, help="A table, with --secret and --publish; or a CSV file of counts.")
    ],
    *,
    secret: Annotated[list[str] | None, typer.Option("--secret", "-s", help="The secret column.")] = None,
    publish: Annotated[list[str] | None, typer.Option("--publish", "-p", help="A column to publish.")] = None,
    epsilons: Annotated[
        str | None, typer.Option("--epsilons", help="Which ε to try, with commas between.", metavar="ε,ε,…")
    ] = None,
    promise: PromiseOption = PromiseName.LIP,
    for_: For = "information",
    ordered: Ordered = None,
    population: Population = None,
    sees_secret: SeesSecret = False,
    coarsening: CoarseningOptions,
    gap: Gap = 1e-6,
    time_limit: TimeLimitOfAll = None,
    reading: TableOptions,
    into: Annotated[
        Path | None, typer.Option("--into", help="A folder for curve.csv, curve.svg and curve.png.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show what each method keeps, and what any could keep, as ε grows."""
    from privacyfunnel.atomic_files import check_target
    from privacyfunnel.cli.progress import show_progress
    from privacyfunnel.designs import curve as room
    from privacyfunnel.designs.methods import Effort
    from privacyfunnel.model.promises import find_promise as promise_called
    from privacyfunnel.model.uses.ordinal_scale import check_orders, parse_order
    from privacyfunnel.model.uses.use_parser import parse_use
    from privacyfunnel.report import CURVE

    sizes = room.EPSILONS if epsilons is None else parse_epsilons(epsilons)
    orders = tuple(map(parse_order, ordered or []))
    use = parse_use(for_).with_orders(orders)
    if into is not None and into.exists():
        for name in CURVE:
            check_target(into / name, force=force)
    joint = read_joint(table, secret, publish, coarsening, reading)
    check_orders(orders, joint)
    like = promise_called(promise.value, 1.0)
    if population is not None:
        like = like.for_population(joint, population)
    with show_progress() as (proof, _):
        found = room.curve(
            joint,
            like,
            epsilons=sizes,
            sees_secret=sees_secret,
            use=use,
            effort=Effort(gap, None, proof),
            within=math.inf if time_limit is None else time_limit,
            cores=None,
        )
    files = []
    if into is not None:
        from privacyfunnel.report.curve_figures import write_curve

        files = write_curve(found, into, force=force)
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


def read_joint(
    table: Path,
    secret: list[str] | None,
    publish: list[str] | None,
    coarsening: CoarseningOptions,
    reading: TableOptions,
) -> Joint:
    """The joint of a table's columns, or of a file of counts where none are named."""
    from privacyfunnel.errors import ColumnError
    from privacyfunnel.model.contingency_csv import read_counts

    if not secret and not publish:
        if coarsening.merges:
            raise ColumnError("values are merged in a table; this is a file of counts. Add up its rows or columns.")
        return read_counts(table)
    if not secret or not publish:
        raise ColumnError("a table needs --secret and --publish; one is missing. For a file of counts leave out both.")
    return read_table_joint(table, secret, publish, coarsening, reading)


def read_table_joint(
    table: Path | TableSource,
    secret: list[str],
    publish: list[str],
    coarsening: CoarseningOptions,
    reading: TableOptions,
) -> Joint:
    """The joint of a table's columns."""
    from privacyfunnel.release.design import check_joint
    from privacyfunnel.tables.coding.encoding import encode
    from privacyfunnel.tables.readers.table_files import resolve_source

    source = resolve_source(table).open(reading.dialect)
    return check_joint(
        encode(
            source,
            secret=parse_names(secret),
            publish=parse_names(publish),
            bins=coarsening.bins,
            merges=coarsening.merges,
        ).contingency
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
