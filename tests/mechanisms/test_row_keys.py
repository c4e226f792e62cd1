"""Rows addressed by their ids: the same words wherever and among whichever rows, fresh ones for whatever changed."""

import copy
import hmac
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.arrays import WordArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.mechanisms.sampling import KeyStream, RowKey
from privacyfunnel.tables.coding.row_hashes import id_blocks, id_texts

KEY, DIGEST = RowKey(bytes(range(32))), b"d" * 32


def canonical(text: str) -> str:
    return str(id_texts(pl.Series([text])).item())


IDS = st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=8, unique_by=canonical)


def words(ids: list[str], inputs: list[int], draw: int = 0, key: RowKey = KEY, digest: bytes = DIGEST) -> WordArray:
    rows = key.derive_words(digest, "id").rows(*id_blocks(pl.Series(ids, dtype=pl.String)), np.array(inputs))
    return rows.word(draw)


def by_the_book(identity: str, z: int, draw: int) -> int:
    """CBC-MAC of length, input and id, and AES of tag and draw number, block by block."""
    use = b"privacyfunnel words by row id 1" + DIGEST + b"id"
    keys = [hmac.digest(bytes(range(32)), part + use, "sha256") for part in (b"tag ", b"word ")]

    def block(key: bytes, plain: bytes) -> bytes:
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(plain)

    text = identity.encode()
    message = len(text).to_bytes(8, "little") + z.to_bytes(8, "little") + text + bytes(-len(text) % 16)
    tag = bytes(16)
    for start in range(0, len(message), 16):
        tag = block(keys[0], bytes(a ^ b for a, b in zip(tag, message[start : start + 16], strict=True)))
    number = draw.to_bytes(8, "little") + bytes(8)
    return int.from_bytes(block(keys[1], bytes(a ^ b for a, b in zip(tag, number, strict=True)))[:8], "little")


@given(ids=IDS, z=st.integers(0, 2**40), draw=st.integers(0, 2**64 - 1))
def test_a_word_is_the_keyed_function_that_the_docstring_states(ids: list[str], z: int, draw: int) -> None:
    assert words(ids, [z] * len(ids), draw).tolist() == [by_the_book(canonical(one), z, draw) for one in ids]


@given(ids=IDS, data=st.data())
def test_order_partition_and_company_change_no_word(ids: list[str], data: st.DataObject) -> None:
    inputs = data.draw(st.lists(st.integers(0, 9), min_size=len(ids), max_size=len(ids)))
    whole = dict(zip(ids, words(ids, inputs).tolist(), strict=True))
    some = data.draw(st.permutations(range(len(ids))))[: data.draw(st.integers(1, len(ids)))]
    again = words([ids[i] for i in some], [inputs[i] for i in some]).tolist()
    assert again == [whole[ids[i]] for i in some]


@pytest.mark.parametrize(
    "ids",
    [
        pl.Series([7, 10001], dtype=pl.Int32),
        pl.Series([7.0, 10001.0]),
        pl.Series([7.0, 10001.0], dtype=pl.Float32),
        pl.Series(["7.0", "10001.0"]),
        pl.Series([" 7", "10001 "]),
        pl.Series(["007", "\u00a010001.00\t"]),
        pl.Series(["7.00", "10001.00"]).cast(pl.Decimal(12, 2)),
        pl.Series(["7", "10001 "], dtype=pl.Categorical),
    ],
)
def test_an_id_has_one_text_whichever_program_wrote_it(ids: pl.Series) -> None:
    assert id_texts(ids).to_list() == ["7", "10001"]


def test_what_is_no_whole_number_keeps_its_text_but_for_blanks_and_the_unicode_form() -> None:
    texts = ["A7", "a7", "7e0", "7.5", "7 8", "0x07", "--07", "e\u0301"]
    assert id_texts(pl.Series(texts)).to_list() == [*texts[:-1], "\u00e9"]
    assert id_texts(pl.Series(["-00", "0.0", "-07.0"])).to_list() == ["-0", "0", "-7"]


def test_another_value_protocol_column_key_or_draw_gives_a_fresh_word() -> None:
    ids = [f"{i}" for i in range(1000)]
    first = words(ids, [3] * 1000)
    other = KEY.derive_words(DIGEST, "person").rows(*id_blocks(pl.Series(ids)), np.full(1000, 3)).word()
    for fresh in (
        words(ids, [4] * 1000),
        words(ids, [3] * 1000, draw=1),
        words(ids, [3] * 1000, digest=b"e" * 32),
        words(ids, [3] * 1000, key=RowKey.generate()),
        other,
    ):
        assert not (first == fresh).any()
    assert len(np.unique(first)) == 1000


def test_a_key_file_is_its_owners_and_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.key"
    KEY.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert RowKey.load(path).mark(b"s", DIGEST, "id") == KEY.mark(b"s", DIGEST, "id")
    assert bytes(range(32)).hex() not in repr(KEY)
    with pytest.raises(TypeError, match="never pickled"):
        KEY.__reduce__()
    path.chmod(0o640)
    with pytest.raises(ParameterError, match="readable by its owner alone; its mode is 640"):
        RowKey.load(path)
    path.chmod(0o600)
    path.write_text("privacyfunnel row key 1\n00\n")
    with pytest.raises(ParameterError, match="must hold a key for rows"):
        RowKey.load(path)
    with pytest.raises(ParameterError, match="keygen"):
        RowKey.load(tmp_path / "none")


def test_a_key_is_fresh_for_every_release_and_only_then_fit_for_publication() -> None:
    one, two = KeyStream.generate(), KeyStream.generate()
    assert one.for_publication
    assert one.words(0, 4).tolist() != two.words(0, 4).tolist()
    seeded = KeyStream.from_seed(1)
    assert not seeded.for_publication
    assert seeded.words(0, 4).tolist() == KeyStream.from_seed(1).words(0, 4).tolist()
    assert seeded.words(0, 4).tolist() != KeyStream.from_seed(2).words(0, 4).tolist()


def test_the_key_is_not_shown_pickled_or_copied() -> None:
    stream = KeyStream.generate()
    for text in (repr(stream), str(stream)):
        assert text == "KeyStream(for_publication=True)"
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(stream)
    with pytest.raises(TypeError, match="never pickled"):
        copy.deepcopy(stream)
