"""Do intervals cover? Per value and per cell, on releases of one and of several columns as `sanitise` makes them.

python -m benchmarks coverage                                                      Adult: one column, and two
python -m benchmarks.coverage people.csv SECRET PUBLISH[,PUBLISH…] [EPSILON …]     a table of yours; numbers in bins

The protocol is made once, with the exact shares in its file; the table is drawn DRAWS times, and `estimate` gives 95 %
intervals for every column and, where there are several, for the cross table of the first two: without the shares, and
calibrated to them. Printed is how often they hold the truth, on average and for the least and the most covered value,
and their mean width in points. A value that is told exactly is left out. With n draws a value whose interval covers
95 % is seen to do so 95 % ± 1.96 √(.05 · .95 / n).
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from privacyfunnel.arrays import FloatArray
from privacyfunnel.audits.matched_table import MatchedTable
from privacyfunnel.estimation import estimate
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.release.apply import apply
from privacyfunnel.release.design import design
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.adult import write_adult_csv
from privacyfunnel.tables.readers.eager_frames import FrameTable

DRAWS = 200
CASES = (("marital-status", ("education",)), ("income", ("education", "sex")), ("occupation", ("relationship", "race")))
EPSILONS = (0.5, 1.0)


def measured(people: pl.DataFrame, secret: str, publish: tuple[str, ...], epsilon: float) -> None:
    """The lines of one release."""
    sealed = design(
        people,
        ReleaseSpec(prior="table", secret=secret, publish=publish, epsilon=epsilon, with_shares=True, use=Statistics()),
    )
    tables: list[tuple[str, ...]] = [(name,) for name in publish]
    if len(publish) > 1:
        tables.append(publish[:2])
    for shares in (False, True):
        found = _covered(sealed, people, tables, shares=shares)
        for columns, (covered, width) in found.items():
            if not len(covered):  # all are told exactly
                continue
            told = f"{covered.mean():.3f} ({covered.min():.3f}–{covered.max():.3f})"
            print(
                f"   {secret} → {', '.join(publish)}  ε {epsilon:<4g} {' × '.join(columns):<28}"
                f"{'with shares' if shares else 'alone':<12} {told}  {len(covered):>3} cells  ±{50 * width:.3f} points",
                flush=True,
            )


def _covered(
    sealed: SealedProtocol, people: pl.DataFrame, tables: list[tuple[str, ...]], *, shares: bool
) -> dict[tuple[str, ...], tuple[FloatArray, float]]:
    truth = {columns: _shares(sealed, people, columns) for columns in tables}
    held: dict[tuple[str, ...], list[list[bool]]] = {columns: [] for columns in tables}
    wide: dict[tuple[str, ...], list[list[float]]] = {columns: [] for columns in tables}
    for seed in range(DRAWS):
        drawn = apply(sealed, people, ReleaseSpec(seed=seed)).table
        for table in estimate(sealed, drawn, columns=tables, shares=shares):
            cells = [(cell, truth[table.columns].get(cell.labels, 0.0)) for cell in table.cells]
            held[table.columns].append([cell.lower <= true <= cell.upper for cell, true in cells])
            wide[table.columns].append([cell.upper - cell.lower for cell, _ in cells])
    found = {}
    for columns in tables:
        width = np.mean(wide[columns], axis=0)
        random = width > 1e-9
        found[columns] = (np.mean(held[columns], axis=0)[random], float(width[random].mean()) if random.any() else 0.0)
    return found


def _shares(sealed: SealedProtocol, people: pl.DataFrame, columns: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    """The true shares, of the labels that the protocol has."""
    joint = MatchedTable.match(FrameTable.from_native(people), sealed, ()).joint
    place = {at.name: j for j, at in enumerate(joint.attributes)}
    shares: dict[tuple[str, ...], float] = {}
    for labels, share in zip(joint.values, joint.p_x.tolist(), strict=True):
        cell = tuple(labels[place[name]] for name in columns)
        shares[cell] = shares.get(cell, 0.0) + share
    return shares


def main(words: list[str] | None = None) -> None:
    """Print the coverage on Adult, or on the table that is named."""
    print(
        f"   95 % intervals, {DRAWS} draws: covered on average (least – most) over values or cells; half the mean width"
    )
    if words:
        people, secret, publish = pl.read_csv(words[0]), words[1], tuple(words[2].split(","))
        for epsilon in map(float, words[3:] or map(str, EPSILONS)):
            measured(people, secret, publish, epsilon)
        return
    with TemporaryDirectory() as folder:
        write_adult_csv(Path(folder) / "adult.csv")
        people = pl.read_csv(Path(folder) / "adult.csv")
    for secret, publish in CASES:
        for epsilon in EPSILONS:
            measured(people, secret, publish, epsilon)


if __name__ == "__main__":
    main(sys.argv[1:])
