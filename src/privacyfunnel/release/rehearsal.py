"""What a published model may spend and draw; where rows are too few for it, what was tried and would be accepted."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from privacyfunnel.errors import ParameterError, PrivacyFunnelError
from privacyfunnel.formatting import format_number
from privacyfunnel.hints import hint
from privacyfunnel.model.published.noise import NOISES, NoiseSource, OwnNoise
from privacyfunnel.model.published.noisy_counts import check_design_epsilon
from privacyfunnel.model.published.table_model import FewRowsError
from privacyfunnel.spec.fields import TABLE

if TYPE_CHECKING:
    from privacyfunnel.spec import ReleaseSpec

ADVISED = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # ε that a refusal may propose …
SURE = 0.8  # … if a model with so much of it was accepted …
REHEARSALS = 3  # … as often as this
LARGEST_TOTAL = 30  # with which labels are found: chances below 1e-24 are not told apart
LEAST_LEFT = Fraction(1, 1000)  # of ε for the records

Noise = Callable[[Fraction], NoiseSource]
Fitted = TypeVar("Fitted")


def refuse_large(total: Fraction, *, labels_given: bool) -> None:
    """Refuse an ε with which no label could be found through noise."""
    if total > LARGEST_TOTAL and not labels_given:
        raise ParameterError(
            f"Labels are found through noise for ε of at most {LARGEST_TOTAL}; it is {format_number(float(total))}. "
            f"Name labels in a domain file ({hint('domain', 'domain.json')}), or use a smaller ε."
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


def noise_source(spec: ReleaseSpec) -> Noise:
    """Where noise comes from; from a seed for tests only, and then the protocol is not for publication."""
    return NOISES[spec.design_noise] if spec.seed is None else _seeded(spec.seed)


def _seeded(seed: int) -> Noise:
    return partial(OwnNoise, randbelow=random.Random(seed).randrange)


def fit_or_advise(fit: Callable[[ReleaseSpec, Noise], Fitted], spec: ReleaseSpec, rows: int) -> Fitted:
    """What is fitted; where rows are too few, what would help, each tried with noise from seeds and accepted."""
    try:
        return fit(spec, noise_source(spec))
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
