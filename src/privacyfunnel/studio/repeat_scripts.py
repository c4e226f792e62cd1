"""The same again without a page: the command line, a Python script and a notebook that do what the studio did."""

from __future__ import annotations

import csv
import io
import json
import shlex
from typing import Any

from privacyfunnel.studio.choices import KEEP, PUBLISH, SECRET, Choices


def command(choices: Choices) -> list[str]:
    """The words after `privacyfunnel` that make this release.

    >>> from pathlib import Path
    >>> from privacyfunnel.studio.choices import TableFile
    >>> made = Choices(TableFile(Path("people.csv"), "people.csv"), roles={"a, b": "secret", "town": "publish"})
    >>> print(*command(made)[:5])
    sanitise people.csv --secret="a, b" --publish=town --epsilon=1.0
    """
    words = ["sanitise", _table_name(choices)]
    words += [f"--secret={join_names(choices.columns(SECRET))}", f"--publish={join_names(choices.columns(PUBLISH))}"]
    words += [f"--epsilon={choices.size!r}", f"--promise={choices.promise_name}"] + (
        [f"--for={choices.use}"] if choices.use else []
    )
    words.append("--population=none" if choices.population is None else f"--population={choices.population:g}")
    if choices.columns(KEEP):
        words.append(f"--keep={join_names(choices.columns(KEEP))}")
    used = {*choices.columns(SECRET), *choices.columns(PUBLISH)}
    words += [f"--bin={column}={how}" for column, how in choices.bins.items() if how and column in used]
    words += [f"--merge-rare={c}={rows}" for c, rows in choices.rare.items() if c in choices.columns(PUBLISH)]
    if choices.time_limit is not None:
        words.append(f"--time-limit={choices.time_limit:g}")
    words += [f"--{name}={said}" for name, said in _dialect(choices).items()]
    if choices.public_report:
        words.append("--public-report")
    if choices.ledger is not None:
        words.append(f"--ledger={choices.ledger}")
    return [*words, f"--into={choices.folder}"]


def command_line(choices: Choices) -> str:
    r"""The same for a shell; what cannot be seen is spelled out.

    >>> _quote("a b"), _quote("a\u202eb'")
    ("'a b'", "$'a\\u202eb\\''")
    """
    return " ".join(_quote(word) for word in ["privacyfunnel", *command(choices)])


def _quote(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    spelled = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in spelled) + "'"


def script(choices: Choices) -> str:
    """A Python script that makes this release."""
    return "\n".join(
        [
            "from pathlib import Path",
            "",
            *_imports(choices),
            "",
            *_spec_lines(choices),
            "",
            *_release_lines(choices),
            "",
        ]
    )


def notebook(choices: Choices) -> str:
    """A notebook (nbformat 4) that makes this release, a step in each cell."""
    name, secret = choices.table.name, " & ".join(choices.columns(SECRET))
    cells = [
        _prose(f"# Publishing {name} without giving away {secret}", "Made by the studio of privacyfunnel."),
        _code(["from pathlib import Path", "", *_imports(choices)]),
        _prose("What is asked for: the promise, the columns, and how they are read."),
        _code(_spec_lines(choices)),
        _prose("The release. A second one of the same rows can give away more than both promise; it is refused."),
        _code(_release_lines(choices)),
        _prose("What an analyst gets back from the published files alone."),
        _code(["from privacyfunnel import estimate", "", "estimate(release.sealed, release.table).to_frame()"]),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return json.dumps(content, ensure_ascii=False, indent=1)


def _imports(choices: Choices) -> list[str]:
    kind = choices.promise_name.upper()
    names = [kind, "Effort", *(["MergeRare"] if choices.merges else []), "Order"]
    lines = [f"from privacyfunnel import {', '.join(sorted(names, key=str.lower))}, sanitise_file", *_use(choices)[0]]
    if choices.cuts:
        lines.append("from privacyfunnel.tables.coding.bin_syntax import parse_bins")
    if _dialect(choices):
        lines.append("from privacyfunnel.tables.readers.formats import Dialect")
    return lines


def _dialect(choices: Choices) -> dict[str, str]:
    """What was said of how the file is read."""
    said = {name: getattr(choices.dialect, name) for name in ("delimiter", "encoding", "decimal")}
    return {name: value for name, value in said.items() if value is not None}


def _use(choices: Choices) -> tuple[list[str], list[str]]:
    if not choices.use:
        return [], []
    return ["from privacyfunnel.model.uses.use_parser import parse_use"], [f"    use=parse_use({choices.use!r}),"]


def _spec_lines(choices: Choices) -> list[str]:
    lines = [
        "order = Order(",
        f"    secret={choices.columns(SECRET)!r},",
        f"    publish={choices.columns(PUBLISH)!r},",
        f"    promise={choices.promise_name.upper()}({choices.size!r}),",
        *_use(choices)[1],
    ]
    if choices.population is not None:
        lines.append(f"    population={choices.population!r},")
    if choices.columns(KEEP):
        lines.append(f"    keep={choices.columns(KEEP)!r},")
    if choices.cuts:
        used = {cut.column for cut in choices.cuts}
        asked = {column: how for column, how in choices.bins.items() if how and column in used}
        lines.append(f"    bins=parse_bins({asked!r}),")
    if choices.merges:
        lines.append(f"    merges={choices.merges!r},")
    if choices.time_limit is not None:
        lines.append(f"    effort=Effort(time_limit={choices.time_limit!r}),")
    return [*lines, ")"]


def _release_lines(choices: Choices) -> list[str]:
    said = ", ".join(f"{name}={value!r}" for name, value in _dialect(choices).items())
    words = [f", dialect=Dialect({said})"] if said else []
    if choices.ledger is not None:
        words.append(f", ledger=Path({str(choices.ledger)!r})")
    return [
        f"release = sanitise_file(Path({_table_name(choices)!r}), Path({str(choices.folder)!r}), "
        f"order{''.join(words)})",
        'print(release.table, f"certified: ε = {release.sealed.epsilon:.6g}")',
        'print(*release.not_promised_to_owner, sep="\\n")',
    ]


def _table_name(choices: Choices) -> str:
    """The table by its path; one that was uploaded by its name, for it does not stay where it is."""
    source = choices.table
    return source.name if source.uploaded else str(source.path)


def join_names(columns: tuple[str, ...]) -> str:
    """Names with commas between, one that has a comma in quotes, as `options.listed` reads them."""
    if not any("," in name or '"' in name for name in columns):
        return ",".join(columns)
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(columns)
    return text.getvalue()


def _prose(*lines: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": "\n\n".join(lines)}


def _code(lines: list[str]) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": "\n".join(lines)}
