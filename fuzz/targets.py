"""The targets: each takes any bytes, and answers or refuses with one of our own errors."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from privacyfunnel.errors import InputError
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.spec.kinds import parse_names
from privacyfunnel.tables.coding.bin_syntax import parse_bin
from privacyfunnel.tables.coding.bins import Bins, bin_labels
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.coding.merges import MergeRare, parse_merge_secrets
from privacyfunnel.tables.coding.quantiles import QuantileSummary
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.table_files import open_table

ROWS = 3  # rows drawn from a protocol that was read


def protocol(data: bytes) -> None:
    """A protocol file, its digest made to fit: it is refused, or it draws outputs that it has and says itself again."""
    text = data.decode("utf-8", "replace")
    with suppress(InputError):
        sealed = SealedProtocol.from_text(_digested(text))
        inputs = np.arange(min(ROWS, sealed.mechanism.inputs))
        sealed.sample(inputs)
        again = SealedProtocol.from_text(sealed.to_text())
        assert again.to_text() == sealed.to_text()


def table(data: bytes) -> None:
    """A file of delimited text: it is refused, or every row has a code that its counts know."""
    with tempfile.TemporaryDirectory() as folder, suppress(InputError):
        path = Path(folder) / "table.csv"
        path.write_bytes(data)
        found = open_table(path)
        first, *others = found.columns
        coded = encode(found, secret=[first], publish=others[:2], merges=[MergeRare(2)] if len(others) > 2 else ())
        assert coded.contingency.weights.sum() == coded.rows
        for chunk in coded.chunks():
            assert (coded.contingency.weights[chunk.secret, chunk.published] > 0).all()


def options(data: bytes) -> None:
    """What is typed as bins, rules of merging and lists of columns: a refusal, or what holds."""
    text = data.decode("utf-8", "replace")
    for read in (lambda typed: parse_merge_secrets([typed]), lambda typed: parse_names([typed])):
        with suppress(InputError):
            read(text)
    with suppress(InputError):
        asked = parse_bin(text)
        assert asked.column
        if asked.edges:
            assert len(set(bin_labels(asked.edges))) == len(asked.edges) + 1


def numbers(data: bytes) -> None:
    """Any numbers, to be cut into bins and merged: edges are finite and increase, and bins have the rows asked for."""
    found = np.frombuffer(data[: len(data) // 8 * 8], dtype=np.float64)
    if not len(found):
        return
    summary = QuantileSummary()
    summary.add(pl.Series(found))
    edges = summary.edges(2 + len(data) % 7)
    assert all(map(math.isfinite, edges))
    assert all(low < high for low, high in pairwise(edges))
    if edges:
        with suppress(InputError):
            rows = FrameTable.from_native(pl.DataFrame({"s": ["u"] * len(found), "x": found}))
            asked = encode(rows, secret=["s"], publish=["x"], bins=[Bins("x", edges=edges)], merges=[MergeRare(2)])
            coding = asked.contingency.published.codings[0]
            counts = asked.contingency.weights.sum(axis=0)
            assert all(n >= 2 for code, n in enumerate(counts.tolist()) if code != coding.missing)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "protocol": protocol,
    "table": table,
    "options": options,
    "numbers": numbers,
}


def _digested(text: str) -> str:
    """The same file with a digest that fits, as someone would write it who alters it with care."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(content, dict):
        return text
    content.pop("digest", None)
    with suppress(ValueError, RecursionError):
        canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
        return json.dumps({**content, "digest": digest})
    return text
