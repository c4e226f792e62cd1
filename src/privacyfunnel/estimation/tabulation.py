"""The front door: a protocol and a sanitised table in, tables of shares out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, dense, one_blas_thread
from privacyfunnel.errors import ColumnError, ParameterError, SizeError
from privacyfunnel.estimation.calibration import KnownMargins
from privacyfunnel.estimation.identification import Identification, RowSpace, identify
from privacyfunnel.estimation.intervals import FEW_ROWS
from privacyfunnel.estimation.linear import LinearEstimator, NoisyShares
from privacyfunnel.estimation.many_values import Weights, estimate_many_shares
from privacyfunnel.estimation.observation import Cells, ChannelModel, Observations
from privacyfunnel.estimation.output_reader import Group, OutputReader, attribute_cover, load_published
from privacyfunnel.estimation.results import Cell, Estimates, ShareTable
from privacyfunnel.estimation.share_estimates import (
    EstimationSettings,
    Fit,
    Shares,
    calibrate_fits,
    check_noisy,
    default_method,
)
from privacyfunnel.estimation.wide_estimates import METHOD, estimate_wide
from privacyfunnel.formatting import format_percent
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.names import validate_columns
from privacyfunnel.release.published_table import PublishedTable
from privacyfunnel.tables.readers.formats import frame_kind

NAMED = 6  # at most so many cells are named in a sentence
NEGLIGIBLE = 1e-3  # a share that the protocol file may leave untold without a word


@one_blas_thread()
def estimate(
    protocol: SealedProtocol | PublishedTable | str | Path,
    frame: Any = None,
    *,
    by: str | Sequence[str] = (),
    columns: Sequence[str | Sequence[str]] | str | None = None,
    method: str | None = None,
    level: float = 0.95,
    target: str = "table",
    shares: bool = True,
    weights: str | None = None,
) -> Estimates:
    """Shares of the original values, from a sanitised table (a file or a frame) and its protocol (or protocol file).

    A release stands for both of its own: `estimate(release)`.
    `columns` lists what to tabulate: a name for one column, a tuple of names for a contingency table; left out, each
    column by itself. `by` names kept columns: the shares are then those within each of their groups. `method` is `ml`,
    `projection`, `inversion` or `linear`; left out, one whose intervals cover: `ml` for few values, `linear` for many
    and where noisy counts of the same table are in the protocol file, which are then used too. Intervals cover the
    shares of the original table (`target="table"`: only the protocol is random) or of its population. Where the owner
    published shares of single columns, or noisy counts, they are used unless `shares` is False: say so where the
    sanitised rows are others than those the protocol was made for. `weights` names a kept column of survey weights:
    shares are then weighted, and intervals those of (Σ w)² / Σ w² rows (Kish).

    Raises
    ------
    SizeError
        If a table that was asked for by name, or all of them, would take too large a channel.
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    sealed, frame = load_published(protocol, frame)
    requested = _parse_tables(sealed, columns)
    if not sealed.mechanism.lists_inputs:
        if weights is not None:
            raise ParameterError("Real or synthetic records have weights of their own. Leave out those of a survey.")
        settings = EstimationSettings("inversion" if method in (None, METHOD) else str(method), level, target)
        return _estimate_by_weights(sealed, frame, requested, by, settings)
    tables: dict[Group, dict[int, ShareTable]] = {}
    too_large: dict[int, SizeError] = {}
    told_of_shares: dict[str, None] = {}
    for together in group_tables(sealed, requested):
        try:
            reading = OutputReader.from_protocol(sealed, columns=requested[together[0]], grouped=bool(by))
        except SizeError as error:
            if columns is not None:
                raise
            too_large.update(dict.fromkeys(together, error))
            continue
        noisy = NoisyShares.from_reader(reading) if shares and not by else None
        exact = KnownMargins.from_reader(reading) if shares else None
        if weights is not None:
            noisy = exact = None  # those of rows that count alike
        chosen = method or default_method(reading.model, noisy, exact)
        settings = EstimationSettings(chosen, level, target)
        seen = reading.observe(frame, by, weights=weights)
        if reading.model.is_large:
            if shares and sealed.shares is not None:
                told_of_shares["With so many values the exact shares of the protocol file are not used."] = None
            cells = {i: reading.cells(requested[i]) for i in together}
            for group, each in seen.items():
                named = tuple(zip(by, group, strict=True))
                singly = {
                    i: _large_table(reading.model, each, settings, named, requested[i], cells[i]) for i in together
                }
                tables.setdefault(group, {}).update(singly)
            continue
        space = RowSpace.from_means(reading.model.means)
        wanted = {i: _Tabulation.from_reader(reading, space, requested[i]) for i in together}
        noisy, note = check_noisy(noisy, seen, settings, reading.model)
        told_of_shares |= note
        fits, note = calibrate_fits(
            {group: Fit.from_observed(reading.model, space, each, settings, noisy) for group, each in seen.items()},
            exact,
            None if sealed.shares is None else sealed.shares.rows,
        )
        told_of_shares |= note
        for group, fit in fits.items():
            named = tuple(zip(by, group, strict=True))
            tables.setdefault(group, {}).update({i: wanted[i].table(named, fit) for i in together})
    if not tables:
        raise next(iter(too_large.values()))
    for table in tables.values():
        table.update(
            {i: _empty_table(sealed, requested[i], next(iter(table.values())), why) for i, why in too_large.items()}
        )
    return Estimates(
        tables=tuple(table[i] for table in tables.values() for i in range(len(requested))),
        level=level,
        target=target,
        notes=(*_general_notes(sealed, grouped=bool(by)), *told_of_shares, *_weights_note(weights)),
        kind=frame_kind(frame),
    )


def _estimate_by_weights(
    sealed: SealedProtocol,
    frame: Any,
    requested: Sequence[tuple[str, ...]],
    by: tuple[str, ...],
    settings: EstimationSettings,
) -> Estimates:
    if settings.method != "inversion":
        raise ParameterError("Real or synthetic records are estimated by weights alone. Leave out the method.")
    found = estimate_wide(sealed, frame, requested, by, settings.level, fixed=settings.fixed)
    notes = _general_notes(sealed, grouped=bool(by))
    return Estimates(tuple(found), settings.level, settings.target, notes, frame_kind(frame))


def group_tables(sealed: SealedProtocol, requested: Sequence[tuple[str, ...]]) -> list[list[int]]:
    """The numbers of the tables that one look at the sanitised table serves, those of one look together."""
    looks: dict[tuple[int, ...], list[int]] = {}
    for i, names in enumerate(requested):
        looks.setdefault(attribute_cover(sealed, names), []).append(i)
    return list(looks.values())


def _large_table(
    model: ChannelModel,
    seen: Observations,
    settings: EstimationSettings,
    group: tuple[tuple[str, str], ...],
    columns: tuple[str, ...],
    cells: Cells,
) -> ShareTable:
    """The shares of thousands of values: by the method asked for where there is a formula, else each by itself."""
    notes = []
    fitted, identified = estimate_many_shares(Weights.from_observed(model, seen), seen, cells, settings)
    if settings.method != "inversion":
        fitted = replace(fitted, share=np.clip(fitted.share, fitted.lower, fitted.upper))
        notes.append(
            f"{model.inputs:,} values × {model.statistics:,} outputs are many: each share is an unbiased estimate by "
            "itself, and they need not sum to 1; intervals do not use what the others say."
        )
    unidentified = int((~identified).sum())
    if unidentified:
        notes.append(f"{unidentified:,} of {len(cells.labels):,} shares are not identified: they have bounds only.")
    if seen.rows < FEW_ROWS:
        notes.append(_few_rows_note(seen.rows))
    return ShareTable(
        columns, group, seen.rows, _cells(cells.labels, fitted, identified), (), tuple(notes), "inversion"
    )


def _empty_table(sealed: SealedProtocol, columns: tuple[str, ...], other: ShareTable, why: SizeError) -> ShareTable:
    """The table of columns about which nothing is said, beside another one of the same group."""
    attributes = {at.name: at for at in sealed.domain.attributes}
    cells = tuple(Cell((label,), None, None, 0.0, 1.0) for label in attributes[columns[0]].labels)
    return ShareTable(columns, other.group, other.rows, cells, (), (f"Not estimated: {why}",))


def _parse_tables(sealed: SealedProtocol, columns: Sequence[str | Sequence[str]] | str | None) -> list[tuple[str, ...]]:
    known = [at.name for at in sealed.domain.attributes]
    if columns is None:
        return [(name,) for name in known]
    entries = [columns] if isinstance(columns, str) else columns
    tables = [(entry,) if isinstance(entry, str) else tuple(entry) for entry in entries]
    if not all(tables):
        raise ColumnError("a table must be of at least one column; one names none. Name one.")
    return [validate_columns(names, known, "tabulated") for names in tables]


@dataclass(frozen=True, slots=True, eq=False)
class _Tabulation:
    """The cells of one table as functions of the distribution over inputs, and what is identified of them."""

    columns: tuple[str, ...]
    labels: tuple[Labels, ...]
    functions: FloatArray  # inputs × cells, 0 or 1
    identification: Identification

    @classmethod
    def from_reader(cls, reading: OutputReader, space: RowSpace, columns: tuple[str, ...]) -> _Tabulation:
        cells = reading.cells(columns)
        functions = dense(cells.functions)
        return cls(columns, cells.labels, functions, identify(space, functions))

    def table(self, group: tuple[tuple[str, str], ...], fit: Fit) -> ShareTable:
        identified = self.identification.identified | fit.is_implied(self.functions)
        if fit.noisy:
            identified = np.ones_like(identified)
        shares = fit.shares(self.functions, identified)
        return ShareTable(
            columns=self.columns,
            group=group,
            rows=fit.observed.rows,
            cells=_cells(self.labels, shares, identified),
            sums=() if identified.all() else self._sums(fit),
            notes=self._notes(fit, identified, shares),
            method=fit.settings.method,
            **self._linear_parts(fit, identified),
        )

    def _linear_parts(self, fit: Fit, identified: BoolArray) -> dict[str, FloatArray]:
        """Unbiased estimates and their covariance, from which sums, differences and ratios are made."""
        if not identified.all() or fit.calibration is not None:
            return {}
        linear = fit.linear or LinearEstimator.from_observed(fit.model, fit.observed)
        shares, covariance = linear.covariance(self.functions, fixed=fit.settings.fixed)
        return {"unbiased": shares, "covariance": covariance}

    def _sums(self, fit: Fit) -> tuple[tuple[tuple[Labels, ...], Cell], ...]:
        """What is identified together though not one by one."""
        if not self.identification.sums:
            return ()
        functions = np.stack(
            [self.functions[:, list(members)].sum(axis=1) for members in self.identification.sums], axis=1
        )
        members = [tuple(self.labels[j] for j in cells) for cells in self.identification.sums]
        names = [tuple(" + ".join(dict.fromkeys(part)) for part in zip(*cells, strict=True)) for cells in members]
        everything = np.ones(len(names), dtype=np.bool_)
        return tuple(zip(members, _cells(names, fit.shares(functions, everything), everything), strict=True))

    def _notes(self, fit: Fit, identified: BoolArray, shares: Shares) -> tuple[str, ...]:
        notes = []
        unidentified = int((~identified).sum())
        if fit.noisy and shares.from_rows is not None:
            rows, counts = shares.from_rows.mean(), 1 - shares.from_rows.mean()
            notes.append(
                f"From the rows and from noisy counts in the protocol file, weighed by their variances: on average "
                f"{format_percent(rows)} from rows, {format_percent(counts)} from counts."
            )
        if unidentified:
            notes.append(
                f"The protocol does not identify {unidentified} of {len(self.labels)} shares, however many rows there "
                "are; for these the bounds are what is known."
            )
            for members in self.identification.sums:
                notes.append(f"Only the sum of {_format_cells([self.labels[j] for j in members])} is identified.")
        if fit.observed.rows < FEW_ROWS:
            notes.append(_few_rows_note(fit.observed.rows))
        if not shares.fits:
            notes.append(
                f"No distribution explains these rows at level {fit.settings.level:g}: they may not come from this "
                "protocol. The bounds were widened until one does."
            )
        return tuple(notes)


def _cells(labels: Sequence[Labels], shares: Shares, identified: BoolArray) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            labels[j],
            float(shares.share[j]) if told else None,
            float(shares.standard_error[j]) if told else None,
            float(shares.lower[j]),
            float(shares.upper[j]),
        )
        for j, told in enumerate(identified.tolist())
    )


def _few_rows_note(rows: int) -> str:
    return f"There are only {rows} rows: the intervals were widened to hold at any number of rows, and say little."


def _general_notes(sealed: SealedProtocol, *, grouped: bool) -> tuple[str, ...]:
    notes = []
    if sealed.sees_secret and grouped:
        notes.append(
            "The protocol looks at the secret, whose distribution within a group is not known: only what holds for "
            "any is told."
        )
    elif sealed.sees_secret:
        notes.append(
            "The protocol looks at the secret. The estimates hold for the whole table it was made for, not for a "
            "part of it or for another table."
        )
    if not sealed.for_publication:
        notes.append("The sanitised table was drawn from a seed: it is not for publication.")
    return tuple(notes)


def _weights_note(weights: str | None) -> tuple[str, ...]:
    if weights is None:
        return ()
    return (f"Weighted by {weights}: rows and intervals are those of (Σ w)² / Σ w² rows of equal weight.",)


def _format_cells(cells: Sequence[tuple[str, ...]]) -> str:
    names = [" & ".join(labels) for labels in cells]
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
