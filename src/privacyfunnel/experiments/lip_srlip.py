"""Figure 3: what protection against side channels costs, and what the paper's recipe for it gives away."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations, product

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.experiments.draws import uniform_joint
from privacyfunnel.experiments.enumeration import available, budget_conditions, enumerated
from privacyfunnel.experiments.experiment import Experiment, Findings, Record, Task, numbers, of, timed
from privacyfunnel.experiments.telling import prose, table, times
from privacyfunnel.information import mutual_information
from privacyfunnel.joint import Joint
from privacyfunnel.optimal import optimal
from privacyfunnel.promises import LIP, SRLIP
from privacyfunnel.protocol import Protocol

C, SIZES = 2, (3, 3, 4)
EPSILONS = (0.5, 1.0, 1.5, 2.0)
LISTED, RECIPE, SCALED, SRLIP_BEST, LIP_BEST = "recipe-enumerated", "recipe", "scaled-product", "srlip", "lip"
TITLES = {
    LISTED: "recipe, vertices of Γ",
    RECIPE: "recipe, ours",
    SCALED: "scaled product",
    SRLIP_BEST: "optimal SRLIP",
    LIP_BEST: "optimal LIP",
}
PAPER_RATIO = 476  # how many times as fast Theorem LIP was as Theorem budget
_STEPS = 10  # halvings in the search for the largest budget


def known_tables(joint: Joint, attribute: int) -> list[Joint]:
    """p(s, x^j | x^J) for every set J of other attributes and every x^J; the first is p(s, x^j)."""
    p = joint.p_sx.reshape(joint.c, *SIZES)
    others = [k for k in range(len(SIZES)) if k != attribute]
    tables = []
    for known in (known for size in range(len(SIZES)) for known in combinations(others, size)):
        for labels in product(*(range(SIZES[k]) for k in known)):
            here = [slice(None)] * p.ndim
            for k, label in zip(known, labels, strict=True):
                here[1 + k] = slice(label, label + 1)
            cell = p[tuple(here)].sum(axis=tuple(1 + k for k in others))
            tables.append(Joint.from_probabilities(cell / cell.sum()))
    return tables


def per_attribute(tables: Sequence[Sequence[Joint]], epsilon: float) -> Protocol:
    """One protocol per attribute, the best that keeps ε-LIP whichever of the others are known (paper, Theorem budget).

    Together they need not keep the sum of these ε, whatever the theorem says.
    """
    channels = [optimal(first, LIP(epsilon).for_priors(rest)).protocol.channel for first, *rest in tables]
    return together(channels)


def together(channels: Sequence[FloatArray]) -> Protocol:
    """Every attribute by its own channel, independently of the others."""
    channel = np.ones((1, 1))
    for one in channels:
        channel = np.kron(channel, one / one.sum(axis=1, keepdims=True))
    return Protocol(channel)


def recipe(joint: Joint, epsilon: float) -> Protocol:
    """The paper's: an equal share ε/m for every attribute."""
    return per_attribute([known_tables(joint, j) for j in range(joint.m)], epsilon / joint.m)


def scaled(joint: Joint, epsilon: float) -> Protocol:
    """The same with the largest common ε′ whose product measurably keeps ε-SRLIP."""
    tables = [known_tables(joint, j) for j in range(joint.m)]
    low, high = 0.0, 8 * epsilon
    best = per_attribute(tables, low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        candidate = per_attribute(tables, middle)
        if SRLIP(epsilon).leakage(joint, candidate) <= epsilon:
            low, best = middle, candidate
        else:
            high = middle
    return best


def protocols(seed: int, epsilon: float, time_limit: float) -> list[Record]:
    """All four protocols on one draw."""
    joint = uniform_joint(C, SIZES, seed)
    found = []
    for method, promise in ((LIP_BEST, LIP(epsilon)), (SRLIP_BEST, SRLIP(epsilon))):
        best, seconds = timed(partial(optimal, joint, promise, time_limit=time_limit))
        found.append(_record(joint, seed, epsilon, method, best.protocol) | {"seconds": seconds, "bound": best.bound})
    for method, make in ((RECIPE, recipe), (SCALED, scaled)):
        protocol, seconds = timed(partial(make, joint, epsilon), repeat=1)
        found.append(_record(joint, seed, epsilon, method, protocol) | {"seconds": seconds})
    return list(found)


def listed(seed: int, epsilon: float, time_limit: float) -> list[Record]:
    """The recipe the paper's way: the vertices of one Γ per attribute, if they are there before the time limit."""
    joint = uniform_joint(C, SIZES, seed)
    channels, seconds = [], 0.0
    record: dict[str, str | int | float] = {"time_limit": time_limit}
    for j in range(joint.m):
        p_x = joint.p_x.reshape(SIZES).sum(axis=tuple(k for k in range(joint.m) if k != j))
        best = enumerated(budget_conditions(joint, j, epsilon / joint.m), p_x, time_limit - seconds)
        if best is None:
            empty = dict.fromkeys(("utility", "bound", "leakage", "seconds"), "")
            return [{"seed": seed, "epsilon": epsilon, "method": LISTED, **empty, **record}]
        channels.append(best.channel)
        seconds += best.seconds
    return [_record(joint, seed, epsilon, LISTED, together(channels)) | {"seconds": seconds} | record]


def _record(joint: Joint, seed: int, epsilon: float, method: str, protocol: Protocol) -> dict[str, str | int | float]:
    return {
        "seed": seed,
        "epsilon": epsilon,
        "method": method,
        "utility": mutual_information(joint, protocol),
        "bound": "",
        "leakage": SRLIP(epsilon).leakage(joint, protocol),
        "seconds": "",
        "time_limit": "",
    }


def _tasks(quick: bool) -> list[Task]:
    draws, limit = (2, 2.0) if quick else (10, 20.0)
    # Listing the vertices takes a minute and more, so the paper's way is timed on a few draws only.
    listings = [] if quick or not available() else [(seed, epsilon) for epsilon in EPSILONS for seed in range(2)]
    tasks: list[Task] = [partial(listed, *which, 90.0) for which in listings]
    return tasks + [partial(protocols, seed, epsilon, limit) for epsilon in EPSILONS for seed in range(draws)]


def _mean(records: Sequence[Record], column: str, method: str, epsilon: float) -> float:
    return float(np.mean(numbers(of(records, method=method, epsilon=epsilon), column)))


def _findings(records: Sequence[Record]) -> Findings:
    methods = (RECIPE, SCALED, SRLIP_BEST, LIP_BEST)
    utilities = table(
        ["ε", *(TITLES[method] for method in methods)],
        [[f"{e:g}", *(f"{_mean(records, 'utility', method, e):.3f}" for method in methods)] for e in EPSILONS],
    )
    used = float(np.mean([float(r["leakage"]) / float(r["epsilon"]) for r in of(records, method=RECIPE)]))
    broken = [r for r in of(records, method=RECIPE) if float(r["leakage"]) > float(r["epsilon"])]
    gap = max(float(r["bound"]) - float(r["utility"]) for r in of(records, method=SRLIP_BEST))
    finished = [r for r in of(records, method=LISTED) if r["seconds"] != ""]
    ratios = [
        float(r["seconds"]) / numbers(of(records, method=LIP_BEST, seed=r["seed"], epsilon=r["epsilon"]), "seconds")[0]
        for r in finished
    ]
    slower = f"{np.mean(ratios):,.0f} times" if ratios else "not measured, for no enumeration finished"
    draws = len({record["seed"] for record in of(records, method=RECIPE)})
    return Findings(
        paper=prose(
            f"""For c = {C} and attributes of {SIZES} values, the optimal LIP protocol is found {PAPER_RATIO} times as
            fast as the product of Theorem “budget”, and keeps a good deal more: SRLIP asks for more than LIP, and the
            product is not the optimal SRLIP protocol, which the paper has no way to find."""
        ),
        ours=prose(
            f"""{draws} distributions. Mean I(X;Y) in nats:

            {utilities}

            The optimal SRLIP protocol is within {gap:.0e} nats of its bound on every draw. The recipe uses only
            {100 * used:.0f} % of its ε on average. Mean computing time:

            {times(records, [(method, TITLES[method]) for method in (LISTED, *methods)])}

            Where the vertices of the recipe's Γ could be listed, that took {slower} as long as the optimal LIP protocol
            (counting finished runs only)."""
        ),
        verdict=prose(
            f"""**We agree that the recipe is slow and loses much, and find that SRLIP itself does not**: the optimal
            protocol under SRLIP keeps {100 * _share(records):.0f} % of what LIP allows. What the paper shows as the
            price of side channels is the price of its recipe. Theorem “budget” is false in general; on these draws the
            recipe {"kept" if not broken else f"broke in {len(broken)} cases"} its promise. Scaling the budgets to what
            is measured is safe and better, yet far from the optimum."""
        ),
    )


def _share(records: Sequence[Record]) -> float:
    """How much of the optimum under LIP the optimum under SRLIP keeps, on average."""
    return float(
        np.mean([_mean(records, "utility", SRLIP_BEST, e) / _mean(records, "utility", LIP_BEST, e) for e in EPSILONS])
    )


LIP_SRLIP = Experiment(
    name="lip-srlip",
    number=3,
    title="LIP against SRLIP",
    picture="Two panels against ε: computing time on a logarithmic axis, and I(X;Y), where optimal SRLIP lies just "
    "below optimal LIP, the scaled product well below and the paper's recipe lowest",
    tasks=_tasks,
    findings=_findings,
    columns={
        "seed": f"the draw's seed: `uniform_joint({C}, {SIZES}, seed)`",
        "epsilon": "ε",
        "method": "; ".join(f"`{name}`: {title}" for name, title in TITLES.items()),
        "utility": "I(X;Y) in nats",
        "bound": "no protocol under this promise keeps more, in nats; empty where nothing is proved",
        "leakage": "the smallest ε for which the protocol keeps SRLIP",
        "seconds": "computing time, the least of three runs for the optima, else one; empty when the time was up",
        "time_limit": "seconds given to the enumeration",
    },
)
