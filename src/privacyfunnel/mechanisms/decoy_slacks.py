r"""How far synthetic records alone stay inside a promise: proved bounds, on which "real or synthetic" stands.

For classes j, k and events E, F about the secret,

.. math:: \rho W_k(F) - W_k(E) = \sum_j \frac{\alpha_{jk}}{\bar\alpha_j} D_j, \qquad
   D_j = \sum_x (1 - a(x))\, 1_{k(x) = j}\, (\rho P(x|F) - P(x|E)), \quad
   \bar\alpha_j = \sum_k \alpha_{jk}\, P(k(x') = k) .

*Listed.* Where all combinations of labels can be listed, the positive and the negative terms of D_j and ᾱ_j are sums of
positive floats, whose relative errors are known.

*Simulated.* Otherwise a first sample x′ ~ p̃ bounds every ᾱ_j. A second one, x ~ Σ p̃(x|s)/c so that
rare secrets occur, bounds the expectations of
:math:`(1 - a(x)) (\beta_{k(x),k} z^+ - \beta'_{k(x),k} z^-)`, where z = (ρP(x|F) − P(x|E))/q(x), and β, β′ are the
smallest and largest α/ᾱ that the first sample leaves. Both by the empirical Bernstein inequality (Maurer and Pontil
2009, Theorem 4): for n independent variables in an interval of length b with sample variance V

.. math:: \text{expectation} \ge \text{mean} - \sqrt{2 V \ln(2/\delta) / n} - 7 b \ln(2/\delta) / (3 (n - 1))

with probability 1 − δ, and likewise above.

*Odds near the model's.* W_k(E) is then what those may believe whom the promise covers: with g_k(x) = (1 − a(x)) α/ᾱ and
their largest and least ratios R_E and r_E, for any number λ,

.. math:: W_k(E) \le \lambda + \sum_x \tilde p(x) \big( (g_k(x) - \lambda)^+ R_E(x) - (\lambda - g_k(x))^+ r_E(x) \big),

since their P(x|E) sums to 1 over x; likewise from below. λ is the mean of g_k in the first sample.

All bounds hold together with probability 1 − `FAILURE`. The seed is public, and anybody can repeat it with a seed of
their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, WordArray
from privacyfunnel.errors import GuaranteeError, SizeError
from privacyfunnel.mechanisms.real_or_synthetic import KEEP_BITS, RealOrSynthetic, SecretEvents
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.published.tree_model import UNIT, CodeArray, TreeModel, round_to_unit

FAILURE = 1e-10  # of a simulation: the probability that any of its bounds is wrong; a design makes ten at most
PROOF_SEED = 2  # of the simulation that proves slacks: public, and never that of a draw
MOST_LISTED = 1 << 21  # combinations of labels
FEWEST_RECORDS = 1 << 10  # of a simulation
CHUNK = 1 << 14  # records that are worked on together
LISTED_ERROR = 2.0**-27  # relative: above that of sums of 2^21 products of floats, and of what follows
WEIGHT_ERROR = 2.0**-30  # relative: above that of quotients of ratios, sums of 2^31 of them, and of what follows


@dataclass(frozen=True, slots=True, eq=False)
class DecoySlacks:
    """Lower bounds of ρ W_k(F) − W_k(E), classes × pairs of events."""

    low: FloatArray

    def fit(self, mechanism: RealOrSynthetic) -> bool:
        """Whether the mechanism states no more."""
        return bool((mechanism.slacks / UNIT <= self.low).all())


def check_slacks(mechanism: RealOrSynthetic, stream: KeyStream, records: int) -> None:
    """Prove the slacks that a mechanism states, by listing or else by simulating so many records, or refuse it."""
    listed = can_list(mechanism.model)
    found = None
    if listed or records >= FEWEST_RECORDS:
        found = listed_slacks(mechanism) if listed else simulated_slacks(mechanism, stream, records)
    if found is None or not found.fit(mechanism):
        raise GuaranteeError(
            f"{mechanism.promise.name} stands on the stated slacks of synthetic records; they are not proved. No row "
            "was sanitised. Simulate more records, or design it again."
        )


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRecords:
    """Records whose weighted sums are expectations: given each event, and for everybody."""

    ratios: FloatArray  # n × secrets
    weights: FloatArray  # n × events
    everybody: FloatArray  # n
    codes: NDArray[np.integer[Any]]  # n × columns

    @classmethod
    def concatenate(cls, parts: Iterable[WeightedRecords]) -> WeightedRecords:
        """All of them together."""
        some = list(parts)
        return cls(*(np.concatenate([getattr(part, name) for part in some]) for name in cls.__slots__))


def can_list(model: TreeModel, most: int = MOST_LISTED) -> bool:
    """Whether all combinations of labels are few enough to be listed."""
    return math.prod(len(attribute.labels) for attribute in model.attributes) <= most


def list_records(model: TreeModel, events: SecretEvents) -> Iterator[WeightedRecords]:
    """All records that the model allows, in chunks, weighted by P(x | E) and p̃(x)."""
    if not can_list(model):
        raise SizeError(f"At most {MOST_LISTED:,} combinations of labels are listed; there are more. Simulate them.")
    shape = tuple(len(attribute.labels) for attribute in model.attributes)
    given = np.concatenate([events.weights(model.shares), (model.shares / UNIT)[None]])
    for start in range(0, math.prod(shape), CHUNK):
        codes = np.stack(np.unravel_index(np.arange(start, min(start + CHUNK, math.prod(shape))), shape), axis=1)
        likelihoods = np.ones((len(codes), len(model.shares)))
        for j, (parent, table) in enumerate(zip(model.parents, model.tables, strict=True)):
            above = np.zeros(len(codes), dtype=np.int64) if parent is None else codes[:, parent]
            likelihoods *= (table[:, above, codes[:, j]] / UNIT).T
        possible = likelihoods.any(axis=1)
        weights = likelihoods[possible] @ given.T
        yield WeightedRecords(model.ratios(codes[possible]), weights[:, :-1], weights[:, -1], codes[possible])


def simulate_records(
    model: TreeModel, events: SecretEvents, stream: KeyStream, first: int, records: int
) -> Iterator[WeightedRecords]:
    """Records x ~ Σ q_s p̃(x|s) by words of these rows of a stream, weighted by P(x | E) / q(x) over their number."""
    proposal = proposal_shares(model)
    for words in _word_chunks(model, stream, first, records):
        half = (words[0] & np.uint64(UNIT - 1)).astype(np.int64)
        codes = model.sample_given(np.searchsorted(np.cumsum(proposal), half, side="right"), words)
        ratios = model.ratios(codes)
        everybody = 1.0 / (ratios @ (proposal / UNIT)) / records
        yield WeightedRecords(ratios, events.ratios(ratios, model.shares) * everybody[:, None], everybody, codes)


def proposal_shares(model: TreeModel) -> IntArray:
    """q over 2^32: the same for all secrets, so that rare ones are drawn often enough."""
    return round_to_unit(np.ones(len(model.shares)))


def listed_slacks(
    mechanism: RealOrSynthetic, known: Sequence[tuple[WeightedRecords, IntArray]] | None = None
) -> DecoySlacks:
    """The slacks from all combinations of labels, which may be `known` with their classes."""
    plain, replaced, sums = mechanism.events.odds is None, ReplacedMass.zero(mechanism), ClassSums.zero(mechanism)
    for records, classes in known or _list_classes(mechanism):
        sums.add(mechanism, records.ratios, classes, records.everybody)
        if plain:
            replaced.add(mechanism, records, classes)
    rates = acceptance_rates(mechanism, sums.shares)
    if plain:
        gained, lost = rates.T @ replaced.gained, rates.T @ replaced.lost
        return DecoySlacks(gained * (1.0 - LISTED_ERROR) - lost * (1.0 + LISTED_ERROR))
    believed = BelievedMass.start(mechanism, rates, rates, sums.replaced)
    for records, classes in known or _list_classes(mechanism):
        believed.add(mechanism, records, classes)
    return DecoySlacks(believed.bound(mechanism, 0, 0))


def _list_classes(mechanism: RealOrSynthetic) -> Iterator[tuple[WeightedRecords, IntArray]]:
    for records in list_records(mechanism.model, mechanism.events):
        yield records, mechanism.classify(records.ratios, records.codes)


def simulated_slacks(mechanism: RealOrSynthetic, stream: KeyStream, records: int, spare: float = 1.0) -> DecoySlacks:
    """The slacks from two samples of so many records each, drawn by the words of a stream.

    With a larger `spare` errors are counted as for fewer records, so that another simulation will find no less.
    """
    model, sums = mechanism.model, ClassSums.zero(mechanism)
    for codes in simulate_chunks(model, stream, records):
        ratios = model.ratios(codes)
        sums.add(mechanism, ratios, mechanism.classify(ratios, codes), np.full(len(ratios), 1.0 / records))
    counted = int(records / spare**2)
    bounds = acceptance_bounds(mechanism, sums.shares, counted)
    drawn = simulate_records(model, mechanism.events, stream, records, records)
    classified = ((part, mechanism.classify(part.ratios, part.codes)) for part in drawn)
    return bound_slacks(mechanism, classified, bounds, sums, counted)


def bound_slacks(
    mechanism: RealOrSynthetic,
    drawn: Iterable[tuple[WeightedRecords, IntArray]],
    rates: tuple[FloatArray, FloatArray],
    sums: ClassSums,
    proof: int,
) -> DecoySlacks:
    """The slacks from records and their classes, with errors as of `proof` records, for rates α/ᾱ between these two."""
    plain = mechanism.events.odds is None
    mass = ReplacedMass.zero(mechanism) if plain else BelievedMass.start(mechanism, *rates, sums.replaced)
    number = 0
    for records, classes in drawn:
        mass.add(mechanism, records, classes)
        number += len(classes)
    if isinstance(mass, BelievedMass):
        return DecoySlacks(mass.bound(mechanism, number, proof))
    return DecoySlacks(mass.bound(mechanism, *rates, number, proof))


@dataclass(frozen=True, slots=True, eq=False)
class ClassSums:
    """By class the share of records x ~ p̃, and of those that are replaced."""

    shares: FloatArray
    replaced: FloatArray

    @classmethod
    def zero(cls, mechanism: RealOrSynthetic) -> ClassSums:
        """None yet."""
        return cls(np.zeros(mechanism.classes), np.zeros(mechanism.classes))

    def add(self, mechanism: RealOrSynthetic, ratios: FloatArray, classes: IntArray, weights: FloatArray) -> None:
        """Add records of these weights; what is replaced is looked at only where somebody's odds may differ."""
        self.shares[:] += np.bincount(classes, weights, mechanism.classes)
        if mechanism.events.odds is not None:
            self.replaced[:] += np.bincount(classes, weights * left_out(mechanism, ratios, classes), mechanism.classes)


def left_out(mechanism: RealOrSynthetic, ratios: FloatArray, classes: IntArray) -> FloatArray:
    """1 − a(x), rounded once."""
    keep = mechanism.keep_numerators(ratios, classes)
    return np.asarray(np.ldexp((np.uint64(1 << KEEP_BITS) - keep).astype(np.float64), -KEEP_BITS))


def acceptance_bounds(mechanism: RealOrSynthetic, shares: FloatArray, records: int) -> tuple[FloatArray, FloatArray]:
    """Between what α_jk / ᾱ_j lies, where classes have these shares of so many records x′ ~ p̃."""
    alpha = mechanism.acceptance / UNIT
    means = alpha @ shares
    error = bernstein_error(means, alpha**2 @ shares, alpha.max(axis=1), records, failure_term(mechanism))
    low = alpha / (means * (1.0 + WEIGHT_ERROR) + error)[:, None]
    least = (means * (1.0 - WEIGHT_ERROR) - error)[:, None]
    high = np.divide(alpha, least, out=np.full_like(alpha, math.inf), where=least > 0)
    high[alpha == 0] = 0.0
    return low, high


def acceptance_rates(mechanism: RealOrSynthetic, shares: FloatArray) -> FloatArray:
    """α_jk / ᾱ_j for classes with these shares; 0 where nothing is accepted."""
    alpha = mechanism.acceptance / UNIT
    means = (alpha @ shares)[:, None]
    return np.divide(alpha, means, out=np.zeros_like(alpha), where=means > 0)


@dataclass(frozen=True, slots=True, eq=False)
class ReplacedMass:
    """Sums of (1 − a(x)) (ρ P(x|F) − P(x|E))⁺ and ⁻ over records, and of their squares, by class and pair of events."""

    gained: FloatArray
    lost: FloatArray
    squares_gained: FloatArray
    squares_lost: FloatArray

    @classmethod
    def zero(cls, mechanism: RealOrSynthetic) -> ReplacedMass:
        """None yet."""
        return cls(*(np.zeros(mechanism.slacks.shape) for _ in range(4)))

    def add(self, mechanism: RealOrSynthetic, records: WeightedRecords, classes: IntArray) -> None:
        """Add these records."""
        left = left_out(mechanism, records.ratios, classes)
        rows = np.flatnonzero(left)
        rows = rows[np.argsort(classes[rows], kind="stable")]
        if not len(rows):
            return
        present, starts = np.unique(classes[rows], return_index=True)
        weights, (e, f) = records.weights.T[:, rows] * left[rows], mechanism.events.pairs.T
        gained = mechanism.events.limits[:, None] * weights[f]
        gained -= weights[e]
        lost = np.maximum(-gained, 0.0)
        np.maximum(gained, 0.0, out=gained)
        for part, sums, squares in ((gained, self.gained, self.squares_gained), (lost, self.lost, self.squares_lost)):
            sums[present] += np.add.reduceat(part, starts, axis=1).T
            squares[present] += np.add.reduceat(np.square(part, out=part), starts, axis=1).T

    def bound(
        self, mechanism: RealOrSynthetic, low: FloatArray, high: FloatArray, drawn: int, proof: int
    ) -> FloatArray:
        """Lower bounds of the slacks, where rates α/ᾱ lie between `low` and `high`: a sample of `drawn` records says
        what one of `proof` records will find."""
        with np.errstate(invalid="ignore"):
            gained, lost = low.T @ self.gained, high.T @ self.lost
            square = ((low**2).T @ self.squares_gained + (high**2).T @ self.squares_lost) * drawn
            weights, (e, f) = event_weights(mechanism), mechanism.events.pairs.T
            reach = (
                low.max(axis=0)[:, None] * mechanism.events.limits * weights[f] + high.max(axis=0)[:, None] * weights[e]
            )
            error = bernstein_error(gained - lost, square, reach, proof, failure_term(mechanism))
            found = gained * (1.0 - WEIGHT_ERROR) - lost * (1.0 + WEIGHT_ERROR) - error
        return np.nan_to_num(found, nan=-math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class BelievedMass:
    """Sums over records for W_k(E), classes × events, as large and as small as those believe whom a promise covers."""

    rates: tuple[FloatArray, FloatArray]  # the least and the largest α/ᾱ
    level: FloatArray  # λ, of every class
    sums: tuple[FloatArray, ...]  # for the largest W: what adds to it, what is taken off, squares; then for the least

    @classmethod
    def start(cls, mechanism: RealOrSynthetic, low: FloatArray, high: FloatArray, replaced: FloatArray) -> BelievedMass:
        """None yet, for these rates and replaced shares of classes."""
        shape = mechanism.classes, len(mechanism.events.members)
        return cls((low, high), replaced @ low, tuple(np.zeros(shape) for _ in range(6)))

    def add(self, mechanism: RealOrSynthetic, records: WeightedRecords, classes: IntArray) -> None:
        """Add these records."""
        events, shares = mechanism.events, mechanism.model.shares
        left = left_out(mechanism, records.ratios, classes)[:, None]
        believed = events.believed_ratios(events.ratios(records.ratios, shares), shares)
        most, least = (ratios * records.everybody[:, None] for ratios in believed)
        for sums, rates, up, down in ((self.sums[:3], 1, most, least), (self.sums[3:], 0, least, most)):
            above = left * self.rates[rates][classes] - self.level
            below = np.maximum(-above, 0.0)
            np.maximum(above, 0.0, out=above)
            sums[0][:] += above.T @ up
            sums[1][:] += below.T @ down
            sums[2][:] += (above**2).T @ up**2 + (below**2).T @ down**2

    def bound(self, mechanism: RealOrSynthetic, drawn: int, proof: int) -> FloatArray:
        """Lower bounds of the slacks, as by `ReplacedMass`; drawn = 0: all combinations were listed."""
        events, level = mechanism.events, self.level[:, None]
        own = event_weights(mechanism)  # the largest P(x | E) / q(x) under the model, and as believed
        shares = np.where(events.members, mechanism.model.shares, 0).sum(axis=1) / UNIT
        believed = everybody_weight(mechanism) / shares
        found = []
        for place, sign in ((0, 1.0), (3, -1.0)):
            more, less, squares = self.sums[place : place + 3]
            relative = sign * (WEIGHT_ERROR if drawn else LISTED_ERROR)
            total = level + more * (1.0 + relative) - less * (1.0 - relative)
            if drawn:
                largest = self.rates[1].max(axis=0)[:, None]
                reach = (largest + level) * np.maximum(believed, own)
                error = bernstein_error(more - less, squares * drawn, reach, proof, failure_term(mechanism))
                total = total + sign * error
            found.append(total)
        e, f = events.pairs.T
        low = np.maximum(found[1], 0.0)[:, f] * (events.limits * (1.0 - WEIGHT_ERROR)) - found[0][:, e]
        return np.nan_to_num(low - np.abs(found[0][:, e]) * WEIGHT_ERROR, nan=-math.inf)


def simulate_chunks(model: TreeModel, stream: KeyStream, records: int) -> Iterator[CodeArray]:
    """So many records x ~ p̃, in chunks."""
    return (model.sample(words) for words in _word_chunks(model, stream, 0, records))


def _word_chunks(model: TreeModel, stream: KeyStream, first: int, records: int) -> Iterator[WordArray]:
    for start in range(first, first + records, CHUNK):
        n = min(CHUNK, first + records - start)
        yield np.stack([stream.words(start, n, draw=draw) for draw in range(model.words_per_record)])


def event_weights(mechanism: RealOrSynthetic) -> FloatArray:
    """The largest P(x | E) / q(x) of every event: that of one of its secrets."""
    model = mechanism.model
    return np.asarray((mechanism.events.weights(model.shares) / (proposal_shares(model) / UNIT)).max(axis=1))


def everybody_weight(mechanism: RealOrSynthetic) -> float:
    """The largest p̃(x) / q(x)."""
    return float((mechanism.model.shares / proposal_shares(mechanism.model)).max())


def failure_term(mechanism: RealOrSynthetic) -> float:
    """ln(2/δ), where all bounds of a simulation share its failure probability."""
    events = mechanism.events
    bounds = mechanism.classes * (2 + (len(events.pairs) if events.odds is None else 2 * len(events.members)))
    return math.log(2.0 * bounds / FAILURE)


def bernstein_error(
    mean: FloatArray, square: FloatArray, reach: FloatArray | float, n: int, log_term: float
) -> FloatArray:
    """The empirical Bernstein bound for means of n variables with this mean square, between 0 and `reach`."""
    variance = np.maximum(square - mean**2, 0.0) * (n / (n - 1)) + WEIGHT_ERROR * square
    return np.asarray(np.sqrt(2.0 * variance * log_term / n) + 7.0 * reach * log_term / (3.0 * (n - 1)))
