"""The estimation itself, on arrays: from what was seen to shares with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from privacyfunnel.arrays import BoolArray, FloatArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation.identification import RowSpace, bounds
from privacyfunnel.estimation.intervals import EXACT, FEW_ROWS, interval, interval_at_any_size, spread
from privacyfunnel.estimation.inversion import on_simplex, unbiased_weights
from privacyfunnel.estimation.likelihood import maximum_likelihood
from privacyfunnel.estimation.observation import ObservationModel, Observed
from privacyfunnel.estimation.profile import Guaranteed, Profile, intervals

METHODS = ("ml", "projection", "inversion")
TARGETS = ("table", "population")
UNTOLD = 0.05  # about a standard error, where none is known: a first step of a search
WHOLE = 1e-3  # of a row: what is nearer to a whole number of rows is one


@dataclass(frozen=True, slots=True)
class Settings:
    """How to estimate."""

    method: str
    level: float = 0.95
    target: str = "table"
    bootstrap: int = 0  # replicates of a parametric bootstrap; 0 for the intervals of `intervals`
    seed: int = 0  # of the bootstrap

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"A method is one of {', '.join(METHODS)}; there is none called '{self.method}'.")
        if self.target not in TARGETS:
            raise ParameterError(f"A target is one of {', '.join(TARGETS)}; there is none called '{self.target}'.")
        if not 0.5 <= self.level < 1:
            raise ParameterError(f"The level must be at least 0.5 and below 1; it is {self.level}.")
        if self.bootstrap and self.bootstrap < 100:
            raise ParameterError(f"A bootstrap needs at least 100 replicates; asked were {self.bootstrap}.")

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


def fitted(model: ObservationModel, space: RowSpace, observed: Observed, method: str) -> FloatArray:
    """A distribution that explains what was seen: the most likely one, or the one nearest to the unbiased estimate.

    Where the protocol hides directions there is no nearest one, and the most likely serves; where nothing but sums of
    bits was read either, all distributions do.
    """
    a = model.inputs
    if len(observed.counts) and (method == "ml" or not space.complete):
        return maximum_likelihood(model.likelihood(observed), observed.counts).p
    p = np.full(a, 1 / a)
    if space.complete:
        for _ in range(2):  # first with weights that are good anywhere, then with those that are best here
            weights = unbiased_weights(model, space, np.eye(a), _smoothed(p, observed.rows))
            p = on_simplex(observed.statistics @ weights)
    return p


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What was seen, explained: the basis of every estimate from one table or group."""

    model: ObservationModel
    space: RowSpace
    observed: Observed
    settings: Settings
    p: FloatArray

    @classmethod
    def of(cls, model: ObservationModel, space: RowSpace, observed: Observed, settings: Settings) -> Fit:
        return cls(model, space, observed, settings, fitted(model, space, observed, settings.method))

    def shares(self, functions: FloatArray, identified: BoolArray) -> Shares:
        """Estimates of each of `functions` (a × r) of the original distribution, bounds where it is not identified."""
        r = functions.shape[1]
        share, error, lower, upper = np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r)
        fits = True
        told, untold = np.flatnonzero(identified), np.flatnonzero(~identified)
        if len(told):
            share[told], error[told], lower[told], upper[told] = self._identified(functions[:, told])
        if len(untold):
            found = bounds(self.model, self.observed, functions[:, untold], self.settings.level)
            lower[untold], upper[untold], fits = found.lower, found.upper, found.fits
            profiled = self._profiled(functions[:, untold], np.full(len(untold), UNTOLD)) if fits else None
            if profiled is not None:
                lower[untold], upper[untold] = profiled
        lower, upper = self._guaranteed(functions, lower, upper)
        if self.settings.method != "inversion":
            share = np.where(identified, np.clip(share, lower, upper), share)
        return Shares(share, error, lower, upper, fits)

    def _identified(self, functions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        model, rows, settings = self.model, self.observed.rows, self.settings
        g = unbiased_weights(model, self.space, functions, _smoothed(self.p, rows))
        unbiased = self.observed.statistics @ g
        around = spread(model, g, self.p, rows, fixed=settings.fixed)
        exact = around.variance <= EXACT**2  # certain outputs: counted, not estimated
        share = unbiased if settings.method == "inversion" else np.where(exact, unbiased, self.p @ functions)
        if settings.bootstrap:
            lower, upper = self._percentiles(functions)
        else:
            found = self._profiled(functions, np.sqrt(around.variance))
            lower, upper = interval(unbiased, around, settings.level) if found is None else found
        if rows < FEW_ROWS:
            widest = interval_at_any_size(model, g, unbiased, rows, settings.level)
            lower, upper = np.minimum(lower, widest[0]), np.maximum(upper, widest[1])
        if settings.fixed:  # a table holds whole rows
            lower, upper = np.floor(rows * lower + WHOLE) / rows, np.ceil(rows * upper - WHOLE) / rows
        inside = np.clip(share, 0.0, 1.0)
        return share, np.sqrt(around.variance), np.minimum(lower, inside), np.maximum(upper, inside)

    def _profiled(self, functions: FloatArray, guesses: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Intervals that use all that is known; None where only sums were read, or where they would take long."""
        if self.settings.method != "ml" or not len(self.observed.counts):
            return None
        profile = Profile(self.model.likelihood(self.observed), self.observed.counts, self.p)
        z = float(ndtri((1 + self.settings.level) / 2))
        return intervals(profile, functions, guesses, z, fixed=self.settings.fixed)

    def _guaranteed(self, functions: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The part of each interval that what was published allows; for a table that is certain."""
        if not self.settings.fixed or not len(self.observed.counts):
            return lower, upper
        certain = Guaranteed.of(self.model.likelihood(self.observed), self.observed.counts, functions)
        return np.clip(lower, certain.lower, certain.upper), np.clip(upper, certain.lower, certain.upper)

    def _percentiles(self, functions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of the estimates from tables that were drawn again, from the fitted distribution: a parametric bootstrap.

        Sets are drawn again as the sums of their bits, and estimated from those.
        """
        settings = self.settings
        rng = np.random.default_rng(settings.seed)
        again = np.empty((settings.bootstrap, functions.shape[1]))
        for i in range(settings.bootstrap):
            drawn = self.model.simulate(self.p, self.observed.rows, rng, fixed=settings.fixed)
            again[i] = fitted(self.model, self.space, drawn, settings.method) @ functions
        tail = (1 - settings.level) / 2
        lower, upper = np.quantile(again, [tail, 1 - tail], axis=0)
        return lower, upper


def _smoothed(p: FloatArray, rows: int) -> FloatArray:
    """p with one more row of every value, so that no output that can be drawn has no chance."""
    return np.asarray((rows * p + 1) / (rows + len(p)))
