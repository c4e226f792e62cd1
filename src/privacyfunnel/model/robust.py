r"""A promise that is kept for everybody whose odds are near the model's: r between two bounds instead of one number.

p is the prior of a promise: the published model, or the table. Somebody else may hold another belief p′ about how the
secret goes with what is published. Let E be an event about the secret in a class of people who share what is known, and

.. math:: p'(x) = p(x), \qquad p'(E) = p(E), \qquad
   \tfrac{1}{\gamma} \le \frac{p'(E \mid x) / p'(\lnot E \mid x)}{p(E \mid x) / p(\lnot E \mid x)} \le \gamma .

Then P′(x | E) = p(x) p′(E | x) / p(E) lies, for every x by itself, between

.. math:: \frac{p(x)}{p(E)} \cdot \frac{p(E \mid x)}{p(E \mid x) + \gamma\, p(\lnot E \mid x)}
   \quad\text{and}\quad \frac{p(x)}{p(E)} \cdot \frac{\gamma\, p(E \mid x)}{\gamma\, p(E \mid x) + p(\lnot E \mid x)},

and sums to 1: a box cut by the simplex, whose worst members are greedy (`credal_sets`). Of everybody it is a point.
With γ = ∞ the bounds are 0 and p(x)/p(E) (docs/theory.md, Theorem 70).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.comparisons import GroupPairs
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.credal.events import OddsRange, empty_credal_sets, people_classes, refuse_scales
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promise_base import ExtendedPromise, inner


@dataclass(frozen=True)
class RobustPromise(ExtendedPromise, named=False):
    """A promise that is kept as well for everybody whose odds lie within a range of those of its prior."""

    covered: OddsRange
    _made: dict[int, tuple[Joint, CredalSets]] = field(repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.promise.population is not None or self.promise.components is not None:
            raise ParameterError(
                "Odds that differ are covered around one prior; a promise for a population or for several priors was "
                "asked. Ask for one of them."
            )

    @property
    def odds(self) -> OddsRange:
        return self.covered

    table_promise = inner("table_promise")

    group_pairs = inner("group_pairs")

    def share_count(self, joint: Joint, sees_secret: bool = False) -> int:
        questions = self.promise.group_pairs(joint.c, joint.m, sees_secret)
        return sum(len(people_classes(joint, each.known)) * len(each.groups) * joint.a for each in questions)

    def credal_sets(self, joint: Joint, sees_secret: bool = False) -> CredalSets:
        """The boxes around this joint: those of every event that is compared."""
        if sees_secret:
            raise ParameterError(
                "Odds that differ are covered by mechanisms that read what is published alone; this one reads the "
                "secret as well. Leave one of them out."
            )
        known = self._made.get(id(joint))
        if known is not None and known[0] is joint:
            return known[1]
        made = [self._boxes(question, joint) for question in self.promise.group_pairs(joint.c, joint.m, False)]
        found = CredalSets.concatenate(made) if made else empty_credal_sets(joint.a, joint.c)
        self._made[id(joint)] = (joint, found)
        return found

    def _boxes(self, question: GroupPairs, joint: Joint) -> CredalSets:
        refuse_scales(question)
        boxes: list[IntArray] = []
        secrets, known, pairs = [], [], []
        for shared, values in people_classes(joint, question.known):
            numbers: dict[int, int] = {}
            for number in np.unique(question.pairs).tolist():
                group = question.groups[number]
                weights = joint.weights[:, values].astype(object)
                mine, everybody = weights[group].sum(axis=0), weights.sum(axis=0)
                if not mine.any():  # nobody of them is in this class
                    continue
                box = np.zeros((2, joint.a), dtype=np.int64)
                box[:, values] = self.covered.box(mine, everybody)
                numbers[number] = len(boxes)
                boxes.append(box)
                secrets.append(group)
                known.append(shared)
            pairs += [(numbers[e], numbers[f]) for e, f in question.pairs.tolist() if e in numbers and f in numbers]
        if not boxes:
            return empty_credal_sets(joint.a, joint.c)
        each = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        none = np.zeros(len(each), dtype=np.int64)
        low, high = np.stack(boxes, axis=1)
        return CredalSets(low, high, np.array(secrets), tuple(known), each, none)
