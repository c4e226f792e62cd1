r"""Rows: what a promise asks of a posterior, with the structure it was born with.

A posterior v over the inputs is allowed iff for every compared pair (E, F)

.. math:: e^{-\varepsilon} L_F \cdot v \le L_E \cdot v \le e^{\varepsilon} L_F \cdot v,
   \qquad L_E(z) = P(z \mid E) / p(z).

Besides the numbers L, rows carry what they speak of: which secrets an event holds, which class of inputs it lies in,
and how the secrets share that class. Whoever solves asks for this structure and never has to
recognise it in the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import SMALL, BoolArray, FloatArray, IntArray, Matrix, dense, matrix, sparse
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.joint import Joint

DENSE = 0.2  # of the entries: with more of them filled, plain arrays multiply faster …
FEW = 1 << 14  # … and where there are few of them anyway


@dataclass(frozen=True, eq=False)
class LinearConstraints:
    """Functionals L of events, and which of them are compared; an event is some secrets within a class of inputs."""

    functionals: Matrix  # (k, d)
    pairs: IntArray  # (n, 2), numbers of functionals
    secrets: BoolArray  # (k, c), the secrets of each event; no columns where they are not known
    of_class: IntArray  # (k,), the class of each event
    members: BoolArray  # (classes, d), the inputs of each class
    share: FloatArray  # (classes, c), P(s | class)
    even: BoolArray  # (classes,), whether P(z | class) / p(z) is the same for all inputs of the class
    side_channel: IntArray  # (classes,), the side channel whose classes these are: those of one are disjoint
    scales: FloatArray | None = None  # (n, 2), multiples of ε for either way up, infinite where not asked; None: all 1

    # -- where rows come from ----------------------------------------------------------------------------------

    @classmethod
    def from_comparisons(cls, block: Comparisons, prior: Joint, joint: Joint, sees_secret: bool) -> LinearConstraints:
        """The rows of a block of comparisons under `prior`, over the inputs that occur in `joint`."""
        lifted, inputs = lift(block, joint, sees_secret)
        classes = len(block.known_labels)
        members = np.zeros((classes, block.inputs), dtype=bool)
        members[block.of_class[block.event], block.input] = True
        return cls(
            functionals=lifted,
            pairs=block.pairs,
            secrets=block.secrets,
            of_class=block.of_class,
            members=members[:, inputs],
            share=_class_shares(block, prior),
            even=np.full(classes, prior is joint and not block.mixed),
            side_channel=np.zeros(classes, dtype=np.int64),
            scales=block.scales,
        )

    @classmethod
    def from_pairs(
        cls, numerators: FloatArray, denominators: FloatArray, scales: FloatArray | None = None
    ) -> LinearConstraints:
        """Rows of which nothing is known but their numbers."""
        n, d = numerators.shape
        return cls(
            functionals=np.concatenate([numerators, denominators]),
            pairs=np.stack([np.arange(n), np.arange(n, 2 * n)], axis=1),
            secrets=np.zeros((2 * n, 0), dtype=bool),
            of_class=np.zeros(2 * n, dtype=np.int64),
            members=np.ones((1, d), dtype=bool),
            share=np.zeros((1, 0)),
            even=np.zeros(1, dtype=bool),
            side_channel=np.zeros(1, dtype=np.int64),
            scales=scales,
        )

    @classmethod
    def from_groups(
        cls,
        ratio: FloatArray,
        share: FloatArray,
        groups: BoolArray,
        pairs: IntArray,
        scales: FloatArray | None = None,
    ) -> LinearConstraints:
        """Groups of secrets compared among everybody; `ratio` is P(s|z)/P(s), a row per secret, and `share` is P(s)."""
        weights = groups * share
        everyone = groups.all(axis=1)
        L = (weights @ ratio) / weights.sum(axis=1, keepdims=True)
        L[everyone] = 1.0  # to the last digit: the whole is the whole
        return cls(
            functionals=L,
            pairs=pairs,
            secrets=groups,
            of_class=np.zeros(len(groups), dtype=np.int64),
            members=np.ones((1, ratio.shape[1]), dtype=bool),
            share=share[None, :],
            even=np.ones(1, dtype=bool),
            side_channel=np.zeros(1, dtype=np.int64),
            scales=scales,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[LinearConstraints], inputs: int = 0) -> LinearConstraints:
        """The rows of all parts together."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.from_pairs(np.empty((0, inputs)), np.empty((0, inputs)))
        c = max(part.secrets.shape[1] for part in parts)
        events = np.cumsum([0, *(part.functionals.shape[0] for part in parts)])
        classes = np.cumsum([0, *(len(part.even) for part in parts)])
        channels = np.cumsum([0, *(part.side_channel.max(initial=-1) + 1 for part in parts)])
        return cls(
            functionals=_stack([part.functionals for part in parts]),
            pairs=np.concatenate([part.pairs + first for part, first in zip(parts, events[:-1], strict=True)]),
            secrets=np.concatenate([_widen(part.secrets, c) for part in parts]),
            of_class=np.concatenate([part.of_class + first for part, first in zip(parts, classes[:-1], strict=True)]),
            members=np.concatenate([part.members for part in parts]),
            share=np.concatenate([_widen(part.share, c) for part in parts]),
            even=np.concatenate([part.even for part in parts]),
            side_channel=np.concatenate(
                [part.side_channel + first for part, first in zip(parts, channels[:-1], strict=True)]
            ),
            scales=None
            if all(part.scales is None for part in parts)
            else np.concatenate([part.either_scale for part in parts]),
        )

    # -- the numbers -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return int(self.functionals.shape[1])

    @cached_property
    def numerators(self) -> Matrix:
        """L_E, a row per pair."""
        return self.functionals[self.pairs[:, 0]]

    @cached_property
    def denominators(self) -> Matrix:
        """L_F, a row per pair."""
        return self.functionals[self.pairs[:, 1]]

    @cached_property
    def dense(self) -> tuple[FloatArray, FloatArray]:
        """Both, as plain arrays."""
        return dense(self.numerators), dense(self.denominators)

    @cached_property
    def fast_functionals(self) -> Matrix:
        """The functionals, as a plain array where they are hardly sparse, and sparse where they are hardly filled."""
        k, d = self.functionals.shape
        filled = int(np.count_nonzero(self.functionals) if self._is_dense else self.functionals.nnz)
        if filled < DENSE * k * d:
            return sparse.csr_array(self.functionals) if k * d > FEW else self.functionals
        return dense(self.functionals)

    @property
    def _is_dense(self) -> bool:
        return isinstance(self.functionals, np.ndarray)

    @property
    def either_scale(self) -> FloatArray:
        """The scales of every pair, also where all are 1."""
        return np.ones((len(self.pairs), 2)) if self.scales is None else self.scales

    @property
    def largest_scale(self) -> float:
        """The largest scale that is asked."""
        return 1.0 if self.scales is None else float(self.scales[np.isfinite(self.scales)].max(initial=0.0) or 1.0)

    @property
    def largest(self) -> float:
        """The largest entry of any functional."""
        return float(self.functionals.max()) if self.functionals.shape[0] else 0.0

    # -- the structure -----------------------------------------------------------------------------------------

    @cached_property
    def full_classes(self) -> BoolArray:
        """The classes that hold every input evenly: there everybody's functional is 1 at every posterior."""
        return np.asarray(self.even & self.members.all(axis=1))

    @property
    def is_one_dimensional(self) -> bool:
        """Whether everything depends on one number: two secrets, who share everybody."""
        return bool(len(self.even) == 1 and self.full_classes[0] and self.share.shape[1] == 2) or self.inputs <= 2

    @cached_property
    def compares_with_everybody(self) -> bool:
        """Whether every pair compares some secrets with everybody, so that :math:`L_F \\cdot v = 1` (as LIP does)."""
        f = self.pairs[:, 1]
        known = self.secrets.shape[1] > 0 or not len(f)
        return bool(known and self.full_classes[self.of_class[f]].all() and self.secrets[f].all())

    @cached_property
    def mutual_functionals(self) -> FloatArray | None:
        """The functionals, three or more, of which each is compared with each (as LDP does), if that is all."""
        used = np.unique(self.pairs)
        k = len(used)
        pairs = np.unique(np.sort(self.pairs, axis=1), axis=0)
        if k < 3 or self.secrets.shape[1] == 0 or len(pairs) != k * (k - 1) // 2 or (pairs[:, 0] == pairs[:, 1]).any():
            return None
        if self.scales is not None:
            return None
        return dense(self.functionals[used])

    @property
    def is_local(self) -> bool:
        """Whether some rows look at some inputs only."""
        return not bool(self.members[self.of_class[self.pairs[:, 0]]].all())

    @cached_property
    def compared_classes(self) -> IntArray:
        """The classes in which anything is compared."""
        return np.unique(self.of_class[self.pairs[:, 0]])

    def disjoint_classes(self, firsts: IntArray) -> Iterator[tuple[int, ...]]:
        """Disjoint classes, by their numbers: each of `firsts`, then the largest that is no larger, and so on.

        With the largest class of a side channel first, these are its classes, and where those leave inputs over (a
        class that tells nothing new), classes of other side channels.
        """
        size = self.members.sum(axis=1)
        order = self.compared_classes[np.argsort(-size[self.compared_classes], kind="stable")]
        for first in firsts:
            chosen, covered = [int(first)], self.members[first].copy()
            for other in order[size[order] <= size[first]]:
                if not (self.members[other] & covered).any():
                    chosen.append(int(other))
                    covered |= self.members[other]
            yield tuple(sorted(chosen))

    # -- other rows from these ---------------------------------------------------------------------------------

    def restrict(self, inputs: IntArray) -> LinearConstraints:
        """The rows as they see only these inputs. A class that holds all of these is not everybody for that."""
        functionals, members = self.functionals[:, inputs], self.members[:, inputs]
        return replace(self, functionals=functionals, members=members, even=self.full_classes)

    def average(self, part_of: IntArray, share: FloatArray) -> LinearConstraints:
        """The rows as they see parts of inputs, each input with its share of its part."""
        parts = int(part_of.max()) + 1
        mixing = matrix(share, np.arange(len(part_of)), part_of, (len(part_of), parts))
        members = np.zeros((len(self.even), parts), dtype=bool)
        within = np.ones((len(self.even), parts), dtype=bool)
        np.logical_or.at(members.T, part_of, self.members.T)
        np.logical_and.at(within.T, part_of, self.members.T)
        even = self.even & (members == within).all(axis=1)  # a part that lies half in a class is seen unevenly
        return replace(self, functionals=self.functionals @ mixing, members=members, even=even)

    def select_pairs(self, which: IntArray | BoolArray) -> LinearConstraints:
        """Only these pairs."""
        return replace(self, pairs=self.pairs[which], scales=None if self.scales is None else self.scales[which])

    def enclosing_parts(self, part_of: IntArray) -> IntArray:
        """The part of the inputs in which all of a class lies, for every class; −1 where there is none."""
        part = part_of[self.members.argmax(axis=1)]
        across = (self.members & (part_of != part[:, None])).any(axis=1)
        return np.where(across | ~self.members.any(axis=1), -1, part)

    def restrict_to_classes(self, inputs: IntArray, kept: BoolArray, mass: float) -> LinearConstraints:
        """The pairs of those classes which lie in these inputs, whose mass under the prior is given."""
        # Where more is known and tells nothing new, the same class is in two side channels, with the same pairs.
        kept, same = kept.copy(), np.flatnonzero(kept & self.even)
        first = np.unique(self.members[same][:, inputs], axis=0, return_index=True)[1]
        kept[np.delete(same, first)] = False
        events = np.flatnonzero(kept[self.of_class])
        place, number_of = np.full(len(self.of_class), -1), np.cumsum(kept) - 1
        place[events] = np.arange(len(events))
        selected = kept[self.of_class[self.pairs[:, 0]]]
        return LinearConstraints(
            functionals=self.functionals[events][:, inputs] * mass,
            pairs=place[self.pairs[selected]],
            secrets=self.secrets[events],
            of_class=number_of[self.of_class[events]],
            members=self.members[kept][:, inputs],
            share=self.share[kept],
            even=self.even[kept],
            side_channel=self.side_channel[kept],
            scales=None if self.scales is None else self.scales[selected],
        )

    def group_secrets(self, groups: BoolArray) -> LinearConstraints | None:
        """What follows for groups of secrets, which divide them; None where nothing is known to.

        Each against everybody, and each against each other, hold for groups too (docs/theory.md, Theorem 7a); of other
        pairs those that compare unions of groups stay.
        """
        alone = self._single_secret_functionals()
        if alone is None:
            return None
        g, events = len(groups), self.secrets[np.unique(self.pairs)]
        every_secret = bool(events[events.sum(axis=1) == 1].any(axis=0).all())
        scales = None
        if self.compares_with_everybody and every_secret:
            kept, pairs = np.eye(g + 1, g, dtype=bool), np.array([[i, g] for i in range(g)])
            kept[g] = True
            if self.scales is not None:  # what holds for each of a group holds for it with the largest of their scales
                masks = self.secrets[self.pairs[:, 0]]
                mine = (masks @ groups.T) & (masks.sum(axis=1) == 1)[:, None]
                scales = np.array([self.scales[mine[:, i]].max(axis=0) for i in range(g)])
        elif self.mutual_functionals is not None and every_secret:
            kept, pairs = np.eye(g, dtype=bool), np.stack(np.triu_indices(g, 1), axis=1)
        else:
            held = self.secrets.astype(np.int64) @ groups.T  # how many secrets of each group an event holds
            size = groups.sum(axis=1)
            unions = ((held == 0) | (held == size)).all(axis=1)
            stays = unions[self.pairs].all(axis=1)
            used, pairs = np.unique(self.pairs[stays], return_inverse=True)
            kept, pairs = (held == size)[used], pairs.reshape(-1, 2)
            scales = None if self.scales is None else self.scales[stays]
        if not len(pairs):
            return None
        share = self.share[0] * groups
        of_groups = share @ alone / share.sum(axis=1, keepdims=True)
        return LinearConstraints.from_groups(of_groups, share.sum(axis=1), kept, pairs, scales)

    def _single_secret_functionals(self) -> FloatArray | None:
        """L_s of every secret alone, where all are about everybody and each secret is an event."""
        if not (len(self.even) == 1 and self.full_classes[0] and self.share.shape[1] >= 3):
            return None
        single = np.flatnonzero(self.secrets.sum(axis=1) == 1)
        of = self.secrets[single].argmax(axis=1)
        if len(np.unique(of)) < self.share.shape[1]:
            return None
        first = single[np.unique(of, return_index=True)[1]]
        return dense(self.functionals[first])


def lift(block: Comparisons, joint: Joint, sees_secret: bool) -> tuple[Matrix, IntArray]:
    """L_E(z) = P(z | E) / p(z) of every event, over the inputs that occur in `joint`; and which these are."""
    p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
    inputs = np.flatnonzero(p_z)
    factor = np.divide(1.0, p_z, out=np.zeros_like(p_z), where=p_z > 0)
    p = block.distributions
    lifted = p * factor if isinstance(p, np.ndarray) else sparse.csr_array(p.multiply(factor[None, :]))
    return lifted[:, inputs], inputs


def _class_shares(block: Comparisons, prior: Joint) -> FloatArray:
    """P(s | class) of every class that the block's attributes tell apart."""
    share = np.zeros((len(block.known_labels), prior.c))
    of_value = np.zeros(prior.a, dtype=np.int64)
    if block.known:
        of_value = np.unique(prior.combos[:, block.known], axis=0, return_inverse=True)[1].reshape(-1)
    np.add.at(share, of_value, prior.p_sx.T)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _stack(parts: Sequence[Matrix]) -> Matrix:
    """The rows of all parts: plain where they are few."""
    if sum(part.shape[0] for part in parts) * parts[0].shape[1] <= SMALL:
        return np.concatenate([dense(part) for part in parts])
    return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts], format="csr"))


def _widen(table: NDArray[Any], c: int) -> NDArray[Any]:
    """The table with empty columns for secrets that only others have."""
    return np.pad(table, ((0, 0), (0, c - table.shape[1])))
