"""Attacks: what somebody learns about secrets from everything that was published, set against what was promised.

Every attack is a function of a setting (where to work, how much to draw, how often it may be wrong) and ends in a
verdict. A release that was refused leaks nothing; a case that must be released says so.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

import privacyfunnel as pf
from tests.adversary.estimator import MOST_VIEWS, Leak, measure
from tests.adversary.interface import (
    FRAMES,
    apply_frame,
    design_and_apply,
    frame_bytes,
    frame_text,
    raw_bytes,
    sanitise_file,
    sanitise_frame,
)
from tests.adversary.tables import RARE, Generator, Table, draw_table

PARTS = 8  # into which positions, numbers and long texts are cut


@dataclass(frozen=True, slots=True)
class Setting:
    """Where an attack works, and how much it draws."""

    folder: Path
    rng: Generator
    rows: int  # of a table
    releases: int
    error: float  # the probability of a false alarm of this attack, at most

    def shares(self, parts: int) -> float:
        """The error of each of several measurements."""
        return self.error / parts


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attack found."""

    releases: int
    views: int
    records: int
    lower: float  # lower confidence bound on the leakage, nats
    allowed: float
    worst: str = ""
    refusal: str = ""  # the sentence, where nothing was released

    @property
    def broken(self) -> bool:
        """Whether more leaked than was promised."""
        return self.lower > self.allowed


Attack = Callable[[Setting], Verdict]


@dataclass(slots=True)
class Records:
    """Published records of several releases, each with its own secret."""

    secrets: list[str] = field(default_factory=list)
    known: list[tuple[str, ...]] = field(default_factory=list)  # original values of the published columns
    columns: dict[str, list[str]] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)  # part of the published table in which a record stands

    def add(self, secrets: Sequence[str], known: Sequence[tuple[str, ...]], shown: pl.DataFrame) -> None:
        """Add a release, whose records are in published order."""
        if len(secrets) != len(shown):
            raise AssertionError(f"{len(secrets)} records have a secret, and {len(shown)} were published")
        if self.secrets and set(shown.columns) != set(self.columns):
            raise AssertionError("two releases of one table publish other columns")
        self.secrets += secrets
        self.known += known
        self.places += _parts(range(len(shown)))
        for name in shown.columns:
            self.columns.setdefault(name, []).extend(shown[name])

    def views(self, *, placed: bool) -> dict[str, list[Hashable]]:
        """What somebody may look at: whole records where they repeat, each column, and the place where it is random."""
        found: dict[str, list[Hashable]] = {}
        coarse = {name: self._coarse(name) for name in self.columns}
        whole: list[Hashable] = list(zip(*coarse.values(), strict=True))
        if len(set(whole)) <= MOST_VIEWS:
            found["record"] = whole
        else:
            found |= coarse
        if placed:
            found["place"] = list(self.places)
        return found

    def _coarse(self, name: str) -> list[Hashable]:
        entries = self.columns[name]
        values = sorted(set(entries), key=lambda text: (len(text), text))
        if len(values) <= 40:
            return list(entries)
        part = dict(zip(values, _parts(values), strict=True))
        return [(part[each], len(each)) for each in entries]

    def leak(self, promise: str, error: float, *, placed: bool) -> Leak:
        """The largest bound over all views."""
        views = self.views(placed=placed)
        known = list(zip(*self.known, strict=True)) if promise == "srlip" else ()
        leaks = [
            replace(leak, worst=f"{name}: {leak.worst}")
            for name, view in views.items()
            for leak in (measure(self.secrets, view, promise=promise, error=error / len(views), known=known),)
        ]
        worst = max(leaks, key=lambda leak: leak.lower)
        return replace(worst, views=sum(leak.views for leak in leaks))


def _parts(of: Sequence[Any]) -> list[int]:
    """For every place of a sequence the part of it that the place is in."""
    return [i * PARTS // len(of) for i in range(len(of))]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a release is asked for: the promise, the columns and the other options of the command."""

    promise: str = "lip"
    epsilon: float = 0.4
    publish: tuple[str, ...] = ("x",)
    words: tuple[object, ...] = ()
    known: Callable[[str, str], str] = lambda column, text: text  # what an attacker knows of an original value
    secret: Callable[[str], str] = lambda text: text  # what of the secret is promised
    number: int | None = None  # of secrets, if it matters
    prior: str | None = "table"  # None where an option says it
    promised: str = ""  # the promise of the command, where it is measured by another name

    @property
    def command(self) -> tuple[object, ...]:
        """The words of the command."""
        size = () if self.promised.startswith("alip") else ("-e", self.epsilon)
        fixed = ("-s", "s", "-p", ",".join(self.publish), *size, "--promise", self.promised or self.promise)
        return (*fixed, *(("--prior", self.prior) if self.prior else ()), *self.words)

    @property
    def keywords(self) -> dict[str, Any]:
        """The same for a function, without the other options."""
        asked = {"secret": "s", "publish": list(self.publish), "promise": self.promise, "epsilon": self.epsilon}
        return asked | {"prior": self.prior}

    def secrets(self, table: Table, order: Sequence[int] | None = None) -> list[str]:
        """The secrets of the rows, in published order."""
        found = [self.secret(text) for text in table.column("s")]
        return found if order is None else [found[i] for i in order]

    def values(self, table: Table, order: Sequence[int] | None = None) -> list[tuple[str, ...]]:
        """The original values of the rows, in published order."""
        columns = [[self.known(name, text) for text in table.column(name)] for name in self.publish]
        found = list(zip(*columns, strict=True))
        return found if order is None else [found[i] for i in order]


def known_when_merged(column: str, text: str) -> str:
    """Rare values are known as merged only (docs/limits.md)."""
    return "other" if column == "x" and text in RARE else text


def _verdict(setting: Setting, records: Records, asked: Asked, *, placed: bool) -> Verdict:
    leak = records.leak(asked.promise, setting.error, placed=placed)
    return Verdict(setting.releases, leak.views, leak.records, leak.lower, asked.epsilon, leak.worst)


def refused(sentence: str, allowed: float = 0.0) -> Verdict:
    """Nothing was released."""
    return Verdict(0, 0, 0, 0.0, allowed, refusal=sentence.strip())


# ── records ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_command(asked: Asked, *, file: str = "table.csv") -> Attack:
    """`sanitise` on files."""

    def attack(setting: Setting) -> Verdict:
        table, records = draw_table(setting.rng, setting.rows, secrets=asked.number), Records()
        for _ in range(setting.releases):
            done, shown = sanitise_file(setting.folder, table, [*asked.command, "--keep-order"], file=file)
            if done.refused:
                return refused(done.err, asked.epsilon)
            records.add(asked.secrets(table), asked.values(table), shown)
        return _verdict(setting, records, asked, placed=False)

    return attack


def by_apply_command(asked: Asked, *, apply: tuple[object, ...] = (), drift: bool = False) -> Attack:
    """`design` and then `apply`, on the same rows, or on rows in which secrets go otherwise with what is published."""

    def attack(setting: Setting) -> Verdict:
        table, records = draw_table(setting.rng, setting.rows), Records()
        others = drifted(table) if drift else table
        for _ in range(setting.releases):
            done, shown = design_and_apply(
                setting.folder, table, asked.command, apply=[*apply, "--keep-order"], others=others.rows
            )
            if done.refused:
                return refused(done.err, asked.epsilon)
            records.add(asked.secrets(others), asked.values(others), shown)
        return _verdict(setting, records, asked, placed=False)

    return attack


def drifted(table: Table) -> Table:
    """Rows in which every value is had by people of one secret alone."""
    values = {text: i for i, text in enumerate(sorted(set(table.column("x"))))}
    secrets = sorted(set(table.column("s")))
    of = {text: secrets[i % len(secrets)] for text, i in values.items()}
    return Table(table.rows.with_columns(pl.col("x").replace_strict(of).alias("s")))


def by_frames(asked: Asked, frame: str, **more: Any) -> Attack:
    """`sanitise` on a frame, whose rows come back in random order."""

    def attack(setting: Setting) -> Verdict:
        table, records = draw_table(setting.rng, setting.rows).sort_by_secret(), Records()
        for _ in range(setting.releases):
            try:
                shown, order = sanitise_frame(FRAMES[frame](table.rows), **asked.keywords, **more)
            except pf.PrivacyFunnelError as error:
                return refused(str(error), asked.epsilon)
            records.add(asked.secrets(table, order), asked.values(table, order), shown)
        return _verdict(setting, records, asked, placed=True)

    return attack


def by_apply(asked: Asked, frame: str, **more: Any) -> Attack:
    """`design` on a frame, `apply` on the same rows without their secret."""

    def attack(setting: Setting) -> Verdict:
        table, records = draw_table(setting.rng, setting.rows).sort_by_secret(), Records()
        protocol = pf.design(FRAMES[frame](table.rows), pf.ReleaseSpec(**asked.keywords))
        for _ in range(setting.releases):
            try:
                shown, order = apply_frame(protocol, FRAMES[frame](table.rows.drop("s")), **more)
            except pf.PrivacyFunnelError as error:
                return refused(str(error), asked.epsilon)
            records.add(asked.secrets(table, order), asked.values(table, order), shown)
        return _verdict(setting, records, asked, placed=not more.get("keep_order"))

    return attack


def by_sanitiser(asked: Asked, frame: str, *, secret_frame: str = "") -> Attack:
    """`Sanitiser.fit(X, s)`, `transform`; the secret may be a column of another index."""

    def attack(setting: Setting) -> Verdict:
        table, records = draw_table(setting.rng, setting.rows).sort_by_secret(), Records()
        X = FRAMES[frame](table.rows.select(asked.publish))
        s = FRAMES[secret_frame or frame](table.rows.select("s"))["s"]
        promise = {"lip": pf.LIP, "ldp": pf.LDP, "srlip": pf.SRLIP}[asked.promise](asked.epsilon)
        for _ in range(setting.releases):
            shown = frame_text(pf.Sanitiser(promise).fit(X, s=s).transform(X))
            records.add(asked.secrets(table), asked.values(table), shown)
        return _verdict(setting, records, asked, placed=False)

    return attack


# ── order and bytes ───────────────────────────────────────────────────────────────────────────────────────────────────


def order_leak(sequence: Sequence[str], error: float) -> Leak:
    """What the place in a sequence says about what stands there: nothing, if every order is as likely."""
    values = sorted(set(sequence))
    if len(values) > 40:  # ids, texts of their own: halves of them
        part = dict(zip(values, _parts(values), strict=True))
        return measure([part[each] for each in sequence], _parts(sequence), promise="lip", error=error)
    return measure(list(sequence), _parts(sequence), promise="lip", error=error)


def by_order(asked: Asked, *, file: str = "table.csv", apply: bool = False) -> Attack:
    """Rows sorted by the secret go in: the order of what comes out, in entries and in raw bytes, must say nothing."""

    def attack(setting: Setting) -> Verdict:
        table = draw_table(setting.rng, setting.rows).sort_by_secret()
        worst = Verdict(setting.releases, 0, 0, 0.0, 0.0)
        for _ in range(setting.releases):
            if apply:
                done, shown = design_and_apply(setting.folder, table, asked.command)
                path = setting.folder / "drawn.csv"
            else:
                done, shown = sanitise_file(setting.folder, table, asked.command, file=file)
                path = Path() if done.refused else setting.folder / done.found["table"]
            if done.refused:
                return refused(done.err)
            worst = _worse(worst, _sequences(shown, raw_bytes(path)), setting)
        return worst

    return attack


def by_frame_order(asked: Asked, frame: str, **more: Any) -> Attack:
    """The same for frames: entries, and the buffers in which they are handed back."""

    def attack(setting: Setting) -> Verdict:
        table = draw_table(setting.rng, setting.rows).sort_by_secret()
        worst = Verdict(setting.releases, 0, 0, 0.0, 0.0)
        for _ in range(setting.releases):
            release = pf.sanitise(FRAMES[frame](table.rows), pf.ReleaseSpec(**asked.keywords, **more))
            worst = _worse(worst, _sequences(frame_text(release.table), frame_bytes(release.table)), setting)
        return worst

    return attack


def _sequences(shown: pl.DataFrame, raw: bytes) -> dict[str, list[str]]:
    """Every column as it is published, and the order in which its texts stand in the raw bytes."""
    found = {f"rows of {name}": list(shown[name]) for name in shown.columns}
    for name in shown.columns:
        values = [text for text in set(shown[name]) if len(text) > 12]
        if values:
            longest_first = sorted((text.encode() for text in values), key=lambda text: -len(text))
            pattern = re.compile(b"|".join(map(re.escape, longest_first)))
            met = [each.decode() for each in pattern.findall(raw)]
            if len(met) >= len(shown):
                found[f"bytes of {name}"] = met
    return found


def _worse(worst: Verdict, sequences: dict[str, list[str]], setting: Setting) -> Verdict:
    for name, sequence in sequences.items():
        leak = order_leak(sequence, setting.error / setting.releases / len(sequences))
        if leak.lower > worst.lower:
            worst = replace(worst, lower=leak.lower, worst=name)
        worst = replace(worst, views=worst.views + leak.views, records=worst.records + leak.records)
    return worst
