"""`demo`: the whole way once, on the census data that comes with the package."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.spec_options import Force

if TYPE_CHECKING:
    from privacyfunnel.release.release import Release

NAME = "privacyfunnel"
SECRET, PUBLISH = "occupation", "education"
SHOWN = 6  # people: enough to see what happens


def demo(
    *,
    into: Annotated[Path, typer.Option("--into", help="The folder for the data and the results.")] = Path("demo"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Sanitise the census data that comes with the package, and say what happened."""
    from privacyfunnel.atomic_files import OWNER, PUBLIC, check_folder, check_target, ensure_folder
    from privacyfunnel.audits.scan import scan
    from privacyfunnel.cli.release_summary import content, format_summary
    from privacyfunnel.cli.sanitise_command import run_release
    from privacyfunnel.release.release_files import README, REPORT
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.spec.text_forms import command_words
    from privacyfunnel.tables.readers.adult import write_adult_csv

    people, labels, out = into / "adult.csv", into / "domain.json", into / "out"
    if into.exists():
        check_target(people, force=force)
        check_target(labels, force=force)
        check_folder(out, force=force)
    with ensure_folder(into):
        write_adult_csv(people, force=force)
        _write_domain(labels, force=force)
    look = next(look for look in scan(people, secret=[SECRET]).looks if look.column == PUBLISH)
    spec = ReleaseSpec(table=people, secret=SECRET, publish=PUBLISH, epsilon=1.0, domain=labels, into=out, force=force)
    release = run_release(spec, command_words(replace(spec, force=True)), trial=True)
    before, after = (_column(Path(path)) for path in (people, release.table))
    places, me = _places(release, people), program_name()
    text = [
        f"{people} holds {release.rows:,} people of a US census (UCI Adult). Their {PUBLISH} is to be published,",
        f"their {SECRET} is to stay secret. Published as it is, {PUBLISH} would leak without bound:",
        f"nobody with {look.value}, for one, has {look.secret}. So it was sanitised,",
        f"by the labels that the census codes are known to have ({labels}):",
        "",
        format_summary(release),
        "",
        f"The first {SHOWN} people, found again in the random order of the published rows by the owner's ledger:",
        "",
        text_format.format_table(
            [PUBLISH, "published as"], [(before[i], after[place]) for i, place in enumerate(places)], "<<"
        ),
        "",
        f"Everything in {out / PUBLIC} may be published; {out / PUBLIC / README} says what it is, to whoever gets it.",
        f"Open {out / OWNER / REPORT} in a browser: it is for the owner of the data, not for publication.",
        "",
        "What to try next:",
        f"  {me} estimate {out}",
        f"  {me} scan {people} --secret {SECRET}",
        f"  {me} audit {out} {people}",
        f"  {me} sanitise {people} --secret income --publish {PUBLISH},sex -e 0.5 --domain {labels}"
        f" --into {into / 'mine'}",
        f"  {me} curve {people} --secret {SECRET} --publish {PUBLISH} --into {into / 'curve'}",
        "docs/limits.md says what is not promised.",
    ]
    answer(as_json, {"people": str(people), "leak_as_it_is": look.lip, **content(release)}, "\n".join(text))


def _write_domain(path: Path, *, force: bool) -> None:
    """The labels of the census codes, which everybody can look up."""
    from privacyfunnel.atomic_files import atomic_file
    from privacyfunnel.tables.coding.coders import Coding
    from privacyfunnel.tables.coding.domain_file import DomainFile
    from privacyfunnel.tables.readers.adult import ADULT_COLUMNS, adult_counts

    codings = {column: Coding(column, adult_counts(column)[1][0]) for column in ADULT_COLUMNS}
    with atomic_file(path, force=force) as beside:
        beside.write_text(DomainFile(codings).to_text(), encoding="utf-8")


def _column(path: Path) -> list[str]:
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        return [row[PUBLISH] for row in csv.DictReader(file)]


def _places(release: Release, people: Path) -> list[int]:
    """Where the first people of the table stand among the published rows."""
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.shuffle import RowOrder

    assert release.protocol_file is not None
    entry = Ledger(ledger_path(people)).find_release(release.protocol_file, Path(release.table))
    if entry is None or entry.order is None:
        return []
    order = RowOrder.from_key(entry.order).permutation(release.rows).tolist()
    return [order.index(i) for i in range(SHOWN)]


def program_name() -> str:
    """The words before a command: `privacyfunnel`, or a path or module where that name alone would not be found."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py":
        python = _name_if_found(Path(sys.executable).name, Path(sys.executable)) or _relative_path(Path(sys.executable))
        return f"{shlex.quote(python)} -m {NAME}"
    if not typed.is_file():  # called from within Python
        return NAME
    return shlex.quote(_name_if_found(NAME, typed) or _relative_path(typed))


def _name_if_found(name: str, program: Path) -> str | None:
    """The name, if a shell that is given it runs the very file that is meant, not one that links to the same."""
    there = shutil.which(name)
    same = there is not None and Path(there).name == program.name and Path(there).parent.samefile(program.parent)
    return name if same else None


def _relative_path(path: Path) -> str:
    """The path from here, if it lies below; links are left as they are, for a virtual environment is one."""
    here, whole = Path.cwd(), path.absolute()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)
