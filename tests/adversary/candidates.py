"""Somebody knows all rows but the secret of one person, and tries every candidate: whose public files are like these?

A file that others may read, and that is a function of the counts, answers for good. Files are compared by what does not
depend on the draw: numbers of a page, kinds of published records, hashes.
"""

import re
from collections.abc import Callable
from itertools import combinations
from math import log
from pathlib import Path
from shutil import rmtree

import polars as pl

from tests.adversary.attacks import Attack, Setting, Verdict, refused
from tests.adversary.estimator import lower_chance
from tests.adversary.interface import public_files, run, write_domain, write_table
from tests.adversary.tables import Table, draw_table

EPSILON = 0.2
PEOPLE, PEOPLE_OF_A_MODEL = 80, 1_600  # few, so that one of them matters; noise asks for more
VICTIMS = 6  # among whom the attacker chooses

Tokens = Callable[[bytes], set[bytes]]


def numbers(content: bytes) -> set[bytes]:
    """Those with some digits, of the text of a page."""
    text = re.sub(rb"<(style|script).*?</\1>", b"", content, flags=re.DOTALL)
    return set(re.findall(rb"\d*\.\d{3,}", re.sub(rb"<[^>]*>", b" ", text)))


def kinds(content: bytes) -> set[bytes]:
    """The records that occur."""
    return set(content.splitlines())


def hashes(content: bytes) -> set[bytes]:
    """Long words of hexadecimal digits."""
    return set(re.findall(rb"[0-9a-f]{32,}", content))


def length(content: bytes) -> set[bytes]:
    """How long it is: whoever sees encrypted traffic sees this, too."""
    return {str(len(content)).encode()}


def numerators(content: bytes) -> set[bytes]:
    """Whole numbers, of a mechanism or a model."""
    return set(re.findall(rb"\d+", content))


def by_candidates(file: str, tokens: Tokens, *words: object) -> Attack:
    """How often the attacker is right about one of three secrets that are as likely, by one public file."""

    def attack(setting: Setting) -> Verdict:
        people = PEOPLE_OF_A_MODEL if "model" in words else PEOPLE
        table = draw_table(setting.rng, people, secrets=3, rare=False)
        write_domain(table, setting.folder / "domain.json")
        run(setting.folder, "keygen", "owner")
        secrets, spent = sorted(set(table.column("s"))), 0
        for victim in range(VICTIMS):
            tables, tried = [_with_secret(table, victim, secret) for secret in secrets], []
            for each in tables:
                twice = [_released(setting.folder, each, file, words) for _ in range(2)]
                if twice[0][1]:
                    return refused(twice[0][1], EPSILON)
                tried.append(tokens(twice[0][0]) & tokens(twice[1][0]))  # what does not depend on the draw
            spent += 2 * len(secrets)
            if all(one != other for one, other in combinations(tried, 2)):
                break
        else:  # the file is the same whoever is ill
            return Verdict(spent, 1, spent, 0.0, EPSILON)
        right, trials = 0, 8 * setting.releases
        for _ in range(trials):
            truth = int(setting.rng.integers(len(secrets)))
            seen = tokens(_released(setting.folder, tables[truth], file, words)[0])
            scores = [len(seen & each) - len(each - seen) for each in tried]
            best = [i for i, score in enumerate(scores) if score == max(scores)]
            right += int(setting.rng.choice(best)) == truth
        lower = len(secrets) * lower_chance(right, trials, setting.error)
        found = f"{file}: right about {right} of {trials}"
        return Verdict(spent + trials, len(secrets), trials, max(log(lower), 0.0) if lower else 0.0, EPSILON, found)

    return attack


def _with_secret(table: Table, row: int, secret: str) -> Table:
    secrets = table.column("s")
    secrets[row] = secret
    return Table(table.rows.with_columns(pl.Series("s", secrets)))


def _released(folder: Path, table: Table, file: str, words: tuple[object, ...]) -> tuple[bytes, str]:
    """What others can read of a file, nothing if they cannot; or the sentence of a refusal."""
    write_table(table.rows, folder / "table.csv")
    rmtree(folder / "out", ignore_errors=True)  # which may hold what an adversary changed, and then is not replaced
    fixed = ("--into", "out", "--no-report", "--again", "--anyway", "--time-limit", 5)
    prior = () if "--prior" in words else ("--prior", "table")
    done = run(folder, "sanitise", "table.csv", "-s", "s", "-p", "x", "-e", EPSILON, *fixed, *prior, *words)
    if done.refused:
        return b"", done.err
    public = {Path(name).name: content for name, (_, content) in public_files(folder / "out").items()}
    return public.get(file, b""), ""
