r"""Where a release goes, and where its files are found again.

    out/public/   the sanitised table, README.html, croissant.json, dcat.jsonld
    out/owner/    report.html, release.toml, disclosure-record.json; links.csv where rows have ids
    protocol.json, codebook and estimates.csv are public if made from noisy counts; else the first two are the owner's

`apply` writes one file, or a folder of parts.

The codebook: what each outcome code of a table stands for, :math:`p(x \mid y)`, a row per code and value.

Values are in order of their chances, so that the first of a code is the one that the table shows beside it. Chances
depend on the law, which is public, and on the shares of X: they tell these to as many digits as are written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray, Matrix, nonzero_entries
from privacyfunnel.atomic_files import OWNER, PUBLIC, atomic_file, atomic_folder, check_folder, is_written
from privacyfunnel.errors import OutputError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.outcomes import NAME, Outcome, Outcomes
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import NEGLIGIBLE
from privacyfunnel.names import unique_label
from privacyfunnel.tables.readers.formats import STEM, Table
from privacyfunnel.tables.readers.table_files import PartsTable, check_output, check_suffix, table_suffix

if TYPE_CHECKING:
    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.databases.table_target import TableTarget


README, CROISSANT, DCAT, ESTIMATES = "README.html", "croissant.json", "dcat.jsonld", "estimates.csv"
REPORT, SPEC, LINKS = "report.html", "release.toml", "links.csv"
NOTICE = "notice.txt"


def audience(*, noisy: bool) -> str:
    """The folder for protocol and codebook: unless their counts are noisy they can reveal a person's secret, so that
    whoever holds them must be trusted with the table (benchmarks attacks)."""
    return PUBLIC if noisy else OWNER


def codebook_name(suffix: str) -> str:
    """In the table's dialect where the table is text."""
    return "codebook.tsv" if suffix.startswith(".tsv") else "codebook.csv"


class OutputFile(NamedTuple):
    """A file that rows are written to."""

    name: str  # below what is staged
    suffix: str
    rows: int | None = None  # how many; None for all that are left


@dataclass(frozen=True, slots=True)
class Destination:
    """What appears: one file, a folder of parts, or the folder of a release with its table in `public`."""

    path: Path
    table: Path  # the file itself, the folder of parts, or the table of the release
    suffix: str  # of the table, or of the first part
    force: bool = False
    source: PartsTable | None = None  # the parts that a folder of parts is written like
    parts: int | None = None  # or how many
    target: TableTarget | None = None  # the table of a database that rows go to besides

    @classmethod
    def of_release(
        cls, into: Path, suffix: str, *, force: bool, source: Path | None = None, target: str | None = None
    ) -> Destination:
        """The folder of a release; refused early where it could not appear."""
        _refuse_own_input([] if source is None else [source], into)
        check_folder(into, force=force)
        return cls(into, into / PUBLIC / f"{STEM}{suffix}", suffix, force, target=_find_target(target, force=force))

    @classmethod
    def of_rows(cls, table: Table, spec: ReleaseSpec) -> Destination:
        """A file for a table, a folder for one in parts; refused early where it could not appear."""
        into, force, target = spec.require_into(), spec.force, _find_target(spec.into_table, force=spec.force)
        if spec.parts is not None:
            if spec.keep_order:
                raise OutputError(f"parts are of equal size, rows in random order; drop {hint('keep_order')}.")
            _refuse_own_input(table.paths if isinstance(table, PartsTable) else [], into)
            check_folder(into, force=force)
            return cls(into, into, ".parquet", force, None, spec.parts, target)
        if isinstance(table, PartsTable):
            _refuse_own_input(table.paths, into)
            check_folder(into, force=force)
            unlike = [name for name in table.names if table_suffix(Path(name)) is None]
            if unlike:
                raise OutputError(
                    f"parts are written in the formats they are read in; '{unlike[0]}' is of one that is only read. "
                    "Apply to that file by itself."
                )
            parts = None if spec.keep_order else len(table.names)
            return cls(into, into, check_suffix(Path(table.names[0])), force, table, parts, target)
        if into.is_dir():
            raise OutputError(f"'{into}' must be a file to write to; it is a directory. Name a file inside it.")
        suffix = check_output(into, force=force) if into.parent.exists() else check_suffix(into)
        return cls(into, into, suffix, force, target=target)

    @property
    def is_folder_of_parts(self) -> bool:
        """Whether rows are written as several files."""
        return self.source is not None or self.parts is not None

    @property
    def notice(self) -> str:
        """The name of the file that says what does not hold of the rows, where there is such a thing."""
        return NOTICE if self.is_folder_of_parts else f"{self.table.name}.{NOTICE}"

    def output_files(self, outgoing: RowSampler) -> Sequence[OutputFile]:
        """The files of rows, one after another.

        In a random order parts have numbers for names, and equal sizes: how the table was cut may tell, by name or
        size, how many people have a secret. In the order of the table they are its own, with their names and rows.
        """
        if self.parts is not None:
            bounds = [outgoing.rows * i // self.parts for i in range(self.parts + 1)]
            digits = len(str(self.parts))
            return [
                OutputFile(f"part-{i:0{digits}}{self.suffix}", self.suffix, bounds[i] - bounds[i - 1])
                for i in range(1, self.parts + 1)
            ]
        if self.source is None:
            name = self.table.name if self.table == self.path else f"{PUBLIC}/{self.table.name}"
            return [OutputFile(name, self.suffix)]
        sizes = self.source.sizes
        if outgoing.rows < sum(sizes):
            stays, ends = outgoing.bound_table.known_rows(), list(accumulate(sizes))
            sizes = [int(stays[end - size : end].sum()) for size, end in zip(sizes, ends, strict=True)]
        named = zip(self.source.names, sizes, strict=True)
        return [OutputFile(name, check_suffix(Path(name)), size) for name, size in named]

    @contextmanager
    def stage(self) -> Iterator[Path]:
        """The folder to write to; what is in it appears when the body is done.

        The notice about one file appears just before it; one about the file that it replaces goes.
        """
        if self.is_folder_of_parts or self.table != self.path:
            with atomic_folder(self.path, force=self.force) as hidden:
                yield hidden
            return
        notice = self.path.with_name(self.notice)
        with atomic_file(self.path, force=self.force) as beside:
            yield beside.parent
            staged = beside.with_name(notice.name)
            content = staged.read_bytes() if staged.exists() else b""
            if content:
                with atomic_file(notice, force=self.force) as file:
                    file.write_bytes(content)
        if self.force and not content:
            notice.unlink(missing_ok=True)


def _find_target(text: str | None, *, force: bool) -> TableTarget | None:
    """The table of a database that is named, refused early where it could not be written."""
    from privacyfunnel.tables.databases.table_target import TableTarget

    if text is None:
        return None
    target = TableTarget.parse(text)
    target.check(force=force)
    return target


def _refuse_own_input(inputs: Sequence[Path], into: Path) -> None:
    """Refuse an output folder that holds the input: replacing it would remove the originals."""
    output = into.resolve()
    inside = [path for path in inputs if path.resolve().is_relative_to(output)]
    if inside:
        raise OutputError(
            f"the output folder '{into}' must not contain the input; '{inside[0]}' is in it. Name another folder."
        )


# -- releases that are there -----------------------------------------------------------------------------------------


def altered_files(public: Path) -> list[str]:
    """Files of a public folder that were added, changed or removed since croissant.json listed them; none without it.

    Who can change that list, too, is found out by a signature, or by the owner's record.
    """
    try:
        files = json.loads((public / CROISSANT).read_text(encoding="utf-8"))["distribution"]
        listed = {str(file["contentUrl"]): str(file["sha256"]) for file in files}
    except (OSError, ValueError, KeyError, TypeError):
        return []
    found = {path.relative_to(public).as_posix() for path in public.rglob("*")} - {CROISSANT}
    signatures = {f"{name}.sig" for name in listed}
    return sorted(name for name in (found - signatures) | {*listed} if not is_written(public / name, listed.get(name)))


DIGITS = 3  # of a chance
COLUMN, CHANCE = "column", "chance"  # what is beside codes and values


def codebook(sealed: SealedProtocol, joint: Joint) -> pl.DataFrame | None:
    """A row per outcome code and value that it may stand for; None where the table shows no codes.

    The columns: which column of the table the code is in, where there are several; the code; the value, a column per
    attribute, empty where the code says nothing about it; its chance. Values with a chance below 1e-6 are left out.
    """
    outcomes: Outcomes = sealed.outcomes
    if not outcomes:
        return None
    attributes = [at.name for at in joint.attributes]
    code = outcomes[0].column if len(outcomes) == 1 else unique_label(NAME, attributes)
    chance = unique_label(CHANCE, [*attributes, code])
    found = zip(outcomes, sealed.mechanism.value_joint(joint), strict=True)
    pieces = [_part_rows(outcome, *held, joint, code, chance) for outcome, held in found]
    if len(outcomes) > 1:
        where = unique_label(COLUMN, [*attributes, code, chance])
        pieces = [
            piece.select(pl.lit(outcome.column).alias(where), pl.all())
            for outcome, piece in zip(outcomes, pieces, strict=True)
        ]
    return pl.concat(pieces)


def _part_rows(outcome: Outcome, values: IntArray, p_xy: Matrix, joint: Joint, code: str, chance: str) -> pl.DataFrame:
    x, y, held = nonzero_entries(p_xy)
    posterior = held / np.asarray(p_xy.sum(axis=0))[y]
    listed = np.flatnonzero(posterior > NEGLIGIBLE)
    listed = listed[np.lexsort((x[listed], -posterior[listed], y[listed]))]
    x, y, posterior = x[listed], y[listed], posterior[listed]
    columns = {code: pl.Series(outcome.codes, dtype=pl.String).gather(y.astype(np.uint32))}
    for j, at in enumerate(joint.attributes):
        if j in outcome.attributes:
            number = values[x, outcome.attributes.index(j)].astype(np.uint32)
            columns[at.name] = pl.Series(at.labels, dtype=pl.String).gather(number)
        else:
            columns[at.name] = pl.repeat(None, len(x), dtype=pl.String, eager=True)
    rounded = (float(f"{p:.{DIGITS}g}") for p in posterior)
    columns[chance] = pl.Series(np.fromiter(rounded, np.float64, len(x)))
    return pl.DataFrame(columns)
