r"""The search where a promise has many rows: walks by linear programmes (HiGHS) over some inputs at a time.

The reduced cost :math:`H(v) - \lambda \cdot v` is concave, so it lies below its tangent at v everywhere:

.. math:: H(u) \le -\sum_z u_z \ln v_z .

The vertex u that is cheapest under the tangent therefore costs no more than v does, and the walk goes on from there
until nothing is cheaper. A step is a linear programme with a row per comparison; walks.py would invert such a basis for
each of its walks. An atom has few inputs, and most rows say nothing about a few: so each walk stays among some inputs,
chosen by chance around an atom that is cheap already.
"""

from functools import cached_property
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csc_array

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.vertices import IMPROVES, reduced_costs
from privacyfunnel.engine.walks import PREFERENCE

WALKS = 16
TOGETHER = 128  # inputs of one walk
POOL = 512
LONGEST = 10  # steps
NEAR_ZERO = 1e-9  # an entry that is 0 has no tangent; it is treated as if it were this
DUST = 1e-12
DUAL, PRIMAL = 1, 4  # which simplex method: from nothing, or where only the cost changes


class ProgrammeWalks:
    """Walks over vertices of {v : rows·v >= 0, Σ v = 1, v >= 0}, and the atoms last met."""

    patience = 8  # each search looks at little

    def __init__(self, rows: FloatArray, prior: FloatArray) -> None:
        self._rows, self._prior = rows, prior
        self._random = np.random.default_rng(1)
        self._pool = np.empty((0, prior.size))
        self._together = TOGETHER

    @cached_property
    def _whole(self) -> "_Programme":
        """The programme over all inputs, kept from walk to walk."""
        return _Programme(self._rows, self._prior, PRIMAL if self._prior.size <= TOGETHER else DUAL)

    def towards_each(self) -> FloatArray:
        """None: a programme per input, each far from the last, takes longer than what it finds is worth."""
        return self._pool[:0]

    def downhill(self, prices: FloatArray) -> FloatArray:
        """What walks pass that begin anywhere."""
        return self.cover(prices, self._prior)

    def cover(self, prices: FloatArray, missing: FloatArray) -> FloatArray:
        """What walks pass that begin near what is missing, every other one from an atom that is cheap already."""
        near = self._pool[np.argsort(reduced_costs(self._pool, prices))[:WALKS]]
        met: list[FloatArray] = []
        nowhere = 0
        for number, wanted in enumerate(self._random.choice(self._prior.size, WALKS, p=missing / missing.sum())):
            from_atom = number % 2 == 1 and number < len(near)
            if from_atom:
                slopes = _tangents(near[number])
                inputs = self._around(np.flatnonzero(near[number]))
            else:
                slopes = self._random.exponential(size=self._prior.size) * self._random.uniform(0, 2)
                slopes[wanted] -= self._random.uniform(*PREFERENCE)
                inputs = self._around(np.array([wanted]))
            passed = self._walked(inputs, slopes, prices)
            nowhere += not passed
            met += passed
        if nowhere > WALKS // 2:  # at small ε no atom has few inputs
            self._together = min(2 * self._together, self._prior.size)
        return self._pooled(met)

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """What walks from these atoms pass."""
        met: list[FloatArray] = []
        for atom in atoms:
            met += self._walked(self._around(np.flatnonzero(atom)), _tangents(atom), prices)
        return self._pooled(met)

    def _around(self, inputs: IntArray) -> IntArray:
        """These inputs and others, up to as many as a walk may look at."""
        d = self._prior.size
        if d <= self._together:
            return np.arange(d)
        others = self._random.permutation(np.setdiff1d(np.arange(d), inputs))
        return np.sort(np.concatenate([inputs, others])[: self._together])

    def _walked(self, inputs: IntArray, slopes: FloatArray, prices: FloatArray) -> list[FloatArray]:
        """The atoms on a walk among these inputs; none where these alone make no allowed atom."""
        everywhere = inputs.size == self._prior.size
        cheapest = self._whole if everywhere else _Programme(self._rows[:, inputs], self._prior[inputs], DUAL)
        slopes, prices = slopes[inputs], prices[inputs]
        met: list[FloatArray] = []
        v = cheapest(slopes - prices)
        while v is not None and len(met) <= LONGEST:
            met.append(v)
            u = cheapest(_tangents(v) - prices)
            v = u if u is not None and _cost(u, prices) < _cost(v, prices) - IMPROVES else None
        atoms = np.zeros((len(met), self._prior.size))
        if met:
            atoms[:, inputs] = met
        return list(atoms)

    def _pooled(self, met: list[FloatArray]) -> FloatArray:
        different = {np.round(v, 10).tobytes(): v for v in met}
        atoms = np.array(list(different.values())).reshape(-1, self._prior.size)
        self._pool = np.concatenate([atoms, self._pool])[:POOL]
        return atoms


class _Programme:
    """The polytope over some inputs, in v / p, each row that says anything scaled to a largest entry of 1."""

    def __init__(self, rows: FloatArray, prior: FloatArray, strategy: int) -> None:
        self._prior = prior
        matrix = np.concatenate([np.ones((1, prior.size)), rows[rows.min(axis=1) < 0]]) * prior
        scale = np.abs(matrix).max(axis=1, keepdims=True)
        matrix /= scale
        entries = csc_array(matrix)
        solver: Any = highspy.Highs  # it comes without types
        self._highs = solver()
        for option, value in (("output_flag", False), ("threads", 1), ("simplex_strategy", strategy)):
            self._highs.setOptionValue(option, value)
        programme = highspy.HighsLp()
        programme.num_row_, programme.num_col_ = matrix.shape
        programme.col_cost_ = np.zeros(prior.size)
        programme.col_lower_, programme.col_upper_ = np.zeros(prior.size), np.full(prior.size, highspy.kHighsInf)
        one, above = 1.0 / scale[0], np.zeros(len(matrix) - 1)
        programme.row_lower_ = np.concatenate([one, above])
        programme.row_upper_ = np.concatenate([one, above + highspy.kHighsInf])
        programme.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        programme.a_matrix_.start_, programme.a_matrix_.index_ = entries.indptr, entries.indices
        programme.a_matrix_.value_ = entries.data
        self._highs.passModel(programme)

    def __call__(self, slopes: FloatArray) -> FloatArray | None:
        """The vertex that minimises slopes·v, if there is one."""
        d = self._prior.size
        self._highs.changeColsCost(d, np.arange(d, dtype=np.int32), slopes * self._prior)
        self._highs.run()
        # What a walk finds is checked by whoever uses it. A walk that the solver cannot go on with ends there.
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        ratio = np.array(self._highs.getSolution().col_value)
        v = np.where(ratio > DUST * ratio.max(), ratio, 0.0) * self._prior
        return np.asarray(v / v.sum())


def _cost(v: FloatArray, prices: FloatArray) -> float:
    return float(reduced_costs(v, prices))


def _tangents(v: FloatArray) -> FloatArray:
    return -np.log(np.maximum(v, NEAR_ZERO))
