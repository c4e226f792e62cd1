r"""Disclosure models of other tools, measured on what is published: k, ℓ, t, δ-disclosure, β-likeness, leakage.

An output y that somebody sees is what those tools call a class of records. With p(s|y) the share of a secret among its
records and p(s) that of the whole table,

.. math:: t = \max_y \tfrac{1}{2} \sum_s |p(s|y) - p(s)|, \qquad
   \delta = \max_{s,y} \left|\ln \frac{p(s|y)}{p(s)}\right|, \qquad
   \beta = \max_{s,y} \frac{p(s|y) - p(s)}{p(s)}, \qquad \mathrm{PML} = \ln(1 + \beta).

A secret that no record of a class has makes δ infinite; some tools skip it. Every class counts, also the one of
suppressed records. δ is the ε of LIP, and ln(1 + β) its upper half (docs/theory.md, the table of equivalences).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import DistributionError


@dataclass(frozen=True, slots=True)
class DisclosureMeasures:
    """What a table of classes gives away about the secret, in the words of other tools."""

    k: int  # records of the smallest class
    unique: int  # records that are the only one of their class
    distinct_secrets: int  # ℓ: different secrets in the class that has the fewest
    t_closeness: Fraction  # with equal distances: total variation
    delta_disclosure: float  # in nats; infinite where a class rules out a secret
    beta_likeness: Fraction
    likeliest_secret: Fraction  # the largest p(s | y): how sure somebody can become
    bayes_vulnerability: Fraction  # the chance of naming the secret right from the output
    maximal_leakage: float  # ln Σ_y max_s p(y | s)

    def to_dict(self) -> dict[str, float]:
        """As other tools name them; k and unique make sense where counts are records."""
        each = {"k": self.k, "unique": self.unique, "l": self.distinct_secrets}
        return {**each, "t": float(self.t_closeness), "delta": self.delta_disclosure, "beta": float(self.beta_likeness)}


def measure_disclosure(counts: IntArray) -> DisclosureMeasures:
    """The measures of a table of counts, secrets × classes; exact but for logarithms.

    >>> found = measure_disclosure(np.array([[3, 1], [1, 3]]))
    >>> found.k, found.distinct_secrets, found.t_closeness, found.beta_likeness, round(found.delta_disclosure, 4)
    (4, 2, Fraction(1, 4), Fraction(1, 2), 0.6931)
    """
    if counts.ndim != 2 or counts.size == 0 or counts.min() < 0 or counts.sum() == 0:
        raise DistributionError("Counts must fill a table of secrets and classes, with rows in it; these do not.")
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(object)  # exact: integers of any size
    rows = int(table.sum())
    secrets, classes = table.sum(axis=1), table.sum(axis=0)
    ratios = np.array(
        [
            [Fraction(int(cell * rows), int(secret * of)) for cell, of in zip(row, classes, strict=True)]
            for row, secret in zip(table, secrets, strict=True)
        ],
        dtype=object,
    )  # p(s|y)/p(s)
    shares = np.array([Fraction(int(secret), rows) for secret in secrets], dtype=object)
    posteriors = ratios * shares[:, None]
    weights = np.array([Fraction(int(of), rows) for of in classes], dtype=object)
    least, largest = min(ratios.ravel()), max(ratios.ravel())
    delta = math.inf if least == 0 else max(math.log(largest), -math.log(least))
    return DisclosureMeasures(
        k=int(min(classes)),
        unique=int((classes == 1).sum()),
        distinct_secrets=int((table > 0).sum(axis=0).min()),
        t_closeness=max((abs(column - shares).sum() / 2 for column in posteriors.T), default=Fraction(0)),
        delta_disclosure=delta,
        beta_likeness=largest - 1,
        likeliest_secret=max(posteriors.ravel()),
        bayes_vulnerability=sum((max(column) * weight for column, weight in zip(posteriors.T, weights, strict=True))),
        maximal_leakage=math.log(sum(max(column) * weight for column, weight in zip(ratios.T, weights, strict=True))),
    )
