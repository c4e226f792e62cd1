"""Signatures: the owner vouches for a protocol file and the sanitised table that belongs to it.

An Ed25519 signature stands beside the protocol file, in `protocol.json.sig`, over the SHA-256 digests of the bytes of
both files: whoever swaps either is found out, and nothing depends on how JSON might be written otherwise. What an
owner signs is that these files are theirs. Whether the promise holds is for an audit.

A digest of the protocol lets anybody test a guess of it, and so of the counts that it was made from. So the signature
of a protocol that only its owner can read can be read by its owner alone, too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.atomic_files import OWNERS_ONLY, atomic_file
from privacyfunnel.errors import SignatureError, TableError
from privacyfunnel.mechanisms.protocol_file import decode_text, read_bytes
from privacyfunnel.mechanisms.sealing import SealedProtocol

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT, VERSION = "privacyfunnel signature", 1
FIELDS = {"format", "version", "protocol_sha256", "table_sha256", "public_key", "signature"}
MOST_BYTES = 1 << 16  # of a key or a signature
CHUNK_BYTES = 1 << 20  # bytes of a table that are read together


@dataclass(frozen=True, slots=True)
class Signer:
    """Whose signature was verified."""

    fingerprint: str  # of the public key: SHA-256, as ssh writes it
    asked_for: (
        bool  # whether the key is the one that was asked for; else only the signature's own word says whose it is
    )
    with_table: bool  # whether the sanitised table was there to be compared with what was signed


def signature_path(protocol: str | Path) -> Path:
    """Where the signature of a protocol file stands."""
    path = Path(protocol)
    return path.with_name(f"{path.name}.sig")


def generate_key(private: str | Path, public: str | Path) -> str:
    """Write a new key pair, the private half for its owner alone; its fingerprint. Neither overwrites anything."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    with atomic_file(public) as shown, atomic_file(private, owner_only=True) as hidden:
        hidden.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        shown.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return fingerprint(key.public_key())


def load_private_key(path: str | Path) -> Ed25519PrivateKey:
    """The owner's key, which nobody else may be able to read."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    held, mode = _read_small_file(path, "private key")
    if mode & ~OWNERS_ONLY & 0o777:
        raise SignatureError(
            f"the private key '{path}' must be readable by its owner alone; its mode is {mode & 0o777:o}. "
            f"Run chmod 600 {path}, or make another with keygen if somebody may have read it."
        )
    try:
        key = load_pem_private_key(held, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(
            f"'{path}' must hold an Ed25519 private key in PEM, without a password; it does not. Make one with keygen."
        )
    return key


def load_public_key(path: str | Path) -> Ed25519PublicKey:
    """Somebody's public key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    held, _ = _read_small_file(path, "public key")
    try:
        key = load_pem_public_key(held)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"'{path}' must hold an Ed25519 public key in PEM; it does not. Ask the owner for theirs.")
    return key


def fingerprint(key: Ed25519PublicKey) -> str:
    """The SHA-256 of the key, as ssh writes it: what people compare."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key.public_bytes_raw()).digest()).decode().rstrip("=")


def sign(protocol: str | Path, table: str | Path, key: Ed25519PrivateKey, *, force: bool = False) -> Path:
    """Sign a protocol file and the sanitised table that belongs to it; where the signature was written."""
    held = read_bytes(Path(protocol))
    sealed = SealedProtocol.from_text(decode_text(held, str(protocol)), str(protocol))
    digests = hashlib.sha256(held).hexdigest(), _table_digest(table)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "protocol_sha256": digests[0],
        "table_sha256": digests[1],
        "public_key": base64.b64encode(key.public_key().public_bytes_raw()).decode(),
        "signature": base64.b64encode(key.sign(_signed_message(*digests))).decode(),
    }
    path = signature_path(protocol)
    with atomic_file(path, force=force, owner_only=not sealed.has_noisy_design) as beside:
        beside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def load_signed_protocol(
    protocol: str | Path, table: str | Path | None = None, signed_by: str | Path | None = None
) -> tuple[SealedProtocol, Signer | None]:
    """The protocol of a file, and whose signature beside it was verified; None where there is none.

    Raises
    ------
    SignatureError
        If the signature is wrong; or where `signed_by` names a public key, if there is none, or another's.
    """
    text, signer = read_signed_text(protocol, table, signed_by)
    return SealedProtocol.from_text(text, str(protocol)), signer


def read_signed_text(
    protocol: str | Path, table: str | Path | None = None, signed_by: str | Path | None = None
) -> tuple[str, Signer | None]:
    """The text of a protocol file, verified as by :func:`load_signed_protocol`."""
    wanted = None if signed_by is None else load_public_key(signed_by)
    held = read_bytes(Path(protocol))
    return decode_text(held, str(protocol)), _verify(Path(protocol), hashlib.sha256(held).hexdigest(), table, wanted)


def _verify(protocol: Path, digest: str, table: str | Path | None, wanted: Ed25519PublicKey | None) -> Signer | None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    path = signature_path(protocol)
    if not os.path.lexists(path):
        if wanted is not None:
            raise SignatureError(
                f"'{protocol}' must be signed; there is no '{path.name}' beside it. Ask its owner for it."
            )
        return None
    content = _read_signature(path)
    signed = content["protocol_sha256"], content["table_sha256"]
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(content["public_key"], validate=True))
        key.verify(base64.b64decode(content["signature"], validate=True), _signed_message(*signed))
    except (ValueError, InvalidSignature):
        raise SignatureError(f"'{path}' must be a signature of its key; it is not. Do not trust these files.") from None
    if wanted is not None and key.public_bytes_raw() != wanted.public_bytes_raw():
        raise SignatureError(
            f"'{protocol}' must be signed with the key {fingerprint(wanted)}; it is signed with {fingerprint(key)}. "
            "Do not trust these files."
        )
    if signed[0] != digest:
        raise SignatureError(f"'{protocol}' must be what was signed in '{path.name}'; it is not. Do not trust it.")
    if table is not None and signed[1] != _table_digest(table):
        raise SignatureError(f"'{table}' must be what was signed in '{path.name}'; it is not. Do not trust it.")
    return Signer(fingerprint(key), wanted is not None, table is not None)


def _read_signature(path: Path) -> dict[str, str]:
    """What a signature file states; it states just its fields, each once."""

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("twice")
        return found

    held, _ = _read_small_file(path, "signature")
    try:
        content = json.loads(held.decode("utf-8"), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        content = None
    texts = FIELDS - {"version"}
    if (
        not isinstance(content, dict)
        or set(content) != FIELDS
        or not all(type(content[field]) is str for field in texts)
        or content["format"] != FORMAT
        or type(content["version"]) is not int
        or content["version"] != VERSION
    ):
        raise SignatureError(f"'{path}' must be a signature that sign wrote; it is not. Ask the owner for another.")
    return content


def _signed_message(protocol_sha256: str, table_sha256: str) -> bytes:
    """What is signed: it says what it is, so that no other signature of the same key can stand in for it."""
    return f"{FORMAT} {VERSION}\nprotocol {protocol_sha256}\ntable {table_sha256}\n".encode("ascii", "backslashreplace")


def _table_digest(path: str | Path) -> str:
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while piece := file.read(CHUNK_BYTES):
                digest.update(piece)
    except OSError as error:
        raise TableError(f"'{path}' could not be read: {(error.strerror or str(error)).lower()}.") from None
    return digest.hexdigest()


def _read_small_file(path: str | Path, what: str) -> tuple[bytes, int]:
    """The bytes of a small file, and its mode."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe would keep us waiting
            raise SignatureError(f"the {what} '{path}' must be a file; it is none. Name another.")
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            held = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise SignatureError(f"no {what} '{path}'. Name the file that holds it.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SignatureError(f"the {what} '{path}' could not be read: {reason}.") from None
    if not 0 < len(held) <= MOST_BYTES:
        raise SignatureError(f"'{path}' must be a {what}; it is empty or too long. Name another.")
    return held, mode
