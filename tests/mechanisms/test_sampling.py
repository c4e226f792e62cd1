import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from privacyfunnel.errors import DistributionError, ParameterError, SizeError
from privacyfunnel.mechanisms import alias_tables
from privacyfunnel.mechanisms.alias_tables import AliasTables, AliasTablesByWidth, sample
from privacyfunnel.mechanisms.sampling import KeyStream, RowKey

Row = list[tuple[int, int]]

# A sampler without fault fails a chi-square test with this probability, once: the seeds are fixed.
FALSE_ALARM = 1e-6


@st.composite
def channels(draw: st.DrawFn, bits: int) -> list[Row]:
    """Integer rows that sum to 2^bits, with certain outputs, zero entries and outputs in any order."""
    width = draw(st.integers(1, min(40, 1 << bits)))
    # Round cuts as well, so that weights of exactly one bucket are common at every word length.
    eighth = 1 << max(0, bits - 3)
    cut = st.integers(0, 1 << bits) | st.integers(0, (1 << bits) // eighth).map(lambda count: count * eighth)
    labels = draw(st.permutations(range(2 * width)))[:width]
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        cuts = sorted(draw(st.lists(cut, min_size=width - 1, max_size=width - 1)))
        row = [(label, high - low) for label, low, high in zip(labels, [0, *cuts], [*cuts, 1 << bits], strict=True)]
        rows.append(row if draw(st.booleans()) else [entry for entry in row if entry[1]])
    return rows


def positive(row: Row) -> dict[int, int]:
    return {output: weight for output, weight in row if weight}


def random_rows(inputs: int, outputs: int, seed: int) -> list[Row]:
    """Dense 64-bit rows with weights of every size."""
    rng = np.random.default_rng(seed)
    rows = []
    for p in rng.dirichlet(np.full(outputs, 0.5), inputs):
        weights = [int(share * (1 << 64)) for share in p * (1 - 1e-9)]
        weights[int(p.argmax())] += (1 << 64) - sum(weights)
        rows.append(list(enumerate(weights)))
    return rows


@settings(max_examples=150, deadline=None)
@given(data=st.data(), bits=st.sampled_from([1, 2, 3, 5, 8, 10, 12]))
def test_all_words_together_make_exactly_the_integers_of_the_channel(data: st.DataObject, bits: int) -> None:
    rows = data.draw(channels(bits))
    tables = AliasTables.from_rows(rows, bits=bits)
    every_word = np.arange(1 << bits, dtype=np.uint64)
    for x, row in enumerate(rows):
        drawn = tables.draw(np.full(1 << bits, x), every_word)
        assert Counter(drawn.tolist()) == positive(row)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), bits=st.sampled_from([3, 8, 10]))
def test_rows_of_different_widths_are_dealt_exactly_from_tables_of_their_own(data: st.DataObject, bits: int) -> None:
    rows = [row for _ in range(3) for row in data.draw(channels(bits))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alias_tables, "_SHARED_BUCKETS", 0)
        tables = AliasTablesByWidth.from_rows(rows, bits=bits)
    assert isinstance(tables, AliasTablesByWidth)
    every_word = np.arange(1 << bits, dtype=np.uint64)
    codes, words = np.repeat(np.arange(len(rows)), 1 << bits), np.tile(every_word, len(rows))
    drawn = tables.draw(codes, words).reshape(len(rows), -1)
    for x, row in enumerate(rows):
        assert Counter(drawn[x].tolist()) == positive(row)


def test_one_wide_row_among_many_narrow_ones_does_not_make_their_tables_wide() -> None:
    half, many = 1 << 63, 1 << 11
    wide = [(y, (1 << 64) // many) for y in range(many)]
    tables = AliasTablesByWidth.from_rows([wide, *([[(0, half), (1, half)]] * (1 << 12))])
    assert isinstance(tables, AliasTablesByWidth)
    assert sum(group.thresholds.size for group in tables.groups) == many + 2 * (1 << 12)


def test_small_tables_are_shared_as_they_always_were() -> None:
    rows = random_rows(5, 40, seed=3)
    assert isinstance(AliasTablesByWidth.from_rows(rows), AliasTables)


@settings(max_examples=100, deadline=None)
@given(rows=channels(64))
def test_buckets_of_full_size_words_hold_exactly_the_integers_of_the_channel(rows: list[Row]) -> None:
    tables = AliasTables.from_rows(rows)
    k = tables.bucket_bits
    for x, row in enumerate(rows):
        mass: Counter[int] = Counter()
        for bucket in range(1 << k):
            first, second = tables.outputs[x, bucket].tolist()
            threshold = int(tables.thresholds[x, bucket])
            assert threshold % (1 << k) == 0
            inside = threshold >> k
            mass += Counter({first: inside}) + Counter({second: (1 << (64 - k)) - inside})
            edge = [bucket, threshold + bucket, 2**64 - (1 << k) + bucket]
            expected = [first if inside else second, second, second]
            if inside:
                edge.append(threshold - (1 << k) + bucket)
                expected.append(first)
            codes = np.full(len(edge), x)
            assert tables.draw(codes, np.array(edge, dtype=np.uint64)).tolist() == expected
        assert mass == positive(row)


def test_wide_rows_are_dealt_exactly_too() -> None:
    rows = random_rows(20, 1000, seed=3)
    tables = AliasTables.from_rows(rows)
    capacity = 1 << (64 - tables.bucket_bits)
    for x, row in enumerate(rows):
        mass: Counter[int] = Counter()
        inside = (tables.thresholds[x] >> np.uint64(tables.bucket_bits)).tolist()
        for (first, second), share in zip(tables.outputs[x].tolist(), inside, strict=True):
            mass[first] += share
            mass[second] += capacity - share
        assert +mass == positive(row)


def test_a_certain_output_needs_all_words_even_where_two_to_the_64_fits_no_word() -> None:
    tables = AliasTables.from_rows([[(7, 1 << 64)], [(0, 0), (3, 1 << 64)], [(0, 1), (1, (1 << 64) - 1)]])
    words = np.array([0, 1, 2, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
    assert set(tables.draw(np.zeros(6, dtype=np.int8), words).tolist()) == {7}
    assert set(tables.draw(np.ones(6, dtype=np.int8), words).tolist()) == {3}


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_codes_of_any_integer_type_give_the_same_draw(kind: type[np.integer[Any]]) -> None:
    tables = AliasTables.from_rows(random_rows(200, 16, seed=1))  # more buckets than the narrowest type can number
    codes = np.random.default_rng(2).integers(0, 200, 5000)
    stream = KeyStream.from_seed(3)
    drawn = sample(tables, codes.astype(kind), stream.rows(0, 5000))
    assert drawn.dtype == np.int32
    np.testing.assert_array_equal(drawn, sample(tables, codes, stream.rows(0, 5000)))


def test_weights_from_numpy_are_summed_without_wrapping() -> None:
    half = np.uint64(1 << 63)
    row: Any = [(0, half), (1, half), (2, half), (3, half)]
    with pytest.raises(DistributionError, match="row 0 is off by 18446744073709551616"):
        AliasTables.from_rows([row])


def ecb_word(stream: KeyStream, row: int, draw: int) -> int:
    """The word at an address, from one block encrypted by itself."""
    encryptor = Cipher(algorithms.AES(stream._key), modes.ECB()).encryptor()
    block = encryptor.update(draw.to_bytes(8, "big") + (row // 2).to_bytes(8, "big")) + encryptor.finalize()
    return int.from_bytes(block[8:] if row % 2 else block[:8], "little")


addresses = st.integers(0, 300) | st.integers(0, (1 << 64) - 300) | st.just((1 << 64) - 40)


@settings(max_examples=60, deadline=None)
@given(first=addresses, n=st.integers(0, 40), draw=st.integers(0, 3) | st.integers(0, (1 << 64) - 2))
def test_a_word_is_the_aes_block_of_its_row_and_draw_alone(first: int, n: int, draw: int) -> None:
    stream = KeyStream.from_seed(5)
    words = stream.words(first, n, draw=draw)
    assert words.dtype == np.uint64
    assert words.tolist() == [ecb_word(stream, first + i, draw) for i in range(n)]


def test_long_stretches_of_the_stream_agree_with_single_blocks() -> None:
    stream = KeyStream.from_seed(6)
    words = stream.words(12345, 200_001, draw=9)
    rows = [0, 1, 65534, 65535, 65536, 65537, 65538, 65539, 131_074, 131_076, 200_000]
    assert [int(words[i]) for i in rows] == [ecb_word(stream, 12345 + i, 9) for i in rows]


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, 70_000), max_size=6), draw=st.integers(0, 5))
def test_chunks_of_any_size_in_any_order_give_the_same_rows(cuts: list[int], draw: int) -> None:
    tables = AliasTables.from_rows(random_rows(5, 7, seed=1))
    codes = np.random.default_rng(1).integers(0, 5, 70_000)
    stream = KeyStream.from_seed(2)
    whole = sample(tables, codes, stream.rows(1001, len(codes)), draw=draw)
    edges = sorted({0, *cuts, 70_000})
    for low, high in reversed(list(pairwise(edges))):
        piece = sample(tables, codes[low:high], stream.rows(1001 + low, high - low), draw=draw)
        np.testing.assert_array_equal(piece, whole[low:high])


def test_drawing_from_words_and_drawing_from_the_stream_agree() -> None:
    tables = AliasTables.from_rows(random_rows(16, 16, seed=4))
    codes = np.random.default_rng(4).integers(0, 16, 100_001)
    stream = KeyStream.from_seed(4)
    np.testing.assert_array_equal(
        tables.draw(codes, stream.words(7, len(codes), draw=2)),
        sample(tables, codes, stream.rows(7, len(codes)), draw=2),
    )


def chi_square(counts: NDArray[np.int64], rows: list[Row]) -> float:
    """Tail probability of Pearson's statistic over all inputs, given how often each occurred."""
    statistic, freedom = 0.0, 0
    for observed, row in zip(counts, rows, strict=True):
        expected = observed.sum() * np.array([weight / 2**64 for _, weight in row])
        possible = expected > 0
        assert not observed[~possible].any()
        statistic += float(((observed - expected)[possible] ** 2 / expected[possible]).sum())
        freedom += int(possible.sum()) - 1
    return float(chi2.sf(statistic, freedom))


def falling_rows(shift: int = 0) -> list[Row]:
    """16 × 16, weights from three tenths down to some thousandths; `shift` goes from the heaviest to each other."""
    weights = [int(2**64 * 0.3 * 0.7**y) for y in range(15)]
    weights.append((1 << 64) - sum(weights))
    weights = [weights[0] - 15 * shift, *(weight + shift for weight in weights[1:])]
    return [sorted(((x + y) % 16, weights[y]) for y in range(16)) for x in range(16)]


def pair_counts(left: NDArray[np.integer[Any]], right: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    return np.bincount(left.astype(np.int64) * 16 + right, minlength=256).reshape(16, 16)


def test_ten_million_draws_look_like_the_channel_and_not_like_a_slightly_different_one() -> None:
    rows = falling_rows()
    codes = np.random.default_rng(7).integers(0, 16, 10_000_000, dtype=np.int32)
    words = KeyStream.from_seed(7).rows(0, len(codes))
    counts = pair_counts(codes, sample(AliasTables.from_rows(rows), codes, words))
    assert chi_square(counts, rows) > FALSE_ALARM

    # Each light weight one part in three thousand of the whole too heavy: this must not pass.
    biased = AliasTables.from_rows(falling_rows(shift=2**64 // 3000))
    assert chi_square(pair_counts(codes, sample(biased, codes, words)), rows) < FALSE_ALARM


def test_two_draws_of_the_same_row_and_two_rows_of_the_same_draw_are_independent() -> None:
    row = falling_rows()[0]
    tables = AliasTables.from_rows([row])
    codes = np.zeros(1_000_000, dtype=np.int8)
    words = KeyStream.from_seed(8).rows(0, len(codes))
    first, second = sample(tables, codes, words), sample(tables, codes, words, draw=1)
    # Given independence, what comes second follows the same row whatever came first.
    assert chi_square(pair_counts(first, second), [row] * 16) > FALSE_ALARM
    assert chi_square(pair_counts(first[::2], first[1::2]), [row] * 16) > FALSE_ALARM
    assert chi_square(pair_counts(first, first), [row] * 16) < FALSE_ALARM


def test_a_forked_child_draws_the_same_words_for_the_same_rows() -> None:
    # In a process of its own: forking a test runner that has threads is unsafe.
    script = """
import os
from privacyfunnel.mechanisms.sampling import KeyStream, RowKey

stream = KeyStream.generate()
before = stream.words(5, 1000, draw=3).tobytes()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    stream.words(0, 10)
    os.write(writer, stream.words(5, 1000, draw=3).tobytes())
    os._exit(0)
os.close(writer)
with open(reader, "rb") as pipe:
    from_child = pipe.read()
os.waitpid(child, 0)
assert len(from_child) == 8000
assert from_child == before == stream.words(5, 1000, draw=3).tobytes()
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_a_row_that_does_not_sum_or_has_a_negative_weight_is_refused() -> None:
    with pytest.raises(DistributionError, match=r"must sum to 2\^64; row 1 is off by -1"):
        AliasTables.from_rows([[(0, 1 << 64)], [(0, (1 << 64) - 1)]])
    with pytest.raises(DistributionError, match="row 0 is off by 1"):
        AliasTables.from_rows([[(0, 1 << 64), (1, 1)]])
    with pytest.raises(DistributionError, match="row 0 of the channel has a negative one"):
        AliasTables.from_rows([[(0, (1 << 64) + 1), (1, -1)]])
    with pytest.raises(DistributionError, match="at least one input"):
        AliasTables.from_rows([])
    with pytest.raises(ParameterError, match="output codes"):
        AliasTables.from_rows([[(-1, 1 << 64)]])
    weight: Any = 2.0**64
    with pytest.raises(TypeError):
        AliasTables.from_rows([[(0, weight)]])


def test_tables_that_cannot_be_held_or_chosen_from_are_refused() -> None:
    wide = [(y, 1 << 45) for y in range(1 << 19)]
    with pytest.raises(SizeError, match="at most 268435456 buckets"):
        AliasTables.from_rows([wide, *[[(0, 1 << 64)]] * 600])
    with pytest.raises(SizeError, match="words of 0 bits"):
        AliasTables.from_rows([[(0, 1)]], bits=0)


def test_codes_that_the_channel_does_not_know_are_counted_not_shown() -> None:
    tables = AliasTables.from_rows([[(0, 1 << 64)], [(1, 1 << 64)]])
    stream = KeyStream.from_seed(1)
    for codes in (np.array([0, 1, 2, 77]), np.array([0, -1, -5, 1])):
        with pytest.raises(ParameterError, match="between 0 and 1; 2 of 4 do not"):
            sample(tables, codes, stream.rows(0, 4))
        with pytest.raises(ParameterError, match="between 0 and 1; 2 of 4 do not"):
            tables.draw(codes, stream.words(0, 4))
    far = np.zeros(200_000, dtype=np.int64)
    far[[3, 150_000, 199_999]] = 2
    with pytest.raises(ParameterError, match="3 of 200000 do not"):
        sample(tables, far, stream.rows(0, len(far)))
    with pytest.raises(ParameterError, match="one column of integers"):
        sample(tables, np.array([[0, 1]]), stream.rows(0, 1))
    fractions: Any = np.array([0.0, 1.0])
    with pytest.raises(ParameterError, match="one column of integers"):
        sample(tables, fractions, stream.rows(0, 2))


def test_words_and_tables_that_do_not_belong_together_are_refused() -> None:
    stream = KeyStream.from_seed(1)
    short = AliasTables.from_rows([[(0, 1), (1, 3)]], bits=2)
    with pytest.raises(ParameterError, match="words of 64 bits; these tables need 2"):
        sample(short, np.zeros(3, dtype=np.int32), stream.rows(0, 3))
    with pytest.raises(ParameterError, match="3 codes and 2 words"):
        short.draw(np.zeros(3, dtype=np.int32), np.zeros(2, dtype=np.uint64))
    certain = AliasTables.from_rows([[(0, 1 << 64)]])
    for n in (2, 4):  # words of other rows than are drawn
        with pytest.raises(ParameterError, match=f"3 codes and {n} words"):
            sample(certain, np.zeros(3, dtype=np.int32), stream.rows(0, n))
    for first, n, draw in ((-1, 1, 0), (0, -1, 0), (0, 1, -1), (1 << 64, 1, 0), (0, 1, 1 << 64)):
        with pytest.raises(ParameterError, match="rows must lie between"):
            stream.words(first, n, draw=draw)
    with pytest.raises(ParameterError, match="32 bytes"):
        KeyStream(b"short")


def test_no_rows_give_no_draws() -> None:
    stream = KeyStream.from_seed(1)
    none = np.zeros(0, dtype=np.int32)
    assert sample(AliasTables.from_rows([[(0, 1 << 64)]]), none, stream.rows(0, 0)).shape == (0,)


def test_scattered_words_are_the_words_of_their_rows_and_draws() -> None:
    rows, draws = np.array([0, 1, 6, 5, 1, 99]), np.array([0, 3, 2**40])
    ids, lengths = np.eye(100, 16, dtype=np.uint8), np.ones(100, dtype=np.int64)
    by_id = RowKey(bytes(32)).derive_words(b"protocol", "id").rows(ids, lengths, np.arange(100))
    for whole in (KeyStream.from_seed(1).rows(7, 100), by_id):
        expected = np.stack([whole.word(int(draw))[rows] for draw in draws])
        np.testing.assert_array_equal(whole.scatter_words(rows, draws), expected)
