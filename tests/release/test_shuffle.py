"""The order of published rows: exactly uniform, the same however much is held in memory, and nothing left on disk."""

import itertools
import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from privacyfunnel.atomic_files import scratch_file
from privacyfunnel.errors import OutputError, ParameterError
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.release import shuffle
from privacyfunnel.release.shuffle import Packing, RowOrder, shuffle_rows


class Scripted:
    """Words as written down: those of draw 1 by the places that rows share."""

    def __init__(self, at_places: tuple[int, ...]) -> None:
        self._at_places = np.array(at_places, dtype=np.uint64)

    def words(self, first_row: int, n: int, *, draw: int = 0) -> Any:
        assert draw == 1
        return self._at_places[first_row : first_row + n]


def test_every_order_is_equally_likely_also_among_rows_whose_words_tie() -> None:
    orders: Counter[tuple[int, ...]] = Counter()
    for words in itertools.product(range(2), repeat=4):
        for fresh in itertools.permutations(range(4)):
            order = RowOrder(Scripted(fresh))  # type: ignore[arg-type]
            orders[tuple(order.sort_by_words(np.array(words, dtype=np.uint64)).tolist())] += 1
    assert orders == dict.fromkeys(itertools.permutations(range(4)), 16)


def test_the_orders_of_many_keys_are_uniform() -> None:
    keys = (KeyStream.from_seed(seed).order_key() for seed in range(6000))
    orders = Counter(tuple(RowOrder.from_key(key).permutation(4).tolist()) for key in keys)
    assert len(orders) == 24
    assert chisquare(list(orders.values())).pvalue > 1e-6  # a false alarm once in a million versions


def test_no_law_can_draw_with_the_words_of_the_order() -> None:
    stream = KeyStream.from_seed(1)
    assert stream.words(0, 3, draw=(1 << 64) - 2).size == 3
    with pytest.raises(ParameterError, match="between 0 and 2\\^64 − 2"):
        stream.words(0, 3, draw=(1 << 64) - 1)
    first = {stream.words(0, 4, draw=draw).tobytes() for draw in range(4)}
    assert len(stream.order_key()) == 32
    assert stream.order_key() not in first
    assert stream.order_key() != KeyStream.from_seed(2).order_key()


def narrow(first_row: int, n: int) -> Any:
    """Words of which many tie: their first two bits tell buckets apart, as those of real words do."""
    return KeyStream.from_seed(3).words(first_row, n) & np.uint64(0b11 << 62 | 0b111)


@settings(max_examples=40)
@given(cuts=st.lists(st.integers(1, 299), max_size=8), most=st.integers(200, 20_000), ties=st.booleans())
def test_the_order_does_not_depend_on_what_is_held_in_memory(cuts: list[int], most: int, ties: bool) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as name:
        folder = Path(name)
        if ties:
            patch.setattr(RowOrder, "random_words", lambda _, first_row, n: narrow(first_row, n))
        order = RowOrder.from_key(bytes(range(32)))
        rows = pl.DataFrame({"0": np.arange(300), "1": [None if i % 7 == 0 else f"é{i}" for i in range(300)]})
        rows = rows.with_columns(pl.Series("2", [[i] * (i % 3) for i in range(300)]))
        edges = sorted({0, *cuts, 300})
        pieces = [rows[low:high] for low, high in itertools.pairwise(edges)]
        whole = rows[order.permutation(300)]
        patch.setattr(shuffle, "MOST_HELD", most)
        found = list(shuffle_rows(iter(pieces), 300, order, 64, lambda: scratch_file(folder / "sanitised.csv")))
        assert pl.concat(found).equals(whole)
        assert max(piece.height for piece in found) <= 64
        assert list(folder.iterdir()) == []


def test_rows_that_wait_on_disk_have_no_name_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    with scratch_file(tmp_path / "sanitised.csv") as file:
        file.write(b"rows")
        assert list(tmp_path.iterdir()) == []  # so nothing is left, however the process ends
        assert os.fstat(file.fileno()).st_nlink == 0
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
        file.seek(0)
        assert file.read() == b"rows"


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="the disk is full"), scratch_file(tmp_path / "sanitised.csv"):
        raise OSError(28, "No space left on device")


def test_packing_gives_back_what_was_packed() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 70_000, (20, 2))
    kept = pl.DataFrame({"0": np.arange(20), "word": ["a"] * 20})
    packing = Packing((70_000, 70_000), ("0", "word"))
    codes, back = packing.unpack(packing.pack(drawn, kept))
    assert (codes == drawn).all()
    assert back is not None
    assert back.equals(kept)
