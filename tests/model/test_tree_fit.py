"""The private fit of a tree model: its ε_c, exactly, on small tables; and how well it describes large ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from benchmarks.published_model import fit_tree_model, measure_tree

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError, DistributionError, ParameterError
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published import measurement
from privacyfunnel.model.published.measurement import (
    CodedTable,
    TreeMeasurement,
    choose_edges,
    estimate_margins,
    score_pairs,
)
from privacyfunnel.model.published.model_quality import measure_quality
from privacyfunnel.model.published.noise import NOISES, NoiseSource, OwnNoise, noise_variance
from privacyfunnel.model.published.tree_fit import smooth_tree
from privacyfunnel.model.published.tree_model import UNIT, TreeModel
from privacyfunnel.model.published.wide_fit import FOUND, fit_wide_model
from privacyfunnel.tables.readers.adult import write_adult_csv
from tests.model.test_tree_model import named, random_model, random_words


def coded(rows: IntArray, c: int, sizes: list[int]) -> CodedTable:
    """Rows with the secret first."""
    attributes = tuple(named(f"x{j}", size) for j, size in enumerate(sizes))
    return CodedTable(named("s", c), attributes, rows[:, 0], rows[:, 1:])


def seeded(seed: int) -> Callable[[Fraction], NoiseSource]:
    return partial(OwnNoise, randbelow=Random(seed).randrange)


def draw_rows(model: TreeModel, n: int, seed: int) -> IntArray:
    words = random_words(np.random.default_rng(seed), model, n)
    return np.column_stack([model.sample_secrets(words), model.sample(words)]).astype(np.int64)


def table_of(model: TreeModel, rows: IntArray) -> CodedTable:
    return CodedTable(model.secret, model.attributes, rows[:, 0], rows[:, 1:])


@dataclass
class ChosenNoise:
    """Noise of this rate that is `first` in the first table and nothing elsewhere."""

    rate: Fraction
    first: int

    def draw(self, size: int) -> list[int]:
        drawn, self.first = [self.first] * size, 0
        return drawn


@pytest.mark.parametrize(("first", "shown"), [(4000, True), (0, False)])
@pytest.mark.parametrize("alone", [False, True])
def test_whether_there_are_other_labels_follows_from_noisy_counts_alone(first: int, shown: bool, alone: bool) -> None:
    """One row with a label of its own must not be what makes `other` appear."""
    rows = np.array([(s, x, z) for s, x, z in product(range(2), range(2), range(2))] * 5000)
    rows[0, 1] = 2 if alone else 0
    noise = ChosenNoise(Fraction(0), first)

    def source(rate: Fraction) -> NoiseSource:
        noise.rate = rate
        return noise

    one = Fraction(1)
    fit = fit_wide_model(coded(rows, 2, [3 if alone else 2, 2]), one, 2 * one, source, (True, [FOUND, FOUND]))
    assert ("other" in fit.columns[0].labels) is shown


# -- privacy -------------------------------------------------------------------------------------------------------

ROWS = [np.array(row) for row in product(range(2), repeat=4)]  # a secret and three columns, two labels each


def small_tables() -> Iterator[tuple[IntArray, IntArray]]:
    """Every table of two rows, with every table that has another row in the place of its first."""
    for first, second, other in product(ROWS, repeat=3):
        yield np.array([first, second]), np.array([other, second])


def test_one_row_changes_every_table_and_every_score_by_at_most_two() -> None:
    margins = [np.array([1.3, 0.7]), np.array([0.6, 1.4]), np.array([1.0, 1.0])]
    candidates = list(combinations(range(3), 2))
    largest = np.zeros(2, dtype=np.int64)
    scores = {}
    for rows, others in small_tables():
        one, two = coded(rows, 2, [2, 2, 2]), coded(others, 2, [2, 2, 2])
        for columns in ([0], [2], [0, 1], [1, 2]):
            moved = np.abs(one.count(columns, by_secret=True) - two.count(columns, by_secret=True)).sum()
            largest[0] = max(largest[0], moved)
        for table in (one, two):
            key = table.codes.tobytes()
            if key not in scores:
                scores[key] = score_pairs(table, candidates, margins)
        largest[1] = max(largest[1], np.abs(scores[one.codes.tobytes()] - scores[two.codes.tobytes()]).max())
    assert largest.tolist() == [2, 2]


@dataclass
class Script:
    """Noise that is handed in, and is drawn in this order."""

    rate: Fraction
    values: list[int]

    def draw(self, count: int) -> list[int]:
        drawn, self.values = self.values[:count], self.values[count:]
        assert len(drawn) == count
        return drawn


@pytest.mark.parametrize("number", [1, 2])
def test_a_choice_of_edges_is_reached_from_neighbouring_scores_by_noise_that_is_moved_by_four(number: int) -> None:
    """The proof's one-to-one map, for all scores that differ by up to two, all noise around them, and all ties."""
    candidates = list(combinations(range(3), 2))
    for scores, noise in product(([0, 0, 0], [3, 0, 1]), product(range(-2, 3), repeat=3)):
        found = choose_edges(3, (), candidates, np.array(scores), number, Script(Fraction(1), list(noise)))
        for change in product((-2, -1, 0, 1, 2), repeat=3):
            moved = [z - d + 2 if edge in found else z for z, d, edge in zip(noise, change, candidates, strict=True)]
            others = np.array(scores) + np.array(change)
            assert choose_edges(3, (), candidates, others, number, Script(Fraction(1), moved)) == found
            assert sum(abs(a - b) for a, b in zip(moved, noise, strict=True)) <= 4 * number


@dataclass
class Tape:
    """A source whose noise is written down in the order in which it is drawn, with its rate; or read from there."""

    random: Random
    replay: list[int] | None = None
    draws: list[tuple[Fraction, int]] = field(default_factory=list)

    def __call__(self, rate: Fraction) -> NoiseSource:
        return TapedNoise(rate, self)


@dataclass
class TapedNoise:
    rate: Fraction
    tape: Tape

    def draw(self, count: int) -> list[int]:
        if self.tape.replay is None:
            drawn = [self.tape.random.randrange(-2, 3) for _ in range(count)]
        else:
            drawn, self.tape.replay = self.tape.replay[:count], self.tape.replay[count:]
        self.tape.draws += [(self.rate, z) for z in drawn]
        return drawn


def test_every_outcome_is_reached_from_a_neighbouring_table_at_a_cost_of_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """End to end in fractions: the noise that gives a neighbour the same outcome is likelier by at most e^ε."""
    monkeypatch.setattr(measurement, "ROWS_PER_EDGE", 1)
    epsilon, random = Fraction(2), Random(0)
    candidates = list(combinations(range(3), 2))
    largest = Fraction(0)
    for rows, others in random.sample(list(small_tables()), 250):
        one, two = coded(rows, 2, [2, 2, 2]), coded(others, 2, [2, 2, 2])
        tape = Tape(random)
        seen = measure_tree(one, epsilon, tape)
        assert len(seen.edges) == seen.chosen == 2
        margins = estimate_margins(seen.pairs, 2, noise_variance(seen.rate))
        change = score_pairs(two, candidates, margins) - score_pairs(one, candidates, margins)
        chosen = [set(edge) for edge in seen.edges]
        m = 3
        noise = [z for _, z in tape.draws]
        pairs_end = sum(table.size for table in seen.pairs)
        moved = [
            *(int(z) for j in range(m) for z in (seen.pairs[j] - two.count([j], by_secret=True)).ravel()),
            *(
                z - int(d) + 2 if set(edge) in chosen else z
                for z, d, edge in zip(noise[pairs_end : pairs_end + 3], change, candidates, strict=True)
            ),
            *(
                int(z)
                for edge, table in zip(seen.edges, seen.triples, strict=True)
                for z in (table - two.count(edge, by_secret=True)).ravel()
            ),
        ]
        again = measure_tree(two, epsilon, Tape(random, moved))
        assert again.edges == seen.edges
        for mine, theirs in zip((*seen.pairs, *seen.triples), (*again.pairs, *again.triples), strict=True):
            assert (mine == theirs).all()
        cost = sum((r * abs(a - b) for (r, a), b in zip(tape.draws, moved, strict=True)), Fraction(0))
        assert cost <= epsilon
        largest = max(largest, cost)
    assert largest == epsilon


@pytest.mark.parametrize("source", sorted(NOISES))
def test_what_is_spent_is_what_is_stated(source: str) -> None:
    rows = draw_rows(random_model(np.random.default_rng(0), 2, [3, 2, 4]), 30_000, 1)
    table = coded(rows, 2, [3, 2, 4])
    seen = measure_tree(table, Fraction(1, 5), NOISES[source])
    spent = 2 * (3 + len(seen.edges)) * seen.rate + 4 * seen.chosen * seen.score_rate
    assert Fraction(1, 5) * (1 - Fraction(1, 10**9)) < spent <= Fraction(1, 5)
    with pytest.raises(ParameterError, match="must spend at most its ε"):
        TreeMeasurement(
            seen.rows,
            seen.epsilon * Fraction(99, 100),
            seen.pairs,
            seen.edges,
            seen.triples,
            seen.rate,
            seen.score_rate,
            seen.chosen,
        )


def test_the_number_of_edges_follows_from_public_numbers() -> None:
    rows = np.zeros((4000, 6), dtype=np.int64)
    for epsilon, expected in ((Fraction(1, 10), 0), (Fraction(1), 2), (Fraction(10), 4)):
        seen = measure_tree(coded(rows, 2, [2] * 5), epsilon, seeded(1))
        assert len(seen.edges) == expected
        assert (seen.score_rate > 0) == (expected > 0)


# -- quality -------------------------------------------------------------------------------------------------------


def test_with_a_large_budget_the_model_is_the_one_that_rows_were_drawn_from() -> None:
    model = random_model(np.random.default_rng(1), 3, [3, 4, 2, 3], skew=1.0)
    table = table_of(model, draw_rows(model, 200_000, 2))
    found = fit_tree_model(table, Fraction(100), seeded(3))
    quality, own = measure_quality(found, table), measure_quality(model, table)
    edges = {frozenset((j, parent)) for j, parent in enumerate(model.parents) if parent is not None}
    assert edges <= {frozenset((j, parent)) for j, parent in enumerate(found.parents) if parent is not None}
    assert quality.log_loss < own.log_loss + 2e-3
    assert quality.one_way < 1e-3
    assert quality.two_way < 5e-3


def test_pair_errors_are_those_of_the_exact_marginals() -> None:
    rng = np.random.default_rng(2)
    for sizes in ([2, 3, 2, 3], [2], [3, 3]):
        model = random_model(rng, 2, sizes)
        table = table_of(model, draw_rows(random_model(rng, 2, sizes), 500, 3))
        one, two = [], []
        for i, j in product(range(len(sizes)), repeat=2):
            exact = model.marginal([i, j] if i != j else [i]).sum(axis=0)
            gap = np.abs(
                (exact / exact.sum()).astype(float) - table.count([i, j] if i != j else [i], by_secret=False) / 500
            )
            if i == j:
                one.append(gap.mean())
            elif i < j:
                two.append(gap.sum() / 2)
        quality = measure_quality(model, table)
        assert quality.one_way == pytest.approx(np.mean(one))
        assert quality.two_way == pytest.approx(np.mean(two) if two else 0.0)


def test_the_base_is_the_loss_of_the_shares_of_the_secret() -> None:
    rows = np.array([[0, 0], [0, 0], [0, 1], [1, 1]])
    quality = measure_quality(fit_tree_model(coded(rows, 2, [2]), Fraction(1), seeded(0)), coded(rows, 2, [2]))
    assert quality.base == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25))


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    path = Path(tmp_path_factory.mktemp("adult")) / "adult.csv"
    write_adult_csv(path)
    return pl.read_csv(path)


def code_frame(frame: pl.DataFrame, secret: str) -> CodedTable:
    columns = {name: np.unique(frame[name].to_numpy(), return_inverse=True) for name in frame.columns}
    attributes = {name: Attribute(name, tuple(map(str, labels))) for name, (labels, _) in columns.items()}
    others = [name for name in frame.columns if name != secret]
    codes = np.column_stack([columns[name][1] for name in others])
    return CodedTable(attributes[secret], tuple(attributes[name] for name in others), columns[secret][1], codes)


@pytest.mark.parametrize(("secret", "most"), [("income", 0.40), ("occupation", 2.15)])
def test_a_fifth_of_epsilon_is_enough_for_the_census(adult: pl.DataFrame, secret: str, most: float) -> None:
    table = code_frame(adult, secret)
    small, large = (
        measure_quality(fit_tree_model(table, epsilon, seeded(1)), table) for epsilon in (Fraction(1, 5), Fraction(1))
    )
    assert small.log_loss < most < 0.9 * small.base
    assert large.log_loss < small.log_loss
    assert large.two_way < small.two_way < 0.11
    assert not small.is_too_poor


def test_a_model_of_noise_alone_says_that_it_is_too_poor() -> None:
    """At ε_c = 0.001 nothing can be known of 2000 rows."""
    model = random_model(np.random.default_rng(4), 2, [4, 4, 4])
    table = table_of(model, draw_rows(model, 2000, 5))
    found = [measure_quality(fit_tree_model(table, Fraction(1, 1000), seeded(seed)), table) for seed in range(8)]
    assert sum(quality.is_too_poor for quality in found) >= 4
    assert not measure_quality(fit_tree_model(table, Fraction(10), seeded(1)), table).is_too_poor


# -- bad input -----------------------------------------------------------------------------------------------------


def test_two_hundred_columns_run() -> None:
    rng = np.random.default_rng(10)
    rows = rng.integers(0, 3, (1500, 201))
    rows[:, 0] %= 2
    table = coded(rows, 2, [3] * 200)
    found = fit_tree_model(table, Fraction(2), seeded(1))
    quality = measure_quality(found, table)
    assert np.isfinite(found.ratios(table.codes)).all()
    assert np.isfinite(quality.log_loss)
    assert 0 < quality.two_way < 1


def test_one_row_one_label_and_one_secret_are_a_table() -> None:
    for rows, c, sizes in (([[0, 0]], 1, [1]), ([[1, 0, 2]], 2, [1, 3])):
        found = fit_tree_model(coded(np.array(rows), c, sizes), Fraction(1, 2), seeded(1))
        assert int(found.shares.sum()) == UNIT


def test_codes_and_columns_that_cannot_be_are_refused() -> None:
    with pytest.raises(DistributionError, match="Codes of 'x0' must be below 2"):
        coded(np.array([[0, 2]]), 1, [2])
    with pytest.raises(DistributionError, match="Coded rows must have"):
        coded(np.zeros((0, 2), dtype=np.int64), 1, [2])
    with pytest.raises(ColumnError, match=r"'x0' has 100,000. Leave it out, publish a prefix"):
        coded(np.array([[0, 2]]), 1, [100_000])


def test_noise_of_known_size_is_shrunk_away() -> None:
    """Of columns that are independent of the secret almost nothing is left, whatever the noise says."""
    rows = np.random.default_rng(11).integers(0, 4, (20_000, 4))
    rows[:, 0] %= 2
    table = coded(rows, 2, [4, 4, 4])
    seen = measure_tree(table, Fraction(1, 10), seeded(12))
    found = smooth_tree(seen, table.secret, table.attributes)
    raw = np.abs(seen.pairs[0][0] / seen.pairs[0][0].sum() - seen.pairs[0][1] / seen.pairs[0][1].sum()).sum()
    smooth = np.abs(found.tables[0][0, 0] - found.tables[0][1, 0]).sum() / UNIT
    assert smooth < raw / 2
