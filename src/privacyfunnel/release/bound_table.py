"""A table met by a protocol: its rows found among the protocol's inputs, and what the protocol leaks on them.

A promise is certified for the table it was designed on. On other rows it is what it is there: where they carry the
secret it is measured, on the same integers and as exactly, and said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError, SizeError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.exact_arithmetic import ExactLeak
from privacyfunnel.mechanisms.kept_leakage import kept_leakage
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, SealedProtocol, exact_worst_leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.kept_promise import KeptCounts
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.wide_model import WideModel
from privacyfunnel.release.kept_counts import count_records, published_variable
from privacyfunnel.spec.fields import DROP, ERROR
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.known_domain import encode_published
from privacyfunnel.tables.coding.merges import Merge

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.encoding import Chunk, Encoding
    from privacyfunnel.tables.coding.row_hashes import RowIds
    from privacyfunnel.tables.readers.formats import Table


@dataclass(frozen=True, slots=True)
class TableLeak:
    """What a protocol leaks on rows that it was not certified for, by all that is published of them."""

    epsilon: float  # exact, rounded up to a float; infinite where it is unbounded, or nothing bounds it
    allowed: float  # the promise for the rows of the design, or what was asked for these
    above: bool  # whether it is more than that, by exact comparison
    rows: int  # that it was measured on
    includes: str = ""  # what was measured together with the outputs, in words
    why: str = ""  # why nothing bounds it, where nothing does

    @classmethod
    def from_ratio(cls, worst: ExactLeak, promise: Promise, rows: int) -> TableLeak:
        """The leak of that ratio, compared exactly."""
        limit = max(promise.epsilon, SMALLEST_EPSILON)
        above = worst.exceeds(limit)
        epsilon = worst.leak.epsilon if above else min(worst.leak.epsilon, limit)
        return cls(epsilon, promise.epsilon, above, rows)


@dataclass(frozen=True, slots=True)
class ColumnDrift:
    """How a published column differs from the published model of the rows of the design: the owner's own."""

    column: str
    distance: float  # total variation, from 0 to 1
    label: str  # whose share changed most
    change: float  # of that share; the model's is noisy


def refuse_unlinked(sealed: SealedProtocol, columns: Sequence[str]) -> None:
    """Refuse rows that do not say what was published of each person before, where the protocol needs it."""
    before = sealed.domain.attributes[0].name
    if sealed.follows and before not in columns:
        raise ColumnError(
            f"This protocol follows earlier releases, and draws by what each person got there; the table has no column "
            f"'{before}' that says so. Draw with {hint('after')}; audit the public folder by itself."
        )


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
        refuse_unlinked(sealed, table.columns)
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
            return cls(sealed, found, False, error.sentence)
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

    def chunks(self, keep: Sequence[str] = ()) -> Iterator[Chunk]:
        """The rows in order, with columns to `keep`, as the law takes them."""
        return self.encoding.chunks(keep, records=not self.sealed.mechanism.lists_inputs)

    def inputs(self, chunk: Chunk) -> IntArray:
        """The input of the law that each row is, a number or a record of codes; −1 where it is none."""
        if not self.sealed.sees_secret:
            return chunk.published
        values = len(self.sealed.domain.combos)
        return np.where(chunk.published < 0, -1, self._secret[chunk.secret] * values + chunk.published)

    def known_rows(self) -> BoolArray:
        """Of every row whether it is an input of the law."""
        return np.concatenate([~find_unknown(self.inputs(chunk)) for chunk in self.chunks()])

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
            table.combos[x],
            " & ".join(table.secret.columns) or "S",
        )
        inputs = (self._secret[s][:, None] * len(table.combos) + x).reshape(-1) if self.sealed.sees_secret else x
        return joint, self.sealed.mechanism.restrict_inputs(inputs)

    def measure_columns(self) -> tuple[ColumnDrift, ...]:
        """What changed since the design, the largest change first; nothing where no published model tells."""
        model, domain, counted = self.sealed.model, self.sealed.domain, self.encoding.contingency
        found, rows = [], counted.weights.sum(axis=0)
        if model is None:
            return ()
        for j, at in enumerate(domain.attributes):
            m = len(at.labels)
            if isinstance(model, WideModel):
                old = model.tree.marginal((j,)).sum(axis=0).astype(np.float64)
            else:
                old = np.bincount(domain.combos[:, j], np.sum(model.weights_by_input, axis=0).astype(np.float64), m)
            off = np.bincount(counted.combos[:, j], rows, m) / rows.sum() - old / old.sum()
            most = int(np.abs(off).argmax())
            found.append(ColumnDrift(at.name, float(np.abs(off).sum()) / 2, at.labels[most], float(off[most])))
        return tuple(sorted(found, key=lambda each: -each.distance))

    def measure_leak(
        self,
        keep: Sequence[str] = (),
        unknown: str = ERROR,
        epsilon: float | None = None,
        counts: str | None = None,
    ) -> TableLeak | None:
        """What is published of these rows leaks, in exact arithmetic; None where they do not carry the secret.

        That is the output together with the columns to `keep`, and, of rows whose values are `unknown`, what is
        published in their stead, or that they are left out. It is compared with the promise, or with another `epsilon`.
        Where a row stands for several, the column `counts` says for how many.
        """
        if epsilon is not None and self.sealed.model is not None:
            raise ParameterError(
                f"rows drawn by a published model keep its ε, to whoever believes it; ε = {epsilon:g} was asked for. "
                f"Leave out {hint('epsilon')}, or design with it."
            )
        strange = bool(self.encoding.unknown_rows.rows)
        left_out = strange and unknown == DROP
        of_model = self.sealed.model is not None and not keep and not left_out
        if not self.has_secret or of_model or self.known_joint is None:
            return None
        promise = self.sealed.promise.table_promise
        promise = promise if epsilon is None else promise.with_epsilon(epsilon)
        if not (strange or keep or counts):
            joint, law = self.known_joint
            return TableLeak.from_ratio(exact_worst_leak(law, promise, joint), promise, joint.total)
        parts = [f"with the kept {', '.join(keep)}" if keep else "", "with who is left out" if left_out else ""]
        includes, why = " and ".join(filter(None, parts)), self._why_unbounded(promise)
        try:
            if not why:
                joint, law, kept = self._published_counts(count_records(self.encoding, keep, counts), unknown)
                if not includes:  # outputs alone, of which every mechanism knows its own leak
                    return TableLeak.from_ratio(exact_worst_leak(law, promise, joint), promise, joint.total)
                found = kept_leakage(law, promise, joint, kept)
                return TableLeak(found.epsilon, promise.epsilon, not found.keeps, joint.total, includes)
        except SizeError as error:
            why = error.sentence
        return TableLeak(math.inf, promise.epsilon, True, self.encoding.rows, includes, why)

    def _why_unbounded(self, promise: Promise) -> str:
        """Why nothing bounds what these rows leak together with kept columns or rows of unknown values, if so."""
        if self.sealed.model is not None:
            return "the published model says nothing of them"
        if self.encoding.unknown_rows.rows and (promise.guards_known_attributes or self.sealed.sees_secret):
            kind = "a protocol that looks at the secret" if self.sealed.sees_secret else promise.name
            return f"on rows whose values the protocol does not know {kind} cannot be measured"
        return ""

    def _published_counts(self, counts: KeptCounts, unknown: str) -> tuple[Joint, Mechanism, KeptCounts]:
        """All rows as the protocol draws them: those with unknown values by what stands for them.

        A row that is left out shows neither output nor kept columns, so it has a kept value of its own, and the same
        input as all others that are left out. A row that is published as one of 256 inputs counts as 1/256 of each.
        """
        law, domain, cells, rows = self.sealed.mechanism, self.sealed.domain, counts.cells, counts.weights
        known, listed = cells[:, 1] >= 0, True
        others, times = cells[~known].copy(), np.ones(1, dtype=np.int64)
        if unknown == DROP:
            others[:, 1], others[:, 2] = cells[known][0, 1], cells[:, 2].max() + 1
        elif law.anything_else is not None:
            others[:, 1], listed, law = law.anything_else, bool(known.all()), law.list_anything_else()
        elif len(others):
            assert self.sealed.substitutes is not None  # the row sampler refuses to blur without
            inputs, times = np.unique(self.sealed.substitutes, return_counts=True)
            others = np.repeat(others, len(inputs), axis=0)
            others[:, 1] = np.tile(inputs, int((~known).sum()))
        cells = np.concatenate([cells[known], others])
        rows = np.concatenate([rows[known] * times.sum(), np.outer(rows[~known], times).reshape(-1)])
        (s, of_s), (x, of_x) = (np.unique(cells[:, j], return_inverse=True) for j in (0, 1))
        weights = np.zeros((len(s), len(x)), dtype=np.int64)
        np.add.at(weights, (of_s.reshape(-1), of_x.reshape(-1)), rows)
        table = self.encoding.contingency
        secrets, name = tuple(table.secret_labels[i] for i in s), " & ".join(table.secret.columns)
        joint = (
            Joint(weights, secrets, domain.attributes, domain.combos[x], name)
            if listed
            else Joint.from_counts(weights, secrets, secret_name=name)
        )
        inputs = (self._secret[s][:, None] * len(domain.combos) + x).reshape(-1) if law.sees_secret else x
        cells = np.column_stack([of_s.reshape(-1), of_x.reshape(-1), cells[:, 2]])
        codes = counts.codes if known.all() else None
        return joint, law.restrict_inputs(inputs), KeptCounts(counts.columns, cells, rows, codes)


def find_unknown(inputs: IntArray) -> BoolArray:
    """Which rows are no input of the mechanism."""
    return np.asarray(inputs < 0 if inputs.ndim == 1 else np.any(inputs < 0, axis=1))
