r"""The master where the split's second moment counts: the best mixture of known atoms, by an interior point method.

.. math:: \min_{q \ge 0}\ \operatorname{tr}\bigl(F F^\top M^{-1}\bigr),\quad M = \sum_y q_y t_y t_y^\top,\quad t = T v,
   \qquad\text{subject to}\quad \sum_y q_y v_y = p,\quad \sum_y q_y H(t_y) \le h .

The last row is there only where information is to be kept as well. The programme is convex; at its optimum
:math:`B = M^{-1}F`, prices λ and β ≥ 0 give every atom a reduced cost
:math:`βH(t) - \lVert B^\top t\rVert^2 - λ\cdot v` of at least 0. For *any* B, λ, β ≥ 0 (docs/theory.md, the theorem of
equivalence), if no allowed atom has less than −e,

.. math:: \operatorname{tr}(F F^\top M^{-1}) \ge \frac{(\operatorname{tr} F^\top B)^2}{βh - λ\cdot p + e}
   \quad\text{for every allowed split.}

Entries of the image after those that F has do not count: inputs that never occur, to which the prior gives a share m
so that atoms say what becomes of them. The bound is that of the prior without them (Theorem 46a).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import WORK, TimeUpError, now
from privacyfunnel.engine.objective import Objective, image
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError
from privacyfunnel.model.information import entropy

UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """What is to be small of the matrix M: tr(F Fᵀ M⁻¹), and tr(R Rᵀ M⁻¹) beside it to keep M regular."""

    factor: FloatArray  # F, a row per entry of the image
    ridge: FloatArray  # R; no columns where F alone keeps M regular
    most_entropy: float | None = None  # h; None where information does not count
    constant: float = 0.0  # what of it nobody can avoid: gaps are relative to the rest
    proof_slack: float = 0.0  # how much larger h is in the bound than in the master

    @property
    def all_factors(self) -> FloatArray:
        return np.concatenate([self.factor, self.ridge], axis=1)

    def moment_image(self, problem: Problem, atoms: FloatArray) -> FloatArray:
        """T v for every row v, in the entries that F has: the first ones."""
        return image(problem.objective, atoms)[:, : len(self.factor)]

    def uncounted_share(self, problem: Problem) -> float:
        """The share of the prior that its other entries have: m."""
        return float(problem.prior[problem.objective.image_index >= len(self.factor)].sum())

    def entropy_limit(self, problem: Problem) -> float | None:
        """h of what counts: (1 − m)h; None where information does not count."""
        return None if self.most_entropy is None else (1 - self.uncounted_share(problem)) * self.most_entropy

    def evaluate(self, second: FloatArray, share: FloatArray, factor: FloatArray | None = None) -> float:
        """tr(F Fᵀ M⁻¹); infinite where M does not reach F. `share` is T p, by which M is scaled."""
        root = np.sqrt(share)
        F = (self.factor if factor is None else factor) / root[:, None]
        solved, rank_deficit = _solve_on_range(second / np.outer(root, root), F)
        return float(np.einsum("ij,ij->", F, solved)) if rank_deficit < SETTINGS.tolerance.rank else np.inf


def _solve_on_range(M: FloatArray, F: FloatArray) -> tuple[FloatArray, float]:
    """M⁺F, and how much of F, relative to it, lies outside of what M reaches."""
    size, vectors = np.linalg.eigh(M)
    reached = size > size[-1] * len(M) * UNIT
    inside = vectors[:, reached].T @ F
    outside = float(np.linalg.norm(vectors[:, ~reached].T @ F)) / max(float(np.linalg.norm(F)), SETTINGS.tolerance.tiny)
    return np.asarray(vectors[:, reached] @ (inside / size[reached, None])), outside


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Weights of the known atoms, and what proves them best among these."""

    weights: FloatArray  # (k,)
    reduced: FloatArray  # (k,), reduced costs; near 0 where weights are not
    square: FloatArray  # B by input, of F and the ridge together
    prices: FloatArray  # λ
    entropy_price: float  # β
    value: float  # tr(F Fᵀ M⁻¹), without the ridge
    regularised_value: float  # with it

    def costs(self, problem: Problem) -> tuple[Objective, FloatArray]:
        """Objective and prices at which further atoms are sought, in units of the whole value."""
        unit = self.regularised_value
        objective = replace(problem.objective, weight=self.entropy_price / unit, square=self.square / np.sqrt(unit))
        return objective, self.prices / unit

    def entropy_term(self, problem: Problem, moment: Moment) -> float:
        """βh, in units of the whole: what the row about information adds to the bound from above on tr(BᵀMB)."""
        most = moment.entropy_limit(problem)
        return 0.0 if most is None else self.entropy_price * most / self.regularised_value

    def bound(self, problem: Problem, moment: Moment, prices: FloatArray, excess: float, slack: float = 0.0) -> float:
        """What every allowed split has at least, if at these prices no allowed atom costs less than −excess.

        `slack` is how much larger h is for these splits than in the master.

        Costs and prices are in units of the whole. Of B only the columns of F count: the ridge's make the square
        larger, never smaller.
        """
        first = _first_inputs(problem)[: len(moment.factor)]
        top = float(np.einsum("ij,ij->", moment.factor, self.square[first][:, : moment.factor.shape[1]]))
        m = moment.uncounted_share(problem)
        below = (excess - float(prices @ problem.prior) + self.entropy_term(problem, moment)) * self.regularised_value
        below += self.entropy_price * (entropy([m, 1 - m]) + (1 - m) * slack)
        if m > 0:
            below += m * self._uncounted_term(prices, excess)
        rounding = 64 * UNIT * (abs(below) + float(np.abs(prices) @ problem.prior) * self.regularised_value)
        return ((1 - m) * top) ** 2 / (below + rounding) * (1 - 64 * UNIT) if top > 0 and below > 0 else 0.0

    def _uncounted_term(self, prices: FloatArray, excess: float) -> float:
        r"""What a unit of the inputs that do not count adds to the denominator at most (docs/theory.md, Theorem 46a).

        :math:`\sqrt{G \min(G, A)}`, where G is the largest square at any entry that counts, and A the most that prices
        and entropy allow at any atom.
        """
        largest = float((self.square**2).sum(axis=1).max())
        allowed = (excess + float((-prices).max())) * self.regularised_value + self.entropy_price * np.log(len(prices))
        return float(np.sqrt(largest * min(largest, max(allowed, 0.0))))


def _first_inputs(problem: Problem) -> FloatArray:
    """An input of every value."""
    return np.asarray(np.unique(problem.objective.image_index, return_index=True)[1])


def solve_mixture(
    problem: Problem,
    moment: Moment,
    atoms: FloatArray,
    begin: FloatArray | None = None,
    tolerance: float = 1e-9,
    deadline: float = np.inf,
    left: float = SETTINGS.moments.remaining,
) -> Mixture:
    """The best mixture of these atoms; `begin` are weights to start from, 0 where nothing is known, and `left` about
    how much there is to gain, relative to the value.

    Once the clock passes the deadline, what averages to the prior by then is taken; else there is none.
    """
    share, t = moment.moment_image(problem, problem.prior[None, :])[0], moment.moment_image(problem, atoms)
    point = _Point(
        atoms / np.sqrt(problem.prior),
        np.sqrt(problem.prior),
        t / np.sqrt(share),
        moment.all_factors / np.sqrt(share)[:, None],
        problem.costs(atoms) if moment.most_entropy is not None else None,
        moment.entropy_limit(problem),
        begin,
        left,
    )
    for _ in range(SETTINGS.moments.interior_steps):
        if point.is_optimal(tolerance):
            break
        if now() >= deadline:
            if not point.is_feasible:
                raise TimeUpError
            break
        if not point.step():
            break
    if not point.is_finite:
        raise SolverError("The master's interior point method must end in a mixture; it did not. Report this.")
    by_entry = np.zeros((problem.objective.image_size, point.B.shape[1]))
    by_entry[: share.size] = point.B / np.sqrt(share)[:, None]
    B = by_entry[problem.objective.image_index]
    F = moment.factor / np.sqrt(share)[:, None]
    return Mixture(
        weights=point.q,
        reduced=point.reduced_costs,
        square=B,
        prices=point.prices / np.sqrt(problem.prior),
        entropy_price=point.beta,
        value=float(np.einsum("ij,ij->", F, point.B[:, : F.shape[1]])),
        regularised_value=point.whole,
    )


class _Point:
    """Weights q and slacks z of atoms, prices of rows, and their Newton steps (predictor and corrector)."""

    def __init__(
        self,
        E: FloatArray,
        target: FloatArray,
        U: FloatArray,
        F: FloatArray,
        h: FloatArray | None,
        most: float | None,
        begin: FloatArray | None,
        left: float,
    ) -> None:
        self.E, self.target, self.U, self.F = E, target, U, F
        self.h = np.zeros(len(E)) if h is None else h
        self.limited = h is not None
        self.most = 0.0 if most is None else most
        k = len(E)
        room = 1.0 / (E / target).max(axis=1)
        self.q = (
            np.full(k, 1.0 / k)
            if begin is None
            else np.maximum(begin, SETTINGS.moments.least_weight * np.minimum(room, 1.0 / k))
        )
        self.q = self.q / self.q.sum()
        self.prices, self.beta = np.zeros(E.shape[1]), 0.0
        self.slack = (
            max(
                self.most - float(self.h @ self.q),
                SETTINGS.moments.slack_share * abs(self.most) + SETTINGS.moments.least_slack,
            )
            if self.limited
            else 0.0
        )
        self._update()
        # Prices that fit the gradient best, and slacks that are positive and about centred.
        self.prices = np.linalg.lstsq(E * self.q[:, None], self.gradient * self.q)[0]
        mu = left * self.whole / k
        self.z = np.maximum(self.gradient - E @ self.prices, mu / self.q)
        if self.limited:
            self.beta = mu / self.slack

    def _update(self) -> None:
        M = (self.U * self.q[:, None]).T @ self.U
        self.inverse = inverse(M)
        self.B = self.inverse @ self.F
        self.UB = self.U @ self.B
        self.whole = float(np.einsum("ij,ij->", self.F, self.B))
        self.gradient = -(self.UB**2).sum(axis=1)

    @property
    def reduced_costs(self) -> FloatArray:
        """βH − ‖Bᵀt‖² − λ·v of every atom."""
        return np.asarray(self.gradient + self.beta * self.h - self.E @ self.prices)

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.q).all() and np.isfinite(self.prices).all() and np.isfinite(self.whole))

    @property
    def _gap(self) -> float:
        return float(self.q @ self.z + self.slack * self.beta)

    @property
    def is_feasible(self) -> bool:
        """Whether the mixture averages to the prior, and leaves open no more than may be."""
        return self._infeasibility < SETTINGS.tolerance.rounding and (
            not self.limited or float(self.h @ self.q) <= self.most
        )

    @property
    def _infeasibility(self) -> float:
        return float(np.abs((self.target - self.E.T @ self.q) / self.target).max())

    def is_optimal(self, tolerance: float) -> bool:
        """Whether the mixture is best up to the tolerance, and averages to the prior."""
        off = float(np.abs(self.q @ (self.reduced_costs - self.z)))
        return self._gap + off < tolerance * self.whole and self._infeasibility < SETTINGS.tolerance.rounding

    def step(self) -> bool:
        """One Newton step; whether it went anywhere."""
        k = len(self.q)
        WORK.entries += SETTINGS.work.descent + int(SETTINGS.work.cholesky * k**3)
        H = 2.0 * (self.U @ self.inverse @ self.U.T) * (self.UB @ self.UB.T)
        H[np.diag_indices(k)] += self.z / self.q
        columns = np.concatenate([self.E, -self.h[:, None]], axis=1) if self.limited else self.E
        scale = 1.0 / np.sqrt(np.diag(H))
        try:
            L = np.asarray(
                np.linalg.cholesky(H * np.outer(scale, scale) + SETTINGS.tolerance.regularised * np.eye(k)),
                dtype=np.float64,
            )
        except np.linalg.LinAlgError:
            return False
        half = solve_lower(L, columns * scale[:, None])
        S = half.T @ half
        mu = self._gap / (k + self.limited)
        predicted = self._direction(L, scale, half, S, np.zeros(k), 0.0)
        if predicted is None:
            return False
        reach = min(self._reach(predicted), 1.0)
        dq, _, dz, ds, db = predicted
        later = float(
            (self.q + reach * dq) @ (self.z + reach * dz) + (self.slack + reach * ds) * (self.beta + reach * db)
        )
        sigma = min(max(later / max(self._gap, SETTINGS.tolerance.tiny), SETTINGS.moments.least_centring), 1.0) ** 2
        corrected = self._direction(L, scale, half, S, sigma * mu - dq * dz, sigma * mu - ds * db)
        if corrected is None:
            return False
        reach = min(SETTINGS.moments.boundary * self._reach(corrected), 1.0)
        if not reach > SETTINGS.tolerance.feasible:
            return False
        dq, dl, dz, ds, db = corrected
        self.q, self.z, self.prices = self.q + reach * dq, self.z + reach * dz, self.prices + reach * dl
        self.slack, self.beta = self.slack + reach * ds, self.beta + reach * db
        self._update()
        return self.is_finite

    def _direction(
        self, L: FloatArray, scale: FloatArray, half: FloatArray, S: FloatArray, to: FloatArray, slack_to: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, float, float] | None:
        """Changes of q, λ, z, the slack and β after which q z = `to` and so on, to first order."""
        r1 = -self.reduced_costs + to / self.q
        missing = self.target - self.E.T @ self.q
        S = S.copy()
        if self.limited:
            over = self.most - float(self.h @ self.q) - self.slack - (slack_to / self.beta - self.slack)
            S[-1, -1] += self.slack / self.beta
            missing = np.append(missing, -over)
        r = solve_lower(L, r1 * scale)
        y = solve_least_norm(S, missing - half.T @ r)
        dq = scale * linalg.solve_triangular(L, r + half @ y, trans=1, lower=True, check_finite=False)
        dz = np.asarray(to / self.q - self.z - self.z / self.q * dq)
        if not (np.isfinite(dq).all() and np.isfinite(y).all()):
            return None
        if not self.limited:
            return dq, y, dz, 0.0, 0.0
        ds = slack_to / self.beta - self.slack - self.slack / self.beta * float(y[-1])
        return dq, y[:-1], dz, ds, float(y[-1])

    def _reach(self, direction: tuple[FloatArray, FloatArray, FloatArray, float, float]) -> float:
        """How far everything stays positive."""
        dq, _, dz, ds, db = direction
        values = np.concatenate([self.q, self.z, [self.slack, self.beta] if self.limited else []])
        changes = np.concatenate([dq, dz, [ds, db] if self.limited else []])
        falls = changes < 0
        return float((-values[falls] / changes[falls]).min(initial=np.inf))


# -- positive matrices, by their Cholesky factors, or by slower means where these break down ---------------------------


def solve_lower(L: FloatArray, right: FloatArray) -> FloatArray:
    """L⁻¹ times this, L with nothing above its diagonal."""
    return np.asarray(linalg.solve_triangular(L, right, lower=True, check_finite=False), dtype=np.float64)


def solve_least_norm(S: FloatArray, right: FloatArray) -> FloatArray:
    """The solution of S y = right for positive S; the least of all where rows say the same."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(S), SETTINGS.tolerance.tiny))
    scaled, goal = S * np.outer(scale, scale), right * scale
    try:
        factor = linalg.cho_factor(scaled, check_finite=False)
        y = linalg.cho_solve(factor, goal, check_finite=False)
        y = y + linalg.cho_solve(factor, goal - scaled @ y, check_finite=False)  # refined once
        if np.abs(scaled @ y - goal).max() <= SETTINGS.tolerance.near * np.abs(goal).max():
            return np.asarray(scale * y, dtype=np.float64)
    except linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(S, right, rcond=1e-15)[0], dtype=np.float64)


def inverse(M: FloatArray) -> FloatArray:
    """M⁻¹; where M is all but singular, the inverse on what it reaches, which takes five times as long."""
    try:
        half = solve_lower(np.asarray(np.linalg.cholesky(M), dtype=np.float64), np.eye(len(M)))
        if np.square(half).sum() * np.trace(M) < SETTINGS.tolerance.condition * len(M):
            return np.asarray(half.T @ half)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.pinv(M, hermitian=True))
