"""Which method suits a table with several attributes, and why."""

from __future__ import annotations

from dataclasses import dataclass

from privacyfunnel.designs.chain.band import chained
from privacyfunnel.errors import SizeError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise

JOINT, CHAIN = "optimal", "chain"
SOLVED_WELL = 650  # combinations up to which the joint optimum keeps more than a chain, a few percent from its bound
SOLVED_WELL_IN_TWO = 2000  # the same where the secret has two values: atoms are then single values or pairs
SECONDS = 60.0  # that the joint optimum gets where nobody said how long it may take
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
    if chained(promise, joint):
        reason = f"{size}, more than the {well:,} solved well together: column after column"
        return Choice(CHAIN, reason)
    if joint.a > MOST_COMBINATIONS:
        raise SizeError(
            f"{promise.name} is solved for at most {MOST_COMBINATIONS:,} combinations; {size}. Publish fewer columns, "
            "use coarser bins, or promise LIP or LDP with the method chain."
        )
    return Choice(JOINT, f"{size}; {promise.name} is not kept by a chain, so the optimum is sought, with a wide gap")
