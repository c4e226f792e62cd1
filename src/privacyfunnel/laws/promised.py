"""A promise as it stands in the protocol file.

A promise for several priors states them, for without them nobody could check it again: exact probabilities of the
secret and the published values together, as integers without a common factor. They are the owner's assumptions about
whom the promise holds for, and become public with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.laws.domain import Domain
from privacyfunnel.model.joint import INT64_TOTAL, Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.promises import promise as promise_called


def promise_to_json(promise: Promise) -> dict[str, Any]:
    """Its name and size, and the priors that it is kept for besides the table's own."""
    stated: dict[str, Any] = {"name": promise.name, "epsilon": promise.epsilon}
    if promise.made_of is not None:
        inner, priors = promise.made_of
        stated["promise"] = promise_to_json(inner)
        stated["priors"] = [_prior_to_json(prior) for prior in priors]
    return stated


def promise_from_json(content: Mapping[str, Any], domain: Domain) -> Promise:
    """The promise that a protocol file states; priors are over the values of its domain."""
    if "priors" not in content:
        return promise_called(content["name"], content["epsilon"])
    promise = promise_from_json(content["promise"], domain)
    if (promise.name, promise.epsilon) != (content["name"], content["epsilon"]):
        raise ProtocolFileError("a promise for several priors must be called like the one it is made of; it is not.")
    return promise.for_priors([_prior_from_json(prior, domain) for prior in content["priors"]])


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
