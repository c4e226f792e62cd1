"""Solving the contexts of a step on all cores: each worker gets tables of numbers and gives back integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.context_channel import Channel
from privacyfunnel.designs.chain.contexts import context_channels
from privacyfunnel.designs.workers import Workers

BATCH = 96  # contexts per job: enough to amortise the calls, few enough to stay in the cache
HURRIED = 24  # the same where there is a deadline: a job that has begun is finished
TIER = 8 * BATCH  # contexts that are sorted by width: those before them are solved first, should time be short


class ContextWorkers(Workers):
    """Worker processes that live as long as one growth. Nothing but tables of the joint is sent to them."""

    def channels(self, tables: Sequence[FloatArray], band: Band, rounds: int, deadline: float) -> list[Channel]:
        """The channel of every context, those first that come first; tables are (1 + c) × d and may differ in d.

        When the clock shows the deadline, those that were not begun say nothing.
        """
        order = sorted(range(len(tables)), key=lambda i: (i // TIER, tables[i].shape[1]))
        size = BATCH if math.isinf(deadline) else HURRIED
        jobs = [order[i : i + size] for i in range(0, len(order), size)]
        given = [(_pad([tables[i] for i in job]), band, rounds) for job in jobs]
        found: dict[int, Channel] = {}
        for number, answer in self.run_until(deadline, context_channels, given).items():
            found |= dict(zip(jobs[number], answer, strict=True))
        return [found[i] if i in found else Channel.constant(table.shape[1]) for i, table in enumerate(tables)]


def _pad(tables: Sequence[FloatArray]) -> FloatArray:
    widest = max(table.shape[1] for table in tables)
    out = np.zeros((len(tables), tables[0].shape[0], widest))
    for i, table in enumerate(tables):
        out[i, :, : table.shape[1]] = table
    return out
