"""Draw agreement: were the rows of a sanitised table drawn from its protocol?

It is tested by a chi-square test of how often each input became each output, row by row where the order of the rows is
known and by counts of outputs else; and by whether outputs follow the secret beyond that, or a seed that one can guess.

Seeds: were rows drawn from a seed that an attacker would guess?

A file may state that it is for publication although its rows were drawn from a seed. Nothing in the file can disprove
that, since whoever alters it writes all of it. So the first rows are drawn again from each guessable seed; one that
gives all of them is the one that was used. A seed also gives the row order, so rows need not be paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.audits.matched_table import MatchedTable, RowNumbers
from privacyfunnel.audits.output_margins import SecretDependence, SecretTallies, judge_output_counts
from privacyfunnel.errors import GuaranteeError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sampling import WORD_BITS, KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import validate_columns
from privacyfunnel.release.output_layout import OutputLayout, detect_layout
from privacyfunnel.release.shuffle import RowOrder

if TYPE_CHECKING:
    from privacyfunnel.tables.readers.formats import Table


FIRST_ROWS = 2048  # that are drawn again
FEW_ROWS = 32  # of them first: nearly every seed fails there
JUDGED_BY = 8  # draws from fresh keys that say how much the rows tell
TRIED = 5000  # seeds from 0 on: two seconds
FAVOURITES = (12345, 123456, 1234567, 12345678, 31337, 8675309, 1234567890, 2**31 - 1, 2**32 - 1, -1)
MOST_WORDS = 1 << 27  # of orders that are tried: a few seconds
BITS = 40.0  # a draw from a fresh key repeats that of one seed with a chance of about 2^-40


def guessable_seeds() -> Iterable[int]:
    """The seeds that anybody would try first."""
    yield from range(TRIED)
    yield from FAVOURITES


def matches_seed(mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seeds: Iterable[int]) -> bool | None:
    """Whether one of the seeds draws just these rows, the first of their table; None where they say too little.

    They say too little if most draws from a fresh key would show the same: where outputs are all but certain.
    """
    inputs, drawn = inputs[:FIRST_ROWS], drawn[:FIRST_ROWS]
    if not _is_conclusive(mechanism, inputs, drawn):
        return None
    few = min(FEW_ROWS, len(inputs))
    return any(
        _count_differences(mechanism, inputs[:few], drawn[:few], seed) == 0
        and _count_differences(mechanism, inputs, drawn, seed) == 0
        for seed in seeds
    )


class FirstRows:
    """The first rows of a table, whatever order they come in."""

    def __init__(self) -> None:
        self._pieces: list[tuple[IntArray, IntArray, NDArray[Any]]] = []

    def add(self, numbers: IntArray, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Some rows, with their numbers in the original table."""
        mine = np.flatnonzero(numbers < FIRST_ROWS)
        if len(mine):
            self._pieces.append((numbers[mine], inputs[mine], drawn[mine]))

    def matches_seed(self, mechanism: Mechanism, seeds: Iterable[int]) -> bool | None:
        """Whether one of the seeds draws just these rows; None where they say too little."""
        numbers, inputs, drawn = (np.concatenate(parts) for parts in zip(*self._pieces, strict=True))
        order = np.argsort(numbers)
        return matches_seed(mechanism, inputs[order], drawn[order], seeds)


def matches_shuffled_seed(
    mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seeds: Iterable[int]
) -> bool | None:
    """Whether one of the seeds draws a table with these inputs whose first published rows are just `drawn`.

    None where they say too little, or where the table is so long that not all seeds were tried.
    """
    drawn, tried = drawn[:FIRST_ROWS], MOST_WORDS // max(1, len(inputs))
    _, alike = np.unique(drawn, axis=0, return_counts=True)
    chance = float(((alike / len(drawn)) ** 2).sum())  # that two of them look alike, as those of a wrong order do
    if chance >= 1 or -math.log2(chance) * len(drawn) < BITS:
        return None
    listed = tuple(seeds)
    if any(_matches_order(mechanism, inputs, drawn, seed) for seed in islice(listed, tried)):
        return True
    return False if tried >= len(listed) else None


def _matches_order(mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seed: int) -> bool:
    order = RowOrder.from_key(KeyStream.from_seed(seed).order_key())
    words = order.random_words(0, len(inputs))
    low = np.flatnonzero(words <= min(1.0, FEW_ROWS / len(words)) * (2.0**WORD_BITS - 2.0**12))  # about so many
    first = low[np.argsort(words[low])][:FEW_ROWS].tolist()
    few = zip(first, drawn, strict=False)
    if any(_count_differences(mechanism, inputs[row : row + 1], shown[None], seed, row) for row, shown in few):
        return False
    rows = order.sort_by_words(words)[: len(drawn)].tolist()
    pairs = zip(rows, drawn, strict=True)
    return not any(_count_differences(mechanism, inputs[row : row + 1], shown[None], seed, row) for row, shown in pairs)


def _count_differences(
    mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any], seed: int | None, first_row: int = 0
) -> int:
    """How many rows another draw shows otherwise, from a seed or from a fresh key."""
    stream = KeyStream.generate() if seed is None else KeyStream.from_seed(seed)
    again = mechanism.draw(inputs, stream.rows(first_row, len(inputs)))
    return int((again[:, : drawn.shape[1]] != drawn).any(axis=1).sum())


def _is_conclusive(mechanism: Mechanism, inputs: IntArray, drawn: NDArray[Any]) -> bool:
    """Whether fresh keys hardly ever repeat these rows.

    A row that differs with chance d repeats with chance 1 − d, and rows are independent; d is judged by a few draws.
    """
    share = min(_count_differences(mechanism, inputs, drawn, None) for _ in range(JUDGED_BY)) / max(1, len(inputs))
    return share >= 1 or -math.log2(1 - share) * len(inputs) >= BITS


FALSE_ALARM = 1e-6  # that a true draw is refused; exact for Bernstein's bound, asymptotic for chi-square

LEAST_EXPECTED = 20  # cells that expect fewer rows are joined before they are compared


@dataclass(frozen=True, slots=True)
class DrawAgreement:
    """How well a sanitised table agrees with the mechanism it should be drawn from."""

    rows: int
    statistic: float
    degrees: int
    p_value: float  # the chance of a statistic at least as large, had the draw followed the law
    secret_dependence: SecretDependence | None = (
        None  # whether outputs follow the secret; None where rows could not be paired
    )
    unseeded: bool | None = None  # True: no seed that anybody would try draws these rows; None where that was not tried
    kept_columns: tuple[str, ...] = ()  # the columns that were kept on purpose
    paired: bool = True  # row by row; False where the order is not known and only counts of outputs were compared
    untested: tuple[str, ...] = ()  # columns that counts alone could not judge


def chi_square(counts: IntArray, channel: FloatArray) -> tuple[float, int]:
    r""":math:`\sum_{z,y} (n_{zy} - n_z q(y|z))^2 / (n_z q(y|z))` and its degrees of freedom.

    Cells of a row that expect fewer than LEAST_EXPECTED are joined, as the statistic is chi-square only for large ones.

    >>> chi_square(np.array([[60, 40]]), np.array([[0.5, 0.5]]))
    (4.0, 1)
    """
    statistic, degrees = 0.0, 0
    for observed, q in zip(counts, channel, strict=True):
        expected = observed.sum() * q
        order = np.argsort(-expected, kind="stable")
        large = max(1, int((expected >= LEAST_EXPECTED).sum()))
        if large < len(order) and expected[order[large:]].sum() < LEAST_EXPECTED:
            large -= 1  # what is left joins the smallest of the large cells
        starts = np.arange(large + 1)[: len(order)]
        seen = np.add.reduceat(observed[order], starts)
        wanted = np.add.reduceat(expected[order], starts)
        if len(wanted) > 1 and wanted.min() >= LEAST_EXPECTED:
            statistic += float(((seen - wanted) ** 2 / wanted).sum())
            degrees += len(wanted) - 1
    return statistic, degrees


def judge_draw(
    sealed: SealedProtocol, found: MatchedTable, table: Table, order: RowNumbers | None, keep: Sequence[str]
) -> DrawAgreement:
    """Compare the sanitised rows with the mechanism; raise where they were not drawn from it."""
    way = detect_layout(sealed, table.columns, table.name)
    beside = check_columns(table.name, table.columns, way.names, sealed.domain.secret_columns, keep)
    if order is None:
        return _judge_counts(sealed, found, table, way, beside)
    published = (
        way.recover_codes(piece) for batch in table.batches(way.names) for piece in batch.iter_slices(way.rows_at_once)
    )
    tally = sealed.mechanism.tally()
    by_secret = SecretTallies(tally, found.joint.weights.sum(axis=1))
    first = FirstRows()
    rows = 0
    for codes, drawn in _align(order(found.codes()), published, found.encoding.rows, table.name):
        numbers, secrets, inputs = codes.T
        tally.add(inputs, drawn)
        by_secret.add(secrets, inputs, drawn)
        first.add(numbers, inputs, drawn)
        rows += len(inputs)
    _refuse_impossible(tally.impossible, rows, table.name)
    compared = [chi_square(counts, chances) for counts, chances in tally.rows]
    draw = _check_p_value(
        DrawAgreement(rows, sum(of for of, _ in compared), sum(free for _, free in compared), 1.0), table.name
    )
    following = by_secret.judge(chi_square)
    if not following.p_value >= FALSE_ALARM:
        raise GuaranteeError(
            f"outputs of {table.name} must not depend on {' & '.join(sealed.domain.secret_columns)} beyond what the "
            f"protocol allows; they do (p below {FALSE_ALARM:g}; for chi-square in the limit of many rows). It was "
            "altered, or drawn otherwise: do not publish it."
        )
    guessed = first.matches_seed(sealed.mechanism, guessable_seeds()) if sealed.for_publication else None
    return replace(draw, secret_dependence=following, unseeded=_check_seed(guessed, table.name), kept_columns=beside)


def _check_seed(guessed: bool | None, name: str) -> bool | None:
    """True where no seed was found, None where that is not known; raise where one was."""
    if guessed:
        raise GuaranteeError(
            f"{name} must be drawn from a fresh key, as its protocol file says; it was drawn from a seed that "
            f"anybody can guess. Do not publish it: sanitise again without {hint('seed')}."
        )
    return None if guessed is None else True


def _judge_counts(
    sealed: SealedProtocol, found: MatchedTable, table: Table, way: OutputLayout, beside: tuple[str, ...]
) -> DrawAgreement:
    inputs = np.concatenate([codes[:, 2] for codes in found.codes()])
    counts = np.bincount(inputs, minlength=sealed.mechanism.inputs)
    seen = judge_output_counts(sealed, counts, table, way)
    if seen.rows != found.encoding.rows:
        raise _row_count_error(table.name, found.encoding.rows, fewer=seen.rows < found.encoding.rows)
    _refuse_impossible(seen.impossible, seen.rows, table.name)
    draw = DrawAgreement(
        seen.rows, seen.statistic, seen.degrees, 1.0, kept_columns=beside, paired=False, untested=seen.untested
    )
    draw = _check_p_value(draw, table.name)
    if not sealed.for_publication:
        return draw
    first = way.recover_codes(next(table.batches(way.names)).head(FIRST_ROWS))
    guessed = matches_seed(sealed.mechanism, inputs, first, guessable_seeds()) or matches_shuffled_seed(
        sealed.mechanism, inputs, first, guessable_seeds()
    )
    return replace(draw, unseeded=_check_seed(guessed, table.name))


def _refuse_impossible(impossible: int, rows: int, name: str) -> None:
    if impossible:
        raise GuaranteeError(
            f"every row of {name} must be an output its protocol can give; {impossible:,} of {rows:,} are "
            "not. The table was altered, or drawn with another protocol."
        )


def _check_p_value(draw: DrawAgreement, name: str) -> DrawAgreement:
    """The draw with its p-value; raise where that says it was none."""
    from scipy.special import chdtr, chdtrc

    statistic, degrees = draw.statistic, draw.degrees
    p_value = float(chdtrc(degrees, statistic)) if degrees else 1.0
    if degrees and not min(p_value, float(chdtr(degrees, statistic))) >= FALSE_ALARM / 2:
        raise GuaranteeError(
            f"{name} must look drawn from its protocol; chi-square is {statistic:.6g} on {degrees} degrees of freedom "
            f"(p below {FALSE_ALARM:g} in the limit of many rows). It was altered, or drawn otherwise: do not publish "
            "it."
        )
    return replace(draw, p_value=p_value)


def _align(
    left: Iterable[IntArray], right: Iterable[NDArray[Any]], rows: int, name: str
) -> Iterator[tuple[IntArray, NDArray[Any]]]:
    """Two streams of rows, cut into pieces of equal length."""
    ours, theirs = iter(left), iter(right)
    a, b = next(ours, None), next(theirs, None)
    while a is not None and b is not None:
        n = min(len(a), len(b))
        yield a[:n], b[:n]
        a = a[n:] if n < len(a) else next(ours, None)
        b = b[n:] if n < len(b) else next(theirs, None)
    if a is not None or b is not None:
        raise _row_count_error(name, rows, fewer=b is None)


def _row_count_error(name: str, rows: int, *, fewer: bool) -> TableError:
    has = "fewer" if fewer else "more"
    return TableError(f"{name} must have {rows:,} rows like the original table; it has {has}. Name the right one.")


NAMED = 5  # columns that a sentence names


def check_columns(
    table: str, header: Sequence[str], published: Sequence[str], secret: Sequence[str], kept: Sequence[str]
) -> tuple[str, ...]:
    """The columns that were kept on purpose; all others must be published ones, and the secret is never kept.

    Raises
    ------
    GuaranteeError
        If there is a column that is neither published nor among those `kept`, or the secret itself.
    """
    validate_columns(kept, tuple(header), "kept")
    beside = [name for name in header if name not in published]
    bare = [name for name in beside if name in secret]
    if bare:
        raise GuaranteeError(
            f"{table} must not hold the secret; it holds {_format_names(bare)} as it is. Do not publish it: "
            "sanitise again."
        )
    strange = [name for name in beside if name not in kept]
    if strange:
        one = len(strange) == 1
        raise GuaranteeError(
            f"{table} must hold the published columns and those kept on purpose; {_format_names(strange)} "
            f"{'is' if one else 'are'} neither, and nothing is promised about {'it' if one else 'them'}. Name with "
            f"{hint('keep')} what was kept on purpose, or remove it."
        )
    return tuple(beside)


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"'{name}'" for name in names[:NAMED]) + more
