r"""What is measured of a table for a published tree model, with differential privacy of size ε_c.

One row in the place of another changes the counts of any table by 2 altogether. In turn:

1. n(s, x_j) of every column, with discrete Laplace noise of rate r: 2r for each of m tables.
2. Which pairs of columns belong together. With E_ij ∝ n̂_i n̂_j from step 1, rounded to integers, a pair has the score

   .. math:: q_{ij} = \sum_{x_i, x_j} |n(x_i, x_j) - E_{ij}(x_i, x_j)| - e_{ij},

   how far it is from independence, less what sampling alone makes of it (a number that follows from E). Noise of rate
   ρ is added to each score, once, and of the forest of K edges with the largest noisy scores only the edges are used.
3. n(s, x_i, x_j) of every edge, with noise of rate r: 2r for each.

**Theorem.** All of it together is ε_c-differentially private where 2(m + K′)r + 4Kρ ≤ ε_c, with K′ edges of which K
were chosen by their scores.

*Proof.* Steps 1 and 3 are the Laplace mechanism, with what came before them given. For step 2 let q, q′ be the scores
of two neighbouring tables, which differ by at most 2 as E is given. Greedy choice outputs edges e₁, …, e_K in falling
order of noisy scores, ties by place. Fix the noise of all other pairs. If noise z leads to this outcome for q, then
z′ = z + q − q′ + 2 at the chosen edges does so for q′: each of their noisy scores is then what it was plus 2, so their
order among each other stays, and no other noisy score has grown by more than 2. This shifts K integers by at most 4
each, one to one, which changes the probability by e^{4ρ} for each. ∎

How many edges are worth their noise depends on public numbers alone: one for every 2000 rows · ε_c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ColumnError, DistributionError, ParameterError
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.noise import NoiseSource, noise_variance
from privacyfunnel.model.published.smoothing import project_to_total, smooth_pair_table

Edge = tuple[int, int]

FOR_CHOICE = Fraction(1, 20)  # of ε_c; all tables share the rest alike
ROWS_PER_EDGE = 2000  # rows · ε_c
MOST_LABELS = 10_000
MOST_TRIPLE_CELLS = 1 << 16  # a pair of columns with more is never measured together
_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class CodedTable:
    """The rows of a table as codes of labels that are public."""

    secret: Attribute
    attributes: tuple[Attribute, ...]
    secrets: NDArray[np.integer[Any]]  # n
    codes: NDArray[np.integer[Any]]  # n × m

    def __post_init__(self) -> None:
        if not len(self.secrets) or self.codes.shape != (len(self.secrets), len(self.attributes)):
            raise DistributionError(
                f"Coded rows must have a secret and {len(self.attributes)} columns each; these have the shapes "
                f"{self.secrets.shape} and {self.codes.shape}."
            )
        for attribute, codes in [
            (self.secret, self.secrets),
            *((attribute, self.codes[:, j]) for j, attribute in enumerate(self.attributes)),
        ]:
            size = len(attribute.labels)
            if size > MOST_LABELS:
                raise ColumnError(
                    f"A model takes columns of at most {MOST_LABELS:,} labels; '{attribute.name}' has {size:,}. Leave "
                    "it out, publish a prefix of it, or map its labels to fewer."
                )
            if not 0 <= codes.min() <= codes.max() < size:
                raise DistributionError(f"Codes of '{attribute.name}' must be below {size}; some are not.")

    @property
    def rows(self) -> int:
        return len(self.secrets)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(attribute.labels) for attribute in self.attributes)

    def count(self, columns: Sequence[int], *, by_secret: bool) -> IntArray:
        """The contingency table of some columns, in memory that does not grow with the rows."""
        sizes = [len(self.secret.labels)] if by_secret else []
        sizes += [self.sizes[j] for j in columns]
        counts = np.zeros(int(np.prod(sizes)), dtype=np.int64)
        for start in range(0, self.rows, _CHUNK):
            part = slice(start, start + _CHUNK)
            axes = [self.secrets[part]] if by_secret else []
            axes += [self.codes[part, j] for j in columns]
            place = axes[0].astype(np.int64)
            for axis, size in zip(axes[1:], sizes[1:], strict=True):
                place = place * size + axis
            counts += np.bincount(place, minlength=len(counts))
        return counts.reshape(sizes)


@dataclass(frozen=True, eq=False)
class TreeMeasurement:
    """Noisy tables of single columns and of the edges of a forest, each with the secret."""

    rows: int
    epsilon: Fraction  # ε_c
    pairs: tuple[IntArray, ...]  # of each column: c × labels
    edges: tuple[Edge, ...]  # parent and child; a parent comes before it is one
    triples: tuple[IntArray, ...]  # of each edge: c × labels of the parent × labels of the child
    rate: Fraction  # of the noise in all tables
    score_rate: Fraction  # of that in the scores; 0 where nothing was chosen
    chosen: int  # edges that were chosen by their scores
    totals: IntArray | None = None  # of each secret, where they were measured by themselves

    def __post_init__(self) -> None:
        tables = len(self.pairs) + len(self.triples) + (self.totals is not None)
        if 2 * tables * self.rate + 4 * self.chosen * self.score_rate > self.epsilon:
            raise ParameterError("A measurement must spend at most its ε; this one states less noise.")

    @property
    def parents(self) -> tuple[int | None, ...]:
        parent = {child: parent for parent, child in self.edges}
        return tuple(parent.get(j) for j in range(len(self.pairs)))


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """How ε_c is divided: a function of public numbers alone."""

    edges: int  # that are chosen by their scores
    rate: Fraction  # of the noise in all tables
    score_rate: Fraction  # of that in the scores; 0 where nothing is chosen

    @classmethod
    def divide(cls, epsilon: Fraction, rows: int, columns: int, fixed: int = 0, totals: int = 0) -> NoisePlan:
        """Equal noise for n(s, x_j) of every column, for every edge, and for `totals` tables more."""
        edges = max(min(int(rows * epsilon / ROWS_PER_EDGE), columns - 1) - fixed, 0)
        for_choice = FOR_CHOICE * epsilon if edges else Fraction(0)
        rate = (epsilon - for_choice) / (2 * (columns + fixed + edges + totals))
        return cls(edges, rate, for_choice / (4 * edges) if edges else Fraction(0))


def measure_edges(
    table: CodedTable,
    pairs: tuple[IntArray, ...],
    plan: NoisePlan,
    epsilon: Fraction,
    source: Callable[[Fraction], NoiseSource],
    fixed: Sequence[Edge] = (),
    totals: IntArray | None = None,
    first: Sequence[int] = (),
) -> TreeMeasurement:
    """What is measured after n(s, x_j), and n(s) where there are `totals`: edges, and the table of each.

    The `first` columns come before others of their tree.
    """
    c, m, sizes = len(table.secret.labels), len(table.attributes), table.sizes
    candidates = [(i, j) for i, j in combinations(range(m), 2) if c * sizes[i] * sizes[j] <= MOST_TRIPLE_CELLS]
    noise = source(plan.rate)
    edges, score_rate = list(fixed), Fraction(0)
    if plan.edges and candidates:
        score_noise = source(plan.score_rate)
        score_rate = score_noise.rate
        scores = score_pairs(table, candidates, estimate_margins(pairs, table.rows, noise_variance(noise.rate)))
        edges += choose_edges(m, fixed, candidates, scores, plan.edges, score_noise)
    directed = _direct(m, edges, first)
    triples = tuple(add_noise(table.count(edge, by_secret=True), noise) for edge in directed)
    chosen = len(edges) - len(fixed)
    return TreeMeasurement(table.rows, epsilon, pairs, directed, triples, noise.rate, score_rate, chosen, totals)


def add_noise(counts: IntArray, noise: NoiseSource) -> IntArray:
    """Counts with a draw of noise each."""
    return counts + np.array(noise.draw(counts.size), dtype=np.int64).reshape(counts.shape)


def choose_edges(
    m: int, fixed: Sequence[Edge], candidates: Sequence[Edge], scores: IntArray, number: int, noise: NoiseSource
) -> list[Edge]:
    """The edges that the largest noisy scores add to the fixed ones, ties by place."""
    order = np.argsort(-add_noise(scores, noise), kind="stable")
    return _grow_forest(m, fixed, [candidates[place] for place in order], number)


def combine_shares(tables: Sequence[NDArray[Any]], variances: Sequence[float], rows: int) -> FloatArray:
    """n_s from the tables n(s, x_j) of all columns, each with the weight that its noise leaves it."""
    precision = np.array([1 / (v * table.shape[1]) for table, v in zip(tables, variances, strict=True)])
    mean = precision / precision.sum() @ np.array([table.sum(axis=1) for table in tables])
    return project_to_total(mean, rows, 1.0)


def estimate_margins(pairs: Sequence[IntArray], rows: int, variance: float) -> list[FloatArray]:
    """n(x_j) of every column from its noisy table."""
    shares = combine_shares(pairs, [variance] * len(pairs), rows)
    return [smooth_pair_table(table.astype(np.float64), shares, variance).sum(axis=0) for table in pairs]


def score_pairs(table: CodedTable, candidates: Sequence[Edge], margins: Sequence[FloatArray]) -> IntArray:
    """Integers that another row in the place of one changes by at most 2."""
    scores = []
    for i, j in candidates:
        expected = np.rint(np.outer(margins[i], margins[j]) / table.rows)
        by_sampling = np.rint(np.minimum(2 * expected, np.sqrt(2 * expected / np.pi)).sum())
        distance = np.abs(table.count([i, j], by_secret=False) - expected.astype(np.int64)).sum()
        scores.append(int(distance) - int(by_sampling))
    return np.array(scores, dtype=np.int64)


def _grow_forest(m: int, fixed: Sequence[Edge], candidates: Sequence[Edge], number: int) -> list[Edge]:
    """The first candidates that close no cycle, at most so many."""
    tree_of = list(range(m))

    def join(edge: Edge) -> bool:
        i, j = (tree_of[end] for end in edge)
        if i == j:
            return False
        tree_of[:] = [i if tree == j else tree for tree in tree_of]
        return True

    for edge in fixed:
        join(edge)
    found: list[Edge] = []
    for edge in candidates:
        if len(found) == number:
            break
        if join(edge):
            found.append(edge)
    return found


def _direct(m: int, edges: Sequence[Edge], first: Sequence[int] = ()) -> tuple[Edge, ...]:
    """The edges away from a root in each tree, parents first: a column that comes `first`, or with most neighbours."""
    neighbours: list[list[int]] = [[] for _ in range(m)]
    for i, j in edges:
        neighbours[i].append(j)
        neighbours[j].append(i)
    directed: list[Edge] = []
    reached: set[int] = set()
    for root in sorted(range(m), key=lambda j: (j not in first[:1], -len(neighbours[j]))):
        waiting = [root] if root not in reached else []
        reached.add(root)
        for parent in waiting:  # grows while it is walked
            for child in neighbours[parent]:
                if child not in reached:
                    reached.add(child)
                    directed.append((parent, child))
                    waiting.append(child)
    return tuple(directed)
