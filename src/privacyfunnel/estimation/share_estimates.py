"""The estimation itself, on arrays: from what was seen to shares with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, special
from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation.calibration import Calibration, KnownMargins, calibrate_groups
from privacyfunnel.estimation.identification import RowSpace, share_bounds
from privacyfunnel.estimation.intervals import EXACT, Spread, interval, settle_interval, spread
from privacyfunnel.estimation.inversion import project_on_simplex, unbiased_weights
from privacyfunnel.estimation.likelihood import maximum_likelihood
from privacyfunnel.estimation.linear import LinearEstimator, NoisyShares
from privacyfunnel.estimation.observation import ChannelModel, Observations
from privacyfunnel.estimation.output_reader import Group
from privacyfunnel.estimation.profile import CertainBounds, FixedMargins, Profile, fit_groups, profile_intervals

METHODS = ("ml", "projection", "inversion", "linear")
TARGETS = ("table", "population")
FEW_VALUES = 20  # up to which the most likely shares are told: with more the border of what can be biases them
UNTOLD = 0.05  # about a standard error, where none is known: a first step of a search
WORTH = (
    0.9  # of a standard error: what is left of it where groups are calibrated at the cost of a wider kind of interval
)


@dataclass(frozen=True, slots=True)
class EstimationSettings:
    """How to estimate."""

    method: str
    level: float = 0.95
    target: str = "table"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"A method is one of {', '.join(METHODS)}; there is none called '{self.method}'.")
        if self.target not in TARGETS:
            raise ParameterError(f"A target is one of {', '.join(TARGETS)}; there is none called '{self.target}'.")
        if not 0.5 <= self.level < 1:
            raise ParameterError(f"The level must be at least 0.5 and below 1; it is {self.level}.")

    @property
    def fixed(self) -> bool:
        """Whether the originals are fixed, so that only the protocol is random."""
        return self.target == "table"


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Estimates of r functions of p; of those not identified only the bounds mean anything, the rest is 0."""

    share: FloatArray
    standard_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    fits: bool  # whether some distribution explains what was seen
    from_rows: FloatArray | None = None  # the weight that rows have in linear estimates


def fit_shares(
    model: ChannelModel, space: RowSpace, observed: Observations, method: str, noisy: NoisyShares | None = None
) -> FloatArray:
    """A distribution that explains what was seen: the most likely one, or the one nearest to the unbiased estimate.

    Where the protocol hides directions there is no nearest one, and the most likely serves.
    """
    a = model.inputs
    if method == "linear":
        return LinearEstimator.from_observed(model, observed, noisy).project()
    if method == "ml" or not space.complete:
        return maximum_likelihood(model.likelihood(observed), observed.counts).p
    p = np.full(a, 1 / a)
    for _ in range(2):  # first with weights that are good anywhere, then with those that are best here
        weights = unbiased_weights(model, space, np.eye(a), _smooth(p, observed.rows))
        p = project_on_simplex(observed.statistics @ weights)
    return p


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What was seen, explained: the basis of every estimate from one table or group."""

    model: ChannelModel
    space: RowSpace
    observed: Observations
    settings: EstimationSettings
    p: FloatArray
    alone: FloatArray  # p, as it is without margins that are known
    prior: FloatArray  # with which rows are completed so that they have the shares p
    calibration: Calibration | None = None  # where margins of the table are known
    linear: LinearEstimator | None = None  # where estimates are linear, with noisy counts that are public

    @classmethod
    def from_observed(
        cls,
        model: ChannelModel,
        space: RowSpace,
        observed: Observations,
        settings: EstimationSettings,
        noisy: NoisyShares | None = None,
    ) -> Fit:
        if settings.method == "linear":
            linear = LinearEstimator.from_observed(model, observed, noisy)
            return cls(model, space, observed, settings, linear.p, linear.p, linear.p, linear=linear)
        p = fit_shares(model, space, observed, settings.method)
        return cls(model, space, observed, settings, p, p, p)

    @property
    def noisy(self) -> bool:
        """Whether noisy counts are used besides the rows."""
        return self.linear is not None and self.linear.noisy is not None

    def calibrate(self, calibration: Calibration) -> Fit:
        """The same where margins are known."""
        p, rows = self.p, self.observed.rows
        if self.space.complete:
            g = unbiased_weights(self.model, self.space, np.eye(p.size), _smooth(p, rows))
            beta, _ = calibration.regression(self.model, g, _smooth(p, rows), rows)
            p = project_on_simplex(p + calibration.residual @ beta)
        return replace(self, p=p, prior=p, calibration=calibration)

    def is_implied(self, functions: FloatArray) -> BoolArray:
        """Which functions follow from margins that are known."""
        if self.calibration is None or not self.calibration.whole:
            return np.zeros(functions.shape[1], dtype=np.bool_)
        return self.calibration.all_margins.implied_shares(functions)[0]

    def shares(self, functions: FloatArray, identified: BoolArray) -> Shares:
        """Estimates of each of `functions` (a × r) of the original distribution, bounds where it is not identified."""
        if self.linear is not None:
            return self._linear_shares(self.linear, functions)
        r = functions.shape[1]
        share, error, lower, upper = np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r)
        fits = True
        known, unknown = np.flatnonzero(identified), np.flatnonzero(~identified)
        if len(known):
            share[known], error[known], lower[known], upper[known] = self._estimate_identified(functions[:, known])
        if len(unknown):
            found = share_bounds(self.model, self.observed, functions[:, unknown], self.settings.level)
            lower[unknown], upper[unknown], fits = found.lower, found.upper, found.fits
            profiled = self._profile_intervals(functions[:, unknown], np.full(len(unknown), UNTOLD)) if fits else None
            if profiled is not None:
                lower[unknown], upper[unknown] = profiled
        lower, upper = self._clip_to_certain(functions, lower, upper)
        if self.calibration is not None:
            most = self.calibration.all_margins.largest_shares(functions, self.calibration.part)
            lower, upper = np.minimum(lower, most), np.minimum(upper, most)
        if self.settings.method != "inversion":
            share = np.where(identified, np.clip(share, lower, upper), share)
        exactly = self.is_implied(functions)
        if self.calibration is not None and exactly.any():
            told_exactly = self.calibration.all_margins.implied_shares(functions)[1]
            share, lower, upper = (np.where(exactly, told_exactly, other) for other in (share, lower, upper))
            error = np.where(exactly, 0.0, error)
        return Shares(share, error, lower, upper, fits)

    def _linear_shares(self, linear: LinearEstimator, functions: FloatArray) -> Shares:
        rows, settings = self.observed.rows, self.settings
        estimates = linear.estimate(functions, settings.level, fixed=settings.fixed)
        lower, upper = settle_interval(
            estimates.lower, estimates.upper, estimates.share, estimates.ranges, rows, settings
        )
        lower, upper = self._clip_to_certain(functions, np.maximum(lower, 0.0), np.minimum(upper, 1.0))
        error = np.where(upper - lower <= EXACT, 0.0, estimates.standard_error)
        return Shares(np.clip(estimates.share, lower, upper), error, lower, upper, True, estimates.from_rows)

    def _estimate_identified(self, functions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        model, rows, settings = self.model, self.observed.rows, self.settings
        g = unbiased_weights(model, self.space, functions, _smooth(self.p, rows))
        alone = unbiased = self.observed.statistics @ g
        around = apart = spread(model, g, self.p, rows, fixed=settings.fixed)
        if self.calibration is not None:
            unbiased, around = self.calibration.estimate(model, g, self.observed, self.p)
        exact = around.variance <= EXACT**2  # certain outputs: counted, not estimated
        share = unbiased if settings.method == "inversion" else np.where(exact, unbiased, self.p @ functions)
        lower, upper = self._intervals(functions, unbiased, around, apart)
        lower, upper = settle_interval(lower, upper, alone, model.ranges(g), rows, settings)
        inside = np.clip(share, 0.0, 1.0)
        return share, np.sqrt(around.variance), np.minimum(lower, inside), np.maximum(upper, inside)

    def _intervals(
        self, functions: FloatArray, unbiased: FloatArray, around: Spread, apart: Spread
    ) -> tuple[FloatArray, FloatArray]:
        """By profile where that can be had. One group's profile does not know what all have together: there the linear
        estimate serves, where what is known makes it much nearer than it is apart from that."""
        known, level = self.calibration, self.settings.level
        most = None if known is None else known.all_margins.largest_shares(functions, known.part)
        found = self._profile_intervals(functions, np.sqrt(around.variance))
        if found is None:
            return interval(unbiased, around, level, most)
        if known is None or known.whole:
            return found
        nearer = around.variance < WORTH**2 * apart.variance
        linear = interval(unbiased, around, level, most)
        return np.where(nearer, linear[0], found[0]), np.where(nearer, linear[1], found[1])

    def _profile_intervals(self, functions: FloatArray, guesses: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Intervals that use all that is known; None for other methods, or where they would take long."""
        profile, z = self.profile, float(special.ndtri((1 + self.settings.level) / 2))
        return None if profile is None else profile_intervals(profile, functions, guesses, z, fixed=self.settings.fixed)

    @property
    def profile(self) -> Profile | None:
        """What profiles are measured from; None for other methods."""
        if self.settings.method != "ml":
            return None
        known, rows, margins = self.calibration, self.observed.rows, None
        if known is not None and known.whole:
            margins = FixedMargins(known.margins.functions, known.margins.shares, known.inverse / rows)
        return Profile(self.model.likelihood(self.observed), self.observed.counts, self.alone, margins)

    def _clip_to_certain(
        self, functions: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The part of each interval that what was published allows; for a table that is certain."""
        if not self.settings.fixed:
            return lower, upper
        certain = CertainBounds.from_likelihood(self.model.likelihood(self.observed), self.observed.counts, functions)
        return np.clip(lower, certain.lower, certain.upper), np.clip(upper, certain.lower, certain.upper)


def default_method(model: ChannelModel, noisy: NoisyShares | None = None, exact: KnownMargins | None = None) -> str:
    """A method whose intervals cover: the most likely shares where values are few, with what is known of them."""
    if exact is not None:
        return "ml"
    return "ml" if noisy is None and model.inputs <= FEW_VALUES else "linear"


def check_noisy(
    noisy: NoisyShares | None, seen: Mapping[Group, Observations], settings: EstimationSettings, model: ChannelModel
) -> tuple[NoisyShares | None, dict[str, None]]:
    """Noisy counts, unless they are of other rows than these; and what is to be said about it."""
    if noisy is None or settings.method != "linear":
        return None, {}
    (observed,) = seen.values()
    if observed.rows != noisy.rows:
        return None, {
            f"The noisy counts of the protocol file are those of {noisy.rows:,} rows; here are {observed.rows:,}. They "
            "were not used: these are other rows.": None
        }
    if not LinearEstimator.from_observed(model, observed, noisy).fits():
        return None, {"The noisy counts of the protocol file do not fit these rows; they were not used.": None}
    return noisy, {}


def calibrate_fits(
    fits: dict[Group, Fit], margins: KnownMargins | None, rows: int | None
) -> tuple[dict[Group, Fit], dict[str, None]]:
    """Fits that know the margins, of a table of so many rows; and what is to be said about it, if anything."""
    first = next(iter(fits.values()))
    if margins is None or rows is None or first.linear is not None:
        return fits, {}
    here = sum(fit.observed.rows for fit in fits.values())
    if not first.settings.fixed:
        return fits, {"The exact shares of the protocol file are the table's: they were not used here.": None}
    if here != rows:
        return fits, {
            f"The exact shares of the protocol file are those of {rows:,} rows; here are {here:,}. They were not used: "
            "these are other rows.": None
        }
    found = calibrate_groups(margins, first.space, first.model, {g: (fit.observed, fit.p) for g, fit in fits.items()})
    if found is None:
        return fits, {"The exact shares of the protocol file do not fit these rows; they were not used.": None}
    mended = {group: fit.calibrate(found[group]) for group, fit in fits.items()}
    # How margins vary depends on the shares: again with these, which are nearer to the truth.
    found = (
        calibrate_groups(margins, first.space, first.model, {g: (fit.observed, fit.p) for g, fit in mended.items()})
        or found
    )
    mended = {group: replace(fit, calibration=found[group]) for group, fit in mended.items()}
    parts = np.array([each.part for each in found.values()])
    p = priors = np.stack([fit.p for fit in mended.values()])
    profiles = [profile for fit in fits.values() if (profile := fit.profile) is not None]
    if len(profiles) == len(fits):
        known = next(iter(found.values()))
        held = FixedMargins(known.margins.functions, known.margins.shares, known.inverse / rows)
        p, priors = fit_groups(profiles, parts, held)
    p = margins.extend_to_groups(parts).rake((parts[:, None] * p).ravel(), rows).reshape(p.shape)
    p = p / p.sum(axis=1, keepdims=True)
    mended = {group: replace(fit, p=p[i], prior=priors[i]) for i, (group, fit) in enumerate(mended.items())}
    return mended, {
        "Calibrated to the exact shares of the protocol file, which are those of the rows it was made for; if these "
        "are other rows, estimate without these shares.": None
    }


def _smooth(p: FloatArray, rows: int) -> FloatArray:
    """p with one more row of every value, so that no output that can be drawn has no chance."""
    return np.asarray((rows * p + 1) / (rows + len(p)))
