"""The protocol file of real or synthetic records, judged in fractions by every combination and every belief it covers.

From the file come the model (shares and chances in units of 2^-32), the classes and how they accept each other; from
the program only the integers a(x) that rows are drawn with. P(y | x) = a(x)[x = y] + (1 − a(x)) α_kk′ p̃(y) / ᾱ_k, and
P′(y | E) is extreme, over all beliefs p′ with the shares of the model and odds within γ, where p′(E | x) is filled up
to its limit in the order of P(y | x).
"""

import json
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sealing import SealedProtocol

UNIT, KEEP = 1 << 32, 1 << 63
Fractions = list[Fraction]


def exp_below(epsilon: Fraction) -> Fraction:
    """A fraction below e^ε, by less than 10^-40 of it."""
    with localcontext() as context:
        context.prec = 60
        power = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
    return Fraction(power) * (1 - Fraction(1, 10**40))


def worst_ratio(path: Path) -> tuple[Fraction, Fraction]:
    """The largest ratio that the promise compares, at any output and belief, and what it allows: both for records."""
    content = json.loads(path.read_text(encoding="utf-8"))
    promise, law = content["promise"], content["law"]
    p_s, given, codes = _model(content)
    p_x = [sum((p * row[i] for p, row in zip(p_s, given, strict=True)), Fraction(0)) for i in range(len(codes))]
    possible = [i for i, p in enumerate(p_x) if p]
    p_x, codes = [p_x[i] for i in possible], [codes[i] for i in possible]
    given = [[row[i] for i in possible] for row in given]
    of_class, a = _draws(path, codes)
    alpha = [[Fraction(each, UNIT) for each in row] for row in law["acceptance"]]
    shares = [
        sum((p for p, k in zip(p_x, of_class, strict=True) if k == each), Fraction(0)) for each in range(len(alpha))
    ]
    accepted = [sum((each * share for each, share in zip(row, shares, strict=True)), Fraction(0)) for row in alpha]
    worst, x_all = Fraction(0), range(len(codes))
    for y in x_all:
        replaced = [(1 - a[x]) * alpha[of_class[x]][of_class[y]] / accepted[of_class[x]] * p_x[y] for x in x_all]
        chances = [each + (a[x] if x == y else 0) for x, each in enumerate(replaced)]
        everybody = sum((p * each for p, each in zip(p_x, chances, strict=True)), Fraction(0))
        ends = [_extremes(p, row, p_x, chances, promise.get("robust")) for p, row in zip(p_s, given, strict=True)]
        others = [(everybody, everybody)] * len(ends) if promise["name"] == "LIP" else ends
        for i, (low, high) in enumerate(ends):
            for j, (least, most) in enumerate(others):
                if promise["name"] == "LIP" or i != j:
                    worst = max(worst, high / least, most / low) if low and least else Fraction(10**9)
    return worst, exp_below(Fraction(promise["epsilon"]))


def _model(content: Any) -> tuple[Fractions, list[Fractions], list[tuple[int, ...]]]:
    """p̃(s), p̃(x | s) and all combinations of labels."""
    model = content["model"]
    codes = list(product(*(range(len(column["labels"])) for column in content["publish"])))
    given = [
        [
            _product(
                Fraction(tables[s][0 if parent is None else x[parent]][x[j]], UNIT)
                for j, (parent, tables) in enumerate(zip(model["parents"], model["tables"], strict=True))
            )
            for x in codes
        ]
        for s in range(len(model["shares"]))
    ]
    if sum(model["shares"]) != UNIT or any(sum(row) != 1 for row in given):
        raise AssertionError("the chances of the model must sum to 1")
    return [Fraction(each, UNIT) for each in model["shares"]], given, codes


def _product(of: Iterable[Fraction]) -> Fraction:
    return reduce(mul, of, Fraction(1))


def _draws(path: Path, codes: list[tuple[int, ...]]) -> tuple[list[int], Fractions]:
    """The class of each combination and a(x), as rows are drawn with them."""
    mechanism = SealedProtocol.load(path).mechanism
    assert isinstance(mechanism, RealOrSynthetic)
    ratios = mechanism.model.ratios(np.array(codes, dtype=np.int32))
    classes = mechanism.classify(ratios)
    return classes.tolist(), [Fraction(int(n), KEEP) for n in mechanism.keep_numerators(ratios, classes)]


def _extremes(
    p: Fraction, given: Fractions, p_x: Fractions, chances: Fractions, odds: str | None
) -> tuple[Fraction, Fraction]:
    """The least and the largest P′(y | E) over all beliefs that are covered, where p is the share of E."""
    held = [p * row / all_ for row, all_ in zip(given, p_x, strict=True)]  # p(E | x)
    if odds is None:
        low = high = held
    elif odds == "any":
        low, high = [Fraction(0)] * len(held), [Fraction(1)] * len(held)
    else:
        gamma = Fraction(odds)
        low, high = ([h * g / (h * g + 1 - h) for h in held] for g in (1 / gamma, gamma))
    found = []
    for rising in (False, True):
        left = p - sum((all_ * h for all_, h in zip(p_x, low, strict=True)), Fraction(0))
        total = sum((all_ * h * q for all_, h, q in zip(p_x, low, chances, strict=True)), Fraction(0))
        for x in sorted(range(len(held)), key=chances.__getitem__, reverse=rising):
            more = min(left, p_x[x] * (high[x] - low[x]))
            left, total = left - more, total + more * chances[x]
        found.append(total / p)
    return found[0], found[1]
