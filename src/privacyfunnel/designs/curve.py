"""Curves: what each method keeps, and what any could keep, against ε.

Worker processes for jobs that need nothing of each other: each gets numbers and gives numbers back.

Workers are forked, so what was imported need not be imported again. They must not touch polars, whose threads do not
survive a fork. Where a system cannot fork, or there is one core, the work is done here.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self, TypeVar

from privacyfunnel.designs import methods as room
from privacyfunnel.designs.methods import Effort, Options
from privacyfunnel.errors import GuaranteeError, ParameterError, SizeError
from privacyfunnel.formatting import ShowsFacts
from privacyfunnel.model.each_secret import Each
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.promises import find_promise as promise_called
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.model.uses.use_parser import resolve_use

EPSILONS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True, slots=True)
class Point:
    """What one method keeps at one ε; None where no member of its family keeps the promise or fits."""

    name: str  # the method, and that it looks at the secret where it does
    epsilon: float
    utility: float | None  # nats
    bound: float | None  # in the use's unit: no protocol does better; None where nothing was proved
    value: float | None = None  # in the use's unit, where that is not information
    stopped: str | None = field(default=None, compare=False)  # what ended the search, where there was one
    bound_nats: float | None = field(default=None, compare=False)  # no protocol keeps more, where that was proved too

    @property
    def height(self) -> float | None:
        """What a picture shows: the value in the use's unit, which for information is the utility."""
        return self.utility if self.value is None else self.value


@dataclass(frozen=True, slots=True, repr=False)
class Curve(ShowsFacts):
    """The points of all methods, and H(X), which none exceeds."""

    promise: str
    entropy: float
    points: tuple[Point, ...]
    use: Use = field(default_factory=Information)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("promise", self.promise), ("use", self.use.name)]
        return facts + [
            (name, ", ".join(f"{p.height:.4g} at ε = {p.epsilon:g}" for p in points if p.height is not None))
            for name, points in self.lines()
        ]

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Every ε that has a point, the least first."""
        return tuple(sorted({point.epsilon for point in self.points}))

    def lines(self) -> Iterator[tuple[str, tuple[Point, ...]]]:
        """The points of each method, by ε."""
        for name in dict.fromkeys(point.name for point in self.points):
            yield name, tuple(sorted((p for p in self.points if p.name == name), key=lambda p: p.epsilon))


def line_name(method: str, sees_secret: bool) -> str:
    """What the line of a method is called."""
    return f"{method}, sees secret" if sees_secret else method


def curve(
    joint: Any,
    promise: str | Promise = "lip",
    *,
    secret: str | Sequence[str | Sequence[str]] = (),
    publish: str | Sequence[str] = (),
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str] = (),
    sees_secret: bool = False,
    use: Use | str | None = None,
    effort: Effort | None = None,
    within: float = math.inf,
    cores: int | None = 1,
) -> Curve:
    """Utility and bound of every method at every ε; with `sees_secret` also of the best that looks at the secret.

    Of a `Joint`, or of a frame with the columns that are named as secret and published. Several secrets, `["a", "b"]`,
    are promised each by itself; `[["a", "b"]]` are one secret.

    For another `use` than information, value and bound are in its own unit, and the methods those that follow it.

    The promise is a name, or one of the kind that is meant: those nearest to its own ε are made first. Without
    `methods` all are drawn but those that work column by column. The effort's time limit is of one point; where all
    must be made `within` some seconds, each that is searched for has an equal part. `cores` says how many points are
    made at a time; None is as many as there are.
    """
    if not epsilons:
        raise ParameterError("a curve needs at least one ε; there is none. Name some, such as 0.5,1,2.")
    single: list[str] = []
    if not isinstance(joint, Joint):
        names = [secret] if isinstance(secret, str) else list(secret)
        single = [at for at in names if isinstance(at, str)]
        columns = single or [at for group in names for at in group]
        joint = Joint.from_table(joint, secret=columns, publish=publish)
    like = promise_called(promise, 1.0) if isinstance(promise, str) else promise
    if len(single) > 1:
        like = Each.of_columns(like, dict.fromkeys(single))
    use = resolve_use(use) or Information()
    use.refuse(joint)
    table = [room.find_method(name) for name in methods or default_methods(use)]
    lines = [(method, method.always_sees_secret) for method in table]
    if sees_secret:
        lines.insert(1, (room.find_method("optimal"), True))
    effort = effort or Effort()
    most = 1 if effort.progress else cores or os.cpu_count() or 1  # who watches a proof watches it here
    effort = replace(
        effort, time_limit=_seconds_per_search(within, len(epsilons) * sum(m.searches for m, _ in lines), most, effort)
    )
    jobs = [
        (
            joint,
            like.with_epsilon(epsilon),
            method.name,
            Options(sees_secret=seeing, use=use, orders=use.orders, effort=effort),
        )
        for epsilon in sorted(epsilons, key=lambda size: _log_distance(size, like.epsilon))
        for method, seeing in lines
    ]
    with Workers(min(len(jobs), most)) as workers:
        solved = {(point.name, point.epsilon): point for point in workers.run(_point, jobs)}
    points: list[Point] = []
    for method, seeing in lines:
        name = line_name(method.name, seeing)
        line = [solved[name, epsilon] for epsilon in sorted(epsilons)]
        points += enforce_monotonicity(line, use.less_is_better) if use.ignores_promise else line
    return Curve(like.name.lower(), entropy(joint.p_x), tuple(points), use)


def enforce_monotonicity(line: Sequence[Point], less_is_better: bool = False) -> list[Point]:
    """The points of one method by ε, each at least as good as those before it, its bound no wider than those after.

    A protocol that keeps ε keeps every larger one, and what no protocol exceeds at a larger ε none exceeds at a smaller
    one. Only a search that was cut short is ever mended by this.

    >>> line = [Point("optimal", 0.5, 4.1, 5.0), Point("optimal", 1.0, 3.7, 4.9), Point("optimal", 2.0, None, None)]
    >>> [(point.utility, point.bound) for point in enforce_monotonicity(line)]
    [(4.1, 4.9), (4.1, 4.9), (4.1, None)]
    """
    good = -1.0 if less_is_better else 1.0
    kept: list[Point] = []
    for point in line:
        known = [each for each in (point, *kept[-1:]) if each.height is not None]
        kept.append(max(known, key=lambda each: good * (each.height or 0.0), default=point))
    bounds: list[float | None] = []
    for point in reversed(line):
        limits = [bound for bound in (point.bound, *bounds[-1:]) if bound is not None]
        bounds.append(min(limits, key=lambda bound: good * bound, default=None))
    return [
        replace(point, utility=best.utility, value=best.value, bound=bound)
        for point, best, bound in zip(line, kept, reversed(bounds), strict=True)
    ]


def _seconds_per_search(within: float, searches: int, at_a_time: int, effort: Effort) -> float | None:
    """The seconds of each of so many searches."""
    limits = [effort.time_limit, within / max(-(-searches // at_a_time), 1)]
    return min((limit for limit in limits if limit is not None and limit < math.inf), default=None)


def _log_distance(one: float, other: float) -> float:
    """How far apart two sizes of a promise are, as a factor; a promise of nothing comes last."""
    return abs(math.log(one / other)) if one > 0 and other > 0 else math.inf


def default_methods(use: Use | None = None) -> list[str]:
    """The methods that a curve shows where none are named: those for whole records that serve the use."""
    use = use or Information()
    return [name for name, method in room.METHODS.items() if name != room.REAL_OR_SYNTHETIC and method.serves(use)]


def _point(joint: Joint, promise: Promise, method: str, options: Options) -> Point:
    name = line_name(method, options.sees_secret)
    try:
        found = room.find_method(method).design(joint, promise, options)
    except (GuaranteeError, SizeError):
        return Point(name, promise.epsilon, None, None)
    worth = found.worth
    value = None if worth.use == Information() else worth.value
    in_nats = None if value is None else found.bound
    return Point(name, promise.epsilon, found.information, worth.bound, value, worth.stopped, in_nats)


Answer = TypeVar("Answer")
LOOK = 0.2  # seconds between looks for a signal
ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Workers:
    """Processes that live as long as one piece of work; when that fails or is interrupted, they end at once."""

    def __init__(self, most: int | None = None) -> None:
        self._most = (os.cpu_count() or 1) if most is None else most
        self._pool: ProcessPoolExecutor | None = None
        self._processes: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is None:
            return
        if error is not None:  # nobody waits for their answers any more
            for process in self._processes:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)

    def run(self, work: Callable[..., Answer], jobs: Sequence[tuple[Any, ...]]) -> list[Answer]:
        """The answers to the jobs, which begin in order."""
        pool = self._open_pool(len(jobs))
        if pool is None:
            return [work(*job) for job in jobs]
        futures: list[Future[Answer]] = [pool.submit(work, *job) for job in jobs]
        _wait(futures)
        return [future.result() for future in futures]

    def _open_pool(self, jobs: int) -> ProcessPoolExecutor | None:
        if min(jobs, self._most) < 2 or "fork" not in multiprocessing.get_all_start_methods():
            return None
        if self._pool is None:
            here = multiprocessing.get_context("fork")
            before = set(multiprocessing.active_children())
            with _block_signals():  # a worker must not take one for its parent, whose handlers it is born with
                self._pool = ProcessPoolExecutor(self._most, here, initializer=_begin, initargs=(os.getpid(),))
                self._pool.submit(os.getpid)  # the first job forks them all
            self._processes = set(multiprocessing.active_children()) - before
        return self._pool


def _wait(futures: Sequence[Future[Any]]) -> None:
    """Wait for all of them; raise what one fails with at once."""
    # A signal that another thread receives does not wake this one: it looks by itself, again and again.
    while wait(futures, LOOK, FIRST_EXCEPTION).not_done:
        for future in futures:
            if future.done():
                future.result()


@contextmanager
def _block_signals() -> Iterator[None]:
    """Signals that end the program come after the body, not within it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int) -> None:
    """Ctrl-C reaches every process of the terminal: the parent speaks, and ends its workers."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    _watch_parent(parent)


def _watch_parent(parent: int) -> None:
    """A worker waits for work for ever; it must not when whoever would send it was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
