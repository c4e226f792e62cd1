"""Rows on their way out: drawn from a sealed protocol batch by batch, and put into a random order.

What a row becomes depends on its input, on the words of its own address and on nothing else, so a table may be cut
anywhere and its parts may be drawn in any order, here or elsewhere. The address is the row's position under a key that
is used once, or its id together with its input under a key that may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.laws.identified import IdentityWords, RowKey, fresh_order_key
from privacyfunnel.laws.sampling import KeyStream, Words
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.laws.substitutes import substituted
from privacyfunnel.model.row_order import Neighbours, OrderTells
from privacyfunnel.release.kept import KeptColumn, KeptLook
from privacyfunnel.release.met import Met
from privacyfunnel.release.sending import BLUR, DROP, ERROR, Sending, Watch
from privacyfunnel.release.shuffle import Packing, RowOrder, Scratch, shuffled
from privacyfunnel.release.write import Published, published
from privacyfunnel.tables.identity import id_blocks
from privacyfunnel.tables.picking import picked, without_categories


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Rows of a table, next to each other, and what they became."""

    codes: NDArray[Any]  # a row each, as the law draws it
    kept: pl.DataFrame | None  # their columns that pass through, if any
    secret: IntArray  # their secrets: the owner's own
    unchanged: int  # how many of them show exactly the values they had
    end: int  # the number of the row after the last one


class Addresses:
    """Where the words of rows come from: by position, or by id and input."""

    def __init__(self, sealed: SealedProtocol, sending: Sending) -> None:
        self._id = sending.row_id
        self._stream = KeyStream.fresh() if sending.seed is None else KeyStream.from_seed(sending.seed)
        self._words: IdentityWords | None = None
        if sending.row_id is not None:
            key = sending.key or (RowKey.fresh() if sending.seed is None else RowKey(self._stream.order_key()))
            self._words = key.for_protocol(sealed.digest, sending.row_id)
        # Under a kept key the order must be fresh all the same: two releases in one order would say who is who.
        kept = sending.key is not None
        self.order_key = None if sending.keep_order else fresh_order_key() if kept else self._stream.order_key()

    def words(self, first_row: int, inputs: IntArray, read: pl.DataFrame | None) -> Words:
        """The words of rows with these inputs, the first of which has that number."""
        if self._words is None or self._id is None or read is None:
            return self._stream.rows(first_row, len(inputs))
        return self._words.rows(*id_blocks(read[self._id]), inputs)


class Outgoing:
    """A table that a protocol has met, drawn batch by batch while it is looked at."""

    def __init__(self, met: Met, sending: Sending, watch: Watch | None = None) -> None:
        encoding = met.encoding
        self.met, self.sealed, self.sending = met, met.sealed, sending
        self.way: Published = published(met.sealed, sending.sets)
        self.way.refuse_taken(sending.keep)
        nothing = met.sealed.law.anything_else is None and met.sealed.substitutes is None
        if encoding.strangers.rows and sending.unknown == BLUR and nothing:
            raise ParameterError(
                "This protocol has nothing that stands for unknown values: it looks at the secret, or was made before "
                "there was such a thing. Use --unknown drop, or design it again."
            )
        self.addresses = Addresses(met.sealed, sending)
        self._watch, self._unchanged = watch, 0
        values = len(encoding.contingency.secret.combos)
        self._neighbours, self._kept = Neighbours(values, encoding.rows), KeptLook(sending.keep, values, encoding.rows)

    @property
    def rows(self) -> int:
        """How many rows are published."""
        gone = self.met.encoding.strangers.rows if self.sending.unknown == DROP else 0
        return self.met.encoding.rows - gone

    @property
    def order_key(self) -> bytes | None:
        """What undoes the order of the published rows: the owner's own."""
        return self.addresses.order_key

    @property
    def order(self) -> IntArray | None:
        """The number in the table of each published row; None where they are all of them in its order."""
        numbers = None if self.order_key is None else RowOrder.of(self.order_key).whole(self.rows)
        if self.rows == self.met.encoding.rows:
            return numbers
        stayed: IntArray = np.flatnonzero(
            np.concatenate([self.met.inputs(chunk) >= 0 for chunk in self.met.encoding.chunks()])
        )
        return stayed if numbers is None else stayed[numbers]

    @property
    def unchanged(self) -> float:
        """The share of published rows that show the value they had, once all were drawn."""
        return self._unchanged / max(1, self.rows)

    def order_tells(self) -> OrderTells | None:
        """What the order of the table says about the secret, once all rows were drawn; None where they carry none."""
        return self._neighbours.found() if self.met.secrets else None

    def kept_columns(self) -> tuple[KeptColumn, ...]:
        """What each kept column gives away, once all rows were drawn."""
        return self._kept.found()

    def batches(self, scratch: Scratch | None = None) -> Iterator[pl.DataFrame]:
        """The sanitised rows: the published columns, then those to keep; in a random order, unless it is kept.

        `scratch` is where rows wait for their turn that memory does not hold.
        """
        if self.order_key is None:
            for piece in self._pieces():
                yield shown(self.way, piece.codes, piece.kept)
            return
        law = self.sealed.law
        packing = Packing(len(law.members), tuple(len(part.names) for part in law.parts), self.sending.keep)
        packed = (packing.packed(piece.codes, piece.kept) for piece in self._pieces())
        order = RowOrder.of(self.order_key)
        for rows in shuffled(packed, self.rows, order, self.way.rows_at_once, scratch):
            yield shown(self.way, *packing.unpacked(rows))

    def drawn_whole(self) -> pl.DataFrame:
        """All sanitised rows at once, as text."""
        return without_categories(pl.concat(self.batches()))

    def _pieces(self) -> Iterator[Drawn]:
        """The rows in the order of the table, while they are counted and looked at."""
        step, keep = self.way.rows_at_once, self.sending.keep
        for chunk in self.met.encoding.chunks(self.sending.read):
            inputs = self.met.inputs(chunk)
            for start in range(0, len(inputs), step):
                at = slice(start, start + step)
                first, read = chunk.start + start, None if chunk.kept is None else chunk.kept[at]
                codes = self._codes(inputs[at], first, read)
                kept = picked(read, keep) if keep and read is not None else None
                secret, values, end = chunk.secret[at], chunk.published[at], first + len(codes)
                known = inputs[at] >= 0 if self.met.encoding.strangers.rows else slice(None)
                unchanged = self.way.unchanged(values[known], codes[known])
                if self.sending.unknown == DROP:
                    codes, secret = codes[known], secret[known]
                    kept = kept.filter(known) if kept is not None and not isinstance(known, slice) else kept
                self._unchanged += unchanged
                if self.met.secrets:
                    self._neighbours.add(secret)
                self._kept.add(kept, secret)
                yield Drawn(codes, kept, secret, unchanged, end)
                if self._watch:
                    self._watch("drawn", end)

    def _codes(self, inputs: IntArray, first: int, read: pl.DataFrame | None) -> NDArray[Any]:
        """What these rows become."""
        return codes_of(
            self.sealed, inputs, self.sending.unknown, lambda values: self.addresses.words(first, values, read)
        )


def codes_of(
    sealed: SealedProtocol, inputs: IntArray, unknown: str, words_of: Callable[[IntArray], Words]
) -> NDArray[Any]:
    """What rows with these inputs become.

    One that is not known has words of its own, whatever it holds, and is drawn by the law's row for anything else, or
    as one of the inputs that stand for it, or as any where it will be dropped.
    """
    strange, law = inputs < 0, sealed.law
    if not strange.any():
        return law.draw(inputs, words_of(inputs))
    assert unknown != ERROR  # whoever met the table has refused it
    words = words_of(np.where(strange, law.inputs, inputs))
    others: IntArray | int = 0 if law.anything_else is None else law.anything_else
    if law.anything_else is None and unknown == BLUR and sealed.substitutes is not None:
        others = substituted(sealed.substitutes, words)
    return law.draw(np.where(strange, others, inputs), words)


def shown(way: Published, codes: NDArray[Any], kept: pl.DataFrame | None) -> pl.DataFrame:
    """Drawn rows as they are published: the published columns as `way` writes them, then those that are kept."""
    columns = way.columns(codes)
    if kept is not None:
        columns += kept.get_columns()
    return pl.DataFrame({column.name: column for column in columns})
