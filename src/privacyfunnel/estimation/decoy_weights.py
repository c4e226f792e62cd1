r"""Sums over the original records from "real or synthetic" ones: a weight per row, and decoys with negative weights.

Row i is published as itself with probability :math:`a(x_i)`, so weights 1/a(y) count every real row once in the mean;
what synthetic rows add is known but for how many there are. With :math:`R_{jk} = \alpha_{jk}/\bar\alpha_j` and
:math:`F_k = \mathbb E_{\tilde p}[f(x)/a(x);\, k(x) = k]`,

.. math:: \mathbb E \sum_i \frac{f(y_i)}{a(y_i)} = \sum_i f(x_i) + \sum_j B_j (R F)_j,
   \qquad B_j = \sum_{i:\, k(x_i) = j} (1 - a(x_i)) .

B is a sum over the original records too. For :math:`f = 1_{k(x) = j} (1 - a(x))` this reads
:math:`\mathbb E\, b = (I + G R^T) B`, with :math:`b_j = \sum_{i:\, k(y_i) = j} (1 - a(y_i))/a(y_i)` and G the
diagonal matrix of :math:`\mathbb E_{\tilde p}[(1 - a)/a;\, k(x) = j]`. So with
:math:`h = (I + R G)^{-1} R F` every row contributes

.. math:: z_i = \frac{f(y_i) - (1 - a(y_i))\, h_{k(y_i)}}{a(y_i)}, \qquad \mathbb E[z_i \mid x_i] = f(x_i),

whatever the other rows are. The same sum is that of f over rows with weights 1/a and public decoys x′ ~ p̃ with weights
:math:`-\lambda_{k(x')} / (N a(x'))`, :math:`\lambda = R^T (I + G R^T)^{-1} b`, in any program that takes weights.
Var z_i = E z_i² − f(x_i)², and f² is estimated like f.

Records that are never published as they are (a = 0) cannot be counted: estimates are biased by as much as there are
(`uncounted_share`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.mechanisms.decoy_slacks import acceptance_rates, can_list
from privacyfunnel.mechanisms.likely_records import simulate_codes
from privacyfunnel.mechanisms.real_or_synthetic import KEEP_BITS, RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.published.tree_model import UNIT, CodeArray

MOST_LISTED = 1 << 16  # combinations that are decoys one by one; of more, as many are drawn as were asked for


@dataclass(frozen=True, eq=False)
class KnownRecords:
    """Records whose probability of being published, and class, are known."""

    codes: CodeArray
    classes: IntArray
    keep: FloatArray  # a(x)

    @classmethod
    def find(cls, mechanism: RealOrSynthetic, codes: NDArray[np.integer[Any]]) -> KnownRecords:
        """What the mechanism says of records."""
        classes, keep = mechanism.assess(codes)
        return cls(np.asarray(codes, dtype=np.int32), classes, keep / 2.0**KEEP_BITS)

    @cached_property
    def weights(self) -> FloatArray:
        """1/a, and 0 where a is 0."""
        return np.divide(1.0, self.keep, out=np.zeros_like(self.keep), where=self.keep > 0)

    def add_by_class(self, summands: FloatArray, classes: int) -> FloatArray:
        """The sum of one number per record in each class."""
        return np.bincount(self.classes, summands, classes).astype(np.float64)


@dataclass(frozen=True, eq=False)
class WeightedRelease:
    """Published rows and public decoys, with weights by which sums over both estimate sums over the original rows."""

    mechanism: RealOrSynthetic
    rows: KnownRecords
    decoys: KnownRecords
    shares: FloatArray  # of every decoy under p̃

    @classmethod
    def weigh(
        cls, mechanism: RealOrSynthetic, published: NDArray[np.integer[Any]], stream: KeyStream, decoys: int
    ) -> WeightedRelease:
        """The release of these rows; decoys are all combinations where they are few, else drawn by a public stream."""
        codes, shares = draw_decoys(mechanism, stream, decoys)
        return cls(
            mechanism, KnownRecords.find(mechanism, published), KnownRecords.find(mechanism, codes), np.asarray(shares)
        )

    @cached_property
    def _rates(self) -> FloatArray:
        """R, from the shares of classes among the decoys."""
        return acceptance_rates(self.mechanism, self.decoys.add_by_class(self.shares, self.mechanism.classes))

    @cached_property
    def _replaced(self) -> FloatArray:
        """The diagonal of G."""
        odds = self.shares * (1.0 - self.decoys.keep) * self.decoys.weights
        return self.decoys.add_by_class(odds, self.mechanism.classes)

    @property
    def uncounted_share(self) -> float:
        """The share of records under p̃ that are never published as they are: no estimate knows of them."""
        return float(self.shares[self.decoys.keep == 0].sum())

    def weigh_again(self, published: NDArray[np.integer[Any]]) -> WeightedRelease:
        """Other rows of the same mechanism, with the same decoys."""
        return WeightedRelease(self.mechanism, KnownRecords.find(self.mechanism, published), self.decoys, self.shares)

    @cached_property
    def synthetic_density(self) -> FloatArray:
        """W of every class: how many synthetic records there are for each record of the model, all together."""
        left = self.decoys.add_by_class(self.shares * (1.0 - self.decoys.keep), self.mechanism.classes)
        return left @ self._rates

    @property
    def row_weights(self) -> FloatArray:
        """1/a(y) of every row."""
        return self.rows.weights

    @cached_property
    def decoy_weights(self) -> FloatArray:
        """The weight of every decoy: never positive but for noise."""
        k, rates = self.mechanism.classes, self._rates
        seen = self.rows.add_by_class((1.0 - self.rows.keep) * self.rows.weights, k)
        added = rates.T @ np.linalg.solve(np.eye(k) + self._replaced[:, None] * rates.T, seen)
        return -added[self.decoys.classes] * self.decoys.weights * self.shares

    def estimate_counts(self, of_rows: IntArray, of_decoys: IntArray, cells: int) -> tuple[FloatArray, FloatArray]:
        """How many original rows are in each cell, and the variance of that, given the cells of rows and decoys.

        The indicator of a cell is its own square, so that Var z sums up to Σ z² less the count itself. Decoys that were
        drawn add the variance of their weights.
        """
        k, rates = self.mechanism.classes, self._rates
        weights, left = self.rows.weights, 1.0 - self.rows.keep
        added = _sum_cells(self.decoys.classes, of_decoys, self.shares * self.decoys.weights, (k, cells))
        offset = np.linalg.solve(np.eye(k) + rates * self._replaced, rates @ added)  # h, classes × cells
        count = np.bincount(of_rows, weights, cells).astype(np.float64)
        count -= self.rows.add_by_class(left * weights, k) @ offset
        crossed = _sum_cells(self.rows.classes, of_rows, weights**2 * left, (k, cells))
        square = np.bincount(of_rows, weights**2, cells) - 2.0 * (crossed * offset).sum(axis=0)
        square += self.rows.add_by_class((weights * left) ** 2, k) @ offset**2
        variance: FloatArray = np.maximum(square - count, 0.0)
        if not can_list(self.mechanism.model, MOST_LISTED):
            own = self.decoy_weights
            drawn = np.bincount(of_decoys, own**2, cells) - np.bincount(of_decoys, own, cells) ** 2 / len(own)
            variance += np.maximum(drawn, 0.0)
        return count, variance

    def contributions(self, of_rows: FloatArray, of_decoys: FloatArray) -> FloatArray:
        """z of every row: its mean is the function's value at the original row."""
        k, rates = self.mechanism.classes, self._rates
        added = self.decoys.add_by_class(self.shares * of_decoys * self.decoys.weights, k)
        offset = np.linalg.solve(np.eye(k) + rates * self._replaced, rates @ added)
        return np.asarray((of_rows - (1.0 - self.rows.keep) * offset[self.rows.classes]) * self.rows.weights)


def _sum_cells(classes: IntArray, cells: IntArray, summands: FloatArray, shape: tuple[int, int]) -> FloatArray:
    return np.bincount(classes * shape[1] + cells, summands, shape[0] * shape[1]).reshape(shape).astype(np.float64)


def draw_decoys(mechanism: RealOrSynthetic, stream: KeyStream, number: int) -> tuple[CodeArray, FloatArray]:
    """Public records and their shares under p̃: all combinations where they are few, else so many that were drawn."""
    model = mechanism.model
    if not can_list(model, MOST_LISTED):
        return _drop_impossible(mechanism, simulate_codes(model, stream, number), np.full(number, 1.0 / number))
    shape = tuple(len(attribute.labels) for attribute in model.attributes)
    codes = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1).astype(np.int32)
    shares = np.zeros(len(codes))
    for s, share in enumerate(model.shares):
        likelihood = np.full(len(codes), share / UNIT)
        for j, (parent, table) in enumerate(zip(model.parents, model.tables, strict=True)):
            likelihood *= table[s, 0 if parent is None else codes[:, parent], codes[:, j]] / UNIT
        shares += likelihood
    return _drop_impossible(mechanism, codes[shares > 0], shares[shares > 0])


def _drop_impossible(mechanism: RealOrSynthetic, codes: CodeArray, shares: FloatArray) -> tuple[CodeArray, FloatArray]:
    if mechanism.impossible is None:
        return codes, shares
    possible = ~mechanism.impossible.match(codes)
    return codes[possible], shares[possible]
