"""Few people: which values point at them, and what a secret that few hold costs everybody else.

A published value that few rows hold stands in the public file, and whoever knows those people knows it. A secret s that
few rows hold is missing from most values x; there p(x|s) = 0, and publishing x rules s out: ε is unbounded, and the
promise forces mixing, all for these few. Merged with others, such a secret is promised together with them only.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint, merge_secrets
from privacyfunnel.names import OTHER, unique_label

FEW = 5  # rows that a value must have not to point at people
RARE_SECRET = 200  # rows: a sample cannot exclude much about a secret that has fewer
RARE_SHARE = 100  # … and fewer than one row in so many


@dataclass(frozen=True, slots=True)
class RareSecrets:
    """Secrets that few rows hold, with those that join them so that together they are not rare."""

    secrets: tuple[str, ...]  # all of the table's
    merged: tuple[str, ...]  # those that would be one
    rare: int  # how many of them few rows hold

    @property
    def option(self) -> str:
        """The field of the request that asks for the merge."""
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(self.merged)
        return hint("merge_secrets", f"{text.getvalue()}={self.name}")

    @property
    def name(self) -> str:
        """What the merged secrets would be called."""
        return unique_label(OTHER, [label for label in self.secrets if label not in self.merged])

    def merge(self, joint: Joint) -> Joint:
        """The joint in which they are one."""
        return merge_secrets(joint, [self.name if label in self.merged else label for label in joint.secrets])


def rare_secrets(secrets: Sequence[str], rows: NDArray[np.int64]) -> RareSecrets | None:
    """The secrets to merge where some are rare; None where none is, or where too few would be left.

    >>> rare_secrets(["a", "b", "c", "d"], np.array([500, 3, 20, 400]))
    RareSecrets(secrets=('a', 'b', 'c', 'd'), merged=('b', 'c'), rare=1)
    """
    limit = min(RARE_SECRET, max(FEW, int(rows.sum()) // RARE_SHARE))
    by_size = np.argsort(rows, kind="stable")
    rare = int((rows < limit).sum())
    many = rare
    while 0 < many < len(rows) and (many < 2 or rows[by_size[:many]].sum() < limit):
        many += 1
    if not 0 < many < len(rows):
        return None
    return RareSecrets(tuple(secrets), tuple(secrets[i] for i in sorted(by_size[:many].tolist())), rare)


def rare_value_advice(joint: Joint) -> str:
    """How many published values few people have, and what would change it; nothing where none has few."""
    found = format_rare_values(joint)
    return (
        f"{found}. {hint('merge_rare', FEW)} merges rare values; fewer columns make fewer combinations."
        if found
        else ""
    )


def format_rare_values(joint: Joint) -> str:
    """How many values, or combinations of them, few people have; nothing where none has few."""
    parts = []
    for j, attribute in enumerate(joint.attributes):
        rows = np.zeros(len(attribute.labels), dtype=joint.weights.dtype)
        np.add.at(rows, joint.combos[:, j], joint.weights.sum(axis=0))
        few = int((rows < FEW).sum())
        parts += [f"{_format_count(few, 'value')} of {attribute.name}"] if few else []
    combinations = int((joint.weights.sum(axis=0) < FEW).sum())
    if joint.m > 1 and combinations:
        parts = [_format_count(combinations, "combination")]
    if not parts:
        return ""
    are = "is" if len(parts) == 1 and parts[0].startswith("1 ") else "are"
    return f"{', '.join(parts)} {are} so rare (fewer than {FEW} people) that they may point to a person"


def rare_secret_advice(joint: Joint, columns: Sequence[str]) -> str:
    """Which secrets could be merged, where few rows hold some; `scan` measures what that would keep."""
    rare = rare_secrets(joint.secrets, joint.weights.sum(axis=1)) if len(columns) == 1 else None
    if rare is None:
        return ""
    few = f"{rare.rare} of {joint.c} values of {columns[0]} {'is' if rare.rare == 1 else 'are'} rare."
    return f"{few} {rare.option} may be more accurate; which of them it is would no longer be protected."


def _format_count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
