r"""The people whom a table's rows stand for: the ε of any protocol for them, with a stated confidence.

A protocol certified for a table says nothing of the people whom its rows are an independent sample of. Their
distribution lies, with probability 1 − β over the sample, in the sets of Theorem 44 (docs/theory.md); the largest
ratio over all members (Theorem 45) is therefore, with that confidence, no less than theirs:

.. math:: \varepsilon^* \le \max_{P \in U(D)} \varepsilon(P, q) \quad\text{with probability } 1 - \beta.

Secrets of few rows count together, as they do in a promise for a population; each is measured alone as well. Where the
population was promised, its bounds are the exact ones of the certificate. Otherwise this is a statement, from floats
rounded outwards. Either way it is computed from counts, depends on the secrets, and is the owner's: in no public file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privacyfunnel.errors import ParameterError, SizeError
from privacyfunnel.formatting import finite_or_none, format_epsilon, format_percent
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.model.comparisons import Leak
from privacyfunnel.model.credal.clopper_pearson import OutwardBounds
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.credal.events import refuse_scales
from privacyfunnel.model.credal.sample_rule import CredalRule, SampleRule
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

CONFIDENCE = Fraction(95, 100)  # where none was asked for
AT_A_GLANCE = 3 * 10**6  # numbers gone through for all outputs and sets, a quarter of a microsecond each: for a summary
AT_LEISURE = 10**8  # … and for an audit, half a minute at most
BOUND = 50  # a bound itself takes as long as so many numbers
TOO_FEW = "they are too few to exclude anything about them"


@dataclass(frozen=True, slots=True)
class PopulationBound:
    """At most this much is learned about the people whom some rows are a sample of, with a stated confidence."""

    rows: int
    confidence: float
    epsilon: float  # infinite where nothing bounds it
    reason: str  # where it is largest, in words
    is_certificate: (
        bool  # whether that is a certificate, with exact bounds; else a statement, in floats rounded outwards
    )
    rare: int  # secrets with fewer rows count together …
    alone: Mapping[str, float]  # … and each of these by itself has this ε
    private: bool = False  # whether the protocol was made from counts with noise, and knows nothing of the table itself

    @property
    def statement(self) -> str:
        """How much, and with which confidence."""
        size = "unbounded" if math.isinf(self.epsilon) else f"at most {format_epsilon(self.epsilon)}"
        rare = f", secrets of fewer than {self.rare} rows together" if self.alone else ""
        return f"{size} with {format_percent(self.confidence)} confidence{rare}"

    @property
    def kind(self) -> str:
        """What the figure is worth."""
        return "certified" if self.is_certificate else f"not promised; {hint('population', '95%')} promises it"

    @property
    def rare_alone(self) -> str:
        """The ε of every rare secret by itself; nothing where there is none."""
        each = ", ".join(f"{secret} {format_epsilon(epsilon)}" for secret, epsilon in self.alone.items())
        return f"population ε pools secrets with fewer than {self.rare} rows; alone {each}" if each else ""

    def describe_with_table(self, certified: float) -> str:
        """The table's ε and that of the people, in one sentence."""
        first = f"certified ε = {format_epsilon(certified)} for the people in these {self.rows:,} rows"
        if self.private:
            first = (
                f"for these {self.rows:,} rows by themselves nothing is certified: a private design knows noisy counts"
            )
        return f"{first}; for others like them, if the file is a sample, ε is {self.statement} ({self.kind})"

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON; null where there is no bound."""
        return {
            "rows": self.rows,
            "confidence": self.confidence,
            "epsilon": finite_or_none(self.epsilon),
            "bounded": math.isfinite(self.epsilon),
            "because": self.reason,
            "certificate": self.is_certificate,
            "private_design": self.private,
            "rare_below": self.rare,
            "alone": {secret: finite_or_none(epsilon) for secret, epsilon in self.alone.items()},
        }


def population_bound(law: Mechanism, promise: Promise, joint: Joint, most: int = AT_LEISURE) -> PopulationBound | None:
    """The ε of the population; None where the promise says too little for one, or it takes more than `most` numbers.

    Raises nothing: a release or an audit stands without it.
    """
    plain = promise if promise.components is None else promise.components[0]
    stated = plain.population
    rows = joint.total if stated is None else stated.rows  # counts with noise do not add up to what is public
    try:
        if _work(law, plain, joint, most) > most:
            return None
    except ParameterError:  # a promise of somebody's own, which does not say what it compares
        return None
    rule: CredalRule = (
        SampleRule(CONFIDENCE, bounds=OutwardBounds()).fit_limit(joint) if stated is None else stated.rule
    )
    rare = {s: label for s, label in enumerate(joint.secrets) if 0 < joint.weights[s].sum() < rule.rare}

    def prior_sets(rule: CredalRule) -> CredalSets:
        return rule.credal_sets(lambda c: plain.group_pairs(c, joint.m, law.sees_secret), joint, law.sees_secret)

    try:
        each = prior_sets(rule.pool_below(0)) if rare else None
        alone = (
            {} if each is None else {rare[s]: law.worst_credal_leak(each.select_secret(s)).leak.epsilon for s in rare}
        )
        try:
            all_of_them = plain.credal_sets(joint, law.sees_secret) or prior_sets(rule)
        except ParameterError:  # one group is left
            return PopulationBound(rows, float(rule.confidence), math.inf, TOO_FEW, False, rule.rare, alone)
        leak = law.worst_credal_leak(all_of_them).leak
    except SizeError:
        return None
    because = _find_reason(leak, law, joint)
    promised, private = stated is not None, rule.table is not None
    return PopulationBound(rows, float(rule.confidence), leak.epsilon, because, promised, rule.rare, alone, private)


def _work(law: Mechanism, promise: Promise, joint: Joint, most: int) -> int:
    """How many numbers the worst members of all sets take, for all outputs; counted until they are too many."""
    inputs, events = joint.a * (joint.c if law.sees_secret else 1), 0
    outputs = max(law.observation_size // max(law.inputs, 1), 1)
    for question in promise.group_pairs(joint.c, joint.m, law.sees_secret):
        refuse_scales(question)
        classes = len(np.unique(joint.combos[:, question.known], axis=0)) if question.known else 1
        events += classes * max(2 * joint.c * inputs, len(question.pairs))
        if events * max(outputs, BOUND) > most:
            break
    return events * max(outputs, BOUND)


def _find_reason(leak: Leak, law: Mechanism, joint: Joint) -> str:
    """Which rows leave so much open, and to whom."""
    if leak.output is None:
        return "no output says anything about the secret"
    values = np.ones(joint.a, dtype=bool)
    for attribute, label in leak.known:
        values &= joint.combos[:, attribute] == label
    rows = int(joint.weights[list(leak.secrets)][:, values].sum())
    return f"{rows:,} rows leave that much open about them: {law.protocol.describe(leak, joint)}"
