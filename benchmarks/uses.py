"""Statistics: n × total squared error of all shares, for the best protocol with its bound and beside others.

python -m benchmarks.uses                    every row
python -m benchmarks.uses education LDP       the rows whose name has all of these words
python -m benchmarks.uses zipf                tables of hundreds of values, each in a process of its own

Columns: GRR, OUE (with its efficient estimator), CR and subset selection, each as loud as the promise allows; the most
informative protocol; the best for statistics, its bound, the gap, processor and other seconds; what repeated draws of
the table showed; and, where multi-freq-ldpy is installed, the error of its estimates at the same ε, which it promises
for the published value itself.
"""

import sys
import time
from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations

import numpy as np

from benchmarks.goals.case import Case, Found, Work, printed
from benchmarks.goals.zipf import zipf
from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.experiments.adult_curves import unary_encoding
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics
from privacyfunnel.tables.readers.adult import adult_counts

GAP, SECONDS = 1e-3, 20.0  # what each row is to reach
HARD = ("occupation", "education", LDP(0.5)), 0.05, 120.0
LARGE_GAP, LARGE_SECONDS, SEEDS = 0.02, 120.0, 5  # the same with hundreds of values, on so many tables
TIMES = 10  # as good as randomised response, at least, with hundreds of values
DRAWS = 40  # tables that are drawn
ALL = Statistics()


@cache
def adult(secret: str, publish: str) -> Joint:
    """Adult, all rows."""
    return Joint.from_counts(adult_counts(secret, publish)[0])


def rows() -> Iterator[tuple[str, str, Promise]]:
    """The table."""
    for pair in (("marital-status", "relationship"), ("marital-status", "education"), ("occupation", "education")):
        for promise in (LIP(0.5), LIP(1.0), LIP(2.0), LDP(0.5), LDP(1.0), LDP(2.0)):
            yield *pair, promise


def sets_of(joint: Joint, alpha: float) -> Protocol:
    """Unary encoding as a table of all sets, so that its efficient estimator has its error by the same formula."""
    a, foreign = joint.a, 1 / (1 + np.exp(alpha))
    members = (np.arange(1 << a)[:, None] >> np.arange(a)) & 1
    others = np.where(members == 1, foreign, 1 - foreign)
    without_own = np.exp(np.log(others).sum(axis=1, keepdims=True) - np.log(others))
    channel = 0.5 * without_own.T
    return Protocol(channel / channel.sum(axis=1, keepdims=True))


def subset_selection(joint: Joint, promise: Promise) -> float:
    """The least error over sizes of sets: a set that has the value is e^α times as likely as one that has not."""
    best = np.inf
    for size in range(1, joint.a // 2 + 1):
        has = np.array([[x in chosen for chosen in combinations(range(joint.a), size)] for x in range(joint.a)])
        low, high = 0.0, 30.0
        for _ in range(30):
            alpha = (low + high) / 2
            kept = promise.leakage(joint, _of_sets(has, alpha)) <= promise.epsilon
            low, high = (alpha, high) if kept else (low, alpha)
        best = min(best, ALL.value(joint, _of_sets(has, low)))
    return best


def _of_sets(has: FloatArray, alpha: float) -> Protocol:
    channel = np.where(has, 1.0, np.exp(-alpha))
    return Protocol(channel / channel.sum(axis=1, keepdims=True))


def drawn(joint: Joint, protocol: Protocol) -> tuple[float, float]:
    """n × the squared error that repeated draws of the table show, and its standard error."""
    p_xy = protocol.joint_with_values(joint)
    posterior = p_xy / p_xy.sum(axis=0)
    second = posterior @ p_xy.T
    estimator = posterior.T @ np.linalg.solve(second, np.diag(joint.p_x))
    counts, random = joint.weights.sum(axis=0), np.random.default_rng(0)
    n = int(counts.sum())
    errors = []
    for _ in range(DRAWS):
        seen = sum(random.multinomial(c, q) for c, q in zip(counts, protocol.channel, strict=True))
        errors.append(n * float(((np.asarray(seen) / n @ estimator - joint.p_x) ** 2).sum()))
    return float(np.mean(errors)), float(np.std(errors) / np.sqrt(DRAWS))


def frequency_oracles(joint: Joint, epsilon: float) -> dict[str, float]:
    """The same for multi-freq-ldpy's estimates, three draws each; nothing where it is not installed."""
    try:
        from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
        from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
        from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
    except ImportError:
        return {}
    values = np.repeat(np.arange(joint.a), joint.weights.sum(axis=0))
    found = {}
    for name, client, told, more in (
        ("GRR", GRR_Client, GRR_Aggregator_MI, (joint.a,)),
        ("OUE", UE_Client, UE_Aggregator_MI, ()),  # it counts the values itself
        ("SS", SS_Client, SS_Aggregator_MI, (joint.a,)),
    ):
        errors = []
        for _ in range(3):
            reports = np.array([client(int(x), joint.a, epsilon) for x in values])
            errors.append(len(values) * float(((told(reports, *more, epsilon) - joint.p_x) ** 2).sum()))
        found[name] = float(np.mean(errors))
    return found


def measured(secret: str, publish: str, promise: Promise) -> None:
    """One row."""
    joint = adult(secret, publish)
    hard = (secret, publish, promise) == HARD[0]
    gap, seconds = HARD[1:] if hard else (GAP, SECONDS)
    begun, worked = time.perf_counter(), time.process_time()
    best = optimal(joint, promise, ALL, time_limit=seconds)
    spent, worked = time.perf_counter() - begun, time.process_time() - worked
    reached = (best.value - best.bound) / best.value
    informed = optimal(joint, promise, gap=1e-5, time_limit=20.0)
    others = {
        "GRR": ALL.value(joint, randomised_response(joint, promise)),
        "OUE": ALL.value(joint, sets_of(joint, unary_encoding(joint, promise).alpha)),
        "CR": ALL.value(joint, conditional_reporting(joint, promise)),
        "SS": subset_selection(joint, promise),
        "information": ALL.value(joint, informed.protocol),
    }
    shown, error = drawn(joint, best.protocol)
    print(
        f"{secret} × {publish} {promise.name}({promise.epsilon:g})  "
        + "  ".join(f"{name} {value:.4g}" for name, value in others.items())
        + f"  statistics {best.value:.4g} [{best.bound:.4g}] gap {reached:.1e} of {gap:g}  {worked:.1f} processor, "
        f"{spent:.1f} of {seconds:g} s  outputs {best.protocol.channel.shape[1]}  "
        f"drawn {shown:.4g} ± {error:.1g}  I {informed.utility:.4f} → {best.utility:.4f}  "
        f"{'reached' if reached <= gap * 1.01 else 'MISSED'}",
        flush=True,
    )
    if promise.name == "LDP":
        for name, value in frequency_oracles(joint, promise.epsilon).items():
            print(f"   multi-freq-ldpy {name}, drawn: {value:.4g}", flush=True)


def cases(seeds: int) -> Iterator[Case]:
    """Tables of hundreds of values; they are part of benchmarks.size."""
    for seed in range(seeds):
        yield at_size(200, seed, LIP(1.0), LARGE_GAP)
    yield at_size(1000, 0, LIP(1.0), None)


def other_promises() -> Iterator[Case]:
    """The first of them under other promises."""
    for promise in (LIP(0.5), LDP(1.0), SRLIP(1.0)):
        yield at_size(200, 0, promise, LARGE_GAP)


def at_size(values: int, seed: int, promise: Promise, gap: float | None) -> Case:
    """One table."""
    name = f"statistics zipf 5 × {values:,} {promise.name} {promise.epsilon:g} seed {seed}"
    return Case(name, partial(solved, values, seed, promise), LARGE_SECONDS, gap)


def solved(values: int, seed: int, promise: Promise, seconds: float) -> Work:
    """How far the best is proved, and how much better it is than randomised response."""
    joint = zipf(5, values, seed)
    classic = ALL.value(joint, randomised_response(joint, promise))

    def solve() -> Found:
        best = optimal(joint, promise, ALL, time_limit=seconds)
        times = classic / best.value
        said = f"error {best.value:.4g} of at least {best.bound:.4g}, {times:.0f} times as good as GRR {classic:.4g} "
        said += f"(goal {TIMES})"
        kept = best.bound > 0 and times >= TIMES
        return Found(said, (best.value - best.bound) / best.value, kept, best.stopped.value)

    return solve


def both_kept() -> None:
    """Information and statistics at once."""
    joint, promise = adult("occupation", "education"), LIP(1.0)
    for kept in (0.97, 0.99, 0.999):
        worked = time.process_time()
        best = optimal(joint, promise, Balanced(kept), time_limit=60.0)
        bound = best.sealed.bound if best.sealed is not None and best.sealed.bound is not None else best.utility
        print(
            f"balanced, occupation × education LIP(1): {best.utility / bound:.2%} of {bound:.4f} nats at "
            f"{best.value:.4g} [{best.bound:.4g}]  {time.process_time() - worked:.1f} processor s",
            flush=True,
        )


def main(words: list[str] | None = None) -> None:
    """Print the table, or the rows that are asked for."""
    for secret, publish, promise in rows():
        name = f"{secret} {publish} {promise.name} {promise.epsilon:g}"
        if all(word in name for word in words or []):
            measured(secret, publish, promise)
    if not words or "balanced" in words:
        both_kept()
    at_sizes = cases(SEEDS) if words else ()  # without words benchmarks.size has them
    printed(case for case in (*at_sizes, *other_promises()) if all(word in case.name for word in words or []))


if __name__ == "__main__":
    main(sys.argv[1:])
