"""Quantiles of a stream of numbers, in bounded memory."""

import numpy as np
import polars as pl

MOST_POINTS = 1 << 20  # numbers that are sorted in memory


class QuantileSummary:
    """Values v₁ < v₂ < … with weights: how many of the n numbers seen so far each value stands for.

    Up to 2²⁰ distinct numbers are counted exactly. When there are more, neighbours are merged into the largest of them,
    in groups of weight below n / 2¹⁷; a number that occurs n / 2¹⁸ times or more is never merged. So a merge moves the
    rank of any number by less than n / 2¹⁷, and one happens at most once per 2¹⁹ new numbers: for 10⁸ numbers, all
    different, a rank is off by less than 0.1 %.
    """

    def __init__(self) -> None:
        self._points = pl.DataFrame(schema={"value": pl.Float64, "weight": pl.Int64})
        self._waiting: list[pl.DataFrame] = []

    def add(self, numbers: pl.Series) -> None:
        """Take in numbers. Nulls and infinities, which no edge can separate, are left out."""
        values = numbers.filter(numbers.is_finite()).rename("value").to_frame()
        self._waiting.append(values.group_by("value").agg(pl.len().cast(pl.Int64).alias("weight")))
        if sum(frame.height for frame in self._waiting) >= MOST_POINTS // 2:
            self._settle()

    def edges(self, quantiles: int) -> tuple[float, ...]:
        """Edges that cut the numbers into bins of equal weight, as nearly as repeated numbers allow.

        Edge i is the smallest number with more than i·n / quantiles numbers up to it. Equal edges count once, and an
        edge at the smallest number would cut off nothing. Without numbers there are no edges.
        """
        self._settle()
        if self._points.is_empty():
            return ()
        values, upto = self._points["value"].to_numpy(), self._points["weight"].cum_sum().to_numpy()
        ranks = upto[-1] * np.arange(1, quantiles) / quantiles
        positions = np.searchsorted(upto, ranks, side="right")
        return tuple(np.unique(values[positions[positions > 0]]).tolist()) or (float(values[0]),)

    def _settle(self) -> None:
        points = pl.concat([self._points, *self._waiting]).group_by("value").agg(pl.col("weight").sum()).sort("value")
        self._waiting = []
        if points.height > MOST_POINTS:
            share = max(1, int(points["weight"].sum()) * 4 // MOST_POINTS)
            heavy = pl.col("weight") >= share
            part = pl.col("weight").cum_sum() // share
            # A group ends where a new share begins, and before and after a number that is heavy by itself.
            begins = (part != part.shift(fill_value=-1)) | heavy | heavy.shift(fill_value=False)
            groups = points.group_by(begins.cum_sum().alias("group"), maintain_order=True)
            points = groups.agg(pl.col("value").max(), pl.col("weight").sum()).select("value", "weight")
        self._points = points
