"""Estimation: do 95 % intervals cover, which method errs least, how do others compare, how long does it take.

Adult, S = marital-status, X = education (16 values), promise LIP. Tables of n rows have Adult's shares; what is drawn
follows the sealed integers, with the secret as an input where the protocol looks at it.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.methods import Options
from privacyfunnel.designs.methods import find_method as method_called
from privacyfunnel.estimation import estimate
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.likelihood import GAP, maximum_likelihood
from privacyfunnel.estimation.observation import ChannelModel, Observations, round_counts
from privacyfunnel.estimation.output_reader import OutputReader
from privacyfunnel.estimation.share_estimates import EstimationSettings, Fit, fit_shares
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.tables.readers.adult import adult_counts

EPSILONS = (0.5, 1.0, 2.0)
TABLES = 300
ERROR_TABLES = 40
PROTOCOLS = {
    "GRR": ("randomised-response", False),
    "CR": ("conditional-reporting", False),
    "optimal": ("optimal", False),
    "optimal, sees S": ("optimal", True),
}


def adult() -> Joint:
    """Marital status and education."""
    counts, labels = adult_counts("marital-status", "education")
    return Joint.from_counts(counts, *labels, names=["education"], secret_name="marital-status")


def sealed_protocol(joint: Joint, name: str, epsilon: float) -> SealedProtocol:
    """The protocol of that name, sealed."""
    method, sees_secret = PROTOCOLS[name]
    return method_called(method).design(joint, LIP(epsilon), Options(sees_secret=sees_secret)).seal()


def table_of(joint: Joint, rows: int, rng: np.random.Generator) -> IntArray:
    """Counts of secret × value that sum to `rows`, with the joint's shares."""
    return round_counts(joint.p_sx.ravel(), rows, rng).reshape(joint.c, joint.a)


def drawn(reading: OutputReader, table: IntArray, rng: np.random.Generator) -> Observations:
    """The sanitised version of a table of counts."""
    model, law = reading.model, reading.sealed.mechanism
    own = table.sum(axis=0)
    assert isinstance(law, ChannelMechanism)
    assert isinstance(model, ChannelModel)
    channel = law.channel / law.channel.sum(axis=1, keepdims=True)
    return model.observe(rng.multinomial(table.ravel() if law.sees_secret else own, channel).sum(axis=0))


def coverage(
    joint: Joint, name: str, epsilon: float, rows: int, settings: EstimationSettings, *, tables: int = TABLES
) -> tuple[FloatArray, float]:
    """How often the interval of each value covers, and how wide it is on average; values told exactly are left out.

    A table is fixed once, and its owner makes the protocol for it; a population gives a new table every time.
    """
    rng = np.random.default_rng(rows)
    fixed = table_of(joint, rows, rng)
    owner = replace(joint, weights=fixed) if settings.fixed else joint
    reading = OutputReader.from_protocol(sealed_protocol(owner, name, epsilon))
    space = RowSpace.from_means(reading.model.means)
    covered, widths = np.zeros(joint.a), np.zeros(joint.a)
    for _ in range(tables):
        table = fixed if settings.fixed else rng.multinomial(rows, joint.p_sx.ravel()).reshape(joint.c, joint.a)
        fit = Fit.from_observed(reading.model, space, drawn(reading, table, rng), settings)
        shares = fit.shares(np.eye(joint.a), np.ones(joint.a, dtype=np.bool_))
        covered += (shares.lower <= owner.p_x + 1e-12) & (owner.p_x <= shares.upper + 1e-12)
        widths += shares.upper - shares.lower
    random = widths > tables * 1e-8
    return covered[random] / tables, float(widths.mean()) / tables


def print_coverage(joint: Joint) -> None:
    """Coverage of the intervals of both targets."""
    print(
        f"   coverage of 95 % intervals, {TABLES} tables: mean (least – most) over values not told exactly; mean width"
    )
    for name in PROTOCOLS:
        for epsilon in EPSILONS:
            line = []
            for rows in (10**4, 10**6):
                for target in ("table", "population"):
                    found, width = coverage(joint, name, epsilon, rows, EstimationSettings("ml", target=target))
                    line.append(f"{found.mean():.3f} ({found.min():.2f}–{found.max():.2f}) {width:.5f}")
            print(
                f"   {name:<16} ε {epsilon:<4} n 10⁴ table {line[0]}  population {line[1]}"
                f"   n 10⁶ table {line[2]}  population {line[3]}",
                flush=True,
            )


def total_variation(p: FloatArray, truth: FloatArray) -> float:
    """Half the sum of absolute differences."""
    return float(np.abs(p - truth).sum() / 2)


def print_errors(joint: Joint) -> None:
    """The error of each method, and of multi-freq-ldpy's protocols and estimators at the same ε and rows."""
    rows = 10**4
    print(f"   total variation distance to the table's shares, n {rows}, mean of {ERROR_TABLES} tables")
    print("   protocol               ε     inversion  projection  ml")
    for name in PROTOCOLS:
        for epsilon in EPSILONS:
            reading = OutputReader.from_protocol(sealed_protocol(joint, name, epsilon))
            errors = _errors(joint, reading, rows)
            print(
                f"   {name:<20} {epsilon:>4}     {errors[0]:.4f}     {errors[1]:.4f}      {errors[2]:.4f}", flush=True
            )
    try:
        from multi_freq_ldpy.pure_frequency_oracles import GRR, UE
    except ImportError:
        print("   multi-freq-ldpy is not installed: no comparison")
        return
    print("   multi-freq-ldpy (protects X itself at ε, a stronger promise)     inversion   IBU")
    rng = np.random.default_rng(3)
    a, truth = joint.a, table_of(joint, rows, rng).sum(axis=0) / rows
    records = np.repeat(np.arange(a), (truth * rows).round().astype(int))
    for epsilon in EPSILONS:
        errors = np.zeros(4)
        for _ in range(ERROR_TABLES):
            told = np.array([GRR.GRR_Client(x, a, epsilon) for x in records])
            sets = np.array([UE.UE_Client(x, a, epsilon, True) for x in records])
            errors += [
                total_variation(GRR.GRR_Aggregator_MI(told, a, epsilon), truth),
                total_variation(GRR.GRR_Aggregator_IBU(told, a, epsilon), truth),
                total_variation(UE.UE_Aggregator_MI(sets, epsilon, True), truth),
                total_variation(UE.UE_Aggregator_IBU(sets, a, epsilon, True), truth),
            ]
        errors /= ERROR_TABLES
        print(f"   GRR, X-LDP           {epsilon:>4}     {errors[0]:.4f}     {errors[1]:.4f}")
        print(f"   OUE, X-LDP           {epsilon:>4}     {errors[2]:.4f}     {errors[3]:.4f}", flush=True)


def _errors(joint: Joint, reading: OutputReader, rows: int) -> FloatArray:
    rng = np.random.default_rng(9)
    space = RowSpace.from_means(reading.model.means)
    eye, everything = np.eye(joint.a), np.ones(joint.a, dtype=np.bool_)
    errors = np.zeros(3)
    for _ in range(ERROR_TABLES):
        table = table_of(joint, rows, rng)
        truth = table.sum(axis=0) / rows
        seen = drawn(reading, table, rng)
        raw = (
            Fit.from_observed(reading.model, space, seen, EstimationSettings("inversion")).shares(eye, everything).share
        )
        errors[0] += total_variation(raw, truth)
        errors[1] += total_variation(fit_shares(reading.model, space, seen, "projection"), truth)
        errors[2] += total_variation(fit_shares(reading.model, space, seen, "ml"), truth)
    return errors / ERROR_TABLES


def print_speed(joint: Joint) -> None:
    """Ten million rows, and a thousand values."""
    rows = 10**7
    sealed = sealed_protocol(joint, "optimal", 1.0)
    law = sealed.mechanism
    assert isinstance(law, ChannelMechanism)
    rng = np.random.default_rng(1)
    y = sealed.sample(rng.choice(joint.a, p=joint.p_x, size=rows))[:, 0]
    labels = pl.Series("education", [label for (label,) in law.outputs])
    frame = pl.DataFrame([labels.gather(y)])
    counting = _best(lambda: frame.group_by("education").len())
    estimating = _best(lambda: estimate(sealed, frame))
    print(f"   {rows:,} rows: polars counts in {counting:.2f} s, estimate in {estimating:.2f} s  (goal: 1 s more)")
    for name, channel in (
        ("GRR, truth 0.1", 0.1 * np.eye(1000) + 0.9 / 1000),
        ("random", 0.5 * rng.dirichlet(np.full(1000, 0.1), size=1000) + 0.5 / 1000),
    ):
        counts = rng.multinomial(rows, rng.dirichlet(np.full(1000, 0.5)) @ channel).astype(np.float64)
        seconds = _best(partial(maximum_likelihood, channel, counts))
        print(f"   maximum likelihood on 1000 values ({name}) to {GAP:g} nats: {seconds:.2f} s  (goal: 10 s)")


def _best(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    """Print the tables."""
    joint = adult()
    print_speed(joint)
    print_errors(joint)
    print_coverage(joint)


if __name__ == "__main__":
    main()
