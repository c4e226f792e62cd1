"""Cases with goals: each in a process of its own, with its gap, its seconds and its peak memory beside what is to be.

Seconds are those of the processor, which other programs disturb less; limits of searches are by the clock, so that a
machine that does other things meanwhile shows larger gaps.
"""

import multiprocessing
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

SLACK = 1.1, 2.0  # a limit may be overrun by a tenth, or by so many seconds
GIGABYTES = 4.0  # where nothing else was asked


class Found(NamedTuple):
    """What came of a case."""

    said: str
    gap: float | None = None  # between what was found and what was proved, a share
    holds: bool = True  # whether what else was asked is so
    stopped: str | None = None  # by what the search ended


Work = Callable[[], Found]


@dataclass(frozen=True)
class Case:
    """What to do within which seconds and gigabytes, and the gap to reach; None where none was asked for."""

    name: str
    prepared: Callable[[float], Work]  # of those seconds; making the table does not count
    seconds: float
    gap: float | None = None
    gigabytes: float = GIGABYTES


class Line(NamedTuple):
    """What is printed of a case, the seconds it took, and whether it reached its goal."""

    text: str
    seconds: float = np.nan
    reached: bool = False


def printed(cases: Iterable[Case]) -> dict[str, Line]:
    """A line for each case, as soon as it is done; which one is at work is said beside the table. All of them."""
    all_of_them, begun, lines = list(cases), time.perf_counter(), {}
    for number, case in enumerate(all_of_them, 1):
        spent = time.perf_counter() - begun
        doing = f"[{number} of {len(all_of_them)}, after {spent:,.0f} s] {case.name}: about {case.seconds:g} s"
        print(doing, file=sys.stderr, flush=True)
        lines[case.name] = alone(case)
        print(f"{case.name:<52} {lines[case.name].text}", flush=True)
    return lines


def alone(case: Case) -> Line:
    """What came of a case, in a process of its own."""
    processes = multiprocessing.get_context("fork")
    mine, theirs = processes.Pipe(duplex=False)

    def run(answer: Connection) -> None:
        answer.send(measured(case))

    child = processes.Process(target=run, args=(theirs,))
    child.start()
    theirs.close()
    try:
        return Line(*mine.recv())
    except EOFError:
        return Line("ended without an answer  MISSED")
    finally:
        child.join()


def measured(case: Case) -> Line:
    """The line of a case."""
    work = case.prepared(case.seconds)
    begun, from_processor = time.perf_counter(), processor()
    found = work()
    seconds, worked, memory = time.perf_counter() - begun, processor() - from_processor, peak()
    on_time = worked <= max(SLACK[0] * case.seconds, case.seconds + SLACK[1])
    near = case.gap is None or (found.gap is not None and found.gap <= case.gap)
    reached = on_time and near and found.holds and memory <= case.gigabytes
    asked = "" if case.gap is None else f" of {100 * case.gap:g}"
    gap = "no gap" if found.gap is None else f"gap {100 * found.gap:.2f}{asked} %"
    return Line(
        f"{gap:<18} {worked:6.1f} of {case.seconds:g} s ({seconds:.1f} by the clock)  "
        f"{memory:.2f} of {case.gigabytes:g} GB  {'reached' if reached else 'MISSED'}  {found.said}"
        f"{f', stopped by {found.stopped}' if found.stopped else ''}",
        worked,
        reached,
    )


def processor() -> float:
    """Seconds of the processor that this process used, and those that it started and waited for."""
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + started.ru_utime + started.ru_stime


def peak() -> float:
    """Gigabytes that this process held at most. Not ru_maxrss, which begins with what its parent used."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found[1]) / 2**20 if found else np.nan


def chosen(cases: Iterable[Case], words: Iterable[str]) -> list[Case]:
    """The cases whose name has one of these words; all where there are none."""
    asked = list(words)
    return [case for case in cases if not asked or any(word in case.name for word in asked)]
