"""Figures 5, 6 and 7: randomised response (GRR) against conditional reporting (CR)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.experiments.experiment import (
    Experiment,
    Findings,
    Record,
    Task,
    adult_joint,
    format_table,
    jeffreys_joint,
    join_paragraphs,
    numbers,
    select,
)
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP

PAIRS = ((5, 2), (2, 5), (5, 5), (3, 5), (5, 7), (7, 5))  # (a, c), as the paper orders them
PAPER_CORRELATIONS = {1.0: 0.9815, 1.5: 0.9889, 2.0: 0.9731}
ADULT_CASES = (("occupation", "education"), ("occupation", "relationship"))
_AT_ONCE = 10  # distributions per task: small enough for an even bar, large enough to be worth a process's while

METHODS = {"grr": randomised_response, "cr": conditional_reporting}
COLUMNS = {
    "seed": "the draw's seed: `jeffreys_joint(c, a, seed)`",
    "epsilon": "ε of LIP",
    "grr_alpha, cr_alpha": "the largest α that keeps ε-LIP",
    "grr_utility, cr_utility": "I(X;Y) in nats",
    "entropy": "H(X) in nats",
}


def compare_baselines(joint: Joint, epsilon: float) -> Record:
    """Both protocols calibrated to ε-LIP: their α and their utility."""
    record: dict[str, str | int | float] = {"epsilon": epsilon}
    for name, method in METHODS.items():
        protocol = method(joint, LIP(epsilon))
        record[f"{name}_alpha"] = math.nan if protocol.alpha is None else protocol.alpha
        record[f"{name}_utility"] = mutual_information(joint, protocol)
    return {**record, "entropy": entropy(joint.p_x)}


def measure_draws(a: int, c: int, seeds: Sequence[int], epsilons: Sequence[float]) -> list[Record]:
    """Both protocols on Jeffreys draws."""
    found: list[Record] = []
    for seed in seeds:
        joint = jeffreys_joint(c, a, seed)
        found += [{"a": a, "c": c, "seed": seed, **compare_baselines(joint, epsilon)} for epsilon in epsilons]
    return found


def measure_adult(secret: str, publish: str, epsilons: Sequence[float]) -> list[Record]:
    """Both protocols on two columns of Adult."""
    joint = adult_joint(secret, publish)
    return [{"secret": secret, "publish": publish, **compare_baselines(joint, epsilon)} for epsilon in epsilons]


# -- figure 5 ------------------------------------------------------------------------------------------------------


def _grr_cr_tasks(quick: bool) -> list[Task]:
    draws = 20 if quick else 100
    epsilons = (0.5, 1.0, 2.0, 3.0) if quick else (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
    return [
        partial(measure_draws, a, c, range(first, first + _AT_ONCE), epsilons)
        for a, c in PAIRS
        for first in range(0, draws, _AT_ONCE)
    ]


def shares(records: Sequence[Record], method: str) -> list[float]:
    """I(X;Y) / H(X) of one method."""
    return [float(record[f"{method}_utility"]) / float(record["entropy"]) for record in records]


def lead(records: Sequence[Record]) -> float:
    """By how much of H(X) CR is ahead of GRR on average."""
    return float(np.mean(shares(records, "cr")) - np.mean(shares(records, "grr")))


def _grr_cr_findings(records: Sequence[Record]) -> Findings:
    leads = {(a, c): lead(select(records, a=a, c=c)) for a, c in PAIRS}
    by_ratio = sorted(PAIRS, key=lambda pair: pair[0] / pair[1])
    draws = len({record["seed"] for record in records})
    epsilons = sorted({float(record["epsilon"]) for record in records})
    spread, apart, wins = [], [], []
    for a, c in PAIRS:
        for epsilon in epsilons:
            here = select(records, a=a, c=c, epsilon=epsilon)
            grr, cr = shares(here, "grr"), shares(here, "cr")
            spread.append((np.std(grr, ddof=1) + np.std(cr, ddof=1)) / 2)
            apart.append(abs(np.mean(cr) - np.mean(grr)))
            wins.append(np.mean(np.array(cr) > np.array(grr)))
    few, many = by_ratio[:3], by_ratio[3:]
    grows = np.mean([leads[pair] for pair in many]) > np.mean([leads[pair] for pair in few])
    sets_matter = np.mean(spread) > np.mean(apart)
    rows = [[str(a), str(c), f"{a / c:.2f}", f"{100 * leads[a, c]:+.1f} %"] for a, c in by_ratio]
    return Findings(
        paper=join_paragraphs(
            """The larger a is compared to c, the more CR keeps compared to GRR; yet the distribution at hand matters
            more than the choice between the two. Each panel averages 100 draws from the Jeffreys prior."""
        ),
        ours=join_paragraphs(
            f"""{draws} draws for each (a, c), at ε = {", ".join(f"{e:g}" for e in epsilons)}. By how much of H(X) CR
            is ahead of GRR, averaged over draws and ε:

            {format_table(["a", "c", "a/c", "CR − GRR"], rows)}

            The standard deviation over draws is {100 * np.mean(spread):.1f} % of H(X) on average, the distance between
            the two means {100 * np.mean(apart):.1f} %. CR is ahead at {100 * np.mean(wins):.0f} % of all draws and
            ε."""
        ),
        verdict=join_paragraphs(
            f"""**We {"agree" if grows else "do not agree"}** that CR gains on GRR as a/c grows, and
            {"agree" if sets_matter else "do not agree"} that distributions differ more than methods do. The lead
            shrinks as ε grows, because both then tell nearly everything."""
        ),
    )


GRR_CR = Experiment(
    name="grr-cr",
    number=5,
    title="GRR against CR on Jeffreys draws",
    picture="Six panels, one for each (a, c): mean and standard deviation of I(X;Y)/H(X) of GRR and CR against ε",
    tasks=_grr_cr_tasks,
    findings=_grr_cr_findings,
    columns={"a, c": "how many values X and S have", **COLUMNS},
)


# -- figure 6 ------------------------------------------------------------------------------------------------------


def _alpha_utility_tasks(quick: bool) -> list[Task]:
    draws = 40 if quick else 100
    epsilons = tuple(PAPER_CORRELATIONS)
    return [
        partial(measure_draws, 5, 5, range(first, first + _AT_ONCE), epsilons) for first in range(0, draws, _AT_ONCE)
    ]


def differences(records: Sequence[Record]) -> tuple[list[float], list[float]]:
    """α of CR less that of GRR, and the same for I(X;Y), where both α are finite."""
    finite = [r for r in records if math.isfinite(float(r["cr_alpha"])) and math.isfinite(float(r["grr_alpha"]))]
    alphas = np.subtract(numbers(finite, "cr_alpha"), numbers(finite, "grr_alpha"))
    utilities = np.subtract(numbers(finite, "cr_utility"), numbers(finite, "grr_utility"))
    return alphas.tolist(), utilities.tolist()


def correlation(records: Sequence[Record]) -> float:
    """Pearson's ρ between the difference in α and the difference in I(X;Y)."""
    return float(np.corrcoef(*differences(records))[0, 1])


def _alpha_utility_findings(records: Sequence[Record]) -> Findings:
    rows, all_close = [], True
    for epsilon, theirs in PAPER_CORRELATIONS.items():
        here = select(records, epsilon=epsilon)
        ours, n = correlation(here), len(differences(here)[0])
        # Fisher: artanh of a sample's ρ is close to normal, with variance 1/(n - 3).
        apart = abs(math.atanh(ours) - math.atanh(theirs)) / math.sqrt(1 / (n - 3) + 1 / 97)
        all_close = all_close and apart < 2.5
        rows.append([f"{epsilon:g}", f"{theirs:.4f}", f"{ours:.4f}", f"{apart:.1f}"])
    return Findings(
        paper=join_paragraphs(
            """The difference in I(X;Y) between CR and GRR is for the most part explained by the difference in α, on 100
            distributions with a = c = 5: ρ = 0.9815, 0.9889 and 0.9731 at ε = 1, 1.5 and 2."""
        ),
        ours=join_paragraphs(
            f"""{len(select(records, epsilon=1.0))} Jeffreys draws. The last column is how far the two correlations are
            apart, in standard errors of the difference between two such samples (Fisher's transformation).

            {format_table(["ε", "ρ in the paper", "ρ here", "standard errors apart"], rows)}"""
        ),
        verdict="**We agree**, as closely as two random samples can."
        if all_close
        else "**We agree in kind, not in the figures**: the correlations are farther apart than two samples should be.",
    )


ALPHA_UTILITY = Experiment(
    name="alpha-utility",
    number=6,
    title="Difference in α against difference in utility",
    picture="Three scatter plots, ε = 1, 1.5 and 2: the difference in I(X;Y) between CR and GRR rises nearly linearly "
    "with their difference in α",
    tasks=_alpha_utility_tasks,
    findings=_alpha_utility_findings,
    columns={"a, c": "how many values X and S have", **COLUMNS},
)


# -- figure 7 ------------------------------------------------------------------------------------------------------


def _alpha_epsilon_tasks(quick: bool) -> list[Task]:
    epsilons = tuple(round(e, 2) for e in np.linspace(0.25, 4, 16 if quick else 76).tolist())
    return [partial(measure_adult, *case, epsilons) for case in ADULT_CASES]


def _alpha_epsilon_findings(records: Sequence[Record]) -> Findings:
    lines, holds = [], True
    for secret, publish in ADULT_CASES:
        here = select(records, secret=secret, publish=publish)
        larger = [float(r["grr_alpha"]) > float(r["cr_alpha"]) for r in here]
        better = [float(r["grr_utility"]) > float(r["cr_utility"]) for r in here]
        apart = [float(r["epsilon"]) for r, one, other in zip(here, larger, better, strict=True) if one != other]
        holds = holds and all(one == (publish == "education") for one in larger)
        lines.append(
            f"- {secret} × {publish}: the α of GRR is the larger one at {sum(larger)} of {len(here)} values of ε. The "
            f"method with the larger α keeps more at {len(here) - len(apart)} of them"
            + (f"; not between ε = {min(apart):g} and {max(apart):g}." if apart else ".")
        )
    return Findings(
        paper=join_paragraphs(
            """For occupation × education the α of GRR lies above that of CR, and GRR keeps more; for occupation ×
            relationship it is the other way round."""
        ),
        ours="\n\n" + "\n".join(lines),
        verdict=join_paragraphs(
            f"""**We {"agree" if holds else "do not agree everywhere"}** on which α is larger. That the larger α keeps
            more is a good rule, not a law: the two α are not quite the same thing, one being weighed against a−1 other
            values, the other against c−1 other secrets."""
        ),
    )


ALPHA_EPSILON = Experiment(
    name="alpha-epsilon",
    number=7,
    title="α against ε on Adult",
    picture="Two panels, occupation × education and occupation × relationship: α of GRR and of CR against ε",
    tasks=_alpha_epsilon_tasks,
    findings=_alpha_epsilon_findings,
    columns={"secret, publish": "the columns of Adult", **{k: v for k, v in COLUMNS.items() if k != "seed"}},
)
