"""What there is to know about a release beyond its certificate, each computed once, when it is first asked for.

Who knows better than the prior of a promise? Five questions, each with a number: somebody who believes the prior is
promised ε; others are measured: who knows the exact frequencies of the table, the population at a confidence, who knows
some of the columns, and who fitted a classifier to the raw rows. The answers follow from counts of the secret, and are
the owner's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from privacyfunnel.designs.methods import Effort, find_method
from privacyfunnel.designs.wide.real_share_bound import bound_real_share
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.formatting import finite_or_none, format_factor, format_percent
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sealing import SealedProtocol, exact_worst_leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, PopulationPromise
from privacyfunnel.names import format_names
from privacyfunnel.release.design import DesignResult
from privacyfunnel.release.findings.attacker_leaks import (
    ClassifierLeak,
    Linkage,
    SideChannel,
    classifier_leak,
    measure_linkage,
    side_channel,
)
from privacyfunnel.release.findings.known_columns import measure_known_columns
from privacyfunnel.release.findings.population import AT_A_GLANCE, PopulationBound, population_bound
from privacyfunnel.release.findings.rare_values import RareSecrets, rare_secret_advice, rare_value_advice
from privacyfunnel.release.findings.sparseness import sparseness_advice
from privacyfunnel.release.model_design import FittedModel
from privacyfunnel.release.wide_design import FittedWideModel
from privacyfunnel.spec import ReleaseSpec

T = TypeVar("T")
BELIEVER, FREQUENCIES, POPULATION, COLUMNS, CLASSIFIER = "model", "frequencies", "population", "columns", "classifier"
SHORT = {
    FREQUENCIES: "whoever knows the table's exact frequencies",
    POPULATION: "others like those in the file (95 % confidence)",
    COLUMNS: "neighbours who know a column",
    CLASSIFIER: "whoever fitted a classifier to the raw rows",
}
NOT_MEASURED = "Not measured here: it takes too long for so many values."
ONE_COLUMN = "One column is published: whoever knows it knows the whole record, and learns nothing more from it."
MOST_ROWS = 0.5  # of which a belief moves by more than was promised: the model is too coarse for a promise to most
POOLED_PART = 3  # of an even share of the rows: with less, a secret is one of those that cost a population much
POOLED_GAP, POOLED_WORK = 0.01, 4.0  # how near, and how many nominal seconds, what pooling saves is computed
SIDE_SECONDS = 1.5  # to measure the leakage to somebody who knows some columns


@dataclass(frozen=True, slots=True)
class Attacker:
    """Somebody, and by how much their belief about the secret can move through all that is public."""

    name: str
    who: str
    promised: float | None  # ε that the promise allows them; None where they are promised nothing
    epsilon: float | None  # of this release, for them; infinite where nothing bounds it, None where not measured
    answer: str
    rows_beyond: float | None = None  # share of rows whose record moves their belief by more than was promised

    def exceeds(self, promised: float) -> bool:
        """Whether they can learn more than believers of the prior are promised."""
        return self.promised is None and self.epsilon is not None and self.epsilon > promised

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON; epsilon is null where it is not measured or not bounded."""
        return {
            "name": self.name,
            "who": self.who,
            "promised": self.promised,
            "epsilon": None if self.epsilon is None else finite_or_none(self.epsilon),
            "measured": self.epsilon is not None,
            "rows_beyond": self.rows_beyond,
            "answer": self.answer,
        }


def list_attackers(
    sealed: SealedProtocol,
    *,
    frequencies: float | None,
    people: PopulationBound | None,
    not_for_people: str,
    columns: SideChannel | None,
    classifier: ClassifierLeak | None,
) -> tuple[Attacker, ...]:
    """The five, in the order of what they know."""
    model = sealed.model
    spent = 0.0 if model is None else float(model.epsilon)  # what the published model itself may tell whoever disagrees
    return (
        *_believers(sealed),
        *([] if model is None else [_frequencies(frequencies)]),
        _population(sealed, people, not_for_people, spent),
        _columns(sealed, columns, spent),
        _classifier(sealed, classifier, spent),
    )


def warn_of_attackers(found: tuple[Attacker, ...], promised: float, *, one_secret: bool = True) -> str:
    """In one line, who can learn more than was promised, and how much; nothing where nobody was found to.

    Where that is most rows for a classifier, the model says less of the secret than people can know, and the promise
    is to nobody but those who believe it: that is said, and what covers others.
    """
    worse, coarse = [], ""
    for each in found:
        if each.epsilon is not None and each.exceeds(promised):
            size = "no bound" if math.isinf(each.epsilon) else f"×{format_factor(each.epsilon)}"
            rows = f" for {format_percent(each.rows_beyond, up=True)} of rows" if each.rows_beyond else ""
            worse.append(f"{SHORT[each.name]} {size}{rows}")
            if each.name == CLASSIFIER and each.rows_beyond is not None and each.rows_beyond > MOST_ROWS:
                coarse = ". Most rows are not protected from them"
                if one_secret:
                    coarse += f": {hint('robust', 1.25)} covers whoever has nearly the model's odds"
    return f"more than ×{format_factor(promised)} for some: {'; '.join(worse)}{coarse}" if worse else ""


def _believers(sealed: SealedProtocol) -> list[Attacker]:
    """Those whom the certificate is about."""
    total, certified, odds = sealed.total_epsilon, sealed.certified_total, sealed.promise.odds
    prior = "the table" if sealed.model is None else "the model"
    most = f"by a factor of at most {format_factor(certified)}, checked {sealed.mechanism.describe_check()}"
    found = []
    if sealed.model is not None:
        whose = f"Promised, {most}: anybody can repeat that from the public file alone."
        found = [Attacker(BELIEVER, "somebody who believes the published model", total, certified, whose)]
    elif not sealed.has_noisy_design:
        whose = f"Promised, {most}, on the integers that the draw used."
        who = "somebody who knows the table's exact frequencies"
        found = [Attacker(FREQUENCIES, who, total, sealed.epsilon, whose)]
    if sealed.promise.known_columns:
        who = f"somebody who knows {format_names(sealed.promise.known_columns)} of a person, and believes the model"
        found.append(Attacker("neighbours", who, total, certified, f"Promised, {most}."))
    if odds is not None:
        found.append(Attacker("robust", odds.people(prior), total, certified, f"Promised, {most}."))
    return found


def _frequencies(leak: float | None) -> Attacker:
    who = "somebody who knows the table's exact frequencies"
    text = NOT_MEASURED if leak is None else f"Measured: {_size(leak)}."
    return Attacker(FREQUENCIES, who, None, leak, f"Not promised. {text}")


def _population(sealed: SealedProtocol, people: PopulationBound | None, why_not: str, spent: float) -> Attacker:
    who, promised = "the population that the rows were sampled from", sealed.promise.population
    rare = "" if people is None or not people.rare_alone else f" {people.rare_alone[0].upper()}{people.rare_alone[1:]}."
    if promised is not None:
        sure = f"with {format_percent(promised.confidence)} confidence, if the rows are an independent sample of it"
        most = f"Promised, by a factor of at most {format_factor(sealed.promise.epsilon)}, {sure}."
        return Attacker(POPULATION, who, sealed.promise.epsilon, sealed.epsilon, most + rare)
    text = f"Not promised: {why_not}." if why_not else "Not promised."
    if people is None:
        return Attacker(POPULATION, who, None, None, f"{text} {NOT_MEASURED}")
    leak = people.epsilon + spent
    size = "no bound" if math.isinf(leak) else f"a factor of at most {format_factor(leak)}"
    sure = f"with {format_percent(people.confidence)} confidence, if the file is a sample of it"
    return Attacker(POPULATION, who, None, leak, f"{text} Measured: {size}, {sure}.{rare}")


def _columns(sealed: SealedProtocol, found: SideChannel | None, spent: float) -> Attacker:
    who, guards = "somebody who knows some of the columns", sealed.promise.guards_known_attributes
    if len(sealed.domain.attributes) == 1 and not sealed.sees_secret:
        return Attacker(COLUMNS, who, sealed.total_epsilon, spent, ONE_COLUMN)
    if found is None:
        return Attacker(COLUMNS, who, sealed.total_epsilon if guards else None, None, NOT_MEASURED)
    leak = found.epsilon + spent
    limit = "at most" if found.exact else "at least"
    size = "no bound" if math.isinf(leak) else f"a factor of {limit} {format_factor(leak)}"
    text = "Promised" if guards else "Not promised"
    promised = sealed.total_epsilon if guards else None
    return Attacker(COLUMNS, who, promised, leak, f"{text}. Measured: {size} ({found.text}).")


def _classifier(sealed: SealedProtocol, found: ClassifierLeak | None, spent: float) -> Attacker:
    who = "somebody who fitted a classifier to the raw rows"
    if found is None:
        return Attacker(CLASSIFIER, who, None, None, f"Not promised. {NOT_MEASURED}")
    up, down = _size(found.up + spent), _size(found.down + spent)
    limit = format_factor(sealed.total_epsilon)
    rises, falls = (format_percent(share, up=True) for share in (found.share_up, found.share_down))
    text = (
        f"Not promised. Measured: it removes {format_percent(found.gain)} of the uncertainty about the secret on rows "
        f"that it was not fitted to. A record raises its belief by {up} at most, beyond {limit} for {rises} of rows; "
        f"and lowers it by {down} at most, beyond {limit} for {falls} of rows."
    )
    return Attacker(CLASSIFIER, who, None, found.epsilon + spent, text, found.share)


def _size(epsilon: float) -> str:
    return "any factor" if math.isinf(epsilon) else f"a factor of {format_factor(epsilon)}"


def _pooling_advice(design: DesignResult) -> str:
    """What secrets that few rows hold cost where the population is promised, and what pooling them would save.

    Two optima are sought for a few seconds of counted work each: without the population, and with a pool of all
    secrets that have less than a third of an even share. An owner who merges these is promised less, and gets as much.
    """
    promise, joint, worth = design.sealed.promise, design.joint, design.worth
    people, rows = promise.population, joint.weights.sum(axis=1)
    limit = int(rows.sum()) // (POOLED_PART * joint.c)
    rare = [s for s in np.argsort(rows, kind="stable").tolist() if rows[s] < limit]
    one = len(design.sealed.domain.secret_columns) == 1
    if people is None or not one or len(rare) < 2 or limit <= people.rule.rare or joint.c < len(rare) + 2:
        return ""
    pooled = PopulationPromise(promise.table_promise, replace(people, rule=people.rule.pool_below(limit)), joint)
    effort = Effort(max(design.options.effort.gap, POOLED_GAP), work_limit=POOLED_WORK)
    try:
        alone, together = (
            find_method(design.choice.method).design(joint, each, replace(design.options, effort=effort)).worth.value
            for each in (promise.table_promise, pooled)
        )
    except PrivacyFunnelError:  # a release stands without it
        return ""
    less = worth.use.less_is_better
    if (together >= worth.value) if less else (together <= worth.value):
        return ""
    bound = "or less" if less else "or more"
    named = RareSecrets(joint.secrets, tuple(joint.secrets[s] for s in sorted(rare)), len(rare))
    return (
        f"{worth.use.unit}: {worth.value:.3g} for the population, {alone:.3g} {bound} for these "
        f"rows alone. {len(rare)} of {joint.c} values of {joint.secret_name} with {int(rows[rare].sum()):,} rows cost "
        f"much of that: {named.option} makes it {together:.3g} {bound}; which of them it is would no longer "
        "be protected."
    )


class Findings:
    """The owner's findings about a design; they may quote counts."""

    def __init__(self, design: DesignResult, spec: ReleaseSpec) -> None:
        self._design, self._spec = design, spec
        self._others: dict[str, Any] = {}

    @cached_property
    def known_values_leak(self) -> float | None:
        """ε against an attacker who knows X, where the mechanism reads S."""
        law = self._design.sealed.mechanism
        return SRLIP(0).leakage(self._design.joint, law.protocol) if law.sees_secret else None

    @cached_property
    def sparse(self) -> str:
        """How far combinations reveal the secret, and what a smaller table would change."""
        design = self._design
        return "" if self._spec.is_private_design else sparseness_advice(design.joint, design.sealed.domain.bins)

    @cached_property
    def rare(self) -> tuple[str, ...]:
        """Values with few rows, and what merging rare secrets would keep; a sentence each."""
        found = [_pooling_advice(self._design)]
        if not self._spec.is_private_design:
            secrets = "" if found[0] else rare_secret_advice(self._design.joint, self._spec.secret)
            found = [rare_value_advice(self._design.joint), secrets, *found]
        return tuple(filter(None, found))

    @cached_property
    def people(self) -> PopulationBound | None:
        """ε for the population that the rows are a sample of, where it is quickly computed."""
        if not self._design.sealed.mechanism.lists_inputs:
            return None
        law, joint = self._on_table
        return population_bound(law, self._design.sealed.promise, joint, AT_A_GLANCE)

    @cached_property
    def table_leak(self) -> float | None:
        """What a record leaks to whoever knows the table's exact frequencies, in exact arithmetic.

        None where inputs are not listed: with many columns nearly every record occurs once, and tells all.
        """
        if not self._design.sealed.mechanism.lists_inputs:
            return None
        law, joint = self._on_table
        return exact_worst_leak(law, self._design.sealed.promise.without_scales, joint).leak.epsilon

    @cached_property
    def model_quality(self) -> str:
        """How well a model of many columns describes the table; nothing where there is none."""
        design = self._design
        if not isinstance(design.fitted, FittedWideModel) or not isinstance(design.sealed.mechanism, RealOrSynthetic):
            return ""
        most = format_percent(bound_real_share(design.sealed.mechanism), up=True)
        kept = format_percent(0.0 if design.wide is None else design.wide.real_share)
        return (
            f"{design.fitted.quality_statement}; {kept} of its records stay as they are, and no protocol with this "
            f"promise leaves more than {most} of them"
        )

    @property
    def poor_model(self) -> str:
        """That a model of many columns knows nothing of the secret, where it is so."""
        fitted = self._design.fitted
        return fitted.warning if isinstance(fitted, FittedWideModel) else ""

    @cached_property
    def known_columns(self) -> SideChannel | None:
        """What leaks to somebody who knows some of the columns, under the prior of the promise."""
        if isinstance(self._design.sealed.mechanism, RealOrSynthetic):
            return measure_known_columns(self._design.sealed.mechanism, self._design.joint)
        return side_channel(self._design.joint, self._design.sealed.mechanism, SIDE_SECONDS)

    @cached_property
    def classifier(self) -> ClassifierLeak | None:
        """What leaks to somebody who fitted a classifier to the raw rows."""
        law, joint = self._on_table
        return classifier_leak(law, self._design.sealed.promise, joint)

    @cached_property
    def linkage(self) -> Linkage:
        """Whether published values point at people, on the counts of the table."""
        return measure_linkage(*self._on_table)

    @cached_property
    def attackers(self) -> tuple[Attacker, ...]:
        """Who knows better than the prior, and what they can learn: the questions of the owner's report."""
        design = self._design
        return list_attackers(
            design.sealed,
            frequencies=None if design.sealed.model is None else self.table_leak,
            people=self.people,
            not_for_people=design.not_for_people,
            columns=self.known_columns,
            classifier=self.classifier,
        )

    @property
    def knows_better(self) -> str:
        """Who can learn more than was promised, in one line; nothing where nobody was found to."""
        sealed = self._design.sealed
        return warn_of_attackers(self.attackers, sealed.total_epsilon, one_secret=not sealed.promise.by_column)

    @property
    def _on_table(self) -> tuple[Mechanism, Joint]:
        """The mechanism on the values that rows have, and the counts that it was made from or for."""
        design = self._design
        if not isinstance(design.fitted, FittedModel):
            return design.sealed.mechanism, design.joint
        joint, occurs = design.fitted.table_joint
        return design.sealed.mechanism.restrict_inputs(occurs), joint

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """A finding of another package, computed at its first call."""
        if name not in self._others:
            self._others[name] = compute()
        return cast(T, self._others[name])
