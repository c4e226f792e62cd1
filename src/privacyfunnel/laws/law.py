"""Laws: the integers that are actually drawn, and what they say about the secret, exactly.

A float protocol becomes a law by rounding its probabilities to multiples of 2⁻⁶⁴. From there on nothing is rounded:
the check of the promise and the draw of every row both follow the same integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from typing import Protocol as Shape

from numpy.typing import NDArray

from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.laws.exact import ExactLeak
from privacyfunnel.laws.sampling import Words
from privacyfunnel.model.comparisons import Comparable, Comparisons
from privacyfunnel.model.protocol import Labels, Protocol

BITS = 64
UNIT = 2**BITS


class Law(Shape):
    """What sealing, drawing and the protocol file need of integers that are drawn."""

    kind: ClassVar[str]
    checked: ClassVar[str]  # how `worst` computes, in words

    @property
    def sees_secret(self) -> bool: ...

    @property
    def inputs(self) -> int:
        """How many inputs it has: the values, or the pairs of secret and value."""

    @property
    def columns(self) -> tuple[Labels, ...]:
        """The labels of each published column; `draw` gives codes into them."""

    @property
    def protocol(self) -> Comparable:
        """The same law in floats."""

    @property
    def listed(self) -> Protocol | None:
        """The same as one table of probabilities whose outputs can be listed; None where they are too many."""

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        """The largest ratio that the promise compares, exactly."""

    def draw(self, codes: NDArray[Any], stream: Words, first_row: int) -> NDArray[Any]:
        """n × columns: a code for each published column of each row."""

    def to_json(self) -> dict[str, Any]: ...


def check_bits(content: Mapping[str, Any]) -> None:
    """Refuse integers of another width than is drawn with."""
    if content["bits"] != BITS:
        raise ProtocolFileError(f"a law's integers must have {BITS} bits; these have {content['bits']}.")
