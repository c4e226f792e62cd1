"""Real or synthetic records of the census data at ε = 1 in all: how many are real, and what can be estimated from them.

The model gets ε_c = 0.2, the records 0.8; labels are given. Beside the share of rows that are real stands that which no
protocol exceeds. Errors are of weighted rows and decoys against the table: the mean error of a share in points, and the
mean total variation of two-way tables; covered: how many 95 % intervals held, of shares and of cells of two-way tables
with more than 50 rows, by weights and by completed tables; then the errors of the model alone. Last, other odds that
are covered, and the rows then real.

Then two secrets over the seven columns left: each by itself, both as one, and one of them alone.

python -m benchmarks.real_or_synthetic synthetic.csv    the same with a model fitted to a differentially private table
"""

import sys
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from benchmarks.published_model import code_frame
from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.wide.real_or_synthetic_design import design_real_or_synthetic
from privacyfunnel.designs.wide.real_share_bound import bound_real_share
from privacyfunnel.estimation import combine
from privacyfunnel.estimation.decoy_weights import KnownRecords, WeightedRelease
from privacyfunnel.estimation.wide_imputation import complete_tables
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.promises import LIP, Each, Promise, RobustPromise
from privacyfunnel.model.published.measurement import CodedTable
from privacyfunnel.model.published.model_quality import measure_quality
from privacyfunnel.model.published.noise import NoNoise, OwnNoise
from privacyfunnel.model.published.wide_fit import GIVEN, fit_wide_model, stack_tables
from privacyfunnel.release.wide_design import ENOUGH
from privacyfunnel.tables.readers.adult import write_adult_csv

RECORDS, MODEL = 0.8, Fraction(1, 5)
DECOYS = 1 << 20
DRAWS = 5  # of all rows, over which errors are averaged
SEVERAL = "occupation", "marital-status"
ODDS = "1.25", "2", "any"
TABLES = 5  # that are completed
FEW = 50  # rows of a cell, below which its interval is not looked at


def share_errors(table: CodedTable, release: WeightedRelease) -> tuple[float, float]:
    """The mean error of a share, and the mean total variation of two-way tables."""
    one, two = [], []
    sizes = table.sizes
    for i in range(len(sizes)):
        one.append(
            np.abs(_weighted_shares(release, (i,), sizes) - table.count([i], by_secret=False) / table.rows).mean()
        )
    for i, j in combinations(range(len(sizes)), 2):
        seen = (table.count([i, j], by_secret=False) / table.rows).reshape(-1)
        two.append(np.abs(_weighted_shares(release, (i, j), sizes) - seen).sum() / 2)
    return float(np.mean(one)), float(np.mean(two))


def _weighted_shares(release: WeightedRelease, columns: tuple[int, ...], sizes: tuple[int, ...]) -> FloatArray:
    shape = tuple(sizes[j] for j in columns)
    total = np.zeros(int(np.prod(shape)))
    for records, weights in ((release.rows, release.row_weights), (release.decoys, release.decoy_weights)):
        cells = np.ravel_multi_index(tuple(records.codes[:, j] for j in columns), shape)
        total += np.bincount(cells, weights, len(total))
    total = np.maximum(total, 0.0)
    return np.asarray(total / total.sum())


def covered(table: CodedTable, release: WeightedRelease) -> tuple[float, float]:
    """The share of 95 % intervals that hold: of all shares, and of cells of two-way tables with some rows."""
    sizes, found = table.sizes, []
    for columns in (1, 2):
        held: list[bool] = []
        for chosen in combinations(range(len(sizes)), columns):
            shape = tuple(sizes[j] for j in chosen)
            cells = [
                np.ravel_multi_index(tuple(records.codes[:, j] for j in chosen), shape)
                for records in (release.rows, release.decoys)
            ]
            count, variance = release.estimate_counts(cells[0], cells[1], int(np.prod(shape)))
            truth = table.count(chosen, by_secret=False).reshape(-1)
            inside = np.abs(count - truth) <= 1.96 * np.sqrt(variance)
            held += inside[truth > (FEW if columns == 2 else -1)].tolist()
        found.append(float(np.mean(held)))
    return found[0], found[1]


def covered_imputed(table: CodedTable, release: WeightedRelease) -> tuple[float, float]:
    """The same by completed tables and Rubin's rules."""
    completed, sizes, found = list(complete_tables(release, TABLES, 0)), table.sizes, []
    for columns in (1, 2):
        held: list[bool] = []
        for chosen in combinations(range(len(sizes)), columns):
            shape = tuple(sizes[j] for j in chosen)
            cells = [np.ravel_multi_index(tuple(codes[:, j] for j in chosen), shape) for codes in completed]
            counts = np.stack([np.bincount(each, minlength=int(np.prod(shape))) for each in cells])
            truth = table.count(chosen, by_secret=False).reshape(-1)
            for cell in np.flatnonzero(truth > (FEW if columns == 2 else -1)):
                interval = combine(counts[:, cell])
                held.append(interval.lower <= truth[cell] <= interval.upper)
        found.append(float(np.mean(held)))
    return found[0], found[1]


def print_several(frame: pl.DataFrame) -> None:
    """Rows that stay with two secrets, each promised by itself, as one secret, and with one of them."""
    table = Table(title=f"Secrets {' and '.join(SEVERAL)}, {frame.width - 2} columns, LIP ε = 0.8 + 0.2")
    for heading in ("promised", "real", "at most", "design"):
        table.add_column(heading, justify="right")
    both = frame.with_columns(pl.concat_str(SEVERAL, separator=" & ").alias("both"))
    coded = {name: code_frame(both.drop({*SEVERAL, "both"} - {name}), name) for name in (*SEVERAL, "both")}
    each = [coded[name] for name in SEVERAL]
    raw: dict[str, tuple[CodedTable, list[Attribute], Promise]] = {
        "each by itself": (stack_tables(each), [one.secret for one in each], Each(RECORDS)),
        "both as one": (coded["both"], [], LIP(RECORDS)),
        **{f"{name} alone": (coded[name], [], LIP(RECORDS)) for name in SEVERAL},
    }
    for promised, (rows, secrets, promise) in raw.items():
        noise = partial(OwnNoise, randbelow=Random(0).randrange)
        given = True, [GIVEN] * len(rows.attributes)
        fit = fit_wide_model(rows, MODEL, Fraction(1), noise, given, secrets=secrets)
        begun = time.process_time()
        mechanism = design_real_or_synthetic(fit.tree, promise).mechanism
        seconds = time.process_time() - begun
        keep = KnownRecords.find(mechanism, fit.recode(rows).codes[: len(frame)]).keep
        table.add_row(promised, f"{keep.mean():.3f}", f"{bound_real_share(mechanism):.3f}", f"{seconds:.1f} s")
    Console(width=180).print(table)


def main(synthetic: str = "") -> None:
    table = Table(title="Real or synthetic records, ε = 0.8 + 0.2")
    for heading in (
        "secret",
        "real",
        "at most",
        "mean 1/a",
        "one-way, points",
        "two-way",
        "covered",
        "by imputed tables",
        "model alone",
        "design",
        "rows/s",
        "real at odds " + ", ".join(ODDS),
    ):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        write_adult_csv(path)
        frame = pl.read_csv(path)
    for secret in ("income", "occupation"):
        others = pl.read_csv(synthetic).select(frame.columns) if synthetic else frame.clear()
        both = code_frame(pl.concat([frame, others]), secret)  # by the same labels
        n, noise = len(frame), partial(OwnNoise, randbelow=Random(0).randrange)
        given = True, [GIVEN] * len(both.attributes)
        raw = replace(both, secrets=both.secrets[:n], codes=both.codes[:n])
        if synthetic:
            private = replace(both, secrets=both.secrets[n:], codes=both.codes[n:])
            fit = fit_wide_model(private, ENOUGH, Fraction(1), lambda _: NoNoise(), given)
        else:
            fit = fit_wide_model(raw, MODEL, Fraction(1), noise, given)
        model, coded = fit.tree, fit.recode(raw)
        begun = time.process_time()
        mechanism = design_real_or_synthetic(model, LIP(RECORDS)).mechanism
        designed = time.process_time()
        draws = [mechanism.draw(coded.codes, KeyStream.from_seed(seed).rows(0, coded.rows)) for seed in range(DRAWS)]
        seconds = (time.process_time() - designed) / DRAWS
        releases = [WeightedRelease.weigh(mechanism, drawn, KeyStream.from_seed(9), DECOYS) for drawn in draws]
        one, two = np.mean([share_errors(coded, release) for release in releases], axis=0)
        held = np.mean([covered(coded, release) for release in releases], axis=0)
        imputed = np.mean([covered_imputed(coded, release) for release in releases], axis=0)
        alone = measure_quality(model, coded)
        robust = [RobustPromise(LIP(RECORDS), OddsRange.parse(odds)) for odds in ODDS]
        keep = KnownRecords.find(mechanism, coded.codes).keep
        table.add_row(
            secret,
            f"{keep.mean():.3f}",
            f"{bound_real_share(mechanism):.3f}",
            f"{(1 / keep[keep > 0]).mean():.2f}",
            f"{100 * one:.3f}",
            f"{100 * two:.2f} %",
            ", ".join(f"{100 * share:.1f} %" for share in held),
            ", ".join(f"{100 * share:.1f} %" for share in imputed),
            f"{100 * alone.one_way:.3f}, {100 * alone.two_way:.2f} %",
            f"{designed - begun:.1f} s",
            f"{coded.rows / seconds:,.0f}",
            ", ".join(f"{design_real_or_synthetic(model, promise).real_share:.2f}" for promise in robust),
        )
    Console(width=180).print(table)
    print_several(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
