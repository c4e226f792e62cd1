r"""Back to records: the posterior of one record, and completed tables for ordinary software.

Under the published channel and a prior p, :math:`P(X = x \mid Y = y) = p_x q(y|x) / \sum_{x'} p_{x'} q(y|x')`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, one_blas_thread
from privacyfunnel.errors import ColumnError, ParameterError, SizeError
from privacyfunnel.estimation.calibration import KnownMargins
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.linear import NoisyShares
from privacyfunnel.estimation.many_values import Weights
from privacyfunnel.estimation.observation import ChannelModel, Observations, normalise
from privacyfunnel.estimation.output_reader import (
    LARGEST_LISTED,
    Group,
    OutputReader,
    find_layout,
    group_labels,
    load_published,
    load_sealed,
)
from privacyfunnel.estimation.results import convert_rows
from privacyfunnel.estimation.share_estimates import (
    EstimationSettings,
    Fit,
    calibrate_fits,
    check_noisy,
    default_method,
    fit_shares,
)
from privacyfunnel.estimation.wide_estimates import is_weighted
from privacyfunnel.estimation.wide_imputation import complete_wide
from privacyfunnel.formatting import MOST_ROWS, ShowsFacts
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import unique_label
from privacyfunnel.release.published_table import PublishedTable
from privacyfunnel.tables.readers.column_selection import select_columns, select_expression
from privacyfunnel.tables.readers.formats import AUTO_DETECT, POLARS, Dialect, Table, frame_kind
from privacyfunnel.tables.readers.table_files import open_source

# Of the shares of all combinations: a slope covered .84 at .32 (information) and .92 at .08 (statistics).
MOST_UNCERTAIN = 0.3
ROWS_EACH = 100  # of a group on average, so that its own prior is worth more than that of everybody


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Posterior(ShowsFacts):
    """P(X = x | Y = y), a row per distinct output that the table shows and a column per original value."""

    outputs: pl.DataFrame  # the published columns, and how many rows show each output
    values: tuple[tuple[str, ...], ...]  # the labels of each original value
    probabilities: FloatArray
    prior: FloatArray  # the estimated distribution of the original values
    kind: str = POLARS  # of the frame that was given

    def _facts(self) -> list[tuple[str, str]]:
        rows = [f"{' & '.join(map(str, labels))} ({n}) " for *labels, n in self.outputs.rows()[:MOST_ROWS]]
        return [
            (name, ", ".join(f"{' & '.join(self.values[x])} {p[x]:.3f}" for x in p.argsort()[::-1][:3] if p[x] > 0))
            for name, p in zip(rows, self.probabilities, strict=False)
        ]

    def to_frame(self) -> Any:
        """The published columns, `rows`, and a column `P(value)` per original value: for weights elsewhere."""
        names = [f"P({' & '.join(labels)})" for labels in self.values]
        return convert_rows(
            self.outputs.hstack(pl.DataFrame(self.probabilities, schema=names, orient="row")), self.kind
        )


@one_blas_thread()
def posterior(protocol: SealedProtocol | PublishedTable | str | Path, frame: Any = None) -> Posterior:
    """The posterior of a record given its published output, under the prior estimated from the whole table."""
    sealed, frame = load_published(protocol, frame)
    if is_weighted(sealed):
        raise ParameterError(
            "Real or synthetic records are not guessed one by one: any combination may stand behind one. Take "
            f"estimates, the rows with weights ({hint('weights')}), or completed tables ({hint('impute')})."
        )
    reading = OutputReader.from_protocol(sealed)
    method = default_method(reading.model)
    observed = reading.observe(frame)[()]
    if reading.model.is_large:
        prior = _require_complete_large(reading.model, observed).project(observed.statistics)
    else:
        prior = fit_shares(reading.model, _require_complete(reading), observed, method)
    table = open_source(frame)
    way = reading.layout(table)
    number = unique_label("rows", way.names)
    parts = [
        rows.group_by(pl.all(), maintain_order=True).agg(pl.len().cast(pl.Int64).alias(number))
        for rows in table.batches(way.names)
    ]
    published, total = select_expression(way.names), select_expression([number]).sum()
    outputs = pl.concat(parts).group_by(published).agg(total).sort(published)
    if len(outputs) * reading.model.inputs > LARGEST_LISTED:
        raise SizeError(
            f"A table of posteriors has at most {LARGEST_LISTED:,} entries; {len(outputs):,} outputs × "
            f"{reading.model.inputs:,} values are more. Complete records instead ({hint('impute')}), or publish "
            "coarser values."
        )
    found = posteriors(reading.model, prior, reading.decode(way, outputs))
    return Posterior(outputs, reading.values, found, prior, frame_kind(frame))


@one_blas_thread()
def impute(
    protocol: SealedProtocol | PublishedTable | str | Path,
    frame: Any = None,
    m: int = 5,
    seed: int = 0,
    *,
    by: str | Sequence[str] | None = None,
    shares: bool = True,
) -> list[Any]:
    """m completed frames of the kind that was given: published columns replaced by original ones drawn from X | Y.

    Proper in Rubin's sense: for each frame the prior is estimated anew from resampled outputs, so that the frames
    differ by as much as the prior is uncertain. `by` names kept columns within whose groups the prior is estimated; an
    analysis that relates the imputed columns to a kept one needs it, or it will find too weak a relation. Left out:
    those kept columns that have few values, with a warning about others (`choose_groups`). Where the protocol file
    states exact shares, the completed columns have them on average, unless `shares` is False.
    """
    from privacyfunnel.tables.readers.eager_frames import FrameTable

    if isinstance(protocol, PublishedTable) and isinstance(frame, int):  # impute(release, 5)
        frame, m = None, frame
    sealed, frame = load_published(protocol, frame)
    if isinstance(frame, str | Path):
        frame = pl.concat(list(open_source(frame).batches(open_source(frame).columns)))
    table = FrameTable.from_native(frame)
    _check_number(m)
    if is_weighted(sealed):
        whole = complete_wide(sealed, frame, m, seed, _as_names(by))
        return [table.make_frame(each.get_columns(), (), keep_index=True) for each in whole]
    if by is None:
        by, warning = choose_groups(sealed, frame)
        if warning:
            warnings.warn(warning, stacklevel=2)
    imputation = Imputation.prepare(sealed, frame, m, seed, by=by, shares=shares)
    kept = [name for name in table.columns if name not in imputation.published]
    # The analyst's own frame comes back to the analyst: its index stays.
    drawn = (pl.concat(imputation.batches(frame, i)).get_columns() for i in range(m))
    return [table.make_frame(columns, kept, keep_index=True) for columns in drawn]


def impute_file(
    protocol: SealedProtocol | str | Path,
    source: str | Path,
    into: str | Path,
    m: int = 5,
    seed: int = 0,
    *,
    by: str | Sequence[str] | None = None,
    dialect: Dialect = AUTO_DETECT,
    force: bool = False,
    shares: bool = True,
) -> list[Path]:
    """The same for a file of any size: `imputed-1.csv` … in the folder `into`, all of them whole or none.

    They have the format of the sanitised table and its other columns as they are.
    """
    from privacyfunnel.atomic_files import atomic_file
    from privacyfunnel.tables.readers.table_files import check_output, open_table, table_suffix
    from privacyfunnel.tables.writers.table_writer import write_batches

    source, into = Path(source), Path(into)
    table = open_table(source, dialect)
    _check_number(m)
    if is_weighted(load_sealed(protocol)):
        completed: Iterator[Iterable[pl.DataFrame]] = (
            [whole] for whole in complete_wide(protocol, table, m, seed, _as_names(by))
        )
    else:
        completed = _complete_rows(protocol, table, m, seed, by, shares=shares)
    paths = [into / f"imputed-{i + 1}{table_suffix(source) or '.csv'}" for i in range(m)]
    suffixes = [check_output(path, force=force) for path in paths]
    with ExitStack() as stack:
        beside = [stack.enter_context(atomic_file(path, force=force)) for path in paths]
        for path, suffix, batches in zip(beside, suffixes, completed, strict=True):
            write_batches(path, suffix, batches, text_format=table.text_format)
    return paths


def _complete_rows(
    protocol: SealedProtocol | str | Path,
    table: Table,
    m: int,
    seed: int,
    by: str | Sequence[str] | None,
    *,
    shares: bool,
) -> Iterator[Iterable[pl.DataFrame]]:
    """Completed tables with the other columns as they are, batch by batch."""
    by = choose_groups(protocol, table)[0] if by is None else by
    imputation = Imputation.prepare(protocol, table, m, seed, by=by, shares=shares)
    kept = [name for name in table.columns if name not in imputation.published]
    originals = [imputation.reading.sealed.domain.attributes[j].name for j in imputation.reading.attributes]
    twice = [name for name in kept if name in originals]
    if twice:
        raise ColumnError(
            f"a completed table gets a column '{twice[0]}', but {table.name} has one besides what was published. "
            "Rename that one."
        )
    yield from (imputation.batches(table, i, kept) for i in range(m))


def _check_number(m: int) -> None:
    if m < 1:
        raise ParameterError(f"The number of completed tables must be at least 1; it is {m}.")


def _as_names(by: str | Sequence[str] | None) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by or ())


def choose_groups(protocol: SealedProtocol | str | Path, source: Any) -> tuple[tuple[str, ...], str]:
    """The kept columns within whose groups priors are estimated unless others are named; a warning about the rest.

    Columns join from the one with the fewest values on, as long as groups have `ROWS_EACH` rows on average.
    """
    sealed, table = load_sealed(protocol), open_source(source)
    kept = [name for name in table.columns if name not in find_layout(sealed, table).names]
    if not kept or sealed.sees_secret:
        return (), ""
    rows, found = 0, pl.DataFrame(schema=dict.fromkeys(kept, pl.String))
    for batch in table.batches(kept):
        rows += len(batch)
        found = pl.concat([found, batch.cast(pl.String)]).unique()
    chosen: list[str] = []
    for name in sorted(kept, key=lambda each: found[each].n_unique()):
        if found.select(*chosen, name).unique().height * ROWS_EACH <= rows:
            chosen.append(name)
    left = [name for name in kept if name not in chosen]
    if not left:
        return tuple(chosen), ""
    return tuple(chosen), (
        f"Records are completed without {', '.join(left)}: groups would be too small. Relations with "
        f"{'it' if len(left) == 1 else 'them'} come out too weak. Use a regression on the published rows, or coarser "
        "values."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Imputation:
    """Priors for each of m completed tables, drawn from their uncertainty, and what it takes to complete rows."""

    reading: OutputReader
    by: tuple[str, ...]
    priors: dict[Group, FloatArray]  # m × a
    seed: int
    published: tuple[str, ...]

    @classmethod
    def prepare(
        cls,
        protocol: SealedProtocol | str | Path,
        source: Any,
        m: int,
        seed: int,
        *,
        by: str | Sequence[str] = (),
        shares: bool = True,
    ) -> Imputation:
        """Estimate the priors from a sanitised table, a file or a frame."""
        by = _as_names(by)
        reading = OutputReader.from_protocol(protocol)
        if by and reading.sealed.sees_secret:
            raise ParameterError(
                "A protocol that looks at the secret tells nothing certain about groups, so records cannot be imputed "
                "group by group. Leave out the groups."
            )
        rng = np.random.default_rng([seed, 0])
        noisy = NoisyShares.from_reader(reading) if shares and not by else None
        known, of = KnownMargins.from_reader(reading) if shares else None, reading.sealed.shares
        method = default_method(reading.model, noisy, known)
        seen = reading.observe(source, by)
        if reading.model.is_large:
            priors = {group: _large_priors(reading.model, each, m, rng) for group, each in seen.items()}
        else:
            settings = EstimationSettings(method)
            noisy, _ = check_noisy(noisy, seen, settings, reading.model)
            space = RowSpace.from_means(reading.model.means) if noisy is not None else _require_complete(reading)
            rows = None if of is None else of.rows
            fits = {
                group: Fit.from_observed(reading.model, space, each, settings, noisy) for group, each in seen.items()
            }
            for fit in fits.values() if not by else ():
                _refuse_uncertain(fit)
            fits, _ = calibrate_fits(fits, known, rows)
            drawn = [_priors(fits, known, rows, rng) for _ in range(m)]
            priors = {group: np.stack([prior[group] for prior in drawn]) for group in seen}
        return cls(reading, by, priors, seed, reading.layout(open_source(source), by).names)

    def batches(self, source: Any, i: int, keep: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """Completed table number i, batch by batch: the original columns, then those to `keep` as they are."""
        table = open_source(source)
        way = self.reading.layout(table, self.by)
        rng = np.random.default_rng([self.seed, 1, i])
        values = self.reading.values
        names = [self.reading.sealed.domain.attributes[j].name for j in self.reading.attributes]
        labels = {name: pl.Series(column) for name, column in zip(names, zip(*values, strict=True), strict=True)}
        for rows in table.batches(list(dict.fromkeys([*way.names, *self.by, *keep]))):
            for piece in rows.iter_slices(way.rows_at_once):
                x = self._draw(way, piece, i, rng)
                yield pl.DataFrame({name: series.gather(x) for name, series in labels.items()}).hstack(
                    select_columns(piece, keep)
                )

    def _draw(self, way: Any, rows: pl.DataFrame, i: int, rng: Generator) -> NDArray[np.uint32]:
        outputs = self.reading.decode(way, rows)
        groups = group_labels(rows, self.by) if self.by else [()] * len(rows)
        place = {group: k for k, group in enumerate(self.priors)}
        member = np.array([place[group] for group in groups])
        x = np.empty(len(rows), dtype=np.uint32)
        for group, k in place.items():
            mine = np.flatnonzero(member == k)
            if len(mine):
                x[mine] = posterior_quantiles(
                    self.reading.model, self.priors[group][i], outputs[mine], rng.random(len(mine))
                )
        return x


def _priors(
    fits: dict[Group, Fit], known: KnownMargins | None, rows: int | None, rng: Generator
) -> dict[Group, FloatArray]:
    """A prior for each group, as another table like this one gives it; where margins are known the other one has them
    too, and the prior is one with which rows are completed to what they say."""
    first = next(iter(fits.values()))
    if first.calibration is None:
        method, noisy = first.settings.method, None if first.linear is None else first.linear.noisy
        seen = {group: _resample(first.model, fit.observed, rng) for group, fit in fits.items()}
        return {
            group: fit_shares(first.model, first.space, each, method, None if noisy is None else noisy.redraw(rng))
            for group, each in seen.items()
        }
    drawn = {
        group: Fit.from_observed(
            fit.model, fit.space, fit.model.simulate(fit.p, fit.observed.rows, rng, fixed=True), fit.settings
        )
        for group, fit in fits.items()
    }
    again, _ = calibrate_fits(drawn, known, rows)
    return {group: fit.prior for group, fit in again.items()}


def _large_priors(model: ChannelModel, observed: Observations, m: int, rng: Generator) -> FloatArray:
    """m priors over thousands of values, of resampled outputs: the distributions nearest to unbiased estimates."""
    weights = _require_complete_large(model, observed)
    seen = (_resample(model, observed, rng) for _ in range(m))
    return np.stack([weights.project(each.statistics) for each in seen])


def _resample(model: ChannelModel, observed: Observations, rng: Generator) -> Observations:
    """What another table like this one would have shown: its outputs resampled."""
    return model.observe(rng.multinomial(observed.rows, normalise(observed.statistics)).astype(np.float64))


def _refuse_uncertain(fit: Fit) -> None:
    """Refuse shares that are mostly noise: made possible ones, they are biased, and so is what records show."""
    if fit.linear is None:
        return
    _, covariance = fit.linear.covariance(np.eye(len(fit.p)), fixed=True)
    errors = float(np.sqrt(np.maximum(np.diag(covariance), 0.0)).sum())
    if errors > MOST_UNCERTAIN:
        raise ParameterError(
            f"Completed records need shares of all {len(fit.p):,} combinations; their standard errors sum to "
            f"{errors:.2g}, above {MOST_UNCERTAIN:g}, and relations would come out biased. Use estimate or regress, "
            "whose intervals hold, or have the owner publish for statistics."
        )


def _require_complete(reading: OutputReader) -> RowSpace:
    space = RowSpace.from_means(reading.model.means)
    if not space.complete:
        raise _incomplete_error(f"{space.hidden.shape[1]} of {reading.model.inputs} dimensions")
    return space


def _require_complete_large(model: ChannelModel, observed: Observations) -> Weights:
    weights = Weights.from_observed(model, observed)
    hidden = weights.hidden_count()
    if hidden:
        raise _incomplete_error(f"{hidden:,} of {model.inputs:,} shares")
    return weights


def _incomplete_error(hidden: str) -> ParameterError:
    return ParameterError(
        f"Records can be completed only where all shares are identified; this protocol hides {hidden}. Use estimate, "
        "which gives bounds."
    )


def posteriors(model: ChannelModel, prior: FloatArray, outputs: NDArray[Any]) -> FloatArray:
    """P(X = x | Y = y) for each of n outputs, as n × a. An output that the prior excludes is judged without it."""
    chance = model.likelihood(Observations(len(outputs), np.zeros(0), outputs, np.ones(len(outputs)))).T
    joint = chance * prior
    impossible = joint.sum(axis=1) <= 0
    joint[impossible] = chance[impossible]
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def posterior_quantiles(model: ChannelModel, prior: FloatArray, outputs: NDArray[Any], uniform: FloatArray) -> IntArray:
    """For each of n outputs the value at that quantile of its posterior, values in order."""
    distinct, which = np.unique(outputs, axis=0, return_inverse=True)
    which = which.reshape(-1)
    ends = posteriors(model, prior, distinct).cumsum(axis=1)
    ends[:, -1] = 1.0
    # All rows at once: output number k owns the stretch from k to k + 1.
    flat = (ends + np.arange(len(ends))[:, None]).ravel()
    at = np.searchsorted(flat, which + uniform, side="right")
    return np.asarray(np.minimum(at - which * ends.shape[1], ends.shape[1] - 1))
