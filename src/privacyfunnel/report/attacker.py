r"""What an attacker learns at worst, in percent: belief about each secret before, after, and what the promise allows.

For every output y that the table can show, the belief that a person has secret s moves from p(s) to

.. math:: p(s \mid y) = \sum_x p(s, x)\, q(y \mid x) \,/\, \sum_{s', x} p(s', x)\, q(y \mid x),

and the page shows the least and the largest over all y. Where outputs are too many to go through it shows what the
promise allows, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.report.bars import Bar, BarChart, Mark, percent_ticks, scale_end, select_keys, select_labels
from privacyfunnel.report.number_text import format_percent

SHOWN_SECRETS = 24  # in a picture; all of them are in the list below it
LISTED_SECRETS = 400  # in that list
MOST_CHANCES = 2 * 10**6  # pairs of a value and an output it can become that are gone through: a second's work
MOST_BELIEFS = 2 * 10**7  # pairs of a secret and an output
KEYS = (
    ("allowed", "allowed by the promise"),
    ("seen", "after any record that can be published"),
    ("before", "before"),
)


@dataclass(frozen=True, slots=True)
class Belief:
    """The belief in one secret value: before, what the promise allows, and between what it lies after a record."""

    secret: str
    prior: float
    least: float  # allowed …
    most: float
    lowest: float | None  # … and over all outputs; None where these were not gone through
    highest: float | None

    @property
    def top(self) -> float:
        """The largest belief that is known to be possible."""
        return self.most if self.highest is None else self.highest

    @property
    def bottom(self) -> float:
        """The least."""
        return self.least if self.lowest is None else self.lowest


@dataclass(frozen=True, slots=True)
class GuessingRates:
    """How often the best guess of the secret is right: of somebody who sees nothing, the published or the original."""

    blind: float
    published: float
    original: float


@dataclass(frozen=True, slots=True)
class AttackerView:
    """What someone who sees one published record believes about the secret."""

    beliefs: tuple[Belief, ...]  # in the order in which they are shown
    guessing: GuessingRates | None

    @property
    def worst(self) -> Belief:
        """The one that may rise furthest."""
        return max(self.beliefs, key=lambda belief: belief.top - belief.prior)

    @property
    def has_limit(self) -> bool:
        """Whether the promise limits beliefs at all, and by how much is known."""
        return any(belief.least > 0.0 or belief.most < 1.0 for belief in self.beliefs)


def attacker_view(joint: Joint, sealed: SealedProtocol) -> AttackerView:
    """Beliefs about every value of the secret."""
    seen = _secret_output_joint(joint, sealed)
    lowest = highest = guessing = None
    if seen is not None:
        p_y = seen.sum(axis=0)
        p_sy, p_y = seen[:, p_y > 0], p_y[p_y > 0]
        posterior = p_sy / p_y
        lowest, highest = posterior.min(axis=1), posterior.max(axis=1)
        right = float(p_sy.max(axis=0).sum() / p_y.sum())
        guessing = GuessingRates(float(joint.p_s.max()), right, float(joint.p_sx.max(axis=0).sum()))
    found = []
    for s in select_labels(Attribute(joint.secret_name, joint.secrets), joint.p_s, LISTED_SECRETS).tolist():
        prior = float(joint.p_s[s])
        least, most = sealed.promise.belief_bounds(prior, sealed.epsilon)
        low = None if lowest is None else float(lowest[s])
        high = None if highest is None else float(highest[s])
        found.append(Belief(joint.secrets[s], prior, least, most, low, high))
    return AttackerView(tuple(found), guessing)


def _secret_output_joint(joint: Joint, sealed: SealedProtocol) -> FloatArray | None:
    """p(s, y), a column per output that can be published; None where there are too many."""
    law = sealed.mechanism
    if law.sees_secret:
        listed = law.table_protocol
        return None if listed is None else listed.joint_with_secret(joint)
    spelled = law.explicit_protocol(MOST_CHANCES)
    if spelled is None or joint.c * spelled.channel.shape[1] > MOST_BELIEFS:
        return None
    return np.asarray((spelled.channel.T @ joint.p_sx.T).T)


def beliefs_bars(shown: AttackerView, secret: str) -> BarChart:
    """Every belief on one scale."""
    beliefs = _commonest(shown.beliefs)
    most = scale_end(np.array([max(b.top, b.most if shown.has_limit else 0.0, b.prior) for b in beliefs]))
    rows = []
    for b in beliefs:
        marks = [Mark("allowed", b.least / most, b.most / most)] if shown.has_limit else []
        if b.lowest is not None and b.highest is not None:
            marks.append(Mark("seen", b.lowest / most, b.highest / most))
        marks.append(Mark("before", b.prior / most, b.prior / most))
        said = (
            f"{format_percent(b.prior)} → {format_percent(b.top, up=True)}"
            if b.highest is not None or shown.has_limit
            else ""
        )
        rows.append(Bar(b.secret, tuple(marks), said or format_percent(b.prior)))
    left = len(shown.beliefs) - len(beliefs)
    more = f" The {len(beliefs)} commonest of {len(shown.beliefs)} values are drawn." if left else ""
    reached = shown.worst.highest is not None
    after = "after the record that raises it most" if reached else "at most, by the promise"
    return BarChart(
        tuple(rows),
        select_keys(rows, KEYS),
        percent_ticks(most),
        f"The belief that a person has each value of {secret}, before and {after}.{more}",
        secret,
        "before → at most",
    )


def _commonest(beliefs: Sequence[Belief]) -> list[Belief]:
    commonest = sorted(range(len(beliefs)), key=lambda i: -beliefs[i].prior)[:SHOWN_SECRETS]
    return [beliefs[i] for i in sorted(commonest)]


def worst_sentence(shown: AttackerView, secret: str) -> str:
    """The worst that can happen, in one sentence with numbers from this data."""
    b = shown.worst
    if b.highest is None and not shown.has_limit:
        return ""
    allowed = ""
    if shown.has_limit and b.highest is not None:
        allowed = f" The promise would allow {format_percent(b.most, up=True)}."
    return (
        "Whoever sees a person's published record, and knows nothing else of them, can become "
        f"{format_percent(b.top, up=True)} sure, and no surer, that their {secret} is {b.secret}; before, it was "
        f"{format_percent(b.prior)}.{allowed}"
    )


def guessing_sentence(found: GuessingRates, secret: str) -> str:
    """How often a guess is right, in one sentence."""
    return (
        f"Whoever has to guess a person's {secret} is right {format_percent(found.blind)} of the time without "
        "any record, "
        f"{format_percent(found.published)} with the published one, and {format_percent(found.original)} with "
        "the original one."
    )
