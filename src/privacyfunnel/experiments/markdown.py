"""How the page tells numbers: times, tables, counts of points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privacyfunnel.experiments.experiment import Record, numbers, select
from privacyfunnel.formatting import format_duration, format_number


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(format_table(["ε", "time"], [["1", "2 s"]]))
    | ε | time |
    |---|---|
    | 1 | 2 s |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "|" + "|".join(line) + "|" if line[0] == "---" else "| " + " | ".join(line) + " |" for line in lines
    )


def format_count(number: int, what: str) -> str:
    """How many there are.

    >>> format_count(1, "draw"), format_count(10, "draw")
    ('1 draw', '10 draws')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def format_mean_duration(records: Sequence[Record]) -> str:
    """The mean of their times; where some did not finish there is none, and it says how many did not."""
    seconds = numbers(records, "seconds")
    if not records:
        return "not run"
    if stopped := len(records) - len(seconds):
        return f"{stopped} of {len(records)} stopped after {format_duration(max(numbers(records, 'time_limit')))}"
    return format_duration(float(np.mean(seconds)))


def format_times(records: Sequence[Record], methods: Sequence[tuple[str, str]]) -> str:
    """Mean computing time, a row per ε and a column per method and its title."""
    epsilons = sorted({float(record["epsilon"]) for record in records})
    return format_table(
        ["ε", *(title for _, title in methods)],
        [
            [
                format_number(epsilon),
                *(format_mean_duration(select(records, method=method, epsilon=epsilon)) for method, _ in methods),
            ]
            for epsilon in epsilons
        ],
    )


def join_paragraphs(text: str) -> str:
    """Text as it stands in the source, each paragraph on one line; tables and lists stay as they are.

    >>> print(join_paragraphs('''One line,
    ...              another.
    ...
    ...              | a |'''))
    One line, another.
    <BLANKLINE>
    | a |
    """
    paragraphs = "\n".join(line.strip() for line in text.strip().splitlines()).split("\n\n")
    return "\n\n".join(part if part.startswith(("|", "- ")) else " ".join(part.split()) for part in paragraphs)
