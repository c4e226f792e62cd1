"""What a release writes beside its table: protocol, codebook, pages, signature, and the owner's record of all of it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.atomic_files import OWNER, PUBLIC, RECORD, begin_file, ensure_folder, write_manifest
from privacyfunnel.errors import OutputError, ParameterError, SizeError
from privacyfunnel.mechanisms.protocol_file import PROTOCOL
from privacyfunnel.release.release_files import ESTIMATES, LINKS, SPEC, Destination, audience, codebook_name
from privacyfunnel.tables.readers.formats import DEFAULT_TEXT_FORMAT, SUFFIXES, TextFormat

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.release.release import Release
    from privacyfunnel.spec import ReleaseSpec

LIBRARIES = ("privacyfunnel", "numpy", "scipy", "highspy", "polars", "cryptography")


def write_contents(
    release: Release,
    staged: Path,
    place: Destination,
    *,
    protocol: str,
    codes: Iterable[pl.DataFrame] | None,
    source: str,
    query: str = "",
    command: str = "",
    text_format: TextFormat = DEFAULT_TEXT_FORMAT,
    key: Any = None,
    watch: Callable[[str], None] | None = None,
) -> Release:
    """Write all that belongs to the table in the staged folder; the release, with the final paths.

    `source`, `query` and `command` say in the owner's report where the release comes from and how to repeat it. With
    the owner's private `key` it is signed.
    """
    from privacyfunnel.tables.writers.table_writer import write_batches

    spec, folder = release.spec, audience(noisy=release.sealed.has_noisy_design)
    begin_file(staged / folder / PROTOCOL).write_text(protocol, encoding="utf-8")
    release = replace(release, table=place.table, protocol_file=place.path / folder / PROTOCOL)
    if codes is not None:
        name = codebook_name(place.suffix)
        book = begin_file(staged / folder / name)
        write_batches(book, book.suffix, codes, excel_safe=spec.excel_safe, text_format=text_format)
        release = replace(release, codebook=place.path / folder / name)
    if folder == PUBLIC:
        _write_estimates(staged / PUBLIC, place.table.name, text_format, excel_safe=spec.excel_safe)
    if key is not None:
        from privacyfunnel.mechanisms.signatures import fingerprint, sign

        signature = sign(staged / folder / PROTOCOL, staged / PUBLIC / place.table.name, key)
        release = replace(
            release, signature=place.path / folder / signature.name, signed_by=fingerprint(key.public_key())
        )
    # A release knows no report, which reads releases; the package, which is above all its parts, names one.
    write_pages = import_module("privacyfunnel").write_pages
    pages = write_pages(release, staged, source=source, query=query, command=command, watch=watch)
    with suppress(ParameterError):  # a request with values in memory that no file could hold
        begin_file(staged / OWNER / SPEC).write_text(_spec_text(spec, place.path / OWNER), encoding="utf-8")
    if release.links is not None:
        write_batches(begin_file(staged / OWNER / LINKS), ".csv", [release.links])
    write_manifest(staged, RECORD, **_facts(release))
    return replace(release, pages=tuple(place.path / page for page in pages))


def _write_estimates(public: Path, table: str, text_format: TextFormat, *, excel_safe: bool) -> None:
    """Write the shares of every column as anybody estimates them from the folder, unless their values are too many."""
    from privacyfunnel.tables.writers.table_writer import write_batches

    with suppress(SizeError):
        found = import_module("privacyfunnel").estimate(public / PROTOCOL, public / table).to_tidy()
        path = begin_file(public / ESTIMATES)
        write_batches(path, path.suffix, [found], excel_safe=excel_safe, text_format=text_format)


def _spec_text(spec: ReleaseSpec, folder: Path) -> str:
    """The request as a file in that folder, without the credentials of a database."""
    from privacyfunnel.tables.databases.drivers import redact_credentials

    return redact_credentials(replace(spec, force=False, again=False).to_toml(folder))


def _facts(release: Release) -> dict[str, Any]:
    """What was disclosed about whom, under which promise, and with which program."""
    sealed, promise, spec = release.sealed, release.sealed.promise, release.spec
    people = promise.population
    return {
        "format": "privacyfunnel disclosure record",
        "version": 1,
        "when": datetime.now().astimezone().isoformat(timespec="seconds"),
        "made_with": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "rows": release.rows,
        "secret": list(sealed.domain.secret_columns),
        "published": [at.name for at in sealed.domain.attributes],
        "kept": list(release.kept),
        "order": "table" if release.kept_order else "shuffled",
        "method": release.method,
        "promise": {
            "name": promise.name,
            "certified": sealed.epsilon,
            "population": None if people is None else people.confidence,
            "average_only": spec.average_only,
            "for_publication": sealed.for_publication,
        },
        "epsilon": {
            "records": promise.epsilon,
            "counts": sealed.design_epsilon,
            "total": sealed.total_epsilon if sealed.has_noisy_design else None,
            "noise_before": release.noise_spent,
        },
        "protocol": audience(noisy=sealed.has_noisy_design),
        "signed_by": release.signed_by or None,
        **_board_facts(release),
    }


def _board_facts(release: Release) -> dict[str, Any]:
    """What a review asks: who approved it, by which criteria it was judged, and the fields of registers of releases.

    `egress` has what SATRE 3.3 asks to be kept of an output; `registry` what the registry of DP deployments asks.
    """
    sealed, spec, model = release.sealed, release.spec, release.sealed.model
    secret = sealed.secret_text
    odds = sealed.promise.odds
    return {
        "egress": {
            "approved_by": spec.approved_by,
            "purpose": spec.purpose,
            "contact": spec.contact,
            "valid_until": spec.valid_until,
            "checks": [f"{sealed.promise.name} certified {sealed.mechanism.check_method}", "files by SHA-256, below"],
        },
        "criteria": {
            "singling_out_and_linkability": release.findings.linkage.to_dict(),
            "inference": [each.to_dict() for each in release.findings.attackers],
        },
        "registry": {
            "privacy_model": f"{sealed.promise.name} about {secret}, not DP",
            "unit_of_privacy": f"{secret} of one record",
            "epsilon": sealed.total_epsilon,
            "delta": 0.0 if model is None else float(model.delta),
            "robust": None if odds is None else str(odds),
            "trust": "the owner of the table randomises it; nobody else is trusted",
            "data_product": "randomised records",
            "implementation": f"privacyfunnel {version('privacyfunnel')}",
        },
    }


def save_release(release: Release, into: Path, suffix: str, *, force: bool) -> Path:
    """Write the release of a frame into a folder, all or nothing; the folder."""
    from privacyfunnel.tables.readers.eager_frames import frame_table
    from privacyfunnel.tables.writers.table_writer import write_batches

    if isinstance(release.table, str | Path):
        raise OutputError(f"this release is in files already: {release.table}. Copy them.")
    if suffix not in SUFFIXES:
        raise ParameterError(f"suffix must be one of {', '.join(SUFFIXES)}; got '{suffix}'.")
    place = Destination.of_release(into, suffix, force=force)
    with ensure_folder(into.absolute().parent), place.stage() as staged:
        rows = frame_table(release.table)
        write_batches(begin_file(staged / PUBLIC / place.table.name), suffix, rows.batches(rows.columns))
        book = None if release.codebook is None else frame_table(release.codebook)
        codes = None if book is None else book.batches(book.columns)
        write_contents(
            release, staged, place, protocol=release.sealed.to_text(), codes=codes, source="a frame in memory"
        )
    return into
