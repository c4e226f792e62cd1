"""`check`: what a release.toml asks for, checked against the columns of its table; nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.release_summary import meaning
from privacyfunnel.cli.spec_options import DATABASES, TABLES, build_spec

if TYPE_CHECKING:
    from privacyfunnel.spec import ReleaseSpec


def check(
    source: Annotated[
        Path,
        typer.Argument(readable=False, help="A release.toml, or a policy.toml.", metavar="RELEASE.TOML|POLICY.TOML"),
    ],
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"The table, if it is not the one that the file names: {TABLES}; {DATABASES}. For a policy: one or "
            "more.",
            metavar="[TABLE]...",
        ),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Check a release.toml, also against the columns of its table, and say what sanitise would do. Nothing is written.

    Exit code 2 if sanitise would refuse it before it counts a row. With a policy.toml: exit code 2 if a column of the
    tables has no decision, an ε is larger than allowed, or new rows break the promise.
    """
    from privacyfunnel.errors import ParameterError
    from privacyfunnel.spec.checks import check_columns_exist
    from privacyfunnel.spec.text_forms import plain_values

    if source.suffix.lower() != ".toml":
        raise ParameterError(f"check takes a release.toml; got '{source.name}'. Write one with sanitise --save-spec.")
    if source.name.endswith("policy.toml"):
        _check_policy(source, tables or [], as_json=as_json)
        return
    if tables and len(tables) > 1:
        raise ParameterError(f"A release.toml is about one table; {len(tables)} were named. Name one.")
    spec = build_spec(str(source), {"table": tables[0]} if tables else {}).require_columns()
    _ = spec.row_key, spec.domain_file  # each reads its file, or refuses it
    files = _output_files(spec)
    columns = None if spec.table is None else spec.source.open(spec.dialect).columns
    if columns is not None:
        check_columns_exist(spec, columns)
    left_out = [] if columns is None else [name for name in columns if name not in _columns_used(spec)]
    content = {
        "valid": True,
        "spec": plain_values(spec),
        "table": None if columns is None else str(spec.source),
        "columns": columns,
        "left_out": left_out,
        "files": [str(path) for path in files],
    }
    answer(as_json, content, _format_check(spec, columns, left_out, files))


def _check_policy(source: Path, tables: list[str], *, as_json: bool) -> None:
    """Check tables against a policy; one sentence with all that is broken."""
    from privacyfunnel.audits.policy import Policy
    from privacyfunnel.errors import GuaranteeError, ParameterError

    policy = Policy.load(source)
    if not tables:
        raise ParameterError("A policy is checked against tables; none was named. Name one or more.")
    broken = [sentence for table in tables for sentence in policy.violations(Path(table))]
    if broken:
        raise GuaranteeError(f"The policy is broken: {'; '.join(broken)}. Decide in '{source}', or stop the job.")
    answer(as_json, {"valid": True, "tables": tables}, f"{len(tables)} tables keep the policy {source}.")


def _columns_used(spec: ReleaseSpec) -> set[str]:
    return {*spec.secret, *spec.publish, *spec.keep}


def _output_files(spec: ReleaseSpec) -> list[Path]:
    """The table, protocol and report that sanitise would write; refused where their folder may not be replaced."""
    from privacyfunnel.atomic_files import OWNER
    from privacyfunnel.mechanisms.protocol_file import PROTOCOL
    from privacyfunnel.release.release_files import REPORT, Destination, audience

    into = spec.require_into()
    suffix = f".{spec.format}" if spec.format else ".csv" if spec.table is None else spec.source.suffix
    place = Destination.of_release(into, suffix, force=spec.force)
    protocol = into / audience(noisy=spec.is_private_design) / PROTOCOL
    return [place.table, protocol, *([into / OWNER / REPORT] if spec.report else [])]


def _format_check(spec: ReleaseSpec, columns: tuple[str, ...] | None, left_out: list[str], files: list[Path]) -> str:
    promise, secret = spec.promise_value, " & ".join(spec.secret)
    size = "" if spec.average_only else f" ε = {text_format.format_epsilon(promise.epsilon)}"
    facts: list[tuple[str, Any]] = [
        ("table", "none named; columns not checked" if columns is None else f"{spec.source}, {len(columns)} columns"),
        ("secret", secret),
        ("publish", ", ".join(spec.publish)),
        *([("unprotected", ", ".join(spec.keep))] if spec.keep else []),
        *([("left out", ", ".join(left_out))] if left_out else []),
        ("promise", f"{promise.name}{size}"),
        *([] if spec.average_only else [("means", meaning(promise, promise.epsilon, secret))]),
        ("use", spec.use or "statistics where possible"),
        ("method", spec.method),
        ("would write", ", ".join(map(str, files))),
        ("checked", "the request and the names of columns; values, sizes and earlier releases are checked by sanitise"),
    ]
    return text_format.format_facts([(name, str(text)) for name, text in facts])
