"""Which method suits a table with several attributes, why, and what its sparseness costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.errors import SizeError
from privacyfunnel.information import entropy
from privacyfunnel.joint import Attribute, Joint
from privacyfunnel.promises import LIP, Promise

JOINT, CHAIN = "optimal", "chain"
SOLVED_WELL = 250  # combinations up to which the joint optimum comes within about 1 % of its bound in a minute
SOLVED_WELL_IN_TWO = 2000  # the same where the secret has two values: atoms are then single values or pairs
MOST_COMBINATIONS = 5000  # beyond this the optimum is not computed at all


@dataclass(frozen=True, slots=True)
class Choice:
    """A method, and the reason for it in words."""

    method: str
    reason: str


def choose_method(joint: Joint, promise: Promise) -> Choice:
    """The joint optimum while it is small enough to solve well, a chain beyond.

    Raises
    ------
    SizeError
        If there are more combinations than can be solved, and the promise is not one that a chain keeps.
    """
    size = f"{joint.a:,} combinations of {joint.m} columns occur" if joint.m > 1 else f"{joint.a:,} values occur"
    well = SOLVED_WELL_IN_TWO if joint.c == 2 else SOLVED_WELL
    if joint.m == 1 or joint.a <= well:
        return Choice(JOINT, f"{size}, few enough for the optimum over all of them together")
    if isinstance(promise, LIP):
        reason = f"{size}, more than the {well:,} solved well together: column after column"
        return Choice(CHAIN, reason)
    if joint.a > MOST_COMBINATIONS:
        raise SizeError(
            f"{promise.name} is solved for at most {MOST_COMBINATIONS:,} combinations; {size}. Publish fewer columns, "
            "use coarser bins, or promise LIP with the method chain."
        )
    return Choice(JOINT, f"{size}; {promise.name} is not kept by a chain, so the optimum is sought, with a wide gap")


@dataclass(frozen=True, slots=True)
class Without:
    """The same table without one column."""

    column: str
    once: float  # the share of combinations that occur once
    told: float
    entropy: float


@dataclass(frozen=True, slots=True)
class Sparseness:
    """How far a table's combinations of values give its secret away, and how far they would without each column."""

    combinations: int
    once: float  # the share of combinations that occur once
    told: float  # the share of rows whose combination leaves only one value of the secret
    without: tuple[Without, ...]

    def __str__(self) -> str:
        said = (
            f"{self.combinations:,} combinations occur, {self.once:.0%} of them once; "
            f"{self.told:.0%} of the rows have a combination that tells the secret."
        )
        if self.without and self.told > 0:
            best = min(self.without, key=lambda other: other.told)
            said += f" Without {best.column} it would be {best.told:.0%}."
        return said


def sparseness(joint: Joint) -> Sparseness:
    """Where most combinations occur once, X all but determines S in the table, and the promise forces heavy mixing."""
    once, told = _shares(joint)
    without: tuple[Without, ...] = ()
    if joint.m > 1:
        without = tuple(
            Without(joint.attributes[j].name, *_shares(smaller), entropy(smaller.p_x))
            for j, smaller in ((j, onto(joint, [k for k in range(joint.m) if k != j])) for j in range(joint.m))
        )
    return Sparseness(joint.a, once, told, without)


def onto(joint: Joint, attributes: Sequence[int]) -> Joint:
    """The joint of the secret and only some of the attributes."""
    combos, place = np.unique(joint.combos[:, attributes], axis=0, return_inverse=True)
    weights = np.zeros((joint.c, len(combos)), dtype=joint.weights.dtype)
    np.add.at(weights.T, place.reshape(-1), joint.weights.T)
    kept: tuple[Attribute, ...] = tuple(joint.attributes[j] for j in attributes)
    return Joint(weights, joint.secrets, kept, combos, joint.secret_name)


def _shares(joint: Joint) -> tuple[float, float]:
    counts = joint.weights.sum(axis=0)
    alone = (joint.weights > 0).sum(axis=0) == 1
    return float(np.mean(counts == 1)), float(joint.p_x[alone].sum())
