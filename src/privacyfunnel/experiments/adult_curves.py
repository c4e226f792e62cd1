"""Figure 4: what every protocol keeps of Adult under ε-LIP, the best that sees S included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.experiments.experiment import (
    Experiment,
    Findings,
    Record,
    Task,
    adult_joint,
    format_count,
    format_table,
    join_paragraphs,
    numbers,
    select,
    time_call,
)
from privacyfunnel.experiments.unary_encoding import unary_encoding
from privacyfunnel.formatting import format_duration
from privacyfunnel.model.credal.credal_sets import Comparable
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP

SECRETS = ("marital", "occupation")
PUBLISHED = ("education", "relationship", "race", "sex")
HARD = "education"  # so many values that the best protocol which sees S takes its time
GRR, OUE, CR, OPT, OPT_SEES = "grr", "oue", "cr", "opt-lip", "opt-lip-sees-secret"
BASELINES: dict[str, Callable[[Joint, LIP], Comparable]] = {
    GRR: randomised_response,
    OUE: unary_encoding,
    CR: conditional_reporting,
}


def measure_baselines(secret: str, publish: str, epsilons: Sequence[float]) -> list[Record]:
    """GRR, OUE and CR, calibrated."""
    joint = adult_joint(secret, publish)
    found = []
    for epsilon in epsilons:
        for method, family in BASELINES.items():
            protocol, seconds = time_call(partial(family, joint, LIP(epsilon)), repeat=1)
            utility = mutual_information(joint, protocol)
            found.append(_record(joint, epsilon, method, (utility, ""), seconds))
    return found


def measure_optimum(secret: str, publish: str, epsilon: float, sees_secret: bool, time_limit: float) -> list[Record]:
    """The optimum, or as near to it as the time allows; its bound says how near."""
    joint = adult_joint(secret, publish)
    found, seconds = time_call(
        lambda: optimal(joint, LIP(epsilon), sees_secret=sees_secret, time_limit=time_limit), repeat=1
    )
    utility = found.utility
    if sees_secret:  # a protocol that looks away counts too, and is found at once
        utility = max(utility, optimal(joint, LIP(epsilon), time_limit=time_limit).utility)
    method = OPT_SEES if sees_secret else OPT
    return [_record(joint, epsilon, method, (utility, found.bound), seconds)]


def _record(
    joint: Joint, epsilon: float, method: str, utility_and_bound: tuple[float, float | str], seconds: float
) -> Record:
    utility, bound = utility_and_bound
    return {
        "secret": joint.secret_name.removesuffix("-status"),
        "publish": joint.attributes[0].name,
        "c": joint.c,
        "a": joint.a,
        "epsilon": epsilon,
        "method": method,
        "utility": utility,
        "bound": bound,
        "entropy": entropy(joint.p_x),
        "seconds": seconds,
    }


def _tasks(quick: bool) -> list[Task]:
    epsilons = (0.5, 1.0, 2.0) if quick else (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
    cases = [(secret, publish) for publish in PUBLISHED for secret in SECRETS]
    tasks: list[Task] = [
        partial(measure_optimum, *case, epsilon, sees, _time_limit(case[1], quick))
        for case in cases
        for epsilon in epsilons
        for sees in (True, False)
        if not (quick and sees and case[1] == HARD)
    ]
    return tasks + [partial(measure_baselines, *case, epsilons) for case in cases]


def _time_limit(publish: str, quick: bool) -> float:
    """Seconds for one optimum."""
    if quick:
        return 3.0
    return 45.0 if publish == HARD else 20.0


def _points(records: Sequence[Record], method: str) -> dict[tuple[str, str, float], Record]:
    return {(str(r["secret"]), str(r["publish"]), float(r["epsilon"])): r for r in select(records, method=method)}


def _format_points(points: Sequence[tuple[str, str, float]]) -> str:
    """Points in words, those of one table together."""
    together: dict[tuple[str, str], list[float]] = {}
    for secret, publish, epsilon in points:
        together.setdefault((secret, publish), []).append(epsilon)
    return "; ".join(
        f"{secret} × {publish} at ε = {', '.join(f'{e:g}' for e in sorted(epsilons))}"
        for (secret, publish), epsilons in together.items()
    )


def points_above(records: Sequence[Record], more: str, less: str) -> list[tuple[str, str, float]]:
    """The points where one method keeps more than another, by more than rounding."""
    one, other = _points(records, more), _points(records, less)
    return [p for p in one if float(one[p]["utility"]) > float(other[p]["utility"]) + 1e-9]


def _findings(records: Sequence[Record]) -> Findings:
    rows = []
    for secret in SECRETS:
        for publish in PUBLISHED:
            here = {str(r["method"]): r for r in select(records, secret=secret, publish=publish, epsilon=1.0)}
            kept = [f"{float(here[method]['utility']):.4f}" for method in (OUE, GRR, CR)]
            proved = [_format_utility(here.get(method)) for method in (OPT, OPT_SEES)]
            rows.append([f"{secret} × {publish}", f"{float(here[OPT]['entropy']):.4f}", *kept, *proved])
    head = ["S × X, at ε = 1", "H(X)", "OUE", "GRR", "CR", "Opt-LIP", "best seeing S"]
    points = len(_points(records, OPT))
    oue = max(float(r["utility"]) / float(r["entropy"]) for r in select(records, method=OUE))
    return Findings(
        paper=join_paragraphs(
            """GRR and CR lie between Opt-LIP and OUE, and come close to Opt-LIP as ε grows. OUE stays behind: its
            limit is ½ H(X), because the true value is in the published set with chance ½ only. Whether GRR or CR is
            better depends on the table. OUE was out of reach for X = education, and so were some points of Opt-LIP for
            S = occupation. (The text names sex as the third X, the figures show race; here are both.)"""
        ),
        ours=join_paragraphs(
            f"""Every point, {points} of each method. No Opt-LIP took longer than
            {format_duration(max(numbers(select(records, method=OPT), "seconds")))}, and its bound is within
            {_format_worst_gap(records, OPT)} nats of it everywhere; for the best protocol that sees S the largest gap
            is
            {_format_worst_gap(records, OPT_SEES)} nats (bands in the figure, where wide enough to see). I(X;Y) in nats:

            {format_table(head, rows)}

            OUE keeps at most {100 * oue:.1f} % of H(X). At the largest ε, GRR keeps at least
            {100 * min(_shares_of_best(records, GRR)):.0f} % of what Opt-LIP does, and
            {100 * float(np.mean(_shares_of_best(records, GRR))):.0f} % on average over the tables; CR at least
            {100 * min(_shares_of_best(records, CR)):.0f} %, and
            {100 * float(np.mean(_shares_of_best(records, CR))):.0f} % on average. CR is ahead of GRR at
            {len(points_above(records, CR, GRR))} of {points} points."""
        ),
        verdict=join_paragraphs(
            f"""**We agree** that OUE {"never exceeds" if oue <= 0.5 + 1e-9 else "exceeds"} ½ H(X), that GRR and CR
            come closer to the optimum as ε grows, and that the table decides between the two. **Where the paper is too
            general:** {_format_exception("OUE is ahead of GRR", points_above(records, OUE, GRR))}
            {_format_exception("OUE is ahead of CR", points_above(records, OUE, CR))}
            {_format_exception("CR is ahead of Opt-LIP", points_above(records, CR, OPT))} Opt-LIP is no upper
            limit for CR, since CR looks at S and Opt-LIP does not. The limit for protocols that look at S is the last
            column. It comes with a warning: under plain LIP such a protocol may tell a good deal about S to someone who
            already knows X."""
        ),
    )


def _shares_of_best(records: Sequence[Record], method: str) -> list[float]:
    """What a method keeps of the optimum at the largest ε, table by table."""
    largest = max(float(record["epsilon"]) for record in records)
    kept, best_kept = _points(select(records, epsilon=largest), method), _points(select(records, epsilon=largest), OPT)
    return [float(kept[point]["utility"]) / float(best_kept[point]["utility"]) for point in kept]


def _format_utility(record: Record | None) -> str:
    """The utility, and the bound where it is visibly above it."""
    if record is None:
        return "–"
    utility = f"{float(record['utility']):.4f}"
    return utility if gap(record) < 5e-5 else f"{utility} to {float(record['bound']):.4f}"


def _format_worst_gap(records: Sequence[Record], method: str) -> str:
    """The largest gap among the points of a method, and at least the rounding of the proof itself."""
    return f"{max([1e-9, *(gap(record) for record in select(records, method=method))]):.1g}"


def gap(record: Record) -> float:
    """How far a point may be from the best, in nats."""
    return float(record["bound"]) - float(record["utility"])


def _format_exception(what: str, points: Sequence[tuple[str, str, float]]) -> str:
    return f"{what} at {format_count(len(points), 'point')} ({_format_points(points)})." if points else ""


ADULT = Experiment(
    name="adult",
    number=4,
    title="Adult under ε-LIP",
    picture="Eight panels, one for each pair of secret and published column: I(X;Y) of OUE, GRR, CR, Opt-LIP and the "
    "best protocol that sees S, against ε, with lines at H(X) and ½ H(X)",
    tasks=_tasks,
    findings=_findings,
    columns={
        "secret, publish": "the columns of Adult",
        "c, a": "how many values they have",
        "epsilon": "ε of LIP",
        "method": f"`{GRR}`, `{OUE}`, `{CR}`; `{OPT}`: the optimum that sees X; `{OPT_SEES}`: that which sees S",
        "utility": "I(X;Y) in nats",
        "bound": "no protocol of this kind keeps more, in nats; empty for the explicit ones",
        "entropy": "H(X) in nats",
        "seconds": "processor time, one run",
    },
)
