r"""The codebook: what each outcome code of a table stands for, :math:`p(x \mid y)`, a row per code and value.

Values are in order of their chances, so that the first of a code is the one that the table shows beside it. Chances
depend on the law, which is public, and on the shares of X: they tell these to as many digits as are written.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray, Matrix, nonzero_entries
from privacyfunnel.mechanisms.outcomes import NAME, Outcome, Outcomes
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import NEGLIGIBLE
from privacyfunnel.names import unique_label

DIGITS = 3  # of a chance
COLUMN, CHANCE = "column", "chance"  # what is beside codes and values


def codebook(sealed: SealedProtocol, joint: Joint) -> pl.DataFrame | None:
    """A row per outcome code and value that it may stand for; None where the table shows no codes.

    The columns: which column of the table the code is in, where there are several; the code; the value, a column per
    attribute, empty where the code says nothing about it; its chance. Values with a chance below 1e-6 are left out.
    """
    outcomes: Outcomes = sealed.outcomes
    if not outcomes:
        return None
    attributes = [at.name for at in joint.attributes]
    code = outcomes[0].column if len(outcomes) == 1 else unique_label(NAME, attributes)
    chance = unique_label(CHANCE, [*attributes, code])
    found = zip(outcomes, sealed.mechanism.value_joint(joint), strict=True)
    pieces = [_part_rows(outcome, *held, joint, code, chance) for outcome, held in found]
    if len(outcomes) > 1:
        where = unique_label(COLUMN, [*attributes, code, chance])
        pieces = [
            piece.select(pl.lit(outcome.column).alias(where), pl.all())
            for outcome, piece in zip(outcomes, pieces, strict=True)
        ]
    return pl.concat(pieces)


def _part_rows(outcome: Outcome, values: IntArray, p_xy: Matrix, joint: Joint, code: str, chance: str) -> pl.DataFrame:
    x, y, held = nonzero_entries(p_xy)
    posterior = held / np.asarray(p_xy.sum(axis=0))[y]
    listed = np.flatnonzero(posterior > NEGLIGIBLE)
    listed = listed[np.lexsort((x[listed], -posterior[listed], y[listed]))]
    x, y, posterior = x[listed], y[listed], posterior[listed]
    columns = {code: pl.Series(outcome.codes, dtype=pl.String).gather(y.astype(np.uint32))}
    for j, at in enumerate(joint.attributes):
        if j in outcome.attributes:
            number = values[x, outcome.attributes.index(j)].astype(np.uint32)
            columns[at.name] = pl.Series(at.labels, dtype=pl.String).gather(number)
        else:
            columns[at.name] = pl.repeat(None, len(x), dtype=pl.String, eager=True)
    rounded = (float(f"{p:.{DIGITS}g}") for p in posterior)
    columns[chance] = pl.Series(np.fromiter(rounded, np.float64, len(x)))
    return pl.DataFrame(columns)
