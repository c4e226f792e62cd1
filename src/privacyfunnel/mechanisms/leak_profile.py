r"""The whole leak of a mechanism, not only its maximum, exactly from its integers.

With w the weights of a prior and N the numerators of the mechanism, M(s, y) = Σ_x w(s, x) N(y | x) is P(s, y) over an
integer. From it follow, as fractions:

- how far a record moves beliefs, by the record that a person gets: the quantiles over people of
  :math:`\max_s |\ln P(s|y) / P(s)|`;
- Bayes vulnerability, the chance of naming the secret right: :math:`\max_s P(s)` before, :math:`\sum_y \max_s P(s, y)`
  after;
- Bayes security, the least part of an attacker's error that is left, over all priors:
  :math:`1 - \max_{s, s'} TV(P(\cdot|s), P(\cdot|s'))`, at an even prior on two values;
- the trade-off between these two values (f-DP): whoever takes s for s' with a chance of at most α takes s' for s with a
  chance of at least f(α). By Neyman and Pearson f is the polygon through sums over outputs in the order of their
  likelihood ratio;
- what other tools call it (δ-disclosure, β-likeness, t-closeness, ℓ-diversity), every output being a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.formatting import finite_or_none, format_factor, format_percent, format_places
from privacyfunnel.mechanisms.exact_arithmetic import log_above
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.model.disclosure_models import measure_disclosure
from privacyfunnel.model.each_secret import split_columns
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

PEOPLE = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100), Fraction(1))
MOST_PRODUCTS = 2 * 10**6  # of a weight and a numerator: about a second


@dataclass(frozen=True, slots=True)
class LeakProfile:
    """What a published record says about one secret, to whoever believes the prior."""

    secret: str
    quantiles: tuple[float, ...]  # log-ratios, rounded up, for the shares of people `PEOPLE`; the last is the largest
    before: Fraction  # the chance of naming the secret right
    after: Fraction
    security: Fraction  # Bayes security, over all priors
    pair: tuple[str, str]  # the two values that are told apart best
    trade_off: tuple[tuple[Fraction, Fraction], ...]  # (α, f(α)) at the corners, α rising
    others: dict[str, float]  # measures of other tools, an output being a class; records of a class are not known

    @property
    def spread(self) -> str:
        """How far beliefs move, by the record that a person gets; every figure rounded outwards."""
        factors = (f"×{format_factor(size)}" for size in self.quantiles)
        most = dict(zip(factors, map(format_percent, map(float, PEOPLE)), strict=True))  # of people, for each factor
        each = ", ".join(f"{factor} for {share}" for factor, share in most.items())
        return f"beliefs about {self.secret} move by at most {each} of people"

    @property
    def text(self) -> str:
        """All of it in a sentence, rounded outwards."""
        guess = f"{format_percent(float(self.before))} of cases before and {format_percent(float(self.after), up=True)}"
        security = format_places(float(self.security), 3, down=True)
        delta, beta, t = (format_places(float(self.others[name]), 3, up=True) for name in ("delta", "beta", "t"))
        return (
            f"{self.spread}; the best guess is right in {guess} after; Bayes security {security} ({self.pair[0]} "
            f"against {self.pair[1]}); other tools call it δ-disclosure {delta}, β-likeness {beta}, t-closeness {t}, "
            f"ℓ-diversity {self.others['l']}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As one object of JSON; an infinite leak is null."""
        sizes = [size if np.isfinite(size) else None for size in self.quantiles]
        return {
            "secret": self.secret,
            "quantiles": {f"{float(share):g}": size for share, size in zip(PEOPLE, sizes, strict=True)},
            "guess_before": float(self.before),
            "guess_after": float(self.after),
            "bayes_security": float(self.security),
            "pair": list(self.pair),
            "trade_off": [[float(alpha), float(beta)] for alpha, beta in self.trade_off],
            "classes": {name: finite_or_none(size) for name, size in self.others.items()},
        }


def leak_profiles(mechanism: Mechanism, promise: Promise, joint: Joint) -> tuple[LeakProfile, ...]:
    """That of the secret, or of each of several that are promised each by itself; none where outputs are too many."""
    numerators = mechanism.numerators(MOST_PRODUCTS // (1 if mechanism.sees_secret else len(joint.weights)))
    if numerators is None:
        return ()
    masses = _output_masses(numerators, joint, mechanism.sees_secret)
    if not promise.by_column:
        return (_profile(joint.secret_name, joint.secrets, masses),)
    found = []
    for name, (labels, values) in split_columns(joint).items():
        found.append(_profile(name, labels, np.array([masses[held].sum(axis=0) for held in values], dtype=object)))
    return tuple(found)


def _output_masses(numerators: NDArray[Any], joint: Joint, sees_secret: bool) -> NDArray[Any]:
    """M(s, y), integers, without outputs that nobody gets."""
    weights = joint.weights.astype(object)
    c, a = weights.shape
    if sees_secret:
        cells = numerators.reshape(len(numerators), c, a)
        masses = np.array([(cells[:, s] * weights[s]).sum(axis=1) for s in range(c)], dtype=object)
    else:
        masses = weights @ numerators[:, :a].T
    return np.asarray(masses[:, masses.sum(axis=0) > 0])


def _profile(name: str, labels: Sequence[str], masses: NDArray[Any]) -> LeakProfile:
    rows, columns, total = masses.sum(axis=1), masses.sum(axis=0), int(masses.sum())
    leaks = []
    for column, mass in zip(masses.T, columns, strict=True):  # P(s|y) / P(s) = M total / (row × column)
        moves = [Fraction(int(m) * total, int(r) * int(mass)) for m, r in zip(column, rows, strict=True)]
        leaks.append((max(*moves, 1 / min(moves)) if min(moves) else None, int(mass)))
    leaks.sort(key=lambda leak: (leak[0] is None, leak[0] or 0))
    reached = np.cumsum(np.array([mass for _, mass in leaks], dtype=object))
    ratios = [leaks[next(i for i, mass in enumerate(reached) if mass >= share * total)][0] for share in PEOPLE]
    given = (masses / rows[:, None]).astype(np.float64)
    apart = np.array([[np.abs(one - other).sum() for other in given] for one in given])  # floats only choose the pair
    s, t = divmod(int(apart.argmax()), len(apart))
    curve = _trade_off([int(m) for m in masses[s]], [int(m) for m in masses[t]])
    return LeakProfile(
        name,
        tuple(float("inf") if ratio is None else log_above(ratio) for ratio in ratios),
        Fraction(int(rows.max()), total),
        Fraction(int(masses.max(axis=0).sum()), total),
        min(alpha + beta for alpha, beta in curve),  # 1 − TV
        (labels[s], labels[t]),
        curve,
        {name: size for name, size in measure_disclosure(masses).to_dict().items() if name not in ("k", "unique")},
    )


def _trade_off(first: Sequence[int], second: Sequence[int]) -> tuple[tuple[Fraction, Fraction], ...]:
    """Corners of f: outputs are taken for the second value in falling order of P(y|second) / P(y|first)."""

    def compare(y: int, z: int) -> int:
        return first[y] * second[z] - first[z] * second[y]

    order = sorted(range(len(first)), key=cmp_to_key(compare))
    one, other = sum(first), sum(second)
    corners, wrong, right = [(Fraction(0), Fraction(1))], 0, 0
    for y in order:
        wrong, right = wrong + first[y], right + second[y]
        corners.append((Fraction(wrong, one), 1 - Fraction(right, other)))
    return tuple(corners)
