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

with probability 1 − δ, and likewise above. All bounds hold together with probability 1 − `FAILURE`. The seed is public,
and anybody can repeat it with a seed of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, WordArray
from privacyfunnel.errors import GuaranteeError, SizeError
from privacyfunnel.mechanisms.real_or_synthetic import KEEP_BITS, RealOrSynthetic, SecretEvents
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.published.tree_model import UNIT, TreeModel, round_to_unit

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
        yield WeightedRecords(model.ratios(codes[possible]), weights[:, :-1], weights[:, -1])


def simulate_records(
    model: TreeModel, events: SecretEvents, stream: KeyStream, first: int, records: int
) -> Iterator[WeightedRecords]:
    """Records x ~ Σ q_s p̃(x|s) by words of these rows of a stream, weighted by P(x | E) / q(x) over their number."""
    proposal = proposal_shares(model)
    for words in _word_chunks(model, stream, first, records):
        half = (words[0] & np.uint64(UNIT - 1)).astype(np.int64)
        ratios = model.ratios(model.sample_given(np.searchsorted(np.cumsum(proposal), half, side="right"), words))
        everybody = 1.0 / (ratios @ (proposal / UNIT)) / records
        yield WeightedRecords(ratios, events.ratios(ratios, model.shares) * everybody[:, None], everybody)


def proposal_shares(model: TreeModel) -> IntArray:
    """q over 2^32: the same for all secrets, so that rare ones are drawn often enough."""
    return round_to_unit(np.ones(len(model.shares)))


def listed_slacks(mechanism: RealOrSynthetic) -> DecoySlacks:
    """The slacks from all combinations of labels."""
    replaced, shares = ReplacedMass.zero(mechanism), np.zeros(mechanism.classes)
    for records in list_records(mechanism.model, mechanism.events):
        classes = mechanism.classify(records.ratios)
        replaced.add(mechanism, records, classes)
        shares += np.bincount(classes, records.everybody, mechanism.classes)
    rates = acceptance_rates(mechanism, shares)
    gained, lost = rates.T @ replaced.gained, rates.T @ replaced.lost
    return DecoySlacks(gained * (1.0 - LISTED_ERROR) - lost * (1.0 + LISTED_ERROR))


def simulated_slacks(mechanism: RealOrSynthetic, stream: KeyStream, records: int, spare: float = 1.0) -> DecoySlacks:
    """The slacks from two samples of so many records each, drawn by the words of a stream.

    With a larger `spare` errors are counted as for fewer records, so that another simulation will find no less.
    """
    model = mechanism.model
    counts = np.zeros(mechanism.classes)
    for words in _word_chunks(model, stream, 0, records):
        counts += np.bincount(mechanism.propose(words)[1], minlength=mechanism.classes)
    counted = int(records / spare**2)
    low, high = acceptance_bounds(mechanism, counts / records, counted)
    replaced = ReplacedMass.zero(mechanism)
    for part in simulate_records(model, mechanism.events, stream, records, records):
        replaced.add(mechanism, part, mechanism.classify(part.ratios))
    return DecoySlacks(replaced.bound(mechanism, low, high, records, counted))


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
        keep = mechanism.keep_numerators(records.ratios, classes)
        left = np.ldexp((np.uint64(1 << KEEP_BITS) - keep).astype(np.float64), -KEEP_BITS)  # rounded once
        rows = np.flatnonzero(left)
        rows = rows[np.argsort(classes[rows], kind="stable")]
        if not len(rows):
            return
        present, starts = np.unique(classes[rows], return_index=True)
        weights, (e, f) = records.weights[rows] * left[rows][:, None], mechanism.events.pairs.T
        gained = mechanism.events.ratio * weights[:, f] - weights[:, e]
        lost = np.maximum(-gained, 0.0)
        np.maximum(gained, 0.0, out=gained)
        for part, sums, squares in ((gained, self.gained, self.squares_gained), (lost, self.lost, self.squares_lost)):
            sums[present] += np.add.reduceat(part, starts, axis=0)
            squares[present] += np.add.reduceat(part * part, starts, axis=0)

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
                low.max(axis=0)[:, None] * mechanism.events.ratio * weights[f] + high.max(axis=0)[:, None] * weights[e]
            )
            error = bernstein_error(gained - lost, square, reach, proof, failure_term(mechanism))
            found = gained * (1.0 - WEIGHT_ERROR) - lost * (1.0 + WEIGHT_ERROR) - error
        return np.nan_to_num(found, nan=-math.inf)


def _word_chunks(model: TreeModel, stream: KeyStream, first: int, records: int) -> Iterator[WordArray]:
    for start in range(first, first + records, CHUNK):
        n = min(CHUNK, first + records - start)
        yield np.stack([stream.words(start, n, draw=draw) for draw in range(model.words_per_record)])


def event_weights(mechanism: RealOrSynthetic) -> FloatArray:
    """The largest P(x | E) / q(x) of every event: that of one of its secrets."""
    model = mechanism.model
    return np.asarray((mechanism.events.weights(model.shares) / (proposal_shares(model) / UNIT)).max(axis=1))


def failure_term(mechanism: RealOrSynthetic) -> float:
    """ln(2/δ), where all bounds of a simulation share its failure probability."""
    bounds = mechanism.classes * (2 + mechanism.slacks.shape[1])
    return math.log(2.0 * bounds / FAILURE)


def bernstein_error(
    mean: FloatArray, square: FloatArray, reach: FloatArray | float, n: int, log_term: float
) -> FloatArray:
    """The empirical Bernstein bound for means of n variables with this mean square, between 0 and `reach`."""
    variance = np.maximum(square - mean**2, 0.0) * (n / (n - 1)) + WEIGHT_ERROR * square
    return np.asarray(np.sqrt(2.0 * variance * log_term / n) + 7.0 * reach * log_term / (3.0 * (n - 1)))
