"""Design of "real or synthetic" on a published model: classes of records, replacements, and slacks that are proved.

Everything here is a function of the public model and of public seeds. Floats choose; what is returned was checked by
`decoy_slacks.py` on the integers that are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.wide.replacement_programme import Replacement, solve_replacement
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.decoy_slacks import (
    PROOF_SEED,
    ClassSums,
    DecoySlacks,
    WeightedRecords,
    acceptance_bounds,
    acceptance_rates,
    bound_slacks,
    can_list,
    list_records,
    listed_slacks,
    simulate_records,
    simulated_slacks,
)
from privacyfunnel.mechanisms.likely_records import simulate_codes
from privacyfunnel.mechanisms.real_or_synthetic import KEEP_BITS, LEVELS, RealOrSynthetic, SecretEvents, quantise_ratios
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.impossible import ImpossibleRecords
from privacyfunnel.model.published.tree_model import UNIT, TreeModel

CLASSES = 60
QUANTILE = 0.95  # of the excess within a class that the programme provides for
FEWEST_ACCEPTED = 1 / 16  # of proposals, in every class
DESIGN_RECORDS = 1 << 17  # on which floats choose
PROOF_RECORDS = 1 << 18, 1 << 20, 1 << 21  # of each sample of the simulation
SURE = 1 << 30  # records: as if all combinations were listed
WORTH_LESS_PROOF = 1.02  # times the least inflation, for a proof of fewer records
MOST_PROOFS = 5  # for each of the two `SPARE`: the failure probability of a simulation is a tenth of 1e-9
SPARE = 1.25, 2.0  # times the expected error of the proof, by which slacks are stated lower; then what is tried next
# Rooms that the programme leaves to the guard of single records: how far inside the promise synthetic records stay, and
# how many there are at least, compared with the real ones, in classes where some real ones are too telling.
ROOMS = (0.1, 0.02), (0.2, 0.02), (0.4, 0.1), (0.7, 0.2)
LEAST_POSSIBLE = 1 / 100  # of what the model draws
LEAST = 1 / 400  # probability of publishing a record itself, below which it counts as never published
NEGLIGIBLE = 1e-5  # of the probability to be accepted
MOST_ROUNDS = 40
LITTLE_LOSS = 1.05  # of the inflation, by refining
REFINING = 1.7  # the `spare` of a second simulation, by which slacks are lowered before the proof
# Of the design, the proof, refining, and records and their draws that tell information: public, never those of a draw.
SEEDS = 1, PROOF_SEED, 3, 4, 5
INFORMATION_RECORDS = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class WideDesign:
    """A mechanism whose slacks are proved, and what it keeps."""

    mechanism: RealOrSynthetic
    real_share: float  # of records x ~ p̃ that are published themselves
    inflation: float  # the mean of 1/a(x), or of 1/LEAST where a(x) is smaller: the variance of estimates goes with it
    proof_records: int  # of each sample of the proof; 0 where all combinations were listed


def design_real_or_synthetic(
    model: TreeModel,
    promise: Promise,
    *,
    classes: int = CLASSES,
    proof_records: int | None = None,
    impossible: ImpossibleRecords | None = None,
) -> WideDesign:
    """The mechanism with the least mean of 1/a(x) over records of the model, as far as classes can tell.

    A proof by simulation draws so many records for each of its two samples; by default the fewest that cost little.

    Raises
    ------
    GuaranteeError
        If its slacks could not be proved. Nothing weaker is returned.
    """
    numbers = (0,) if can_list(model) else PROOF_RECORDS if proof_records is None else (proof_records,)
    sample = DesignSample.draw(model, promise, classes, impossible)
    replacements = [*(sample.solve(*room) for room in ROOMS), sample.one_pool(), sample.replace_all()]
    for spare in SPARE:
        for refined in sample.refine_all(sample.candidates(replacements, numbers, spare)):
            if sample.prove(refined).fit(refined.mechanism):
                return replace(refined, mechanism=replace(refined.mechanism, proof_records=refined.proof_records))
    raise GuaranteeError(
        f"The slacks of synthetic records under {promise.name} were not proved by {numbers[-1]:,} simulated records. "
        "Nothing was returned. Simulate more."
    )


@dataclass(frozen=True, eq=False)
class DesignSample:
    """Records on which floats choose, and the classes that they are in."""

    blank: RealOrSynthetic  # the model, the promise and the prototypes; everything is replaced by anything
    records: WeightedRecords
    classes: IntArray
    simulated: int  # how many records were drawn; 0: all combinations

    @classmethod
    def draw(
        cls, model: TreeModel, promise: Promise, classes: int, impossible: ImpossibleRecords | None = None
    ) -> DesignSample:
        """Draw records, or list them where they are few, and classify them."""
        events = SecretEvents.from_promise(promise, model)
        simulated = 0 if can_list(model, DESIGN_RECORDS) else DESIGN_RECORDS
        parts = (
            simulate_records(model, events, KeyStream.from_seed(SEEDS[0]), 0, simulated)
            if simulated
            else list_records(model, events)
        )
        records = WeightedRecords.concatenate(parts)
        prototypes = choose_prototypes(records, classes)
        if impossible is not None:  # no record is nearer to the last of two that are alike
            prototypes = np.concatenate([prototypes, prototypes[:1]])
        k = len(prototypes)
        none = np.zeros((k, 1 + len(events.pairs)), dtype=np.int64)
        accepted = np.full((k, k), UNIT)
        accepted[:, k - (impossible is not None) :] = 0
        blank = RealOrSynthetic(model, promise, prototypes, none[:, 0], accepted, none[:, 1:], impossible=impossible)
        found = blank.classify(records.ratios, records.codes)
        if impossible is not None and records.everybody[found < k - 1].sum() < LEAST_POSSIBLE:
            raise ParameterError(
                f"Impossible combinations leave less than {LEAST_POSSIBLE:.0%} of the records that the model draws. "
                "Name fewer, or publish fewer columns."
            )
        return cls(blank, records, found, simulated)

    @property
    def shares(self) -> FloatArray:
        """The share of every class, never quite nothing."""
        return np.maximum(np.bincount(self.classes, self.records.everybody, self.blank.classes), 1e-6)

    def replace_all(self) -> Replacement:
        """Whatever a record is, a synthetic one like all others in its place: it keeps every promise."""
        k = self.blank.classes
        return Replacement(np.zeros(k), np.ones((k, k)) * self.shares)

    def one_pool(self) -> Replacement:
        """All records stay with one probability, and synthetic ones are alike for all: they say nothing about anybody,
        whatever is believed of records, so that W = (1 − a) density and only real records need room."""
        most = (self.excess / np.maximum(self.blank.events.limits - 1.0, 1e-12)).max(axis=1)
        needs = np.bincount(self.classes, most * self.records.everybody, self.blank.classes) / self.shares
        needs = np.maximum(needs, 1e-9)
        stay = 1.0 / (1.0 + float(needs @ self.shares))
        return Replacement(np.full(len(needs), stay), np.outer(self.shares, needs * self.shares))

    @cached_property
    def excess(self) -> FloatArray:
        """(r_E − ρ r_F)⁺ of every record and pair, as it may be believed."""
        events, shares = self.blank.events, self.blank.model.shares
        high, low = events.believed_ratios(events.ratios(self.records.ratios, shares), shares)
        first, second = events.pairs.T
        return np.maximum(high[:, first] - events.limits * low[:, second], 0.0)

    def candidates(self, replacements: Sequence[Replacement], numbers: Sequence[int], spare: float) -> list[WideDesign]:
        """Designs by what they keep, the best first, or in its place one that is proved by fewer records."""
        found = [(each, self.design(each, numbers[-1], spare)) for each in replacements]
        fits = [(each, design) for each, design in found if design is not None]
        fits.sort(key=lambda fit: fit[1].inflation)
        designs = [design for _, design in fits]
        for number in numbers[:-1] if fits else ():
            cheap = self.design(fits[0][0], number, spare)
            if cheap is not None and cheap.inflation <= WORTH_LESS_PROOF * designs[0].inflation:
                return [cheap, *designs][:MOST_PROOFS]
        return designs[:MOST_PROOFS]

    def design(self, replacement: Replacement, proof_records: int, spare: float) -> WideDesign | None:
        """The design that a replacement leads to, to be proved by so many records; None where none was found."""
        mechanism = self.fit_slacks(replacement, proof_records, spare)
        return None if mechanism is None else self.measure(mechanism, proof_records)

    def refine_all(self, candidates: Sequence[WideDesign]) -> Iterator[WideDesign]:
        """Candidates refined one after the other; those that lose much by it come last."""
        last = []
        for design in candidates:
            refined = self.refine(design)
            if refined is not None and refined.inflation <= LITTLE_LOSS * design.inflation:
                yield refined
            elif refined is not None:
                last.append(refined)
        yield from sorted(last, key=lambda design: design.inflation)

    def refine(self, design: WideDesign) -> WideDesign | None:
        """The design with slacks that a simulation as large as the proof, of another seed, supports; None if none."""
        if not self.simulated:
            return design
        if design.proof_records:
            stream = KeyStream.from_seed(SEEDS[2])
            found = simulated_slacks(design.mechanism, stream, design.proof_records, REFINING)
        else:
            found = listed_slacks(design.mechanism)
        low = np.minimum(found.low, design.mechanism.slacks / UNIT) * (1.0 - 1e-3)
        mechanism = self.state_slacks(design.mechanism, low)
        return None if mechanism is None else self.measure(mechanism, design.proof_records)

    def measure(self, mechanism: RealOrSynthetic, proof_records: int) -> WideDesign:
        """What a mechanism keeps, as far as this sample tells."""
        keep, everybody = mechanism.keep_numerators(self.records.ratios, self.classes), self.records.everybody
        real = float(everybody @ (keep / 2.0**KEEP_BITS) / everybody.sum())
        inflation = float(everybody @ (1.0 / np.maximum(keep / 2.0**KEEP_BITS, LEAST)) / everybody.sum())
        return WideDesign(mechanism, real, inflation, proof_records)

    def solve(self, interior: float, fewest: float) -> Replacement:
        """The replacement of classes that the programme advises."""
        events, shares, everybody = self.blank.events, self.blank.model.shares, self.records.everybody
        excess, (first, second) = self.excess, events.pairs.T
        high, low = (  # as it may be believed, with the mean of all records that every belief has
            np.stack([np.bincount(self.classes, column * everybody, self.blank.classes) for column in ratios.T], 1)
            / (self.shares[:, None] * np.maximum(everybody @ ratios, 1e-9))
            for ratios in events.believed_ratios(events.ratios(self.records.ratios, shares), shares)
        )
        low[:, ~low.any(axis=0)] = 1.0
        limits = np.zeros((self.blank.classes, len(first)))
        touched = np.zeros(self.blank.classes)
        for k in range(self.blank.classes):
            rows = np.flatnonzero(self.classes == k)
            if len(rows):
                limits[k] = np.quantile(excess[rows], QUANTILE, axis=0)
                touched[k] = fewest if excess[rows].any() else 0.0
        return solve_replacement(
            self.shares, events.limits * low[:, second] - high[:, first], limits, touched, interior
        )

    def fit_slacks(self, replacement: Replacement, proof_records: int, spare: float) -> RealOrSynthetic | None:
        """Slacks for a replacement that are below those to which they lead; None where none were found."""
        published = self.blank.acceptance.any(axis=0)
        mechanism = replace(
            self.blank,
            slacks=np.full_like(self.blank.slacks, UNIT << 20),  # no record is guarded yet
            largest=np.floor(replacement.stay * published * UNIT).astype(np.int64),
            acceptance=acceptance_integers(replacement.moved / self.shares * published, self.shares) * published,
        )
        for number in range(MOST_ROUNDS):
            found = self.estimate(mechanism, proof_records, spare)
            if number and found.fit(mechanism):
                return mechanism
            low = np.minimum(found.low, mechanism.slacks / UNIT) if number > MOST_ROUNDS // 2 else found.low
            stated = self.state_slacks(mechanism, low * (1.0 - 1e-3))
            if stated is None:
                return None
            mechanism = stated
        return None

    def state_slacks(self, mechanism: RealOrSynthetic, low: FloatArray) -> RealOrSynthetic | None:
        """The mechanism with these slacks, without synthetic records that would say too much; None if all would."""
        acceptance = mechanism.acceptance * np.all(low >= 0, axis=1)
        empty = np.asarray(~acceptance.any(axis=1))
        if empty.all():
            return None
        acceptance[empty] = acceptance_integers(acceptance[~empty].mean(axis=0)[None], self.shares)
        stated = np.floor(np.maximum(low, 0.0) * UNIT).astype(np.int64)
        stated[~acceptance.any(axis=0)] = 0
        return replace(mechanism, acceptance=acceptance, slacks=stated)

    def estimate(self, mechanism: RealOrSynthetic, proof_records: int, spare: float) -> DecoySlacks:
        """What the proof will find at least, as far as this sample tells."""
        if not self.simulated:
            return listed_slacks(mechanism, [(self.records, self.classes)])
        sums = ClassSums.zero(mechanism)
        sums.add(mechanism, self.records.ratios, self.classes, self.records.everybody)
        records = int((proof_records or SURE) / spare**2)
        rates = acceptance_bounds(mechanism, self.shares, records)
        return bound_slacks(mechanism, [(self.records, self.classes)], rates, sums, records)

    def prove(self, design: WideDesign) -> DecoySlacks:
        """Bounds that are proved, or hold but for the failure probability of a simulation."""
        if not design.proof_records:
            return listed_slacks(design.mechanism)
        return simulated_slacks(design.mechanism, KeyStream.from_seed(SEEDS[1]), design.proof_records)


def choose_prototypes(records: WeightedRecords, classes: int) -> IntArray:
    """Prototypes of classes by k-means on the features of records, weighted by how likely they are."""
    features = quantise_ratios(records.ratios)
    distinct, number = np.unique(features, axis=0, return_inverse=True)
    if len(distinct) <= classes:
        return distinct.astype(np.int64)
    weight = np.bincount(number.reshape(-1), records.everybody)
    generator = np.random.default_rng(SEEDS[0])
    centres = distinct[generator.choice(len(distinct), classes, replace=False, p=weight / weight.sum())]
    for _ in range(15):
        nearest = (2.0 * distinct @ centres.T - (centres**2).sum(axis=1)).argmax(axis=1)
        total = np.bincount(nearest, weight, classes)[:, None]
        sums = np.stack([np.bincount(nearest, weight * column, classes) for column in distinct.T], axis=1)
        centres = np.where(total > 0, np.rint(sums / np.where(total > 0, total, 1.0)), centres)
    prototypes: IntArray = np.unique(np.clip(centres, 0, LEVELS).astype(np.int64), axis=0)
    return prototypes


def acceptance_integers(density: FloatArray, shares: FloatArray) -> IntArray:
    """α over 2^32 for synthetic records of these densities in classes with these shares, up to a factor for each row.

    No class is more than `1 / FEWEST_ACCEPTED` times as dense as on average.
    """
    density = np.where(density.sum(axis=1, keepdims=True) > 0, density, 1.0)
    density = np.minimum(density, (density @ shares / FEWEST_ACCEPTED)[:, None])
    scaled = density / density.max(axis=1, keepdims=True)
    scaled[scaled < NEGLIGIBLE] = 0.0
    integers: IntArray = np.floor(scaled * UNIT).astype(np.int64)
    return integers


class WideInformation(NamedTuple):
    """Nats, under the model."""

    information: float  # I(X;Y)
    error: float  # its standard error
    entropy: float  # H(X)


def measure_information(mechanism: RealOrSynthetic, records: int = INFORMATION_RECORDS) -> WideInformation:
    """The mean of ln P(y|x)/P(y) over simulated records."""
    model = mechanism.model
    codes = simulate_codes(model, KeyStream.from_seed(SEEDS[3]), records)
    drawn = mechanism.draw(codes, KeyStream.from_seed(SEEDS[4]).rows(0, records))
    log_own, log_drawn = log_probabilities(model, codes), log_probabilities(model, drawn)
    (classes, keep), (classes_drawn, keep_drawn) = (
        (of_class, numerators / 2.0**KEEP_BITS) for of_class, numerators in map(mechanism.assess, (codes, drawn))
    )
    shares = np.bincount(classes, minlength=mechanism.classes) / records
    rates = acceptance_rates(mechanism, shares)
    replaced = np.bincount(classes, 1.0 - keep, mechanism.classes) / records @ rates  # W of everybody
    given = (1.0 - keep) * rates[classes, classes_drawn] * np.exp(log_drawn)
    given += keep * (codes == drawn).all(axis=1)
    log_ratios = np.log(np.maximum(given, 1e-300)) - log_drawn - np.log(keep_drawn + replaced[classes_drawn])
    entropy = float(-log_own.mean())
    information = min(max(float(log_ratios.mean()), 0.0), entropy)
    return WideInformation(information, float(log_ratios.std() / math.sqrt(records)), entropy)


def log_probabilities(model: TreeModel, codes: NDArray[np.integer[Any]]) -> FloatArray:
    """ln p̃(x) of records that the model allows."""
    logs = np.zeros((len(codes), len(model.shares)))
    with np.errstate(divide="ignore"):
        for j, (parent, table) in enumerate(zip(model.parents, model.tables, strict=True)):
            above = np.zeros(len(codes), dtype=np.int64) if parent is None else codes[:, parent]
            logs += np.log(table[:, above, codes[:, j]].T / UNIT)
        logs += np.log(model.shares / UNIT)
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))
