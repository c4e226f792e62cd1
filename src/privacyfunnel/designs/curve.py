"""Curves: what each method keeps, and what any could keep, against ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from privacyfunnel.designs.methods import METHODS, SEE_SECRET, Effort, make
from privacyfunnel.errors import GuaranteeError, ParameterError, SizeError
from privacyfunnel.model.information import entropy, mutual_information
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
        return tuple(sorted({point.epsilon for point in self.points}))

    def lines(self) -> Iterator[tuple[str, tuple[Point, ...]]]:
        """The points of each method, by ε."""
        for name in dict.fromkeys(point.name for point in self.points):
            yield name, tuple(sorted((p for p in self.points if p.name == name), key=lambda p: p.epsilon))


def curve(
    joint: Joint,
    promise: str = "lip",
    *,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str] = (),
    sees_secret: bool = False,
    effort: Effort | None = None,
) -> Curve:
    """Utility and bound of every method at every ε; with `sees_secret` also of the best that looks at the secret."""
    if not epsilons:
        raise ParameterError("a curve needs at least one ε; there is none. Name some, such as 0.5,1,2.")
    lines = [(name, name in SEE_SECRET) for name in methods or METHODS]
    if sees_secret:
        lines.insert(1, ("optimal", True))
    points = [
        _point(joint, promise_called(promise, epsilon), name, seeing, effort)
        for name, seeing in lines
        for epsilon in sorted(epsilons)
    ]
    return Curve(promise, entropy(joint.p_x), tuple(points))


def _point(joint: Joint, promise: Promise, method: str, seeing: bool, effort: Effort | None) -> Point:
    name = f"{method}, sees secret" if seeing else method
    try:
        made = make(method, joint, promise, sees_secret=seeing, effort=effort)
    except (GuaranteeError, SizeError):
        return Point(name, promise.epsilon, None, None)
    return Point(name, promise.epsilon, mutual_information(joint, made.protocol), made.bound)
