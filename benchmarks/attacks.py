"""What the protocol file gives away, by two attacks that replay the design.

(a) Everybody's X is known and nobody's S: list every table of counts with these values, and keep those whose design is
    the file. Rows are drawn independently, and the attacker knows from which distribution.
(b) All other rows are known, and the person's X: design for each secret that the person might have.

Both attackers know the program and weigh what is left by Bayes' rule; before they see the file every secret of the
person is as likely as any other, and a guess is the likeliest one after. Files of a private design are told apart by
the exact chances of their noise. With a published model the attacker of (b) does not know X, and sees noisy counts and
the person's record. Otherwise sanitised rows add nothing to either attack, for who
knows a person's X learns nothing from a draw that looks at X alone; so the bound is that of the design, e^ε_c, and
what the end-to-end theorem allows, e^(ε_c + ε), is printed beside it for someone who does not know X.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.published.noise import NOISES, noise_variance
from privacyfunnel.model.published.noisy_counts import NoisyCounts
from privacyfunnel.model.published.table_model import fit_weights
from privacyfunnel.tables.readers.adult import adult_counts

TABLES, ROWS, VALUES = 30, 16, 3  # of the small tables of attack (a)
PEOPLE, DRAWS = 12, 3000  # of attack (b): whom it is tried on, and how often noise is drawn for each
EPSILON = 0.5  # of the promise in (a); 1 in (b)
TOTALS = (Fraction(1), Fraction(1, 2))  # of a release by a published model
DESIGN_EPSILONS = (Fraction(1), Fraction(1, 2), Fraction(1, 10))
SURE = 0.99
FEW = 3  # tables or people of the population promise, whose designs take seconds

File = Callable[[IntArray], object]  # of a table of counts: what its file says, alike for alike files


@dataclass(frozen=True)
class Guess:
    """What an attacker ends up with about one person, all of whose secrets were as likely before."""

    right: float  # whether the likeliest secret is the true one; a tie of k counts 1/k
    belief: float  # in the likeliest secret
    secrets: int


def summary(name: str, guesses: Sequence[Guess], limits: str = "") -> str:
    """A line of the table."""
    right = float(np.mean([guess.right for guess in guesses]))
    sure = float(np.mean([guess.belief >= SURE for guess in guesses]))
    return f"  {name:<32} right {right:6.1%}, sure {sure:6.1%}   by chance {1 / guesses[0].secrets:5.1%}{limits}"


def judged(weights: FloatArray, truth: int) -> Guess:
    """The guess of someone with these beliefs, up to scale, in each secret."""
    belief = weights / weights.sum()
    best = np.flatnonzero(belief >= belief.max() * (1 - 1e-12))
    return Guess(float(truth in best) / len(best), float(belief.max()), len(belief))


# -- the files -------------------------------------------------------------------------------------------------------


def files(promise: Promise) -> dict[str, File]:
    """Ways of making a file, by name; one solve serves all that only round it."""
    kept: dict[bytes, tuple[object, FloatArray]] = {}
    wider: dict[bytes, object] = {}

    def solved(counts: IntArray) -> tuple[object, FloatArray]:
        key = counts.tobytes()
        if key not in kept:
            joint = Joint.from_counts(counts)
            best = optimal(joint, promise)
            sealed = best.sealed or seal(best.protocol, promise, joint, bound=best.bound)
            kept[key] = sealed.to_text(), best.protocol.channel
        return kept[key]

    def rounded(bits: int) -> File:
        return lambda counts: _sorted(np.round(solved(counts)[1] * 2.0**bits))

    def for_people(counts: IntArray) -> object:
        # Once for every table: what stops by the clock is not always the same, and an attacker would try again.
        if counts.tobytes() not in wider:
            wider[counts.tobytes()] = _population(counts, promise)
        return wider[counts.tobytes()]

    return {
        "as it is": lambda counts: solved(counts)[0],
        "channel alone, to the last bit": lambda counts: _sorted(solved(counts)[1]),
        "channel alone, 16 bits": rounded(16),
        "channel alone, 8 bits": rounded(8),
        "channel alone, 4 bits": rounded(4),
        "population promise, 95 %": for_people,
    }


def _sorted(channel: FloatArray) -> object:
    """A channel whose outputs have no order."""
    return tuple(sorted(map(tuple, channel.T.tolist())))


def _population(counts: IntArray, promise: Promise) -> object:
    joint = Joint.from_counts(counts)
    wider = promise.for_population(joint, 0.95, rare=0)
    best = optimal(joint, wider, gap=1e-4, time_limit=2.0)
    return (best.sealed or seal(best.protocol, wider, joint, bound=best.bound)).to_text()


def exponent(seen: NoisyCounts, counts: IntArray) -> Fraction:
    """−ln Pr[these noisy counts | a table], up to what is the same for all tables: exact."""
    cells, totals = np.abs(seen.cells - counts).sum(), np.abs(seen.totals - counts.sum(axis=1)).sum()
    return int(cells) * seen.cell_rate + int(totals) * seen.total_rate


def likelihoods(seen: NoisyCounts, tables: Sequence[IntArray]) -> FloatArray:
    """The chances of these noisy counts, up to scale."""
    exponents = [exponent(seen, counts) for counts in tables]
    return np.exp([-float(e - min(exponents)) for e in exponents])


# -- (a) everybody's X ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Small:
    """A small table with somebody whose value nobody else has, and the distribution that the others were drawn from."""

    counts: IntArray
    p_s_given_x: FloatArray  # 2 × a; a fair coin for the value that one person has
    value: int

    def tables(self, everybody_alike: bool) -> Iterator[tuple[IntArray, float]]:
        """Every table with these values, and its chance; without those of one secret alone, if they have no design."""
        sizes = self.counts.sum(axis=0)
        for first in itertools.product(*(range(size + 1) for size in sizes)):
            counts = np.array([first, sizes - np.array(first)])
            if everybody_alike or counts.sum(axis=1).all():
                ways = math.prod(math.comb(size, some) for size, some in zip(sizes, first, strict=True))
                yield counts, ways * float(np.prod(self.p_s_given_x**counts))


def small_tables(number: int, rows: int = ROWS, values: int = VALUES, seed: int = 0) -> Iterator[Small]:
    """Tables drawn from random distributions."""
    rng = np.random.default_rng(seed)
    while number:
        p = rng.dirichlet(np.ones(2 * values)).reshape(2, values)
        counts = rng.multinomial(rows, p.ravel()).reshape(2, values)
        alone = np.flatnonzero(counts.sum(axis=0) == 1)
        if len(alone) and counts.sum(axis=0).all() and (counts.sum(axis=1) > 1).all():
            number -= 1
            value = int(alone[0])
            chances = p / p.sum(axis=0)
            chances[:, value] = 0.5
            counts[:, value] = np.eye(2, dtype=np.int64)[rng.integers(2)]
            yield Small(counts, chances, value)


def everybodys_values(small: Small, file: File) -> Guess:
    """Attack (a) on a file that is a function of the table."""
    tables, chances = _listed(small, everybody_alike=False)
    seen = file(small.counts)
    return _told(small, tables, chances, np.array([float(file(counts) == seen) for counts in tables]))


def everybodys_values_with_noise(small: Small, epsilon: Fraction) -> Guess:
    """Attack (a) on a private design, whose file may hold the noisy counts themselves."""
    tables, chances = _listed(small, everybody_alike=True)
    return _told(small, tables, chances, likelihoods(NoisyCounts.draw(small.counts, epsilon, NOISES["own"]), tables))


def _listed(small: Small, *, everybody_alike: bool) -> tuple[list[IntArray], FloatArray]:
    tables, chances = zip(*small.tables(everybody_alike), strict=True)
    return list(tables), np.array(chances)


def _told(small: Small, tables: list[IntArray], chances: FloatArray, fits: FloatArray) -> Guess:
    has = np.array([counts[:, small.value] for counts in tables])  # which secret the person has
    return judged((chances * fits) @ has / (chances @ has), int(small.counts[:, small.value].argmax()))


# -- (b) all other rows --------------------------------------------------------------------------------------------


def candidates(counts: IntArray, secret: int, value: int) -> list[IntArray]:
    """The table as it would be if the person had each of the secrets."""
    tables = []
    for s in range(len(counts)):
        other = counts.copy()
        other[secret, value] -= 1
        other[s, value] += 1
        tables.append(other)
    return tables


def people(counts: IntArray, number: int, seed: int = 0) -> list[tuple[IntArray, int, int]]:
    """People drawn at random, each with any secret: the table with them in it, their secret, their value."""
    rng = np.random.default_rng(seed)
    found = []
    for cell in rng.choice(counts.size, number, p=counts.ravel() / counts.sum()):
        was, value = divmod(int(cell), counts.shape[1])
        secret = int(rng.integers(len(counts)))
        found.append((candidates(counts, was, value)[secret], secret, value))
    return found


def all_other_rows(counts: IntArray, secret: int, value: int, file: File) -> Guess:
    """Attack (b) on a file that is a function of the table."""
    seen = file(counts)
    return judged(np.array([float(file(table) == seen) for table in candidates(counts, secret, value)]), secret)


def all_other_rows_with_noise(counts: IntArray, secret: int, value: int, epsilon: Fraction, draws: int) -> list[Guess]:
    """Attack (b) on private designs of one table: only the counts of that value and the totals matter."""
    rest = np.delete(counts, value, axis=1).sum(axis=1)
    tables = candidates(np.stack([counts[:, value], rest], axis=1), secret, 0)
    drawn = (NoisyCounts.draw(tables[secret], epsilon, NOISES["own"]) for _ in range(draws))
    return [judged(likelihoods(seen, tables), secret) for seen in drawn]


MODEL_SHARE = Fraction(1, 10)  # of the whole ε, that the model of a release gets


def draw_model(counts: IntArray, epsilon: Fraction) -> tuple[IntArray, Fraction, Joint, Promise]:
    """Noisy counts and their rate, the model that is made of them, and the promise for records at it."""
    rate = MODEL_SHARE * epsilon / 2
    noisy = counts + np.array(NOISES["own"](rate).draw(counts.size), dtype=np.int64).reshape(counts.shape)
    variance = np.full(counts.shape, noise_variance(rate))
    model = Joint.from_counts(fit_weights(noisy.astype(np.float64), variance))
    return noisy, rate, model, LDP(float(epsilon * (1 - MODEL_SHARE)))


def noise_likelihoods(noisy: IntArray, rate: Fraction, tables: Sequence[IntArray]) -> FloatArray:
    """The chances of these noisy cells given each table, up to scale."""
    exponents = [int(np.abs(noisy - counts).sum()) * rate for counts in tables]
    return np.exp([-float(e - min(exponents)) for e in exponents])


def all_other_rows_with_model(
    counts: IntArray, secret: int, value: int, epsilon: Fraction, draws: int, seed: int = 0
) -> list[Guess]:
    """Attack (b) on all public files of a release by a published model, which promises LDP.

    The attacker knows all other rows, sees the noisy counts and the person's published record, and believes the model
    about the rest: X is not known.
    """
    rng, found = np.random.default_rng(seed), []
    c, a = counts.shape
    left = counts.copy()
    left[secret, value] -= 1
    tables = [left + np.eye(1, c * a, s * a + x, dtype=np.int64).reshape(c, a) for s in range(c) for x in range(a)]
    for _ in range(draws):
        noisy, rate, model, promise = draw_model(counts, epsilon)
        q = optimal(model, promise, gap=0.01).protocol.channel
        y = rng.choice(q.shape[1], p=q[value] / q[value].sum())
        seen = noise_likelihoods(noisy, rate, tables).reshape(c, a)
        found.append(judged((model.p_x_given_s * seen * q[:, y]).sum(axis=1), secret))
    return found


def everybodys_values_with_model(small: Small, epsilon: Fraction) -> Guess:
    """Attack (a) on the same: who knows everybody's X learns nothing from rows, so the noisy counts are all."""
    tables, chances = _listed(small, everybody_alike=True)
    noisy, rate, _, _ = draw_model(small.counts, epsilon)
    return _told(small, tables, chances, noise_likelihoods(noisy, rate, tables))


def allowed(secrets: int, epsilon: float) -> float:
    """The largest belief in one of so many secrets that a factor of e^ε allows."""
    return math.exp(epsilon) / (math.exp(epsilon) + secrets - 1)


def main() -> None:
    """Print both tables."""
    smalls = list(small_tables(TABLES))
    print(f"(a) everybody's X known: {TABLES} tables of {ROWS} rows and {VALUES} values, LIP {EPSILON}")
    for name, file in files(LIP(EPSILON)).items():
        few = smalls if "population" not in name else smalls[:FEW]
        print(summary(name, [everybodys_values(small, file) for small in few]), flush=True)
    for epsilon in DESIGN_EPSILONS:
        guesses = [everybodys_values_with_noise(small, epsilon) for small in smalls for _ in range(25)]
        print(summary(f"private design, ε_c = {float(epsilon):g}", guesses, limits(2, epsilon, EPSILON)), flush=True)
    for epsilon in TOTALS:
        guesses = [everybodys_values_with_model(small, epsilon) for small in smalls for _ in range(25)]
        print(summary(f"published model, ε = {float(epsilon):g} in all", guesses, whole_limit(2, epsilon)), flush=True)
    for hidden, shown in (("income", "education"), ("marital-status", "relationship")):
        counts = adult_counts(hidden, shown)[0]
        chosen = people(counts, PEOPLE)
        print(f"(b) all other rows of Adult known: {hidden} of {PEOPLE} people, {shown} published, LIP 1")
        for name, file in files(LIP(1.0)).items():
            some = chosen if "population" not in name else chosen[:FEW]
            print(summary(name, [all_other_rows(*person, file) for person in some]), flush=True)
        for epsilon in DESIGN_EPSILONS:
            each = [all_other_rows_with_noise(*person, epsilon, DRAWS // PEOPLE) for person in chosen]
            guesses = [guess for some_guesses in each for guess in some_guesses]
            print(summary(f"private design, ε_c = {float(epsilon):g}", guesses, limits(len(counts), epsilon, 1.0)))
        for epsilon in TOTALS:
            each = [all_other_rows_with_model(*person, epsilon, 5) for person in chosen]
            guesses = [guess for some_guesses in each for guess in some_guesses]
            print(
                summary(f"published model, ε = {float(epsilon):g} in all", guesses, whole_limit(len(counts), epsilon))
            )


def whole_limit(secrets: int, epsilon: Fraction) -> str:
    """What the theorem on published models allows, in words."""
    return f"; e^ε allows {allowed(secrets, float(epsilon)):5.1%}"


def limits(secrets: int, design: Fraction, promise: float) -> str:
    """What the theorem allows, in words."""
    most, whole = (allowed(secrets, float(design) + more) for more in (0.0, promise))
    return f"; e^ε_c allows {most:5.1%}, e^(ε_c + ε) {whole:5.1%}"


if __name__ == "__main__":
    main()
