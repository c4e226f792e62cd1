"""What the whole published table tells: nothing beyond one's own record if records are independent, and a secret with
certainty to whoever knows the exact counts (docs/theory.md, Theorem 58 and Counterexample 59)."""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import exp, prod

import numpy as np
import pytest

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP

EPSILON = 0.01
RECORDS = ("a", "a", "b", "c")
SECRET_OF = {"a": 1, "b": 0, "c": 0}
VALUES = ("a", "b", "c")
JOINT = Joint.from_counts([[0, 1, 1], [2, 0, 0]], secret=["0", "1"], values=list(VALUES))

Outputs = tuple[int, ...]
Belief = Callable[[Outputs, int], Fraction]


@pytest.fixture(scope="module")
def chances() -> dict[str, list[Fraction]]:
    """P(y | x) of a protocol that is certified for ε = 0.01."""
    best = optimal(JOINT, LIP(EPSILON))
    assert seal(best.protocol, LIP(EPSILON), JOINT).epsilon <= EPSILON
    rounded = np.round(best.protocol.channel * 10**9).astype(int)
    return {value: [Fraction(int(n), int(row.sum())) for n in row] for value, row in zip(VALUES, rounded, strict=True)}


def belief(chances: dict[str, list[Fraction]], tables: dict[tuple[str, ...], Fraction]) -> Belief:
    """P(S_i = 1 | outputs) for somebody to whom these tables have these probabilities."""

    def posterior(outputs: Outputs, i: int) -> Fraction:
        weights = {
            table: prior * prod(chances[value][y] for value, y in zip(table, outputs, strict=True))
            for table, prior in tables.items()
        }
        return sum((w for table, w in weights.items() if SECRET_OF[table[i]]), Fraction(0)) / sum(weights.values())

    return posterior


def releases(chances: dict[str, list[Fraction]]) -> dict[Outputs, Fraction]:
    """Every table that can be published of these four records, with its chance."""
    columns = range(len(chances["a"]))
    found = {
        outputs: prod((chances[value][y] for value, y in zip(RECORDS, outputs, strict=True)), start=Fraction(1))
        for outputs in product(columns, repeat=len(RECORDS))
    }
    return {outputs: chance for outputs, chance in found.items() if chance}


def test_to_whoever_knows_the_distribution_other_rows_tell_nothing(chances: dict[str, list[Fraction]]) -> None:
    share = {value: Fraction(RECORDS.count(value), len(RECORDS)) for value in VALUES}
    independent = {
        table: prod((share[value] for value in table), start=Fraction(1))
        for table in product(VALUES, repeat=len(RECORDS))
    }
    whole = belief(chances, independent)
    alone = belief(chances, {(value,): share[value] for value in VALUES})
    for outputs in list(releases(chances))[::5]:
        for i in range(len(RECORDS)):
            assert whole(outputs, i) == alone((outputs[i],), 0)
            assert exp(-EPSILON) / 2 - 1e-6 <= whole(outputs, i) <= exp(EPSILON) / 2 + 1e-6


def test_to_whoever_knows_the_exact_counts_other_rows_tell_a_secret_with_certainty(
    chances: dict[str, list[Fraction]],
) -> None:
    tables = sorted(set(permutations(RECORDS)))
    posterior = belief(chances, {table: Fraction(1, len(tables)) for table in tables})
    certain = sum(
        chance
        for outputs, chance in releases(chances).items()
        if any(posterior(outputs, i) in (0, 1) for i in range(len(RECORDS)))
    )
    assert 0.4 < certain < 0.6
