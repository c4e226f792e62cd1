"""Certificates and promises as the protocol file states them.

Figures of a certificate have few digits, rounded to the side on which they stay true: the last digits are a function of
everybody's secret, and whoever knows all other records could compare them (benchmarks attacks).

A promise for several priors states them: exact probabilities of the secret and the published values together, as
integers without a common factor. They are the owner's assumptions, and become public with the promise. A promise for a
population states its confidence, the rule by which sets of priors follow from counts, below how many rows secrets are
pooled, and the number of rows, but no count. Whoever has the counts can compute the sets. A private design also states
its noisy counts, which are public. One for everybody whose odds are near those of the prior states the factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.model.composable import ComposablePromise
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.credal.noisy_sample_rule import NoisySampleRule
from privacyfunnel.model.credal.sample_rule import SampleRule, SeenSecretsRule, check_confidence
from privacyfunnel.model.joint import INT64_TOTAL, Joint
from privacyfunnel.model.neighbours import NeighbourPromise
from privacyfunnel.model.promises import Population, PopulationPromise, Promise, RobustPromise, stated_promise

PLACES = 4  # of nats
FIGURES = 4  # of an ε, which may be tiny


def round_nats_down(nats: float) -> float:
    """At most so many nats, in four places.

    >>> round_nats_down(0.99412039), round_nats_up(0.99412039)
    (0.9941, 0.9942)
    """
    stated = float(Decimal(str(nats)).quantize(Decimal(1).scaleb(-PLACES), ROUND_FLOOR))
    return min(stated, nats)


def round_nats_up(nats: float) -> float:
    """At least so many nats, in four places."""
    if not math.isfinite(nats):
        return nats
    stated = float(Decimal(str(nats)).quantize(Decimal(1).scaleb(-PLACES), ROUND_CEILING))
    return max(stated, nats)


def round_epsilon_up(epsilon: float, most: float) -> float:
    """At least ε in four figures, and never above `most`, for which it was checked.

    >>> round_epsilon_up(0.4999999, 0.5), round_epsilon_up(0.123456, 0.5), round_epsilon_up(0.49999, 0.49999)
    (0.5, 0.1235, 0.49999)
    """
    rounded = float(Context(prec=FIGURES, rounding=ROUND_CEILING).create_decimal(str(epsilon)))
    return min(max(rounded, epsilon), most)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was certified and measured: few digits, each rounded to the side on which it stays true."""

    epsilon: float
    information: float  # nats, as all that follow
    information_error: float
    entropy: float
    bound: float | None

    def to_json(self) -> dict[str, float | None]:
        """As it stands in the protocol file."""
        return {
            "epsilon": self.epsilon,
            "information_nats": self.information,
            "information_error_nats": self.information_error,
            "entropy_nats": self.entropy,
            "bound_nats": self.bound,
        }


LEAST_DESIGN_EPSILON = Fraction(1, 1000)  # of a private design
RULES: Mapping[str, type[SampleRule] | type[NoisySampleRule]] = {
    rule.name: rule for rule in (SampleRule, SeenSecretsRule, NoisySampleRule)
}


def promise_to_json(promise: Promise) -> dict[str, Any]:
    """Its name and size, and the priors that it is kept for besides the table's own."""
    stated: dict[str, Any] = {"name": promise.name, "epsilon": promise.epsilon}
    if promise.parameters:
        stated["parameters"] = promise.parameters
    if promise.components is not None:
        inner, priors = promise.components
        stated["promise"] = promise_to_json(inner)
        stated["priors"] = [_prior_to_json(prior) for prior in priors]
    elif promise.population is not None:
        stated["population"] = _population_to_json(promise.population)
    elif promise.composable is not None:
        stated["composable"] = promise.composable
    if promise.odds is not None:
        stated["robust"] = str(promise.odds)
    if promise.known_columns:
        stated["known"] = list(promise.known_columns)
    return stated


def promise_from_json(content: Mapping[str, Any], domain: Domain) -> Promise:
    """The promise that a protocol file states; priors are over the values of its domain."""
    if "priors" not in content:
        plain = stated_promise(content["name"], content["epsilon"], content.get("parameters", {}))
        stated = content.get("population")
        covered = plain if "robust" not in content else RobustPromise(plain, OddsRange.parse(content["robust"]))
        if "known" in content:
            return NeighbourPromise(covered, tuple(map(str, content["known"])))
        if "robust" in content:
            return covered
        if "composable" in content:
            return ComposablePromise(plain, content["composable"])
        return plain if stated is None else PopulationPromise(plain, _population_from_json(stated))
    promise = promise_from_json(content["promise"], domain)
    if (promise.name, promise.epsilon) != (content["name"], content["epsilon"]):
        raise ProtocolFileError("a promise for several priors must be called like the one it is made of; it is not.")
    return promise.for_priors([_prior_from_json(prior, domain) for prior in content["priors"]])


def _population_to_json(population: Population) -> dict[str, Any]:
    rule = population.rule
    return {
        "confidence": str(rule.confidence),
        "rule": rule.name,
        "rare_below": rule.rare,
        "rows": population.rows,
        **rule.to_json(),
    }


def _population_from_json(content: Mapping[str, Any]) -> Population:
    known = "' or '".join(RULES)
    if content["rule"] not in RULES:
        raise ProtocolFileError(
            f"a promise for a population must follow the rule '{known}'; this one follows another. "
            "Make the protocol again, or use the release of privacyfunnel that wrote it."
        )
    rare, rows = int(content["rare_below"]), int(content["rows"])
    if rare < 0 or rows < 1:
        raise ProtocolFileError("a promise for a population must state how many rows it rests on; it does not.")
    confidence = check_confidence(Fraction(content["confidence"]))
    if "design" in content:
        _check_noise(content["design"])
    return Population(RULES[content["rule"]].from_json(confidence, rare, content), rows)


def _check_noise(design: Mapping[str, str]) -> None:
    """Refuse rates of noise that no private design has: the smaller a rate, the more chances of noise are computed."""
    epsilon, cells, totals = (Fraction(design[key]) for key in ("epsilon", "cell_rate", "total_rate"))
    if not (epsilon >= LEAST_DESIGN_EPSILON and cells >= epsilon * 2 / 5 and totals >= epsilon / 100):
        raise ProtocolFileError(
            f"the noise of a private design must have an ε of at least {float(LEAST_DESIGN_EPSILON)}, most of it for "
            "cells; the stated rates are smaller. Make the protocol again."
        )


def _prior_to_json(prior: Joint) -> dict[str, Any]:
    common = math.gcd(*map(int, prior.weights.flat))
    weights = [[str(int(w) // common) for w in row] for row in prior.weights]
    return {"secret": prior.secret_name, "secrets": list(prior.secrets), "p": weights}


def _prior_from_json(content: Mapping[str, Any], domain: Domain) -> Joint:
    weights = np.array([[int(w) for w in row] for row in content["p"]], dtype=object)
    if weights.shape != (len(content["secrets"]), len(domain.combos)) or (weights < 0).any():
        raise ProtocolFileError(
            f"a prior must have a chance of at least 0 for each of {len(domain.combos)} values; one has not."
        )
    small = int(weights.sum()) < INT64_TOTAL
    secrets = tuple(map(str, content["secrets"]))
    exact = weights.astype(np.int64) if small else weights
    return Joint(exact, secrets, domain.attributes, domain.combos, str(content["secret"]))
