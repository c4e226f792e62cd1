"""protocol.json: the envelope in which a sealed protocol is published.

It holds domains, the integers of the law, the promise, the certificate and versions. It never holds a count. A digest
over the content catches damage; whether the promise holds is checked against the data, by an audit.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from privacyfunnel.errors import ProtocolFileError

FORMAT = "privacyfunnel protocol"
VERSION = 1  # of the file; a reader refuses others


def to_text(content: Mapping[str, Any]) -> str:
    """The file that holds this content."""
    made_with = {"privacyfunnel": version("privacyfunnel"), "python": platform.python_version()}
    whole = {"format": FORMAT, "version": VERSION, "made_with": made_with, **content}
    return json.dumps({**whole, "digest": _digest(whole)}, ensure_ascii=False, indent=1) + "\n"


def from_text(text: str, name: str) -> dict[str, Any]:
    """The content of a file's text, refusing what is damaged, foreign or of another version."""
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ProtocolFileError(
            f"'{name}' must be JSON; it is not. Name the protocol.json that sanitise wrote."
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ProtocolFileError(f"'{name}' is JSON but no protocol file. Name the protocol.json that sanitise wrote.")
    if content.get("version") != VERSION:
        raise ProtocolFileError(
            f"'{name}' is a protocol file of version {content.get('version')}; this program reads version {VERSION}. "
            "Use the release of privacyfunnel that wrote it."
        )
    stated = content.pop("digest", None)
    if stated != _digest(content):
        raise ProtocolFileError(
            f"'{name}' was damaged or altered: its content does not match its digest. Make it again."
        )
    return content


def text_of(path: Path) -> str:
    """The text of a protocol file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ProtocolFileError(f"no protocol file '{path}'. Name the protocol.json that sanitise wrote.") from None
    except UnicodeDecodeError:
        raise ProtocolFileError(f"'{path}' must be JSON text in UTF-8; it is not. Name a protocol.json.") from None
    except OSError as error:
        raise ProtocolFileError(f"'{path}' could not be read: {(error.strerror or str(error)).lower()}.") from None


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
