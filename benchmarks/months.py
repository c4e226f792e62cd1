"""Twelve monthly releases of the same people, of whom 5 % change each month: what is kept, and what all releases leak.

python -m benchmarks months [--people N]

Census data, occupation secret, education published, LIP ε = 1 about all releases together, best for right values.
`after`: each release is designed given what was published of a person before (docs/theory.md, Theorem 78). `key file`:
one protocol, whoever did not change gets the same draw. `naive`: one protocol, drawn anew each month. The share of
people whose published value is their own is measured on simulated people; the leak is that of everything published of
a person so far, |ln P(h|s) / P(h)|, the largest over these people and the secrets.
"""

import argparse
from dataclasses import replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.next_release import History, Outputs
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.uses.linear_use import Values
from privacyfunnel.tables.readers.adult import adult_counts

MONTHS, CHANGING, EPSILON = 12, 5, 1.0
SHOWN = (1, 2, 3, 6, 12)


def census() -> Joint:
    """Occupation and education."""
    counts, (occupations, education) = adult_counts("occupation", "education")
    return Joint.from_counts(
        counts, secret=occupations, values=education, names=["education"], secret_name="occupation"
    )


def value_of_outputs(sealed: SealedProtocol, joint: Joint) -> IntArray:
    """The value that each output shows: the most likely one."""
    numbers = sealed.mechanism.numerators(10**6)
    assert numbers is not None
    chances = (numbers / 2**64).astype(np.float64)
    return np.asarray((chances * joint.p_x).argmax(axis=1))


def draw(sealed: SealedProtocol, x: int, rng: np.random.Generator) -> int:
    numbers = sealed.mechanism.numerators(10**6)
    assert numbers is not None
    chances = np.array([int(n) / 2**64 for n in numbers[:, x]])
    return int(rng.choice(len(chances), p=chances / chances.sum()))


def largest_leak(weights: FloatArray, shares: FloatArray) -> float:
    """|ln P(h|s) / P(h)|, the largest over secrets, from P(s, h)."""
    told = weights / weights.sum() / shares
    return float(np.abs(np.log(told)).max())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=60)
    people = parser.parse_args().people
    joint, rng = census(), np.random.default_rng(1)
    a = joint.a
    kernel = (100 - CHANGING) * (a - 1) * np.eye(a, dtype=np.int64) + CHANGING * (1 - np.eye(a, dtype=np.int64))
    moves, shares = kernel / kernel[0].sum(), joint.p_s
    place = rng.choice(joint.weights.size, people, p=joint.p_sx.ravel())
    paths = [np.array([cell % a for cell in place])]
    for _ in range(1, MONTHS):
        paths.append(np.array([rng.choice(a, p=moves[x]) for x in paths[-1]]))
    first = optimal(joint, LIP(EPSILON), Values())
    once = seal(first.protocol, LIP(EPSILON), joint)
    numbers = once.mechanism.numerators(10**6)
    assert numbers is not None
    q = (numbers / 2**64).astype(np.float64)
    shown = value_of_outputs(once, joint)

    history = History.start(joint)
    seen: list[Outputs] = [()] * people
    beliefs = {"key file": [joint.p_sx] * people, "naive": [joint.p_sx] * people}
    held = {name: np.zeros(people, dtype=np.int64) for name in beliefs}
    print(f"{'':10}{'kept, % of people':>34}   largest leak so far, nats")
    lines: dict[str, list[tuple[float, float]]] = {"after": [], "key file": [], "naive": []}
    for month, now in enumerate(paths):
        history = history if month == 0 else history.move(kernel)
        history = replace(history, states={h: history.states[h] for h in set(seen)})
        designs: dict[Outputs, SealedProtocol] = history.design(LIP(EPSILON), Values())
        drawn = [draw(designs[h], x, rng) for h, x in zip(seen, now, strict=True)]
        own = 0
        for h, x, y in zip(seen, now, drawn, strict=True):
            state = history.states[h]
            given = replace(joint, weights=state)
            own += int(value_of_outputs(designs[h], given)[y]) == x
        history = history.publish({h: sealed.mechanism for h, sealed in designs.items()})
        seen = [(*h, y) for h, y in zip(seen, drawn, strict=True)]
        told = [(history.states[h].sum(axis=1) / history.states[h].sum()).astype(np.float64) for h in seen]
        lines["after"].append((own / people, max(largest_leak(each, shares) for each in told)))
        before = paths[month - 1]
        for name, weights in beliefs.items():
            same = (now == before) & (name == "key file") & (month > 0)
            new = np.array([draw(once, x, rng) for x in now])
            ys = np.where(same, held[name], new)
            for i, y in enumerate(ys):
                weights[i] = _update(weights[i], moves, q, int(y), int(held[name][i]), month, name == "key file")
            held[name] = ys
            kept = float((shown[ys] == now).mean())
            lines[name].append((kept, max(largest_leak(each.sum(axis=1), shares) for each in weights)))
    print(f"{'month':10}{''.join(f'{month:>7}' for month in SHOWN)}   {''.join(f'{month:>7}' for month in SHOWN)}")
    for name, line in lines.items():
        shares_kept = "".join(f"{100 * line[month - 1][0]:7.1f}" for month in SHOWN)
        leaks = "".join(f"{line[month - 1][1]:7.2f}" for month in SHOWN)
        print(f"{name:10}{shares_kept}   {leaks}")


def _update(
    weights: FloatArray, moves: FloatArray, q: FloatArray, y: int, last: int, month: int, kept_key: bool
) -> FloatArray:
    """P(s, x, h) after one more output: drawn anew, or with a kept key only where x changed."""
    if month == 0:
        return np.asarray(weights * q[y])
    if not kept_key:
        moved = weights @ moves
        return np.asarray(moved * q[y] / moved.sum())
    stay = np.diag(moves)
    found = (weights @ (moves - np.diag(stay))) * q[y]
    if y == last:
        found = found + weights * stay
    return np.asarray(found / weights.sum())


if __name__ == "__main__":
    main()
