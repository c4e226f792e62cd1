"""Rows on their way out: drawn from a sealed protocol batch by batch, and put into a random order.

What a row becomes depends on its input, on the words of its own address and on nothing else, so a table may be cut
anywhere and its parts may be drawn in any order, here or elsewhere. The address is the row's position under a key that
is used once, or its id together with its input under a key that may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.input_domain import draw_substitutes
from privacyfunnel.mechanisms.sampling import IdentityWords, KeyStream, RandomWords, RowKey, generate_order_key
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.row_order_leak import NeighbourGuesses, OrderLeak
from privacyfunnel.release.bound_table import BoundTable, find_unknown
from privacyfunnel.release.findings.kept_columns import KeptColumn, KeptColumnAnalysis
from privacyfunnel.release.output_layout import OutputLayout, output_layout
from privacyfunnel.release.shuffle import Packing, RowOrder, Scratch, shuffle_rows
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.fields import BLUR, DROP, ERROR
from privacyfunnel.tables.coding.row_hashes import id_blocks, id_texts
from privacyfunnel.tables.readers.column_selection import categories_to_text, select_columns

ProgressCallback = Callable[[str, int], None]  # called with the step and the number of rows done


@dataclass(frozen=True, slots=True, eq=False)
class DrawnBatch:
    """Rows of a table, next to each other, and what they became."""

    codes: NDArray[Any]  # a row each, as the law draws it
    kept: pl.DataFrame | None  # their columns that pass through, if any
    secret: IntArray  # their secrets: the owner's own
    unchanged: int  # how many of them show exactly the values they had
    end: int  # the number of the row after the last one


class RowAddresses:
    """Where the words of rows come from: by position, or by id and input."""

    def __init__(self, sealed: SealedProtocol, spec: ReleaseSpec) -> None:
        self._id = spec.row_id
        self._stream = KeyStream.generate() if spec.seed is None else KeyStream.from_seed(spec.seed)
        self._words: IdentityWords | None = None
        if spec.row_id is not None:
            key = spec.row_key or (RowKey.generate() if spec.seed is None else RowKey(self._stream.order_key()))
            self._words = key.derive_words(sealed.digest, spec.row_id)
        # Under a kept key the order must be fresh all the same: two releases in one order would say who is who.
        kept = spec.row_key is not None
        self.order_key = None if spec.keep_order else generate_order_key() if kept else self._stream.order_key()

    def random_words(self, first_row: int, inputs: IntArray, read: pl.DataFrame | None) -> RandomWords:
        """The words of rows with these inputs, the first of which has that number."""
        if self._words is None or self._id is None or read is None:
            return self._stream.rows(first_row, len(inputs))
        return self._words.rows(*id_blocks(read[self._id]), inputs)


class RowSampler:
    """A table that a protocol has met, drawn batch by batch while it is looked at."""

    def __init__(self, bound_table: BoundTable, spec: ReleaseSpec, watch: ProgressCallback | None = None) -> None:
        encoding = bound_table.encoding
        self.bound_table, self.sealed, self.spec = bound_table, bound_table.sealed, spec
        self.layout: OutputLayout = output_layout(bound_table.sealed)
        self.layout.refuse_taken(spec.keep)
        law, substitutes = bound_table.sealed.mechanism, bound_table.sealed.substitutes
        nothing = law.lists_inputs and law.anything_else is None and substitutes is None
        if encoding.unknown_rows.rows and spec.unknown == BLUR and nothing:
            raise ParameterError(
                "This protocol has nothing that stands for unknown values: it looks at the secret, or was made before "
                "there was such a thing. Use "
                f"{hint('unknown', 'drop')}, or design it again."
            )
        self.addresses = RowAddresses(bound_table.sealed, spec)
        self._watch, self._unchanged = watch, 0
        listed = bound_table.sealed.model is not None and law.lists_inputs and spec.row_id is not None
        self._links: tuple[list[pl.Series], list[NDArray[Any]]] | None = ([], []) if listed else None
        values = len(encoding.contingency.secret.combos)
        self._neighbours, self._kept = (
            NeighbourGuesses(values, encoding.rows),
            KeptColumnAnalysis(spec.keep, values, encoding.rows),
        )

    @property
    def rows(self) -> int:
        """How many rows are published."""
        gone = self.bound_table.encoding.unknown_rows.rows if self.spec.unknown == DROP else 0
        return self.bound_table.encoding.rows - gone

    @property
    def order_key(self) -> bytes | None:
        """What undoes the order of the published rows: the owner's own."""
        return self.addresses.order_key

    @property
    def order(self) -> IntArray | None:
        """The number in the table of each published row; None where they are all of them in its order."""
        numbers = None if self.order_key is None else RowOrder.from_key(self.order_key).permutation(self.rows)
        if self.rows == self.bound_table.encoding.rows:
            return numbers
        stayed: IntArray = np.flatnonzero(self.bound_table.known_rows())
        return stayed if numbers is None else stayed[numbers]

    @property
    def unchanged_share(self) -> float:
        """The share of published rows that show the value they had, once all were drawn."""
        return self._unchanged / max(1, self.rows)

    def measure_row_order(self) -> OrderLeak | None:
        """What the order of the table says about the secret, once all rows were drawn; None where they carry none."""
        return self._neighbours.best_guess() if self.bound_table.has_secret else None

    @property
    def links(self) -> pl.DataFrame | None:
        """Who got which output, once all rows were drawn, where rows have ids and a release may follow: the owner's."""
        return None if self._links is None or self.spec.row_id is None else list_links(self.spec.row_id, *self._links)

    def kept_columns(self) -> tuple[KeptColumn, ...]:
        """What each kept column gives away, once all rows were drawn."""
        return self._kept.kept_columns()

    def batches(self, scratch: Scratch | None = None) -> Iterator[pl.DataFrame]:
        """The sanitised rows: the published columns, then those to keep; in a random order, unless it is kept.

        `scratch` is where rows wait for their turn that memory does not hold.
        """
        if self.order_key is None:
            for piece in self._pieces():
                yield published_frame(self.layout, piece.codes, piece.kept)
            return
        law = self.sealed.mechanism
        packing = Packing(tuple(len(part.names) for part in law.parts), self.spec.keep)
        packed = (packing.pack(piece.codes, piece.kept) for piece in self._pieces())
        order = RowOrder.from_key(self.order_key)
        for rows in shuffle_rows(packed, self.rows, order, self.layout.rows_at_once, scratch):
            yield published_frame(self.layout, *packing.unpack(rows))

    def draw_all(self) -> pl.DataFrame:
        """All sanitised rows at once, as text."""
        return categories_to_text(pl.concat(self.batches()))

    def _pieces(self) -> Iterator[DrawnBatch]:
        """The rows in the order of the table, while they are counted and looked at."""
        step, keep = self.layout.rows_at_once, self.spec.keep
        for chunk in self.bound_table.chunks(self.spec.read_columns):
            inputs = self.bound_table.inputs(chunk)
            for start in range(0, len(inputs), step):
                at = slice(start, start + step)
                first, read = chunk.start + start, None if chunk.kept is None else chunk.kept[at]
                codes = self._codes(inputs[at], first, read)
                kept = select_columns(read, keep) if keep and read is not None else None
                secret, values, end = chunk.secret[at], chunk.published[at], first + len(codes)
                known = ~find_unknown(values) if self.bound_table.encoding.unknown_rows.rows else slice(None)
                unchanged = self.layout.count_unchanged(values[known], codes[known])
                if self.spec.unknown == DROP:
                    codes, secret = codes[known], secret[known]
                    kept = kept.filter(known) if kept is not None and not isinstance(known, slice) else kept
                self._unchanged += unchanged
                if self._links is not None and read is not None and self.spec.row_id is not None:
                    ids = id_texts(read[self.spec.row_id])
                    self._links[0].append(ids if isinstance(known, slice) else ids.filter(pl.Series(known)))
                    self._links[1].append(codes[:, 0])
                if self.bound_table.has_secret:
                    self._neighbours.add(secret)
                self._kept.add(kept, secret)
                yield DrawnBatch(codes, kept, secret, unchanged, end)
                if self._watch:
                    self._watch("drawn", end)

    def _codes(self, inputs: IntArray, first: int, read: pl.DataFrame | None) -> NDArray[Any]:
        """What these rows become."""
        return draw_codes(
            self.sealed, inputs, self.spec.unknown, lambda values: self.addresses.random_words(first, values, read)
        )


BACK, OUTPUT = "releases back", "output"  # of a list of who got what


def list_links(row_id: str, ids: Sequence[pl.Series], outputs: Sequence[NDArray[Any]]) -> pl.DataFrame:
    """The id of everybody, that they are in the latest release, and the number of their output."""
    text = pl.concat(ids) if ids else pl.Series([], dtype=pl.String)
    numbers = np.concatenate(outputs).astype(np.int64) if outputs else np.zeros(0, dtype=np.int64)
    return pl.DataFrame({row_id: text, BACK: np.zeros(len(text), dtype=np.int64), OUTPUT: numbers})


def draw_codes(
    sealed: SealedProtocol, inputs: IntArray, unknown: str, random_words_of: Callable[[IntArray], RandomWords]
) -> NDArray[Any]:
    """What rows with these inputs become.

    One that is not known has words of its own, whatever it holds, and is drawn by the law's row for anything else, or
    as one of the inputs that stand for it, or as any where it will be dropped.
    """
    law = sealed.mechanism
    strange = find_unknown(inputs)
    if not strange.any():
        return law.draw(inputs, random_words_of(inputs))
    assert unknown != ERROR  # whoever met the table has refused it
    if not law.lists_inputs:
        inputs = np.where(strange[:, None], -1, inputs)
        return law.draw(inputs, random_words_of(inputs))
    words = random_words_of(np.where(strange, law.inputs, inputs))
    others: IntArray | int = 0 if law.anything_else is None else law.anything_else
    if law.anything_else is None and unknown == BLUR and sealed.substitutes is not None:
        others = draw_substitutes(sealed.substitutes, words)
    return law.draw(np.where(strange, others, inputs), words)


def published_frame(layout: OutputLayout, codes: NDArray[Any], kept: pl.DataFrame | None) -> pl.DataFrame:
    """Drawn rows as they are published: the published columns as `way` writes them, then those that are kept."""
    columns = layout.columns(codes)
    if kept is not None:
        columns += kept.get_columns()
    return pl.DataFrame({column.name: column for column in columns})
