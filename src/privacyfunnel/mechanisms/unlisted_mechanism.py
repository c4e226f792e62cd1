"""A mechanism whose inputs are not listed: any combination of labels of its columns is one.

It takes records as codes, n × columns, also those that occur for the first time next month. What needs a list of
inputs or outputs is not computed: those who ask get None, or a `SizeError` that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Self

from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, Matrix
from privacyfunnel.errors import ProtocolFileError, SizeError
from privacyfunnel.mechanisms.draw_tally import DrawTally
from privacyfunnel.mechanisms.exact_arithmetic import ExactLeak
from privacyfunnel.mechanisms.mechanism import DescribableProtocol, Mechanism, Model, ObservationModels
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.sparse_protocol import Measurable


class UnlistedMechanism(Mechanism):
    """Records are drawn by their codes, and what would need a list of them is not to be had."""

    lists_inputs: ClassVar[bool] = False
    no_table_reason: ClassVar[str] = "any combination of labels is an input of this mechanism, and none is listed"
    sees_secret = False

    @property
    def inputs(self) -> int:
        return 0

    @property
    def protocol(self) -> DescribableProtocol:
        self._refuse()

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        self._refuse()

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        self._refuse()

    def restrict_inputs(self, inputs: IntArray) -> Self:
        return self

    def measurable_protocol(self, most: int) -> Measurable | None:
        return None

    def tally(self) -> DrawTally:
        self._refuse()

    def value_joint(self, joint: Joint) -> tuple[tuple[IntArray, Matrix], ...]:
        self._refuse()

    def likely_probability(self, likely: Sequence[IntArray], joint: Joint) -> float:
        self._refuse()

    def unchanged_outputs(self, labels: Sequence[tuple[str, ...]], combos: IntArray) -> NDArray[Any]:
        return combos

    def observation(self, shapes: ObservationModels[Model]) -> Model:
        self._refuse()

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> Self:
        raise ProtocolFileError(f"a {cls.kind} mechanism is read with its model; this file states none. Make it again.")

    def _refuse(self) -> NoReturn:
        raise SizeError(f"This is measured where outputs can be listed; {self.no_table_reason}.")
