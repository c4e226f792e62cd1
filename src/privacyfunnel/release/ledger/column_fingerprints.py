"""Fingerprints of columns, by which a table is recognised whatever the order of its rows, and although a few changed.

A column is remembered by keyed hashes, one for each of its labels together with the number of rows that have it; blanks
around a label, its case and the way a number is written do not count. A row that changed alters two of them, other
people alter nearly all. They are keyed, so those of two ledgers have nothing in common until these are merged; whoever
has the key can try out guesses of labels and counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Contingency, Variable
from privacyfunnel.tables.coding.row_hashes import NUMERAL

MOST_LABELS = 256  # of a column that are remembered
FEWEST_AGREEING = 12  # labels with equal counts that are no accident where others differ
AGREEING_EACH = 3  # of them for each label that differs

SALT = 16  # bytes

Fingerprint = tuple[str, ...]  # how values were made coarser, then a hash of each label with its count
Fingerprints = Mapping[str, Fingerprint]  # of each column


def column_fingerprints(contingency: Contingency, salts: bytes) -> tuple[Fingerprints, dict[str, Fingerprints]]:
    """The fingerprint of each column under the first salt; and under each of those that a merged ledger has besides."""
    weights = contingency.weights
    sides = ((contingency.secret, weights.sum(axis=1)), (contingency.published, weights.sum(axis=0)))
    own, *others = (salts[i : i + SALT] for i in range(0, len(salts), SALT))

    def under(salt: bytes) -> Fingerprints:
        return {name: mark for side in sides for name, mark in _variable_fingerprints(*side, salt)}

    return under(own), {salt.hex(): under(salt) for salt in others}


def canonical_label(text: str) -> str:
    """A label, or the name of a column, in one of the ways in which it may be written.

    >>> canonical_label(" Nurse "), canonical_label("07.0")
    ('nurse', '7')
    """
    return re.sub(NUMERAL, r"\1\2", unicodedata.normalize("NFC", text).strip().casefold())


def have_same_rows(mine: Fingerprints, theirs: Fingerprints) -> bool:
    """Whether two tables agree in all columns that both have under one name; if there are none, in any two columns."""
    named = {canonical_label(name): mark for name, mark in theirs.items()}
    pairs = [(mark, named[canonical_label(name)]) for name, mark in mine.items() if canonical_label(name) in named]
    compared = [pair for pair in pairs if pair[0][0] == pair[1][0]]
    if compared:
        counts = [_count_agreeing(*pair) for pair in compared]
        return _agree(sum(agreeing for agreeing, _ in counts), sum(differing for _, differing in counts))
    return any(have_same_values(one, other) for one in mine.values() for other in theirs.values())


def have_same_values(mine: Fingerprint, theirs: Fingerprint) -> bool:
    """Whether two columns, whatever they are called, are one; in all rows or nearly so."""
    return mine[0] == theirs[0] and _agree(*_count_agreeing(mine, theirs))


def _count_agreeing(mine: Fingerprint, theirs: Fingerprint) -> tuple[int, int]:
    """How many labels of two columns have equal counts, and how many have not."""
    one, other = set(mine[1:]), set(theirs[1:])
    return len(one & other), max(len(one - other), len(other - one))


def _agree(agreeing: int, differing: int) -> bool:
    return agreeing > 0 and (differing == 0 or agreeing >= max(FEWEST_AGREEING, AGREEING_EACH * differing))


def _variable_fingerprints(variable: Variable, counts: IntArray, salt: bytes) -> Iterator[tuple[str, Fingerprint]]:
    for j, coding in enumerate(variable.codings):
        rows = np.zeros(len(coding.labels), dtype=np.int64)
        np.add.at(rows, variable.combos[:, j], counts)
        held: Counter[str] = Counter()
        for label, number in zip(coding.labels, rows.tolist(), strict=True):
            if number:  # a domain may list more
                held[canonical_label(label)] += number
        some = sorted((_keyed_hash(salt, label), number) for label, number in held.items())[:MOST_LABELS]
        pairs = (_keyed_hash(salt, f"{mark} {number}") for mark, number in some)
        yield coding.column, (_keyed_hash(salt, _coarsening(coding)), *sorted(pairs))


def _coarsening(coding: Coding) -> str:
    """How the values of a column were made coarser, as text; columns that were so in other ways are not compared."""
    how = None if coding.how is None else coding.how.to_json()
    merged = sorted(coding.labels) if coding.merges_values else []
    return json.dumps([list(map(str, coding.edges)), how, merged], sort_keys=True, default=str)


def _keyed_hash(salt: bytes, text: str) -> str:
    return hashlib.blake2b(text.encode(), key=salt, digest_size=8).hexdigest()
