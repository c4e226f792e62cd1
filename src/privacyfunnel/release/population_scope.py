"""For whom a promise is kept: these rows, and the people they are a sample of wherever that is possible.

A promise for the people asks for more than one for the rows: enough rows of every secret, a method that can be judged
over sets of priors, and time. Where the owner left it open, what stands in its way is one sentence, and the promise is
then about the rows alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel.designs.methods import Effort, Options, find_method, resolve_method
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.use import UseValue

if TYPE_CHECKING:
    from privacyfunnel.spec import ReleaseSpec

WORK, GAP = 20.0, 1e-3  # nominal seconds that the optimum for the people gets, and how near it is sought, unless asked
ROWS_SECONDS = 3.0  # to see what these rows alone would keep
MOST_CELLS = 4000  # of events, two bounds each: up to ten seconds of binomial tails


def obstacle(spec: ReleaseSpec, joint: Joint) -> str:
    """Why the people are not promised anything here, in a sentence; nothing where it can be tried."""
    if spec.average is not None:
        return "an average is kept for these rows only"
    if spec.judged_columns:
        return "kept columns are judged on these rows only"
    options = spec.options()
    mine = find_method(resolve_method(spec.method, options).method)
    sees_secret = options.sees_secret or mine.always_sees_secret
    cells = _cells(spec.promise_value, joint, sees_secret)
    if cells > MOST_CELLS:
        return f"it would rest on more than {MOST_CELLS:,} shares of values among people with a secret; 95% tries it"
    return ""


def _cells(promise: Promise, joint: Joint, sees_secret: bool) -> int:
    """How many shares the sets bound, counted until they are too many."""
    cells = 0
    for question in promise.group_pairs(joint.c, joint.m, sees_secret):
        classes = len(np.unique(joint.combos[:, question.known], axis=0)) if question.known else 1
        events = 2 * joint.c  # each secret, and the rest of the people
        cells += events * (joint.a * (joint.c if sees_secret else 1) + classes)
        if cells > MOST_CELLS:
            break
    return cells


def extend_effort(options: Options) -> Options:
    """As long and as near as is sensible where the owner said neither."""
    effort = options.effort
    if effort.time_limit is not None:
        return options
    return replace(options, effort=replace(effort, gap=max(effort.gap, GAP), work_limit=WORK))


def rows_only_worth(name: str, joint: Joint, promise: Promise, options: Options) -> UseValue | None:
    """What the same method is worth where only these rows are promised anything; None where that is not soon known."""
    try:
        effort = Effort(max(options.effort.gap, GAP), ROWS_SECONDS)
        return find_method(name).design(joint, promise, replace(options, effort=effort)).worth
    except PrivacyFunnelError:  # a release stands without it
        return None
