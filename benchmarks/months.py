"""Twelve monthly releases of the same people, of whom 5 % change each month: what is kept, and what all releases leak.

python -m benchmarks months [--people N]

Census data, occupation secret, education published, LIP ε = 1 about all releases together, best for right values. Who
changes has a value drawn anew among people of their occupation. `after`: each release is designed given what was
published of a person before (docs/theory.md, Theorem 78). `key file`: one protocol, whoever did not change gets the
same draw. `naive`: one protocol, drawn anew each month. The share of people whose published value is their own is
measured on simulated people; the leak is that of everything published of a person so far, |ln P(h|s) / P(h)|, the
largest over these people and the secrets, for `after` the certificate in exact arithmetic.
"""

import argparse
from fractions import Fraction

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.mechanisms.after_model import AfterModel, History
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify, seal
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import LIP, Promise
from privacyfunnel.model.published.table_model import EachModel, TableModel
from privacyfunnel.model.uses.linear_use import Values
from privacyfunnel.release.earlier_release import design_next
from privacyfunnel.tables.readers.adult import adult_counts

MONTHS, CHANGING, EPSILON = 12, 0.05, 1.0
SHOWN = (1, 2, 3, 6, 12)


def census() -> Joint:
    """Occupation and education."""
    counts, (occupations, education) = adult_counts("occupation", "education")
    return Joint.from_counts(
        np.maximum(counts, 1), secret=occupations, values=education, names=["education"], secret_name="occupation"
    )


def value_of_outputs(law: ChannelMechanism, joint: Joint) -> IntArray:
    """The value that each output shows: the most likely one."""
    return np.asarray((law.channel * joint.p_x[:, None]).argmax(axis=0))


def draw(law: ChannelMechanism, x: int, rng: np.random.Generator) -> int:
    chances = law.channel[x]
    return int(rng.choice(len(chances), p=chances / chances.sum()))


def solve(joint: Joint, promise: Promise, spent: float = 0.0) -> SealedProtocol:
    return seal(optimal(joint, promise, Values()).protocol, promise, joint)


def channel_of(sealed: SealedProtocol) -> ChannelMechanism:
    assert isinstance(sealed.mechanism, ChannelMechanism)
    return sealed.mechanism


def largest_leak(weights: FloatArray, shares: FloatArray) -> float:
    """|ln P(h|s) / P(h)|, the largest over secrets, from P(s, h)."""
    told = weights / weights.sum() / shares
    return float(np.abs(np.log(told)).max())


def follow(
    model: TableModel | EachModel | AfterModel, law: ChannelMechanism, joint: Joint, drawn: list[int]
) -> tuple[AfterModel, ChannelMechanism, float, IntArray]:
    """The release after one in which people got these outputs: its mechanism, certificate and the history of each."""
    found = sorted(set(drawn))
    histories: tuple[History, ...] = tuple((0, y) for y in found)
    after = AfterModel.follow(model, law, histories, model.total)
    before = Attribute("before", tuple(map(str, found)))
    design = design_next(after, before, joint, LIP(EPSILON), solve)
    certified = certify(design.mechanism, after.bind_promise(LIP(EPSILON)), design.joint)
    return after, design.mechanism, certified, np.searchsorted(found, drawn)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=60)
    people = parser.parse_args().people
    joint, rng = census(), np.random.default_rng(1)
    a, shares = joint.a, joint.p_s
    given = joint.p_sx / shares[:, None]
    place = rng.choice(joint.weights.size, people, p=joint.p_sx.ravel())
    secret, paths = place // a, [place % a]
    for _ in range(1, MONTHS):
        anew = np.array([rng.choice(a, p=given[s]) for s in secret])
        paths.append(np.where(rng.random(people) < CHANGING, anew, paths[-1]))
    once = channel_of(solve(joint, LIP(EPSILON)))
    q, shown = once.channel.T, value_of_outputs(once, joint)
    groups = tuple((label,) for label in joint.secrets)
    model: TableModel | AfterModel = TableModel(
        weights=joint.weights,
        groups=groups,
        rest=None,
        rows=int(joint.total),
        epsilon=Fraction(1, 10),
        delta=Fraction(0),
        total=Fraction(11, 10),
    )
    law, drawn = once, [draw(once, int(x), rng) for x in paths[0]]
    beliefs = {"key file": [joint.p_sx] * people, "naive": [joint.p_sx] * people}
    held = {name: np.zeros(people, dtype=np.int64) for name in beliefs}
    lines: dict[str, list[tuple[float, float]]] = {"after": [], "key file": [], "naive": []}
    own = float((shown[drawn] == paths[0]).mean())
    lines["after"].append((own, certify(once, LIP(EPSILON), joint)))
    for month, now in enumerate(paths):
        if month:
            model, law, certified, number = follow(model, law, joint, drawn)
            drawn = [draw(law, int(h) * a + int(x), rng) for h, x in zip(number, now, strict=True)]
            weights_now = model.weights_by_input.sum(axis=0)
            likely = (law.channel * (weights_now / weights_now.sum()).astype(np.float64)[:, None]).argmax(axis=0) % a
            lines["after"].append((float((likely[drawn] == now).mean()), certified))
        for name, weights in beliefs.items():
            same = (now == paths[month - 1]) & (name == "key file") & (month > 0)
            ys = np.where(same, held[name], [draw(once, int(x), rng) for x in now])
            for i, y in enumerate(ys):
                weights[i] = _update(weights[i], given, q, int(y), int(held[name][i]), month, name == "key file")
            held[name] = ys
            kept = float((shown[ys] == now).mean())
            lines[name].append((kept, max(largest_leak(each.sum(axis=1), shares) for each in weights)))
    print(f"{'':10}{'kept, % of people':>34}   largest leak so far, nats")
    print(f"{'month':10}{''.join(f'{month:>7}' for month in SHOWN)}   {''.join(f'{month:>7}' for month in SHOWN)}")
    for name, line in lines.items():
        shares_kept = "".join(f"{100 * line[month - 1][0]:7.1f}" for month in SHOWN)
        leaks = "".join(f"{line[month - 1][1]:7.2f}" for month in SHOWN)
        print(f"{name:10}{shares_kept}   {leaks}")


def _update(
    weights: FloatArray, given: FloatArray, q: FloatArray, y: int, last: int, month: int, kept_key: bool
) -> FloatArray:
    """P(s, x, h) after one more output: drawn anew, or with a kept key only where x changed."""
    if month == 0:
        return np.asarray(weights * q[y])
    anew = CHANGING * weights.sum(axis=1, keepdims=True) * given
    if not kept_key:
        found = ((1 - CHANGING) * weights + anew) * q[y]
        return np.asarray(found / weights.sum())
    found = anew * q[y]  # a value that is drawn anew and the same counts as changed
    if y == last:
        found = found + (1 - CHANGING) * weights
    return np.asarray(found / weights.sum())


if __name__ == "__main__":
    main()
