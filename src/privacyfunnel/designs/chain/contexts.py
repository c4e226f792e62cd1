r"""Splitting many small priors at once: the contexts of a chain.

In a context the value :math:`x` of the next attribute has probability :math:`p_x`, and :math:`n_{s,x} = p(s|x)/p_s`
compares the secret's posterior with its prior *before anything was published*. Atoms v are allowed iff

.. math:: v \ge 0,\ \sum_x v_x = 1,\quad t e^{-\varepsilon} \le \sum_x n_{s,x} v_x \le t e^{\varepsilon}\ \forall s,

with t = 1 under LIP and any t > 0 under LDP (`band.py`). This holds for :math:`v = p`, since the context itself was
allowed, though :math:`\sum_x n_{s,x} p_x` is no longer 1.
As always the best split minimises :math:`\sum_y q_y H(v_y)`. Column generation without a proof: contexts come in tens
of thousands, and each is worth little.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, entropy_terms
from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.context_channel import Channel, round_channel
from privacyfunnel.engine.lp.batched_simplex import Programmes, Tableaus, minimise_tableaus, solve

WORTH = 1e-3  # nats: an atom whose reduced cost gains less than this is not worth another round
PATIENCE = 2  # rounds without a new atom after which a context is done
STEPS = 3  # linear programmes that improve an atom per round
ROOM = 2.0  # shares never exceed 1; a bound that is never met keeps rounding from calling a programme empty
CUTS = 40  # pairs of ratios that are looked at on the way to an end; a few do
SPOILT = 1e-11  # what rounding may leave between a vertex and its rows; beyond it a walk begins again
FLATTEST = 1e-6  # slopes of entropy are taken no closer to 0 than this


def split_in_two(tables: FloatArray, band: Band) -> list[tuple[FloatArray, FloatArray]]:
    """The same for contexts with two values: v = (t, 1 − t) with t in an interval, whose ends are the best atoms."""
    at_one, at_zero = tables[:, 1:, 0], tables[:, 1:, 1]
    prior = tables[:, 0, 0]
    low, high = (
        _sliding_ends(prior, at_one, at_zero, band.ratio_bound**2)
        if band.slides
        else _standing_ends(prior, at_one, at_zero, band.ratio_bound)
    )
    q = np.divide(prior - low, high - low, out=np.ones_like(prior), where=high > low)
    return [
        (np.array([1 - share, share]), np.array([[a, 1 - a], [b, 1 - b]]))
        if 0 < share < 1
        else (np.ones(1), np.array([[p, 1 - p]]))
        for a, b, share, p in zip(low.tolist(), high.tolist(), q.tolist(), prior.tolist(), strict=True)
    ]


def _standing_ends(prior: FloatArray, at_one: FloatArray, at_zero: FloatArray, loud: float) -> list[FloatArray]:
    """Where the ratios meet the band that stands, below and above the prior."""
    slope = at_one - at_zero
    ends = [
        np.divide(bound - at_zero, slope, out=np.full_like(slope, np.nan), where=slope != 0)
        for bound in (1 / loud, loud)
    ]
    least, most = np.fmin(*ends), np.fmax(*ends)
    low = np.minimum(np.fmax.reduce(least, axis=1, initial=0.0), prior)
    return [low, np.maximum(np.fmin.reduce(most, axis=1, initial=1.0), prior)]


def _sliding_ends(prior: FloatArray, at_one: FloatArray, at_zero: FloatArray, wide: float) -> list[FloatArray]:
    """Where the largest and the least ratio are a factor `wide` apart, below and above the prior."""
    here = at_zero + prior[:, None] * (at_one - at_zero)
    return [prior * (1 - _largest_share(here, at_zero, wide)), prior + (1 - prior) * _largest_share(here, at_one, wide)]


def _largest_share(here: FloatArray, there: FloatArray, wide: float) -> FloatArray:
    """The largest share f at which no two of (1 − f)·here + f·there are more than a factor `wide` apart.

    Met from outside: where the largest and the least are too far apart, f goes back to where those two no longer are.
    """
    f = np.ones(len(here))
    rows = np.arange(len(here))
    for _ in range(CUTS):
        ratio = here + f[:, None] * (there - here)
        top, bottom = ratio.argmax(axis=1), ratio.argmin(axis=1)
        over = ratio[rows, top] - wide * ratio[rows, bottom]
        if not (over > 0).any():
            break
        room = np.maximum(wide * here[rows, bottom] - here[rows, top], 0.0)
        f *= np.divide(room, room + over, out=np.ones_like(f), where=over > 0)
    return f


def split_contexts(tables: FloatArray, band: Band, rounds: int = 6) -> list[tuple[FloatArray, FloatArray]]:
    """For each context weights q and atoms v.

    `tables` is contexts × (1 + c) × d: p(x) in the first row, p(s|x)/p_s in the others; values of probability 0 are
    padding. A context whose split could not be solved is left whole.
    """
    d = tables.shape[2]
    if d == 2:
        return split_in_two(tables, band)
    prior = tables[:, 0]
    box, mixture = _Polytopes(tables, band), _ContextMixtures(prior)
    # For every value the atom that gives it most, then ever better atoms for the prices of the best mixture.
    of, value = np.nonzero(prior > 0)
    slopes = np.zeros((len(of), d))
    slopes[np.arange(len(of)), value] = -1.0
    at, found, walks = box.minimise(slopes, of, box.begin(of))
    of, at, walks = of[found], at[found], walks[found]
    mixture.add(np.concatenate([at, box.remainder(prior[of], at, of)]), np.concatenate([of, of]))
    random = np.random.default_rng(1)
    fruitless = np.zeros(len(prior), dtype=np.int64)
    for _ in range(rounds):
        prices = mixture.solve()
        slopes = random.exponential(size=at.shape) * random.uniform(0.0, 2.0, size=(len(of), 1)) - prices[of]
        for _ in range(STEPS):
            at, found, walks = box.minimise(slopes, of, walks)
            slopes = -np.log(np.maximum(at, FLATTEST)) - prices[of]
        gain = (at * prices[of]).sum(axis=1) - entropy_terms(at).sum(axis=1)
        good = found & (gain > WORTH)
        mixture.add(at[good], of[good])
        fruitless[of] += 1
        fruitless[of[good]] = 0
        still = fruitless[of] < PATIENCE
        of, at, walks = of[still], at[still], walks[still]
        if not len(of):
            break
    mixture.solve()
    return mixture.splits()


class _Polytopes:
    """The polytopes of all contexts, with one row per secret, z_s = Σ_x n_{s,x} v_x, and one for z_0 = Σ_x v_x.

    Where the band stands, z_0 is 1. Where it slides, t is 1 instead and v is any multiple of an atom: Σ_x v_x is then
    a mean of the z_s, for Σ_s p_s n_{s,x} = 1, and lies in the band too.
    """

    def __init__(self, tables: FloatArray, band: Band) -> None:
        k, rows, d = tables.shape
        self.band, self.d = band, d
        self.rows = tables.copy()
        self.rows[:, 0] = 1.0
        low, high = np.full((2, k, rows), [[[1 / band.ratio_bound]], [[band.ratio_bound]]])
        if not band.slides:
            low[:, 0] = high[:, 0] = 1.0
        most = ROOM * band.ratio_bound if band.slides else ROOM
        self.low = np.concatenate([np.zeros((k, d)), low], axis=1)
        self.high = np.concatenate([np.where(tables[:, 0] > 0, most, 0.0), high], axis=1)

    def begin(self, of: IntArray) -> Tableaus:
        """Where walks in these polytopes begin."""
        return Tableaus.from_rows(self.rows[of])

    def minimise(self, slopes: FloatArray, of: IntArray, start: Tableaus) -> tuple[FloatArray, BoolArray, Tableaus]:
        """For each i the vertex of polytope of[i] that minimises slopes[i]·v, as an atom; whether it was found; and
        where to begin next."""
        cost = np.concatenate([slopes, np.zeros((len(of), self.rows.shape[1]))], axis=1)
        ended = minimise_tableaus(start, cost, self.low[of], self.high[of])
        v, z = ended.x[:, : self.d], ended.x[:, self.d :]
        spoilt = np.abs(np.matmul(self.rows[of], v[:, :, None])[:, :, 0] - z).max(axis=1) > SPOILT
        ended.tableaus.store(np.flatnonzero(spoilt), self.begin(of[spoilt]))
        v = np.maximum(v, 0.0)
        total = v.sum(axis=1, keepdims=True)
        return np.divide(v, total, out=v, where=total > 0), ended.optimal & ~spoilt, ended.tableaus

    def remainder(self, prior: FloatArray, atoms: FloatArray, of: IntArray) -> FloatArray:
        """What is left of the prior, as an atom, when as much of v is taken out as the polytope allows.

        Without these the first mixtures are often the prior alone, whose prices say nothing.
        """
        n, loud = self.rows[of][:, 1:], self.band.ratio_bound
        n_p, n_v = np.matmul(n, prior[:, :, None])[:, :, 0], np.matmul(n, atoms[:, :, None])[:, :, 0]
        t_p, t_v = self.band.middle(n_p), self.band.middle(n_v)
        room = np.concatenate([prior, np.maximum(loud * t_p - n_p, 0.0), np.maximum(n_p - t_p / loud, 0.0)], axis=1)
        used = np.concatenate([atoms, loud * t_v - n_v, n_v - t_v / loud], axis=1)
        share = np.divide(room, used, out=np.full_like(room, np.inf), where=used > FLATTEST).min(axis=1)
        share = np.clip(share, 0.0, 0.999)[:, None]
        return np.asarray(np.maximum(prior - share * atoms, 0.0) / (1.0 - share))


class _ContextMixtures:
    """For every context the cheapest mixture of its atoms that averages to its prior: Σ_y q_y v_y = p."""

    def __init__(self, prior: FloatArray) -> None:
        k, d = prior.shape
        self.prior = prior
        # Each row is divided by p, so that all of them matter alike; slacks are fixed at 0 and come first.
        self.scale = np.where(prior > 0, prior, 1.0)
        self.atoms, self.owner = prior, np.arange(k)
        self.basis = np.tile(np.arange(d), (k, 1))
        self.prices = np.zeros((k, d))
        self.best = [(np.ones(1), prior[i : i + 1]) for i in range(k)]
        self.waiting = np.arange(k)  # contexts with new atoms

    def add(self, atoms: FloatArray, owner: IntArray) -> None:
        """More atoms, with the context that each belongs to."""
        # Atoms that differ by rounding alone would make a basis that cannot be inverted.
        rounded = np.column_stack([owner, np.round(atoms / self.scale[owner], 9)])
        fresh = np.unique(rounded, axis=0, return_index=True)[1]
        self.atoms = np.concatenate([self.atoms, np.maximum(atoms[fresh], 0.0)])
        self.owner = np.concatenate([self.owner, owner[fresh]])
        self.waiting = np.unique(owner)

    def solve(self) -> FloatArray:
        """Mix again where there are new atoms; the prices of all values."""
        who = self.waiting
        k, d = len(who), self.prior.shape[1]
        if not k:
            return self.prices
        place = np.full(len(self.prior), -1)
        place[who] = np.arange(k)
        mine = np.flatnonzero(place[self.owner] >= 0)
        mine = mine[np.argsort(place[self.owner[mine]], kind="stable")]
        owner = place[self.owner[mine]]
        counts = np.bincount(owner, minlength=k)
        number = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
        columns = np.zeros((k, int(counts.max()), d))
        columns[owner, number] = self.atoms[mine]
        A = np.concatenate(
            [np.tile(np.eye(d), (k, 1, 1)), columns.transpose(0, 2, 1) / self.scale[who][:, :, None]], axis=2
        )
        cost = np.concatenate([np.zeros((k, d)), entropy_terms(columns).sum(axis=2)], axis=1)
        present = np.arange(columns.shape[1])[None, :] < counts[:, None]
        high = np.concatenate([np.zeros((k, d)), np.where(present, ROOM, 0.0)], axis=1)
        b = (self.prior[who] > 0).astype(np.float64)
        answers = solve(Programmes(A, b, cost, np.zeros_like(high), high, self.basis[who], np.arange(k)))
        done = answers.optimal
        self.basis[who[done]] = answers.basis[done]
        self.prices[who[done]] = answers.multipliers[done] / self.scale[who[done]]
        weights = np.maximum(answers.x[:, d:], 0.0)
        for i in np.flatnonzero(done):
            used = weights[i] > 0
            self.best[who[i]] = (weights[i, used], columns[i, used])
        self.waiting = who[:0]
        return self.prices

    def splits(self) -> list[tuple[FloatArray, FloatArray]]:
        """The best mixture of every context."""
        return self.best


def context_channels(tables: FloatArray, band: Band, rounds: int) -> list[Channel]:
    """The channels of contexts, rounded to integers; a context is silent where those integers leave the band."""
    return [
        _channel(table[:, table[0] > 0], weights, atoms[:, table[0] > 0], band.outer_band)
        for table, (weights, atoms) in zip(tables, split_contexts(tables, band, rounds), strict=True)
    ]


def _channel(table: FloatArray, weights: FloatArray, atoms: FloatArray, band: Band) -> Channel:
    return round_channel(table, (weights[:, None] * atoms).T / table[0][:, None], band)[0]
