"""A table that is found again among the inputs of a protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.laws.law import Law
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.composition import looked_up
from privacyfunnel.tables.bins import Bins

if TYPE_CHECKING:
    from privacyfunnel.tables.encoding import Encoding
    from privacyfunnel.tables.files import Table
    from privacyfunnel.tables.merging import Merge


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A table whose values were found again among the inputs of a protocol."""

    encoding: Encoding
    joint: Joint
    inputs: IntArray  # the law's input for each input of the joint
    law: Law  # the law on those inputs alone

    @classmethod
    def of(cls, table: Table, sealed: SealedProtocol, bins: Sequence[Bins], merges: Sequence[Merge] = ()) -> Found:
        """Read the table with the protocol's own bins, and look its labels up; `merges` is how secrets were merged."""
        from privacyfunnel.tables.encoding import encode

        domain = sealed.domain
        publish = tuple(at.name for at in domain.attributes)
        named = [b for b in bins if b.column in publish]
        if named:
            raise ColumnError(f"the bins of '{named[0].column}' are in the protocol file; leave out --bin for it.")
        encoding = encode(
            table,
            secret=domain.secret_columns,
            publish=publish,
            bins=[*domain.read_again, *bins],
            merges=[*domain.others, *merges],
        )
        joint = Joint.from_contingency(encoding.contingency)
        values = domain.values
        x = looked_up(joint.values, values, joint.weights.sum(axis=0), publish)
        if not sealed.sees_secret:
            return cls(encoding, joint, x, sealed.law.among(x))
        s = looked_up(joint.secrets, domain.secrets, joint.weights.sum(axis=1), domain.secret_columns)
        inputs = (s[:, None] * len(values) + x[None, :]).reshape(-1)
        return cls(encoding, joint, inputs, sealed.law.among(inputs))

    def codes(self) -> Iterator[IntArray]:
        """The rows in order, n × 3: the number of the row, its secret, and its input of the law."""
        for chunk in self.encoding.chunks():
            z = chunk.secret * self.joint.a + chunk.published if self.law.sees_secret else chunk.published
            numbers = np.arange(chunk.start, chunk.start + len(z))
            yield np.stack([numbers, chunk.secret, self.inputs[z]], axis=1)
