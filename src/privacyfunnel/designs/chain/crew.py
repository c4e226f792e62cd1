"""Solving the contexts of a step on all cores: each worker gets tables of numbers and gives back integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.channel import Channel
from privacyfunnel.designs.chain.contexts import context_channels
from privacyfunnel.designs.workers import Workers

BATCH = 96  # contexts per job: enough to amortise the calls, few enough to stay in the cache


class Crew(Workers):
    """Worker processes that live as long as one growth. Nothing but tables of the joint is sent to them."""

    def channels(self, tables: Sequence[FloatArray], band: Band, rounds: int) -> list[Channel]:
        """The channel of every context; tables are (1 + c) × d and may differ in d."""
        order = sorted(range(len(tables)), key=lambda i: tables[i].shape[1])
        jobs = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
        solved = self.all(context_channels, [(_padded([tables[i] for i in job]), band, rounds) for job in jobs])
        found: dict[int, Channel] = {}
        for job, answer in zip(jobs, solved, strict=True):
            found |= dict(zip(job, answer, strict=True))
        return [found[i] for i in range(len(tables))]


def _padded(tables: Sequence[FloatArray]) -> FloatArray:
    widest = max(table.shape[1] for table in tables)
    out = np.zeros((len(tables), tables[0].shape[0], widest))
    for i, table in enumerate(tables):
        out[i, :, : table.shape[1]] = table
    return out
