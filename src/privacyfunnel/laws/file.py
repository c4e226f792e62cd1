"""protocol.json: the public description of a sealed protocol.

It holds domains, the integers of the law, the promise, the certificate and versions. It never holds a count. A digest
over the content catches damage; whether the promise holds is checked against the data, by an audit.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.errors import InputError, ParameterError, ProtocolFileError
from privacyfunnel.laws.chain import ChainLaw
from privacyfunnel.laws.channel import ChannelLaw
from privacyfunnel.laws.law import Law
from privacyfunnel.laws.product import ProductLaw
from privacyfunnel.laws.sealing import SMALLEST_EPSILON, Domain, SealedProtocol
from privacyfunnel.laws.sets import SetsLaw
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.promises import promise as promise_called
from privacyfunnel.tables.whole import whole_file

FORMAT = "privacyfunnel protocol"
VERSION = 1
NATS = 1e-9  # by how much rounding may bring stated amounts of information out of order
LAWS: Mapping[str, Any] = {law.kind: law for law in (ChannelLaw, SetsLaw, ProductLaw, ChainLaw)}


def save(sealed: SealedProtocol, path: Path, *, force: bool = False) -> None:
    """Write the protocol file, whole or not at all."""
    with whole_file(path, force=force) as beside:
        beside.write_text(to_text(sealed), encoding="utf-8")


def load(path: Path) -> SealedProtocol:
    """Read a protocol file, refusing what is damaged, foreign or of another version."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ProtocolFileError(f"no protocol file '{path}'. Name the protocol.json that sanitise wrote.") from None
    except UnicodeDecodeError:
        raise ProtocolFileError(f"'{path}' must be JSON text in UTF-8; it is not. Name a protocol.json.") from None
    except OSError as error:
        raise ProtocolFileError(f"'{path}' could not be read: {(error.strerror or str(error)).lower()}.") from None
    return from_text(text, str(path))


def to_text(sealed: SealedProtocol) -> str:
    """The file's content."""
    content = _content(sealed)
    return json.dumps({**content, "digest": _digest(content)}, ensure_ascii=False, indent=1) + "\n"


def from_text(text: str, name: str = "the protocol file") -> SealedProtocol:
    """The sealed protocol that a file's content describes."""
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
    try:
        return _sealed(content)
    except ProtocolFileError as error:
        raise ProtocolFileError(f"'{name}': {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, InputError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ProtocolFileError(f"'{name}' is incomplete or inconsistent ({what}). Make it again.") from None


def _content(sealed: SealedProtocol) -> dict[str, Any]:
    domain = sealed.domain
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_with": {"privacyfunnel": version("privacyfunnel"), "python": platform.python_version()},
        "promise": {"name": sealed.promise.name, "epsilon": sealed.promise.epsilon},
        "certificate": {
            "epsilon": sealed.epsilon,
            "information_nats": sealed.information,
            "information_error_nats": sealed.information_error,
            "entropy_nats": sealed.entropy,
            "bound_nats": sealed.bound,
        },
        "secret": {"columns": list(domain.secret_columns), "labels": list(domain.secrets)},
        "publish": [
            {"column": at.name, "labels": list(at.labels), "bins": _edges(domain.bins.get(at.name))}
            for at in domain.attributes
        ],
        "combinations": None if _is_plain(domain) else domain.combos.tolist(),
        "for_publication": sealed.for_publication,
        "sees_secret": sealed.sees_secret,
        "kind": sealed.law.kind,
        "law": sealed.law.to_json(),
        "induced": None if sealed.induced is None else sealed.induced.tolist(),
    }


def _sealed(content: Mapping[str, Any]) -> SealedProtocol:
    if content["kind"] not in LAWS:
        raise ProtocolFileError(f"a law is one of {', '.join(LAWS)}; this is '{content['kind']}'.")
    attributes = tuple(Attribute(str(p["column"]), tuple(map(str, p["labels"]))) for p in content["publish"])
    combos = content["combinations"]
    if combos is None:
        combos = np.arange(len(attributes[0].labels))[:, None]
    domain = Domain(
        attributes=attributes,
        combos=np.asarray(combos, dtype=np.int64).reshape(-1, len(attributes)),
        secret_columns=tuple(map(str, content["secret"]["columns"])),
        secrets=tuple(map(str, content["secret"]["labels"])),
        bins={p["column"]: tuple(map(float, p["bins"])) for p in content["publish"] if p["bins"] is not None},
    )
    _check_columns(domain)
    _check_combinations(domain)
    certificate = content["certificate"]
    promise = promise_called(content["promise"]["name"], content["promise"]["epsilon"])
    epsilon = float(certificate["epsilon"])
    if not 0 <= epsilon <= max(promise.epsilon, SMALLEST_EPSILON):
        raise ProtocolFileError("the certified ε must lie between 0 and what was promised; it does not.")
    kept, whole, bound = (certificate[f"{name}_nats"] for name in ("information", "entropy", "bound"))
    if not (0 <= kept <= whole + NATS and (bound is None or bound >= kept - NATS)):
        raise ProtocolFileError("the information kept must lie between 0 and its bounds; it does not.")
    error = float(certificate.get("information_error_nats", 0.0))
    if not 0 <= error < math.inf:
        raise ProtocolFileError("the standard error of the information kept must not be negative; it is.")
    induced = content["induced"]
    law: Law = LAWS[content["kind"]].from_json(content["law"], bool(content["sees_secret"]), domain.combos)
    inputs = len(domain.combos) * (len(domain.secrets) if law.sees_secret else 1)
    if isinstance(law, ChannelLaw) and any(len(labels) != len(attributes) for labels in law.outputs):
        raise ProtocolFileError(f"every output must have a label for each of {len(attributes)} columns; one has not.")
    if law.inputs != inputs:
        raise ProtocolFileError(f"the law must have a row for each of {inputs} inputs; it has {law.inputs}.")
    return SealedProtocol(
        law=law,
        promise=promise,
        epsilon=epsilon,
        domain=domain,
        information=float(kept),
        information_error=error,
        entropy=float(whole),
        bound=None if bound is None else float(bound),
        induced=None if induced is None else np.asarray(induced, dtype=np.float64),
        for_publication=content["for_publication"] is True,
    )


def _check_columns(domain: Domain) -> None:
    """A file that names no secret, or publishes it, would be certified for nothing."""
    secret, published = domain.secret_columns, [at.name for at in domain.attributes]
    if not secret or len({*secret, *published}) != len(secret) + len(published):
        raise ProtocolFileError("secret and published columns must be named, each once; they are not.")


def _check_combinations(domain: Domain) -> None:
    """Every input is a combination of labels that there are, and all differ."""
    combos, sizes = domain.combos, [len(at.labels) for at in domain.attributes]
    if not len(combos) or (combos < 0).any() or (combos >= np.array(sizes)).any():
        raise ProtocolFileError("every combination must name labels of its columns; some do not.")
    if len(np.unique(combos, axis=0)) < len(combos):
        raise ProtocolFileError("every combination must be listed once; some are listed twice.")


def _is_plain(domain: Domain) -> bool:
    """One attribute whose inputs are its labels in order."""
    return len(domain.attributes) == 1 and np.array_equal(
        domain.combos[:, 0], np.arange(len(domain.attributes[0].labels))
    )


def _edges(edges: tuple[float, ...] | None) -> list[float] | None:
    if edges is None:
        return None
    if not all(map(math.isfinite, edges)):
        raise ParameterError("Edges of bins must be finite numbers; some are not.")
    return list(edges)


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
