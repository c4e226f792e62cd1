"""`estimate`: shares of the original values, from a sanitised table and its protocol alone."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.spec_options import TEXT_FILE, Given, build_spec, takes_spec
from privacyfunnel.spec.kinds import parse_names

if TYPE_CHECKING:
    from privacyfunnel.estimation import Cell, Estimates, Regression, ShareTable
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.tables.readers.formats import Dialect

NAMES = ("estimates.csv", "estimates.svg", "estimates.png")


class EstimationMethod(StrEnum):
    """The ways back from outputs to originals."""

    ML = "ml"
    PROJECTION = "projection"
    INVERSION = "inversion"
    LINEAR = "linear"


class Target(StrEnum):
    """Whose shares the intervals cover."""

    TABLE = "table"
    POPULATION = "population"


@takes_spec(
    "into", *TEXT_FILE, "signed_by", "force", into="A folder for estimates.csv, estimates.svg and estimates.png."
)
def estimate(
    protocol: Annotated[Path, typer.Argument(readable=False, help="The folder of a release, or its protocol.json.")],
    sanitised: Annotated[
        Path | None, typer.Argument(readable=False, help="The sanitised table. Default: the folder's.")
    ] = None,
    *,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="A kept column: estimate within each of its groups.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="What to tabulate: a column, or a,b for the two together. Repeat for more."),
    ] = None,
    method: Annotated[
        EstimationMethod | None, typer.Option("--method", help="Default: one whose intervals cover.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="How often intervals should cover.")] = 0.95,
    target: Annotated[
        Target, typer.Option("--target", help="Cover the original table's shares, or those of its population.")
    ] = Target.TABLE,
    impute: Annotated[
        int, typer.Option("--impute", help="Also write so many completed tables into the folder.", min=0)
    ] = 0,
    posterior: Annotated[
        Path | None, typer.Option("--posterior", help="A file for P(original | published) of every output.")
    ] = None,
    matrix: Annotated[
        Path | None, typer.Option("--matrix", help="A CSV file for the channel, as a PRAM transition matrix.")
    ] = None,
    original: Annotated[
        Path | None, typer.Option("--original", help="For the owner: the original table, to draw its shares beside.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option("--weights", help="For real or synthetic rows: a file for them and decoys, with their weights."),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="A .xlsx, .dta or .sav file for the published rows, labels in their order."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="An earlier table of the protocol, or a release: tell how shares changed."),
    ] = None,
    survey_weights: Annotated[
        str | None, typer.Option("--survey-weights", help="A kept column of weights by which rows count.")
    ] = None,
    regress: Annotated[
        list[str] | None,
        typer.Option("--regress", help="A regression, such as 'visits=9+ ~ disease + plan'. Repeat for more."),
    ] = None,
    logistic: Annotated[
        bool, typer.Option("--logistic", help="Logistic regressions, of outcomes such as visits=9+.")
    ] = False,
    no_shares: Annotated[
        bool, typer.Option("--no-shares", help="Do not calibrate to shares that the protocol file states.")
    ] = False,
    given: Given,
    as_json: Json = False,
) -> None:
    """Estimate how the original values were distributed, with intervals, from a table and its protocol."""
    from privacyfunnel import estimation
    from privacyfunnel.atomic_files import check_target
    from privacyfunnel.errors import ParameterError
    from privacyfunnel.mechanisms.protocol_file import find_protocol
    from privacyfunnel.mechanisms.signatures import load_signed_protocol
    from privacyfunnel.tables.readers.table_files import find_table, open_table, write_table
    from privacyfunnel.tables.writers.foreign_writer import write_foreign

    spec = build_spec(None, given)
    into, force = spec.into, spec.force
    if into is None and (impute or original):
        option = "--impute" if impute else "--original"
        raise ParameterError(f"{option} needs a folder to write to; there is none. Add --into FOLDER.")
    for path in [
        posterior,
        matrix,
        weights,
        export,
        *([into / name for name in NAMES] if into is not None and into.exists() else []),
    ]:
        if path is not None:
            check_target(path, force=force)
    protocol, sanitised = find_protocol(protocol), find_table(sanitised or protocol)
    sealed, signer = load_signed_protocol(protocol, sanitised, spec.signed_by)
    groups, dialect = parse_names(by), spec.dialect
    table = open_table(sanitised, dialect)
    how: dict[str, Any] = {
        "by": groups,
        "columns": [parse_names([names]) for names in columns] if columns else None,
        "level": level,
        "target": target.value,
        "shares": not no_shares,
    }
    found = estimation.estimate(sealed, table, method=method.value if method else None, weights=survey_weights, **how)
    alike = {name: how[name] for name in ("level", "target", "shares")} | {"weights": survey_weights}
    family = "logistic" if logistic else "linear"
    fitted = [estimation.regress(sealed, formula, table, family=family, **alike) for formula in regress or []]
    changes = None if against is None else found.changes_since(_estimate_earlier(sealed, against, dialect, how))
    warning = ""
    if impute and not groups:
        groups, warning = estimation.choose_groups(sealed, table)
    files: list[Path] = []
    if into is not None:
        files += _write_files(
            found, sealed, sanitised, into, groups, impute, original, dialect, force=force, shares=not no_shares
        )
    if posterior is not None:
        shown = [estimation.posterior(sealed, table).to_frame()]
        write_table(posterior, shown, force=force, owner_only=not sealed.has_noisy_design)
    if weights is not None:
        write_table(weights, [estimation.weigh(sealed, table)], force=force)
    if export is not None:
        sheets, exact = {"estimates": found.to_tidy()}, not sealed.has_noisy_design
        write_foreign(export, table, sealed.domain.label_orders, others=sheets, force=force, owner_only=exact)
    if matrix is not None:
        from privacyfunnel.audits.pram import write_matrix

        write_matrix(sealed, matrix, force=force)
    files += [path for path in (posterior, weights, export, matrix) if path is not None]
    content = {
        **found.to_dict(),
        "regressions": [each.to_dict() for each in fitted],
        "changes": None if changes is None else changes.to_dicts(),
        "completed": {"groups": list(groups), "warning": warning} if impute else None,
        "files": [str(path) for path in files],
        "signed_by": None if signer is None else {"fingerprint": signer.fingerprint, "asked_for": signer.asked_for},
    }
    note = "" if signer is None or signer.asked_for else ", a key that was not asked for"
    parts = [format_summary(found, files), *map(_format_regression, fitted), *([warning] if warning else [])]
    if changes is not None:
        parts.append(_format_changes(changes.rows(), changes.columns))
    text = "\n\n".join(parts) + ("" if signer is None else f"\n\nSigned by {signer.fingerprint}{note}.")
    answer(as_json, content, text)


def _estimate_earlier(sealed: SealedProtocol, against: Path, dialect: Dialect, how: dict[str, Any]) -> Estimates:
    """The same estimates of an earlier table, by its own protocol where it is a release."""
    from privacyfunnel import estimation
    from privacyfunnel.mechanisms.protocol_file import find_protocol
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.tables.readers.table_files import find_table, open_table

    if against.is_dir() and find_protocol(against).exists():
        sealed = SealedProtocol.load(find_protocol(against))
    return estimation.estimate(sealed, open_table(find_table(against), dialect), **how)


def _format_changes(lines: list[tuple[Any, ...]], header: list[str]) -> str:
    """What changed since an earlier table, in points; a star where it is more than chance."""
    table = [
        [
            *map(str, names),
            *("" if x is None else f"{100 * x:.2f}" for x in numbers),
            "*" if _is_change(numbers) else "",
        ]
        for *names, before, now, change, low, high in lines
        for numbers in [(before, now, change, low, high)]
    ]
    head = "Shares before and now, in points; * where 0 lies outside of the interval of the change"
    kinds = "<" * (len(header) - 5) + ">>>>><"
    return f"{head}\n\n{text_format.format_table([*header, ''], table, kinds)}"


def _is_change(numbers: tuple[float | None, ...]) -> bool:
    low, high = numbers[3:]
    return low is not None and high is not None and (low > 0 or high < 0)


def _format_regression(found: Regression) -> str:
    whose = "the original table" if found.target == "table" else "the population"
    lines = [
        [name, *(f"{x:.4g}" for x in (q.value, q.standard_error, q.lower, q.upper))] for name, q in found.terms.items()
    ]
    table = text_format.format_table(["term", "estimate", "error", "from", "to"], lines, "<>>>>")
    head = f"{found.family.capitalize()} regression of {found.outcome} in {whose}, {100 * found.level:g} % intervals"
    return "\n".join([head, "", table, *(f"  - {note}" for note in found.notes)])


def format_summary(found: Estimates, files: list[Path]) -> str:
    """The estimates as tables of text."""
    by = " and ".join(_METHODS[method] for method in found.methods)
    lines = [f"Shares in {found.whose}, by {by}, with {100 * found.level:g} % intervals"]
    if found.target == "table":
        lines.append("Intervals for the people whom its rows are a sample of are wider: --target population.")
    for table in found:
        lines += ["", _heading(table, differ=len(found.methods) > 1), "", _format_table(table)]
        lines += [f"  - {note}" for note in table.notes]
    if found.notes:
        lines += ["", *found.notes]
    if files:
        lines += ["", f"Written: {', '.join(map(str, files))}"]
    return "\n".join(lines)


_METHODS = {
    "weights": "weights of real and synthetic rows",
    "ml": "maximum likelihood",
    "projection": "projection",
    "inversion": "inversion",
    "linear": "linear estimates",
}


def _heading(table: ShareTable, *, differ: bool) -> str:
    """Whose shares these are, and by which method where not all tables are estimated by the same."""
    by = [f"by {_METHODS[table.method]}"] if differ and table.method is not None else []
    return ", ".join([*(f"{column} = {label}" for column, label in table.group), f"{table.rows:,} rows", *by])


def _format_table(table: ShareTable) -> str:
    """One line per cell; cells that are identified only together are followed by their sums."""
    cells = [*table.cells, *(cell for _, cell in table.sums)]
    lines = [[*cell.labels, *_numbers(cell, table.rows)] for cell in cells]
    header = [*table.columns, "share", "from", "to", "count"]
    return text_format.format_table(header, lines, "<" * len(table.columns) + ">>>>")


def _numbers(cell: Cell, rows: int) -> list[str]:
    """Share, interval and count; ends of an interval are rounded outwards."""
    lower, upper = math.floor(cell.lower * 1e4 + 1e-6) / 100, math.ceil(cell.upper * 1e4 - 1e-6) / 100
    ends = [f"{lower:.2f} %", f"{upper:.2f} %"]
    if cell.share is None:
        return ["unknown", *ends, ""]
    return [f"{100 * cell.share:.2f} %", *ends, f"{cell.share * rows:,.0f}"]


def _write_files(
    found: Estimates,
    sealed: SealedProtocol,
    sanitised: Path,
    into: Path,
    by: tuple[str, ...],
    impute: int,
    original: Path | None,
    written: Dialect,
    *,
    force: bool,
    shares: bool,
) -> list[Path]:
    """The estimates, their picture and the completed tables: all of them, whole, or none."""
    from contextlib import ExitStack

    from privacyfunnel.atomic_files import atomic_file, ensure_folder
    from privacyfunnel.audits.matched_table import MatchedTable
    from privacyfunnel.estimation import impute_file
    from privacyfunnel.report.curve_figures import save
    from privacyfunnel.report.share_figure import shares_figure, true_shares
    from privacyfunnel.tables.readers.table_files import open_table
    from privacyfunnel.tables.writers.table_writer import write_batches

    own = None if original is None else MatchedTable.match(open_table(original, written), sealed, ()).joint
    truth = None if own is None else true_shares(found, own)
    figure = shares_figure(found, truth, sealed.domain.orders)
    paths = [into / name for name in NAMES]
    with ensure_folder(into), ExitStack() as stack:
        exact = not sealed.has_noisy_design  # then estimates are as much the owner's as the protocol, by their digits
        table = stack.enter_context(atomic_file(paths[0], force=force, owner_only=exact))
        drawn = exact or original is not None  # of which the pictures show exact shares
        pictures = [stack.enter_context(atomic_file(path, force=force, owner_only=drawn)) for path in paths[1:]]
        write_batches(
            table, paths[0].suffix, [found.to_frame()], text_format=open_table(sanitised, written).text_format
        )
        for picture, path in zip(pictures, paths[1:], strict=True):
            save(figure, picture, path.suffix.removeprefix("."))
        if impute:
            paths += impute_file(sealed, sanitised, into, impute, by=by, dialect=written, force=force, shares=shares)
    return paths
