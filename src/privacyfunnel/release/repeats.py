"""A second release of the same rows: noticed, refused unless it is wanted, and said in numbers what both give away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.errors import InputError, LedgerError
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.release.composition import Together, together
from privacyfunnel.release.fingerprints import fingerprints
from privacyfunnel.release.ledger import MOST_TEXT, Entry, digest_of
from privacyfunnel.release.order import Order

if TYPE_CHECKING:
    from privacyfunnel.tables.encoding import Encoding

NOTHING = "Nothing was written"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the ledger says of a release: the owner's own."""

    ledger: Path
    repeats: tuple[Entry, ...] = ()  # releases of the same rows about the same secret
    others: tuple[Entry, ...] = ()  # releases of the same rows about other secrets
    together: Together | None = None  # what the repeats and this one say together
    unknown: str = ""  # why that is not known, if it is not
    replaced: tuple[Entry, ...] = ()  # releases of these rows that lay in the same place

    @property
    def words(self) -> tuple[str, ...]:
        """What the owner must know, a sentence each."""
        said = []
        if self.repeats:
            worst = "" if self.together is None else f" Worst for {self.together.composed.words}."
            said.append(f"These rows were released before: {_listed(self.repeats)}. {self.leak}{worst}")
        if self.replaced:
            said.append(
                f"This replaces a release of the same rows: {_listed(self.replaced)}. If that was ever handed out, "
                "both count; the ledger remembers it, but counts it no more."
            )
        if self.others:
            said.append(
                f"Of these rows there are releases about other secrets: {_listed(self.others)}. What they say together "
                "about each secret is computed by audit --with."
            )
        return tuple(said)

    @property
    def leak(self) -> str:
        """What the repeats and this release say together, in numbers and without a value of the secret."""
        if self.together is None:
            return f"What they say together with this one is not known: {self.unknown}"
        found = self.together
        return f"Together with this one they leak {found.promise.name} ε = {_outward(found.composed.epsilon)}."


def entry_of(
    encoding: Encoding,
    order: Order,
    sealed: SealedProtocol,
    key: bytes | None,
    salt: bytes,
    source: Path,
    table: Path,
    *,
    trial: bool,
) -> Entry:
    """The entry of a release that is about to be made."""
    text, protocol_file = sealed.to_text(), table.parent / "protocol.json"
    return Entry(
        when=datetime.now().astimezone().isoformat(timespec="microseconds"),
        rows=encoding.rows,
        secret=order.secret,
        publish=order.publish,
        columns=fingerprints(encoding.contingency, salt),
        source=str(source.resolve()),
        table=str(table.resolve()),
        protocol_file=str(protocol_file.resolve()),
        digest=digest_of(text.encode("utf-8")),
        protocol=text if len(text) <= MOST_TEXT else None,
        promise=f"{sealed.promise.name} ε = {sealed.promise.epsilon:g}",
        order=key,
        for_publication=sealed.for_publication and not trial,
    )


def judged(
    ledger: Path, mine: Entry, others: Sequence[Entry], sealed: SealedProtocol, encoding: Encoding, order: Order
) -> Remembered:
    """What the releases that the ledger knows of these rows say together with this one."""
    repeats = tuple(entry for entry in others if entry.repeats(mine))
    rest = tuple(entry for entry in others if not entry.repeats(mine))
    found, unknown = None, ""
    if repeats:
        bins = [binned for binned in order.bins if binned.column in order.secret]
        try:
            protocols = [("this release", sealed), *(_protocol(entry) for entry in repeats)]
            merges = [rule for rule in order.merges if rule.column in order.secret]
            found = together(protocols, encoding.table, bins, merges)
        except InputError as error:
            unknown = str(error)
    return Remembered(ledger, repeats, rest, found, unknown)


def refusal(found: Remembered) -> LedgerError:
    """Why a repeat is not made unless it is asked for."""
    return LedgerError(
        "rows are released once, for several releases may give away what none of them does; these were released "
        f"before: {_listed(found.repeats)}. {found.leak} {NOTHING}; add --again if both may be seen."
    )


def overtaken(repeats: Sequence[Entry]) -> LedgerError:
    """Why a release is not made that another run has made meanwhile."""
    return LedgerError(
        f"rows are released once; while this release was prepared another run released them: {_listed(repeats)}. "
        f"{NOTHING}; run again to see what both would say together."
    )


def _protocol(entry: Entry) -> tuple[str, SealedProtocol]:
    name = f"the protocol of '{entry.table}'"
    if entry.protocol is not None:
        return name, SealedProtocol.from_text(entry.protocol, name)
    if not entry.stands:
        raise LedgerError(f"'{entry.protocol_file}' must be there to compute it; it was moved or altered.")
    return name, SealedProtocol.load(entry.protocol_file)


def _listed(entries: Sequence[Entry]) -> str:
    more = f", and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{entries[-1].words}{more}"


def _outward(epsilon: float) -> str:
    """Four digits, rounded up."""
    return "unbounded" if math.isinf(epsilon) else f"{math.ceil(epsilon * 1e4) / 1e4:g}"
