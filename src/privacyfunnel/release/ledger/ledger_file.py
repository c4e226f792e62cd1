"""The owner's ledger: which rows were released when, with which protocol, and how their order is undone.

What releases of the same rows say together is not bounded by what each says (docs/theory.md, Theorems 24 to 27), so a
second one must be noticed. The ledger is a file beside the table that only its owner can read. It states no value and
no count: columns are remembered by fingerprints, which do not depend on the order of rows. A fingerprint is keyed with
the ledger's own salt; whoever has the file could still try out guesses of labels and counts, and undo the order of a
release. So it is the owner's, as the table is.

The ε of private designs add up, whether or not their files were ever published: who runs a design until its result
pleases has chosen by the noise. So an entry is written before noise is drawn, and stays.

An entry is written before a release appears, and says that it has begun; once the release stands it says finished. As
long as its run is at work, on whatever machine, a file beside the ledger is locked. One that has begun and whose run is
gone is settled by looking: it is finished if its protocol stands where it said, or if nobody can look there, else it
never was. Where an earlier release of the same protocol lies there, it is that one unless its table is newer.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.errors import LedgerError, OutputError
from privacyfunnel.hints import hint
from privacyfunnel.locks import is_run_alive, mark_run
from privacyfunnel.release.ledger.column_fingerprints import (
    SALT,
    Fingerprint,
    Fingerprints,
    canonical_label,
    have_same_rows,
    have_same_values,
)
from privacyfunnel.tables.readers.formats import TABLES
from privacyfunnel.tables.readers.table_files import TableSource, resolve_source

if TYPE_CHECKING:
    from privacyfunnel.spec import ReleaseSpec

NAME = ".privacyfunnel-ledger.json"
VERSION = 1
MOST_TEXT = 1 << 20  # characters of a protocol that the ledger keeps itself; of a longer one it knows the place
MOST_BYTES = 1 << 28  # of a ledger that is read
COARSE = 2.0  # seconds that the time of a file may be off
OPENED = os.O_RDWR | os.O_NONBLOCK  # NFS locks only what may be written to; a pipe must not keep us waiting
BEGUN, FINISHED, REPLACED = "begun", "finished", "replaced"
NOTHING = "Nothing was written"
NOISE = "noise"  # drawn for the counts of a private design, whatever became of it
CLUSTER = "://"  # in an address where this machine cannot look
SHARED = "PRIVACYFUNNEL_LEDGER"  # names one ledger for all tables


def ledger_path(table: str | Path | TableSource) -> Path:
    """Where the ledger of a table is unless the request names another: the one of the environment variable, or beside
    the table, or in the current folder."""
    shared = os.environ.get(SHARED)
    return Path(shared) if shared else resolve_source(table).folder / NAME


@dataclass(frozen=True, slots=True)
class Entry:
    """One release."""

    when: str
    rows: int
    secret: tuple[str, ...]
    publish: tuple[str, ...]
    columns: Fingerprints  # of each of them
    source: str  # the table
    table: str  # the sanitised one
    protocol_file: str
    digest: str  # of the protocol file
    protocol: str | None  # its text, unless it is long
    promise: str
    order: bytes | None = field(repr=False)  # the key that undoes the random order: b"" if nobody knows, None if kept
    for_publication: bool = True
    drawn: str = ""  # a mark of key, protocol and column of ids, where rows are drawn by ids with a key that is kept
    state: str = BEGUN
    noise: str = ""  # the ε of the noise in its counts, as a fraction, where its design is private
    salt: str = ""  # with which its columns were keyed, where it came from another ledger
    beside: Mapping[str, Fingerprints] = field(default_factory=dict)  # the same, under salts of merged ledgers
    after: tuple[str, ...] = ()  # the digests of releases that its promise covers too, the first one first
    name: str = field(default_factory=lambda: secrets.token_hex(8))

    def has_same_rows(self, other: Entry) -> bool:
        """Whether both are about the same rows, as far as can be told; in doubt they are.

        The same table by name, though rows may have come and gone since; or one that agrees with it in all columns
        that both have, but for a few rows at most.
        """
        return self.source == other.source or any(have_same_rows(*pair) for pair in self.comparable(other))

    def comparable(self, other: Entry) -> list[tuple[Fingerprints, Fingerprints]]:
        """The fingerprints of both that were keyed alike."""
        mine, its = ({entry.salt: entry.columns, **entry.beside} for entry in (self, other))
        return [(marks, its[salt]) for salt, marks in mine.items() if salt in its]

    def counts_with(self, other: Entry) -> bool:
        """Whether both are of the same rows, and both may be published."""
        stands = self.state in {BEGUN, FINISHED}
        return stands and self.for_publication and other.for_publication and self.has_same_rows(other)

    def repeats(self, other: Entry) -> bool:
        """Whether both are of the same rows and about the same secret, whatever its name, or have a column of it.

        Rows that are drawn alike are none that were drawn twice, and a promise about several releases covers them. Two
        releases after the same one are of the same people.
        """
        if self.digest in other.after or other.digest in self.after:
            return False
        if self.after[-1:] == other.after[-1:] != () and self.digest != other.digest:
            return self.state in {BEGUN, FINISHED} and self.for_publication and other.for_publication
        return self.counts_with(other) and self._shares_secret(other) and not self.draws_alike(other)

    def _shares_secret(self, other: Entry) -> bool:
        """Whether a column of both secrets is the same, by its name or by its values."""
        names = [{canonical_label(name) for name in entry.secret} for entry in (self, other)]
        pairs = [
            (mine[one], its[another])
            for mine, its in self.comparable(other)
            for one in self.secret
            for another in other.secret
            if one in mine and another in its
        ]
        return bool(names[0] & names[1]) or any(have_same_values(*pair) for pair in pairs)

    def draws_alike(self, other: Entry) -> bool:
        """Whether both drew by ids with one key and one protocol: whoever is in both, unchanged, is published once."""
        return bool(self.drawn) and self.drawn == other.drawn

    @property
    def description(self) -> str:
        """The release in a few words."""
        being = "is just being made" if self.state == BEGUN else "was made"
        return f"{self.promise} about {' & '.join(self.secret)}, which {being} on {self.when[:10]} as '{self.table}'"

    def shares_place(self, other: Entry) -> bool:
        """Whether both have one place: a folder holds one release, whatever the format of its table."""
        mine, its = Path(self.table), Path(other.table)
        return mine == its or (mine.parent == its.parent and {mine.name, its.name} <= set(TABLES))

    @property
    def stands(self) -> bool:
        """Whether it is where it said, with its protocol; in doubt, as of an address on a cluster, it is."""
        try:
            alike = not self.protocol_file or protocol_digest(Path(self.protocol_file).read_bytes()) == self.digest
            return CLUSTER in self.table or (alike and Path(self.table).exists())
        except OSError:
            return CLUSTER in self.table

    def has_appeared(self, others: Iterable[Entry]) -> bool:
        """Whether it stands, and not one of the others that has the same protocol and lies in the same place."""
        twin = any(e.table == self.table and e.digest == self.digest and e.state == FINISHED for e in others)
        with suppress(OSError):
            began = datetime.fromisoformat(self.when).timestamp() - COARSE
            return self.stands and not (twin and Path(self.table).stat().st_mtime < began)
        return CLUSTER in self.table

    def to_json(self) -> dict[str, Any]:
        content = {**asdict(self), "order": None if self.order is None else self.order.hex()}
        return {name: held for name, held in content.items() if held or name not in {"salt", "beside", "after"}}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Entry:
        order = content["order"]
        lists: dict[str, Any] = {name: tuple(map(str, content[name])) for name in ("secret", "publish")}
        lists["after"] = tuple(map(str, content.get("after", ())))
        lists["columns"] = _read_marks(content["columns"])
        lists["beside"] = {str(salt): _read_marks(marks) for salt, marks in content.get("beside", {}).items()}
        held = {name: value for name, value in content.items() if name != "run"}  # that earlier versions wrote
        entry = cls(**{**held, **lists, "order": None if order is None else bytes.fromhex(order)})
        Fraction(entry.noise or 0)
        if entry.state not in {BEGUN, FINISHED, REPLACED, NOISE} or (
            entry.order is not None and len(entry.order) not in {0, 32}
        ):
            raise ValueError("no state or order of an entry")
        return entry


def named_ledger(spec: ReleaseSpec) -> Ledger | None:
    """The ledger that the request or the environment names, if one does."""
    named = spec.ledger or os.environ.get(SHARED)
    return Ledger(Path(named)) if named else None


RefusalFactory = Callable[[Sequence[Entry]], Exception]  # the error for a repeat of these releases


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger in a file, which need not be there yet."""

    path: Path

    def entries(self) -> tuple[Entry, ...]:
        """All releases that it knows."""
        return self._content()[1]

    @contextmanager
    def open_session(self) -> Iterator[bytes]:
        """What its fingerprints are keyed with. Refuses, now rather than when hours were spent, what cannot be kept.

        The ledger is made if it is not there; where nothing was to be remembered in the end, it goes again.
        """
        there = os.path.lexists(self.path)
        with self._lock():
            self._write(*(content := self._content()))
        try:
            yield content[0]
        finally:
            if not there:
                with suppress(LedgerError, OSError), self._lock():
                    if not self.entries():
                        self.path.unlink()

    def find_release(self, protocol: Path, sanitised: Path) -> Entry | None:
        """The release that this protocol file belongs to: the one that lies there, or else the latest."""
        try:
            digest = protocol_digest(protocol.read_bytes())
        except OSError:
            return None
        found = [entry for entry in self.entries() if entry.digest == digest]
        here = [entry for entry in found if entry.table == str(sanitised.resolve())]
        return next(reversed(here or found), None)

    def other_releases(self, mine: Entry) -> list[Entry]:
        """The releases of the same rows elsewhere; one in the same place is replaced."""
        known = self._resolve_entries(self.entries())
        elsewhere = (entry for entry in known if not entry.shares_place(mine))
        return [entry for entry in elsewhere if entry.counts_with(mine) or entry.repeats(mine)]

    def record_noise(self, mine: Entry, *, refuse: RefusalFactory | None) -> tuple[Entry, ...]:
        """Remember that noise is about to be drawn for these rows; the times it was drawn before.

        If there are any they are refused, where that is asked for; then nothing is remembered.
        """
        with self._lock():
            salt, entries = self._content()
            before = tuple(entry for entry in entries if entry.state == NOISE and entry.has_same_rows(mine))
            if before and refuse is not None:
                raise refuse(before)
            self._write(salt, (*entries, replace(mine, state=NOISE)))
        return before

    def forget(self, names: Iterable[str]) -> tuple[Entry, ...]:
        """Take these entries out of the ledger: they are not noticed any more."""
        gone = set(names)
        with self._lock():
            salt, entries = self._content()
            self._write(salt, [entry for entry in entries if entry.name not in gone])
        return tuple(entry for entry in entries if entry.name in gone)

    def merge(self, others: Sequence[Ledger]) -> int:
        """Take in what other ledgers know; how many entries were new. Their rows are recognised from now on."""
        read = [other._content() for other in others]
        with self._lock():
            salts, entries = self._content()
            known = {entry.name: entry for entry in entries}
            for theirs, found in read:
                keys = [theirs[i : i + SALT] for i in range(0, len(theirs), SALT)]
                mine = {salts[i : i + SALT].hex() for i in range(0, len(salts), SALT)}
                salts += b"".join(key for key in keys if key.hex() not in mine)
                for entry in found:
                    salt = entry.salt or keys[0].hex()
                    state = FINISHED if entry.state == BEGUN else entry.state  # whether its run is alive shows there
                    moved = replace(entry, salt="" if salt == salts[:SALT].hex() else salt, state=state)
                    known.setdefault(entry.name, moved)
            self._write(salts, tuple(known.values()))
        return len(known) - len(entries)

    @contextmanager
    def record(self, mine: Entry, *, known: Iterable[Entry], refuse: RefusalFactory) -> Iterator[list[Entry]]:
        """The release is made inside. It is in the ledger before it appears, and afterwards exactly if it stands.

        `known` are the repeats that are agreed to; if another run added one meanwhile, it is refused. What it gives are
        the releases of the same rows in the same place that it replaces.
        """
        agreed, done = {entry.name for entry in known}, False
        with mark_run(self._run_mark(mine)):
            with self._lock():
                salt, entries = self._content()
                entries = self._resolve_entries(entries)
                new = [entry for entry in entries if entry.repeats(mine) and entry.name not in agreed]
                if any(not entry.shares_place(mine) or entry.state == BEGUN for entry in new):
                    raise refuse(new)
                replaced = [entry for entry in entries if entry.shares_place(mine) and entry.state == FINISHED]
                earlier = [entry for entry in replaced if entry.counts_with(mine)]
                self._write(salt, (*entries, mine))
            try:
                yield earlier
                done = True
            finally:
                self._close(mine, stands=done or mine.has_appeared(replaced))  # what failed later has appeared

    def _close(self, mine: Entry, *, stands: bool) -> None:
        # If the disk is full, an entry that has begun is settled by the next run.
        with suppress(LedgerError, OutputError), self._lock():
            salt, entries = self._content()
            others = [entry for entry in entries if entry.name != mine.name]
            self._write(salt, _finish(mine, others) if stands else others)

    def _run_mark(self, entry: Entry) -> Path:
        """The file that is locked while an entry's run is at work, beside what the ledger may be a link to."""
        place = Path(os.path.realpath(self.path))
        return place.with_name(f".{place.name}.{protocol_digest(entry.name.encode())[:16]}")

    def _resolve_entries(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Entries whose run is gone are finished, or never were."""
        settled: list[Entry] = []
        for entry in entries:
            if entry.state != BEGUN or is_run_alive(self._run_mark(entry)):
                settled.append(entry)
            elif entry.has_appeared(settled):
                settled = _finish(entry, settled)
        return tuple(settled)

    def _content(self) -> tuple[bytes, tuple[Entry, ...]]:
        try:
            if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
                raise self._damage_error()
            if self.path.stat().st_size > MOST_BYTES:
                raise self._damage_error()
            content = json.loads(self.path.read_text(encoding="utf-8"))
            stated = content.pop("digest")
            if content["privacyfunnel"] != "ledger" or content["version"] != VERSION or stated != _digest(content):
                raise self._damage_error()
            salts = bytes.fromhex(content["salt"])
            if not salts or len(salts) % SALT:
                raise self._damage_error()
            return salts, tuple(map(Entry.from_json, content["releases"]))
        except FileNotFoundError:
            return secrets.token_bytes(SALT), ()
        except OSError as error:
            raise self._access_error(error) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._damage_error() from None

    def _write(self, salt: bytes, entries: Sequence[Entry], *, force: bool = True) -> None:
        content: dict[str, Any] = {"privacyfunnel": "ledger", "version": VERSION, "salt": salt.hex()}
        content["releases"] = [entry.to_json() for entry in entries]
        try:
            # Where the path is a link, several tables may share what it leads to: the link stays.
            with atomic_file(os.path.realpath(self.path), force=force, owner_only=True) as beside:
                beside.write_text(json.dumps({**content, "digest": _digest(content)}, indent=1), encoding="utf-8")
        except OutputError as error:
            raise LedgerError(
                f"the ledger of releases must be writable; {error} Name another with {hint('ledger')}."
            ) from None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """No other run reads and writes it meanwhile."""
        while True:
            try:
                file = os.open(self.path, OPENED)
            except FileNotFoundError:
                try:
                    self._write(secrets.token_bytes(SALT), (), force=False)
                except LedgerError:
                    if not self.path.exists():  # else another run was quicker
                        raise
                continue
            except OSError as error:
                raise self._access_error(error) from None
            try:
                if stat.S_IFMT(os.fstat(file).st_mode) not in {stat.S_IFREG, stat.S_IFDIR}:  # reading a folder says so
                    raise self._damage_error()
                try:
                    fcntl.flock(file, fcntl.LOCK_EX)
                except OSError as error:
                    raise self._access_error(error, "on storage that locks files") from None
                if self._is_current_file(file):  # else it was replaced while we waited
                    yield
                    return
            finally:
                os.close(file)

    def _is_current_file(self, file: int) -> bool:
        with suppress(OSError):
            now = os.open(self.path, OPENED)  # which asks a server, where looking at the name may not
            try:
                return os.path.samestat(os.fstat(file), os.fstat(now))
            finally:
                os.close(now)
        return False

    def _damage_error(self) -> LedgerError:
        return LedgerError(
            f"the ledger '{self.path}' must be as this program wrote it; it was damaged or altered. Restore it; if "
            "it is moved away, the releases that it knew are not noticed any more."
        )

    def _access_error(self, error: OSError, wanted: str = "readable and writable") -> LedgerError:
        reason = (error.strerror or str(error)).lower()
        return LedgerError(
            f"the ledger '{self.path}' must be {wanted}; it is not: {reason}. Name another with {hint('ledger')}."
        )


def _finish(entry: Entry, others: Iterable[Entry]) -> list[Entry]:
    """The entries with this one finished, which takes the place of what lay there."""
    gone = (replace(e, state=REPLACED) if e.shares_place(entry) and e.state == FINISHED else e for e in others)
    return [*gone, replace(entry, state=FINISHED)]


def _read_marks(content: Mapping[str, Any]) -> dict[str, Fingerprint]:
    """Fingerprints of columns; those of an earlier version are one text, and like no other."""
    return {name: (mark,) if isinstance(mark, str) else tuple(map(str, mark)) for name, mark in content.items()}


def protocol_digest(protocol: bytes) -> str:
    """What tells protocol files apart."""
    return hashlib.sha256(protocol).hexdigest()


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
