"""What the report says, as numbers and words: everything that is shown is computed here, nothing is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.curve import Curve, Point, curve
from privacyfunnel.designs.methods import Effort
from privacyfunnel.estimation import Estimates
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.information import information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocol import Labels

SHOWN_OUTPUTS = 24  # in a picture; more cannot be read
SHOWN_SECRETS = 30  # in a picture; more cannot be read
MOST_INPUTS, MOST_IN_TWO = 300, 1500  # inputs for which a curve is drawn; more of them where the secret has two values
SIZES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0)  # the ε of its curve, besides the chosen one: enough to see the bend
LOOSE = Effort(gap=1e-3, time_limit=3.0)  # a curve is looked at, not published: a thousandth of a nat is enough
CURVE_SECONDS = 3.0  # for all of it: a point that has not begun by then is not drawn


@dataclass(frozen=True, slots=True)
class Belief:
    """How far a belief about one secret value may move, and how far it does."""

    secret: str
    prior: float
    lowest: float  # over all outputs, under the law
    highest: float
    at_least: float  # what was certified
    at_most: float


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """What each output stands for, most frequent first; and the channel. Only where outputs can be listed."""

    labels: tuple[str, ...]
    share: FloatArray  # p(y)
    posterior: FloatArray  # p(x | y), a row per output
    channel: FloatArray  # q(y | x), a row per value
    values: tuple[str, ...]
    left_out: int  # outputs that are too many to be shown


@dataclass(frozen=True, slots=True, eq=False)
class Attacker:
    """What someone who sees one published record believes about the secret."""

    secrets: tuple[str, ...]
    prior: FloatArray
    worst: FloatArray  # posterior after the output that moves a belief most
    worst_output: str
    typical: FloatArray  # after the most frequent output
    typical_output: str
    left_out: int


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A published column before and after: its shares in the table, published exactly, and estimated back."""

    name: str
    labels: tuple[str, ...]
    original: FloatArray
    exact: FloatArray | None  # how often the published table shows just this value
    estimated: FloatArray  # not a number where the protocol does not identify the share
    lower: FloatArray
    upper: FloatArray
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Association:
    """How much two columns say about each other, before and after, in nats."""

    one: str
    other: str
    before: float
    after: float


def beliefs(joint: Joint, sealed: SealedProtocol) -> tuple[Belief, ...]:
    """One per secret value, the one whose belief moves most (relative to its prior) first."""
    p_s, factor = joint.p_s, math.exp(sealed.epsilon)
    posterior, first = None, int(p_s.argmin())
    listed = sealed.law.listed
    if listed is not None:
        p_sy = listed.joint_with_secret(joint)
        p_y = p_sy.sum(axis=0)
        posterior = p_sy[:, p_y > 0] / p_y[p_y > 0]
        worst = sealed.promise.worst(joint, listed)
        first = worst.secrets[0] if worst.output is not None else first
    found = []
    for s, prior in enumerate(p_s):
        low, high = (prior / factor, min(1.0, prior * factor))
        seen_low, seen_high = (low, high) if posterior is None else (posterior[s].min(), posterior[s].max())
        found.append(Belief(joint.secrets[s], float(prior), float(seen_low), float(seen_high), float(low), float(high)))
    return (found[first], *(b for s, b in enumerate(found) if s != first))


def outputs(joint: Joint, sealed: SealedProtocol) -> Outputs | None:
    """The outputs of a law that has a channel; None for sets and chains, whose outputs are too many to list."""
    listed = sealed.law.listed
    if listed is None:
        return None
    p_xy = listed.joint_with_values(joint)
    p_y = p_xy.sum(axis=0)
    order = np.argsort(-p_y, kind="stable")
    order = order[p_y[order] > 0]
    shown = order[:SHOWN_OUTPUTS]
    return Outputs(
        labels=tuple(text(listed.outputs[y]) for y in shown),
        share=p_y[shown],
        posterior=(p_xy[:, shown] / p_y[shown]).T,
        channel=p_xy[:, shown] / joint.p_x[:, None],
        values=tuple(map(text, joint.values)),
        left_out=len(order) - len(shown),
    )


def attacker(joint: Joint, sealed: SealedProtocol) -> Attacker | None:
    """Prior and posteriors of the secret, after the worst and after the most frequent output."""
    listed = sealed.law.listed
    if listed is None:
        return None
    p_sy = listed.joint_with_secret(joint)
    p_y = p_sy.sum(axis=0)
    leak = sealed.promise.worst(joint, listed)
    worst = int(leak.output) if leak.output is not None else int(p_y.argmax())
    typical = int(p_y.argmax())
    order = np.argsort(-joint.p_s, kind="stable")[:SHOWN_SECRETS]
    return Attacker(
        secrets=tuple(joint.secrets[s] for s in order),
        prior=joint.p_s[order],
        worst=p_sy[order, worst] / p_y[worst],
        worst_output=text(listed.outputs[worst]),
        typical=p_sy[order, typical] / p_y[typical],
        typical_output=text(listed.outputs[typical]),
        left_out=joint.c - len(order),
    )


def columns(joint: Joint, sealed: SealedProtocol, estimates: Estimates | None) -> tuple[Column, ...]:
    """Each published column before and after; without those that the protocol's kind cannot be estimated from."""
    if estimates is None:
        return ()
    found = []
    for j, attribute in enumerate(joint.attributes):
        original = np.bincount(joint.combos[:, j], weights=joint.p_x, minlength=len(attribute.labels)).astype(
            np.float64
        )
        table = estimates.table(attribute.name)
        cells = {cell.labels[0]: cell for cell in table}
        found.append(
            Column(
                name=attribute.name,
                labels=attribute.labels,
                original=original,
                exact=_exact(joint, sealed, j),
                estimated=np.array([_number(cells[label].share) for label in attribute.labels]),
                lower=np.array([cells[label].lower for label in attribute.labels]),
                upper=np.array([cells[label].upper for label in attribute.labels]),
                notes=table.notes,
            )
        )
    return tuple(found)


def associations(joint: Joint, sealed: SealedProtocol) -> tuple[Association, ...]:
    """What every pair of columns says about each other: among those published, and each with the secret."""
    listed = sealed.law.listed
    if listed is None:
        return ()
    p_sy = listed.joint_with_secret(joint)
    p_y = p_sy.sum(axis=0)
    before = [_grouped(joint.p_sx, joint.combos[:, j]) for j in range(joint.m)]
    shown = [_codes(column) for column in zip(*listed.outputs, strict=True)]
    after = [_grouped(p_sy, codes) for codes in shown]
    found = [
        Association(joint.secret_name, at.name, information(before[j]), information(after[j]))
        for j, at in enumerate(joint.attributes)
    ]
    for i, j in combinations(range(joint.m), 2):
        p_ij = _table(joint.combos[:, i], joint.combos[:, j], joint.p_x)
        q_ij = _table(shown[i], shown[j], p_y)
        found.append(
            Association(joint.attributes[i].name, joint.attributes[j].name, information(p_ij), information(q_ij))
        )
    return tuple(found)


def trade_off_curve(
    joint: Joint, sealed: SealedProtocol, effort: Effort = LOOSE, known: Sequence[Point] = ()
) -> Curve | None:
    """What every method keeps on this very data, at the usual ε and the chosen one; None where it would take long.

    Points that are known from the release are not solved again.
    """
    inputs = joint.a * (joint.c if sealed.sees_secret else 1)
    if inputs > (MOST_IN_TWO if joint.c == 2 else MOST_INPUTS):
        return None
    sizes = sorted({*SIZES, sealed.promise.epsilon} - {0.0})
    return curve(
        joint,
        sealed.promise,
        epsilons=sizes,
        sees_secret=sealed.sees_secret,
        effort=effort,
        known=known,
        seconds=CURVE_SECONDS,
        cores=None,
    )


def text(labels: Labels) -> str:
    """An output or value in one line."""
    return " & ".join(labels)


def _number(share: float | None) -> float:
    return math.nan if share is None else share


def _exact(joint: Joint, sealed: SealedProtocol, j: int) -> FloatArray | None:
    """How often column j shows each of its labels just so."""
    listed = sealed.law.listed
    if listed is None:
        return None
    p_y = listed.joint_with_values(joint).sum(axis=0)
    place = {label: i for i, label in enumerate(joint.attributes[j].labels)}
    shares = np.zeros(len(place))
    for y, labels in enumerate(listed.outputs):
        if labels[j] in place:
            shares[place[labels[j]]] += p_y[y]
    return shares


def _codes(labels: Sequence[str]) -> IntArray:
    return np.unique(np.array(labels, dtype=object), return_inverse=True)[1].reshape(-1).astype(np.int64)


def _grouped(p: FloatArray, codes: IntArray) -> FloatArray:
    """The columns of p summed by code."""
    grouped = np.zeros((p.shape[0], int(codes.max()) + 1))
    np.add.at(grouped.T, codes, p.T)
    return grouped


def _table(one: IntArray, other: IntArray, p: FloatArray) -> FloatArray:
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), p)
    return table
