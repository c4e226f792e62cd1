r"""The mechanism "real or synthetic": a record is published as it is, or a synthetic record in its place.

The prior is a published model p̃(s, x) of any number of columns. With :math:`r_s(x) = \tilde p(x|s) / \tilde p(x)` and a
class k(x) that is a function of r(x), but for one class of what nobody can be, record x is published with probability
a(x). Otherwise synthetic records :math:`x' \sim \tilde p` are proposed until one is accepted, each with probability
:math:`\alpha_{k(x), k(x')}`. Then

.. math:: \frac{P(y \mid s)}{\tilde p(y)} = a(y)\, r_s(y) + W_{k(y)}(s), \qquad
   W_k(s) = \mathbb E\Big[(1 - a(x)) \frac{\alpha_{k(x), k}}{\bar\alpha_{k(x)}} \,\Big|\, s\Big],
   \quad \bar\alpha_j = \mathbb E\, \alpha_{j, k(x')} .

A promise compares events E and F about the secret: with :math:`r_E = P(x|E)/\tilde p(x)`, likewise for W, it asks
:math:`a r_E + W_E \le \rho\,(a r_F + W_F)` for a ρ just below e^ε. The mechanism states how far inside the
promise synthetic records alone stay, :math:`0 \le \sigma_{k,EF} \le \rho W_k(F) - W_k(E)`, and publishes x with the
largest probability that this allows, and at most a_k:

.. math:: a(x) = \min\Big(a_k,\ \min_{E,F:\ r_E > \rho r_F} \frac{\sigma_{k,EF}}{r_E(x) - \rho r_F(x)}\Big)
   \quad\text{rounded down.}

So the promise holds at every record that can ever occur, listed or not, if the stated slacks σ are not above the true
ones, which `decoy_slacks.py` proves. Records that the model rules out are always replaced.

A promise for everybody whose odds differ from the model's by a factor γ at most puts the largest r_E and the least r_F
that they may believe in the place of r_E and r_F (docs/theory.md, Theorem 80).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, WordArray, freeze
from privacyfunnel.errors import DistributionError, ParameterError, ProtocolFileError, SizeError, SolverError
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.likely_records import LikelyRecords, simulate_codes
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sampling import KeyStream, RandomWords
from privacyfunnel.model.comparisons import Comparisons, float_below
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.model.published.impossible import ImpossibleRecords
from privacyfunnel.model.published.tree_model import FIRST, UNIT, CodeArray, TreeModel

LEVELS = 1 << 12  # of the features r / (1 + r) by which records are classified
KEEP_BITS = 63  # of the probability of publishing a record itself
MOST_ROUNDS = 1 << 20  # of proposals: a design accepts one in a thousand at least
SHARES_SEED, SIMULATED = 6, 1 << 16  # of records that stand for synthetic ones where shares are told
MOST_PROOF_RECORDS = 1 << 24
PROPOSALS = 1 << 14  # that are made at a time where few records wait for one
_TABLES = ("prototypes", "largest", "acceptance", "slacks")
CHUNK = 1 << 17  # records that are drawn together
THREADS = 2  # that draw them
PRODUCT = 1 << 18  # multiplications that are made together: of more, BLAS starts threads that wait for each other
MANY = 1 << 16  # records from which on it pays to know the likely ones

# Relative: ratios of events are sums of at most c ratios of the model, each within RELATIVE_ERROR = 2^-40, and a sum,
# a product and a quotient more: c + 4 roundings of 2^-53 each, with c ≤ 2^12. A product with one of these follows.
RATIO_ERROR = 2.0**-38
ROUNDING = 2.0**-48  # relative: above three roundings
TINY = 2.0**-890  # absolute: above what ratios of more than 30 columns may differ by besides


@dataclass(frozen=True, slots=True, eq=False)
class SecretEvents:
    """The events about the secret that a promise compares, and which with which."""

    members: BoolArray  # events × secrets
    pairs: IntArray  # ordered: the first may be at most ρ times as likely as the second
    limits: FloatArray  # ρ of every pair, at most e^ε or what the promise has in its place
    odds: OddsRange | None = None  # by how much somebody's odds may differ from the model's
    whole: IntArray | None = None  # of each event that of all who share what is known, where something is

    @classmethod
    def from_promise(cls, promise: Promise, model: TreeModel) -> SecretEvents:
        """The events that a promise compares among everybody; and among those who share what is known, if it says what.

        Then secrets of the model are pairs of a secret and what is known (`TreeModel.reveal`).
        """
        shape = tuple(len(model.attributes[j].labels) for j in known_places(model, promise))
        size, names = math.prod(shape), model.secret.labels
        named = tuple(label.removesuffix(FIRST) for label in names[::size]) if size > 1 else names
        block = compare_secrets(promise, Attribute(model.secret.name, named))
        groups, pairs = block.secrets, block.pairs
        scales = np.ones((len(pairs), 2)) if block.scales is None else block.scales
        both, sides = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([scales[:, 0], scales[:, 1]])
        both, sides = both[np.isfinite(sides)], sides[np.isfinite(sides)]
        value, of_pair = np.unique(sides, return_inverse=True)
        limits = np.array([float_below(exp_below(promise.epsilon, scale)) for scale in value.tolist()])[of_pair]
        if not shape:
            return cls(groups, both, limits, promise.odds)
        if not groups.all(axis=1).any():
            groups = np.concatenate([groups, np.ones((1, groups.shape[1]), dtype=bool)])
        everybody = int(groups.all(axis=1).argmax())
        codes, members = np.array(np.unravel_index(np.arange(size), shape)), []
        for some in (part for number in range(len(shape) + 1) for part in combinations(range(len(shape)), number)):
            seen = np.unique(codes[list(some)], axis=1).T
            for values in seen:
                shared = (values == codes[list(some)].T).all(axis=1)
                members.append((groups[:, :, None] & shared).reshape(len(groups), -1))
        starts = len(groups) * np.arange(len(members))
        whole = np.repeat(starts + everybody, len(groups))
        everywhere = (both + starts[:, None, None]).reshape(-1, 2)
        return cls(np.concatenate(members), everywhere, np.tile(limits, len(members)), promise.odds, whole)

    def weights(self, shares: IntArray) -> FloatArray:
        """p̃(s | E), events × secrets: each is a quotient of two integers, rounded once."""
        held = np.where(self.members, shares, 0)
        return np.asarray(held / held.sum(axis=1, keepdims=True))

    def ratios(self, ratios: FloatArray, shares: IntArray) -> FloatArray:
        """r_E(x) = P(x | E) / p̃(x), n × events, from r_s(x); sums are made in the order of the secrets."""
        weights, n = self.weights(shares), len(ratios)
        found = np.empty((len(self.members), n)).T  # an event's numbers lie together
        for event, members in enumerate(self.members):
            inside = np.flatnonzero(members)
            if len(inside) == len(members):
                found[:, event] = 1.0  # r has the mean 1
                continue
            found[:, event] = ratios[:, inside[0]]
            if len(inside) > 1:
                found[:, event] *= weights[event, inside[0]]
                for s in inside[1:]:
                    found[:, event] += weights[event, s] * ratios[:, s]
        return found

    def believed_ratios(self, by_event: FloatArray, shares: IntArray) -> tuple[FloatArray, FloatArray]:
        """The largest and the least r_E(x) of those whom the promise covers, up to RATIO_ERROR, from that of the model.

        With odds within γ: γr/(1 + (γ − 1)pr), whose logarithm changes with that of r by a factor of at most 1; and
        r/(γ − (γ − 1)pr), for which it is at most γ, hence the last line. Of those who know something of a person
        nobody doubts that.
        """
        if self.odds is None:
            return by_event, by_event
        p = np.where(self.members, shares, 0).sum(axis=1) / UNIT
        if self.odds.factor is None:
            alike = np.ones_like(by_event) if self.whole is None else by_event[:, self.whole]
            sure = p >= 1.0 if self.whole is None else self.whole == np.arange(len(p))
            return np.where(sure, alike, (alike > 0) / p), np.where(sure, alike, 0.0)
        gamma = float(self.odds.factor)
        with np.errstate(invalid="ignore"):
            held = np.minimum(by_event * p, 1.0)
            high = np.minimum(gamma * by_event / (1.0 + (gamma - 1.0) * held), 1.0 / p)
            low = by_event / (gamma - (gamma - 1.0) * held) * max(1.0 - 2.0 * gamma * RATIO_ERROR, 0.0)
        return high, low


def compare_secrets(promise: Promise, secret: Attribute) -> Comparisons:
    """The groups of secrets that a promise compares; refused where real and synthetic records cannot keep it."""
    plain, c = promise.table_promise, len(secret.labels)
    alone = Joint(
        np.ones((c, 2), np.int64), secret.labels, (Attribute("", ("", "-")),), np.arange(2)[:, None], secret.name
    )
    several = promise.population is not None or promise.components is not None
    several |= promise.by_column and promise.odds is not None  # each would have a belief of its own
    blocks = [] if several or promise.composable else list(plain.comparisons(alone, False))
    if len(blocks) != 1 or plain.guards_known_attributes or blocks[0].mixed:
        raise ParameterError(
            "Real or synthetic records keep promises about groups of secrets under one model, such as LIP, LDP or "
            f"PML; this {promise.name} is about more. Promise one of them, or publish fewer columns by another "
            "method."
        )
    return blocks[0]


def known_places(model: TreeModel, promise: Promise) -> list[int]:
    """Where the columns stand that the promise takes for known."""
    names = [attribute.name for attribute in model.attributes]
    strange = [name for name in promise.known_columns if name not in names]
    if strange:
        raise ParameterError(f"Neighbours may know columns that are published; '{strange[0]}' is not.")
    return [names.index(name) for name in promise.known_columns]


def reveal_known(model: TreeModel, promise: Promise) -> TreeModel:
    """The model under which the promise is kept: that itself, or with what neighbours know as a part of the secret."""
    return model.reveal(known_places(model, promise)) if promise.known_columns else model


@dataclass(frozen=True, eq=False)
class RealOrSynthetic(Mechanism):
    """The integers of the mechanism; its guarantee stands on `slacks`.

    Any combination of labels is an input, a record of codes, also one that was never seen.
    """

    model: TreeModel
    promise: Promise
    prototypes: IntArray  # classes × secrets: features of the record that stands for each class, up to LEVELS
    largest: IntArray  # classes: a_k over 2^32
    acceptance: IntArray  # classes × classes: α over 2^32
    slacks: IntArray  # classes × pairs of events: σ over 2^32
    proof_records: int = 0  # of each sample of the simulation that proved the slacks; 0 where combinations were listed
    impossible: ImpossibleRecords | None = None  # that are the last class, and never published

    kind: ClassVar[str] = "real-or-synthetic"
    check_method: ClassVar[str] = "by construction for every record there can be"
    lists_inputs: ClassVar[bool] = False
    no_table_reason: ClassVar[str] = "any combination of labels is an input of this mechanism, and none is listed"
    sees_secret, inputs = False, 0

    def __post_init__(self) -> None:
        k, c = len(self.prototypes), len(self.model.shares)
        pairs = len(self.events.pairs)
        shapes = (self.prototypes, (k, c)), (self.largest, (k,)), (self.acceptance, (k, k)), (self.slacks, (k, pairs))
        if k < 1 or any(array.shape != shape for array, shape in shapes):
            raise ParameterError("Classes need a prototype, probabilities and slacks each; some are missing.")
        for array, most in ((self.prototypes, LEVELS), (self.largest, UNIT), (self.acceptance, UNIT)):
            if (array < 0).any() or (array > most).any():
                raise ParameterError("Prototypes and probabilities must be integers up to their unit; some are not.")
        if not 0 <= self.proof_records <= MOST_PROOF_RECORDS:
            raise ParameterError(
                f"A proof takes up to {MOST_PROOF_RECORDS:,} records; this one {self.proof_records:,}."
            )
        if self.impossible is not None and (self.largest[-1] or self.acceptance[:, -1].any()):
            raise ParameterError("Impossible records must not be published; the last class is. Design it again.")
        if (self.slacks < 0).any() or not self.acceptance.any(axis=1).all():
            raise ParameterError("Slacks must not be negative, and every class must accept synthetic records.")
        for name in _TABLES:
            object.__setattr__(self, name, freeze(getattr(self, name)))

    @cached_property
    def events(self) -> SecretEvents:
        """What the promise compares."""
        return SecretEvents.from_promise(self.promise, self.model)

    def describe_check(self) -> str:
        if not self.proof_records:
            return f"{self.check_method}, from all combinations of labels"
        return f"{self.check_method}, but for a chance of 1e-9 that a public simulation of the model is wrong"

    @property
    def columns(self) -> tuple[Labels, ...]:
        return tuple(attribute.labels for attribute in self.model.attributes)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.prototypes)

    # -- probabilities -----------------------------------------------------------------------------------------

    def classify(self, ratios: FloatArray, codes: NDArray[np.integer[Any]]) -> IntArray:
        """k(x): the nearest prototype by the features ⌊LEVELS · r/(1 + r)⌋, and the last class for what is impossible.

        Features and prototypes are integers below 2^13, and sums of their products below 2^53: they are the same in
        whatever order a machine adds them.
        """
        found = np.empty(len(ratios), dtype=np.int64)
        block = max(PRODUCT // self.prototypes.size, 1)
        for start in range(0, len(ratios), block):
            scores = quantise_ratios(ratios[start : start + block]) @ self._directions
            scores -= self._offsets
            scores.argmax(axis=1, out=found[start : start + block])
        if self.impossible is not None:
            found[self.impossible.match(codes)] = self.classes - 1
        return found

    @cached_property
    def _directions(self) -> FloatArray:
        return 2.0 * self.prototypes.T.astype(np.float64)

    @cached_property
    def _offsets(self) -> FloatArray:
        return np.asarray((self.prototypes**2).sum(axis=1), dtype=np.float64)

    def keep_numerators(self, ratios: FloatArray, classes: IntArray) -> WordArray:
        """a(x) over 2^63."""
        events = self.events
        high, low = events.believed_ratios(events.ratios(ratios, self.model.shares), self.model.shares)
        found = self.largest[classes] / UNIT
        below = events.limits * (1.0 - RATIO_ERROR)
        with np.errstate(invalid="ignore"):
            for pair, (e, f) in enumerate(events.pairs.tolist()):
                excess = high[:, e] * (1.0 + RATIO_ERROR) - low[:, f] * below[pair]
                if len(self.model.attributes) > 30:
                    excess += TINY * (1.0 + below[pair])
                rows = np.flatnonzero(excess > 0)
                limit = self.slacks[classes[rows], pair] / UNIT / (excess[rows] * (1.0 + ROUNDING))
                found[rows] = np.minimum(found[rows], limit)
        found[~np.isfinite(ratios[:, 0])] = 0.0
        return np.floor(np.ldexp(found, KEEP_BITS)).astype(np.uint64)

    def assess(self, codes: NDArray[np.integer[Any]]) -> tuple[IntArray, WordArray]:
        """k(x) and a(x) over 2^63 of records with these codes."""
        ratios = self.model.ratios(codes)
        classes = self.classify(ratios, codes)
        return classes, self.keep_numerators(ratios, classes)

    def find_classes(self, codes: NDArray[np.integer[Any]]) -> IntArray:
        """k(x) of records with these codes."""
        return self.classify(self.model.ratios(codes), codes)

    def keep_probabilities(self, codes: NDArray[np.integer[Any]]) -> FloatArray:
        """a(x) of records with these codes, in floats."""
        return np.asarray(self.assess(codes)[1] / 2.0**KEEP_BITS)

    def unchanged_probability(self, own: NDArray[Any], joint: Joint) -> float:
        """The mean of a(x): that a synthetic record is the same by accident is left out."""
        return float(joint.p_x @ self.keep_probabilities(joint.combos))

    def unchanged_outputs(self, labels: Sequence[Labels], combos: IntArray) -> NDArray[Any]:
        return combos

    def output_shares(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray, FloatArray], ...]:
        """For each column its labels, the share of each, and the share among published records: real ones as they are,
        synthetic ones as simulated."""
        classes, numerators = self.assess(joint.combos)
        keep = numerators / 2.0**KEEP_BITS
        replaced = np.bincount(classes, joint.p_x * (1.0 - keep), self.classes)
        proposals = simulate_codes(self.model, KeyStream.from_seed(SHARES_SEED), SIMULATED)
        of_class = self.find_classes(proposals)
        alpha, shares = self.acceptance / UNIT, np.bincount(of_class, minlength=self.classes) / SIMULATED
        weights = (replaced / np.maximum(alpha @ shares, 1e-12) @ alpha)[of_class]
        weights *= replaced.sum() / max(float(weights.sum()), 1e-300)
        found = []
        for j, labels in enumerate(self.columns):
            own = np.bincount(joint.combos[:, j], joint.p_x, len(labels)).astype(np.float64)
            shown = np.bincount(joint.combos[:, j], joint.p_x * keep, len(labels)).astype(np.float64)
            shown += np.bincount(proposals[:, j], weights, len(labels))
            found.append((np.arange(len(labels), dtype=np.int64)[:, None], own, shown))
        return tuple(found)

    # -- drawing -----------------------------------------------------------------------------------------------

    def draw(self, codes: NDArray[Any], random_words: RandomWords) -> CodeArray:
        """What records with these codes, n × columns, become: chosen by their own words and nothing else.

        Draw number 0 decides between real and synthetic; every proposal takes the same number of words after it. A
        record with a value that the model does not know (−1) becomes the first proposal, whatever it holds.
        """
        published, likely = np.array(codes, dtype=np.int32), self._likely if len(codes) >= MANY else None
        if len(codes) <= CHUNK:
            self._draw_chunk(published, random_words, likely)
            return published

        def draw_from(start: int) -> None:
            stop = min(start + CHUNK, len(codes))
            self._draw_chunk(published[start:stop], random_words.part(start, stop), likely)

        with ThreadPoolExecutor(THREADS) as threads:  # numpy and AES work without Python's lock
            list(threads.map(draw_from, range(0, len(codes), CHUNK)))
        return published

    def _draw_chunk(self, published: CodeArray, random_words: RandomWords, likely: LikelyRecords | None) -> None:
        unknown: BoolArray = np.any(published < 0, axis=1)
        published[unknown] = 0
        classes, keep = self._recall(published, likely)
        keep[unknown] = 0
        rows = np.flatnonzero((random_words.word(0) >> np.uint64(64 - KEEP_BITS)) >= keep)
        per_proposal, first = self.model.words_per_record + 1, 1
        while len(rows):
            rounds = min(max(PROPOSALS // len(rows), 1), 64)
            draws = np.arange(first, first + rounds * per_proposal)
            words = random_words.scatter_words(rows, draws).reshape(rounds, per_proposal, len(rows))
            proposals = self.model.sample(words.transpose(1, 0, 2).reshape(per_proposal, -1)[1:])
            of_class = self._recall_classes(proposals, likely)
            chance = self.acceptance[np.tile(classes[rows], rounds), of_class].astype(np.uint64)
            accepted = (words[:, 0].reshape(-1) & np.uint64(UNIT - 1)) < chance
            anything = np.tile(unknown[rows], rounds)
            if self.impossible is not None:
                anything &= of_class < self.classes - 1
            accepted = (accepted | anything).reshape(rounds, len(rows))
            some = np.flatnonzero(accepted.any(axis=0))
            published[rows[some]] = proposals[accepted.argmax(axis=0)[some] * len(rows) + some]
            rows = rows[~accepted.any(axis=0)]
            first += rounds * per_proposal
            if first > MOST_ROUNDS * per_proposal:
                raise SolverError(
                    "A synthetic record was proposed a million times and never accepted. Design it again."
                )

    def _recall(self, codes: CodeArray, likely: LikelyRecords | None) -> tuple[IntArray, WordArray]:
        """k(x) and a(x): looked up for likely records, computed for all others."""
        if likely is None:
            return self.assess(codes)
        place = likely.find(codes)
        classes, keep, rest = likely.classes[place], likely.keep[place], np.flatnonzero(place < 0)
        classes[rest], keep[rest] = self.assess(codes[rest])
        return classes, keep

    def _recall_classes(self, codes: CodeArray, likely: LikelyRecords | None) -> IntArray:
        """k(x) alone."""
        if likely is None:
            return self.find_classes(codes)
        place = likely.find(codes)
        classes, rest = likely.classes[place], np.flatnonzero(place < 0)
        classes[rest] = self.find_classes(codes[rest])
        return classes

    @cached_property
    def _likely(self) -> LikelyRecords | None:
        return LikelyRecords.simulate(self.model, self.assess)

    # -- files -------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The integers of the mechanism; the model, the promise and the labels stand elsewhere in a protocol file."""
        stated = {**{name: getattr(self, name).tolist() for name in _TABLES}, "proof_records": self.proof_records}
        return stated if self.impossible is None else {**stated, "impossible": self.impossible.patterns.tolist()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> Self:
        raise ProtocolFileError(f"a {cls.kind} mechanism is read with its model; this file states none. Make it again.")

    @classmethod
    def restore(cls, content: Mapping[str, Any], model: TreeModel, promise: Promise) -> RealOrSynthetic:
        """The mechanism that a protocol file states, on the model it states."""
        try:
            tables = {name: np.array(content[name], dtype=np.int64) for name in _TABLES}
            model = reveal_known(model, promise)
            records, impossible = int(content["proof_records"]), None
            if "impossible" in content:
                impossible = ImpossibleRecords.read(content["impossible"], model.attributes)
            return cls(model=model, promise=promise, proof_records=records, impossible=impossible, **tables)
        except (KeyError, TypeError, ValueError, OverflowError, DistributionError, ParameterError, SizeError):
            raise ProtocolFileError(
                "Real or synthetic records are stated in tables of integers, one size for all; these are not."
            ) from None


def quantise_ratios(ratios: FloatArray) -> FloatArray:
    """The features ⌊LEVELS · r/(1 + r)⌋ of records; those of r = 1 where the model rules a record out."""
    possible = np.where(np.isfinite(ratios), ratios, 1.0)
    possible /= 1.0 + possible
    possible *= LEVELS
    return np.floor(possible, out=possible)
