"""How the page tells numbers: times, tables, counts of points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privacyfunnel.experiments.experiment import Record, numbers, of


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["ε", "time"], [["1", "2 s"]]))
    | ε | time |
    |---|---|
    | 1 | 2 s |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "|" + "|".join(line) + "|" if line[0] == "---" else "| " + " | ".join(line) + " |" for line in lines
    )


def counted(number: int, what: str) -> str:
    """How many there are.

    >>> counted(1, "draw"), counted(10, "draw")
    ('1 draw', '10 draws')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time for reading.

    >>> duration(0.0042), duration(1.26), duration(133)
    ('4.2 ms', '1.3 s', '133 s')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def mean_duration(records: Sequence[Record]) -> str:
    """The mean of their times; where some did not finish there is none, and it says how many did not."""
    seconds = numbers(records, "seconds")
    if not records:
        return "not run"
    if stopped := len(records) - len(seconds):
        return f"{stopped} of {len(records)} stopped after {duration(max(numbers(records, 'time_limit')))}"
    return duration(float(np.mean(seconds)))


def times(records: Sequence[Record], methods: Sequence[tuple[str, str]]) -> str:
    """Mean computing time, a row per ε and a column per method and its title."""
    epsilons = sorted({float(record["epsilon"]) for record in records})
    return table(
        ["ε", *(title for _, title in methods)],
        [
            [f"{epsilon:g}", *(mean_duration(of(records, method=method, epsilon=epsilon)) for method, _ in methods)]
            for epsilon in epsilons
        ],
    )


def prose(text: str) -> str:
    """Text as it stands in the source, each paragraph on one line; tables and lists stay as they are.

    >>> print(prose('''One line,
    ...              another.
    ...
    ...              | a |'''))
    One line, another.
    <BLANKLINE>
    | a |
    """
    paragraphs = "\n".join(line.strip() for line in text.strip().splitlines()).split("\n\n")
    return "\n\n".join(part if part.startswith(("|", "- ")) else " ".join(part.split()) for part in paragraphs)
