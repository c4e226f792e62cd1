"""Experiments: records of numbers, the distributions they are measured on, and findings in Markdown.

The numbers come from tasks that know nothing of each other, each a pure function of its arguments, seeds among them, up
to the times it measures. So they can run in any order, in as many processes as there are cores.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from time import process_time
from typing import TypeVar

import numpy as np

from privacyfunnel.formatting import format_duration
from privacyfunnel.model.joint import Joint
from privacyfunnel.tables.readers.adult import adult_counts

Record = Mapping[str, str | int | float]  # one row of a figure's CSV file
Task = Callable[[], list[Record]]
Progress = Callable[[str, int, int], None]  # which figure a task was for, how many are done, of how many
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Findings:
    """What the paper reports, what we found, and how the two compare; each in Markdown."""

    paper: str
    ours: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """One figure of the paper: `tasks(quick)` yields its numbers, `findings(records)` says what they mean."""

    name: str
    number: int
    title: str
    picture: str  # what the picture shows, for those who cannot see it
    tasks: Callable[[bool], Sequence[Task]]
    findings: Callable[[Sequence[Record]], Findings]
    columns: Mapping[str, str]  # the CSV file's columns, and what each holds


def run_experiments(
    experiments: Sequence[Experiment], *, quick: bool, progress: Progress | None = None
) -> dict[str, list[Record]]:
    """The records of every experiment by name, in the order of its tasks."""
    tasks = [(experiment.name, task) for experiment in experiments for task in experiment.tasks(quick)]
    results: list[list[Record]] = [[] for _ in tasks]
    workers, others = max(1, min(len(tasks), os.cpu_count() or 1)), set(active_children())
    with (
        limit_threads(),
        ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_leave_at_once) as pool,
    ):
        places = {pool.submit(task): place for place, (_, task) in enumerate(tasks)}
        try:
            for done, future in enumerate(as_completed(places), start=1):
                place = places[future]
                results[place] = future.result()
                if progress is not None:
                    progress(tasks[place][0], done, len(tasks))
        except BaseException:
            for worker in set(active_children()) - others:  # nobody waits for their answers any more
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    records: dict[str, list[Record]] = {experiment.name: [] for experiment in experiments}
    for (name, _), found in zip(tasks, results, strict=True):
        records[name].extend(found)
    return records


def time_call(make: Callable[[], Result], repeat: int = 3) -> tuple[Result, float]:
    """What `make` makes, and the least seconds of processor time it took: what else runs only ever adds."""
    least = float("inf")
    for _ in range(repeat):
        start = process_time()
        result = make()
        least = min(least, process_time() - start)
    return result, least


def select(records: Iterable[Record], **values: str | int | float) -> list[Record]:
    """The records that have these values."""
    return [record for record in records if all(record.get(key) == value for key, value in values.items())]


def numbers(records: Iterable[Record], column: str) -> list[float]:
    """A column's numbers, without the empty ones."""
    return [float(record[column]) for record in records if record[column] != ""]


@contextmanager
def limit_threads() -> Iterator[None]:
    """Processes that start inside use one thread for linear algebra: there is one of them per core already."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _leave_at_once() -> None:
    # Ctrl-C reaches every process of the terminal; a worker then has nothing to say, its parent speaks for it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


COLUMN = {"marital": "marital-status"}  # where the paper's word is not the column's name


def uniform_joint(c: int, sizes: tuple[int, ...], seed: int) -> Joint:
    """Each p(s, x) uniform on [0, 1], then normalised (paper, section VII-A).

    >>> uniform_joint(2, (3, 3, 4), seed=1).a
    36
    """
    p = np.random.default_rng([seed, c, *sizes]).random((c, *sizes))
    return Joint.from_probabilities(p / p.sum())


def jeffreys_joint(c: int, a: int, seed: int) -> Joint:
    """p(s, x) from the symmetric Dirichlet distribution with parameter 1/2 (paper, section VII-D).

    >>> round(float(jeffreys_joint(5, 7, seed=1).p_sx.sum()), 12)
    1.0
    """
    p = np.random.default_rng([seed, c, a]).dirichlet(np.full(c * a, 0.5))
    return Joint.from_probabilities((p / math.fsum(p)).reshape(c, a))


def adult_joint(secret: str, publish: str) -> Joint:
    """Two columns of all 48,842 records of Adult, `?` a category of its own.

    >>> adult_joint("marital", "race").p_sx.shape
    (7, 5)
    """
    names = (COLUMN.get(secret, secret), COLUMN.get(publish, publish))
    counts, (secrets, values) = adult_counts(*names)
    return Joint.from_counts(counts, secrets, values, names=[names[1]], secret_name=names[0])


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
                f"{epsilon:g}",
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
