"""`demo`: the whole way once, on the census data that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacyfunnel.cli import words
from privacyfunnel.cli.called import called
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.options import Force

if TYPE_CHECKING:
    from privacyfunnel.release.release import Release

SECRET, PUBLISH, EPSILON = "occupation", "education", 1.0
SHOWN = 6  # people: enough to see what happens


def demo(
    *,
    into: Annotated[Path, typer.Option("--into", help="The folder for the data and the results.")] = Path("demo"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Sanitise the census data that comes with the package, and say what happened."""
    from privacyfunnel.audits.scan import scan
    from privacyfunnel.cli.asked import Asked
    from privacyfunnel.cli.sanitise import sanitised
    from privacyfunnel.cli.summary import content, told
    from privacyfunnel.tables.adult import write_adult_csv
    from privacyfunnel.tables.whole import checked_target, folder

    people = into / "adult.csv"
    if into.exists():
        for name in ("adult.csv", "sanitised.csv", "protocol.json", "codebook.csv", "report.html"):
            checked_target(into / name, force=force)
    with folder(into):
        write_adult_csv(people, force=force)
    look = next(look for look in scan(people, secret=[SECRET]).looks if look.column == PUBLISH)
    command = ["sanitise", str(people), "--secret", SECRET, "--publish", PUBLISH, "--epsilon", f"{EPSILON:g}"]
    release = sanitised(
        people,
        into,
        Asked(secret=[SECRET], publish=[PUBLISH], epsilon=EPSILON),
        command=[*command, "--into", str(into), "--force"],
        force=force,
        where={"trial": True},
    )
    before, after = (_column(path) for path in (people, into / "sanitised.csv"))
    places, me = _places(release, into), called()
    text = [
        f"{people} holds {release.rows:,} people of a US census (UCI Adult). Their {PUBLISH} is to be published,",
        f"their {SECRET} is to stay secret. Published as it is, {PUBLISH} would leak without bound:",
        f"{look.value}, for one, rules out {look.secret}. So it was sanitised:",
        "",
        told(release),
        "",
        f"The first {SHOWN} people, found again in the random order of the published rows by the owner's ledger:",
        "",
        words.table([PUBLISH, "published as"], [(before[i], after[place]) for i, place in enumerate(places)], "<<"),
        "",
        f"Open {into / 'report.html'} in a browser: it is for the owner of the data, not for publication.",
        "",
        "What to try next:",
        f"  {me} estimate {into / 'protocol.json'} {into / 'sanitised.csv'}",
        f"  {me} scan {people} --secret {SECRET}",
        f"  {me} audit {into / 'protocol.json'} {people} --sanitised {into / 'sanitised.csv'}",
        f"  {me} sanitise {people} --secret income --publish {PUBLISH},sex -e 0.5 --into {into / 'mine'}",
        f"  {me} curve {people} --secret {SECRET} --publish {PUBLISH} --into {into / 'curve'}",
        "docs/limits.md says what is not promised.",
    ]
    answer(as_json, {"people": str(people), "leak_as_it_is": look.lip, **content(release)}, "\n".join(text))


def _column(path: Path) -> list[str]:
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        return [row[PUBLISH] for row in csv.DictReader(file)]


def _places(release: Release, into: Path) -> list[int]:
    """Where the first people of the table stand among the published rows."""
    from privacyfunnel.release.ledger import Ledger, ledger_of
    from privacyfunnel.release.shuffle import RowOrder

    entry = Ledger(ledger_of(into / "adult.csv")).release_with(into / "protocol.json", into / "sanitised.csv")
    if entry is None or entry.order is None:
        return []
    order = RowOrder.of(entry.order).whole(release.rows).tolist()
    return [order.index(i) for i in range(SHOWN)]
