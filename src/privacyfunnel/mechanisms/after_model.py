r"""The prior of a release after others: the published model of the first, given what was published of a person since.

Of a person nothing was published before, or last an output h of some earlier release. The earlier model and mechanism
give P(s, x, h) in integers. Since then x is either the same, or another that goes with s as the model says:

.. math:: P_{kept}(s, x, h) = P(s, x, h), \qquad P_{anew}(s, x, h) = P(s, h)\, \tilde p(x \mid s) .

A promise about (h, y) under both holds whatever the chance of a change is, and for whoever knows that there was one. No
count of the table is looked at, so nothing of ε is spent on noise again (docs/theory.md, Theorem 78).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import DistributionError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.mechanism import UNIT
from privacyfunnel.model.composable import AfterPromise
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.table_model import EachModel, PublishedModel, TableModel

CHANGING = Fraction(1, 20)  # of people, between two releases: what protocols are made for, and later beliefs start from
NEW = None  # the history of a person of whom nothing was published

BASE_FACTS = "groups", "rest", "rows", "epsilon", "delta"  # of the first release, and those after it
History = tuple[int, int] | None  # how many releases back a person was last in one, and the number of the output


@dataclass(frozen=True, eq=False, kw_only=True)
class AfterModel(PublishedModel):
    """p̃(s, x, h): the prior of every history h, a column per history and value."""

    earlier: PublishedModel
    law: ChannelMechanism  # of the release before
    histories: tuple[History, ...]
    changing: Fraction = CHANGING
    files: tuple[str, ...] = ()  # SHA-256 of the protocol files before, the first one first

    @classmethod
    def follow(
        cls,
        earlier: PublishedModel,
        law: ChannelMechanism,
        histories: tuple[History, ...],
        total: Fraction,
        files: tuple[str, ...] = (),
        changing: Fraction = CHANGING,
    ) -> AfterModel:
        """The model after a release by that model and mechanism; `total` is the ε of everything since the first."""
        facts: dict[str, Any] = {name: getattr(earlier.base, name) for name in BASE_FACTS}
        more: dict[str, Any] = {"total": total, "earlier": earlier, "law": law, "changing": changing, "files": files}
        return cls(histories=histories, **facts, **more)

    def __post_init__(self) -> None:
        if not 0 < self.changing < 1 or not self.epsilon < self.total:
            raise DistributionError("After a release some may have changed, and ε is left for records; it is not so.")
        if not self.histories or len(set(self.histories)) < len(self.histories):
            raise DistributionError("Each history must be listed once; some are not.")
        if self.law.sees_secret or self.law.inputs != self.earlier_weights.shape[1]:
            raise DistributionError("An earlier mechanism must have a row for each value of its model; it has not.")
        for history in self.histories:
            model = self._level(history)
            if history is not None and not 0 <= history[1] < len(model.law.outputs):
                raise DistributionError("Every history must end in an output of an earlier release; one does not.")

    def _level(self, history: History) -> AfterModel:
        """The model whose earlier release a history ends in."""
        model: PublishedModel = self
        for _ in range(0 if history is None else history[0]):
            model = model.earlier if isinstance(model, AfterModel) else model
        if not isinstance(model, AfterModel):
            raise DistributionError("Every history must end in an earlier release; one goes back further.")
        return model

    @property
    def base(self) -> PublishedModel:
        return self.earlier.base

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.base.secrets

    @property
    def pooled(self) -> tuple[str, ...]:
        return self.base.pooled

    @cached_property
    def earlier_weights(self) -> NDArray[Any]:
        """The prior of the release before: a row per secret and a column per input of its mechanism."""
        return self.earlier.weights_by_input.astype(object)

    @property
    def values(self) -> int:
        """How many values a person may have: those of the first release."""
        return int(self.base.weights_by_input.shape[1])

    def _state(self, history: History) -> tuple[NDArray[Any], int]:
        """P(s, x, h), c × values, times the total of the base and that integer."""
        if history is None:
            return self.base.weights_by_input.astype(object), 1
        level = self._level(history)
        joint = level.earlier_weights * np.array(level.law.column(history[1])[: level.law.inputs], dtype=object)
        cells = joint.reshape(len(joint), -1, self.values).sum(axis=1)
        return cells, level.earlier.unit * UNIT

    @cached_property
    def _by_belief(self) -> tuple[NDArray[Any], NDArray[Any], int]:
        """The weights where everybody kept their value and where nobody did, both times the same integer."""
        base = self.base.weights_by_input.astype(object)
        rows = base.sum(axis=1)
        common = math.lcm(*map(int, rows))
        share = np.array([common // int(row) for row in rows], dtype=object)[:, None]
        states = list(map(self._state, self.histories))
        unit = math.lcm(*(each for _, each in states))
        kept, anew = [], []
        for (state, own), history in zip(states, self.histories, strict=True):
            cells = state * (unit // own)
            kept.append(cells * common)
            anew.append(cells * common if history is None else base * share * cells.sum(axis=1)[:, None])
        return np.hstack(kept), np.hstack(anew), unit * common

    @property
    def unit(self) -> int:
        """What the weights are times, besides the total of the base."""
        return self._by_belief[2] * self.changing.denominator

    @cached_property
    def weights_by_input(self) -> NDArray[Any]:
        kept, anew, _ = self._by_belief
        stay = self.changing.denominator - self.changing.numerator
        return np.asarray(kept * stay + anew * self.changing.numerator)

    def bind_promise(self, promise: Promise) -> Promise:
        """The promise about everything published of a person so far, whether or not their value changed."""
        totals = tuple(int(n) * self.unit for n in self.base.weights_by_input.astype(object).sum(axis=1))
        kept, anew, _ = self._by_belief
        return AfterPromise(promise, totals, (kept * self.changing.denominator, anew * self.changing.denominator))

    def joint(self, attributes: tuple[Attribute, ...], combos: IntArray, secret_name: str) -> Joint:
        """P(s, (h, x)) up to scale, with the stated share of changes."""
        each = combos.reshape(len(self.histories), self.values, -1)
        plain = (each[:, :, 0] == np.arange(len(self.histories))[:, None]).all() and (
            each[:, :, 1:] == each[0, :, 1:]
        ).all()
        if not plain:
            raise DistributionError(
                "After a release inputs are every history with every value, in order; they are not."
            )
        first = self.base.joint(attributes[1:], each[0, :, 1:], secret_name)
        return Joint(self.weights_by_input, first.secrets, attributes, combos, first.secret_name)

    def to_json(self) -> dict[str, Any]:
        stated = {"rows": self.rows, "epsilon": str(self.epsilon), "delta": str(self.delta)}
        return {
            **stated,
            "total_epsilon": str(self.total),
            "after": {
                "model": self.earlier.to_json(),
                "law": self.law.to_json(),
                "histories": [history if history is None else list(history) for history in self.histories],
                "changing": str(self.changing),
                "files": list(self.files),
            },
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], columns: tuple[str, ...]) -> AfterModel:
        """The model that a protocol file states, of these secret columns."""
        after = content["after"]
        earlier = read_model(after["model"], columns)
        wide = len(after["law"]["outputs"][0])
        law = ChannelMechanism.from_json(after["law"], False, np.zeros((0, wide), dtype=np.int64))
        histories = tuple(None if each is None else (each[0], each[1]) for each in after["histories"])
        made = cls.follow(
            earlier,
            law,
            histories,
            Fraction(content["total_epsilon"]),
            tuple(after["files"]),
            Fraction(after["changing"]),
        )
        if made.to_json() | {"after": None} != dict(content) | {"after": None}:
            raise DistributionError("The ε, δ and rows after a release must be those of its model; they are not.")
        return made


def read_model(content: Mapping[str, Any], columns: tuple[str, ...]) -> TableModel | EachModel | AfterModel:
    """A model whose values are listed, as a protocol file states it."""
    if "after" in content:
        return AfterModel.from_json(content, columns)
    return EachModel.from_json(content, columns) if "each" in content else TableModel.from_json(content)
