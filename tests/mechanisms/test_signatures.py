"""Signatures: what the owner signed is accepted, and whatever else is said to be theirs is not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel import ReleaseSpec, SealedProtocol, apply
from privacyfunnel.cli import main
from privacyfunnel.errors import ParameterError
from privacyfunnel.mechanisms import signatures
from tests.commands import found_by, refused, said, sanitise, told, turned_down

# Made with `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout`, for this test alone.
OPENSSL_KEY = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIK8Uy4j/4YsVp3Ma1ovVzcYHLCVDXBmOwq8dLEzxFezM
-----END PRIVATE KEY-----
"""
OPENSSL_PUBLIC = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAWHCBoCE/gFd+9KrpTa0+/l7j1CcZqzlcy4iinbLczPY=
-----END PUBLIC KEY-----
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of keys."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("mine", "another"):
        assert main(["keygen", str(folder / f"{name}.pem")]) == 0
    return folder


@pytest.fixture(scope="module")
def out(some: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed release."""
    into = tmp_path_factory.mktemp("signed") / "out"
    found = told(*sanitise(some, into, "--sign", keys / "mine.pem"))
    assert found["signature"] == str(into / "owner" / "protocol.json.sig")
    return into


def copied(out: Path, into: Path, **changed: Callable[[bytes], bytes]) -> Path:
    for name in ("owner/protocol.json", "public/sanitised.csv", "owner/protocol.json.sig"):
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(changed.get(path.name.replace(".", "_"), bytes)((out / name).read_bytes()))
    return into


def test_a_key_is_its_owners_alone_and_never_overwritten(keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (keys / "mine.pem").stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" not in (keys / "mine.public.pem").read_bytes()
    before = (keys / "mine.pem").read_bytes()
    assert "exists already" in turned_down(capsys, "keygen", keys / "mine.pem")
    assert (keys / "mine.pem").read_bytes() == before


def test_a_signed_release_says_whose_it_is(
    some: Path, out: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = signatures.fingerprint(signatures.load_public_key(keys / "mine.public.pem"))
    files = [out / "owner" / "protocol.json", some, "--sanitised", out / "public" / "sanitised.csv"]
    found = found_by(capsys, "audit", *files, "--signed-by", keys / "mine.public.pem")
    assert found["signed_by"] == {"fingerprint": mark, "asked_for": True, "with_table": True}
    _, text, _ = said(capsys, "audit", *files)
    assert f"{mark}, a key that was not asked for" in text
    estimate = ["estimate", out / "owner" / "protocol.json", out / "public" / "sanitised.csv"]
    found = found_by(capsys, *estimate, "--signed-by", keys / "mine.public.pem")
    assert found["signed_by"] == {"fingerprint": mark, "asked_for": True}
    assert f"Signed by {mark}, a key that was not asked for." in said(capsys, *estimate)[1]


def spaced(held: bytes) -> bytes:
    """The same content, written otherwise."""
    return json.dumps(json.loads(held)).encode()


ALTERED: dict[str, tuple[dict[str, Callable[[bytes], bytes]], str]] = {
    "another table": (
        {"sanitised_csv": lambda held: held + b"HS-grad\n"},
        "'{}/public/sanitised.csv' must be what was signed",
    ),
    "the table in other bytes": (
        {"sanitised_csv": lambda held: held.replace(b"\n", b"\r\n")},
        "must be what was signed",
    ),
    "a protocol in other bytes": ({"protocol_json": spaced}, "'{}/owner/protocol.json' must be what was signed"),
    "a signature cut short": ({"protocol_json_sig": lambda held: held[:-20]}, "must be a signature that sign wrote"),
    "another version": (
        {"protocol_json_sig": lambda held: held.replace(b'"version": 1', b'"version": true')},
        "must be a signature that sign wrote",
    ),
    "a field twice": (
        {"protocol_json_sig": lambda held: held.replace(b'"version": 1', b'"version": 1, "version": 1')},
        "must be a signature that sign wrote",
    ),
    "another digest": (
        {"protocol_json_sig": lambda held: held.replace(b'"table_sha256": "', b'"table_sha256": "0')},
        "must be a signature of its key",
    ),
    "a pipe of nothing": ({"protocol_json_sig": lambda _: b""}, "it is empty"),
}


@pytest.mark.parametrize("what", ALTERED)
@pytest.mark.parametrize("asked", [True, False])
def test_files_that_were_not_signed_so_are_refused(
    some: Path, out: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, asked: bool
) -> None:
    changed, part = ALTERED[what]
    into = copied(out, tmp_path / "out", **changed)
    key = ["--signed-by", keys / "mine.public.pem"] if asked else []
    protocol, table = into / "owner" / "protocol.json", into / "public" / "sanitised.csv"
    by_table = "sanitised_csv" in changed  # of which apply knows nothing
    drawing = [] if by_table else [["apply", protocol, some, "--into", tmp_path / "drawn.csv"]]
    for words in (["audit", protocol, some, "--sanitised", table], ["estimate", protocol, table], *drawing):
        sentence = turned_down(capsys, *words, *key)
        assert sentence.startswith("SignatureError: ")
        assert part.format(into) in sentence
    assert not (tmp_path / "drawn.csv").exists()


def test_the_signature_of_a_file_that_is_its_owners_is_its_owners_too(out: Path, keys: Path, tmp_path: Path) -> None:
    assert (out / "owner" / "protocol.json.sig").stat().st_mode & 0o777 == 0o600
    into = copied(out, tmp_path / "out")
    (into / "owner" / "protocol.json.sig").chmod(0o644)
    told(
        "sign",
        into / "owner" / "protocol.json",
        into / "public" / "sanitised.csv",
        "--key",
        keys / "mine.pem",
        "--force",
    )
    assert (into / "owner" / "protocol.json.sig").stat().st_mode & 0o777 == 0o600
    SealedProtocol.load(into / "owner" / "protocol.json").save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").stat().st_mode & 0o777 == 0o600


def test_apply_draws_with_what_was_signed_and_says_by_whom(
    some: Path, out: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["apply", out / "owner" / "protocol.json", some, "--into", tmp_path / "drawn.csv", "--again"]
    found = found_by(capsys, *words, "--signed-by", keys / "mine.public.pem")
    assert found["signed_by"]["asked_for"]
    assert not found_by(capsys, *words, "--force")["signed_by"]["asked_for"]
    sentence = turned_down(capsys, *words, "--force", "--signed-by", keys / "another.public.pem")
    assert "must be signed with the key" in sentence
    frame, mine = pl.read_csv(some, infer_schema=False), ReleaseSpec(signed_by=keys / "mine.public.pem")
    signer = apply(out / "owner" / "protocol.json", frame, mine).signer
    assert signer is not None
    assert signer.fingerprint == found["signed_by"]["fingerprint"]
    with pytest.raises(ParameterError, match="A signature is of a file"):
        apply(SealedProtocol.load(out / "owner" / "protocol.json"), frame, mine)


def test_another_key_and_no_signature_are_refused_where_a_key_was_asked_for(
    some: Path, out: Path, keys: Path, tmp_path: Path
) -> None:
    another = ["--signed-by", keys / "another.public.pem"]
    refused(
        ["audit", out / "owner" / "protocol.json", some, *another],
        "SignatureError",
        "must be signed with the key SHA256:",
    )
    bare = copied(out, tmp_path / "bare")
    (bare / "owner" / "protocol.json.sig").unlink()
    refused(
        ["audit", bare / "owner" / "protocol.json", some, *another], "SignatureError", "must be signed; there is no"
    )
    estimate = ["estimate", bare / "owner" / "protocol.json", bare / "public" / "sanitised.csv"]
    refused([*estimate, *another], "SignatureError", "must be signed; there is no")
    assert told(*estimate)["signed_by"] is None
    # Signed with another key by someone who swapped the table: the owner's public key tells.
    (bare / "public" / "sanitised.csv").write_bytes((bare / "public" / "sanitised.csv").read_bytes() + b"HS-grad\n")
    told("sign", bare / "owner" / "protocol.json", bare / "public" / "sanitised.csv", "--key", keys / "another.pem")
    refused([*estimate, "--signed-by", keys / "mine.public.pem"], "SignatureError", "it is signed with SHA256:")


def test_keys_that_others_may_read_or_that_are_none_are_refused_before_anything_is_drawn(
    some: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = tmp_path / "loose.pem"
    loose.write_bytes((keys / "mine.pem").read_bytes())
    loose.chmod(0o640)
    text = tmp_path / "text.pem"
    text.write_text("no key")
    text.chmod(0o600)
    os.mkfifo(tmp_path / "pipe.pem")
    for key, part in (
        (loose, "must be readable by its owner alone; its mode is 640"),
        (text, "must hold an Ed25519 private key"),
        (keys / "mine.public.pem", "must be readable by its owner alone"),
        (tmp_path / "none.pem", "no private key"),
        (tmp_path / "pipe.pem", "must be a file"),
    ):
        sentence = turned_down(capsys, *sanitise(some, tmp_path / "out", "--sign", key))
        assert sentence.startswith("SignatureError: ")
        assert part in sentence
        assert not (tmp_path / "out").exists()
    assert "an Ed25519 public key" in turned_down(capsys, "estimate", text, text, "--signed-by", text)


def test_keys_of_openssl_serve_too(some: Path, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, public = tmp_path / "key.pem", tmp_path / "public.pem"
    key.write_text(OPENSSL_KEY)
    key.chmod(0o600)
    public.write_text(OPENSSL_PUBLIC)
    into = copied(out, tmp_path / "out")
    assert "exists already" in turned_down(
        capsys, "sign", into / "owner" / "protocol.json", into / "public" / "sanitised.csv", "--key", key
    )
    mark = found_by(
        capsys, "sign", into / "owner" / "protocol.json", into / "public" / "sanitised.csv", "--key", key, "--force"
    )
    found = found_by(capsys, "audit", into / "owner" / "protocol.json", some, "--signed-by", public)
    assert found["signed_by"]["fingerprint"] == mark["signed_by"]
    assert found["signed_by"]["with_table"] is False


def test_a_release_that_replaces_a_signed_one_does_not_stand_beside_its_signature(
    some: Path, out: Path, tmp_path: Path
) -> None:
    into = tmp_path / "again"
    shutil.copytree(out, into)
    told(*sanitise(some, into, "--force", "--again"))
    assert not (into / "owner" / "protocol.json.sig").exists()
    assert (
        told("audit", into / "owner" / "protocol.json", some, "--sanitised", into / "public" / "sanitised.csv")[
            "signed_by"
        ]
        is None
    )
