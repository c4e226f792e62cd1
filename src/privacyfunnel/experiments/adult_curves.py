"""Figure 4: what every protocol keeps of Adult under ε-LIP, the best that sees S included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from privacyfunnel.arrays import FloatArray, dense
from privacyfunnel.designs.baselines import LARGEST_ALPHA, calibrate, conditional_reporting, randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import ParameterError
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
from privacyfunnel.formatting import format_duration
from privacyfunnel.model.comparisons import Comparisons, Leak, leak_sizes, pair_chunks
from privacyfunnel.model.credal.credal_sets import Comparable, CredalSets
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP, Promise

_CHUNK = 1 << 20  # entries of a dense array that are worked on at a time


@dataclass(frozen=True, slots=True, eq=False)
class UnaryEncoding:
    r"""Optimised unary encoding: publish a set of values. Each is in it by a draw of its own, the true one with chance
    1/2, every other one with chance :math:`q = 1/(e^{\alpha} + 1)`.

    With :math:`k = e^{\alpha} - 1` the set y has :math:`P(y|E) \propto 1 + k\,P(X \in y|E)`.
    """

    a: int  # how many values there are
    alpha: float

    @property
    def sees_secret(self) -> bool:
        """It looks at the values only."""
        return False

    @property
    def foreign(self) -> float:
        """The chance q that a value which is not the true one is in the set."""
        loss = math.exp(-self.alpha)
        return loss / (1 + loss)

    def worst(self, comparisons: Comparisons) -> Leak:
        r"""The set and pair of events with the largest :math:`|\ln \frac{1 + k P(y|E)}{1 + k P(y|F)}|`.

        Among all sets the best for r = max of the ratio is :math:`\{x : P(x|E) > r P(x|F)\}`, a prefix of the values
        sorted by :math:`P(x|E)/P(x|F)`; for the smallest ratio it is a suffix. So a sort does for :math:`2^a` sets.
        At :math:`\alpha = \infty` only single values and the empty set are published.
        """
        largest = Leak(0.0)
        for first, events, others in pair_chunks(comparisons):
            scales = None if comparisons.scales is None else comparisons.scales[first : first + events.shape[0]]
            size, row, output = self._worst_set(dense(events), dense(others), scales)
            if size > largest.epsilon or largest.output is None:
                largest = comparisons.leak(size, first + row, output)
        return largest

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """Refused: the paper has no sets of priors."""
        raise ParameterError("Unary encoding is measured for one prior, as in the paper; a set of priors was given.")

    def _worst_set(self, p: FloatArray, q: FloatArray, scales: FloatArray | None) -> tuple[float, int, tuple[int, ...]]:
        """The largest leak over rows of p and q and sets of columns: its size, row and set."""
        if self.alpha == math.inf:
            sizes = leak_sizes(p, q, scales)
            row, x = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
            return float(sizes[row, x]), row, (x,)
        k = math.expm1(self.alpha)
        ratio = np.divide(p, q, out=np.where(p > 0, math.inf, 1.0), where=q > 0)
        falling = np.argsort(-ratio, axis=1, kind="stable")
        found = []
        for way, order in enumerate((falling, falling[:, ::-1])):
            p_in, q_in = np.take_along_axis(p, order, axis=1), np.take_along_axis(q, order, axis=1)
            p_y, q_y = p_in.cumsum(axis=1), q_in.cumsum(axis=1)
            # ln of the larger over the smaller, written so that a small one keeps its digits
            sizes = np.log1p(k * np.abs((p_in - q_in).cumsum(axis=1)) / (1 + k * np.minimum(p_y, q_y)))
            if scales is not None:  # along each order only one side is above the other
                sizes = sizes / scales[:, way, None]
            row, last = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
            members = order[row, : last + 1]
            matters = (p[row, members] > 0) | (q[row, members] > 0)
            found.append((float(sizes[row, last]), row, tuple(sorted(map(int, members[matters])))))
        return max(found, key=lambda leak: leak[0])

    def mutual_information(self, joint: Joint) -> float:
        r"""I(X;Y) in nats, within :math:`10^{-13} (1 + \alpha)`, for any number of values.

        Let :math:`Z = 1 + k\,p_X(Y) \ge 1`. Then :math:`\ln q(y|x)/p(y) = \alpha [x \in y] - \ln z`, and
        :math:`I = \alpha/2 - E[\ln Z]`. As :math:`\ln z = \int_0^\infty (e^{-u} - e^{-uz})\,du/u`,

        .. math:: E[\ln Z] = \int_{-\infty}^{\infty} (e^{-u} - E[e^{-uZ}])\,dv, \quad u = e^v,

        where :math:`E[e^{-uZ}]` is a product over the values. The integrand is analytic for
        :math:`|\mathrm{Im}\,v| < \pi/2` and its integral along :math:`\mathrm{Im}\,v = \theta` is at most
        :math:`\alpha/\cos\theta` in absolute value (Frullani), so the trapezoidal rule with step h is wrong by at most
        :math:`2\alpha / (\cos\theta\,(e^{2\pi\theta/h} - 1))`: under :math:`10^{-18} \alpha` at
        :math:`\theta = 1.5, h = 3/16`. What is cut off at the ends is under :math:`10^{-17}`; the rest is rounding.
        """
        p_x = joint.p_x
        if self.alpha == math.inf:  # the value itself, or the empty set
            return entropy(p_x) / 2
        if self.alpha == 0:
            return 0.0
        k, q, h = math.expm1(self.alpha), self.foreign, 0.1875
        first, last = -41.5 - max(0.0, math.log(k)), math.log(40.0)
        grid = h * np.arange(math.floor(first / h), math.ceil(last / h) + 1)
        mean_log = 0.0
        rows = max(1, _CHUNK // self.a)
        for start in range(0, len(grid), rows):
            v = grid[start : start + rows]
            missing = np.expm1(-np.exp(v + math.log(k))[:, None] * p_x)  # e^{-u k p_x} - 1
            in_or_out = np.log1p(q * missing)
            own = np.log1p((0.5 - q) * ((missing / (1 + q * missing)) @ p_x))
            mean_log += h * float((-np.exp(-np.exp(v)) * np.expm1(in_or_out.sum(axis=1) + own)).sum())
        return max(0.0, self.alpha / 2 - mean_log)


def unary_encoding(joint: Joint, promise: Promise) -> UnaryEncoding:
    r"""The least random optimised unary encoding (OUE) that keeps the promise.

    For a set y of values :math:`A_E(y) = P(X \in y|E)` and :math:`C = 1`, so that over all sets

    .. math:: k \le \frac{e^{\varepsilon} - 1}{\max_{E,F} \sum_x \max(0, P(x|E) - e^{\varepsilon} P(x|F))}.
    """
    blocks = tuple(promise.comparisons(joint, False))

    def member(alpha: float) -> UnaryEncoding:
        return UnaryEncoding(joint.a, alpha)

    def interval() -> tuple[float, float]:
        bound = math.exp(min(promise.epsilon, LARGEST_ALPHA))
        excess = 0.0
        for block in blocks:
            for _, events, others in pair_chunks(block):
                p, q = dense(events), dense(others)
                for more, less in ((p, q), (q, p)):
                    excess = max(excess, float(np.maximum(more - bound * less, 0.0).sum(axis=1).max()))
        return 0.0, (bound - 1) / excess if excess > 0 else math.inf

    return calibrate("unary encoding", promise, blocks, promise.credal_sets(joint), member, interval)


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
