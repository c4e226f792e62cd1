r"""Expected precision: how near estimates will come to the shares of the table, before anything is drawn.

For the owner, who knows the shares p. The best unbiased estimate of a share :math:`\theta = w \cdot p` (`inversion`)
has a variance V (`precision`), and lies within :math:`\theta \pm z \sqrt V` with the chance that belongs to z. What
outputs guarantee is certain besides: on average a share :math:`f_y` of the rows shows y, so that an estimate lies
between the rows whose output allows nothing else and those whose output allows it at all. Of shares that the protocol
does not identify that alone is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.methods import (
    DEFAULT_METHOD,
    Effort,
    Options,
    apply_default_use,
    find_method,
    resolve_method,
)
from privacyfunnel.errors import SizeError
from privacyfunnel.estimation.inversion import unbiased_variances
from privacyfunnel.estimation.observation import Cells, ChannelModel, Precision
from privacyfunnel.estimation.output_reader import OutputReader
from privacyfunnel.estimation.profile import CertainBounds
from privacyfunnel.estimation.tabulation import group_tables
from privacyfunnel.estimation.wide_estimates import expect_cells
from privacyfunnel.formatting import format_error, format_points
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint, cache_with_joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Labels

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedPrecision:
    """The shares of one column, or the cells of one cross table, and how near an estimate of each will come."""

    columns: tuple[str, ...]
    labels: tuple[Labels, ...]
    shares: FloatArray  # in the table: the owner's own
    half_widths: FloatArray  # how far off an estimate is at most, at `LEVEL`: 0.004 is ±0.4 points

    @property
    def average(self) -> float:
        """How far off a share is at most, on average over the shares."""
        return float(self.half_widths.mean())

    @property
    def worst(self) -> int:
        """The number of the share that is told worst."""
        return int(self.half_widths.argmax())

    def to_dict(self) -> dict[str, Any]:
        """The averages, as one object of JSON; figures are shares, not points."""
        worst = self.worst
        return {
            "columns": list(self.columns),
            "average": self.average,
            "worst": float(self.half_widths[worst]),
            "worst_value": " & ".join(self.labels[worst]),
        }

    def __str__(self) -> str:
        """In points.

        >>> from privacyfunnel.estimation.expected_precision import ExpectedPrecision
        >>> print(ExpectedPrecision(("town",), (("u",), ("v",)), np.array([0.3, 0.7]), np.array([0.004, 0.014])))
        each share of town within ±0.9 points on average; worst: v ±1.4
        """
        what = "share" if len(self.columns) == 1 else "cell"
        worst = self.half_widths[self.worst]
        if format_error(worst) == "exact":
            return f"each {what} of {' × '.join(self.columns)} exact"
        text = f"each {what} of {' × '.join(self.columns)} within ±{format_points(self.average)} points on average"
        return f"{text}; worst: {' & '.join(self.labels[self.worst])} {format_error(worst)}"


def expected_precision(sealed: SealedProtocol, joint: Joint, rows: int, columns: Sequence[str]) -> ExpectedPrecision:
    """How near an analyst of a table of so many rows will come to the shares of these columns together.

    Raises
    ------
    SizeError
        If the channel of these columns is too large to estimate from.
    """
    if not sealed.mechanism.lists_inputs:
        return _weighted_precisions(sealed, joint, rows, [tuple(columns)])[0]
    reading = OutputReader.from_protocol(sealed, columns=columns)
    return _expected_precisions(reading, joint, rows, [tuple(columns)])[0]


@cache_with_joint  # of one release: its summary, its JSON and its report all say it
def expected_precision_by_column(sealed: SealedProtocol, joint: Joint, rows: int) -> tuple[ExpectedPrecision, ...]:
    """The same for every published column by itself, without those that cannot be estimated from in reasonable time."""
    tables = [(attribute.name,) for attribute in sealed.domain.attributes]
    if not sealed.mechanism.lists_inputs:
        return tuple(_weighted_precisions(sealed, joint, rows, tables))
    found: dict[int, ExpectedPrecision] = {}
    for together in group_tables(sealed, tables):
        with suppress(SizeError):
            reading = OutputReader.from_protocol(sealed, columns=tables[together[0]])
            found.update(
                zip(together, _expected_precisions(reading, joint, rows, [tables[i] for i in together]), strict=True)
            )
    return tuple(found[i] for i in sorted(found))


def _weighted_precisions(
    sealed: SealedProtocol, joint: Joint, rows: int, tables: Sequence[tuple[str, ...]]
) -> list[ExpectedPrecision]:
    """Of real or synthetic records, from a trial draw."""
    z, found = NormalDist().inv_cdf((1 + LEVEL) / 2), []
    for columns, (cells, truth) in zip(tables, expect_cells(sealed, joint, rows, tables), strict=True):
        half = np.array([z * (cell.standard_error or 0.0) for cell in cells])
        found.append(ExpectedPrecision(columns, tuple(cell.labels for cell in cells), truth, half))
    return found


def _precision(model: ChannelModel, p: FloatArray, tables: Sequence[Cells]) -> list[Precision]:
    """How near estimates of the cells of each table come at shares p."""
    functions, second = [cells.functions for cells in tables], model.second_moment(p)
    certain = [CertainBounds.from_likelihood(model.means, second, each) for each in functions]
    found = zip(unbiased_variances(model, p, functions), certain, strict=True)
    return [Precision(variance, sure.lower, sure.upper) for variance, sure in found]


def _expected_precisions(
    reading: OutputReader, joint: Joint, rows: int, requested: Sequence[tuple[str, ...]]
) -> list[ExpectedPrecision]:
    """Several tables from one look at the channel."""
    p, z, found = _shares(reading, joint), NormalDist().inv_cdf((1 + LEVEL) / 2), []
    tables = [reading.cells(columns) for columns in requested]
    for columns, cells, near in zip(requested, tables, _precision(reading.model, p, tables), strict=True):
        theta, off = cells.sums(p), z * np.sqrt(near.variance / rows)
        low, high = np.maximum(theta - off, near.least), np.minimum(theta + off, near.most)
        found.append(
            ExpectedPrecision(columns, cells.labels, theta, np.maximum(np.maximum(theta - low, high - theta), 0.0))
        )
    return found


def _shares(reading: OutputReader, joint: Joint) -> FloatArray:
    """The table's shares of what the reading's channel takes for its inputs."""
    parts = joint.combos[:, list(reading.attributes)]
    both, place = np.unique(np.concatenate([reading.combos, parts]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    shares = np.bincount(place[len(reading.combos) :], joint.p_x, minlength=len(both))
    return np.asarray(shares[place[: len(reading.combos)]])


@dataclass(frozen=True, slots=True)
class CountingError:
    """The share that counting the published values as they are is furthest off from, chance included."""

    column: str
    label: str
    bias: float  # on average: 0.01 is one point
    most: float  # off at most, with a probability of `LEVEL`


MOST_CHANCES = 1 << 20  # of values to show a label, by which errors of counting are computed


def counting_error(sealed: SealedProtocol, joint: Joint, rows: int) -> CountingError | None:
    """How far off whoever counts the values in a table of so many rows is; None where sets of values stand there.

    Given the table, the share of rows that show a value has the variance Σ p_x Q_x (1 − Q_x) / rows, where Q_x is the
    chance that x shows it; f (1 − f) / rows at most, where chances are not listed and f is its mean.
    """
    z, found = NormalDist().inv_cdf((1 + LEVEL) / 2), []
    law = sealed.mechanism
    listed = law.observation() if law.lists_inputs and law.observation_size <= MOST_CHANCES else None
    shares, parts = sealed.mechanism.output_shares(joint), sealed.mechanism.parts
    likely: Sequence[IntArray | None] = [outcome.likely for outcome in sealed.outcomes] or [None] * len(parts)
    for part, codes, (values, p, f) in zip(parts, likely, shares, strict=True):
        for i, j in enumerate(part.attributes):
            column = joint.attributes[j]
            place = {label: v for v, label in enumerate(column.labels)}
            if codes is None and not {name[i] for name in part.names} <= place.keys():
                return None
            at = [place[name[i]] for name in part.names] if codes is None else codes[:, i]
            shown = np.bincount(at, f, minlength=len(place))
            off = shown - np.bincount(values[:, i], p, minlength=len(place))
            spread = np.maximum(shown * (1 - shown), 0.0)
            if listed is not None and listed.shape == (joint.a, len(at)):
                shows = listed @ np.eye(len(place))[np.asarray(at)]
                spread = joint.p_x @ (shows * (1 - shows))
            most = np.abs(off) + z * np.sqrt(np.maximum(spread, 0.0) / rows)
            worst = int(most.argmax())
            found.append(CountingError(column.name, column.labels[worst], float(off[worst]), float(most[worst])))
    return max(found, key=lambda each: each.most, default=None)


EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
SECONDS = 4.0  # for each of them: a rough protocol tells enough to choose


@dataclass(frozen=True, slots=True, eq=False)
class Consequence:
    """What a promise of one size allows, and what it leaves to an analyst."""

    promise: Promise
    shares: tuple[ExpectedPrecision, ...]  # of each column; none where the protocol is made while it draws
    unknown: str = ""  # why there are none

    def belief_range(self, prior: float) -> tuple[float, float]:
        """Between what a belief may come to lie."""
        return self.promise.belief_bounds(prior, self.promise.epsilon)

    def to_dict(self, prior: float) -> dict[str, Any]:
        """As one object of JSON."""
        return {
            "epsilon": self.promise.epsilon,
            "belief": prior,
            "becomes": self.belief_range(prior),
            "shares_within": [share.to_dict() for share in self.shares],
            "unknown": self.unknown,
        }


def consequences(
    joint: Joint, rows: int, promise: Promise, epsilons: Sequence[float] = EPSILONS, seconds: float = SECONDS
) -> tuple[Consequence, ...]:
    """What each size of the promise would mean for this table; `rows` is how many it has."""
    return tuple(_consequence(joint, rows, promise.with_epsilon(epsilon), seconds) for epsilon in epsilons)


def _consequence(joint: Joint, rows: int, promise: Promise, seconds: float) -> Consequence:
    options = Options(effort=Effort(time_limit=seconds))
    choice, options = apply_default_use(resolve_method(DEFAULT_METHOD, options), joint, promise, options)
    mine = find_method(choice.method)
    sealed = mine.design(joint, promise, options).seal()
    return Consequence(promise, expected_precision_by_column(sealed, joint, rows))
