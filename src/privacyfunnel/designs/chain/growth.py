"""Growing a chain: step by step, each context is solved that enough people come to."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, entropy_terms, sparse
from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.context_channel import Channel, lump_rare
from privacyfunnel.designs.chain.context_workers import ContextWorkers
from privacyfunnel.mechanisms.chain import ChainMechanism
from privacyfunnel.mechanisms.chain_step import UNIT, Step
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import NEGLIGIBLE, format_values, number_duplicates
from privacyfunnel.names import unique_label

FEW, MANY = 64, 12_000  # contexts: while there are no more than few, each is solved thoroughly, with all its values
THOROUGH, ROUNDS, FEWEST_ROUNDS = 30, 4, 2  # rounds where contexts are few, not many, and many
MOST_VALUES = 8  # where there are more contexts, rare values of a context beyond these are treated alike
ALIKE = 12  # digits in which two contexts must agree to share a channel
LARGEST_GROWTH = 4 * 10**7  # pairs of a context and a combination it may be; about 1 GB. The likeliest go first
ANY = "(any)"  # the label of an output that says nothing
LISTED = 10  # times as long as weighing a pair takes what comes of listing it: going there, tables, labels
TICK = 1e-6  # seconds, of a clock that may stand still
LISTING_SHARE = 0.5  # of the time left, for that; the rest is for channels
PART = 1 << 18  # such pairs that are worked on at a time; each may lead to ten outputs


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """A chain grown for a joint: the law, and I(X;Y) in nats."""

    mechanism: ChainMechanism
    nats: float
    late: bool = False  # whether the clock ended it

    @property
    def contexts(self) -> int:
        """How many contexts are listed."""
        return sum(len(step.parent_output) for step in self.mechanism.steps)


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """Context `of[i]` may be combination `combo[i]`, under which what was published has chance `chance[i]`."""

    context: IntArray
    combo: IntArray
    chance: FloatArray
    parent_output: IntArray  # the output of the step before that led to each context
    cut: bool = False  # whether likely outputs are missing, for which there is no time


def grow(
    joint: Joint,
    steps: Sequence[tuple[int, ...]],
    bands: Sequence[Band],
    *,
    rows: float,
    first: Channel | None = None,
    as_values: bool = False,
    trial: bool = False,
    deadline: float = math.inf,
    workers: int | None = None,
) -> Growth:
    """The chain of these steps: of each step's outputs those are contexts of the next that as many `rows` as there are
    would show once or more, on average. In all others nothing more is said.

    `first` is the channel of the first step, where that is known already. With `as_values` every step publishes
    original values, and the contexts of the next are those. A `trial` stands for a growth with more rows: contexts
    after the first step are solved as if there were many. Nothing but the joint decides what becomes of it, unless the
    clock shows the deadline: then contexts that are not solved yet say nothing, the rarest first, and no more are
    listed than there is time to go to, as far as can be told. `workers` are as many as there are cores, unless told
    otherwise.
    """
    labels = _LabelCodes(joint)
    reach = _Reach(np.zeros(joint.a, np.int64), np.arange(joint.a), np.ones(joint.a), np.zeros(1, np.int64))
    total = 0.0
    grown: list[Step] = []
    late = False
    with ContextWorkers(workers) as crew:
        for number, (attributes, band) in enumerate(zip(steps, bands, strict=True)):
            until = deadline if number else math.inf  # one context: without it nothing would be said at all
            most = 0 if trial and number else FEW
            values, of_combo = np.unique(joint.combos[:, attributes], axis=0, return_inverse=True)
            of_combo = of_combo.reshape(-1)
            step, mass, information = _solve_step(
                joint, attributes, values, of_combo, reach, band, crew, labels, as_values, first, until, most
            )
            first = None
            grown.append(step)
            total += float(mass @ information)
            if number + 1 < len(steps):
                reach = _reach_next(joint, step, reach, of_combo, rows, deadline)
                late = late or reach.cut
        late = late or time.monotonic() >= deadline
    whole: list[Step] = []
    ended = False  # whether there are outputs after which nothing more is said
    for number, step in enumerate(grown):
        ended = ended or (number > 0 and len(step.parent_output) < len(grown[number - 1].context_of_output))
        whole.append(
            replace(step, default_labels=_silent_labels(joint, step.attributes, labels, as_values)) if ended else step
        )
    return Growth(ChainMechanism(tuple(whole), labels.columns, joint.combos), total, late)


def _silent_labels(joint: Joint, attributes: tuple[int, ...], labels: _LabelCodes, as_values: bool) -> IntArray:
    """What is shown where nothing is said: the commonest value where values are, or a label for any of them."""
    if not as_values:
        return labels.any_codes(attributes)
    values, of_combo = np.unique(joint.combos[:, attributes], axis=0, return_inverse=True)
    commonest = np.bincount(of_combo.reshape(-1), joint.p_x).argmax()
    shown: IntArray = labels.value_codes(attributes, values[commonest][None])[0]
    return shown


def _solve_step(
    joint: Joint,
    attributes: tuple[int, ...],
    values: IntArray,
    of_combo: IntArray,
    reach: _Reach,
    band: Band,
    crew: ContextWorkers,
    labels: _LabelCodes,
    as_values: bool,
    given: Channel | None,
    deadline: float,
    few: int,
) -> tuple[Step, FloatArray, FloatArray]:
    """The step's channels, the probability of each of its contexts, and what the step adds in each, in nats."""
    V = len(values)
    cells, at = _number_keys(reach.context * V + of_combo[reach.combo], len(reach.parent_output) * V)
    masses = sparse.coo_array((reach.chance, (at, reach.combo)), shape=(len(cells), joint.a))
    p_cell_s = np.asarray(sparse.csr_array(masses) @ joint.p_sx.T)
    p_cell = p_cell_s.sum(axis=1)
    context = cells // V
    contexts = len(reach.parent_output)
    mass: FloatArray = np.bincount(context, p_cell, minlength=contexts).astype(np.float64)
    prior = p_cell / mass[context]
    ratio = p_cell_s / p_cell[:, None] / joint.p_s
    starts = np.searchsorted(context, np.arange(contexts + 1))
    breaks = np.bincount(context, ~band.holds(ratio, axis=1), minlength=contexts) > 0
    hard = np.flatnonzero(breaks & (np.diff(starts) > 1))
    hard = hard[np.argsort(-mass[hard], kind="stable")]
    channels = [given] if given is not None else []
    if given is None and not len(hard):
        channels = [Channel.identity(int(n)) for n in np.diff(starts)]
    elif given is None:
        tables = [np.vstack([prior[i:j], ratio[i:j].T]) for i, j in zip(starts[hard], starts[hard + 1], strict=True)]
        most = MOST_VALUES if len(tables) > few else values.shape[0]
        small = [lump_rare(table, most) for table in tables]
        tables, groups = [table for table, _ in small], [group for _, group in small]
        shared: dict[bytes, int] = {}
        which = [shared.setdefault(np.round(table, ALIKE).tobytes(), len(shared)) for table in tables]
        different = [tables[i] for i in np.unique(which, return_index=True)[1]]
        rounds = THOROUGH if len(different) <= few else ROUNDS if len(different) <= MANY else FEWEST_ROUNDS
        found = crew.channels(different, band, rounds, deadline)
        solved = {k: found[i].refine(g) for k, i, g in zip(hard.tolist(), which, groups, strict=True)}
        sizes = np.diff(starts).tolist()
        channels = [solved[k] if k in solved else Channel.identity(n) for k, n in enumerate(sizes)]
    shown = [np.zeros(0, dtype=np.int64)]
    if as_values:
        whole = np.vstack([prior, ratio.T])
        parts = zip(channels, starts[:-1], starts[1:], strict=True)
        drawn = [channel.as_values(whole[:, i:j], band.outer_band) for channel, i, j in parts]
        channels, shown = [channel for channel, _ in drawn], [cells[i:] % V for i in starts[:-1]]
        shown = [mine[value] for mine, (_, value) in zip(shown, drawn, strict=True)]
    lengths = np.array([len(channel.value) for channel in channels])
    widths = np.array([channel.output.max() + 1 for channel in channels])
    first_output = np.cumsum(widths) - widths
    cell_of_entry = np.concatenate([c.value for c in channels]) + np.repeat(starts[:-1], lengths)
    output = np.concatenate([c.output for c in channels]) + np.repeat(first_output, lengths)
    numerator = np.concatenate([c.numerator for c in channels])
    # What the step adds: H(p) − Σ_y q_y H(v_y) in each context.
    p_entry = prior[cell_of_entry] * (numerator / UNIT)
    p_output = np.bincount(output, p_entry)
    entry_context = context[cell_of_entry]
    information = (
        np.bincount(context, entropy_terms(prior), minlength=contexts).astype(np.float64)
        + np.bincount(np.repeat(np.arange(contexts), widths), entropy_terms(p_output), minlength=contexts)
        - np.bincount(entry_context, entropy_terms(p_entry), minlength=contexts)
    )
    step = Step(
        attributes=attributes,
        values=values,
        parent_output=reach.parent_output,
        context_of_output=np.repeat(np.arange(contexts), widths),
        labels=labels.value_codes(attributes, values[np.concatenate(shown)])
        if as_values
        else labels.output_codes(attributes, values, (cells % V)[cell_of_entry], output, p_entry, widths),
        value=(cells % V)[cell_of_entry],
        output=output,
        numerator=numerator,
        default_labels=np.zeros(len(attributes), dtype=np.int64),  # known when all labels are
    )
    return step, mass, np.maximum(information, 0.0)


def _number_keys(keys: IntArray, size: int) -> tuple[IntArray, NDArray[np.integer[Any]]]:
    """The different ones among these keys, all below `size`, in their order, and which one each is."""
    if size > len(keys):  # a place for every possible key would be longer than sorting takes
        different, which = np.unique(keys, return_inverse=True)
        return different, which.reshape(-1)
    held = np.zeros(size, dtype=bool)
    held[keys] = True
    return np.flatnonzero(held), (np.cumsum(held, dtype=np.int32) - 1)[keys]


def _reach_next(
    joint: Joint, step: Step, reach: _Reach, of_combo: IntArray, expected: float, deadline: float
) -> _Reach:
    """The contexts that likely outputs are, and which combinations each may be: no more than there is time for.

    How long that takes is told from how long it takes to weigh outputs, on the way.
    """
    begun = time.monotonic()
    channel_row = step.row_numbers(reach.context, of_combo[reach.combo])
    p_output = np.zeros(len(step.context_of_output))
    pairs = np.zeros(len(p_output), dtype=np.int64)
    for first in range(0, len(channel_row), PART):
        place, entry = step.expand_rows(channel_row[first : first + PART])
        chance = reach.chance[place + first] * (step.numerator[entry] / UNIT) * joint.p_x[reach.combo[place + first]]
        p_output += np.bincount(step.output[entry], chance, minlength=len(p_output))
        pairs += np.bincount(step.output[entry], minlength=len(p_output))
    likely = np.argsort(-p_output, kind="stable")
    now = time.monotonic()
    each = LISTED * max(now - begun, TICK) / pairs.sum()
    so_far = np.cumsum(pairs[likely])
    wanted = (so_far <= LARGEST_GROWTH) & (p_output[likely] * expected >= 1.0)
    in_time = so_far * each <= LISTING_SHARE * (deadline - now)
    cut = bool((wanted & ~in_time).any())
    wanted &= in_time
    wanted[0] = True  # a step has a context
    reached = np.sort(likely[wanted])
    context = np.full(len(p_output), -1)
    context[reached] = np.arange(len(reached))
    of, combo, chances = [], [], []
    for first in range(0, len(channel_row), PART):
        place, entry = step.expand_rows(channel_row[first : first + PART])
        goes = context[step.output[entry]] >= 0
        place, entry = place[goes] + first, entry[goes]
        of.append(context[step.output[entry]])
        combo.append(reach.combo[place])
        chances.append(reach.chance[place] * (step.numerator[entry] / UNIT))
    return _Reach(np.concatenate(of), np.concatenate(combo), np.concatenate(chances), reached, cut)


class _LabelCodes:
    """What outputs are called, column by column: the values they stand for, most likely first."""

    def __init__(self, joint: Joint) -> None:
        self._joint = joint
        self._codes: list[dict[str, int]] = [{} for _ in joint.attributes]

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each column, in the order of their codes."""
        return tuple(tuple(codes) for codes in self._codes)

    def any_codes(self, attributes: tuple[int, ...]) -> IntArray:
        """The codes of labels that stand for any value, unlike all others."""
        found = []
        for j in attributes:
            known = self._codes[j]
            found.append(known.setdefault(unique_label(ANY, {*known, *self._joint.attributes[j].labels}), len(known)))
        return np.array(found, dtype=np.int64)

    def value_codes(self, attributes: tuple[int, ...], values: IntArray) -> IntArray:
        """The codes of values that are published just so, a row per output."""
        codes = np.zeros(values.shape, dtype=np.int64)
        for i, j in enumerate(attributes):
            known, labels = self._codes[j], self._joint.attributes[j].labels
            codes[:, i] = [known.setdefault(labels[value], len(known)) for value in values[:, i].tolist()]
        return codes

    def output_codes(
        self,
        attributes: tuple[int, ...],
        values: IntArray,
        value: IntArray,
        output: IntArray,
        p_entry: FloatArray,
        widths: IntArray,
    ) -> IntArray:
        """A code per output and attribute; outputs of one context never share all of them."""
        columns = [self._joint.attributes[j].labels for j in attributes]
        names = [tuple(labels[code] for labels, code in zip(columns, row, strict=True)) for row in values.tolist()]
        order = np.lexsort((-p_entry, output))
        starts = np.searchsorted(output[order], np.arange(int(widths.sum()) + 1)).tolist()
        sorted_value, share = value[order].tolist(), p_entry[order] / np.bincount(output, p_entry)[output[order]]
        counts = np.add.reduceat((share > NEGLIGIBLE).astype(np.int64), starts[:-1]).tolist()
        plain = []
        for start, count in zip(starts[:-1], counts, strict=True):
            combos = [names[v] for v in sorted_value[start : start + count]]
            plain.append(format_values(combos, [""] * count, len(attributes)))
        codes = np.zeros((len(plain), len(attributes)), dtype=np.int64)
        ends = np.cumsum(widths).tolist()
        for first, last in zip([0, *ends[:-1]], ends, strict=True):
            for o, label in enumerate(number_duplicates(plain[first:last]), first):
                codes[o] = [
                    self._codes[j].setdefault(text, len(self._codes[j]))
                    for j, text in zip(attributes, label, strict=True)
                ]
        return codes
