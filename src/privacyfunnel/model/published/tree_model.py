r"""A published model p̃(s, x) of any number of columns: a tree in integers.

.. math:: \tilde p(s, x) = \tilde p(s) \prod_j \tilde p(x_j \mid s, x_{\pi(j)})

Every column j depends on the secret and on at most one other column π(j). All probabilities are integers over
:math:`2^{32}`, so that the model is small in a file, is drawn from exactly, and is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, WordArray, freeze
from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.model.joint import Attribute

CodeArray = NDArray[np.int32]

BITS = 32
UNIT = 1 << BITS
MOST_FACTORS = 1 << 12  # 2m + c
FIRST = " · 0"  # of the secrets of a model that tells known columns apart as well: how the first of each ends
MOST_KNOWN = 64  # secrets times what is known
MOST_CELLS = 1 << 22  # of a table that is listed exactly
_CHUNK = 1 << 14  # records whose ratios are worked on together: they stay in the cache
_FIRST_BITS = 12  # of a half word, by which most draws are settled
_MOST_SETTLED = 1 << 18  # entries of a table that settles them: they stay in the cache
_FACTORS_WITHOUT_UNDERFLOW = 30  # (2^-32)^30 is a normal double


@dataclass(frozen=True, eq=False)
class TreeModel:
    r"""p̃(s, x) as integers: `shares` of the secrets, and a table p̃(x_j | s, x_π(j)) for every column.

    >>> coin = TreeModel.from_weights(
    ...     Attribute("ill", ("no", "yes")), [Attribute("test", ("-", "+"))], [3, 1], [None], [[[[9, 1]], [[2, 8]]]]
    ... )
    >>> coin.ratios(np.array([[0], [1]])).round(3).tolist()
    [[1.241, 0.276], [0.364, 2.909]]
    """

    secret: Attribute
    attributes: tuple[Attribute, ...]
    shares: IntArray  # c; they sum to UNIT
    parents: tuple[int | None, ...]  # the column on which each column depends
    tables: tuple[IntArray, ...]  # c × labels of the parent (or 1) × labels; the last axis sums to UNIT

    RELATIVE_ERROR: ClassVar[float] = 2.0**-40  # of a ratio
    TINY: ClassVar[float] = 2.0**-900  # what a ratio may differ by beyond that

    def __post_init__(self) -> None:
        c, m = len(self.secret.labels), len(self.attributes)
        if not m or len(self.parents) != m or len(self.tables) != m:
            raise DistributionError(
                f"A model needs a parent and a table for each of its columns; it has {m} columns, {len(self.parents)} "
                f"parents and {len(self.tables)} tables."
            )
        if 2 * m + c > MOST_FACTORS:
            raise SizeError(
                f"A model has at most {MOST_FACTORS} for twice its columns and its secrets together; {m} columns and "
                f"{c} secrets are more. Publish fewer columns, or merge secrets."
            )
        if self.shares.shape != (c,) or (self.shares < 1).any() or int(self.shares.sum()) != UNIT:
            raise DistributionError("Every secret must have a share, and shares must sum to 2^32; these do not.")
        for j, (attribute, parent, table) in enumerate(zip(self.attributes, self.parents, self.tables, strict=True)):
            if parent is not None and (not 0 <= parent < m or parent == j):
                raise DistributionError(f"The parent of '{attribute.name}' must be another column; it is {parent}.")
            shape = (c, 1 if parent is None else len(self.attributes[parent].labels), len(attribute.labels))
            if table.shape != shape or (table < 0).any() or (table.sum(axis=2) != UNIT).any():
                raise DistributionError(
                    f"The table of '{attribute.name}' must have the shape {shape} and rows of integers that sum to "
                    f"2^32; it has the shape {table.shape} or other sums."
                )
        if len(self.order) < m:
            raise DistributionError("Parents must make a tree; these have a cycle.")
        object.__setattr__(self, "shares", freeze(self.shares))
        object.__setattr__(self, "tables", tuple(map(freeze, self.tables)))

    @classmethod
    def from_weights(
        cls,
        secret: Attribute,
        attributes: Sequence[Attribute],
        shares: Any,
        parents: Sequence[int | None],
        tables: Sequence[Any],
    ) -> TreeModel:
        """The model with these weights of any scale: each distribution is rounded to integers that sum to 2^32.

        A weight above 0 stays above 0, and 0 stays 0.
        """
        return cls(
            secret,
            tuple(attributes),
            round_to_unit(np.asarray(shares, dtype=np.float64)),
            tuple(parents),
            tuple(round_to_unit(np.asarray(table, dtype=np.float64)) for table in tables),
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The columns, each after its parent."""
        children: dict[int | None, list[int]] = {}
        for j, parent in enumerate(self.parents):
            children.setdefault(parent, []).append(j)
        found = list(children.get(None, ()))
        for j in found:  # grows while it is walked
            found.extend(children.get(j, ()))
        return tuple(found)

    def reveal(self, columns: Sequence[int]) -> TreeModel:
        """The same model with (s, x_A) for the secret, A being these columns: numbered s · (combinations of A) + x_A.

        Shares of (s, x_A) are rounded to multiples of 2^-32. Columns of A must depend on columns of A alone.
        """
        if any(self.parents[j] is not None and self.parents[j] not in columns for j in columns):
            raise DistributionError("Columns that are known must depend on each other alone; these do not.")
        shape = tuple(len(self.attributes[j].labels) for j in columns)
        size, c = math.prod(shape), len(self.shares)
        check_known([self.attributes[j] for j in columns], c * size)
        codes = dict(zip(columns, np.unravel_index(np.arange(size), shape), strict=True))
        weights = np.repeat(self._floats[:, None], size, axis=1)
        tables = [np.repeat(table, size, axis=0) for table in self.tables]
        for j in columns:
            parent = self.parents[j]
            weights = weights * self.tables[j][:, 0 if parent is None else codes[parent], codes[j]] / UNIT
            tables[j] = np.zeros_like(tables[j])
            tables[j][np.arange(c * size), :, np.tile(codes[j], c)] = UNIT
        shares = round_to_unit(np.maximum(weights.reshape(-1), 1.0 / UNIT))
        named = tuple(f"{label} · {number}" for label in self.secret.labels for number in range(size))
        return TreeModel(Attribute(self.secret.name, named), self.attributes, shares, self.parents, tuple(tables))

    # -- ratios ------------------------------------------------------------------------------------------------

    def ratios(self, codes: NDArray[np.integer[Any]]) -> FloatArray:
        r"""r_s(x) = p̃(x | s) / p̃(x) of every record: n × c, from codes n × m.

        A record that the model rules out has no ratios: they are infinite, for every secret.

        **Every machine gets the same bits**: floats are only multiplied, added and divided, one by one in this order.

        **Error.** With u = 2^-53, the integers over 2^32 are floats without rounding. A product of m of them has a
        factor between (1 − u)^{m−1} and (1 + u)^{m−1}; in Σ_s p̃(s) p̃(x|s) each term is rounded once more and at
        most c − 1 times added; then comes one division. Together 2(m − 1) + c + 1 ≤ 2^12 roundings, hence
        |r̂ − r| ≤ r · 2^12 u / (1 − 2^12 u) < r · RELATIVE_ERROR.
        A product of 30 factors is at least 2^-960, a normal double. Beyond 30 columns mantissas and exponents are kept
        apart after each 30, so that only what is below 2^-1022 times the largest p̃(x|s) at the end is lost: less than
        TINY of a ratio, as the largest has a share of at least 2^-32.
        """
        codes = self._check_codes(codes)
        found = np.empty((len(codes), len(self.shares)))
        for start in range(0, len(codes), _CHUNK):
            self._fill_ratios(codes[start : start + _CHUNK], found[start : start + _CHUNK])
        return found

    def _fill_ratios(self, codes: NDArray[np.integer[Any]], product: FloatArray) -> None:
        n = len(codes)
        factor, index = np.empty_like(product), np.empty(n, dtype=np.int64)
        exponents: NDArray[np.int32] | None = None
        for place, j in enumerate(self.order):
            if place and place % _FACTORS_WITHOUT_UNDERFLOW == 0:
                product[:], moved = np.frexp(product)
                exponents = moved if exponents is None else exponents + moved
            parent = self.parents[j]
            if parent is None:
                index[:] = codes[:, j]
            else:
                np.multiply(codes[:, parent], len(self.attributes[j].labels), out=index, dtype=np.int64)
                np.add(index, codes[:, j], out=index)
            target = factor if place else product
            np.take(self._likelihoods[j], index, axis=0, out=target, mode="wrap")  # in range: codes were checked
            if place:
                np.multiply(product, factor, out=product)
        if exponents is not None:
            mantissas, moved = np.frexp(product)
            exponents = np.where(mantissas > 0, exponents + moved, np.iinfo(np.int32).min // 2)
            # ldexp is exact down to the smallest normal double; an exponent below -2000 gives 0.
            product[:] = np.ldexp(mantissas, np.maximum(exponents - exponents.max(axis=1, keepdims=True), -2000))
        self._divide_by_mean(product)

    def _divide_by_mean(self, likelihoods: FloatArray) -> FloatArray:
        """p̃(x | s) over p̃(x), in place; infinite where that is 0."""
        total = likelihoods[:, 0] * self._floats[0]
        for s in range(1, len(self.shares)):
            total += likelihoods[:, s] * self._floats[s]
        impossible = total == 0
        total[impossible] = 1.0
        np.divide(likelihoods, total[:, None], out=likelihoods)
        likelihoods[impossible] = np.inf
        return likelihoods

    def _with_ancestors(self, columns: set[int]) -> set[int]:
        found = set(columns)
        for j in reversed(self.order):
            parent = self.parents[j]
            if j in found and parent is not None:
                found.add(parent)
        return found

    @cached_property
    def _floats(self) -> FloatArray:
        return self.shares / UNIT

    @cached_property
    def _likelihoods(self) -> tuple[FloatArray, ...]:
        """For each column (labels of the parent · labels) × c: p̃(x_j | s, x_π), without rounding."""
        return tuple(np.ascontiguousarray(table.reshape(len(table), -1).T / UNIT) for table in self.tables)

    def _check_codes(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        if codes.ndim != 2 or codes.shape[1] != len(self.attributes) or codes.dtype.kind not in "iu":
            raise DistributionError(
                f"Records must be codes of {len(self.attributes)} columns; these have the shape {codes.shape}."
            )
        for j, attribute in enumerate(self.attributes):
            if len(codes) and not 0 <= codes[:, j].min() <= codes[:, j].max() < len(attribute.labels):
                raise DistributionError(
                    f"Codes of '{attribute.name}' must be below {len(attribute.labels)}; some are not. Code the "
                    "records by the labels of the model."
                )
        return codes

    # -- drawing -----------------------------------------------------------------------------------------------

    @property
    def words_per_record(self) -> int:
        """How many 64-bit words a record is drawn with: half a word for the secret, then half a word per column."""
        return len(self.attributes) // 2 + 1

    def sample(self, random_words: WordArray) -> CodeArray:
        """Records x ~ p̃, as codes n × m, from uniform words, `words_per_record` × n.

        A half word u < 2^32 draws the first label whose cumulated weight is above u: exactly w of the 2^32 half words
        draw a label of weight w.
        """
        return self.sample_given(self.sample_secrets(random_words), random_words)

    def sample_secrets(self, random_words: WordArray) -> CodeArray:
        """The secrets s ~ p̃ of the records that `sample` draws from these words."""
        half = _half_words(self._check_words(random_words), 0)
        return np.searchsorted(np.cumsum(self.shares), half, side="right").astype(np.int32)

    def sample_given(self, secrets: NDArray[np.integer[Any]] | int, random_words: WordArray) -> CodeArray:
        """Records x ~ p̃(· | s) for one secret, or for a secret per record; the half word of the secret is not used."""
        self._check_words(random_words)
        c = len(self.shares)
        s = np.broadcast_to(np.asarray(secrets, dtype=np.int64), random_words.shape[1:])
        if s.size and not 0 <= s.min() <= s.max() < c:
            raise DistributionError(f"Codes of secrets must be below {c}; some are not.")
        codes = np.empty((len(self.attributes), len(s)), dtype=np.int32)
        for place, j in enumerate(self.order, 1):
            parent, contexts = self.parents[j], self.tables[j].shape[1]
            row = s if parent is None else s * contexts + codes[parent]
            codes[j] = self._inverses[j].draw(row, _half_words(random_words, place))
        return codes.T

    @cached_property
    def _inverses(self) -> tuple[_InverseTable, ...]:
        return tuple(_InverseTable.from_weights(table.reshape(-1, table.shape[2])) for table in self.tables)

    def _check_words(self, random_words: WordArray) -> WordArray:
        if random_words.ndim != 2 or len(random_words) != self.words_per_record or random_words.dtype != np.uint64:
            raise DistributionError(
                f"A record is drawn with {self.words_per_record} words of 64 bits, a row of words each; these have the "
                f"shape {random_words.shape}."
            )
        return random_words

    # -- marginals ---------------------------------------------------------------------------------------------

    def marginal(self, columns: Sequence[int]) -> NDArray[Any]:
        """p̃(s, x_A) of some columns A, exactly: integers c × labels × …, in the order of `columns`, over their sum.

        Columns outside of A and of its ancestors sum to 1 and are left out.
        """
        c, sizes = len(self.shares), [len(self.attributes[j].labels) for j in columns]
        if len(set(columns)) != len(columns):
            raise DistributionError("Columns of a marginal must differ; some repeat.")
        relevant = self._with_ancestors(set(columns))
        # A message: its table c × labels of the parent × labels of those columns of A that lie below.
        messages: dict[int | None, list[tuple[NDArray[Any], list[int]]]] = {}
        for j in reversed(self.order):
            if j in relevant:
                table, kept = self.tables[j].astype(object)[..., None], list[int]()  # c, parent, own, columns of A
                for below, names in messages.get(j, ()):
                    if table.size * below.shape[2] > MOST_CELLS:
                        raise SizeError(_TOO_MANY)
                    table = (table[..., None] * below[:, None, :, None, :]).reshape(*table.shape[:3], -1)
                    kept += names
                if j in columns:
                    table, kept = table.reshape(*table.shape[:2], -1), [j, *kept]
                else:
                    table = table.sum(axis=2)
                messages.setdefault(self.parents[j], []).append((table, kept))
        result, axes = self.shares.astype(object)[:, None], list[int]()
        for table, kept in messages.get(None, ()):
            if result.size * table.shape[2] > MOST_CELLS:
                raise SizeError(_TOO_MANY)
            result, axes = (result[:, :, None] * table[:, 0, None, :]).reshape(c, -1), axes + kept
        shape = [len(self.attributes[j].labels) for j in axes]
        moved = result.reshape(c, *shape).transpose(0, *(1 + axes.index(j) for j in columns))
        return moved.reshape(c, *sizes)

    # -- files -------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The integers of the model, as they stand in a protocol file; labels stand elsewhere in it."""
        return {
            "shares": self.shares.tolist(),
            "parents": list(self.parents),
            "tables": [table.tolist() for table in self.tables],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], secret: Attribute, attributes: Sequence[Attribute]) -> TreeModel:
        """The model that a protocol file states, about these labels."""
        try:
            shares = np.array(content["shares"], dtype=np.int64)
            parents = tuple(None if parent is None else int(parent) for parent in content["parents"])
            tables = tuple(np.array(table, dtype=np.int64) for table in content["tables"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise DistributionError("A model is shares, parents and tables of integers; this is not.") from None
        return cls(secret, tuple(attributes), shares, parents, tables)


_TOO_MANY = f"A marginal is listed up to {MOST_CELLS:,} combinations; these columns have more. Ask for fewer."


def check_known(known: Sequence[Attribute], combinations: int) -> None:
    """Refuse columns that, with the secret, have more combinations than neighbours are covered for."""
    if combinations > MOST_KNOWN:
        raise SizeError(
            f"Neighbours who know columns are covered for at most {MOST_KNOWN} combinations of a secret and what is "
            f"known; {' & '.join(at.name for at in known)} make {combinations} or more. Name fewer columns, or coarser "
            "ones."
        )


def round_to_unit(weights: FloatArray) -> IntArray:
    """Each distribution along the last axis as integers that sum to 2^32; what is above 0 stays above 0.

    >>> round_to_unit(np.array([1.0, 1.0, 0.0, 2.0])).tolist()
    [1073741824, 1073741824, 0, 2147483648]
    """
    total = weights.sum(axis=-1, keepdims=True)
    if not np.isfinite(weights).all() or (weights < 0).any() or (total <= 0).any():
        raise DistributionError("Weights must be finite, at least 0, and above 0 somewhere; these are not.")
    units: IntArray = np.maximum(np.floor(weights / total * UNIT), weights > 0).astype(np.int64)
    largest = units.argmax(axis=-1)[..., None]
    rest = UNIT - units.sum(axis=-1, keepdims=True)
    np.put_along_axis(units, largest, np.take_along_axis(units, largest, axis=-1) + rest, axis=-1)
    return units


@dataclass(frozen=True, slots=True, eq=False)
class _InverseTable:
    """Rows of weights that sum to 2^32, and the label that a half word draws from each.

    Half words are looked up by their first bits; where these leave several labels, the cumulated weights are searched.
    """

    cumulated: IntArray  # of all rows, one after the other: row i begins at i · 2^32
    labels: int
    first_bits: int
    settled: CodeArray  # rows · 2^first_bits: the label, or −1 where the bits that follow matter

    @classmethod
    def from_weights(cls, weights: IntArray) -> _InverseTable:
        rows, labels = weights.shape
        cumulated = np.cumsum(weights.reshape(-1))
        first_bits = max(min(_FIRST_BITS, (_MOST_SETTLED // rows).bit_length() - 1), 0)
        start = np.arange(rows << first_bits) << (BITS - first_bits)
        first = np.searchsorted(cumulated, start, side="right")
        last = np.searchsorted(cumulated, start + (1 << (BITS - first_bits)) - 1, side="right")
        settled = np.where(first == last, first % labels, -1).astype(np.int32)
        return cls(cumulated, labels, first_bits, settled)

    def draw(self, row: IntArray, half: IntArray) -> CodeArray:
        drawn: CodeArray = self.settled[(row << self.first_bits) | (half >> (BITS - self.first_bits))]
        unsettled = np.flatnonzero(drawn < 0)
        place = np.searchsorted(self.cumulated, (row[unsettled] << BITS) | half[unsettled], side="right")
        drawn[unsettled] = place % self.labels
        return drawn


def _half_words(random_words: WordArray, place: int) -> IntArray:
    """Half word number `place` of every record: the low half of a word comes first."""
    word = random_words[place // 2]
    half: WordArray = word >> np.uint64(BITS) if place % 2 else word & np.uint64(UNIT - 1)
    return half.view(np.int64)
