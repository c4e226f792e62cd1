"""Designs through noise: what they may spend, what was tried where rows are too few, and what their files give away."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from privacyfunnel.errors import ParameterError, PrivacyFunnelError
from privacyfunnel.formatting import format_epsilon, format_factor, format_number
from privacyfunnel.hints import hint
from privacyfunnel.model.published.noise import NOISES, BeforeNoise, LoggedNoise, NoiseSource, OwnNoise
from privacyfunnel.model.published.noisy_counts import check_design_epsilon
from privacyfunnel.model.published.table_model import FewRowsError
from privacyfunnel.names import format_names
from privacyfunnel.spec.fields import TABLE

if TYPE_CHECKING:
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.model.published.table_model import PublishedModel
    from privacyfunnel.spec import ReleaseSpec

ADVISED = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # ε that a refusal may propose …
SURE = 0.8  # … if a model with so much of it was accepted …
REHEARSALS = 3  # … as often as this
LARGEST_TOTAL = 30  # with which labels are found: chances below 1e-24 are not told apart
LEAST_LEFT = Fraction(1, 1000)  # of ε for the records

Noise = Callable[[Fraction], NoiseSource]
Fitted = TypeVar("Fitted")


def model_scope_statement(sealed: SealedProtocol) -> str:
    """Whom a promise by a published model is about."""
    secret, odds = sealed.secret_text, sealed.promise.odds
    also = "" if odds is None else f", and to {odds.people('it')}"
    if sealed.follows:
        columns = format_names([at.name for at in sealed.domain.attributes[1:]])
        also = (
            f", and that {secret} is what it was in earlier releases, and {columns} what it was in the last, or "
            "another value that goes with it as in the model"
        )
    return (
        f"The promise is to whoever believes the published model of {secret}{also}; whoever knows better, such as the "
        "table's exact frequencies, may learn more."
    )


def _model_statements(sealed: SealedProtocol, model: PublishedModel, secret: str, spent: float) -> list[str]:
    design, records = (format_number(float(each)) for each in (model.epsilon, model.total - model.epsilon))
    whole = format_factor(float(model.total) + spent)
    design += f" and {format_epsilon(spent)} for designs of the same rows before it" if spent else ""
    files = f"All public files{f' of this release and of {sealed.follows} before it' if sealed.follows else ''}"
    found = [
        f"{files} together move what somebody who believes the model and knows all other rows thinks of a "
        f"person's {secret} by ×{whole} at most (ε = {design} for the model, {records} for the records)."
    ]
    if model.delta:
        rest = " Values with few rows are not named: they count as 'other', or as the commonest value of their column."
        of = rest if sealed.domain.rest else ""
        found.append(
            f"δ = {float(model.delta):.0e}: one person's presence makes a label appear with at most this probability."
            f"{of} Rare values of {secret} are not in the model, which treats them as average: nothing is promised "
            "about them."
        )
    if model.pooled:
        found.append(
            f"Values of {secret} with few rows are one group in the model ({format_names(model.pooled)}): nothing is "
            "promised that tells them apart."
        )
    return found


def design_statements(sealed: SealedProtocol, *, to_owner: bool, spent: float = 0.0) -> list[str]:
    """What the protocol file itself, and the codebook that was computed from it, may give away, in a sentence.

    `spent` is the ε of private designs for the same rows before it.
    """
    promise, secret, codebook = sealed.promise, sealed.secret_text, bool(sealed.outcomes)
    if sealed.model is not None:
        return _model_statements(sealed, sealed.model, secret, spent)
    made = "protocol.json and codebook.csv were made" if codebook else "protocol.json was made"
    they = "them" if codebook else "it"
    people = promise.population
    design = None if people is None else people.rule.design_epsilon
    if people is None or design is None:
        advice = f" Only you can read {they}; give {they} away only if nobody knows so much, or use "
        advice += f"{hint('prior', 'model')}."
        return [
            f"{made} from the counts themselves: whoever has {they} and knows all other rows can work out a person's "
            f"{secret}, and even the table alone is not protected against them.{advice if to_owner else ''}"
        ]
    most = promise.epsilon + float(design) + spent
    noise = f"{float(design):g}"
    noise += f", after designs of ε = {format_epsilon(spent)} for the same rows" if spent else ""
    return [
        f"{made} from counts with noise of ε = {noise}: together with the rows this moves what somebody "
        f"who knows all other rows believes about a person's {secret} by e^{most:g} at most, if these rows are an "
        f"independent sample of people, with confidence {people.confidence:.0%}. Labels and bins of the domain are "
        "public."
    ]


def share_statements(sealed: SealedProtocol) -> list[str]:
    """What exact shares give away, in a sentence; none where there are none."""
    if sealed.shares is None:
        return []
    columns, secret = " & ".join(at.name for at in sealed.domain.attributes), sealed.secret_text
    few = min(int(counts[counts > 0].min()) for counts in sealed.shares.counts)
    return [
        f"The exact shares of {columns} are published in protocol.json, down to {few:,} row{'s' if few > 1 else ''}: "
        f"whoever knows {columns} of everybody else learns that of the last person, and what it says about {secret}, "
        "however small ε is."
    ]


def refuse_large(total: Fraction, *, labels_given: bool) -> None:
    """Refuse an ε with which no label could be found through noise."""
    if total > LARGEST_TOTAL and not labels_given:
        raise ParameterError(
            f"Labels are found through noise for ε of at most {LARGEST_TOTAL}; it is {format_number(float(total))}. "
            f"Name labels in a domain file ({hint('domain', 'domain.json')}), or use a smaller ε."
        )


def refuse_merged(promise: Promise, groups: Sequence[tuple[str, ...]], columns: Sequence[str]) -> None:
    """Refuse a promise about values of the secret of which a model makes one group; `columns` are all that it has."""
    if promise.labels and any(len(group) != 1 for group in groups):
        raise ParameterError(
            f"{promise.name} names values of the secret, which a published model merges where they are rare or not "
            f"public. Say that the labels are public ({hint('public_labels', ','.join(columns))}) and merge rare "
            f"values of the secret ({hint('merge_secrets')}), or ask for {hint('prior', 'table')}."
        )


def fixed_part(spec: ReleaseSpec, whole: Fraction) -> Fraction | None:
    """The part of ε that the owner fixed for the model."""
    fixed = None if spec.design_epsilon is None else check_design_epsilon(spec.design_epsilon)
    if fixed is not None and whole - fixed < LEAST_LEFT:
        raise ParameterError(
            f"{hint('design_epsilon')} is a part of the whole ε = {format_number(float(whole))}; it is "
            f"{format_number(float(fixed))}. Give the model less, or ask for a larger ε."
        )
    return fixed


def noise_source(spec: ReleaseSpec, before_draw: BeforeNoise) -> Noise:
    """Where noise comes from; from a seed for tests only, and then the protocol is not for publication."""
    source = NOISES[spec.design_noise] if spec.seed is None else _seeded(spec.seed)
    return lambda rate: LoggedNoise(source(rate), before_draw)


def _seeded(seed: int) -> Noise:
    return partial(OwnNoise, randbelow=random.Random(seed).randrange)


def fit_or_advise(
    fit: Callable[[ReleaseSpec, Noise], Fitted], spec: ReleaseSpec, rows: int, before_noise: BeforeNoise
) -> Fitted:
    """What is fitted; where rows are too few, what would help, each tried with noise from seeds and accepted."""
    try:
        return fit(spec, noise_source(spec, before_noise))
    except FewRowsError as error:
        why, columns = str(error), [name for each in error.columns for name in each.split(" & ")]

    def is_accepted(epsilon: float, **changed: Any) -> bool:
        try:
            for seed in range(REHEARSALS):
                fit(replace(spec, epsilon=SURE * epsilon, factor=None, **changed), _seeded(seed))
        except (FewRowsError, PrivacyFunnelError):
            return False
        return True

    epsilon = spec.promise_value.epsilon
    larger = [hint("epsilon", format_number(each)) for each in ADVISED if each > epsilon and is_accepted(each)][:1]
    advice = larger
    for names in columns, (*spec.secret, *spec.publish):
        public = tuple(dict.fromkeys((*spec.public_labels, *names)))
        if public != spec.public_labels and is_accepted(epsilon, public_labels=public):
            advice.append(f"{hint('public_labels', ','.join(public))}, if it is known which values there are")
            break
    advice += ["fewer columns"] if len(spec.publish) > 1 else []
    with suppress(PrivacyFunnelError):
        replace(spec, prior=TABLE).require_columns()
        advice.append(f"{hint('prior', TABLE)}, whose mechanism is for your eyes only")
    raise ParameterError(
        f"A published model needs more rows, a larger ε or fewer values: {why} ({rows:,} rows). What would help: "
        f"{'; '.join([*advice, 'more rows'])}."
    )
