"""A table that is found again among the inputs of a protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.domain_coding import column_bins, rest_merges
from privacyfunnel.release.findings.composition_leakage import look_up_labels
from privacyfunnel.tables.coding.bins import Bins

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.encoding import Encoding
    from privacyfunnel.tables.coding.merges import Merge
    from privacyfunnel.tables.readers.table_interface import Table


@dataclass(frozen=True, slots=True, eq=False)
class MatchedTable:
    """A table whose values were found again among the inputs of a protocol."""

    encoding: Encoding
    joint: Joint
    inputs: IntArray  # the law's input for each input of the joint
    mechanism: Mechanism  # the law on those inputs alone

    @classmethod
    def match(
        cls, table: Table, sealed: SealedProtocol, bins: Sequence[Bins], merges: Sequence[Merge] = ()
    ) -> MatchedTable:
        """Read the table with the protocol's own bins, and look its labels up; `merges` is how secrets were merged."""
        from privacyfunnel.tables.coding.encoding import encode

        domain = sealed.domain
        publish = tuple(at.name for at in domain.attributes)
        named = [b for b in bins if b.column in publish]
        if named:
            raise ColumnError(f"the bins of '{named[0].column}' are in the protocol file; leave out --bin for it.")
        encoding = encode(
            table,
            secret=domain.secret_columns,
            publish=publish,
            bins=[*column_bins(domain), *bins],
            merges=[*rest_merges(domain), *merges],
        )
        joint = Joint.from_contingency(encoding.contingency)
        values = domain.values
        x = look_up_labels(joint.values, values, joint.weights.sum(axis=0), publish)
        if not sealed.sees_secret:
            return cls(encoding, joint, x, sealed.law.restrict_inputs(x))
        s = look_up_labels(joint.secrets, domain.secrets, joint.weights.sum(axis=1), domain.secret_columns)
        inputs = (s[:, None] * len(values) + x[None, :]).reshape(-1)
        return cls(encoding, joint, inputs, sealed.law.restrict_inputs(inputs))

    def codes(self) -> Iterator[IntArray]:
        """The rows in order, n × 3: the number of the row, its secret, and its input of the law."""
        for chunk in self.encoding.chunks():
            z = chunk.secret * self.joint.a + chunk.published if self.mechanism.sees_secret else chunk.published
            numbers = np.arange(chunk.start, chunk.start + len(z))
            yield np.stack([numbers, chunk.secret, self.inputs[z]], axis=1)
