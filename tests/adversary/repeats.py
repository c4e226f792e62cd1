"""Releases that follow each other, persons with several rows, tables in parts, rows that a protocol does not know."""

from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

import numpy as np
import polars as pl

from tests.adversary.attacks import Asked, Attack, Records, Setting, Verdict, refused
from tests.adversary.interface import read_rows, run, sanitise_file, write_domain, write_table
from tests.adversary.tables import Table, draw_table

Change = Callable[[pl.DataFrame], pl.DataFrame]


def by_months(asked: Asked, *, file: str = "second.csv", change: Change = lambda rows: rows) -> Attack:
    """Two months of the same people by one protocol and one key: both records together tell what one does."""

    def attack(setting: Setting) -> Verdict:
        folder, table, records = setting.folder, draw_table(setting.rng, setting.rows), Records()
        write_table(table.rows, folder / "table.csv")
        run(folder, "design", "table.csv", "--into", "design.json", "--time-limit", 5, *asked.command)
        second = change(table.rows[setting.rng.permutation(table.size)])
        write_table(second, folder / file)
        fixed = ("--row-id", "id", "--keep-order", "--force", "--again")
        for month in range(setting.releases):
            key = f"key{month}"
            run(folder, "keygen", key, "--rows")
            for name, into in (("table.csv", "drawn1.csv"), (file, f"drawn2{Path(file).suffix}")):
                done = run(folder, "apply", "design.json", name, "--into", into, "--key-file", key, *fixed)
                if done.refused:
                    return refused(done.err, asked.epsilon)
            first = read_rows(folder / "drawn1.csv").with_columns(id=pl.Series(table.column("id")))
            ids = [text.strip().removesuffix(".0") for text in second["id"].cast(pl.String)]
            again = read_rows(folder / f"drawn2{Path(file).suffix}").with_columns(id=pl.Series(ids))
            both = first.join(again, on="id", suffix=" again", how="left", maintain_order="left").drop("id")
            records.add(asked.secrets(table), asked.values(table), both.fill_null("absent"))
        leak = records.leak(asked.promise, setting.error, placed=False)
        return Verdict(2 * setting.releases, leak.views, leak.records, leak.lower, asked.epsilon, leak.worst)

    return attack


def by_private_design(asked: Asked, *words: object) -> Attack:
    """A mechanism that is designed from noisy counts, afresh for every release."""

    def attack(setting: Setting) -> Verdict:
        table, records = draw_table(setting.rng, setting.rows, secrets=asked.number, rare=False), Records()
        write_domain(table, setting.folder / "domain.json")
        for _ in range(setting.releases):
            done, shown = sanitise_file(setting.folder, table, [*asked.command, *words, "--keep-order"])
            if done.refused:
                return refused(done.err, asked.epsilon)
            records.add(asked.secrets(table), asked.values(table), shown)
        leak = records.leak(asked.promise, setting.error, placed=False)
        return Verdict(setting.releases, leak.views, leak.records, leak.lower, asked.epsilon, leak.worst)

    return attack


def by_person(asked: Asked) -> Attack:
    """Persons of one secret have many rows, those of another one: the promise is about persons."""

    def attack(setting: Setting) -> Verdict:
        persons, records = draw_table(setting.rng, setting.rows, rare=False), Records()
        secrets = sorted(set(persons.column("s")))
        times = np.array([1 + 4 * (secrets.index(text) % 2) for text in persons.column("s")])
        rows = persons.rows[np.repeat(np.arange(persons.size), times)]
        rows = rows[setting.rng.permutation(len(rows))]
        write_table(rows, setting.folder / "table.csv")
        met = Table(rows.unique("id", keep="first", maintain_order=True))
        for _ in range(setting.releases):
            fixed = ("--into", "out", "--no-report", "--force", "--again", "--person", "id", "--keep-order")
            done = run(setting.folder, "sanitise", "table.csv", *fixed, *asked.command)
            if done.refused:
                return refused(done.err, asked.epsilon)
            records.add(asked.secrets(met), asked.values(met), read_rows(setting.folder / done.found["table"]))
        leak = records.leak(asked.promise, setting.error, placed=False)
        return Verdict(setting.releases, leak.views, leak.records, leak.lower, asked.epsilon, leak.worst)

    return attack


def by_parts(asked: Asked, *, margin: bool = False) -> Attack:
    """A table in parts, one for each secret: the part in which a record is published, and how large parts are.

    With `margin` it is asked whether the sizes of parts are the numbers of people with each secret, which nothing may
    tell: then what leaks is called infinite.
    """

    def attack(setting: Setting) -> Verdict:
        folder, table, records = setting.folder, draw_table(setting.rng, setting.rows, rare=False), Records()
        (folder / "parts").mkdir()
        groups = [table.rows.filter(pl.col("s") == secret) for secret in sorted(set(table.column("s")))]
        for i, group in enumerate(groups):
            write_table(group, folder / "parts" / f"part-{i}.csv")
        whole = Table(pl.concat(groups))
        run(folder, "design", "parts", "--into", "design.json", "--time-limit", 5, *asked.command)
        sizes: list[int] = []
        for i in range(setting.releases):
            words = ("--keep-order",) if not margin else ()
            done = run(folder, "apply", "design.json", "parts", "--into", f"out{i}", "--again", *words)
            if done.refused:
                return refused(done.err, asked.epsilon)
            parts = [read_rows(path) for path in sorted((folder / f"out{i}").glob("part-*"))]
            sizes = [len(part) for part in parts]
            records.add(asked.secrets(whole), asked.values(whole), pl.concat(parts))
        if margin:
            told = sorted(sizes) == sorted(len(group) for group in groups)
            return Verdict(setting.releases, len(sizes), table.size, inf if told else 0.0, 0.0, "sizes of parts")
        leak = records.leak(asked.promise, setting.error, placed=False)
        return Verdict(setting.releases, leak.views, leak.records, leak.lower, asked.epsilon, leak.worst)

    return attack


def by_unknown(asked: Asked, how: str) -> Attack:
    """Some people of one secret hold a value that the protocol does not know; whoever is left out is missed."""

    def attack(setting: Setting) -> Verdict:
        folder, table, records = setting.folder, draw_table(setting.rng, setting.rows, rare=False), Records()
        write_table(table.rows, folder / "table.csv")
        run(folder, "design", "table.csv", "--into", "design.json", "--time-limit", 5, *asked.command)
        first = sorted(set(table.column("s")))[0]
        new = (pl.col("s") == first) & (pl.int_range(pl.len()) % 2 == 0)
        later = Table(table.rows.with_columns(x=pl.when(new).then(pl.lit("a new value")).otherwise("x")))
        write_table(later.rows, folder / "later.csv")
        unknown = [text == "a new value" for text in later.column("x")]
        for _ in range(setting.releases):
            fixed = ("--into", "drawn.csv", "--force", "--again", "--keep-order", "--unknown", how)
            done = run(folder, "apply", "design.json", "later.csv", *fixed)
            if done.refused:
                return refused(done.err, asked.epsilon)
            shown = read_rows(folder / "drawn.csv")
            if how == "drop":
                shown = _with_absent(shown, unknown)
            records.add(asked.secrets(later), asked.values(later), shown)
        leak = records.leak(asked.promise, setting.error, placed=False)
        return Verdict(setting.releases, leak.views, leak.records, leak.lower, asked.epsilon, leak.worst)

    return attack


def _with_absent(shown: pl.DataFrame, absent: Sequence[bool]) -> pl.DataFrame:
    """The published rows with an empty one for everybody who was left out."""
    places = np.cumsum(~np.array(absent)) - 1
    return shown[places].with_columns(
        pl.when(pl.Series(absent)).then(pl.lit("absent")).otherwise(pl.col(name)).alias(name) for name in shown.columns
    )
