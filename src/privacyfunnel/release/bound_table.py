"""A table met by a protocol: its rows found among the protocol's inputs, and what the protocol leaks on them.

A promise is certified for the table it was designed on. On other rows it is what it is there: where they carry the
secret it is measured, on the same integers and as exactly, and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError, SizeError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol, exact_worst_leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.domain_coding import published_variable
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.known_domain import encode_published
from privacyfunnel.tables.coding.merges import Merge

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.encoding import Chunk, Encoding
    from privacyfunnel.tables.coding.row_hashes import RowIds
    from privacyfunnel.tables.readers.table_interface import Table


@dataclass(frozen=True, slots=True)
class TableLeak:
    """What a protocol leaks on rows that it was not certified for."""

    epsilon: float  # exact, rounded up to a float; infinite where it is unbounded
    promised: float
    rows: int  # that it was measured on: those whose values are known

    @property
    def above(self) -> bool:
        """Whether that is more than was promised for the rows of the design."""
        return not self.epsilon <= self.promised


@dataclass(frozen=True, eq=False)
class BoundTable:
    """A table whose published columns were read as the protocol reads them."""

    sealed: SealedProtocol
    encoding: Encoding
    has_secret: bool  # whether the rows carry the secret
    unmeasured: str = ""  # why the leak on these rows cannot be measured, where they carry it all the same

    @classmethod
    def bind(
        cls,
        table: Table,
        sealed: SealedProtocol,
        *,
        bins: Sequence[Bins] = (),
        merges: Sequence[Merge] = (),
        keep: Sequence[str] = (),
        ids: RowIds | None = None,
    ) -> BoundTable:
        """Read the table once. `bins` and `merges` are those of the secret, which is read where the table has it.

        Raises
        ------
        ColumnError
            If a published column is not there; or the secret, where the protocol looks at it.
        """
        domain = sealed.domain
        columns = [at.name for at in domain.attributes]
        named = [binned.column for binned in bins if binned.column in columns]
        if named:
            raise ColumnError(f"the bins of '{named[0]}' are in the protocol file; leave out {hint('bins')} for it.")
        missing = [name for name in columns if name not in table.columns]
        if missing:
            raise ColumnError(
                f"{table.name} must have the {len(columns)} columns that the protocol publishes; '{missing[0]}' is not "
                "there. Name the table that the protocol was made for, or one like it."
            )
        there = all(name in table.columns for name in domain.secret_columns)
        if sealed.sees_secret and not there:
            raise ColumnError(
                f"this protocol looks at {' & '.join(domain.secret_columns)}, which {table.name} does not hold. Use "
                "rows that carry it, or a protocol that sees only what it publishes."
            )
        secret: tuple[str, ...] = domain.secret_columns if there else ()
        if not secret:
            bins, merges = (), ()
        try:
            if secret:
                domain.check_secrets(merges)
            found = encode_published(
                table,
                published_variable(domain),
                secret=secret,
                bins=bins,
                merges=merges,
                keep=keep,
                ids=ids and ids.empty_copy(),
            )
        except (ColumnError, SizeError) as error:
            if not secret or sealed.sees_secret:
                raise
            found = encode_published(table, published_variable(domain), keep=keep, ids=ids)
            return cls(sealed, found, False, str(error))
        return cls(sealed, found, bool(secret))

    @cached_property
    def _secret(self) -> IntArray:
        """The place of each secret of the table among those that the protocol sees."""
        place = {label: code for code, label in enumerate(self.sealed.domain.secrets)}
        table = self.encoding.contingency
        found = np.array([place.get(label, -1) for label in table.secret_labels], dtype=np.int64)
        if (found < 0).any():
            rows = int(table.weights[found < 0].sum())
            raise TableError(
                f"{' & '.join(table.secret.columns)} must hold only values that the protocol knows, for it looks at "
                f"them; {rows:,} rows hold others. Design a protocol for these rows."
            )
        return found

    def inputs(self, chunk: Chunk) -> IntArray:
        """The input of the law that each row is; −1 where it is none."""
        if not self.sealed.sees_secret:
            return chunk.published
        values = len(self.sealed.domain.combos)
        return np.where(chunk.published < 0, -1, self._secret[chunk.secret] * values + chunk.published)

    @cached_property
    def known_joint(self) -> tuple[Joint, Mechanism] | None:
        """p(s, x) of the rows that are known, and the law on what occurs among them; None where there are none."""
        table = self.encoding.contingency
        s, x = (np.flatnonzero(table.weights.sum(axis=axis)) for axis in (1, 0))
        if not len(x):
            return None
        secrets = table.secret_labels
        joint = Joint(
            table.weights[np.ix_(s, x)],
            tuple(secrets[i] for i in s),
            self.sealed.domain.attributes,
            self.sealed.domain.combos[x],
            " & ".join(table.secret.columns) or "S",
        )
        inputs = (self._secret[s][:, None] * len(table.combos) + x).reshape(-1) if self.sealed.sees_secret else x
        return joint, self.sealed.mechanism.restrict_inputs(inputs)

    def measure_leak(self) -> TableLeak | None:
        """What the protocol leaks on these rows, in exact arithmetic; None where they do not carry the secret."""
        if not self.has_secret or self.known_joint is None:
            return None
        joint, law = self.known_joint
        promise = self.sealed.promise.table_promise
        worst = exact_worst_leak(law, promise, joint)
        return TableLeak(worst.leak.epsilon, promise.epsilon, joint.total)
