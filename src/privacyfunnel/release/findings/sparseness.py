"""Sparse tables: where combinations give the secret away, and what fewer columns or coarser bins would change.

Where most combinations occur once, X all but determines S in the table, and the promise forces heavy mixing. A smaller
table gives less away, so of what it has to say a larger share is kept. It never keeps more nats than the best protocol
of the whole table could, which may always leave a column out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.designs.methods import Method, find_method
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.hints import hint
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.design import QUICK, DesignResult
from privacyfunnel.tables.coding.bins import bin_labels, format_number

MOST_TRIALS = 3  # smaller tables that are looked at closely
SECONDS = 15.0  # for all of them, or what is left of a time limit; a chain that has begun is finished
REVEALING_SHARE = 0.02  # the share of rows whose combination tells the secret from which on the summary says so

Keeps = Callable[[Joint], float | None]  # about how many nats the method in use would keep of a table


@dataclass(frozen=True, slots=True)
class SmallerTable:
    """The table after one change: a column less, or coarser bins."""

    change: str
    combinations: int
    revealing_share: float
    entropy: float  # nats
    kept: float | None = None  # nats, about; None where that was not found out

    def __str__(self) -> str:
        kept = ""
        if self.kept is not None:
            most = min(self.kept, self.entropy)
            share = f" ({most / self.entropy:.0%})" if self.entropy else ""
            kept = f", and about {most:.2f} of {self.entropy:.2f} nats{share} would be kept"
        return f"{self.change} it would be {self.revealing_share:.0%}{kept}"


@dataclass(frozen=True, slots=True)
class Sparseness:
    """How far a table's combinations of values give its secret away, and how far smaller tables would."""

    columns: int
    combinations: int
    once: float  # the share of combinations that occur once
    revealing_share: float  # the share of rows whose combination leaves only one value of the secret
    smaller: tuple[SmallerTable, ...]  # those that give least away first

    def __str__(self) -> str:
        one, many = ("value", "values") if self.columns == 1 else ("combination", "combinations")
        said = (
            f"{self.combinations:,} {many} occur, {self.once:.0%} of them once; "
            f"{self.revealing_share:.0%} of the rows have a {one} that tells the secret."
        )
        helpful = [other for other in self.smaller[:MOST_TRIALS] if other.revealing_share < self.revealing_share]
        return " ".join([said, *(f"{_capitalise(str(other))}." for other in helpful)])


def sparseness(
    joint: Joint,
    edges: Mapping[str, tuple[float, ...]] | None = None,
    keeps: Keeps | None = None,
    seconds: float = SECONDS,
) -> Sparseness:
    """What the combinations give away; `edges` are those of binned columns, by name."""
    counts = joint.weights.sum(axis=0)
    deadline = time.monotonic() + seconds
    tables = [(_revealing_share(table), change, table) for change, table in _smaller_tables(joint, edges or {})]
    tables.sort(key=lambda found: found[0])
    smaller: list[SmallerTable] = []
    for told, change, table in tables:
        other = SmallerTable(change, table.a, told, entropy(table.p_x))
        if keeps is not None and len(smaller) < MOST_TRIALS and time.monotonic() < deadline:
            other = replace(other, kept=keeps(table))
        smaller.append(other)
    return Sparseness(joint.m, joint.a, float(np.mean(counts == 1)), _revealing_share(joint), tuple(smaller))


def sparseness_advice(found: DesignResult) -> str:
    """What to know where combinations tell the secret of many rows; else nothing."""
    if _revealing_share(found.joint) < REVEALING_SHARE:
        return ""
    from privacyfunnel.engine.clock import Clock

    mine, clock = find_method(found.choice.method), Clock.from_limit(_seconds(found))

    def keeps(table: Joint) -> float | None:
        """How many nats the method would keep if it had seconds only; None where it cannot be followed there."""
        if table.a < 2:
            return 0.0
        effort = replace(QUICK, time_limit=min(clock.seconds_left, QUICK.time_limit or SECONDS))
        try:
            return mine.estimate_information(
                table, found.sealed.promise, replace(found.information_options, effort=effort)
            )
        except PrivacyFunnelError:  # the release itself is done, and stands
            return None

    # What is found quickly is less than what was found; it is the comparison that counts.
    whole = found.sealed.information if _is_quick(found, mine) or clock.late else keeps(found.joint)
    scale = found.sealed.information / whole if whole else 1.0
    return str(
        sparseness(found.joint, found.sealed.domain.bins, lambda table: _scale(keeps(table), scale), clock.seconds_left)
    )


def _seconds(found: DesignResult) -> float:
    """What there is time for: of a time limit, what the design itself left."""
    limit = found.options.effort.time_limit
    return SECONDS if limit is None else min(SECONDS, max(limit - found.seconds, 0.0))


def _is_quick(found: DesignResult, mine: Method) -> bool:
    """Whether the release itself took no longer than a smaller table gets: then it need not be made again."""
    quick = mine.trial is None and found.options.use == found.information_options.use
    return quick and QUICK.time_limit is not None and found.seconds <= QUICK.time_limit


def _scale(kept: float | None, scale: float) -> float | None:
    return None if kept is None else kept * scale


def _smaller_tables(joint: Joint, edges: Mapping[str, tuple[float, ...]]) -> Iterator[tuple[str, Joint]]:
    """A column less each, and every second edge less in each binned column."""
    for j, attribute in enumerate(joint.attributes):
        if joint.m > 1:
            yield f"without {attribute.name}", joint.project([k for k in range(joint.m) if k != j])
        mine = edges.get(attribute.name, ())
        if len(mine) > 1:
            fewer = ",".join(map(format_number, mine[1::2]))
            labels = _coarsen_labels(attribute.labels, mine)
            yield f"with {hint('bins', f'{attribute.name}={fewer}')}", joint.relabel(j, labels)


def _coarsen_labels(labels: tuple[str, ...], edges: tuple[float, ...]) -> list[str]:
    """The labels of bins after every second edge was taken away; what is no bin stays.

    >>> _coarsen_labels(("< 0", "[0, 18)", "[18, 65)", ">= 65", "NA"), (0.0, 18.0, 65.0))
    ['< 18', '< 18', '>= 18', '>= 18', 'NA']
    """
    names = bin_labels(edges[1::2])
    becomes = {label: names[i // 2] for i, label in enumerate(bin_labels(edges))}
    return [becomes.get(label, label) for label in labels]


def _revealing_share(joint: Joint) -> float:
    """The share of rows whose combination leaves only one value of the secret."""
    alone = (joint.weights > 0).sum(axis=0) == 1
    return float(joint.p_x[alone].sum())


def _capitalise(text: str) -> str:
    return text[0].upper() + text[1:]
