"""protocol.json: the envelope in which a sealed protocol is published.

It holds domains, the integers of the law, the promise, the certificate and versions; and no count, but those of the
labels of published columns where the owner publishes their shares. A digest over the content catches damage; whether
the promise holds is checked against the data, by an audit. A reader takes the published form (`protocol_schema.py`) and
nothing else: what two programs could read differently is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.atomic_files import OWNER, PUBLIC
from privacyfunnel.errors import ProtocolFileError, SizeError
from privacyfunnel.mechanisms.after_model import read_model
from privacyfunnel.mechanisms.input_domain import ColumnShares, Domain, shares_from_json
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.protocol_schema import check_form
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.table_model import PublishedModel, SecretModels
from privacyfunnel.model.published.wide_model import read_wide_model

PROTOCOL = "protocol.json"  # what it is called in a release
FORMAT = "privacyfunnel protocol"
VERSION = 1  # of the file; a reader refuses others
MOST_BYTES = 1 << 26  # of a file: 64 MB of JSON take about a gigabyte once they are read
SEPARATORS = (",", ":")  # where entries are many
REMOVED = ("chain", "forced-response", "product", "unary-encoding")  # kinds of earlier versions
LEVELS = 3  # of objects and lists whose items have a line each: a row of a mechanism has one
MOST_DIGITS = 18  # of a whole number, all of which are counts of something; larger ones are written as text


def to_text(content: Mapping[str, Any]) -> str:
    """The file that holds this content."""
    made_with = {"privacyfunnel": version("privacyfunnel"), "python": platform.python_version()}
    whole = {"format": FORMAT, "version": VERSION, "made_with": made_with, **content}
    text = _format_json({**whole, "digest": _hex_digest(whole)}, LEVELS) + "\n"
    if len(text) > MOST_BYTES // 4 and len(text.encode()) > MOST_BYTES:  # what nobody could read again is not written
        raise SizeError(
            f"A protocol file has at most {MOST_BYTES:,} bytes; this one would have more. Publish fewer columns or "
            "merge rare values."
        )
    return text


def _format_json(value: Any, levels: int, line: str = "\n") -> str:
    """JSON with a line for each item, so many levels deep, where any item holds others; all else stands in a line.

    >>> print(_format_json({"bits": 64, "rows": [[[0, "1"]], [[0, "1"], [1, "2"]]]}, 2))
    {
     "bits": 64,
     "rows": [
      [[0,"1"]],
      [[0,"1"],[1,"2"]]
     ]
    }
    """
    held = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if not levels or not any(isinstance(item, (dict, list)) for item in held):
        return json.dumps(value, ensure_ascii=False, separators=SEPARATORS if not levels else None)
    items = [_format_json(item, levels - 1, line + " ") for item in held]
    if isinstance(value, dict):
        named = (f"{json.dumps(key, ensure_ascii=False)}: {item}" for key, item in zip(value, items, strict=True))
        return f"{{{line} {f',{line} '.join(named)}{line}}}"
    return f"[{line} {f',{line} '.join(items)}{line}]"


def from_text(text: str, name: str) -> dict[str, Any]:
    """The content of a file's text, refusing what is damaged, foreign, of another version or of another form."""
    try:
        content = json.loads(
            text,
            parse_constant=_reject_constant,
            parse_float=_parse_float,
            parse_int=_parse_integer,
            object_pairs_hook=_unique_keys,
        )
    except _DuplicateKeyError as twice:
        raise ProtocolFileError(
            f"'{name}' must state everything once; it states '{twice}' twice. Make it again."
        ) from None
    except (ValueError, RecursionError):
        raise ProtocolFileError(
            f"'{name}' must be JSON with finite numbers; it is not. Name the protocol.json that sanitise wrote."
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ProtocolFileError(f"'{name}' is JSON but no protocol file. Name the protocol.json that sanitise wrote.")
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise ProtocolFileError(
            f"'{name}' is a protocol file of version {str(content.get('version'))[:20]}; this program reads version "
            f"{VERSION}. Use the release of privacyfunnel that wrote it."
        )
    stated = content.pop("digest", None)
    try:
        digest = _hex_digest(content)
    except (UnicodeEncodeError, RecursionError):
        raise ProtocolFileError(f"'{name}' must be text in Unicode; some of it is none. Make it again.") from None
    if stated != digest:
        raise ProtocolFileError(
            f"'{name}' was damaged or altered: its content does not match its digest. Make it again."
        )
    kind = content.get("kind")
    if isinstance(kind, str) and kind in REMOVED:
        raise ProtocolFileError(
            f"'{name}' draws by the method {kind}, which this version no longer draws or reads. Read it with "
            f"{_writer(content)}, or make the release again."
        )
    try:
        check_form({**content, "digest": stated})
    except ProtocolFileError as error:
        raise ProtocolFileError(f"'{name}': {error}") from None
    except RecursionError:
        raise ProtocolFileError(f"'{name}': a promise must not be made of so many others. Make it again.") from None
    return content


def _writer(content: Mapping[str, Any]) -> str:
    """The version that wrote a file, in words."""
    made_with = content.get("made_with")
    written_by = made_with.get("privacyfunnel") if isinstance(made_with, dict) else None
    return f"privacyfunnel {written_by[:20]}" if isinstance(written_by, str) else "the version that wrote it"


def find_protocol(path: str | Path) -> Path:
    """The protocol file that is meant: the file itself, or that of a release by one of its folders.

    A file `out/protocol.json` that is not there stands for that of the release `out`.
    """
    path = Path(path)
    if path.is_file() or not (path.is_dir() or path.name == PROTOCOL):
        return path
    folder = path if path.is_dir() else path.parent
    beside = [folder.parent / OWNER] if folder.name == PUBLIC else []
    for each in (folder, folder / PUBLIC, folder / OWNER, *beside):
        if (each / PROTOCOL).is_file():
            return each / PROTOCOL
    if path.is_dir():
        raise ProtocolFileError(
            f"'{path}' holds no {PROTOCOL}: if it was made from exact counts, it stays with the owner of the table. "
            "Name the file, or ask them."
        )
    return path


def read_text(path: Path) -> str:
    """The text of a protocol file."""
    return decode_text(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """The bytes of a protocol file, as far as one may be long."""
    try:
        with path.open("rb") as file:
            held = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise ProtocolFileError(f"no protocol file '{path}'. Name the protocol.json that sanitise wrote.") from None
    except OSError as error:
        raise ProtocolFileError(f"'{path}' could not be read: {(error.strerror or str(error)).lower()}.") from None
    if len(held) > MOST_BYTES:
        raise ProtocolFileError(
            f"'{path}' must have at most {MOST_BYTES:,} bytes to be read; it has more. Name a protocol.json."
        )
    return held


def decode_text(held: bytes, name: str) -> str:
    """The text that bytes are."""
    try:
        return held.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProtocolFileError(f"'{name}' must be JSON text in UTF-8; it is not. Name a protocol.json.") from None


def _hex_digest(content: Mapping[str, Any]) -> str:
    return content_digest(content).hex()


def content_digest(content: Mapping[str, Any]) -> bytes:
    """The SHA-256 of content as JSON with sorted keys and no spaces."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).digest()


class _DuplicateKeyError(Exception):
    """A key that stands twice in one object: programs differ in which of the two they believe."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key[:50])
            seen.add(key)
    return found


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _parse_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):  # 1e999
        raise ValueError("a number is beyond all floats")
    return number


def _parse_integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError("a whole number is too long")
    return int(digits)


DISTRIBUTION = 1e-9  # by how much rounding may keep a stated distribution from summing to 1


def parse_channel(rows: list[list[float]], domain: Domain, mechanism: Mechanism) -> FloatArray:
    """The channel from values to outputs that a file states: a distribution over the law's outputs for every value."""
    values, listed = len(domain.combos), mechanism.table_protocol
    outputs = 0 if listed is None else len(listed.outputs)
    if len(rows) != values or any(len(row) != outputs for row in rows):
        raise ProtocolFileError(
            f"the channel from values to outputs must have a chance for each of {values} values and {outputs} outputs; "
            "it has not. Make the file again."
        )
    channel = np.array(rows, dtype=np.float64)
    if not bool((np.abs(channel.sum(axis=1) - 1) <= DISTRIBUTION).all()):
        raise ProtocolFileError(f"the channel from {values} values to outputs must be distributions; it is not.")
    return channel


def parse_shares(content: Mapping[str, Any], domain: Domain, promise: Promise) -> ColumnShares | None:
    """The shares that a file states; a private design has none, for they would undo its noise."""
    shares, people = shares_from_json(content, domain), promise.population
    if shares is not None and people is not None and people.rule.design_epsilon is not None:
        raise ProtocolFileError("a private design must not state exact shares; it does.")
    return shares


def parse_model(content: Mapping[str, Any], domain: Domain, promise: Promise) -> PublishedModel | None:
    """The model that a file states: of its values, with the ε that its records leave of the whole."""
    if "model" not in content:
        return None
    stated = content["model"]
    if (content["kind"] == RealOrSynthetic.kind) != ("tables" in stated):
        raise ProtocolFileError(f"a tree is the model of a {RealOrSynthetic.kind} mechanism, and of no other.")
    model: PublishedModel
    if "tables" in stated:
        model = read_wide_model(stated, domain.secret_columns, domain.attributes)
    else:
        model = read_model(stated, domain.secret_columns)
        values = model.weights_by_input.shape[1]
        if values != len(domain.combos):
            raise ProtocolFileError(
                f"a model must have a column for each of {len(domain.combos)} values; it has {values}."
            )
    if isinstance(model.base, SecretModels) != promise.by_column:
        raise ProtocolFileError("a table for each secret is the model of a promise about each, and of no other.")
    if Fraction(promise.epsilon) + model.epsilon / Fraction(promise.smallest_scale(model.secrets)) > model.total:
        raise ProtocolFileError("the ε of records and model must add up to the whole ε at most; it is more.")
    if content["sees_secret"] or promise.population is not None or "shares" in content:
        raise ProtocolFileError("a protocol with a published model must not see the secret nor state exact shares.")
    return model
