r"""What rare secrets cost where the people are promised: how little their rows exclude, and what each alone would take.

A value that none of n rows has may belong to as many as :math:`1 - \beta^{1/n}` of the people whom they stand for, with
confidence 1 − β. Every output must leave that much open, for everybody, if such a secret is promised by itself. What
that takes is measured with randomised response, which is calibrated in milliseconds: with every rare secret alone, and
with the rare ones together, as a promise for a population does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.model.credal.clopper_pearson import OutwardBounds
from privacyfunnel.model.credal.sample_rule import RARE, SampleRule
from privacyfunnel.model.information import mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Population, PopulationPromise, Promise
from privacyfunnel.release.findings.population import CONFIDENCE
from privacyfunnel.release.findings.rare_values import RareSecrets, rare_secrets

MOST_CELLS = 400  # of secrets and values: a column with more is not measured, so that a scan stays quick


@dataclass(frozen=True, slots=True)
class RareSecretCosts:
    """Secrets of few rows: what these leave open, and what promising each alone would take of each column."""

    confidence: float
    left_open: Mapping[
        str, float
    ]  # by secret: the share of its people that may have a value which none of its rows has
    kept: Mapping[str, tuple[float, float]]  # nats by column, by randomised response: each alone, and together

    @property
    def text(self) -> str:
        """All of it in a sentence or two."""
        each = ", ".join(f"{100 * share:.1f} % of {secret}" for secret, share in self.left_open.items())
        said = (
            f"Rare secrets, for the people whom these rows stand for: a value that none of its rows has may be that of "
            f"{each} ({100 * self.confidence:g} % confidence)."
        )
        costs = ", ".join(f"{alone:.4f} instead of {both:.4f} of {name}" for name, (alone, both) in self.kept.items())
        if costs:
            said += (
                " So a promise for a population pools them with the next rarest secret. Promised each alone, "
                f"randomised response would keep, in nats, {costs}."
            )
        return said


def rare_secret_costs(
    secrets: tuple[str, ...], rows: IntArray, joints: Mapping[str, Joint], promise: Promise
) -> RareSecretCosts | None:
    """What secrets with fewer than RARE rows cost; None where there is none."""
    beta = float(1 - CONFIDENCE)
    left_open = {label: 1 - beta ** (1 / n) for label, n in zip(secrets, rows.tolist(), strict=True) if 0 < n < RARE}
    if not left_open:
        return None
    kept = {}
    for column, joint in joints.items():
        alone, together = _population_information(joint, promise, each=True), _population_information(joint, promise)
        if alone is not None and together is not None and f"{alone:.4f}" != f"{together:.4f}":
            kept[column] = (alone, together)
    return RareSecretCosts(float(CONFIDENCE), left_open, kept)


def _population_information(joint: Joint, promise: Promise, each: bool = False) -> float | None:
    """What randomised response keeps for the population, in nats; None where it is not measured."""
    if joint.weights.size > MOST_CELLS or joint.a < 2:
        return None
    rule = SampleRule(CONFIDENCE, bounds=OutwardBounds()).fit_limit(joint)
    try:
        for_people = PopulationPromise(
            promise, Population(rule.without_pooling() if each else rule, joint.total), joint
        )
        return mutual_information(joint, randomised_response(joint, for_people))
    except (ParameterError, GuaranteeError):  # too few rows, or a promise of somebody's own
        return None


@dataclass(frozen=True, slots=True)
class RareSecretLeaks:
    """Secrets that few rows hold, and what each column would leak, published as it is: now, and were they merged."""

    secrets: RareSecrets
    leaks: Mapping[str, tuple[float, float]]  # by column


def rare_leaks(
    secrets: Sequence[str], rows: IntArray, joints: Mapping[str, Joint], leak: Callable[[Joint], float]
) -> RareSecretLeaks | None:
    """What merging rare secrets would change; None where no secret is rare, or it would bound no column's leak."""
    merged = rare_secrets(secrets, rows)
    if merged is None:
        return None
    leaks = {column: (leak(joint), leak(merged.merge(joint))) for column, joint in joints.items()}
    if not any(math.isinf(before) and math.isfinite(after) for before, after in leaks.values()):
        return None
    return RareSecretLeaks(merged, leaks)
