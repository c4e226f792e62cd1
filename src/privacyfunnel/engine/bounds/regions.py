r"""Second moments bounded from below over regions of atoms, all regions at once.

Sort the atoms of a split into regions; those of region k have :math:`X_k = \sum_y q_y v_y v_y^\top`. Products of
constraints :math:`a \cdot v \ge 0` that all atoms of a region keep are at least 0, so every split costs at least

.. math:: \min\ \operatorname{tr}(F F^\top M^{-1}),\quad M = T \sum_k X_k T^\top,
   \quad \sum_k X_k 1 = p,\quad a_i^\top X_k a_j \ge 0 .

The programme is convex, and regions meet in M alone: an interior point method takes a small matrix per region. Where a
credal set, or a known pair of constraints, shows that :math:`X_k a` is no multiple of an atom, the product is added.
Then the regions of largest spread :math:`\operatorname{tr} B^\top (X_k - m m^\top / w) B`, with m and w the sums of
:math:`X_k` and :math:`B = M^{-1} F`, are cut through their mean, across the direction in which they are widest.

The multipliers :math:`N \ge 0` of the products are advice. For any of them, and any prices λ, no atom of region k has
:math:`\lVert B^\top v\rVert^2 + λ\cdot v` above the largest entry of
:math:`B B^\top + \sum N_{ij} a_i a_j^\top + (λ 1^\top + 1 λ^\top) / 2`, for the entries of :math:`v v^\top` are weights
that sum to 1. The largest of these over all regions is the e of the bound in masters/mixture.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import WORK, Clock
from privacyfunnel.engine.driver import DualBound
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.masters.mixture import Mixture
from privacyfunnel.engine.masters.moment import MomentMaster
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.oracle import UNIT
from privacyfunnel.engine.settings import SETTINGS


@dataclass(slots=True, eq=False)
class Region:
    """Constraints of length 1 that its atoms keep, products of these, and X with the slacks and multipliers of all."""

    constraints: FloatArray  # (r, d), of v / √p
    stays: BoolArray  # (r,), those that are no cuts
    pairs: IntArray  # (m, 2), whose product is asked to be at least 0
    products: FloatArray  # (m, n), by the entries of X on and above the diagonal
    second: FloatArray  # (n,), X
    slack: FloatArray
    multipliers: FloatArray


Direction = list[tuple[FloatArray, FloatArray, FloatArray]]  # of each region: of X, its slacks and its multipliers


class RegionBound(DualBound):
    """Cuts regions in two until the bound reaches the value, or time is up; a later proof goes on from there."""

    share = SETTINGS.regions.share

    def __init__(self, master: MomentMaster) -> None:
        self._master, problem, moment = master, master.problem, master.moment
        self._credal = CredalConstraints.from_problem(problem)
        d, counted = problem.size, len(moment.factor)
        self._root, self._i, self._j = np.sqrt(problem.prior), *np.triu_indices(d)
        self._twice = np.where(self._i == self._j, 1.0, 2.0)
        share = np.bincount(problem.objective.image_index, problem.prior)[:counted]
        belongs = problem.objective.image_index == np.arange(counted)[:, None]
        self._image = belongs * self._root / np.sqrt(share)[:, None]
        self._factor = moment.all_factors / np.sqrt(share)[:, None]
        self._sums = np.zeros((d, self._i.size))  # of X, as √p sees it
        entries = np.arange(self._i.size)
        np.add.at(self._sums, (self._i, entries), self._root[self._j])
        np.add.at(self._sums, (self._j, entries), np.where(self._i == self._j, 0.0, self._root[self._i]))
        self._free = np.linalg.svd(self._sums)[2][d:].T  # changes of X that leave its sums
        rows = np.concatenate([np.eye(d), problem.inequalities * self._root])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self._given = len(rows)
        pairs = np.stack([self._i, self._j], axis=1)
        keep = SETTINGS.regions.first
        whole = ((1 - keep) * np.outer(self._root, self._root) + keep * np.eye(d))[self._i, self._j]
        products, none = self._multiply(rows, pairs), np.empty(0)
        self._regions = [Region(rows, np.ones(len(rows), dtype=bool), pairs, products, whole, none, none)]
        self._ended = False

    @property
    def is_exhausted(self) -> bool:
        return self._ended

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Rounds of programme, bound, cuts and further regions; all means are returned as atoms."""
        settings, master = SETTINGS.regions, self._master
        while not (self._ended or clock.late):
            left = max((master.value - self.bound - master.allowed(master.gap)) / master.value, 0.0)
            if left == 0.0:
                break
            near = master.allowed(master.gap) / master.value
            accuracy = min(settings.accuracy, max(settings.closer * left, settings.closer * near))
            try:
                solved = self._solve(accuracy, clock)
                self.bound = max(self.bound, self._lower_bound())
            except np.linalg.LinAlgError:
                self._ended = True
                break
            self.on_change()
            if solved:
                self._forget()
                cuts = self._add_cuts(settings.violated * accuracy)
                self._divide(cuts, accuracy)
        return np.array([self._matrix(region.second) @ self._root * self._root for region in self._regions])

    # -- the programme -----------------------------------------------------------------------------------------

    def _matrix(self, entries: FloatArray) -> FloatArray:
        X = np.zeros((self._root.size,) * 2)
        X[self._i, self._j] = X[self._j, self._i] = entries
        return X

    def _multiply(self, rows: FloatArray, pairs: IntArray) -> FloatArray:
        a, b = rows[pairs[:, 0]], rows[pairs[:, 1]]
        return np.asarray(0.5 * (a[:, self._i] * b[:, self._j] + b[:, self._i] * a[:, self._j]) * self._twice)

    def _objective(self, second: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """tr(FFᵀM⁻¹), TᵀM⁻¹T, and B by input; an error where M is not positive."""
        M = self._image @ self._matrix(second) @ self._image.T
        half = linalg.solve_triangular(np.linalg.cholesky(M), self._image, lower=True)
        of_factor = linalg.solve_triangular(np.linalg.cholesky(M), self._factor, lower=True)
        return float((of_factor**2).sum()), half.T @ half, half.T @ of_factor

    def _total(self) -> FloatArray:
        return np.asarray(sum(region.second for region in self._regions))

    def _solve(self, accuracy: float, clock: Clock) -> bool:
        """Mehrotra's predictor and corrector from where regions stand; whether it came to its end in time."""
        settings, regions, n = SETTINGS.regions, self._regions, self._i.size
        total = self._total()
        value, count = self._objective(total)[0], sum(len(region.pairs) for region in regions)
        for region in regions:
            size = float(region.second[self._i == self._j].sum())
            there = np.abs(region.products @ region.second)
            region.slack = np.maximum(there, settings.least_slack * max(size, settings.least_region))
            region.multipliers = accuracy * value / count / region.slack
        for _ in range(settings.steps):
            WORK.entries += SETTINGS.work.descent + int(SETTINGS.work.cholesky * n**2 * (count + n * len(regions)))
            value, P, B = self._objective(total)
            G, i, j = B @ B.T, self._i, self._j
            H = P[np.ix_(i, i)] * G[np.ix_(j, j)] + P[np.ix_(i, j)] * G[np.ix_(j, i)]
            H += P[np.ix_(j, i)] * G[np.ix_(i, j)] + P[np.ix_(j, j)] * G[np.ix_(i, i)]
            H = 0.25 * (H + H.T) * np.outer(self._twice, self._twice)
            gap = sum(float(region.slack @ region.multipliers) for region in regions)
            missing = self._root - self._sums @ total
            step = _Step(regions, H, -G[i, j] * self._twice, self._free, np.linalg.pinv(self._sums) @ missing)
            ahead, out = step.direction([np.zeros(1)] * len(regions))
            reach = min(_reach(regions, out), 1.0)
            after = sum(
                float((region.slack + reach * ds) @ (region.multipliers + reach * dz))
                for region, (_, ds, dz) in zip(regions, out, strict=True)
            )
            centring = max(min(max(after / gap, settings.least_centring), 1.0) ** 2, min(accuracy * value / gap / 3, 1))
            ahead, out = step.direction([centring * gap / count - ds * dz for _, ds, dz in out])
            reach = min(settings.boundary * _reach(regions, out), 1.0)
            while not np.linalg.eigvalsh(self._image @ self._matrix(total + reach * ahead) @ self._image.T)[0] > 0:
                reach /= 2
                if reach < SETTINGS.tolerance.feasible:
                    raise np.linalg.LinAlgError
            for region, (dx, ds, dz) in zip(regions, out, strict=True):
                region.second = region.second + reach * dx
                region.slack, region.multipliers = region.slack + reach * ds, region.multipliers + reach * dz
            total = total + reach * ahead
            if reach > settings.long_step and gap < accuracy * value and step.residual < SETTINGS.tolerance.tight:
                return True
            if clock.late:
                return False
        return True

    def _lower_bound(self) -> float:
        """The bound by its formula: all sums are rounded up."""
        master, total = self._master, self._total()
        value, _, B = self._objective(total)
        d, scale = self._root.size, np.outer(self._root, self._root)
        most = np.full((d, d), -np.inf)
        for region in self._regions:
            N = np.maximum(region.multipliers, 0.0)
            added, size = (self._matrix(N @ part / self._twice) for part in (region.products, np.abs(region.products)))
            most = np.maximum(most, added + B @ B.T + 64 * d * UNIT * (size + np.abs(B) @ np.abs(B).T))
        most = most / scale
        prices = -self._cheapest_cover(most)
        excess = float((most + (prices[:, None] + prices) / 2).max()) + 8 * UNIT * float(np.abs(most).max())
        square = B / self._root[:, None]
        mixture = Mixture(np.empty(0), np.empty(0), square, prices, 0.0, value, value)
        return mixture.bound(master.problem, master.moment, prices / value, max(excess, 0.0) / value)

    def _cheapest_cover(self, most: FloatArray) -> FloatArray:
        """μ of least μ·p with (μ_i + μ_j) / 2 at least these entries."""
        d, n = self._root.size, self._i.size
        programme = Programme()
        programme.add_rows(2 * (most * np.outer(self._root, self._root))[self._i, self._j], np.full(n, INF))
        entries = np.zeros((d, n))  # in units of √p, so that all are of one size
        np.add.at(entries, (self._i, np.arange(n)), self._root[self._j])
        np.add.at(entries, (self._j, np.arange(n)), self._root[self._i])
        column, row = np.nonzero(entries)
        starts = np.searchsorted(column, np.arange(d))
        programme.add_columns(self._root, starts, row, entries[column, row], low=np.full(d, -INF))
        if not programme.run_afresh():
            raise np.linalg.LinAlgError
        return np.asarray(programme.solution / self._root)

    # -- cuts and regions --------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop products that are far from tight, and cuts of which none is left."""
        d, most = self._root.size, SETTINGS.regions.kept + SETTINGS.regions.kept_per_entry * self._i.size
        for region in self._regions:
            kept: BoolArray = np.asarray((region.pairs < d).all(axis=1))
            kept[np.argsort(region.slack / region.multipliers)[: int(most)]] = True
            region.pairs, region.products = region.pairs[kept], region.products[kept]
            used = region.stays.copy()
            used[region.pairs] = True
            region.pairs = (np.cumsum(used) - 1)[region.pairs]
            region.constraints, region.stays = region.constraints[used], region.stays[used]

    def _add(self, region: Region, pairs: IntArray) -> int:
        """Add the products of these pairs that are new; how many."""
        pairs, count = np.sort(pairs, axis=1), len(region.constraints)
        one, other = (each[:, 0] * count + each[:, 1] for each in (pairs, region.pairs))
        code: IntArray = np.setdiff1d(one, other)
        new = np.stack([code // count, code % count], axis=1)
        region.pairs = np.concatenate([region.pairs, new])
        region.products = np.concatenate([region.products, self._multiply(region.constraints, new)])
        return len(new)

    def _add_cuts(self, least: float) -> int:
        """Products that X takes for less than 0: of known constraints, and of those with members of credal sets."""
        proofs, added = SETTINGS.proofs, 0
        for region in self._regions:
            X = self._matrix(region.second)
            size, through = float(np.trace(X)), region.constraints @ X
            if size < SETTINGS.regions.least_region:
                continue
            value = np.triu(through @ region.constraints.T).ravel()
            order = np.argsort(value)[: proofs.products_per_round]
            pairs = np.stack(np.divmod(order[value[order] < -least * size], len(region.constraints)), axis=1)
            if self._master.problem.credal_sets is not None:
                some = np.flatnonzero((through * self._root).sum(axis=1) > SETTINGS.tolerance.solved * size)
                rows = self._credal.worst_constraint(through[some] * self._root) * self._root
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                value = np.einsum("ij,ij->i", rows, through[some])
                order = np.argsort(value)[: proofs.credal_cuts_per_round]
                order = order[value[order] < -least * size]
                fresh = len(region.constraints) + np.arange(order.size)
                pairs = np.concatenate([pairs, np.stack([some[order], fresh], axis=1)])
                region.constraints = np.concatenate([region.constraints, rows[order]])
                region.stays = np.append(region.stays, np.zeros(order.size, dtype=bool))
            added += self._add(region, pairs)
        return added

    def _divide(self, cuts: int, accuracy: float) -> None:
        """Cut the regions of largest spread in two; nothing is left to do where there is none, and no cuts were."""
        settings, d = SETTINGS.regions, self._root.size
        value, _, B = self._objective(self._total())
        spreads, halves = [], []
        for region in self._regions:
            X = self._matrix(region.second)
            m = X @ self._root
            w = float(self._root @ m)
            size, directions = np.linalg.eigh(B.T @ (X - np.outer(m, m) / w) @ B)
            across = B @ directions[:, -1]
            across = across - float(across @ m) / w * self._root
            spreads.append(float(size.clip(0.0).sum()))
            halves.append(across / np.linalg.norm(across))
        wide = [k for k in np.argsort(spreads)[::-1].tolist() if spreads[k] > settings.closer * accuracy * value]
        if not wide or len(self._regions) >= settings.most:
            self._ended = not cuts
            return
        for k in wide[: 1 + len(self._regions) // settings.divided]:
            region, count = self._regions[k], len(self._regions[k].constraints)
            parts = []
            for row in (halves[k], -halves[k]):
                part = replace(
                    region,
                    constraints=np.concatenate([region.constraints, row[None]]),
                    stays=np.append(region.stays, True),
                    second=region.second / 2,
                )
                others = np.concatenate([np.arange(d), np.flatnonzero(part.stays)[self._given :]])
                self._add(part, np.stack([others, np.full(others.size, count)], axis=1))
                parts.append(part)
            self._regions[k : k + 1] = [parts[0]]
            self._regions.append(parts[1])


class _Step:
    """Newton's step of all regions: each has its own matrix, and all meet in the Hessian H of the objective."""

    def __init__(
        self, regions: list[Region], H: FloatArray, gradient: FloatArray, free: FloatArray, missing: FloatArray
    ) -> None:
        self._regions, self._H, self._gradient, self._free, self._missing = regions, H, gradient, free, missing
        self._broken = [region.products @ region.second - region.slack for region in regions]
        self.residual = max(float(np.abs(each).max()) for each in self._broken)
        self._inverse = [_inverse(_gram(region)) for region in regions]
        self._joint = _inverse(np.asarray(sum(self._inverse)))
        self._factor = linalg.cho_factor(free.T @ (self._joint + H) @ free)

    def direction(self, targets: list[FloatArray]) -> tuple[FloatArray, Direction]:
        """Changes of ΣX and of every region, after which slack times multiplier is its target to first order."""
        pull = [
            inverse @ (region.products.T @ ((region.multipliers * broken - target) / region.slack))
            for region, inverse, broken, target in zip(self._regions, self._inverse, self._broken, targets, strict=True)
        ]
        whole, to = np.asarray(sum(pull)), self._missing
        slope = self._gradient + self._H @ to + self._joint @ (whole + to)
        ahead = to - self._free @ linalg.cho_solve(self._factor, self._free.T @ slope)
        y = self._joint @ (ahead + whole)
        out: Direction = []
        for region, inverse, own, broken, target in zip(
            self._regions, self._inverse, pull, self._broken, targets, strict=True
        ):
            dx = inverse @ y - own
            ds = region.products @ dx + broken
            out.append((dx, ds, (target - region.multipliers * ds) / region.slack - region.multipliers))
        return ahead, out


def _gram(region: Region) -> FloatArray:
    scaled = region.products * np.sqrt(region.multipliers / region.slack)[:, None]
    return np.asarray(scaled.T @ scaled)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Of a positive matrix, by its factor, scaled to diagonal 1."""
    scale = 1.0 / np.sqrt(np.diag(matrix))
    scaled = matrix * np.outer(scale, scale)
    scaled[np.diag_indices(len(scaled))] += SETTINGS.regions.ridge
    lower = np.tril(linalg.lapack.dpotri(linalg.cholesky(scaled, lower=True), lower=1)[0])
    return np.asarray((lower + np.tril(lower, -1).T) * np.outer(scale, scale))


def _reach(regions: list[Region], out: Direction) -> float:
    """How far slacks and multipliers stay positive."""
    falls = [
        min(float((ds / region.slack).min()), float((dz / region.multipliers).min()))
        for region, (_, ds, dz) in zip(regions, out, strict=True)
    ]
    return 1.0 / max(-min(falls), SETTINGS.tolerance.near)
