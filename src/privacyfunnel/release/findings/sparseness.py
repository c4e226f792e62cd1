"""Sparse tables: where combinations give the secret away, and what fewer columns or coarser bins would change.

Where most combinations occur once, X all but determines S in the table, and the promise forces heavy mixing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from privacyfunnel.formatting import format_percent
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.names import shortest_text
from privacyfunnel.tables.coding.bins import bin_labels

REVEALING_SHARE = 0.02  # the share of rows whose combination tells the secret from which on the summary says so


@dataclass(frozen=True, slots=True)
class SmallerTable:
    """The table after one change: a column less, or coarser bins."""

    change: str
    joint: Joint

    @property
    def revealing_share(self) -> float:
        return revealing_share(self.joint)


def sparseness_advice(joint: Joint, edges: Mapping[str, tuple[float, ...]]) -> str:
    """What to know where combinations tell the secret of many rows, and which change helps most; else nothing."""
    share = revealing_share(joint)
    if share < REVEALING_SHARE:
        return ""
    sentence = f"in your file the published values of {format_percent(share)} of the rows decide the secret"
    best = min(smaller_tables(joint, edges), key=lambda table: table.revealing_share, default=None)
    if best is None or best.revealing_share >= share:
        return sentence
    return (
        f"{sentence}; {best.change} and it is {format_percent(best.revealing_share)}, and shares become more accurate"
    )


def smaller_tables(joint: Joint, edges: Mapping[str, tuple[float, ...]]) -> Iterator[SmallerTable]:
    """A column less each, and every second edge less in each binned column; `edges` are those of bins, by name."""
    for j, attribute in enumerate(joint.attributes):
        if joint.m > 1:
            table = joint.project([k for k in range(joint.m) if k != j])
            yield SmallerTable(f"leave out {attribute.name}", table)
        mine = edges.get(attribute.name, ())
        if len(mine) > 1:
            fewer = ",".join(map(shortest_text, mine[1::2]))
            table = joint.relabel(j, _coarsen_labels(attribute.labels, mine))
            yield SmallerTable(f"use {hint('bins', f'{attribute.name}={fewer}')}", table)


def _coarsen_labels(labels: tuple[str, ...], edges: tuple[float, ...]) -> list[str]:
    """The labels of bins after every second edge was taken away; what is no bin stays.

    >>> _coarsen_labels(("under 0", "0–17", "18–64", "65+", "NA"), (0.0, 18.0, 65.0))
    ['under 18', 'under 18', '18+', '18+', 'NA']
    """
    names = bin_labels(edges[1::2])
    becomes = {label: names[i // 2] for i, label in enumerate(bin_labels(edges))}
    return [becomes.get(label, label) for label in labels]


def revealing_share(joint: Joint) -> float:
    """The share of rows whose combination leaves only one value of the secret."""
    alone = (joint.weights > 0).sum(axis=0) == 1
    return float(joint.p_x[alone].sum())
