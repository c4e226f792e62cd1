"""What the table gives away today: the scan, as a page shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privacyfunnel.audits.scan import Joined, Look, Scan, scan
from privacyfunnel.studio.choices import PUBLISH, SECRET, Choices
from privacyfunnel.studio.tasks.saying import Say
from privacyfunnel.tables.names import listing


@dataclass(frozen=True, slots=True)
class Told:
    """What one column gives away, in numbers and in words."""

    column: str
    chosen: bool  # whether it is to be published
    values: int
    epsilon: float | None  # LIP; None where it was not measured
    share: float  # of what there is to know about the secret, on average
    decided: float | None  # of rows whose value tells the secret
    keeps: bool  # the promise, as it is
    keeps_in_bins: bool
    words: str


@dataclass(frozen=True, slots=True)
class Today:
    """The whole table, the most telling column first."""

    rows: int
    secret: str
    secrets: int
    columns: tuple[Told, ...]
    together: str  # the chosen ones, in words
    notes: tuple[str, ...]


def today(say: Say, choices: Choices) -> Today:
    """Scan the table as the command line does."""
    choices.checked_roles()
    source = choices.table
    found = scan(
        source.path,
        secret=choices.columns(SECRET),
        bins=choices.cuts,
        dialect=choices.dialect,
        promise=choices.promise,
        merges=choices.merges,
    )
    chosen = set(choices.columns(PUBLISH))
    told = tuple(_told(at, found, choices, at.column in chosen) for at in found.looks)
    return Today(
        rows=found.rows,
        secret=" & ".join(found.secret),
        secrets=found.secrets,
        columns=tuple(sorted(told, key=lambda each: not each.chosen)),
        together=_together(found, choices),
        notes=_notes(found),
    )


def _told(look: Look, found: Scan, choices: Choices, chosen: bool) -> Told:
    promise = choices.promise
    secret = " & ".join(found.secret)
    return Told(
        column=look.column,
        chosen=chosen,
        values=look.values,
        epsilon=None if look.note else look.lip,
        share=(look.information or 0.0) / found.secret_entropy if found.secret_entropy else 0.0,
        decided=look.decided,
        keeps=found.safe(look, promise),
        keeps_in_bins=found.safe_in_bins(look, promise),
        words=_words(look, secret),
    )


def _words(look: Look, secret: str) -> str:
    if look.tells_rows_apart:
        return "Tells rows apart: who knows a person's value finds that person's row."
    if look.note:
        return f"Not measured: {look.note}."
    if math.isinf(look.lip):
        said = f"“{look.value}” rules out “{look.secret}” altogether."
    else:
        said = f"“{look.value}” moves a belief in “{look.secret}” most, by a factor of {math.exp(look.lip):.2f}."
    if look.decided:
        said += f" For {_share(look.decided)} of people it gives {secret} away."
    return said


def _together(found: Scan, choices: Choices) -> str:
    """What is known of the chosen columns in one row."""
    chosen = choices.columns(PUBLISH)
    if len(chosen) < 2 or found.together is None:
        return ""
    known: list[Joined] = [*found.together.pairs, *([found.together.whole] if found.together.whole else [])]
    mine = next((each for each in known if set(each.columns) == set(chosen)), None)
    if mine is None:
        alone = [at.column for at in found.looks if at.column in chosen and not found.safe(at, choices.promise)]
        if not alone:
            return ""
        return f"Together they give away at least what {listing(alone)} does alone."
    size = "without bound" if mine.epsilon is None or math.isinf(mine.epsilon) else f"ε = {mine.epsilon:.2f}"
    return (
        f"Together in one row the chosen columns leak {size}: the combination of {_share(mine.decided)} of people "
        f"occurs with one value of the secret only, and {_share(mine.alone)} are alone with theirs."
    )


def _notes(found: Scan) -> tuple[str, ...]:
    said = []
    if found.order is not None:
        said.append(f"The order of the rows: {found.order}. Rows are published in a random order.")
    if found.secret_in_bins:
        said.append(f"{listing(found.secret_in_bins)} is many numbers and was cut into bins for this look.")
    if found.rare is not None:
        said.append(
            f"{found.rare.secrets.rare} of {found.secrets} values of the secret are held by few rows; every value that "
            "does not occur with one of them leaks without bound."
        )
    return tuple(said)


def _share(part: float) -> str:
    return "fewer than 0.1 %" if 0 < part < 0.001 else f"{100 * part:.1f} %"
