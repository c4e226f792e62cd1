"""Do intervals cover? Every mechanism × prior × number of combinations, on sparse tables of Adult.

python -m benchmarks coverage                                          all of it
python -m benchmarks.coverage people.csv SECRET PUBLISH[,PUBLISH…]     a table of yours; numbers in bins

A mechanism is made once for a table; its rows are sanitised DRAWS times, and with a published model the noise of its
counts is drawn as often. Printed for the shares of single columns and 95 % intervals: how often they hold the truth, on
average and for the least covered value; the root mean square error and half the mean width in points; the part of the
weight that rows have, where noisy counts have the rest; how often intervals for the coefficients of a linear regression
hold, of the number of each label's place in one column on the labels of the others (of one column: on nothing), and how
many are refused. Real or synthetic rows, which three and more columns become under a model, are drawn and estimated
WIDE_DRAWS times as a user would. A value whose interval covers 95 % is seen to do so in 95 % ± 1.96 √(.05 · .95 / n) of
n draws; the least of forty comes out near .92 at 400. LOW marks a least value that 95 % would give once in a
thousand tables.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binom

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.audits.matched_table import MatchedTable
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.estimation import estimate
from privacyfunnel.estimation.identification import RowSpace, identify
from privacyfunnel.estimation.linear import LinearEstimator, NoisyShares
from privacyfunnel.estimation.observation import ChannelModel, normalise
from privacyfunnel.estimation.output_reader import OutputReader
from privacyfunnel.estimation.regression import ListedSums, solve_regression
from privacyfunnel.estimation.share_estimates import EstimationSettings, Fit, default_method
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.published.table_model import TableModel
from privacyfunnel.release.apply import apply
from privacyfunnel.release.design import design
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.adult import write_adult_csv
from privacyfunnel.tables.readers.eager_frames import FrameTable

DRAWS, FEWER_DRAWS, MANY = 400, 100, 150  # fewer above so many combinations, whose matrices take long
WIDE_DRAWS = 40
RARELY = 1e-3
SECRET = "income"
TABLES = (
    (("education",), 6000),
    (("education", "relationship"), 1000),
    (("education", "relationship"), 6000),
    (("education", "relationship", "race"), 6000),
    (("education", "occupation", "relationship"), 6000),
)
MECHANISMS = (
    ("statistics", {"use": "statistics"}),
    ("balanced", {"use": "balanced"}),
    ("information", {"use": "information"}),
    ("RR", {"method": "randomised-response"}),
    ("conditional", {"method": "conditional-reporting"}),
)
PRIORS = ("table", "model")
EPSILONS = (0.3, 1.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism and the table that it was made for, as counts of its values."""

    sealed: SealedProtocol
    reading: OutputReader
    own: IntArray

    @classmethod
    def match(cls, people: pl.DataFrame, sealed: SealedProtocol) -> "Case":
        reading = OutputReader.from_protocol(sealed)
        joint = MatchedTable.match(FrameTable.from_native(people), sealed, ()).joint
        place = {labels: i for i, labels in enumerate(reading.values)}
        own = np.zeros(len(place), dtype=np.int64)
        for labels, count in zip(joint.values, joint.weights.sum(axis=0).tolist(), strict=True):
            own[place[tuple(labels)]] += count
        return cls(sealed, reading, own)

    def redraw_counts(self, rng: np.random.Generator) -> NoisyShares | None:
        """Other noise on the counts of a published model."""
        model = self.sealed.model
        if not isinstance(model, TableModel) or model.counts is None:
            return None
        variance = model.counts.variance
        noisy = self.own + rng.laplace(0.0, np.sqrt(variance / 2)).sum(axis=0)
        near = model.weights.sum(axis=0).astype(np.float64)
        return NoisyShares.from_counts(noisy, variance.sum(axis=0), near, model.rows, complete=model.rest is None)

    def measure(self, columns: tuple[str, ...], draws: int) -> str:
        """How often intervals for the shares of each column hold, as a piece of a line."""
        model, rng = self.reading.model, np.random.default_rng(0)
        assert isinstance(model, ChannelModel)
        functions = np.hstack([dense(self.reading.cells((name,)).functions) for name in columns])
        space, truth = RowSpace.from_means(model.means), self.own @ functions / self.own.sum()
        known = identify(space, functions).identified
        chances = normalise(dense(model.channel))
        held, off, wide, rows = [], [], [], []
        for _ in range(draws):
            seen = model.observe(rng.multinomial(self.own, chances).sum(axis=0))
            noisy = self.redraw_counts(rng)
            settings = EstimationSettings(default_method(model, noisy))
            told = known | (noisy is not None)
            shares = Fit.from_observed(model, space, seen, settings, noisy).shares(functions, told)
            held.append((shares.lower <= truth + 1e-9) & (truth <= shares.upper + 1e-9))
            off.append(np.where(told, shares.share - truth, 0.0))
            wide.append(shares.upper - shares.lower)
            rows.append(np.ones_like(truth) if shares.from_rows is None else shares.from_rows)
        random = np.mean(wide, axis=0) > 1e-9
        if not random.any():
            return "told exactly"
        told_by = format_coverage(settings.method, np.array(held)[:, random], np.array(off)[:, random], np.array(wide))
        return f"{told_by}  rows {float(np.mean(rows)):.2f}"

    def measure_regression(self, columns: tuple[str, ...], draws: int) -> str:
        """The same for the coefficients of a regression."""
        model, rng = self.reading.model, np.random.default_rng(1)
        assert isinstance(model, ChannelModel)
        numbers = [self.reading.cells((name,)).number for name in columns]
        y, ones = numbers[0].astype(np.float64), np.ones((len(self.own), 1))
        design = np.hstack([ones, *(np.eye(each.max() + 1)[each][:, 1:] for each in numbers[1:])])
        root = np.sqrt(self.own)[:, None]
        truth = np.linalg.lstsq(root * design, root[:, 0] * y)[0]
        lines, chances = pl.DataFrame({"y": y}), normalise(dense(model.channel))
        held, refused = [], 0
        for _ in range(draws):
            seen = model.observe(rng.multinomial(self.own, chances).sum(axis=0))
            linear = LinearEstimator.from_observed(model, seen, self.redraw_counts(rng))
            try:
                beta, around = solve_regression(ListedSums(linear, lines), design, y, np.ones(len(y)), False, True)
            except PrivacyFunnelError:
                refused += 1
                continue
            held.append(np.abs(beta - truth) <= 1.96 * np.sqrt(np.diag(around)) + 1e-9)
        if not held:
            return "regression refused"
        covered: FloatArray = np.mean(held, axis=0)
        return f"regression {covered.mean():.3f} (least {covered.min():.3f}, {refused} refused)"


def format_coverage(method: str, held: FloatArray, off: FloatArray, wide: FloatArray) -> str:
    """Mean and least coverage, error and half the width of intervals, in points."""
    draws, covered = len(held), held.mean(axis=0)
    chance = binom.cdf(round(covered.min() * draws), draws, 0.95) * len(covered)
    low = " LOW" if chance < RARELY else ""
    return (
        f"{method:<6} {covered.mean():.3f} (least {covered.min():.3f} of {len(covered)}{low})  "
        f"error {100 * float(np.sqrt(np.mean(off**2))):6.3f}  ± {50 * float(np.mean(wide)):6.3f}"
    )


def measure_wide(people: pl.DataFrame, sealed: SealedProtocol) -> str:
    """The same for real and synthetic rows."""
    held, off, wide = [], [], []
    for seed in range(WIDE_DRAWS):
        rows = apply(sealed, people, ReleaseSpec(seed=seed, unknown="blur", accept_drift=True)).table
        cells = [(table.columns[0], cell) for table in estimate(sealed, rows) for cell in table]
        named = {name: [cell.labels[0] for column, cell in cells if column == name] for name in people.columns}
        truth = [share_of(people[name], cell.labels[0], named[name]) for name, cell in cells]
        held.append([cell.lower - 1e-9 <= t <= cell.upper + 1e-9 for (_, cell), t in zip(cells, truth, strict=True)])
        off.append([(cell.share or 0.0) - t for (_, cell), t in zip(cells, truth, strict=True)])
        wide.append([cell.upper - cell.lower for _, cell in cells])
    return format_coverage("wide", np.array(held), np.array(off), np.array(wide))


def share_of(column: pl.Series, label: str, named: list[str]) -> float:
    """The share of a label, or of all that are not named where they were merged."""
    text = column.cast(pl.String)
    found = text == label if (text == label).any() else ~text.is_in(named)
    return float(found.sum()) / len(found)


def print_case(people: pl.DataFrame, secret: str, publish: tuple[str, ...], name: str, asked: dict[str, Any]) -> None:
    """A line for one mechanism."""
    spec = ReleaseSpec(secret=secret, publish=publish, seed=1, **asked)
    start = f"   {' × '.join(publish):<38} n {len(people):>6} {name:<12} {spec.prior:<6} ε {spec.epsilon:<4g}"
    try:
        sealed = design(people.select(secret, *publish), spec)
    except PrivacyFunnelError as error:
        print(f"{start} refused: {str(error)[:70]}", flush=True)
        return
    if not sealed.mechanism.lists_inputs:
        print(f"{start}   {measure_wide(people.select(secret, *publish), sealed)}", flush=True)
        return
    case = Case.match(people.select(secret, *publish), sealed)
    draws = DRAWS if len(case.own) <= MANY else FEWER_DRAWS
    line = f"{start} {len(case.own):>4}  {case.measure(publish, draws)}"
    print(f"{line}  {case.measure_regression(publish, draws)}", flush=True)


def main(words: list[str] | None = None) -> None:
    """Print the coverage on Adult, or on the table that is named."""
    print(f"   95 % intervals of shares and coefficients; {DRAWS} draws, {FEWER_DRAWS} above {MANY} combinations")
    if words:
        people, secret = pl.read_csv(words[0]), words[1]
        tables = [(tuple(words[2].split(",")), len(people))]
    else:
        with TemporaryDirectory() as folder:
            write_adult_csv(Path(folder) / "adult.csv")
            people = pl.read_csv(Path(folder) / "adult.csv")
        secret, tables = SECRET, list(TABLES)
    for publish, rows in tables:
        for name, named in MECHANISMS:
            for prior in PRIORS:
                for epsilon in EPSILONS:
                    asked = {"prior": prior, "epsilon": epsilon, **named}
                    number = len(people) if prior == "model" else rows  # labels are named through noise
                    print_case(people.sample(number, seed=1), secret, publish, name, asked)


if __name__ == "__main__":
    main(sys.argv[1:])
