"""Private design: a protocol from differentially private counts, and from nothing else of the table.

Labels and bins come from a domain file, the number of rows is public, and everything that the protocol file states
(prior, information, bound, method, certificate) is computed from the noisy counts, so that by post-processing the file
tells no more of anybody than they do (docs/theory.md, the theorem on private designs).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from privacyfunnel.errors import ColumnError, ParameterError, SizeError
from privacyfunnel.formatting import format_epsilon, format_number
from privacyfunnel.hints import hint
from privacyfunnel.model.credal.noisy_sample_rule import NoisySampleRule
from privacyfunnel.model.credal.odds_range import OddsRange
from privacyfunnel.model.credal.sample_rule import RARE, check_confidence
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Population, PopulationPromise, Promise
from privacyfunnel.model.published.noise import NOISES, NoiseSource, OwnNoise
from privacyfunnel.model.published.noisy_counts import NoisyCounts, check_design_epsilon
from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.model.published.published_model import PublishedModel
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.coding.contingency import Contingency

MOST_CELLS = 1 << 16  # of counts that get noise: a second or two of exact draws
CONFIDENCE = 0.95  # unless another was asked for


@dataclass(frozen=True, slots=True)
class PrivateDesign:
    """What the owner asks of a private design."""

    epsilon: Fraction  # ε_c
    noise: str = "own"  # or opendp
    rare: int = RARE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_design_epsilon(self.epsilon))
        if self.noise not in NOISES:
            raise ParameterError(f"noise comes from {' or '.join(NOISES)}; not from '{self.noise}'.")

    def draw_noisy_joint(
        self, table: Contingency, promise: Promise, confidence: float | None = None, seed: int | None = None
    ) -> tuple[Joint, Promise]:
        """A noisy table to design for, and the promise about the people, as far as it knows them."""
        weights = table.weights
        if weights.size > MOST_CELLS:
            raise SizeError(
                f"a private design counts at most {MOST_CELLS:,} pairs of a secret and a combination of labels; this "
                f"domain has {weights.size:,}. Publish fewer columns, or use coarser bins."
            )
        for role, size in zip(("secret", "published"), weights.shape, strict=True):
            if size < 2:
                raise ColumnError(
                    f"what is {role} must have at least two labels; the domain lists one. List others that anybody "
                    "might have, or name another column."
                )
        counts = NoisyCounts.draw(weights, self.epsilon, self._noise_source(seed))
        joint = Joint.from_contingency(replace(table, weights=counts.weights))
        rule = NoisySampleRule(counts, check_confidence(confidence or CONFIDENCE), self.rare)
        return joint, PopulationPromise(promise, Population(rule, counts.rows), joint)

    def _noise_source(self, seed: int | None) -> Callable[[Fraction], NoiseSource]:
        """Where noise comes from; from a seed for tests only, and then the protocol is not for publication."""
        return NOISES[self.noise] if seed is None else partial(OwnNoise, randbelow=random.Random(seed).randrange)


def make_private_design(spec: ReleaseSpec) -> PrivateDesign | None:
    """The private design that the spec asks for, if any."""
    if spec.design_epsilon is None:
        return None
    return PrivateDesign(check_design_epsilon(spec.design_epsilon), spec.design_noise)


def model_scope_statement(secret: str, odds: OddsRange | None) -> str:
    """Whom a promise by a published model is about."""
    also = "" if odds is None else f", and to {odds.people('it')}"
    return (
        f"The promise is to whoever believes the published model of {secret}{also}; whoever knows better, such as the "
        "table's exact frequencies, may learn more."
    )


def _model_statements(sealed: SealedProtocol, model: PublishedModel, secret: str, spent: float) -> list[str]:
    design, records = (format_number(float(each)) for each in (model.epsilon, model.total - model.epsilon))
    whole = format_epsilon(float(model.total) + spent)
    design += f" and {format_epsilon(spent)} for designs of the same rows before it" if spent else ""
    found = [
        f"All public files together move what somebody who believes the model and knows all other rows thinks of a "
        f"person's {secret} by e^{whole} at most: {design} for the model, {records} for the records."
    ]
    if model.delta:
        few = [f"those of {column} count as '{label}'" for column, label in sealed.domain.rest.items()]
        of = f" Values with few rows are not named: {', '.join(few)}." if few else ""
        found.append(
            f"A label is named because of one person with a chance of {float(model.delta):.0e} at most.{of} The model "
            f"does not list rare values of {secret} and takes them for average: nothing is promised about one of them."
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
    promise, secret, codebook = sealed.promise, " & ".join(sealed.domain.secret_columns), bool(sealed.outcomes)
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
            f"{secret}.{advice if to_owner else ''}"
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
    columns, secret = " & ".join(at.name for at in sealed.domain.attributes), " & ".join(sealed.domain.secret_columns)
    few = min(int(counts[counts > 0].min()) for counts in sealed.shares.counts)
    return [
        f"The exact shares of {columns} are published in protocol.json, down to {few:,} row{'s' if few > 1 else ''}: "
        f"whoever knows {columns} of everybody else learns that of the last person, and what it says about {secret}, "
        "however small ε is."
    ]
