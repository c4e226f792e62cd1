"""Parts of a protocol file that are checked against each other while they are read."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.input_domain import ColumnShares, Domain, shares_from_json
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.model.each_secret import Each
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.each_model import EachModel
from privacyfunnel.model.published.table_model import PublishedModel, TableModel
from privacyfunnel.model.published.wide_model import WideModel

DISTRIBUTION = 1e-9  # by how much rounding may keep a stated distribution from summing to 1


def parse_channel(rows: list[list[float]], domain: Domain, mechanism: Mechanism) -> FloatArray:
    """The channel from values to outputs that a file states: a distribution over the law's outputs for every value."""
    values, listed = len(domain.combos), mechanism.table_protocol
    outputs = 0 if listed is None else len(listed.outputs)
    if len(rows) != values or any(len(row) != outputs for row in rows):
        raise ProtocolFileError(
            f"the channel from values to outputs must have a chance for each of {values} values and {outputs} outputs; "
            "it has not. Make the file again."
        )
    channel = np.array(rows, dtype=np.float64)
    if not bool((np.abs(channel.sum(axis=1) - 1) <= DISTRIBUTION).all()):
        raise ProtocolFileError(f"the channel from {values} values to outputs must be distributions; it is not.")
    return channel


def parse_shares(content: Mapping[str, Any], domain: Domain, promise: Promise) -> ColumnShares | None:
    """The shares that a file states; a private design has none, for they would undo its noise."""
    shares, people = shares_from_json(content, domain), promise.population
    if shares is not None and people is not None and people.rule.design_epsilon is not None:
        raise ProtocolFileError("a private design must not state exact shares; it does.")
    return shares


def parse_model(content: Mapping[str, Any], domain: Domain, promise: Promise) -> PublishedModel | None:
    """The model that a file states: of its values, with the ε that its records leave of the whole."""
    if "model" not in content:
        return None
    stated, secret = content["model"], " & ".join(domain.secret_columns)
    if (content["kind"] == RealOrSynthetic.kind) != ("tables" in stated):
        raise ProtocolFileError(f"a tree is the model of a {RealOrSynthetic.kind} mechanism, and of no other.")
    model: WideModel | TableModel | EachModel
    if "tables" in stated:
        model = WideModel.from_json(stated, secret, domain.attributes)
    else:
        model = EachModel.from_json(stated, domain.secret_columns) if "each" in stated else TableModel.from_json(stated)
        values = next(iter(model.parts.values() if isinstance(model, EachModel) else [model])).weights.shape[1]
        if ("each" in stated) != isinstance(promise, Each):
            raise ProtocolFileError("a table for each secret is the model of a promise about each, and of no other.")
        if values != len(domain.combos):
            raise ProtocolFileError(
                f"a model must have a column for each of {len(domain.combos)} values; it has {values}."
            )
    if Fraction(promise.epsilon) + model.epsilon / Fraction(promise.smallest_scale(model.secrets)) > model.total:
        raise ProtocolFileError("the ε of records and model must add up to the whole ε at most; it is more.")
    if content["sees_secret"] or promise.population is not None or "shares" in content:
        raise ProtocolFileError("a protocol with a published model must not see the secret nor state exact shares.")
    return model
