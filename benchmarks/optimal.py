"""The optimum with its proof: gap reached and seconds taken, beside the goals and beside vertex enumeration.

python -m benchmarks.optimal                 every case
python -m benchmarks.optimal dirichlet adult  the cases whose name has one of these words
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.experiments.enumeration import enumerate_vertices, is_available, ldp_conditions
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.tables.readers.adult import adult_counts

ENUMERATION_LIMIT = 900.0
SLACK = 1.01  # what sealing may cost on top of the gap that was asked for


@dataclass(frozen=True)
class Case:
    """What to solve, the gap to reach (a share of H(X) when `relative`), and the seconds within which."""

    name: str
    joint: Callable[[], Joint]
    promises: tuple[Promise, ...]
    gap: float
    seconds: float
    relative: bool = False
    sees_secret: bool = False


@cache
def adult(secret: str, publish: str) -> Joint:
    """Adult, all rows."""
    return Joint.from_counts(adult_counts(secret, publish)[0])


@cache
def dirichlet(c: int, a: int, seed: int = 0) -> Joint:
    """p ~ Dirichlet(½)."""
    return Joint.from_probabilities(np.random.default_rng(seed).dirichlet(np.full(c * a, 0.5)).reshape(c, a))


@cache
def uniform(*shape: int) -> Joint:
    """Uniform random p."""
    p = np.random.default_rng(0).random(shape)
    return Joint.from_probabilities(p / p.sum())


def cases() -> Iterator[Case]:
    """The table of goals."""
    yield Case("adult occupation × education", lambda: adult("occupation", "education"), (LDP(0.5),), 1e-5, 10.0)
    for secret in ("marital-status", "occupation"):
        for publish in ("sex", "race", "relationship"):
            yield Case(
                f"seeing S: {secret} × {publish}",
                partial(adult, secret, publish),
                tuple(kind(e) for kind in (LIP, SRLIP) for e in (0.1, 0.5, 1.0)),
                1e-4,
                5.0,
                sees_secret=True,
            )
    yield Case(
        "seeing S: occupation × education",
        lambda: adult("occupation", "education"),
        (LIP(0.5),),
        0.01,
        60.0,
        relative=True,
        sees_secret=True,
    )
    four = tuple(SRLIP(e) for e in (0.5, 1.0, 1.5, 2.0))
    yield Case("srlip c = 2, (3,3,4), uniform", lambda: uniform(2, 3, 3, 4), four, 1e-3, 20.0)
    yield Case("dirichlet c = 2, a = 1000", lambda: dirichlet(2, 1000), (LIP(0.5),), 1e-5, 20.0)
    three = (LIP(0.5), LIP(1.0), LIP(2.0))
    yield Case("dirichlet c = 5, a = 50", lambda: dirichlet(5, 50), three, 1e-6, 5.0)
    yield Case("dirichlet c = 5, a = 200", lambda: dirichlet(5, 200), (LIP(1.0),), 0.005, 60.0, relative=True)
    yield Case("dirichlet c = 15, a = 100", lambda: dirichlet(15, 100), (LIP(1.0),), 0.01, 120.0, relative=True)


def measured(case: Case) -> None:
    """Solve a case and print a line per promise."""
    joint = case.joint()
    h_x = entropy(joint.p_x)
    gap = case.gap * h_x if case.relative else case.gap
    for promise in case.promises:
        begun = time.perf_counter()
        best = optimal(joint, promise, sees_secret=case.sees_secret, gap=gap, time_limit=case.seconds)
        seconds = time.perf_counter() - begun
        reached = best.bound - best.utility
        print(
            f"{case.name:<34} {promise.name:>5}({promise.epsilon:g})  I = {best.utility:.5f}  "
            f"gap {reached / h_x if case.relative else reached:8.2e} of {case.gap:g}{' H' if case.relative else '  '}  "
            f"{seconds:7.2f} s of {case.seconds:g}  {verdict(reached <= gap * SLACK and seconds <= case.seconds)}",
            flush=True,
        )


def verdict(reached: bool) -> str:
    """Whether a goal was reached."""
    return "reached" if reached else "MISSED"


def adult_together() -> None:
    """All 32 of Adult under LIP: one goal for their time together."""
    begun, worst = time.perf_counter(), 0.0
    for secret in ("marital-status", "occupation"):
        for publish in ("education", "relationship", "race", "sex"):
            for epsilon in (0.5, 1.0, 1.5, 2.0):
                best = optimal(adult(secret, publish), LIP(epsilon), gap=1e-6)
                worst = max(worst, best.bound - best.utility)
    seconds = time.perf_counter() - begun
    print(
        f"adult, 32 cases together, LIP: largest gap {worst:.2e} of 1e-06  {seconds:.2f} s of 5  "
        f"{verdict(worst <= 1e-6 * SLACK and seconds <= 5)}",
        flush=True,
    )


def against_delta() -> None:
    """Adult occupation × education at ε = 0.1: one solve against listing the vertices of Δ."""
    joint, promise = adult("occupation", "education"), LIP(0.1)
    begun = time.perf_counter()
    best = optimal(joint, promise, gap=1e-6)
    ours = time.perf_counter() - begun
    print(f"Δ occupation × education, LIP(0.1): ours {ours:.2f} s, gap {best.bound - best.utility:.1e}", flush=True)
    if not is_available():
        print("   cddlib is not installed; `make bench` installs it")
        return
    import cdd

    begun = time.perf_counter()
    N, D = promise.constraints(joint).dense
    e = np.exp(promise.epsilon)
    signs = np.concatenate([np.eye(joint.a), e * D - N, e * N - D])
    # Σ v = 1 takes out the last coordinate.
    rows = np.concatenate([signs[:, -1:], signs[:, :-1] - signs[:, -1:]], axis=1)
    matrix = cdd.matrix_from_array(rows.tolist(), rep_type=cdd.RepType.INEQUALITY)
    listed = len(cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array)
    theirs = time.perf_counter() - begun
    print(f"   cddlib lists {listed:,} vertices in {theirs:.1f} s: {theirs / ours:.0f} times as long (goal 10)")


def against_gamma() -> None:
    """a = 5, c = 2, ε = 0.5, LDP: one solve against listing the vertices of the paper's Γ."""
    joint, promise = uniform(2, 5), LDP(0.5)
    ours = np.inf
    for _ in range(5):
        begun = time.perf_counter()
        best = optimal(joint, promise, gap=1e-9)
        ours = min(ours, time.perf_counter() - begun)
    print(f"Γ a = 5, c = 2, LDP(0.5): ours {ours * 1e3:.1f} ms, gap {best.bound - best.utility:.1e}", flush=True)
    if not is_available():
        print("   cddlib is not installed; `make bench` installs it")
        return
    listed = enumerate_vertices(ldp_conditions(joint, promise.epsilon), joint.p_x, ENUMERATION_LIMIT)
    if listed is None:
        print(f"   cddlib did not finish in {ENUMERATION_LIMIT:.0f} s")
        return
    print(
        f"   cddlib lists {listed.vertices:,} vertices in {listed.seconds:.1f} s: "
        f"{listed.seconds / ours:.0f} times as long (goal 1000); it finds {listed.utility:.9f}, we {best.utility:.9f}"
    )


def main(words: list[str] | None = None) -> None:
    """Print the table, or the lines of the cases that are asked for."""
    if not words or any(word in "adult, 32 cases" for word in words):
        adult_together()
    for case in cases():
        if not words or any(word in case.name for word in words):
            measured(case)
    for name, compared in (("enumeration delta", against_delta), ("enumeration gamma", against_gamma)):
        if not words or any(word in name for word in words):
            compared()


if __name__ == "__main__":
    main(sys.argv[1:])
