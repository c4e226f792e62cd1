"""A table on its way out: counted, sealed, drawn, and put into a random order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.laws.sampling import KeyStream
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.promises import SRLIP
from privacyfunnel.model.row_order import Neighbours
from privacyfunnel.release.advice import sparse_words
from privacyfunnel.release.design import Designed, counted, designed
from privacyfunnel.release.order import Order, Watch
from privacyfunnel.release.people import AT_A_GLANCE, people
from privacyfunnel.release.rare import few_words, rare_secret_words
from privacyfunnel.release.release import Release

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.release.apply import Drawn
    from privacyfunnel.release.shuffle import Scratch
    from privacyfunnel.tables.encoding import Encoding

ROUNDING = 1e-9  # relative: gaps that differ by less are the same


class Work:
    """A table on its way out: counted and sealed, and now drawn batch by batch while the unchanged rows are counted."""

    def __init__(
        self, encoding: Encoding, order: Order, found: Designed, stream: KeyStream, watch: Watch | None
    ) -> None:
        from privacyfunnel.release.kept import KeptLook
        from privacyfunnel.release.write import published

        self.encoding, self._order, self._found = encoding, order, found
        self._stream, self._watch, self._unchanged = stream, watch, 0
        values = len(encoding.contingency.secret.combos)
        self._neighbours, self._kept = Neighbours(values, encoding.rows), KeptLook(order.keep, values, encoding.rows)
        self.way = published(found.sealed, order.sets)
        taken = [name for name in order.keep if name in self.way.names]
        if taken:
            raise ColumnError(f"column '{taken[0]}' cannot be kept: a published column has that name. Rename it first.")

    @classmethod
    def begun(cls, table: Any, order: Order, watch: Watch | None = None) -> Work:
        """Count the table, make the protocol and seal it; nothing is published yet."""
        from privacyfunnel.tables.names import checked_columns

        checked_columns(order.keep, table.columns, "kept")
        if watch:
            watch("counting", 0)
        encoding = counted(table, order, order.keep)
        stream = KeyStream.fresh() if order.seed is None else KeyStream.from_seed(order.seed)
        return cls(encoding, order, designed(encoding, order, stream), stream, watch)

    @property
    def sealed(self) -> SealedProtocol:
        return self._found.sealed

    def codebook(self) -> pl.DataFrame | None:
        """What outcome codes stand for, where the table shows any."""
        from privacyfunnel.release.codebook import codebook

        return codebook(self.sealed, self._found.joint)

    @property
    def order(self) -> IntArray | None:
        """The number in the table of each published row; None where they are in its order."""
        from privacyfunnel.release.shuffle import RowOrder

        order_key = self.order_key
        return None if order_key is None else RowOrder.of(order_key).whole(self.encoding.rows)

    @property
    def order_key(self) -> bytes | None:
        """What undoes the order of the published rows: the owner's own."""
        return None if self._order.keep_order else self._stream.order_key()

    def batches(self, keep: Sequence[str] = (), scratch: Scratch | None = None) -> Iterator[pl.DataFrame]:
        """The sanitised rows: the published columns, then those to `keep`; in a random order, unless it is kept.

        `scratch` is where rows wait for their turn that memory does not hold.
        """
        from privacyfunnel.release.apply import shown
        from privacyfunnel.release.shuffle import Packing, RowOrder, shuffled

        if self.order_key is None:
            for piece in self._drawn(keep):
                yield shown(self.way, piece.codes, piece.kept)
            return
        packing = Packing(len(self.sealed.law.members), tuple(keep))
        packed = (packing.packed(piece.codes, piece.kept) for piece in self._drawn(keep))
        order = RowOrder.of(self.order_key)
        for rows in shuffled(packed, self.encoding.rows, order, self.way.rows_at_once, scratch):
            yield shown(self.way, *packing.unpacked(rows))

    def _drawn(self, keep: Sequence[str]) -> Iterator[Drawn]:
        """The rows in the order of the table, while they are counted and looked at."""
        from privacyfunnel.release.apply import drawn_rows

        for piece in drawn_rows(self.sealed, self.encoding, self._stream, self.way, keep, self._found.drawn):
            self._unchanged += piece.unchanged
            self._neighbours.add(piece.secret)
            self._kept.add(piece.kept, piece.secret)
            yield piece
            if self._watch:
                self._watch("drawn", piece.end)

    def release(self, table: Any) -> Release:
        """What was done, once all batches were drawn."""
        encoding, order, found = self.encoding, self._order, self._found
        used = {*order.secret, *order.publish, *order.keep}
        law, joint = self.sealed.law, found.joint
        return Release(
            table=table,
            sealed=self.sealed,
            method=found.choice.method,
            rows=encoding.rows,
            kept=order.keep,
            dropped=tuple(name for name in encoding.table.columns if name not in used),
            unchanged=self._unchanged / encoding.rows,
            unchanged_expected=self.way.expected_unchanged(joint),
            worth=found.worth,
            short=_short(found),
            average=order.average,
            average_only=order.average_only,
            known_values_leak=SRLIP(0).leakage(joint, law.protocol) if law.sees_secret else None,
            seconds=found.seconds,
            reason=found.choice.reason,
            sparse="" if order.private else sparse_words(found, self._watch),
            rare=()
            if order.private
            else tuple(
                filter(None, (few_words(joint, self.sealed.domain.bins), rare_secret_words(found, order.secret)))
            ),
            joint=joint,
            not_for_people=found.not_for_people,
            rows_alone=found.rows_alone,
            people=people(law, self.sealed.promise, joint, AT_A_GLANCE),
            known=() if found.point is None else (found.point,),
            order_tells=self._neighbours.found(),
            kept_columns=self._kept.found(),
            kept_order=order.keep_order,
        )


def _short(found: Designed) -> float | None:
    """How far the protocol may be from the best one, if that is more than was asked for."""
    worth = found.worth
    if worth.bound is None or found.options.as_values:
        return None
    missing = abs(worth.bound - worth.value)
    return missing if missing > found.options.effort.gap + ROUNDING * (1 + abs(worth.bound)) else None
