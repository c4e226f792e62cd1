r"""What counts with noise say of the people: the sets of a private design.

Every bound below fails with a fixed chance, or with one that depends on the R alone, given which (and given the n_s)
the cells of one secret are still multinomial with independent noise; events of several secrets are multinomial given
their own number of rows only, so their parts of β are fixed beforehand: the same for the rest of every secret, and for
a group of g rare secrets the part of all groups over (c − 1) C(c, g), for any group might have been the rare one.

Bounds of a share from a count with noise: Clopper and Pearson's, through the noise.

The count seen is Bin(n, p) + Z, Z a sum of discrete Laplace draws. The upper bound at level α is a U with

.. math:: \Pr[\mathrm{Bin}(n, U) + Z \le \text{seen}] \le \alpha,

so that p > U happens with probability at most α whatever p is; the lower bound is its mirror, for Z is symmetric. With
b the binomial chances and B the reach of the noise,

.. math:: \Pr[\mathrm{Bin} + Z \le k] \le \Pr[\mathrm{Bin} < k - B] + \sum_{|j - k| \le B} b(j) \Pr[Z \le k - j]
   + \Pr[Z < -B],

and Arb (python-flint) encloses the right side. Floats give the guess, a billionth is given away, and what is returned
has been proved. If n is only known to lie between two numbers, the bound is taken at the worse end: fewer trials make
the tail larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.errors import DistributionError, ParameterError
from privacyfunnel.model.comparisons import GroupPairs
from privacyfunnel.model.credal.clopper_pearson import SCALE, binomial_tail, is_at_most
from privacyfunnel.model.credal.clopper_pearson import exact_upper_bound as upper_without_noise
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.credal.events import FINEST, Events, empty_credal_sets, round_level, tighten_box, unite_groups
from privacyfunnel.model.credal.sample_rule import RARE, small_sample_error
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.published.noise import NoiseSum, noise_sum, noise_variance
from privacyfunnel.model.published.noisy_counts import NoisyCounts

FLOAT_MARGIN = 1e-9  # relative to the share: what floats may be wrong by without a second look


@dataclass(frozen=True, eq=False)
class NoisyClopperPearson:
    """Bounds at one level through one kind of noise, as numerators over 2⁴⁰."""

    noise: NoiseSum
    level: Fraction

    def lower(self, seen: int, trials: int) -> int:
        """A multiple L with Pr[Bin(trials, L) + Z ≥ seen] ≤ level; take the largest that `trials` may be."""
        return SCALE - self.upper(trials - seen, trials)

    def upper(self, seen: int, trials: int) -> int:
        """A multiple U with Pr[Bin(trials, U) + Z ≤ seen] ≤ level; take the smallest that `trials` may be."""
        seen = max(seen, 0)  # a larger count has a larger bound, and no count is negative
        if seen >= trials:
            return SCALE
        if self.noise.terms == 0:
            return upper_without_noise(seen, trials, self.level)
        guess = self._guess(seen, trials)
        spare = max(guess * FLOAT_MARGIN, 1.0)
        while (m := int(guess + spare) + 1) < SCALE:
            if is_at_most(partial(self._tail_bound, seen, trials, m), self.level):
                return m
            spare *= 4
        return SCALE

    def _guess(self, k: int, n: int) -> float:
        """Where the tail is the level, in floats, as a numerator over 2⁴⁰."""
        from scipy import optimize, special

        reach = self.noise.reach
        j = np.arange(max(0, k - reach), min(n, k + reach) + 1, dtype=np.float64)
        ways = special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(n - j + 1)
        noise = self._log_cdf[(k + reach - j).astype(np.int64)]
        wanted = np.log(float(self.level))

        def log_excess(p: float) -> float:
            inside = special.logsumexp(ways + special.xlogy(j, p) + special.xlog1py(n - j, -p) + noise)
            far = special.bdtr(k - reach - 1, n, p) if k > reach else 0.0
            return float(np.logaddexp(inside, np.log(far) if far > 0 else -np.inf) - wanted)

        low, high = 0.0, 1.0 - 1e-15
        if log_excess(high) > 0:
            return float(SCALE)
        return float(optimize.brentq(log_excess, low, high, xtol=1e-13, rtol=1e-11)) * SCALE

    @cached_property
    def _log_cdf(self) -> FloatArray:
        return np.asarray(np.log(np.array([float(chance) for chance in self.noise.cdf_bounds])))

    def _tail_bound(self, k: int, n: int, m: int) -> Any:
        """An interval that holds a number not below the tail at m."""
        from flint import arb, fmpq

        noise, p, q = self.noise, arb(fmpq(m, SCALE)), arb(fmpq(SCALE - m, SCALE))
        first, last = max(0, k - noise.reach), min(n, k + noise.reach)
        ways = arb(n + 1).lgamma() - arb(first + 1).lgamma() - arb(n - first + 1).lgamma()
        chance, odds = (ways + first * p.log() + (n - first) * q.log()).exp(), p / q
        total = arb(str(noise.remainder))
        if first > 0:
            total += binomial_tail(n - first + 1, n, SCALE - m)  # at most first − 1 have it: so many have not
        place = noise.reach + k
        for j in range(first, last + 1):
            total += chance * arb(str(noise.cdf_bounds[place - j]))
            chance = chance * (n - j) * odds / (j + 1)
        return total


# Of β: for the numbers of rows behind the noise, for shares, for the rest of each secret, for groups of rare ones and
# their rests; what is left is for the secrets' own boxes.
TOTALS, SHARES, RESTS, GROUPS = Fraction(6, 100), Fraction(2, 100), Fraction(30, 100), Fraction(12, 100)
LIFTED = 4  # standard deviations by which noise may have made a secret of too few rows look common
MOST_TERMS = 64  # of noise that are added up to know a number of rows: with more, a noisy total is nearer


@dataclass(frozen=True, eq=False)
class NoisySampleRule:
    """Sets for the people that a table's rows are an independent sample of, from its counts with noise."""

    counts: NoisyCounts
    confidence: Fraction
    rare: int = RARE
    name: ClassVar[str] = "Clopper-Pearson boxes through discrete Laplace noise"

    @property
    def table(self) -> IntArray:
        """The counts that stand for the table, which is not known."""
        return self.counts.weights

    @property
    def design_epsilon(self) -> Fraction:
        """What the design itself may tell of a person, beside what the protocol tells."""
        return self.counts.epsilon

    @property
    def anything_else(self) -> bool:
        """All values are in the public domain."""
        return False

    def cover_anything_else(self, covers: bool = True) -> NoisySampleRule:
        """The same rule: all values are in the public domain."""
        return self

    def to_json(self) -> dict[str, Any]:
        """What a file says beside confidence and rarity: the noisy counts, from which everybody can make the sets."""
        return {"design": self.counts.to_json()}

    @classmethod
    def from_json(cls, confidence: Fraction, rare: int, content: Mapping[str, Any]) -> NoisySampleRule:
        """The rule that a file states."""
        return cls(NoisyCounts.from_json(content["design"], int(content["rows"])), confidence, rare)

    def pool_below(self, rare: int) -> NoisySampleRule:
        """The same rule, with those secrets in the pool that have fewer rows than this; 0 for none."""
        return replace(self, rare=rare)

    def pool_behind_noise(self, joint: Joint) -> NoisySampleRule:
        """The same rule, with those secrets in the pool that noise may have lifted above its limit.

        Unless all but one would be; which secrets are looked at may depend on the noisy totals (Theorem 50).
        """
        more = self.pool_below(self.rare + math.ceil(LIFTED * math.sqrt(noise_variance(self.counts.total_rate))))
        try:
            more.groups(joint)
        except ParameterError:
            return self
        return more

    def groups(self, joint: Joint) -> BoolArray:
        """Which secrets are promised together, groups × secrets, by their noisy numbers of rows."""
        totals = np.maximum(self.counts.totals, 0)
        if len(totals) == 2 and self.counts.cells.size <= MOST_TERMS:  # nothing is chosen but whether there are enough
            first, second = self.counts.cells.sum(axis=1).tolist()
            totals = np.maximum([(first + self.counts.rows - second) // 2, (second + self.counts.rows - first) // 2], 0)
        order = np.argsort(totals, kind="stable")
        c, together = len(totals), int((totals < self.rare).sum())
        while 0 < together < c and totals[order[:together]].sum() < self.rare:
            together += 1
        if c > 1 and together >= c:
            raise small_sample_error(totals, self.counts.rows, self.rare)
        alone = np.eye(c, dtype=bool)
        first = alone[order[:together]].any(axis=0, keepdims=True)
        return np.concatenate([first, alone[np.sort(order[together:])]]) if together > 1 else alone

    def events(self, questions: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool) -> list[Events]:
        """The events of everything that is asked of so many groups of secrets, question by question."""
        if joint.weights.shape != self.counts.cells.shape:
            raise DistributionError(
                f"The promise of a private design is about all {self.counts.cells.shape[1]} values and "
                f"{len(self.counts.cells)} secrets of its domain; this table has {joint.a} and {joint.c}."
            )
        groups = self.groups(joint)
        each = (replace(one, groups=unite_groups(one.groups, groups)) for one in questions(len(groups)))
        return [Events(one, joint, sees_secret) for one in each]

    def credal_sets(
        self, questions: Callable[[int], Iterable[GroupPairs]], joint: Joint, sees_secret: bool
    ) -> CredalSets:
        """The sets of these events."""
        each = self.events(questions, joint, sees_secret)
        part = (1 - self.confidence) / max(len(each), 1)
        inputs = joint.a * (joint.c if sees_secret else 1)
        made = [_NoisyCredalSets(events, self.counts, part).credal_sets(inputs) for events in each]
        return CredalSets.concatenate(made) if made else empty_credal_sets(inputs, joint.c)


class _NoisyCredalSets:
    """The sets of one question, at β."""

    def __init__(self, events: Events, counts: NoisyCounts, beta: Fraction) -> None:
        self.events, self.counts, self.beta = events, counts, beta
        self.c = len(counts.totals)

    def credal_sets(self, inputs: int) -> CredalSets:
        """Boxes of all events, whose bounds fail with chance β at most, all together."""
        events, k = self.events, len(self.events.group_masks)
        whole = [(known, values, mask) for known, values in events.classes for mask in events.group_masks]
        low, high = np.zeros((2, len(whole), inputs), dtype=np.int64)
        for i, (known, values, mask) in enumerate(whole):
            where, seen = self._cells(mask, values)
            low[i, where], high[i, where] = self._event_box(seen, mask, bool(known), values)
        pairs = [(j * k + e, j * k + f, w) for j in range(len(events.classes)) for e, f, w in events.pairs]
        share = [self._least_share(*whole[e], whole[f][2]) if w else 0 for e, f, w in pairs]
        return CredalSets(
            low=low,
            high=high,
            secrets=np.array([mask for _, _, mask in whole]),
            known=tuple(known for known, _, _ in whole),
            pairs=np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2),
            share=np.array(share, dtype=np.int64),
        )

    def _failure_share(self, mask: BoolArray) -> Fraction:
        """The part of β for the box of an event."""
        held, classes = int(mask.sum()), len(self.events.classes)
        compares_rests = any(within for _, _, within in self.events.pairs)
        if held == 1:
            alone = [s for s in range(self.c) if any(m.sum() == 1 and m[s] for m in self.events.group_masks)]
            weight = {s: math.isqrt(FINEST // max(int(self.counts.totals[s]), RARE)) for s in alone}
            own = 1 - TOTALS - (SHARES if compares_rests else 0)
            own -= (RESTS if compares_rests and self.c > 2 else 0) + (
                GROUPS if self.c > (3 if compares_rests else 2) else 0
            )
            return own * self.beta * weight[int(mask.argmax())] / sum(weight.values()) / classes
        if compares_rests and held == self.c - 1:
            return RESTS * self.beta / self.c / classes
        return GROUPS * self.beta / self._possible_events(held) / classes

    def _possible_events(self, held: int) -> int:
        """As many events of so many secrets as there might have been, times the sizes that there are."""
        return (self.c - 1) * math.comb(self.c, held)

    def _cells(self, mask: BoolArray, values: IntArray) -> tuple[IntArray, IntArray]:
        """The inputs of an event and their noisy counts."""
        seen = self.counts.cells[mask][:, values]
        if not self.events.sees_secret:
            return values, seen.sum(axis=0)
        a = self.counts.cells.shape[1]
        return (np.flatnonzero(mask)[:, None] * a + values).ravel(), seen.ravel()

    def _row_bounds(self, mask: BoolArray, narrow: bool, values: IntArray) -> tuple[int, int]:
        """Between which numbers of rows the event lies. All classes together have β's part for it."""
        rows, held = self.counts.rows, int(mask.sum())
        level = TOTALS * self.beta / len(self.events.classes) / 2 / self._event_divisor(held)
        noisy = self._noisy_row_count(mask, narrow, values, level)
        low, high = 0, rows
        if noisy is not None:
            width = noisy[1].width(level)
            low, high = max(noisy[0] - width, low), min(noisy[0] + width, high)
            cells = self.counts.cells[:, values]
            if not narrow and cells.size <= MOST_TERMS and width > self._total_noise.width(level) / 2:
                # The event's own cells and what all others leave of n, added up: twice its rows, with the noise of all.
                twice, width = int(cells[mask].sum()) + rows - int(cells[~mask].sum()), self._total_noise.width(level)
                low, high = max(-((width - twice) // 2), 0), min((twice + width) // 2, rows)
        return min(low, rows), max(high, 0)

    @property
    def _total_noise(self) -> NoiseSum:
        """The noise of all cells together."""
        return noise_sum(self.counts.cell_rate, self.counts.cells.size)

    def _noisy_row_count(
        self, mask: BoolArray, narrow: bool, values: IntArray, level: Fraction
    ) -> tuple[int, NoiseSum] | None:
        """The number of rows of an event with the least noise in it: by its cells or totals, or by all but its own.

        Which has least noise follows from sizes and rates, which are public; None where too many cells add up.
        """
        counts, ways = self.counts, []
        for some, of_all in ((mask, 0), (~mask, counts.rows)):
            sign, terms = (-1 if of_all else 1), int(some.sum()) * len(values)
            if terms <= MOST_TERMS:
                seen = int(counts.cells[some][:, values].sum())
                ways.append((of_all + sign * seen, noise_sum(counts.cell_rate, terms)))
            if narrow:
                break  # how many there are outside of a class is not public
            ways.append((of_all + sign * int(counts.totals[some].sum()), noise_sum(counts.total_rate, int(some.sum()))))
        return min(ways, key=lambda way: way[1].width(level), default=None)

    def _event_divisor(self, held: int) -> int:
        """Over how many events of so many secrets a part is divided, all sizes having the same."""
        return 3 * (self.c if held in (1, self.c - 1) else self._possible_events(held))

    def _event_box(self, seen: IntArray, mask: BoolArray, narrow: bool, values: IntArray) -> tuple[IntArray, IntArray]:
        """The box of an event with these noisy counts; where it holds nobody, for noise was extreme, everybody."""
        cells = len(seen)
        if cells == 1:
            return np.array([SCALE]), np.array([SCALE])
        fewest, most = self._row_bounds(mask, narrow, values)
        terms = 1 if self.events.sees_secret else int(mask.sum())
        noise = noise_sum(self.counts.cell_rate, terms)
        shares = NoisyClopperPearson(noise, round_level(self._failure_share(mask) / (2 * cells)))
        low = np.array([shares.lower(int(count), most) for count in seen])
        high = np.array([shares.upper(int(count), fewest) for count in seen])
        if low.sum() > SCALE or high.sum() < SCALE or (low > high).any():
            return np.zeros(cells, dtype=np.int64), np.full(cells, SCALE)
        return tighten_box(low, high)

    def _least_share(self, known: object, values: IntArray, mask: BoolArray, others: BoolArray) -> int:
        """A lower bound on the share of an event among its people and those of the other one."""
        counts, held = self.counts, int(mask.sum())
        level = round_level(SHARES * self.beta / len(self.events.classes) / self._event_divisor(held))
        if not known:
            noisy = self._noisy_row_count(mask, False, values, level)
            return 0 if noisy is None else NoisyClopperPearson(noisy[1], level).lower(noisy[0], counts.rows)
        both = mask | others
        seen = int(counts.cells[mask][:, values].sum())
        trials = int(counts.cells[both][:, values].sum()) + noise_sum(
            counts.cell_rate, int(both.sum()) * len(values)
        ).width(level / 2)
        return NoisyClopperPearson(noise_sum(counts.cell_rate, held * len(values)), round_level(level / 2)).lower(
            seen, min(max(trials, 1), counts.rows)
        )
