"""Curves: what each method keeps, and what any could keep, against ε."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from privacyfunnel.designs import methods as room
from privacyfunnel.designs.methods import Effort, Options
from privacyfunnel.errors import GuaranteeError, ParameterError, SizeError
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.promises import promise as promise_called

EPSILONS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True, slots=True)
class Point:
    """I(X;Y) of one method at one ε; None where no member of its family keeps the promise or fits."""

    name: str  # the method, and that it looks at the secret where it does
    epsilon: float
    utility: float | None
    bound: float | None  # nats: no protocol keeps more; None where nothing was proved


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of all methods, and H(X), which none exceeds."""

    promise: str
    entropy: float
    points: tuple[Point, ...]

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
    joint: Joint,
    promise: str | Promise = "lip",
    *,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str] = (),
    sees_secret: bool = False,
    effort: Effort | None = None,
    known: Sequence[Point] = (),
    seconds: float = math.inf,
    cores: int | None = 1,
) -> Curve:
    """Utility and bound of every method at every ε; with `sees_secret` also of the best that looks at the secret.

    The promise is a name, or one of the kind that is meant: those nearest to its own ε are made first. Without
    `methods` all are drawn but those that work column by column. Points that are `known` are not made again, and
    those that have not begun after so many `seconds` are left out. `cores` says how many points are made at a time;
    None is as many as there are.
    """
    from privacyfunnel.designs.workers import Workers

    if not epsilons:
        raise ParameterError("a curve needs at least one ε; there is none. Name some, such as 0.5,1,2.")
    like = promise_called(promise, 1.0) if isinstance(promise, str) else promise
    table = [room.method(name) for name in methods or drawn_by_default()]
    lines = [(method, method.looks) for method in table]
    if sees_secret:
        lines.insert(1, (room.method("optimal"), True))
    solved = {(point.name, point.epsilon): point for point in known}
    effort = effort or Effort()
    jobs = [
        (joint, like.resized(epsilon), method.name, Options(sees_secret=seeing, effort=effort))
        for epsilon in sorted(epsilons, key=lambda size: _apart(size, like.epsilon))
        for method, seeing in lines
        if (line_name(method.name, seeing), epsilon) not in solved
    ]
    most = min(len(jobs), cores or os.cpu_count() or 1)
    with Workers(1 if effort.progress else most) as workers:  # who watches a proof watches it here
        made = workers.until(time.monotonic() + seconds, _point, jobs).values()
    solved |= {(point.name, point.epsilon): point for point in made}
    points: list[Point] = []
    for method, seeing in lines:
        name = line_name(method.name, seeing)
        points += never_falling([solved[name, epsilon] for epsilon in sorted(epsilons) if (name, epsilon) in solved])
    return Curve(like.name.lower(), entropy(joint.p_x), tuple(points))


def never_falling(line: Sequence[Point]) -> list[Point]:
    """The points of one method by ε, each at least as good as those before it, its bound no higher than those after.

    A protocol that keeps ε keeps every larger one, and what no protocol exceeds at a larger ε none exceeds at a smaller
    one. Only a search that was cut short is ever mended by this.

    >>> line = [Point("optimal", 0.5, 4.1, 5.0), Point("optimal", 1.0, 3.7, 4.9), Point("optimal", 2.0, None, None)]
    >>> [(point.utility, point.bound) for point in never_falling(line)]
    [(4.1, 4.9), (4.1, 4.9), (4.1, None)]
    """
    kept: list[float | None] = []
    for point in line:
        known = [value for value in (point.utility, kept[-1] if kept else None) if value is not None]
        kept.append(max(known, default=None))
    bounds: list[float | None] = []
    for point in reversed(line):
        known = [value for value in (point.bound, bounds[-1] if bounds else None) if value is not None]
        bounds.append(min(known, default=None))
    return [
        replace(point, utility=utility, bound=bound)
        for point, utility, bound in zip(line, kept, reversed(bounds), strict=True)
    ]


def _apart(one: float, other: float) -> float:
    """How far apart two sizes of a promise are, as a factor; a promise of nothing comes last."""
    return abs(math.log(one / other)) if one > 0 and other > 0 else math.inf


def drawn_by_default() -> list[str]:
    """The methods that a curve shows where none are named: those for whole records."""
    return [name for name, method in room.METHODS.items() if not method.by_column]


def _point(joint: Joint, promise: Promise, method: str, options: Options) -> Point:
    name = line_name(method, options.sees_secret)
    try:
        found = room.method(method).design(joint, promise, options)
    except (GuaranteeError, SizeError):
        return Point(name, promise.epsilon, None, None)
    return Point(name, promise.epsilon, found.information, found.bound)
