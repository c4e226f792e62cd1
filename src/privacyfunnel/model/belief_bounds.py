r"""How far a belief may move: what a promise of size ε leaves of somebody's belief about one value of the secret.

A record y moves the belief p = P(s) to v = P(s | y). Where every secret's belief may move by a factor of e^ε, the
others' beliefs, which sum to 1 − v, may as well, and

.. math:: \max(p e^{-\varepsilon},\ 1 - (1 - p) e^{\varepsilon}) \le v
   \le \min(p e^{\varepsilon},\ 1 - (1 - p) e^{-\varepsilon}).

Where any two secrets make y likely within e^ε of each other, the odds move by that factor:

.. math:: \frac{p}{p + (1 - p) e^{\varepsilon}} \le v \le \frac{p e^{\varepsilon}}{p e^{\varepsilon} + 1 - p}.
"""

from __future__ import annotations

import math

LARGEST = 700.0  # ε: e to the power of more is beyond all floats


def factor_bounds(prior: float, epsilon: float, down: float | None = None) -> tuple[float, float]:
    """The least and the largest belief after each secret's rose by a factor of at most e^ε, and fell by e^down.

    Without `down` that is ε too; an infinite one leaves it open.

    >>> least, most = factor_bounds(0.3, 1.0)
    >>> round(least, 4), round(most, 4)
    (0.1104, 0.7425)
    """
    factor, other = math.exp(min(epsilon, LARGEST)), 1.0 - prior
    fall = factor if down is None else math.exp(min(down, LARGEST))
    return max(prior / fall, 1.0 - other * factor), min(prior * factor, 1.0 - other / fall)


def odds_bounds(prior: float, epsilon: float) -> tuple[float, float]:
    """The least and the largest belief after the odds between any two secrets were moved by at most e^ε.

    >>> least, most = odds_bounds(0.3, 1.0)
    >>> round(least, 4), round(most, 4)
    (0.1362, 0.5381)
    """
    factor, other = math.exp(min(epsilon, LARGEST)), 1.0 - prior
    return prior / (prior + other * factor) if prior else 0.0, prior * factor / (prior * factor + other)
